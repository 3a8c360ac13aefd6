"""What a native lock is: whose, in words of Python's users, and whether threads compete for it.

An address says little: the interpreter makes threads wait on a word of their own stack, and a
program that does not use the C library's locks waits in the kernel for whatever it likes. It is the
functions on the way there that tell. A name that is only the nearest exported one tells nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.trace.native import NativeFrame, NativeLock

INTERPRETER: Final = "the interpreter"
C_LIBRARY: Final = "the C library"

OBJECTS: Final = (
    (("list_", "_PyList_", "PyList_"), "the list's own lock"),
    (("dict", "_PyDict_", "PyDict_", "_PyObjectDict_"), "the dict's own lock"),
    (("set_", "_PySet_", "PySet_", "frozenset_"), "the set's own lock"),
    (("deque_",), "the deque's own lock"),
    (("bytearray", "PyByteArray_"), "the bytearray's own lock"),
    (("type_", "_PyType_", "PyType_"), "the lock of classes and their attributes"),
)
"""Functions that take an object's own lock, the first found counts, and what it is called."""

OWN_LOCKS: Final = (
    ("_PyCriticalSection", "an object's own lock"),
    ("_enter_buffered_busy", "the file object's own lock"),
    ("_PyImport_AcquireLock", "the import lock"),
    ("_PyType_", "the lock of classes and their attributes"),
    ("PyUnicode_InternInPlace", "the lock of interned strings"),
    ("_PyUnicode_Intern", "the lock of interned strings"),
    ("_PyUnicode_FromId", "the lock of interned strings"),
    ("_Py_Specialize", "the lock of code that is being specialised"),
    ("_PyMonitoring_", "the lock of monitoring tools"),
    ("_Py_qsbr", "the lock of memory that waits to be freed"),
    ("_PyMem_", "the allocator's lock"),
    ("_PyObject_Malloc", "the allocator's lock"),
    ("_mi_", "the allocator's lock"),
    ("mi_", "the allocator's lock"),
    ("PyWeakref_NewRef", "the lock of weak references"),
    ("_PyWeakref_", "the lock of weak references"),
    ("_extensions_cache", "the lock of loaded extension modules"),
    ("PyThreadState_", "the list of threads: one begins, ends, or all are asked for"),
    ("_PyThreadState_New", "the list of threads: one begins, ends, or all are asked for"),
    ("_PyThread_CurrentFrames", "the list of threads: one begins, ends, or all are asked for"),
    ("_PyEval_AddPendingCall", "the queue of calls for the main thread (a signal came, say)"),
    ("Py_AddPendingCall", "the queue of calls for the main thread (a signal came, say)"),
    ("_PyCrossInterpreterData_", "the registry of what may go from interpreter to interpreter"),
    ("_PyXIData_", "the registry of what may go from interpreter to interpreter"),
    ("_PyOnceFlag_CallOnce", "something that the first thread sets up for all"),
    ("_PyRWMutex_", "a readers-writer lock inside the interpreter"),
    ("_PySeqLock_LockWrite", "the lock of classes and their attributes"),
    ("_PyRecursiveMutex_Lock", "a lock inside the interpreter that its holder may take again"),
    ("_PyMutex_LockSlow", "a lock inside the interpreter"),
    ("_PyMutex_LockTimed", "a lock inside the interpreter"),
    ("PyMutex_Lock", "a lock inside the interpreter"),
)
"""Functions of the interpreter that take a lock, the more telling first, and what it is called."""

STOPPED: Final[str] = "a pause in which all threads are stopped (by the collector, say)"

FOR_OTHERS: Final[tuple[tuple[str, str], ...]] = (
    ("_PyThreadState_Suspend", STOPPED),
    ("_PyThreadState_Attach", STOPPED),
    ("tstate_wait_attach", STOPPED),
    ("_PyEval_StopTheWorld", STOPPED),
    ("stop_the_world", STOPPED),
    ("park_detached_threads", STOPPED),
    ("PyEvent_Wait", "an event inside the interpreter: a thread that is joined, or starts"),
    ("PyThread_join_thread", "a thread that is joined"),
    ("PyThread_acquire_lock", "a lock or event that the recording did not replace"),
    ("_PyParkingLot_Park", "a lock inside the interpreter, or a thread that is joined"),
    ("_PySemaphore_Wait", "a lock inside the interpreter, or a thread that is joined"),
)
"""Functions of the interpreter that wait for others, or for what nobody can tell."""

_NO_LOCK: Final = tuple(
    pair for pair in FOR_OTHERS if pair[1] == STOPPED or pair[0] == "PyEvent_Wait"
)

GUARDED: Final = frozenset(
    {
        *("zlib", "_bz2", "_lzma", "_zstd", "_ssl", "_hashlib", "_blake2"),
        *("_md5", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3"),
    }
)
"""Modules whose objects (compressors, digests, connections) have a lock of the interpreter's each,
taken for one call. Others may use such a lock to wait for something to happen."""

BRIEF: Final = ("an object's own lock", "the file object's own lock")
"""Locks that are given back before the call returns in which they were taken."""

COORDINATION: Final = frozenset({NativeKind.COND, NativeKind.BARRIER})
LOCKS: Final = frozenset({NativeKind.MUTEX, NativeKind.RWLOCK, NativeKind.SPINLOCK})

_LOCKING: Final = re.compile(r"mutex|rw_?lock|spin_?lock|lock_(slow|contended)|critical", re.I)
_SIGNALLING: Final = re.compile(
    r"cond|once|barrier|event|thread_?park|::park$|\bjoin|sema|latch|wait_?(queue|group)", re.I
)
_MALLOC: Final = re.compile(r"(^|_)(malloc|calloc|realloc|free|memalign|cfree)(_|$|\W)")
_HASHED: Final = re.compile(r"-[0-9a-f]{8}$")


@dataclass(frozen=True, slots=True)
class NativeIdentity:
    """What waits have in common that are said to be for one lock.

    Attributes
    ----------
    text
        `a lock inside libsqlite3`, `the list's own lock`.
    native_library
        `libsqlite3`, `the interpreter`, `the C library`.
    function
        The one that waits; empty for locks that are known by what they are.
    type_name
        As `NativeKind.type_name`.
    is_contention
        It is a lock that one thread has and others wait for; else they wait for somebody to do
        something, or that is not known.
    by_place
        The lock is known by the code that waits for it: an object of the interpreter has no other
        name.
    brief
        It is always given back before the call returns that took it: those who wait for it are
        those who have it.
    """

    text: str
    native_library: str
    function: str
    type_name: str
    is_contention: bool
    by_place: bool = False
    brief: bool = False


def native_identity(lock: NativeLock, frames: Sequence[NativeFrame]) -> NativeIdentity:
    """Tell what a thread waited for.

    Parameters
    ----------
    lock
        The lock.
    frames
        The native stack of the wait, innermost first; may be empty.
    """
    # A lock with an address of its own is called after the first wait for it.
    own = lock.kind in LOCKS or not frames
    library = library_name(lock.image if own else frames[0].image)
    functions = [frame.symbol for frame in frames if frame.symbol and not frame.is_nearest]
    if library == INTERPRETER:
        return _interpreters(lock, functions or [lock.symbol], frames)
    function = lock.symbol if own else frames[0].symbol
    text = f"a lock inside {library}"
    if library == C_LIBRARY and any(_MALLOC.search(name) for name in (*functions, lock.symbol)):
        text = "a lock of the C library's malloc"
    return NativeIdentity(
        text, library, function, lock.kind.type_name, _is_contention(lock.kind, functions)
    )


def library_name(image: str) -> str:
    """Return what people call the file of native code: `libsqlite3`, `the interpreter`.

    Without a file it is the program itself, which is a Python.
    """
    file = PurePosixPath(image).name
    if not file or file.startswith(("libpython", "python")):
        return INTERPRETER
    stem = file.partition(".so")[0].partition(".cpython-")[0]
    if stem in ("libc", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64") or stem == "libc-2":
        return C_LIBRARY
    return _HASHED.sub("", stem).rstrip("_-") or stem


def _is_contention(kind: NativeKind, functions: Sequence[str]) -> bool:
    """A wait in the kernel is for a lock if a function on the way there says so."""
    if kind is NativeKind.FUTEX:
        if any(_SIGNALLING.search(name) for name in functions):
            return False
        return any(_LOCKING.search(name) for name in functions)
    return kind in LOCKS


def _interpreters(
    lock: NativeLock, functions: Sequence[str], frames: Sequence[NativeFrame]
) -> NativeIdentity:
    kind = lock.kind.type_name
    module = _guarded(frames)
    if module is not None and any(name.startswith("PyThread_acquire_lock") for name in functions):
        return NativeIdentity(f"a lock inside {module}", module, "", kind, True, True, True)
    if lock.kind not in COORDINATION and not _begins(functions, _NO_LOCK):
        text = _begins(functions, OWN_LOCKS)
        if text is not None:
            named = _object(functions) if text == OWN_LOCKS[0][1] else text
            return NativeIdentity(named, INTERPRETER, "", kind, True, True, text in BRIEF)
    text = _begins(functions, FOR_OTHERS) or f"a lock inside {INTERPRETER}"
    return NativeIdentity(text, INTERPRETER, functions[0], kind, False)


def _object(functions: Sequence[str]) -> str:
    for prefixes, text in OBJECTS:
        if any(name.startswith(prefixes) for name in functions):
            return text
    return OWN_LOCKS[0][1]


def _begins(functions: Sequence[str], known: Sequence[tuple[str, str]]) -> str | None:
    return next(
        (text for start, text in known if any(name.startswith(start) for name in functions)), None
    )


def _guarded(frames: Sequence[NativeFrame]) -> str | None:
    """Return the extension module that waits for the lock around the state of an object."""
    for frame in frames:
        library = library_name(frame.image)
        if library != INTERPRETER:
            return library if library in GUARDED else None
    return None
