#include "m.hpp"
int main() {
  Base b(1);
  return b.filter(2) + pick(3) + b.limit;
}
