"""Quotes: the tariff applied to one parcel."""

from .model import Parcel, Quote
from .tariff import price, zone_of


def billed_grams(parcel: Parcel) -> int:
    """The greater of the real and the volumetric weight."""
    return max(parcel.grams, parcel.volumetric_grams)


def quote(parcel: Parcel, home: str) -> Quote:
    """What it costs to send `parcel` from the depot at `home`."""
    zone = zone_of(parcel, home)
    grams = billed_grams(parcel)
    cents = price(grams, zone)
    return Quote(cents, (f"{zone.name.lower()} zone", f"{grams} g billed"))
