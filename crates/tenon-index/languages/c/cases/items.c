/* Items of C. */
#include <stdio.h>

#define MAX_SIZE 100
#define SQUARE(x) ((x) * (x))
#define EMPTY

/* A point. */
typedef struct {
    int x, y;
    char *name;
    int values[10];
    int (*compare)(const void *, const void *);
} point_t;

struct node {
    struct node *next;
    union { int i; float f; } value;
};

typedef struct node node_t;
typedef unsigned long size_type;
typedef int (*callback_t)(int);
typedef enum { RED, GREEN = 2 } color_t;
enum state { IDLE, BUSY };
union bits { int i; float f; };

static int counter = 0;
extern const char *names[];
int a, *b, c[3];

int add(int a, int b);
static inline char *copy(const char *source);

/** Adds. */
int add(int a, int b) {
    int local = a + b;
    return local;
}

static char *
copy(const char *source)
{
    return NULL;
}

char **table(void) { return 0; }

#ifdef DEBUG
int debug_level = 1;
void trace(const char *message) {}
#else
void trace(const char *message) {}
#endif
