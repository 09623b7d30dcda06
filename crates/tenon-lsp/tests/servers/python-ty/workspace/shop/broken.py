import os

from shop.model import Item

item: Item = "no item"
print(item.cost)
