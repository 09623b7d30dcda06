"""Returns: what a parcel that comes back costs. Half done on purpose, see the README."""

from .model import Parcel, Quote
from .quote import quote

HANDLING_CENTS = 150


def return_quote(parcel: Parcel, home: str) -> Quote:
    """The quote for the way back, with handling.

    Two mistakes are planted below.
    """
    back = quote(parcel.postcode, home)
    cents = back.total + HANDLING_CENTS
    return Quote(cents, (*back.lines, "return handling"))
