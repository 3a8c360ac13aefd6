/* Starting and stopping a recording, and what happens to it in a forked child. */
#ifndef CL_RECORDER_H
#define CL_RECORDER_H

#include <fcntl.h>
#include <sched.h>
#include <sys/time.h>

#include "layer_link.h"
#include "hang_watch.h"

static uint64_t
cl_realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
cl_write_header(cl_file *file, const char *meta, size_t meta_bytes)
{
    cl_file_header header = {
        .major = 1, .minor = 1, .header_bytes = sizeof header, .start_unix_ns = cl_realtime_ns(),
        .mono_ns = cl_clock.zero_ns, .pid = (uint32_t)getpid(), .level = (uint8_t)cl_session.level,
        .clock = (uint8_t)cl_clock.source,
        .ticks_per_ns = 4294967296.0 / (double)cl_clock.multiplier};
    memcpy(header.magic, CL_MAGIC, sizeof header.magic);
    header.crc32 = cl_crc32(0, &header, offsetof(cl_file_header, crc32));
    cl_put(&file->out, &header, sizeof header);
    cl_file_chunk(file, CL_META, 0, 0, 1, meta, meta_bytes);
    cl_file_flush(file);
}

/* Starts the writer with all signals blocked: the program's handlers never run on it. */
static int
cl_start_writer(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    cl_gil_probe_start();
    atomic_store_explicit(&cl_session.stopping, CL_RUN, memory_order_relaxed);
    int error = pthread_create(&cl_session.writer, &attributes, cl_writer_main, NULL);
    pthread_attr_destroy(&attributes);
    /* release: whoever sees that it runs can wait for its end */
    atomic_store_explicit(&cl_session.writer_state, error == 0 ? CL_WRITER_RUNS : CL_WRITER_AWAY,
                          memory_order_release);
    if (error != 0) {
        cl_gil_probe_stop();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Ends the probe and the writer, which completes the file if `why` is CL_STOP. */
static void
cl_stop_writer(uint32_t why)
{
    uint32_t state;
    while ((state = atomic_load_explicit(&cl_session.writer_state, memory_order_acquire)) == CL_WRITER_STARTS) {
        sched_yield(); /* another thread's fork is over, without a GIL */
    }
    cl_gil_probe_stop();
    if (state == CL_WRITER_RUNS) {
        atomic_store_explicit(&cl_session.stopping, why, memory_order_release);
        cl_ring_bell();
        pthread_join(cl_session.writer, NULL);
        atomic_store_explicit(&cl_session.writer_state, CL_WRITER_AWAY, memory_order_release);
    }
    else if (why == CL_STOP) { /* a fork was about to happen, or there was no thread to be had after it */
        cl_flush_last();
    }
}

/* Starts recording to an open file descriptor, which it then owns. 0, or an errno. */
static int
cl_recorder_start(int fd, int level, uint32_t stack_depth, uint64_t ring_bytes, const char *meta,
                  size_t meta_bytes)
{
    memset(&cl_writer, 0, sizeof cl_writer);
    cl_owned_take(&cl_writer.file.owned, fd);
    cl_session.level = level;
    cl_session.stack_depth = stack_depth;
    cl_session.ring_bytes = ring_bytes;
    cl_session.next_thread_id = 0;
    cl_session.threads = NULL;
    cl_session.new_locks = NULL;
    cl_session.new_parties = NULL;
    cl_session.new_meta = NULL;
    memset(&cl_totals, 0, sizeof cl_totals);
    cl_session.bell = 0;
    cl_slots_clear();
    cl_gil_probe_init();
    int sees_gil, other;
    if (cl_layer_is_there(&sees_gil, &other) && level >= CL_LEVEL_PROFILE) {
        cl_native_begin();
        cl_writer.native = calloc(1, sizeof *cl_writer.native);
    }
    cl_session.unrecorded_threads = 0;
    atomic_store_explicit(&cl_step_since, 0, memory_order_relaxed);
    atomic_store_explicit(&cl_step_ended_ns, 0, memory_order_relaxed);
    cl_session.process_cpu_zero = cl_process_cpu_ns();
    cl_clock_zero();
    cl_write_header(&cl_writer.file, meta, meta_bytes);
    int error = cl_writer.file.error != 0 ? cl_writer.file.error : cl_start_writer();
    if (error != 0) {
        cl_owned_close(&cl_writer.file.owned);
        return error;
    }
    uint32_t epoch = atomic_fetch_add_explicit(&cl_next_epoch, 1, memory_order_relaxed) + 1;
    cl_layer_attach();
    atomic_store_explicit(&cl_epoch, epoch, memory_order_release);
    cl_gil_begin(epoch);
    return 0;
}

/* Ends the recording: no new events; lets the writer finish (without the GIL); frees what is free. */
static void
cl_recorder_stop(void)
{
    cl_hang_end();
    cl_gil_end(atomic_load_explicit(&cl_epoch, memory_order_relaxed));
    atomic_store_explicit(&cl_epoch, 0, memory_order_seq_cst);
    cl_layer_detach();
    cl_all_threads_pass(); /* from here on nobody is between a look at cl_epoch and his ring */
    PyThreadState *tstate = PyEval_SaveThread();
    cl_stop_writer(CL_STOP);
    int error = cl_owned_close(&cl_writer.file.owned);
    if (cl_writer.file.error == 0) {
        cl_writer.file.error = error;
    }
    PyEval_RestoreThread(tstate);
    cl_thread *thread = atomic_exchange_explicit(&cl_session.threads, NULL, memory_order_acquire);
    while (thread != NULL) {
        cl_thread *next = thread->next;
        uint32_t expected = CL_THREAD_LIVE;
        if (!atomic_compare_exchange_strong_explicit(&thread->state, &expected, CL_THREAD_ORPHAN,
                                                     memory_order_acq_rel, memory_order_acquire)) {
            cl_thread_free(thread); /* it has exited */
        }
        thread = next;
    }
    cl_lock_info *info = atomic_exchange_explicit(&cl_session.new_locks, NULL, memory_order_acquire);
    while (info != NULL) {
        cl_lock_info *next = info->next;
        cl_lock_info_release(info);
        info = next;
    }
    cl_party *party = atomic_exchange_explicit(&cl_session.new_parties, NULL, memory_order_acquire);
    while (party != NULL) {
        cl_party *next = party->next;
        free(party);
        party = next;
    }
    cl_buffer_free(&cl_writer.waits);
    cl_buffer_free(&cl_writer.holds);
    cl_buffer_free(&cl_writer.table);
    cl_buffer_free(&cl_writer.gil);
    cl_buffer_free(&cl_writer.steps);
    cl_buffer_free(&cl_writer.orders);
    cl_buffer_free(&cl_writer.states);
    cl_buffer_free(&cl_writer.load);
    for (int i = 0; i < CL_LAYER_KINDS; i++) {
        cl_buffer_free(&cl_writer.layer[i]);
    }
    cl_native_tables_free(cl_writer.native);
    cl_native_end_recording();
    cl_buffer_free(&cl_writer.file.out);
    free(cl_gil_probe.ring.data);
    cl_gil_probe.ring.data = NULL;
}

/* Waits until the kernel has taken a thread off the process's books, which is shortly after pthread_join()
 * has returned. */
static void
cl_await_gone(uint32_t native_id)
{
#if defined(__linux__)
    for (int i = 0; i < 1000 && syscall(SYS_tgkill, getpid(), native_id, 0) == 0; i++) {
        sched_yield();
    }
#else
    (void)native_id;
#endif
}

/* A fork is about to happen: CPython counts the threads of the process after it, and warns. So ours are
 * away from before the fork until that warning would have been given: from 3.13 on that is after the
 * handlers of os.register_at_fork(), so os.fork() itself is watched too (Front in front.h), and where it
 * was called in another way they come back at the next opportunity. With the GIL. */
static void
cl_recorder_pause(void)
{
    if (cl_session.forks++ == 0 && atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0) {
        int probe_ran = cl_gil_probe.running;
        atomic_store_explicit(&cl_gil_probe.stop, 1, memory_order_seq_cst);
        cl_activity_let_through();
        if (atomic_load_explicit(&cl_epoch, memory_order_relaxed) == 0) {
            return; /* the recording has been stopped meanwhile */
        }
        cl_stop_writer(CL_PAUSE);
        cl_await_gone(atomic_load_explicit(&cl_session.writer_native_id, memory_order_relaxed));
        if (probe_ran) {
            cl_await_gone(atomic_load_explicit(&cl_gil_probe.native_id, memory_order_relaxed));
        }
    }
}

static int
cl_recorder_resume(void *unused)
{
    (void)unused;
    uint32_t away = CL_WRITER_AWAY;
    if (cl_session.forks == 0 && cl_session.fork_calls == 0
        && atomic_load_explicit(&cl_epoch, memory_order_relaxed) != 0
        && atomic_compare_exchange_strong_explicit(&cl_session.writer_state, &away, CL_WRITER_STARTS,
                                                   memory_order_acquire, memory_order_relaxed)) {
        cl_start_writer(); /* if it fails, the rings keep what they can hold */
    }
    return 0;
}

static void
cl_fork_is_over(void)
{
    if (cl_session.forks > 0 && --cl_session.forks == 0 && cl_session.fork_calls == 0) {
        if (PY_VERSION_HEX < 0x030D0000 || Py_AddPendingCall(cl_recorder_resume, NULL) != 0) {
            cl_recorder_resume(NULL);
        }
    }
}

static void
cl_fork_returned(void)
{
    if (cl_session.fork_calls > 0) { /* else: we are the child */
        cl_session.fork_calls--;
        cl_recorder_resume(NULL);
    }
}

static void
cl_before_fork(void)
{
    pthread_mutex_lock(&cl_register_mutex);
    pthread_mutex_lock(&cl_intern_mutex);
}

static void
cl_after_fork_parent(void)
{
    pthread_mutex_unlock(&cl_intern_mutex);
    pthread_mutex_unlock(&cl_register_mutex);
}

/* The child has neither the writer nor the other threads: it records nothing, and leaves the parent's
 * file alone. What the parent's recording had allocated stays allocated. */
static void
cl_after_fork_child(void)
{
    pthread_mutex_unlock(&cl_intern_mutex);
    pthread_mutex_unlock(&cl_register_mutex);
#if !defined(__linux__) || defined(CL_NO_FUTEX)
    for (unsigned i = 0; i < CL_PARK_BUCKETS; i++) {
        pthread_mutex_init(&cl_park_table[i].mutex, NULL);
        pthread_cond_init(&cl_park_table[i].changed, NULL);
    }
#endif
#if defined(__linux__)
    cl_mainness = 0; /* whichever thread forked, the child has no other */
#endif
    cl_hang_end();
    if (atomic_exchange_explicit(&cl_epoch, 0, memory_order_relaxed) != 0) {
        cl_owned_close(&cl_writer.file.owned);
        memset(&cl_writer, 0, sizeof cl_writer);
        memset(&cl_gil_probe, 0, sizeof cl_gil_probe);
        cl_session.threads = NULL;
        cl_session.new_locks = NULL;
        cl_session.new_parties = NULL;
        cl_session.new_meta = NULL;
    }
    cl_session.forks = 0;
    cl_session.fork_calls = 0;
    cl_session.writer_state = CL_WRITER_AWAY;
    cl_current = NULL;
    pthread_setspecific(cl_exit_key, NULL);
    cl_gil_forget();
    cl_native_end_recording();
    cl_layer_detach();
}

static int
cl_recorder_import(void)
{
    static int done = 0;
    if (done) {
        return 0;
    }
    done = 1;
    cl_crc32_init();
    cl_clock_import();
    int error = pthread_key_create(&cl_exit_key, cl_thread_exit);
    return error != 0 ? error
                      : pthread_atfork(cl_before_fork, cl_after_fork_parent, cl_after_fork_child);
}

#endif
