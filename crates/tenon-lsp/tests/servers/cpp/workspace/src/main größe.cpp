#include "model.hpp"

int main() {
  const char *emoji = "😀é"; shop::Item item{"é", 1};
  /* 😀 */ return static_cast<int>(shop::cheapest(&item, 1)->total(2)) + (emoji ? 0 : 1);
}
