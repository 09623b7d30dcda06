#include "parcel/sorter.hpp"

#include "parcel/tariff.hpp"

namespace parcel {

int ZoneSorter::bin(const Parcel& parcel) const {
  const int zone = static_cast<int>(zone_of(parcel, home()));
  return parcel.heavy() ? zone + 10 : zone;
}

}  // namespace parcel
