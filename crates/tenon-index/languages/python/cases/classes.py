"""Module docstring."""
from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

T = TypeVar("T")
DEFAULT_LIMIT: int = 100
first, second = 1, 2
chained = other = None

if True:
    FLAG = 1
else:
    FLAG = 2

try:
    import yaml
except ImportError:
    yaml = None

type Pair[K] = tuple[K, K]


class Base(object):
    pass


# The registry of plugins.
@dataclass(frozen=True)
@other.decorator
class Registry(Base, Generic[T], models.Model, make_base(1), metaclass=Meta):
    """
    Keeps plugins.

    More text.
    """

    limit: int = 10
    LARGE = 2**31
    name: str

    class Meta:
        ordering = ["name"]

        class Deep:
            def reach(self): ...

    def __init__(self, *args, **kwargs):
        self.values = {}
        local = 1

    @property
    def size(self) -> int:
        return 1

    @size.setter
    def size(self, value):
        pass

    @functools.cached_property
    def cached(self):
        return 2

    @overload
    def get(self, key: int) -> int: ...
    @overload
    def get(self, key: str) -> str: ...
    def get(self, key):  # the real one
        """Return it."""
        return key

    async def fetch(
        self,
        url,  # where
        *,
        timeout=None,
    ):
        def helper(x):
            class Local:
                attribute = 1

            return Local

        return helper

    @staticmethod
    def make(): return 1


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class TestRegistry(TestCase):
    def test_get(self):
        pass


def test_module():
    pass


@decorator
def outer():
    inner = lambda: 1

    def nested():
        pass


größe = 3


def 名前(値): return 値


if __name__ == "__main__":
    outer()
