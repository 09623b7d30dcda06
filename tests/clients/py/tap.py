"""Runs the tests in this folder and prints one TAP line per test."""

import pathlib
import sys
import traceback
import unittest


class Lines(unittest.TestResult):
    """Outcomes go to stdout, reasons to stderr, so that they do not mix."""

    def print_outcome(self, outcome: str, test: unittest.TestCase) -> None:
        print(f"{outcome} {self.testsRun} - {test.id()}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.print_outcome("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.print_outcome("not ok", test)
        traceback.print_exception(*err)

    def addError(self, test, err):
        super().addError(test, err)
        self.print_outcome("not ok", test)
        traceback.print_exception(*err)

    # A skipped test counts as failed.
    def addSkip(self, test, reason):
        self.addFailure(test, (AssertionError, AssertionError(reason), None))


if __name__ == "__main__":
    result = Lines()
    unittest.defaultTestLoader.discover(str(pathlib.Path(__file__).parent)).run(result)
    print(f"1..{result.testsRun}")
    sys.exit(not result.wasSuccessful() or result.testsRun == 0)
