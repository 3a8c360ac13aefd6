/* The recorder's state of one thread: made at its first event in a recording, found through a
 * thread-local pointer, freed by the thread itself or by the writer, whoever comes last.
 */
#ifndef CL_THREAD_H
#define CL_THREAD_H

#include <sys/types.h>
#include <unistd.h>
#if defined(__linux__)
#  include <sys/prctl.h>
#  include <sys/syscall.h>
#endif

#include "holder_stack.h"
#include "session.h"

#if defined(__GLIBC__)
/* glibc keeps room for small initial-exec variables of libraries loaded later: one load, no call. */
#  define CL_TLS __thread __attribute__((tls_model("initial-exec")))
#else
#  define CL_TLS __thread
#endif

static CL_TLS cl_thread *cl_current;
static pthread_key_t cl_exit_key;

static uint32_t
cl_native_thread_id(void)
{
#if defined(__linux__)
    return (uint32_t)syscall(SYS_gettid);
#else
    return (uint32_t)PyThread_get_thread_native_id();
#endif
}

#if defined(__linux__)
static CL_TLS signed char cl_mainness; /* 1: this is the main thread, -1: it is not, 0: not known yet */
#endif

/* Asked at the start of every wait: two system calls, once. */
static int
cl_is_main_thread(void)
{
#if defined(__linux__)
    if (cl_mainness == 0) {
        cl_mainness = cl_native_thread_id() == (uint32_t)getpid() ? 1 : -1;
    }
    return cl_mainness > 0;
#elif defined(__APPLE__)
    return pthread_main_np();
#else
    return 1; /* asked only whether to look for signals: a needless look is harmless */
#endif
}

static void
cl_thread_free(cl_thread *thread)
{
    cl_block *block = atomic_load_explicit(&thread->blocks, memory_order_relaxed);
    while (block != NULL) {
        cl_block *next = block->next;
        cl_lock_info_release(block->info);
        free(block);
        block = next;
    }
    free(thread->hash);
    free(thread->ring.data);
    free(thread);
}

/* The owner is done with it. Frees it if the writer already is, else leaves it to the writer. */
static void
cl_thread_leave(cl_thread *thread)
{
    uint32_t expected = CL_THREAD_LIVE;
    /* release: the writer's acquire load of the state sees all counters and records */
    if (!atomic_compare_exchange_strong_explicit(&thread->state, &expected, CL_THREAD_EXITED,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        cl_thread_free(thread); /* it was CL_THREAD_ORPHAN: its recording is over */
    }
}

static void
cl_thread_exit(void *argument)
{
    cl_thread *thread = argument;
    cl_current = NULL;
    cl_slot_leave(thread->slot, thread->id, thread->native_id);
    /* Also when the recording has just been stopped: its last flush may still be to come. */
    uint32_t epoch = atomic_load_explicit(&cl_epoch, memory_order_relaxed);
    if (thread->recording == epoch || epoch == 0) {
        atomic_store_explicit(&thread->end_cpu_ns, cl_thread_cpu_ns() - thread->cpu_zero,
                              memory_order_relaxed);
        atomic_store_explicit(&thread->end_ns, cl_now(), memory_order_relaxed);
    }
    cl_thread_leave(thread);
}

/* Takes the name from threading._active without running Python code: two dictionary look-ups.
 * A thread that is not there yet (or never will be) is asked for again at its next contended event. */
static void
cl_thread_take_name(cl_thread *thread)
{
    PyObject *threading = NULL, *active = NULL, *ident = NULL, *object = NULL, *fields = NULL;
    PyObject *module_name = PyUnicode_FromString("threading");
    PyObject *attribute = PyUnicode_InternFromString("_active");
    PyObject *name_key = PyUnicode_InternFromString("_name"), *name = NULL;
    if (module_name == NULL || attribute == NULL || name_key == NULL) {
        goto done;
    }
    threading = cl_dict_get(PyImport_GetModuleDict(), module_name);
    if (threading == NULL || !PyModule_Check(threading)) {
        goto done;
    }
    active = cl_dict_get(PyModule_GetDict(threading), attribute);
    ident = PyLong_FromUnsignedLongLong(thread->ident);
    if (active == NULL || ident == NULL || !PyDict_CheckExact(active)) {
        goto done;
    }
    object = cl_dict_get(active, ident);
    if (object == NULL) {
        goto done;
    }
    fields = PyObject_GenericGetDict(object, NULL);
    if (fields == NULL || !PyDict_CheckExact(fields)) {
        goto done;
    }
    name = cl_dict_get(fields, name_key);
    uint32_t bytes = 0;
    char *copy = name != NULL && PyUnicode_Check(name) ? cl_utf8_copy(name, &bytes) : NULL;
    if (copy != NULL) {
        if (bytes >= sizeof thread->name) {
            bytes = sizeof thread->name - 1;
            while (bytes > 0 && ((unsigned char)copy[bytes] & 0xC0u) == 0x80u) {
                bytes--;
            }
        }
        memcpy(thread->name, copy, bytes);
        thread->name[bytes] = 0;
        free(copy);
        atomic_store_explicit(
            &thread->flags,
            atomic_load_explicit(&thread->flags, memory_order_relaxed) & ~(uint32_t)CL_THREAD_FOREIGN,
            memory_order_relaxed);
        atomic_store_explicit(&thread->named, 1, memory_order_release);
    }
done:
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(fields);
    Py_XDECREF(object);
    Py_XDECREF(ident);
    Py_XDECREF(active);
    Py_XDECREF(threading);
    Py_XDECREF(name_key);
    Py_XDECREF(attribute);
    Py_XDECREF(module_name);
}

#define CL_NAME_TRIES 8

/* A thread's first event comes before threading knows it: looks again at each of the next few. */
static void
cl_thread_look_for_name(cl_thread *thread)
{
    if (!atomic_load_explicit(&thread->named, memory_order_relaxed)) {
        cl_thread_take_name(thread);
        thread->name_tries++;
    }
    if (atomic_load_explicit(&thread->named, memory_order_relaxed)) {
        thread->name_tries = CL_NAME_TRIES;
    }
}

/* This thread's state in recording `epoch`, if it has one. */
static inline cl_thread *
cl_thread_here(uint32_t epoch)
{
    cl_thread *thread = cl_current;
    return thread != NULL && thread->recording == epoch ? thread : NULL;
}

/* Makes a thread's state without a thread state of Python's: it has no name of threading's yet. Its `epoch`
 * stays 0, so that cl_thread_get() completes it. */
static cl_thread *
cl_thread_make_bare(uint32_t epoch, uint64_t start_ns)
{
    if (cl_current != NULL) { /* of an older recording */
        if (cl_current->busy == 0) {
            cl_thread_leave(cl_current);
        }
        cl_current = NULL;
        pthread_setspecific(cl_exit_key, NULL);
    }
    cl_thread *thread = calloc(1, sizeof *thread);
    uint8_t *data = thread == NULL ? NULL : malloc(cl_session.ring_bytes);
    if (data == NULL || pthread_setspecific(cl_exit_key, thread) != 0) {
        free(data);
        free(thread);
        atomic_fetch_add_explicit(&cl_session.unrecorded_threads, 1, memory_order_relaxed);
        return NULL;
    }
    thread->ring.data = data;
    thread->ring.capacity = cl_session.ring_bytes;
    thread->recording = epoch;
#if CL_FREE_THREADED
    thread->frames = thread->own_frames;
#else
    thread->frames = cl_frame_cache;
#endif
    thread->id = atomic_fetch_add_explicit(&cl_session.next_thread_id, 1, memory_order_relaxed) + 1;
    thread->native_id = cl_native_thread_id();
    thread->ident = (uint64_t)PyThread_get_thread_ident();
    thread->start_ns = start_ns;
    thread->cpu_zero = cl_thread_cpu_ns();
    thread->flags = (cl_is_main_thread() ? CL_THREAD_MAIN : 0u) | CL_THREAD_FOREIGN;
#if defined(__linux__)
    prctl(PR_GET_NAME, (unsigned long)(uintptr_t)thread->name, 0, 0, 0);
#endif
    thread->slot = cl_slot_take(thread->id, thread->native_id);
    cl_thread *head = atomic_load_explicit(&cl_session.threads, memory_order_relaxed);
    do {
        thread->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&cl_session.threads, &head, thread,
                                                    memory_order_release, memory_order_relaxed));
    cl_current = thread;
    return thread;
}

/* Makes or completes it, with a thread state. What asks Python may run Python code, which may come here. */
static cl_thread *
cl_thread_make(uint32_t epoch)
{
    cl_thread *thread = cl_thread_here(epoch);
    thread = thread != NULL ? thread : cl_thread_make_bare(epoch, cl_now());
    if (thread != NULL && thread->epoch != epoch) {
        thread->epoch = epoch;
        cl_thread_take_name(thread);
        cl_directory_add(thread->id);
    }
    return thread;
}

/* This thread's state in recording `epoch`; NULL if there is no memory for one. Attached threads only. */
static inline cl_thread *
cl_thread_get(uint32_t epoch)
{
    cl_thread *thread = cl_current;
    if (__builtin_expect(thread == NULL || thread->epoch != epoch, 0)) {
        return cl_thread_make(epoch);
    }
    return thread;
}

/* Puts a record of so many events into this thread's ring, or counts them as dropped. */
static inline void
cl_thread_record_all(cl_thread *thread, uint32_t kind, const void *record, uint32_t bytes, uint32_t events)
{
    uint64_t next_tail;
    void *room = cl_ring_reserve(&thread->ring, kind, bytes, &next_tail);
    if (room == NULL) {
        cl_add(kind == CL_WAITS ? &thread->dropped_waits : &thread->dropped_holds, events);
        cl_ring_bell();
        return;
    }
    memcpy(room, record, bytes);
    if (cl_ring_commit(&thread->ring, next_tail)
        && atomic_load_explicit(&cl_session.bell, memory_order_relaxed) == 0) {
        cl_ring_bell();
    }
}

static inline void
cl_thread_record(cl_thread *thread, uint32_t kind, const void *record, uint32_t bytes)
{
    cl_thread_record_all(thread, kind, record, bytes, 1);
}

#endif
