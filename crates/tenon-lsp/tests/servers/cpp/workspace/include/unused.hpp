#pragma once
#include "model.hpp"

inline const shop::Item *single(const shop::Item *items) { return shop::cheapest(items, 1); }
