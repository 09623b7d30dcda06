from shop.price import rounded

print(rounded(3.2))
