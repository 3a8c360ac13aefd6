/* asyncio tasks as parties: who runs, and what he is called.
 *
 * A task holds and waits like a thread, but its thread runs other tasks meanwhile; so it goes by an id of its
 * own. Code that runs outside of any task (a callback) goes by its thread.
 */
#ifndef CL_TASKS_H
#define CL_TASKS_H

#include "permits.h"

typedef struct {
    cl_task_held held;
    unsigned int party;                     /* its id in the trace */
    unsigned int called_stack, called_site; /* of its call of wait_for(), while that goes on; else 0 */
    char is_late;           /* it is being cancelled because a timeout has run out */
    PyObject *coordination; /* owned: what its Condition.wait has begun, while it goes on; or NULL */
} cl_task;

static PyTypeObject *cl_task_type; /* kept */
static PyObject *cl_name_get_coro; /* kept */
static PyObject *cl_cr_await;      /* kept: what reads it of a coroutine */

/* What tasks.py has found in asyncio; all kept. NULL: asyncio has not been used yet. */
static struct {
    PyObject *cls;          /* of the records */
    PyObject *running_loop; /* a function */
    PyObject *current;      /* a function of the loop, or a dictionary */
    PyObject *adopted;      /* by the id of a coroutine that a helper task runs for another task: that one */
} cl_asyncio;

#if PY_VERSION_HEX < 0x030C0000

/* What asyncio's C code keeps in the thread state's dictionary: asking it costs a system call (getpid). */
typedef struct {
    PyObject_HEAD
    PyObject *loop;
    pid_t pid;
} cl_loop_holder;

static pid_t cl_tasks_pid;

static void
cl_tasks_after_fork(void)
{
    cl_tasks_pid = getpid();
}

/* The loop that this thread runs, borrowed; NULL if that is not known here. */
static PyObject *
cl_running_loop_quickly(void)
{
    static PyObject *key;
    static PyTypeObject *holder_type; /* a static type of asyncio's */
    if (key == NULL) {
        key = PyUnicode_InternFromString("__asyncio_running_event_loop__");
    }
    static uint64_t version; /* of the dictionary, as no other one has it: the same holder is in it */
    static PyObject *holder; /* borrowed */
    PyObject *fields = PyThreadState_GetDict();
    if (fields == NULL || key == NULL) {
        return NULL;
    }
    if (((PyDictObject *)fields)->ma_version_tag != version) {
        version = ((PyDictObject *)fields)->ma_version_tag;
        holder = PyDict_GetItemWithError(fields, key);
        PyErr_Clear();
    }
    if (holder != NULL && holder_type == NULL && Py_TYPE(holder)->tp_basicsize == sizeof(cl_loop_holder)
        && strcmp(Py_TYPE(holder)->tp_name, "_RunningLoopHolder") == 0) {
        holder_type = Py_TYPE(holder);
    }
    if (holder == NULL || !Py_IS_TYPE(holder, holder_type)
        || ((cl_loop_holder *)holder)->pid != cl_tasks_pid) {
        return NULL;
    }
    return ((cl_loop_holder *)holder)->loop;
}

#endif

static PyObject *
cl_running_loop(void)
{
#if PY_VERSION_HEX < 0x030C0000
    PyObject *loop = PyCFunction_Check(cl_asyncio.running_loop) ? cl_running_loop_quickly() : NULL;
    if (loop != NULL) {
        return Py_NewRef(loop);
    }
#endif
    return PyObject_CallNoArgs(cl_asyncio.running_loop);
}

/* The task that a helper task runs a coroutine for (Python 3.11), else the same: steals and returns a
 * reference. NULL: an exception. */
static PyObject *
cl_task_adopting(PyObject *task)
{
    PyObject *coroutine = PyObject_CallMethodNoArgs(task, cl_name_get_coro);
    PyObject *key = coroutine == NULL ? NULL : PyLong_FromVoidPtr(coroutine);
    PyObject *other = key == NULL ? NULL : cl_dict_get(cl_asyncio.adopted, key);
    if (other != NULL || key == NULL) {
        Py_SETREF(task, other);
    }
    Py_XDECREF(key);
    Py_XDECREF(coroutine);
    return task;
}

/* The task that is current in a loop, by a dictionary of asyncio's: a new reference, NULL with or without an
 * exception. */
static PyObject *
cl_task_in(PyObject *tasks, PyObject *loop)
{
#if PY_VERSION_HEX < 0x030C0000
    static uint64_t version; /* as above: within one step of a task it stays */
    static PyObject *of, *task; /* compared, borrowed */
    uint64_t now = ((PyDictObject *)tasks)->ma_version_tag;
    if (now != version || of != loop) {
        task = PyDict_GetItemWithError(tasks, loop); /* may run code of the loop's */
        of = loop;
        version = task == NULL && PyErr_Occurred() ? 0 : ((PyDictObject *)tasks)->ma_version_tag;
    }
    return Py_XNewRef(task);
#else
    return cl_dict_get(tasks, loop);
#endif
}

/* Stores a new reference to the record of the task that runs, NULL outside of one. -1: an exception. */
static int
cl_task_current(cl_task **record)
{
    *record = NULL;
    if (cl_asyncio.cls == NULL) {
        return 0;
    }
    PyObject *loop = cl_running_loop(), *task = NULL;
    if (loop == NULL) {
        return -1;
    }
    if (loop != Py_None && PyDict_CheckExact(cl_asyncio.current)) {
        task = cl_task_in(cl_asyncio.current, loop);
    }
    else if (loop != Py_None) {
        task = PyObject_CallOneArg(cl_asyncio.current, loop);
    }
    Py_DECREF(loop);
    if (task != NULL && task != Py_None && PyDict_GET_SIZE(cl_asyncio.adopted) > 0) {
        task = cl_task_adopting(task);
    }
    if (task != NULL && task != Py_None) {
        *record = (cl_task *)cl_beside_find(cl_asyncio.cls, task);
        if (*record != NULL && !Py_IS_TYPE((PyObject *)*record, (PyTypeObject *)cl_asyncio.cls)
            && !PyObject_TypeCheck((PyObject *)*record, cl_task_type)) {
            PyErr_SetString(PyExc_TypeError, "not a record of a task");
            Py_CLEAR(*record);
        }
    }
    Py_XDECREF(task);
    return PyErr_Occurred() ? -1 : 0;
}

/* What a coroutine of the exact type awaits: a new reference, None if nothing. */
static inline PyObject *
cl_coroutine_awaits(PyObject *coroutine)
{
    const PyGetSetDef *attribute = ((PyGetSetDescrObject *)cl_cr_await)->d_getset;
    return attribute->get(coroutine, attribute->closure);
}

/* The id of the stack of what a task awaits; 0 if that cannot be told (somebody's own kind of task). */
static uint32_t
cl_task_stack(cl_thread *thread, cl_task *self)
{
    int detailed = thread != NULL && cl_session.level >= CL_LEVEL_PROFILE;
    PyObject *task = detailed ? cl_beside_thing(&self->held.beside) : NULL;
    if (task == NULL) {
        return 0;
    }
    cl_position places[CL_MAX_DEPTH]; /* outermost first */
    int depth = 0;
    PyObject *first = PyObject_CallMethodNoArgs(task, cl_name_get_coro);
    PyObject *coroutine = Py_XNewRef(first);
    while (coroutine != NULL && depth < CL_MAX_DEPTH && cl_coroutine_position(coroutine, &places[depth])) {
        depth++;
        Py_SETREF(coroutine, cl_coroutine_awaits(coroutine));
    }
    PyErr_Clear();
    cl_stack_builder builder;
    cl_stack_build(&builder, cl_session.stack_depth);
    for (int room = 1; depth > 0; depth--) {
        room = room && cl_stack_add(&builder, thread->frames, places[depth - 1]);
        Py_DECREF((PyObject *)places[depth - 1].code);
    }
    Py_XDECREF(coroutine);
    Py_XDECREF(first);
    Py_DECREF(task);
    return cl_stack_intern(&builder);
}

/* use_asyncio(cls, running_loop, current, adopted): see cl_asyncio. */
static PyObject *
cl_use_asyncio(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *cls, *running_loop, *current, *adopted;
    if (!PyArg_ParseTuple(args, "OOOO!:use_asyncio", &cls, &running_loop, &current, &PyDict_Type, &adopted)) {
        return NULL;
    }
#if PY_VERSION_HEX < 0x030C0000
    static int watches;
    if (!watches) {
        watches = 1;
        cl_tasks_after_fork();
        pthread_atfork(NULL, NULL, cl_tasks_after_fork);
    }
#endif
    Py_XSETREF(cl_asyncio.running_loop, Py_NewRef(running_loop));
    Py_XSETREF(cl_asyncio.current, Py_NewRef(current));
    Py_XSETREF(cl_asyncio.adopted, Py_NewRef(adopted));
    Py_XSETREF(cl_asyncio.cls, Py_NewRef(cls));
    Py_RETURN_NONE;
}

/* current_task(): the record of the task that runs, None outside of one. */
static PyObject *
cl_current_task(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    cl_task *task;
    if (cl_task_current(&task) < 0) {
        return NULL;
    }
    return task == NULL ? Py_NewRef(Py_None) : (PyObject *)task;
}

static int
cl_task_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((cl_task *)object)->coordination);
    return cl_beside_traverse(object, visit, arg);
}

static int
cl_task_clear(PyObject *object)
{
    Py_CLEAR(((cl_task *)object)->coordination);
    return cl_beside_clear(object);
}

static void
cl_task_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_CLEAR(((cl_task *)object)->coordination);
    cl_beside_dealloc(object);
}

static int
cl_tasks_ready(void)
{
    cl_name_get_coro = PyUnicode_InternFromString("get_coro");
    cl_cr_await = PyObject_GetAttrString((PyObject *)&PyCoro_Type, "cr_await");
    if (cl_cr_await != NULL && !Py_IS_TYPE(cl_cr_await, &PyGetSetDescr_Type)) {
        PyErr_SetString(PyExc_TypeError, "coroutines of an unknown kind");
        return -1;
    }
    return cl_name_get_coro == NULL || cl_cr_await == NULL ? -1 : 0;
}

static PyMemberDef cl_task_members[] = {
    {"party", T_UINT, offsetof(cl_task, party), 0, "Its id in the trace."},
    {"called_stack", T_UINT, offsetof(cl_task, called_stack), 0, "Of its call of wait_for(), or 0."},
    {"called_site", T_UINT, offsetof(cl_task, called_site), 0, "Of its call of wait_for(), or 0."},
    {"is_late", T_BOOL, offsetof(cl_task, is_late), 0, "A timeout of it has run out."},
    {"coordination", T_OBJECT, offsetof(cl_task, coordination), 0, "What its Condition.wait began."},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *
cl_task_get_stack(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(cl_task_stack(cl_recording_thread(), (cl_task *)object));
}

static PyMethodDef cl_task_methods[] = {
    {"stack", cl_task_get_stack, METH_NOARGS,
     "stack()\n--\n\nThe id of the stack of what it awaits; 0 if that cannot be told."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cl_task_slots[] = {
    {Py_tp_methods, cl_task_methods},
    {Py_tp_doc, "Task(task)\n--\n\nOne asyncio task, as a party."},
    {Py_tp_dealloc, cl_task_dealloc},
    {Py_tp_traverse, cl_task_traverse},
    {Py_tp_clear, cl_task_clear},
    {Py_tp_members, cl_task_members},
    {0, NULL},
};

static PyType_Spec cl_task_spec = {
    .name = "contention_lab.native._core.Task",
    .basicsize = sizeof(cl_task),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = cl_task_slots,
};

#endif
