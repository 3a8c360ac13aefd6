"""Recording which functions run when, by viztracer, beside the recording of the locks.

viztracer's recorder is one extension module. It is loaded by itself: the package around it would
import much that the program has not asked for, and so would the module. The modules that it asks
for while it is loaded are stand-ins, which have what it uses and leave the program's as they are:
asked for the current thread too early, Python's own `threading` invents one, and the names of later
threads differ. From 3.12 on the stand-in of `sys.monitoring` gives it a number of its own instead
of that of profilers, so that the program can use cProfile.
"""

import os
import sys
import threading
import time
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODULE = "snaptrace"
_LOOKS = 200
_PROFILERS = 2
"""The number that profilers share in `sys.monitoring`."""
_OWN = 4
"""A number that is nobody's."""
_BY_NUMBER = ("use_tool_id", "free_tool_id", "get_tool", "register_callback", "set_events")


def find() -> str:
    """Return the file of viztracer's recorder; empty where there is none for this Python."""
    try:
        package = find_spec("viztracer")
    except (ImportError, ValueError):
        return ""
    for folder in (package and package.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            path = os.path.join(folder, _MODULE + suffix)
            if os.path.exists(path):
                return path
    return ""


class Functions:
    """The functions that run between `start` and `stop`, in all threads.

    Up to Python 3.11 the threads of `threading` that are started in between, and each until the
    program sets a profiler of its own there.

    Parameters
    ----------
    path
        What `find` returned.
    entries
        How many calls to keep, the last ones.

    Raises
    ------
    ImportError
        The file does not fit this Python.
    """

    def __init__(self, path: str, entries: int) -> None:
        self._tracer = _load(path).Tracer(entries)
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=self.stop)

    def start(self) -> None:
        """Begin to record the functions of this thread and of those that start from now on."""
        self._tracer.start()

    def stop(self) -> None:
        """End; functions that still run end here."""
        tracer = self._tracer
        if tracer is not None and threading is not None:
            tracer.stop("flush_as_finish")
            if sys.version_info < (3, 12) and threading.getprofile() is not None:
                owner = getattr(threading.getprofile(), "__self__", None)
                if owner is tracer:
                    threading.setprofile(None)  # type: ignore[arg-type, unused-ignore]
        if self._pid != os.getpid():
            self._tracer = None  # a forked child's is its parent's business

    def write(self, path: str) -> int:
        """Write what was recorded as Chrome's trace events, by the system's monotonic clock.

        Returns
        -------
        int
            By how many nanoseconds its times are late: its clock is set by many looks together, and
            where it lost its core during one of them, that is some microseconds off.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        if self._tracer is None:
            return 0
        try:
            self._tracer.dump(path)
        except ValueError:
            open(path, "wb").close()  # raises why not
            raise OSError("viztracer could not write it") from None
        return self._late_ns()

    def _late_ns(self) -> int:
        """Compare the clocks where two looks at one are closest around one at the other."""
        now, its = time.monotonic_ns, self._tracer.getts
        looks = []
        for _ in range(_LOOKS):
            before = now()
            middle = its()
            looks.append((now() - before, middle, before))
        length, middle, before = min(looks)
        return int(middle * 1e3 - before - length / 2)


def _load(path: str) -> "Any":
    """Load the recorder, with stand-ins for what it imports."""
    spec = spec_from_file_location(_MODULE, path, loader=ExtensionFileLoader(_MODULE, path))
    assert spec is not None
    assert spec.loader is not None
    stand_ins = {
        "threading": SimpleNamespace(
            current_thread=_current_thread, setprofile=threading.setprofile
        ),
        "multiprocessing": SimpleNamespace(current_process=lambda: SimpleNamespace(name="python")),
        "json": SimpleNamespace(dumps=repr),
        "trio": None,
        "sys": SimpleNamespace(monitoring=_Monitoring()),
    }
    before = {name: sys.modules.get(name, stand_ins) for name in stand_ins}
    modules = sys.modules
    try:
        modules.update(stand_ins)  # type: ignore[arg-type]
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name, known in before.items():
            if known is stand_ins:
                del modules[name]
            else:
                modules[name] = known  # type: ignore[assignment]
        modules.pop(_MODULE, None)
    return module


def _current_thread() -> "Any":
    """Return the current thread if it is known already, else something without a name."""
    thread = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
    return SimpleNamespace(name="") if thread is None else thread


class _Monitoring:
    """`sys.monitoring`, in which the number of profilers is another one."""

    def __getattr__(self, name: str) -> "Any":
        found = getattr(sys.monitoring, name)  # type: ignore[attr-defined]
        if name not in _BY_NUMBER:
            return found

        def with_own_number(number: int, *others: "Any") -> "Any":
            return found(_OWN if number == _PROFILERS else number, *others)

        return with_own_number
