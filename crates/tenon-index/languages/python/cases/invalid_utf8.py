def valid():
    return b"ÿş"


def bÿd(x): pass


class After: pass
