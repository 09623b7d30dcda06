// The sorter: which bin a parcel falls into.
#pragma once

#include "parcel/parcel.hpp"

namespace parcel {

class Sorter {
 public:
  explicit Sorter(int home) : home_(home) {}
  virtual ~Sorter() = default;

  virtual int bin(const Parcel& parcel) const = 0;

 protected:
  int home() const { return home_; }

 private:
  int home_;
};

class ZoneSorter : public Sorter {
 public:
  using Sorter::Sorter;
  int bin(const Parcel& parcel) const override;
};

}  // namespace parcel
