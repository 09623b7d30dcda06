// Macros that hide declarations from a parser without a preprocessor.
#define GUARDED_BY(x) __attribute__((guarded_by(x)))

namespace store {

class STORE_EXPORT Later;

typedef Iterator* (*BlockFunction)(void*, int);

class STORE_EXPORT Cache : public Base {
 public:
  Cache() = default;
  virtual ~Cache();
  Cache& operator=(const Cache&) = delete;
  virtual Handle* Insert(const Slice& key, void* value) = 0;
  void Unlock() UNLOCK_FUNCTION();
  Handle** FindPointer(int hash) { return nullptr; }
  void Clean() EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Prune()
      EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Slice piece(key_);
    std::string text;
  }

 private:
  int usage_ GUARDED_BY(mutex_);
  const char* (*name_)(void*);
};

struct Cache::Handle : Node {
  Slice key;
};

const double Cache::kLimits[3] = {1, 2, 3};
int Cache::count_ = 0;

STORE_EXPORT leveldb_t* store_open(const char* name);
STORE_EXPORT extern const int kVersion;

struct STAT plain;

}  // namespace store
