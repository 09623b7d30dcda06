try:
    import fast
except ImportError:
    HAS_FAST = False
else:
    HAS_FAST = True

if HAS_FAST:
    try:
        limit = 10
    except OSError:
        limit = 0
elif fast:
    limit = 5

first = second = third = None


class Query:
    model = None
    first = last = None
    if limit:
        depth = 1
    else:
        depth = 2

    def __init__(self, model, using):
        self.model = model
        self.using: str = using
        local = using
        other.using = using
        if local:
            self.conditional = 1

    def run(self):
        self.later = 1

    @property
    def area(self):
        local = 1
        return local
