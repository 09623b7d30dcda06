import functools
from typing import overload


class Base:
    limit = 1

    @functools.cache
    def filter(self, x):
        return x

    async def later(self):
        return self.filter(1)


@overload
def pick(a: int) -> int: ...
@overload
def pick(a: str) -> str: ...
def pick(a):
    return a


count = 1
count = 2
