"""The tariff: zones by postcode, and the price of a weight in a zone."""

from .model import Parcel, Zone

REMOTE_PREFIXES = ("97", "98")
STEP_GRAMS = 500
STEP_CENTS = 120
BASE_CENTS = 350


def zone_of(parcel: Parcel, home: str) -> Zone:
    """Which zone a parcel from the depot at `home` travels to."""
    if parcel.postcode.startswith(REMOTE_PREFIXES):
        return Zone.REMOTE
    if parcel.postcode[:2] == home[:2]:
        return Zone.LOCAL
    return Zone.REGIONAL


def price(grams: int, zone: Zone) -> int:
    """Cents for a billed weight: a base, and a step for each 500 g begun."""
    steps = -(-grams // STEP_GRAMS)
    return zone * (BASE_CENTS + steps * STEP_CENTS)
