from shop.price import rounded

first = rounded(1.5)
