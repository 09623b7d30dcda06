"""The nouns: parcels, zones and quotes."""

from dataclasses import dataclass
from enum import IntEnum


class Zone(IntEnum):
    """How far a parcel travels; the number is the factor on the base price."""

    LOCAL = 1
    REGIONAL = 2
    REMOTE = 3


@dataclass(frozen=True)
class Parcel:
    """Something to deliver, in grams and centimetres."""

    grams: int
    length: int
    width: int
    height: int
    postcode: str

    @property
    def volumetric_grams(self) -> int:
        """The weight that the carrier bills for light but bulky parcels."""
        return self.length * self.width * self.height // 5


@dataclass(frozen=True)
class Quote:
    """A price in cents with the lines that add up to it."""

    cents: int
    lines: tuple[str, ...]
