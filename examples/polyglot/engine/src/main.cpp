#include <stdio.h>

#include "parcel/sorter.hpp"
#include "parcel/tariff.hpp"

int main() {
  const parcel::Parcel samples[] = {{1, 800, 75011}, {2, 22500, 97400}};
  const parcel::ZoneSorter sorter(75001);
  for (const parcel::Parcel& each : samples) {
    const long cents = parcel::price(each, parcel::zone_of(each, 75001));
    printf("parcel %ld: bin %d, %ld cents\n", each.id, sorter.bin(each), cents);
  }
  return 0;
}
