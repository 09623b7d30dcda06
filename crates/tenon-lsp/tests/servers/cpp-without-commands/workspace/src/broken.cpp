#include "model.hpp"

int broken() {
  shop::Item item{"😀", 1}; return item.cost;
}
