def test_unrelated() -> None:
    pass
