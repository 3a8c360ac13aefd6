/* What the holder of a lock is executing, read by the thread that begins to wait for it.
 *
 * The waiter holds the GIL at that moment, so the holder does not run Python: it waits for the GIL, sleeps,
 * or is in a call that released it, and its frames stand still. Without a GIL there is no such moment, and
 * nothing is read (the stack at the release still is).
 *
 * A thread state must not be read after its thread has ended, even if that thread left a lock held.
 * So each recorded thread hangs a capsule into its thread state's dictionary, which is cleared, under the
 * GIL, before the thread state goes; the capsule's destructor takes the thread out of the directory.
 */
#ifndef CL_HOLDER_STACK_H
#define CL_HOLDER_STACK_H

#include "stacks.h"

#if !CL_FREE_THREADED

#  define CL_DIRECTORY 4096 /* two live threads with the same low bits: the older one is not read */
#  define CL_DIRECTORY_KEY "contention_lab.thread"

static struct {
    uint32_t thread;
    uintptr_t serial; /* unique in the process: thread ids begin anew with every recording */
    PyThreadState *tstate;
} cl_directory[CL_DIRECTORY]; /* guarded by the GIL, like the next */
static uintptr_t cl_next_serial;
static _Atomic uint32_t cl_directory_used; /* slots from here on are empty */

static void
cl_directory_remove(PyObject *capsule)
{
    uintptr_t serial = (uintptr_t)PyCapsule_GetPointer(capsule, CL_DIRECTORY_KEY);
    uint32_t at = (uint32_t)(uintptr_t)PyCapsule_GetContext(capsule);
    if (cl_directory[at].serial == serial) {
        cl_directory[at].tstate = NULL;
    }
}

static void
cl_directory_add(uint32_t thread)
{
    uint32_t at = thread % CL_DIRECTORY;
    uintptr_t serial = ++cl_next_serial;
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    PyObject *capsule =
        dict == NULL ? NULL : PyCapsule_New((void *)serial, CL_DIRECTORY_KEY, cl_directory_remove);
    if (capsule != NULL && PyCapsule_SetContext(capsule, (void *)(uintptr_t)at) == 0
        && PyDict_SetItemString(dict, CL_DIRECTORY_KEY, capsule) == 0) {
        cl_directory[at].thread = thread;
        cl_directory[at].serial = serial;
        cl_directory[at].tstate = PyThreadState_Get();
        if (at >= cl_directory_used) {
            cl_directory_used = at + 1;
        }
    }
    PyErr_Clear();
    Py_XDECREF(capsule);
}

static uint32_t
cl_holder_stack(uint32_t thread, cl_frame_cache_entry *cache, uint32_t limit)
{
    PyThreadState *tstate = cl_directory[thread % CL_DIRECTORY].tstate;
    if (thread == 0 || tstate == NULL || cl_directory[thread % CL_DIRECTORY].thread != thread) {
        return 0;
    }
    return cl_stack_capture_from(cl_cursor_begin_at(tstate), cache, limit);
}

#else

static void
cl_directory_add(uint32_t thread)
{
    (void)thread;
}

static uint32_t
cl_holder_stack(uint32_t thread, cl_frame_cache_entry *cache, uint32_t limit)
{
    (void)thread;
    (void)cache;
    (void)limit;
    return 0;
}

#endif

#endif
