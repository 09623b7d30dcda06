#ifndef GUARD_H
#define GUARD_H

#include <stddef.h>

#define VERSION "1.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct db_t db_t;

/* Opens a file. */
extern db_t* db_open(const char* name, char** error);
extern int db_count;

class Reader {
 public:
  void Next();
};

#ifdef __cplusplus
}
#endif

#endif
