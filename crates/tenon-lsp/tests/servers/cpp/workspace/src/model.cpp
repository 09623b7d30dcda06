#include "model.hpp"

namespace shop {

Price Item::total(int count) const { return price * count; }

const Item *cheapest(const Item *items, int count) {
  const Item *best = nullptr;
  for (int i = 0; i < count; ++i) {
    if (!best || items[i].price < best->price) best = &items[i];
  }
  return best;
}

} // namespace shop
