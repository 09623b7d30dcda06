// Items of C++.
#include "items.h"

namespace db {
namespace {
int hidden = 1;
void helper() {}
}  // namespace

/// A table.
template <typename Key, typename Value = int>
class Table : public Base<Key>, private detail::Impl {
 public:
  explicit Table(const Options& options);
  Table(const Table&) = delete;
  virtual ~Table();
  Table& operator=(const Table&) = default;
  bool operator==(const Table& other) const { return true; }
  operator bool() const { return true; }

  // Finds a value.
  virtual const Value* Get(const Key& key) const = 0;
  static std::unique_ptr<Table> Open();
  template <typename F>
  void ForEach(F f) {}
  inline int size() const { return size_; }

  struct Iterator {
    int position;
  };
  enum class Mode { kRead, kWrite };
  using Pointer = Table*;

 private:
  int size_ = 0;
  char* data_;
  static constexpr int kMax = 10;
};

template <>
class Table<int, int> {};

struct Options { bool create = true; };
concept_like auto make();

template <typename T>
concept Small = sizeof(T) < 8;

}  // namespace db

namespace a::b::c { void nested(); }

db::Table::Table(const Options& options) : size_(0) {}
db::Table::~Table() {}

template <typename K>
const int* db::Table<K>::Get(const K& key) const {
  int local = 1;
  auto lambda = [&](int x) { return x; };
  return nullptr;
}

std::ostream& operator<<(std::ostream& out, const Options& options) { return out; }
Status db::Iterator::Inner::Next() { return Status(); }

extern "C" {
int c_function(int x);
int c_variable;
}

typedef void (*Callback)(int);
int global_value = 3;
TEST(TableTest, Works) { EXPECT_EQ(1, 1); }
