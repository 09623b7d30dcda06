import os

def complete(a, b):
    """Works."""
    return a + b

class Half(Base):
    def first(self):
        return 1

    def second(self:
        return 2

    def third(self):
        return (3

def after():
    pass

x = = 4
