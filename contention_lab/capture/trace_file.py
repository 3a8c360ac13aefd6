"""The file a recording is written to: opening it, and what those of child processes are called.

Nothing that is not a trace is ever replaced, and no file that another recording writes.
"""

import errno
import os
import stat

MAGIC = b"\x89CLT\r\n\x1a\n"
"""The first bytes of every trace (see `trace/FORMAT.md`)."""

_NAMES_TRIED = 1000
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


def open_trace(path: str, *, new: bool = False) -> int:
    """Open a trace for writing, and empty it.

    Parameters
    ----------
    path
        Where.
    new
        Whether a file that exists is an error.

    Returns
    -------
    int
        The descriptor, out of the range that programs count on being next.

    Raises
    ------
    OSError
        It cannot be opened; FileExistsError: it holds something that is not a trace;
        BlockingIOError: another recording is writing it.
    """
    from contention_lab.native import _core  # not needed by who only starts a recording process

    refuse_other_files(path)
    create = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    fd = os.open(path, create, 0o666)
    try:
        fd = _core.claim(fd)
    except BlockingIOError:
        raise BlockingIOError(
            errno.EWOULDBLOCK, "another recording is writing this file", path
        ) from None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.ftruncate(fd, 0)
    return fd


def refuse_other_files(path: str) -> None:
    """Raise FileExistsError where `path` is a file that is neither empty nor a trace."""
    if not _may_be_replaced(path):
        raise FileExistsError(
            errno.EEXIST, "this file is not a trace and is not replaced; choose another name", path
        )


def child_path(path: str, pid: int) -> str:
    """Return where a child process records: `run.clt` becomes `run.<pid>.clt`.

    A name that exists (a process that executed another Python keeps its pid) gets a number.
    """
    root, extension = os.path.splitext(path)
    name = f"{root}.{pid}{extension}"
    for number in range(2, _NAMES_TRIED):
        if not os.path.lexists(name):
            break
        name = f"{root}.{pid}-{number}{extension}"
    return name


def child_traces(path: str) -> list[str]:
    """Return the traces of child processes that lie beside `path`."""
    folder, name = os.path.split(path)
    root, extension = os.path.splitext(name)
    found = []
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        return []
    for other in beside:
        middle = other[len(root) + 1 : len(other) - len(extension)]
        if other != f"{root}.{middle}{extension}":
            continue
        pid, _, number = middle.partition("-")
        if pid.isdecimal() and (number.isdecimal() or middle == pid):
            found.append(os.path.join(folder, other))
    return sorted(found)


def remove_child_traces(path: str) -> None:
    """Remove the traces that child processes of an earlier recording left beside `path`."""
    for trace in child_traces(path):
        if _may_be_replaced(trace):
            remove(trace)


def remove(path: str) -> None:
    """Remove a file, if that is possible."""
    try:
        os.unlink(path)
    except OSError:
        pass


def _may_be_replaced(path: str) -> bool:
    try:
        about = os.stat(path)
    except OSError:
        return True  # there is none, or opening it will say why not
    if not stat.S_ISREG(about.st_mode) or about.st_size == 0:
        return True
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(fd, len(MAGIC)) == MAGIC
    finally:
        os.close(fd)


def identity(file: int | str) -> "tuple[int, int] | None":
    """Return what makes a regular file the same file; None if it is none or is not there."""
    try:
        about = os.stat(file)
    except OSError:
        return None
    return (about.st_dev, about.st_ino) if stat.S_ISREG(about.st_mode) else None


def quoted(path: str) -> str:
    """Return a path as a shell takes it."""
    if path and _PLAIN.issuperset(path):
        return path
    return "'" + path.replace("'", "'\"'\"'") + "'"
