#pragma once
struct Base {
  int limit = 1;
  explicit Base(int size);
  int filter(int x);
};
int pick(int a);
