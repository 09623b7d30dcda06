from shop.model import Item, cheapest


class Basket:
    def __init__(self) -> None:
        self.items: list[Item] = []

    def add(self, item: Item) -> None:
        self.items.append(item)

    def total(self) -> int:
        return sum(item.total() for item in self.items)

    def bargain(self) -> Item | None:
        return cheapest(self.items)
