#pragma once
namespace shop {
using Price = long;
}
