// The tariff: zones by postcode, and the price of a parcel.
#pragma once

#include "parcel/parcel.hpp"

namespace parcel {

Zone zone_of(const Parcel& parcel, int home);

long price(const Parcel& parcel, Zone zone);

}  // namespace parcel
