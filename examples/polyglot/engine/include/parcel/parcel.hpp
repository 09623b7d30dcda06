// The nouns: parcels and the zones they travel to.
#pragma once

namespace parcel {

enum class Zone { local = 1, regional = 2, remote = 3 };

struct Parcel {
  long id;
  long grams;
  int postcode;

  bool heavy() const { return grams > 20000; }
};

}  // namespace parcel
