from shop.price import rounded


def test_rounded() -> None:
    assert rounded(1.7) == 2
