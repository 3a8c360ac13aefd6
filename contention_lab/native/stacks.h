/* Interned code objects, frames and stacks. Ids are valid for the life of the process; each recording
 * writes those it needs.
 *
 * A code object is pinned (one reference, never dropped) when first seen, so its address is a key that
 * cannot be used again; names and line are read at that moment, while a thread state is attached (but see
 * native_python.h). All three tables are bounded (cl_table); when one is full the id is 0, "unknown", and the
 * caller counts it.
 */
#ifndef CL_STACKS_H
#define CL_STACKS_H

#include "intern.h"
#include "library.h"
#include "pycompat.h"
#include "utf8.h"

#define CL_MAX_DEPTH 128
#define CL_STACK_TRUNCATED 0x80000000u
#define CL_FRAME_CACHE_BITS 10
#define CL_FRAME_CACHE (1u << CL_FRAME_CACHE_BITS) /* direct-mapped */

typedef struct {
    PyCodeObject *code;
    uint32_t first_line, qualname_bytes, filename_bytes;
    int whose; /* code it is: CL_USER or another, see library.h */
    char *text; /* qualname, then filename; UTF-8, not terminated */
} cl_code_item;

typedef struct {
    PyCodeObject *code;
    uint32_t code_id, lasti, line;
    int whose;
} cl_frame_item;

typedef struct {
    uint64_t hash;
    uint32_t depth; /* with CL_STACK_TRUNCATED */
    uint32_t *frames;
} cl_stack_item;

typedef struct {
    PyCodeObject *code;
    int lasti;
    uint32_t id;
    int whose;
} cl_frame_cache_entry;

#if !CL_FREE_THREADED
/* Of all threads, guarded by the GIL: what one has looked up the next need not, and it stays in the processor's
 * caches. */
static cl_frame_cache_entry cl_frame_cache[CL_FRAME_CACHE];
#endif

static cl_table cl_codes = {.item_bytes = sizeof(cl_code_item)};
static cl_table cl_frames = {.item_bytes = sizeof(cl_frame_item)};
static cl_table cl_stacks = {.item_bytes = sizeof(cl_stack_item)};

static uint64_t
cl_code_hash(const void *item)
{
    return cl_mix((uint64_t)(uintptr_t)((const cl_code_item *)item)->code);
}

static int
cl_code_same(const void *item, const void *key)
{
    return ((const cl_code_item *)item)->code == ((const cl_code_item *)key)->code;
}

static inline uint64_t
cl_position_hash(PyCodeObject *code, int lasti)
{
    return cl_mix((uint64_t)(uintptr_t)code * 31u + (uint64_t)(uint32_t)lasti);
}

static uint64_t
cl_frame_hash(const void *item)
{
    const cl_frame_item *frame = item;
    return cl_position_hash(frame->code, (int)frame->lasti);
}

static int
cl_frame_same(const void *item, const void *key)
{
    const cl_frame_item *a = item, *b = key;
    return a->code == b->code && a->lasti == b->lasti;
}

static uint64_t
cl_stack_hash(const void *item)
{
    return ((const cl_stack_item *)item)->hash;
}

static int
cl_stack_same(const void *item, const void *key)
{
    const cl_stack_item *a = item, *b = key;
    return a->hash == b->hash && a->depth == b->depth
           && memcmp(a->frames, b->frames, (a->depth & ~CL_STACK_TRUNCATED) * sizeof(uint32_t)) == 0;
}

/* Enters a code object, to which the table has a reference if it was `added`. */
static uint32_t
cl_code_enter(PyCodeObject *code, int *added)
{
    cl_code_item key = {.code = code};
    uint64_t hash = cl_code_hash(&key);
    uint32_t qualname_bytes = 0, filename_bytes = 0;
    char *qualname = cl_utf8_copy(code->co_qualname, &qualname_bytes);
    char *filename = cl_utf8_copy(code->co_filename, &filename_bytes);
    char *text = qualname && filename ? malloc((size_t)qualname_bytes + filename_bytes + 1) : NULL;
    if (text == NULL) {
        free(qualname);
        free(filename);
        *added = 0;
        return 0;
    }
    memcpy(text, qualname, qualname_bytes);
    memcpy(text + qualname_bytes, filename, filename_bytes);
    free(qualname);
    free(filename);
    key.first_line = (uint32_t)(code->co_firstlineno > 0 ? code->co_firstlineno : 0);
    key.qualname_bytes = qualname_bytes;
    key.filename_bytes = filename_bytes;
    key.text = text;
    key.whose = cl_file_owner(text + qualname_bytes, filename_bytes);
    pthread_mutex_lock(&cl_intern_mutex);
    uint32_t id = cl_table_find(&cl_codes, hash, &key, cl_code_same);
    *added = id == 0;
    if (id == 0) {
        id = cl_table_insert(&cl_codes, &key, cl_code_hash);
        *added = id != 0;
    }
    pthread_mutex_unlock(&cl_intern_mutex);
    if (!*added) {
        free(text);
    }
    return id;
}

static uint32_t
cl_code_find(PyCodeObject *code)
{
    cl_code_item key = {.code = code};
    return cl_table_find(&cl_codes, cl_code_hash(&key), &key, cl_code_same);
}

static uint32_t
cl_code_intern(PyCodeObject *code)
{
    uint32_t id = cl_code_find(code);
    if (id != 0) {
        return id;
    }
    int added;
    Py_INCREF(code); /* before it can be found; dropped again if it was not ours to add */
    id = cl_code_enter(code, &added);
    if (!added) {
        Py_DECREF(code);
    }
    return id;
}

static uint32_t
cl_frame_find(PyCodeObject *code, int lasti)
{
    cl_frame_item key = {.code = code, .lasti = (uint32_t)(lasti > 0 ? lasti : 0)};
    return cl_table_find(&cl_frames, cl_frame_hash(&key), &key, cl_frame_same);
}

/* Reads the code object only, which is there: it needs no thread state. */
static uint32_t
cl_frame_line(PyCodeObject *code, int lasti)
{
    int line = PyCode_Addr2Line(code, lasti > 0 ? lasti : 0);
    return (uint32_t)(line > 0 ? line : (int)code->co_firstlineno);
}

/* Enters a place in code of that id. */
static uint32_t
cl_frame_enter(PyCodeObject *code, uint32_t code_id, int lasti, uint32_t line)
{
    cl_frame_item key = {.code = code, .lasti = (uint32_t)(lasti > 0 ? lasti : 0), .code_id = code_id,
                         .line = line};
    uint64_t hash = cl_frame_hash(&key);
    key.whose = ((const cl_code_item *)cl_table_item(&cl_codes, code_id))->whose;
    pthread_mutex_lock(&cl_intern_mutex);
    uint32_t id = cl_table_find(&cl_frames, hash, &key, cl_frame_same);
    if (id == 0) {
        id = cl_table_insert(&cl_frames, &key, cl_frame_hash);
    }
    pthread_mutex_unlock(&cl_intern_mutex);
    return id;
}

static uint32_t
cl_frame_intern(PyCodeObject *code, int lasti)
{
    uint32_t id = cl_frame_find(code, lasti);
    uint32_t code_id = id != 0 ? 0 : cl_code_intern(code);
    return code_id == 0 ? id : cl_frame_enter(code, code_id, lasti, cl_frame_line(code, lasti));
}

static inline uint32_t
cl_frame_lookup(cl_frame_cache_entry *cache, PyCodeObject *code, int lasti, int *whose)
{
    uint64_t key = ((uint64_t)(uintptr_t)code + (uint64_t)(unsigned)lasti * 31u) * 0x9E3779B97F4A7C15u;
    cl_frame_cache_entry *entry = &cache[key >> (64 - CL_FRAME_CACHE_BITS)];
    if (entry->code != code || entry->lasti != lasti) {
        /* An interned code object is pinned, so a cached address never means another one; an id of 0
         * (table full) is not cached, because then nothing is pinned. */
        uint32_t id = cl_frame_intern(code, lasti);
        if (id == 0) {
            return 0;
        }
        entry->code = code;
        entry->lasti = lasti;
        entry->id = id;
        entry->whose = ((const cl_frame_item *)cl_table_item(&cl_frames, id))->whose;
    }
    *whose = entry->whose;
    return entry->id;
}

/* The innermost frame of user code that is calling us; the innermost of all if none is; 0 without. */
static inline uint32_t
cl_site_capture(cl_frame_cache_entry *cache)
{
    cl_cursor cursor = cl_cursor_begin();
    cl_position position;
    uint32_t first = 0;
    while (cl_cursor_next(&cursor, &position)) {
        int whose = 0;
        uint32_t id = cl_frame_lookup(cache, position.code, position.lasti, &whose);
        if (!whose) {
            cl_cursor_end(&cursor);
            return id;
        }
        first = first != 0 || whose == CL_HIDDEN ? first : id;
    }
    cl_cursor_end(&cursor);
    return first;
}

/* The frames of a stack while they are collected, innermost first. */
typedef struct {
    uint32_t depth, truncated, limit;
    uint64_t hash;
    uint32_t frames[CL_MAX_DEPTH];
} cl_stack_builder;

static inline void
cl_stack_build(cl_stack_builder *builder, uint32_t limit)
{
    builder->depth = 0;
    builder->truncated = 0;
    builder->limit = limit;
    builder->hash = 0x9E3779B97F4A7C15u;
}

static inline int
cl_stack_has_room(cl_stack_builder *builder)
{
    if (builder->depth == builder->limit) {
        builder->truncated = CL_STACK_TRUNCATED;
        return 0;
    }
    return 1;
}

static inline void
cl_stack_put(cl_stack_builder *builder, uint32_t id, int whose)
{
    if (whose != CL_HIDDEN) {
        builder->frames[builder->depth++] = id;
        builder->hash = (builder->hash ^ id) * 0x100000001B3u;
        builder->hash ^= builder->hash >> 29;
    }
}

/* Adds a frame, unless it is hidden; 0 if there is no room for it. */
static inline int
cl_stack_add(cl_stack_builder *builder, cl_frame_cache_entry *cache, cl_position position)
{
    int whose = CL_USER;
    if (!cl_stack_has_room(builder)) {
        return 0;
    }
    uint32_t id = cl_frame_lookup(cache, position.code, position.lasti, &whose);
    cl_stack_put(builder, id, whose);
    return 1;
}

/* The id of a stack; 0 if it is empty or there is no room. */
static uint32_t
cl_stack_intern(const cl_stack_builder *builder)
{
    uint32_t depth = builder->depth, truncated = builder->truncated;
    uint64_t hash = builder->hash;
    const uint32_t *frames = builder->frames;
    if (depth == 0) {
        return 0;
    }
    cl_stack_item key = {.hash = cl_mix(hash), .depth = depth | truncated,
                         .frames = (uint32_t *)(uintptr_t)frames}; /* only compared, then replaced */
    uint32_t id = cl_table_find(&cl_stacks, key.hash, &key, cl_stack_same);
    if (id != 0) {
        return id;
    }
    uint32_t *copy = malloc(depth * sizeof *copy);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, frames, depth * sizeof *copy);
    int inserted = 0;
    pthread_mutex_lock(&cl_intern_mutex);
    id = cl_table_find(&cl_stacks, key.hash, &key, cl_stack_same);
    if (id == 0) {
        key.frames = copy;
        id = cl_table_insert(&cl_stacks, &key, cl_stack_hash);
        inserted = id != 0;
    }
    pthread_mutex_unlock(&cl_intern_mutex);
    if (!inserted) {
        free(copy);
    }
    return id;
}

/* The stack the cursor stands on, innermost first, at most `limit` frames; 0 if there is none or no
 * room. Ends the cursor. */
static uint32_t
cl_stack_capture_from(cl_cursor cursor, cl_frame_cache_entry *cache, uint32_t limit)
{
    cl_stack_builder builder;
    cl_position position;
    cl_stack_build(&builder, limit);
    while (cl_cursor_next(&cursor, &position) && cl_stack_add(&builder, cache, position)) {
    }
    cl_cursor_end(&cursor);
    return cl_stack_intern(&builder);
}

/* Whose code it is. Pins it. */
static int
cl_code_owner(PyCodeObject *code)
{
    uint32_t id = cl_code_intern(code);
    return id == 0 ? CL_USER : ((const cl_code_item *)cl_table_item(&cl_codes, id))->whose;
}

/* This thread's whole stack. */
static uint32_t
cl_stack_capture(cl_frame_cache_entry *cache, uint32_t limit)
{
    return cl_stack_capture_from(cl_cursor_begin(), cache, limit);
}

#endif
