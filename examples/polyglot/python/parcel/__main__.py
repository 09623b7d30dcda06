"""Prints a quote for each of three sample parcels."""

from .model import Parcel
from .quote import quote
from .tariff import zone_of

HOME = "75001"

SAMPLES = (
    Parcel(grams=800, length=20, width=15, height=10, postcode="75011"),
    Parcel(grams=400, length=60, width=40, height=40, postcode="69003"),
    Parcel(grams=2500, length=30, width=30, height=20, postcode="97400"),
)


def main() -> None:
    for parcel in SAMPLES:
        offer = quote(parcel, HOME)
        zone = zone_of(parcel, HOME)
        print(f"{parcel.postcode} zone {zone:d}: {offer.cents / 100:.2f} ({', '.join(offer.lines)})")


if __name__ == "__main__":
    main()
