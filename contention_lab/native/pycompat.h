/* Everything that depends on the version or the build of CPython, and nothing else.
 *
 * Two things are needed that the public C API gives only at the price of allocating frame objects: the innermost
 * frame of this thread, and the (code object, instruction) pair of each frame below it. 3.11 to 3.15 lay their frames
 * out differently; a version without a known layout (or a build with -DCL_PUBLIC_FRAMES) falls back to the public
 * API, slower and just as right. Where nothing else is said, a function needs an attached thread state (the GIL).
 */
#ifndef CL_PYCOMPAT_H
#define CL_PYCOMPAT_H

#ifndef PY_SSIZE_T_CLEAN
#  define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000
#  error "contention-lab needs CPython 3.11 or later"
#endif
#if PY_VERSION_HEX >= 0x03100000 && !defined(CL_PUBLIC_FRAMES)
#  define CL_PUBLIC_FRAMES 1 /* an unknown future layout */
#endif
#if PY_VERSION_HEX >= 0x030E0000 && !defined(CL_PUBLIC_FRAMES) && defined(__has_include)
#  if !__has_include(<internal/pycore_interpframe.h>)
#    define CL_PUBLIC_FRAMES 1
#  endif
#endif

#ifndef CL_PUBLIC_FRAMES
/* The interpreter's own headers are not written for -Wextra. */
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wunused-parameter"
#  pragma GCC diagnostic ignored "-Wsign-compare"
#  pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#  pragma GCC diagnostic ignored "-Wpedantic"
#  undef _PyGC_FINALIZED /* 3.11 defines it in a public header and again in an internal one */
#  define Py_BUILD_CORE 1
#  if PY_VERSION_HEX >= 0x030E0000
#    include <internal/pycore_interpframe.h>
#  else
#    include <internal/pycore_frame.h>
#  endif
#  ifdef Py_GIL_DISABLED
#    include <internal/pycore_pystate.h>
#  else
#    include <internal/pycore_interp.h>
#    include <internal/pycore_runtime.h>
#  endif
#  if PY_VERSION_HEX >= 0x030D0000
#    include <internal/pycore_ceval.h>
#  endif
#  undef Py_BUILD_CORE
#  pragma GCC diagnostic pop
#endif

#ifdef Py_GIL_DISABLED
#  define CL_FREE_THREADED 1
#else
#  define CL_FREE_THREADED 0
#endif

/* Where a frame is: a borrowed code object and the byte offset of its instruction. */
typedef struct {
    PyCodeObject *code;
    int lasti;
} cl_position;

#ifndef CL_PUBLIC_FRAMES

typedef struct {
    _PyInterpreterFrame *frame;
} cl_cursor;

/* Of another thread only while we hold the GIL and it waits for it: its frames stand still. */
static inline cl_cursor
cl_cursor_begin_at(PyThreadState *tstate)
{
    cl_cursor cursor;
#  if PY_VERSION_HEX >= 0x030D0000
    cursor.frame = tstate->current_frame;
#  else
    cursor.frame = tstate->cframe->current_frame;
#  endif
    return cursor;
}

/* Reads the next Python frame, innermost first; 0 at the end. Frames that belong to the C stack, or
 * that have not begun, are passed over, as the traceback module does. */
static inline int
cl_cursor_next(cl_cursor *cursor, cl_position *position)
{
    _PyInterpreterFrame *frame = cursor->frame;
    while (frame != NULL) {
        _PyInterpreterFrame *here = frame;
        frame = here->previous;
#  if PY_VERSION_HEX >= 0x030E0000
        if (here->owner >= FRAME_OWNED_BY_INTERPRETER || PyStackRef_IsNull(here->f_executable)) {
            continue;
        }
        PyObject *executable = PyStackRef_AsPyObjectBorrow(here->f_executable);
        if (!PyCode_Check(executable)) {
            continue;
        }
        PyCodeObject *code = (PyCodeObject *)executable;
        _Py_CODEUNIT *first = _PyFrame_GetBytecode(here);
        _Py_CODEUNIT *at = here->instr_ptr;
#  elif PY_VERSION_HEX >= 0x030D0000
        if (here->owner == FRAME_OWNED_BY_CSTACK || here->f_executable == NULL
            || !PyCode_Check(here->f_executable)) {
            continue;
        }
        PyCodeObject *code = (PyCodeObject *)here->f_executable;
        _Py_CODEUNIT *first = _PyCode_CODE(code);
        _Py_CODEUNIT *at = here->instr_ptr;
#  else
#    if PY_VERSION_HEX >= 0x030C0000
        if (here->owner == FRAME_OWNED_BY_CSTACK) {
            continue;
        }
#    endif
        PyCodeObject *code = here->f_code;
        if (code == NULL) {
            continue;
        }
        _Py_CODEUNIT *first = _PyCode_CODE(code);
        _Py_CODEUNIT *at = here->prev_instr;
#  endif
        if (here->owner != FRAME_OWNED_BY_GENERATOR && at < first + code->_co_firsttraceable) {
            continue;
        }
        cursor->frame = frame;
        position->code = code;
        position->lasti = (int)((at - first) * (Py_ssize_t)sizeof(_Py_CODEUNIT));
        return 1;
    }
    cursor->frame = NULL;
    return 0;
}

static inline void
cl_cursor_end(cl_cursor *cursor)
{
    (void)cursor;
}

#else
#  include "public_frames.h"
#endif

static inline cl_cursor
cl_cursor_begin(void)
{
    return cl_cursor_begin_at(PyThreadState_Get());
}

/* Where a suspended coroutine is; 0 if that cannot be told, or it has ended. The code is the caller's: without
 * a GIL another thread may go on with the coroutine. */
static inline int
cl_coroutine_position(PyObject *coroutine, cl_position *position)
{
#if !defined(CL_PUBLIC_FRAMES) && !CL_FREE_THREADED && PY_VERSION_HEX < 0x030E0000
    PyCoroObject *self = (PyCoroObject *)coroutine;
    if (!PyCoro_CheckExact(coroutine) || self->cr_frame_state >= FRAME_COMPLETED) {
        return 0;
    }
    _PyInterpreterFrame *frame = (_PyInterpreterFrame *)self->cr_iframe;
#  if PY_VERSION_HEX >= 0x030D0000
    position->code = (PyCodeObject *)frame->f_executable;
    _Py_CODEUNIT *at = frame->instr_ptr;
#  else
    position->code = frame->f_code;
    _Py_CODEUNIT *at = frame->prev_instr;
#  endif
    position->lasti = (int)((at - _PyCode_CODE(position->code)) * (Py_ssize_t)sizeof(_Py_CODEUNIT));
    Py_INCREF((PyObject *)position->code);
    return 1;
#else
    if (!PyCoro_CheckExact(coroutine)) {
        return 0;
    }
    PyObject *frame = PyObject_GetAttrString(coroutine, "cr_frame");
    int known = frame != NULL && PyFrame_Check(frame);
    if (known) {
        position->code = PyFrame_GetCode((PyFrameObject *)frame);
        position->lasti = PyFrame_GetLasti((PyFrameObject *)frame);
    }
    PyErr_Clear();
    Py_XDECREF(frame);
    return known;
#endif
}

#if CL_FREE_THREADED
/* Keeps a code object that a held frame of the calling thread has, for good; perhaps in the midst of Py_INCREF(). */
static inline void
cl_code_keep(PyCodeObject *code)
{
    PyObject *object = (PyObject *)code;
    if (__atomic_load_n(&object->ob_ref_local, __ATOMIC_RELAXED) != _Py_IMMORTAL_REFCNT_LOCAL) {
        /* relaxed: as by a thread that does not own it */
        __atomic_fetch_add(&object->ob_ref_shared, (Py_ssize_t)1 << _Py_REF_SHARED_SHIFT, __ATOMIC_RELAXED);
    }
}

/* The calling thread's state, whose frames stay as they are until cl_own_frames_release(); NULL if they cannot be read
 * now. A thread that has let go of its state is passed over by a collection, which must not meet code objects being
 * kept: so it comes back meanwhile, as whoever stops the world sees it, and asks again soon. Async-signal-safe. */
static inline PyThreadState *
cl_own_frames_hold(int *came_back)
{
    PyThreadState *tstate = PyGILState_GetThisThreadState();
    int state = 0 /* detached */, attached = 1;
#  ifdef CL_PUBLIC_FRAMES
    tstate = NULL;
#  endif
    *came_back = tstate != NULL
                 && __atomic_compare_exchange_n(&tstate->state, &state, attached, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
#  ifdef _Py_THREAD_DETACHED_WAITING /* nobody may stop it now */
    attached = state == _Py_THREAD_DETACHED_WAITING ? state : attached;
#  endif
    return *came_back || state == attached ? tstate : NULL;
}

static inline void
cl_own_frames_release(PyThreadState *tstate, int came_back)
{
    if (came_back) {
        __atomic_store_n(&tstate->state, 0 /* detached */, __ATOMIC_SEQ_CST);
    }
}

static int
cl_no_object(PyObject *object, void *unused)
{
    (void)object;
    return unused != NULL;
}
#endif

/* Has every other thread come to a place where it runs no C code of ours, as with a GIL all of them are: visiting
 * objects stops the world. With a thread state. */
static inline void
cl_all_threads_pass(void)
{
#if CL_FREE_THREADED
    PyUnstable_GC_VisitObjects(cl_no_object, NULL);
#endif
}

/* What is one at a time without a GIL. Here, a GIL is enough. */
#if PY_VERSION_HEX >= 0x030D0000
#  define CL_BEGIN_CRITICAL(object) Py_BEGIN_CRITICAL_SECTION(object)
#  define CL_END_CRITICAL() Py_END_CRITICAL_SECTION()
#else
#  define CL_BEGIN_CRITICAL(object) {
#  define CL_END_CRITICAL() }
#endif

#if !defined(CL_PUBLIC_FRAMES) && !defined(Py_GIL_DISABLED)
static inline struct _gil_runtime_state *
cl_gil_state(void)
{
#  if PY_VERSION_HEX >= 0x030C0000
    return PyInterpreterState_Main()->ceval.gil;
#  else
    return &_PyRuntime.ceval.gil;
#  endif
}
#endif

/* Whether the GIL is held at this moment, and by whom (the address of a thread state, never followed).
 * Reads two words of the interpreter without asking anybody; 0 if this build has no GIL or an unknown
 * layout. Needs no thread state. */
static inline int
cl_gil_read(int *locked, const void **holder)
{
#if defined(CL_PUBLIC_FRAMES) || defined(Py_GIL_DISABLED)
    *locked = 0;
    *holder = NULL;
    return 0;
#else
    struct _gil_runtime_state *gil = cl_gil_state();
    if (gil == NULL) {
        return 0;
    }
#  if PY_VERSION_HEX >= 0x030D0000
    *locked = __atomic_load_n(&gil->locked, __ATOMIC_RELAXED) > 0;
    *holder = __atomic_load_n(&gil->last_holder, __ATOMIC_RELAXED);
#  else
    *locked = __atomic_load_n(&gil->locked._value, __ATOMIC_RELAXED) > 0;
    *holder = (const void *)__atomic_load_n(&gil->last_holder._value, __ATOMIC_RELAXED);
#  endif
    return 1;
#endif
}

/* The addresses of the condition and the mutex of the main interpreter's GIL, and of the condition "it has
 * changed hands"; 0, and NULLs, if this build has none or its layout is not known. */
static inline int
cl_gil_find(const void **cond, const void **mutex, const void **switched)
{
    *cond = *mutex = *switched = NULL;
#if defined(CL_PUBLIC_FRAMES) || defined(Py_GIL_DISABLED) || !defined(FORCE_SWITCHING) \
    || !defined(_POSIX_THREADS)
    return 0;
#else
    const struct _gil_runtime_state *gil = cl_gil_state();
    if (gil == NULL) {
        return 0;
    }
    *cond = &gil->cond;
    *mutex = &gil->mutex;
    *switched = &gil->switch_cond;
    return 1;
#endif
}

/* From where to where the GIL lies; nowhere as for cl_gil_find(). */
static inline void
cl_gil_range(uintptr_t *start, uintptr_t *end)
{
    *start = *end = 0;
#if !defined(CL_PUBLIC_FRAMES) && !defined(Py_GIL_DISABLED)
    const struct _gil_runtime_state *gil = cl_gil_state();
    if (gil != NULL) {
        *start = (uintptr_t)gil;
        *end = *start + sizeof *gil;
    }
#endif
}

/* Whether a signal is waiting for the main thread to run its handler: 1, 0, or -1 where that cannot be told.
 * `word` is no longer `quiet` as soon as one is; on 3.13 it is a half of a longer one, which has other reasons
 * to change as well. Needs no thread state. */
static inline int
cl_signal_word(const uint32_t **word, uint32_t *quiet)
{
    *word = NULL;
    *quiet = 0;
#if defined(CL_PUBLIC_FRAMES)
    return -1;
#elif PY_VERSION_HEX >= 0x030D0000
    const PyThreadState *tstate = _PyRuntime.main_tstate;
    if (tstate == NULL) {
        return -1;
    }
    size_t low = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : sizeof tstate->eval_breaker / 4 - 1;
    *word = (const uint32_t *)(const void *)&tstate->eval_breaker + low;
    *quiet = __atomic_load_n(*word, __ATOMIC_RELAXED);
    return (*quiet & _PY_SIGNALS_PENDING_BIT) != 0;
#else
    *word = (const uint32_t *)(const void *)&_PyRuntime.ceval.signals_pending._value; /* an int */
    return __atomic_load_n(*word, __ATOMIC_RELAXED) != 0;
#endif
}

/* Whether a thread without a thread state may still ask for the GIL. */
static inline int
cl_interpreter_lives(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsInitialized() && !Py_IsFinalizing();
#else
    return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

/* Entered without a look at what calls them: up to 3.11 functions, by their type; since 3.13 an `__init__`. */
#define CL_FUNCTIONS_BY_TYPE (PY_VERSION_HEX < 0x030C0000)
#define CL_INIT_BY_CLASS (PY_VERSION_HEX >= 0x030D0000)

static inline void
cl_function_set_vectorcall(PyFunctionObject *function, vectorcallfunc call)
{
#if PY_VERSION_HEX < 0x030C0000
    function->vectorcall = call;
#else
    PyFunction_SetVectorcall(function, call);
#endif
}

/* A new reference to dict[key], or NULL without an exception. */
static inline PyObject *
cl_dict_get(PyObject *dict, PyObject *key)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *value = NULL;
    if (PyDict_GetItemRef(dict, key, &value) < 0) {
        PyErr_Clear();
    }
    return value;
#else
    PyObject *value = PyDict_GetItemWithError(dict, key);
    if (value == NULL) {
        PyErr_Clear();
    }
    return Py_XNewRef(value);
#endif
}

#endif
