/* Recording a program that is not Python: the layer's own recorder.
 *
 * `record` says so in the environment. The writer thread is started when the program makes its first thread, so
 * that a program of one thread stays that; it names what it writes. Waits go into the file as those of locks
 * do, with the C functions for stacks. A mutex's holder is known by its number, a hold by its end: its start is
 * known if the holder had waited, too. Acquires without a wait are only counted.
 */
#ifndef CL_LAYER_PROGRAM_H
#define CL_LAYER_PROGRAM_H

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../native_yields.h"
#include "attached.h"
#include "program_tallies.h"
#include "real.h"

#define CL_VARIABLE "CONTENTION_LAB_RECORD_"
#define CL_PROGRAM_FLUSH_NS 40000000u
#define CL_PROGRAM_RELEASE_NS 200000u /* a thread's releases that others waited for: no more are unwound */

static struct {
    cl_owned_file owned;
    _Atomic uint32_t started, stopping, first_has_ended;
    pid_t process; /* whose trace it is: a child that was made without pthread_atfork()'s handlers is another */
    pthread_t writer;
    cl_program_tables *tables;
    const char *meta, *said; /* `said`: at the end, if all is well */
    const char *failed;      /* what a line about a failure begins with */
    int error;               /* why there is no trace, or why it ends early */
    _Atomic int ended;
    int leaves;              /* this process is about to end, and to go on as its child */
    struct stat error_stream; /* at the start: only there is anything said at the end */
} cl_program = {.owned = {.fd = -1}};

static __thread struct {
    uint32_t busy, native_id;
    uint64_t waited_until, last_release;
    const void *lock;
    uintptr_t acquired_at;
} cl_program_mine __attribute__((tls_model("initial-exec")));

static uint64_t
cl_program_wait_begin(void)
{
    return cl_program_mine.busy || atomic_load_explicit(&cl_native_ring.slot, memory_order_relaxed) == NULL
               ? 0
               : cl_now() | 1u;
}

static void
cl_program_note(cl_native_wait *wait)
{
    if (cl_program_mine.native_id == 0) {
        cl_program_mine.native_id = (uint32_t)syscall(SYS_gettid);
    }
    wait->native_id = cl_program_mine.native_id;
    cl_native_push(wait);
}

static void
cl_program_wait_end(uint64_t begun, uint32_t kind, const void *lock, uint32_t holder, const void *caller,
                    int gave_up)
{
    int error = errno;
    uint64_t now = cl_now();
    cl_program_mine.busy = 1;
    cl_native_wait spin;
    if (cl_yields_end(&spin)) {
        cl_program_note(&spin);
    }
    if (kind != CL_NATIVE_COND) {
        cl_program_mine.lock = lock;
        cl_program_mine.waited_until = now;
    }
    cl_native_wait wait = {.holder = holder, .flags = gave_up ? CL_NATIVE_GAVE_UP : 0u};
    cl_native_fill(&wait, begun, now, kind, lock, caller);
    /* What waits in the kernel by itself is mostly a lock's slow path: its caller takes the lock. */
    cl_program_mine.acquired_at = wait.at[kind == CL_NATIVE_FUTEX && wait.depth > 1];
    cl_program_note(&wait);
    cl_program_mine.busy = 0;
    errno = error;
}

static void
cl_program_released(uint64_t now, uint32_t kind, const void *lock, const void *caller)
{
    if (kind == CL_NATIVE_COND) {
        return; /* a wait for it is one for others, and they are not seen */
    }
    /* Who has got it after a wait always comes here when it lets go: the lock is marked as waited for. */
    int waited = cl_program_mine.lock == lock;
    cl_program_mine.lock = waited ? NULL : cl_program_mine.lock;
    if (now - cl_program_mine.last_release < CL_PROGRAM_RELEASE_NS) {
        return;
    }
    int error = errno;
    cl_program_mine.busy = 1;
    cl_program_mine.last_release = now;
    uint64_t since = waited ? cl_program_mine.waited_until : now;
    cl_native_wait wait = {.flags = CL_NATIVE_RELEASE, .start_ns = since, .end_ns = now,
                           .acquired_at = waited ? cl_program_mine.acquired_at : cl_tally_taker(lock),
                           .lock = (uintptr_t)lock, .kind = kind};
    wait.depth = cl_native_unwind(wait.at, caller);
    cl_program_note(&wait);
    cl_program_mine.busy = 0;
    errno = error;
}

static void
cl_program_yielded(uint64_t begun, const void *caller)
{
    int error = errno;
    cl_native_wait wait;
    cl_program_mine.busy = 1;
    if (cl_yields_add(&wait, begun, cl_now(), caller)) {
        cl_program_note(&wait);
    }
    cl_program_mine.busy = 0;
    errno = error;
}

static void
cl_program_signals(const void *semaphore)
{
    if (cl_program_wait_begin() != 0) {
        cl_native_wait wait = {.flags = CL_PROGRAM_SIGNAL, .lock = (uintptr_t)semaphore,
                               .kind = CL_NATIVE_SEM};
        cl_native_push(&wait);
    }
}

static uint64_t
cl_program_world_begin(uint32_t call)
{
    (void)call;
    return 0;
}

static const cl_layer_table cl_program_functions = {
    .abi = CL_LAYER_ABI, .native_wait_begin = cl_program_wait_begin,
    .native_wait_end = cl_program_wait_end, .native_released = cl_program_released,
    .native_yielded = cl_program_yielded, .native_signals = cl_program_signals, .counts = 1,
    .world_begin = cl_program_world_begin};

/* The program's first thread has left by pthread_exit(): the others go on. */
static void
cl_program_first_ends(void *unused)
{
    (void)unused;
    atomic_store_explicit(&cl_program.first_has_ended, 1, memory_order_relaxed);
}

/* Whether none but the writer is left of a program without its first thread. The last one to end ends the process:
 * the writer must not keep it. The first one stays a zombie until then. */
static int
cl_program_is_over(void)
{
    char path[48], text[512];
    int threads = 0;
    if (!atomic_load_explicit(&cl_program.first_has_ended, memory_order_relaxed)) {
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)cl_program.process);
    int fd = cl_real.open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : cl_real.read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = 0;
    const char *state = strrchr(text, ')'); /* the name before it may be anything */
    return state != NULL && strncmp(state, ") Z ", 4) == 0
           && sscanf(state + 4, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d", &threads) == 1
           && threads <= 2;
}

static void *
cl_program_write(void *unused)
{
    (void)unused;
    cl_program_mine.busy = 1;
    cl_tally_mine.refused = 1;
    prctl(PR_SET_NAME, (unsigned long)(uintptr_t) "clt-writer", 0, 0, 0);
    while (!atomic_load_explicit(&cl_program.stopping, memory_order_acquire) && !cl_program_is_over()) {
        cl_park(&cl_program.stopping, 0, cl_monotonic_ns() + CL_PROGRAM_FLUSH_NS);
        cl_program_flush(cl_program.tables, 0);
    }
    cl_program_flush(cl_program.tables, 1);
    return NULL;
}

/* The program is about to make a thread: its first, if nothing is recorded yet. */
static void
cl_program_start(void)
{
    if (cl_program.owned.fd < 0 || cl_program_mine.busy || getpid() != cl_program.process
        || atomic_exchange_explicit(&cl_program.started, 1, memory_order_acq_rel)) {
        return;
    }
    int error = errno;
    cl_program_mine.busy = 1;
    cl_clock_zero();
    cl_native_begin_recording();
    cl_tallies_begin();
    *(void **)(void *)&cl_demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    cl_program.tables = cl_program_tables_make(&cl_program.owned, cl_program.meta);
    if (cl_program.tables != NULL) {
        cl_program_tables_grow(cl_program.tables);
    }
    pthread_key_t key;
    if (syscall(SYS_gettid) == cl_program.process && pthread_key_create(&key, cl_program_first_ends) == 0) {
        pthread_setspecific(key, &cl_program);
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (cl_program.tables != NULL
        && cl_real.pthread_create(&cl_program.writer, NULL, cl_program_write, NULL) == 0) {
        contention_lab_layer_attach(&cl_program_functions);
    }
    else {
        cl_native_end_recording();
        cl_program.tables = NULL;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    cl_program_mine.busy = 0;
    errno = error;
}

CL_PUBLIC int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    if (__builtin_expect(cl_program.owned.fd >= 0, 0) && CL_REAL(pthread_create) != NULL) {
        cl_program_start();
    }
    return CL_REAL(pthread_create) == NULL ? ENOSYS
                                           : cl_real.pthread_create(thread, attributes, run, argument);
}

static void cl_program_end_at_once(void);

static void
cl_program_has_forked(void)
{
    atomic_fetch_add_explicit(&cl_program_forks, 1, memory_order_relaxed);
    if (cl_program.leaves) {
        cl_program_end_at_once();
    }
}

/* In a forked child: the file is the parent's. */
static void
cl_program_forked(void)
{
    cl_program.said = cl_program.failed = NULL;
    if (cl_program.owned.fd >= 0) {
        contention_lab_layer_attach(NULL);
        cl_native_end_recording();
        cl_owned_close(&cl_program.owned);
    }
}

/* A copy of a variable's value, in memory of its own: what the system has handed over is cleared. */
static const char *
cl_program_value(const char *variable, const char *name)
{
    size_t prefix = sizeof CL_VARIABLE - 1, length = strlen(name);
    if (strncmp(variable, CL_VARIABLE, prefix) != 0 || strncmp(variable + prefix, name, length) != 0) {
        return NULL;
    }
    const char *value = variable + prefix + length;
    char *copy = mmap(NULL, strlen(value) + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return copy == MAP_FAILED ? NULL : strcpy(copy, value);
}

/* Takes our variables out of the environment, and out of the memory that /proc/self/environ shows; with ROLE=native,
 * opens the trace. */
static void
cl_program_begin(char **environment)
{
    static const char *const names[] = {"TRACE=", "META=", "SAY=", "FAIL="};
    const char *values[] = {NULL, NULL, NULL, NULL};
    int is_native = 0;
    for (char **at = environment; at != NULL && *at != NULL; at++) {
        is_native |= strcmp(*at, CL_VARIABLE "ROLE=native") == 0;
    }
    if (!is_native) {
        return;
    }
    for (char **at = environment; *at != NULL;) {
        if (strncmp(*at, CL_VARIABLE, sizeof CL_VARIABLE - 1) != 0) {
            at++;
            continue;
        }
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            values[i] = values[i] == NULL ? cl_program_value(*at, names[i]) : values[i];
        }
        memset(*at, 0, strlen(*at));
        for (char **next = at; *next != NULL; next++) {
            next[0] = next[1];
        }
    }
    const char *trace = values[0], *meta = values[1];
    cl_program.said = values[2];
    cl_program.failed = values[3];
    int low = trace == NULL || meta == NULL
                  ? -1
                  : cl_real.open(trace, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    cl_program.error = low < 0 ? errno : 0;
    int high = low < 0 ? -1 : cl_real.fcntl(low, F_DUPFD_CLOEXEC, CL_HIGH_DESCRIPTOR);
    if (high >= 0) {
        close(low);
    }
    cl_owned_take(&cl_program.owned, high >= 0 ? high : low);
    if (fstat(2, &cl_program.error_stream) != 0) {
        cl_program.said = cl_program.failed = NULL;
    }
    cl_program.process = getpid();
    pthread_atfork(NULL, cl_program_has_forked, cl_program_forked);
    at_quick_exit(cl_program_end_at_once);
    if (cl_program.owned.fd >= 0) {
        cl_program.meta = meta;
        cl_crc32_init();
        cl_clock_import();
    }
}

#endif
