/* The frames of a thread by the public API alone, which makes an object of each: where nothing else is known.
 */
#ifndef CL_PUBLIC_FRAMES_H
#define CL_PUBLIC_FRAMES_H

#include "pycompat.h"

/* Owns a reference to the frame it stands on. */
typedef struct {
    PyFrameObject *frame; /* the next one to report, owned */
    PyCodeObject *code;   /* of the one reported last, owned */
} cl_cursor;

static inline cl_cursor
cl_cursor_begin_at(PyThreadState *tstate)
{
    cl_cursor cursor = {PyThreadState_GetFrame(tstate), NULL};
    return cursor;
}

static inline int
cl_cursor_next(cl_cursor *cursor, cl_position *position)
{
    Py_CLEAR(cursor->code);
    if (cursor->frame == NULL) {
        return 0;
    }
    PyFrameObject *here = cursor->frame;
    cursor->code = PyFrame_GetCode(here);
    position->code = cursor->code;
    position->lasti = PyFrame_GetLasti(here);
    cursor->frame = PyFrame_GetBack(here);
    Py_DECREF(here);
    return 1;
}

static inline void
cl_cursor_end(cl_cursor *cursor)
{
    Py_CLEAR(cursor->code);
    Py_CLEAR(cursor->frame);
}

#endif
