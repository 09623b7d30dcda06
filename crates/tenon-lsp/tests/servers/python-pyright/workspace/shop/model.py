"""Prices, and things that have one."""

from __future__ import annotations


class Item:
    """Something for sale."""

    def __init__(self, name: str, price: int) -> None:
        self.name = name
        self.price = price

    def total(self, count: int = 1) -> int:
        return self.price * count


def cheapest(items: list[Item]) -> Item | None:
    """The item that costs least."""
    return min(items, key=lambda item: item.price, default=None)
