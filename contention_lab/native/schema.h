/* The records of a trace file, byte for byte. ../trace/FORMAT.md is the reference, ../trace/schema.py
 * its other form. Written as they lie in memory: the recorder supports little-endian hosts only.
 */
#ifndef CL_SCHEMA_H
#define CL_SCHEMA_H

#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#  error "the trace format is little-endian; this host is not"
#endif

#define CL_MAGIC "\x89" "CLT\r\n\x1a\n"
#define CL_CHUNK_MAGIC 0x43544C43u
#define CL_BUCKETS 32

enum { CL_LEVEL_COUNTERS = 0, CL_LEVEL_PROFILE = 1, CL_LEVEL_TRACE = 2 };
enum {
    CL_META = 1, CL_CODES, CL_FRAMES, CL_STACKS, CL_LOCKS, CL_THREADS, CL_WAITS, CL_HOLDS,
    CL_SHORT_HOLDS, CL_COUNTERS, CL_STATUS, CL_END, CL_GIL, CL_ORDER, CL_BLOCKING, CL_GIL_WAITS,
    CL_LOOP_STEPS, CL_STATES, CL_LOAD = 20, CL_GIL_HOLDS = 24, CL_GIL_TOTALS,
    CL_NATIVE_LOCKS, CL_NATIVE_FRAMES, CL_NATIVE_STACKS, CL_NATIVE_WAITS, CL_NATIVE_IMAGES,
    CL_GIL_RUNS = 32
};
enum {
    CL_ACQUIRED = 0, CL_TIMED_OUT, CL_FAILED_TRY, CL_INTERRUPTED, CL_CANCELLED, CL_OPEN
};
enum { CL_CONTENTION = 0, CL_COORDINATION = 1 };
enum {
    CL_WAIT_TIMEOUT_GIVEN = 1, CL_WAIT_STACK_TRUNCATED = 2, CL_WAIT_SERIES = 4, CL_WAIT_AGAIN = 8,
    CL_WAIT_ROOM = 16
};
enum { CL_HOLD_HANDED_OFF = 1, CL_HOLD_OPEN = 2, CL_HOLD_UNCONTENDED = 4, CL_HOLD_WATCHED = 8 };
enum { CL_THREAD_MAIN = 1, CL_THREAD_FOREIGN = 2, CL_THREAD_TASK = 4 };
enum { CL_STATUS_WRITE_FAILED = 1 };
enum { CL_GIL_HELD = 1 };
enum { CL_ORDER_TIMEOUT_GIVEN = 1, CL_ORDER_SIGNAL = 2 };
enum { CL_GIL_ASKED = 1, CL_GIL_OPEN = 2, CL_GIL_NO_FRAMES = 4, CL_GIL_PASSING = 8 };
enum { CL_NATIVE_NEAREST = 1 };
enum { CL_NATIVE_GAVE_UP = 1, CL_NATIVE_RELEASE = 2, CL_NATIVE_STACK_LATER = 4 };
enum { CL_BLOCKING_STACK_LATER = 1, CL_BLOCKING_OPEN = 2 };
enum { CL_STATE_RUNNABLE = 1, CL_STATE_AWAITS_GIL, CL_STATE_AWAITS_LOCK, CL_STATE_BLOCKED };
enum {
    CL_CALL_OTHER = 1, CL_CALL_SLEEP, CL_CALL_NATIVE_SLEEP, CL_CALL_READ, CL_CALL_WRITE, CL_CALL_SOCKET,
    CL_CALL_POLL, CL_CALL_PROCESS, CL_CALL_FILE_LOCK
};

typedef struct {
    char magic[8];
    uint16_t major, minor;
    uint32_t header_bytes;
    uint64_t start_unix_ns, mono_ns;
    uint32_t pid;
    uint8_t level, clock;
    uint16_t reserved;
    double ticks_per_ns;
    uint32_t reserved2[3];
    uint32_t crc32;
} cl_file_header;

typedef struct {
    uint32_t magic;
    uint16_t kind, record_bytes;
    uint32_t payload_bytes, count, thread, sequence, reserved, crc32;
} cl_chunk_header;

typedef struct {
    uint32_t id, code, line, lasti;
} cl_frame_record;

typedef struct {
    uint64_t start_ns, end_ns, spin_ns, park_ns, gil_ns, spin_cpu_ns;
    uint32_t lock, thread, stack, holder, holder_site, spins;
    uint8_t outcome, kind;
    uint16_t flags;
    uint32_t waiters, holder_stack, awaited_stack;
    uint64_t gil_before_ns;
} cl_wait_record;

typedef struct {
    uint64_t start_ns, end_ns, cpu_ns;
    uint32_t lock, thread, site, stack, waiters, release_thread, flags, preemptions;
} cl_hold_record;

typedef struct {
    uint64_t start_ns;
    uint32_t hold_ns, lock, site;
} __attribute__((packed)) cl_short_hold_record;

/* The order of the u64 fields of a counter record. */
enum {
    CL_C_ACQUIRES, CL_C_CONTENDED, CL_C_TIMED_OUT, CL_C_FAILED_TRIES, CL_C_INTERRUPTED,
    CL_C_RECURSIONS, CL_C_BLOCKING_HOLDS, CL_C_WAIT_NS, CL_C_SPIN_NS, CL_C_PARK_NS, CL_C_GIL_NS,
    CL_C_SPIN_CPU_NS, CL_C_SPINS, CL_C_HOLD_NS, CL_C_MAX_WAIT_NS, CL_C_MAX_HOLD_NS,
    CL_C_HISTOGRAM, CL_C_COUNT = CL_C_HISTOGRAM + CL_BUCKETS
};

typedef struct {
    uint32_t lock, thread;
    uint64_t value[CL_C_COUNT];
} cl_counter_record;

typedef struct {
    uint64_t time_ns, bytes_written, waits, holds, dropped_waits, dropped_holds, dropped_stacks,
        writer_cpu_ns, process_cpu_ns, self_ns;
    int64_t clock_error_ns;
    uint32_t threads_alive, flags;
} cl_status_record;

typedef struct {
    uint64_t time_ns;
    uint32_t holder, flags;
} cl_gil_sample;

typedef struct {
    uint64_t start_ns, end_ns;
    uint32_t thread, task, stack, ready, victim, victim_stack, reserved[2];
} cl_loop_step;

typedef struct {
    uint64_t time_ns, cpu_ns, delay_ns;
    uint32_t thread, stack;
    uint16_t state, call;
    uint32_t reserved;
} cl_state_record;

typedef struct {
    uint64_t time_ns;
    uint32_t threads, runnable, native_threads, native_runnable;
    uint64_t native_cpu_ns, delay_ns, involuntary, voluntary;
} cl_load_record;

typedef struct {
    uint64_t time_ns;
    uint32_t thread, group, lock, stack, held, held_site, flags, reserved;
} cl_order_record;


typedef struct {
    uint64_t start_ns, end_ns;
    uint32_t thread, lock, stack;
    uint16_t call, flags;
} cl_blocking_record;

typedef struct {
    uint64_t start_ns, end_ns;
    uint32_t thread, stack, holder, waiters, lock, flags;
} cl_gil_wait_record;

typedef struct {
    uint64_t start_ns, end_ns;
    uint32_t thread, stack, waiters, flags;
} cl_gil_hold_record;

#define CL_RUN_HOLDS 13

typedef struct {
    uint64_t start_ns, end_ns; /* of the first, of the last */
    uint32_t thread, stack, waiters;
    uint16_t flags, count;
    uint16_t step_ns[2 * (CL_RUN_HOLDS - 1)]; /* of each but the last: how long it was, how long to the next */
} cl_gil_run_record;

/* The order of the u64 fields of a record of totals. */
enum { CL_G_WAITS, CL_G_WAIT_NS, CL_G_HOLDS, CL_G_HELD_NS, CL_G_ASKED, CL_G_COUNT };

typedef struct {
    uint32_t thread, reserved;
    uint64_t value[CL_G_COUNT];
} cl_gil_total_record;

_Static_assert(sizeof(cl_loop_step) == 48, "loop step");
typedef struct {
    uint64_t start_ns, end_ns;
    uint32_t lock, thread, native_id, holder, stack, native_stack, flags, reserved;
} cl_native_wait_record;

_Static_assert(sizeof(cl_native_wait_record) == 48, "native wait");
_Static_assert(sizeof(cl_blocking_record) == 32, "blocking");
_Static_assert(sizeof(cl_gil_wait_record) == 40, "gil wait");
_Static_assert(sizeof(cl_gil_hold_record) == 32, "gil hold");
_Static_assert(sizeof(cl_gil_run_record) == 80, "gil run");
_Static_assert(sizeof(cl_gil_total_record) == 48, "gil total");
_Static_assert(sizeof(cl_gil_sample) == 16, "gil sample");
_Static_assert(sizeof(cl_order_record) == 40, "order");
_Static_assert(sizeof(cl_state_record) == 40, "state");
_Static_assert(sizeof(cl_load_record) == 56, "load");
_Static_assert(sizeof(cl_file_header) == 64, "header");
_Static_assert(sizeof(cl_chunk_header) == 32, "chunk");
_Static_assert(sizeof(cl_frame_record) == 16, "frame");
_Static_assert(sizeof(cl_wait_record) == 96, "wait");
_Static_assert(sizeof(cl_hold_record) == 56, "hold");
_Static_assert(sizeof(cl_short_hold_record) == 20, "short hold");
_Static_assert(sizeof(cl_counter_record) == 392, "counter");
_Static_assert(sizeof(cl_status_record) == 96, "status");

#endif
