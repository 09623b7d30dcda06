def rounded(price: float) -> int:
    return round(price)
