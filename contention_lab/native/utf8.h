/* Texts of Python as UTF-8, read in place: without a thread state, and without its codecs.
 */
#ifndef CL_UTF8_H
#define CL_UTF8_H

#include "pycompat.h"

#include <stdlib.h>
#include <string.h>

/* The UTF-8 form of a character; its bytes. Lone surrogates are kept (surrogatepass). */
static unsigned
cl_utf8_put(char *at, Py_UCS4 c)
{
    if (c < 0x80) {
        at[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        at[0] = (char)(0xC0 | c >> 6);
        at[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        at[0] = (char)(0xE0 | c >> 12);
        at[1] = (char)(0x80 | (c >> 6 & 0x3F));
        at[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    at[0] = (char)(0xF0 | c >> 18);
    at[1] = (char)(0x80 | (c >> 12 & 0x3F));
    at[2] = (char)(0x80 | (c >> 6 & 0x3F));
    at[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

/* A copy of a str as UTF-8 in malloc'ed memory, of at most 65535 bytes. Reads the characters in place and asks
 * nothing of Python: it needs the GIL, but no current thread state. */
static char *
cl_utf8_copy(PyObject *text, uint32_t *bytes)
{
    *bytes = 0;
    if (!PyUnicode_Check(text)) {
        *bytes = 1;
        return strdup("?");
    }
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(text)) { /* made by an API of before 3.3 */
        *bytes = 1;
        return strdup("?");
    }
#endif
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    length = length > 65535 ? 65535 : length;
    int kind = (int)PyUnicode_KIND(text);
    const void *characters = PyUnicode_DATA(text);
    size_t most = PyUnicode_IS_ASCII(text) ? (size_t)length : 4 * (size_t)length;
    char *copy = malloc((most > 65535 ? 65535 : most) + 4);
    if (copy == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (Py_ssize_t i = 0; i < length && used <= 65535 - 4; i++) {
        used += cl_utf8_put(copy + used, PyUnicode_READ(kind, characters, i));
    }
    copy[used] = 0;
    *bytes = (uint32_t)used;
    return copy;
}

#endif
