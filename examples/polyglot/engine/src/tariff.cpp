#include "parcel/tariff.hpp"

namespace parcel {

namespace {
int department(int postcode) { return postcode / 1000; }
}  // namespace

Zone zone_of(const Parcel& parcel, int home) {
  const int there = department(parcel.postcode);
  if (there == 97 || there == 98) return Zone::remote;
  return there == department(home) ? Zone::local : Zone::regional;
}

long price(const Parcel& parcel, Zone zone) {
  const long steps = (parcel.grams + 499) / 500;
  return static_cast<long>(zone) * (350 + steps * 120);
}

}  // namespace parcel
