#pragma once
#include "prices.hpp"

namespace shop {

/// Something for sale.
struct Item {
  const char *name;
  Price price;
  Price total(int count = 1) const;
};

const Item *cheapest(const Item *items, int count);

} // namespace shop
