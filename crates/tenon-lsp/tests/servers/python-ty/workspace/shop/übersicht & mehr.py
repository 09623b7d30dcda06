from shop.model import Item, cheapest

größe = "😀👩‍👩‍👧"; item = Item("é", 1)
print("é😀", item.total(2), cheapest([item]))
