// Returns: what a parcel that comes back costs. Half done on purpose, see the README.
#include "parcel/tariff.hpp"

namespace parcel {

long return_price(const Parcel& parcel) {
  const long handling = parcel.weight > 5000 ? 300 : 150;
  return refund(parcel) + handling;
}

}  // namespace parcel
