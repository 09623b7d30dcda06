"""Runs the tests of this folder and says the outcome of each on a line of its own, as TAP does."""

import pathlib
import sys
import traceback
import unittest


class Lines(unittest.TestResult):
    """Outcomes go to stdout and reasons to stderr, so that neither ends up in the middle of the other."""

    def say(self, outcome: str, test: unittest.TestCase) -> None:
        print(f"{outcome} {self.testsRun} - {test.id()}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say("not ok", test)
        traceback.print_exception(*err)

    def addError(self, test, err):
        super().addError(test, err)
        self.say("not ok", test)
        traceback.print_exception(*err)

    # A test that is left out has not passed.
    def addSkip(self, test, reason):
        self.addFailure(test, (AssertionError, AssertionError(reason), None))


if __name__ == "__main__":
    result = Lines()
    unittest.defaultTestLoader.discover(str(pathlib.Path(__file__).parent)).run(result)
    print(f"1..{result.testsRun}")
    sys.exit(not result.wasSuccessful() or result.testsRun == 0)
