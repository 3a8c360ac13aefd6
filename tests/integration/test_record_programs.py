"""A program under `contention-lab record` does what it does under plain `python`.

Each program is run both ways; output, errors, and exit status must be equal to the byte.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import contention_lab as cl

ROOT = Path(cl.__path__[0]).parent
RECORD = ("-m", "contention_lab", "record", "-q", "-o", "trace.clt")


@dataclass(frozen=True)
class Case:
    """A program: its files, what `python` is given, and what it reads."""

    command: tuple[str, ...] = ("program.py",)
    files: dict[str, str] | None = None
    stdin: str = ""
    options: tuple[str, ...] = ()
    traced: bool = True


def script(text: str, *arguments: str, stdin: str = "", traced: bool = True) -> Case:
    return Case(("program.py", *arguments), {"program.py": text}, stdin, traced=traced)


WHO_AM_I = """
import sys
print(__name__, __file__ if "__file__" in globals() else None, __spec__, __package__, __doc__)
print(sorted(vars()), type(__builtins__), globals().get("__cached__"), type(__loader__))
print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions)
print(sys.modules["__main__"].__dict__ is globals(), sys.executable, sys.prefix)
"""

CASES: dict[str, Case] = {
    "who am I, as a script": script(WHO_AM_I, "a b", "--level", "x", "-o", "y", "--", "-q"),
    "who am I, as a module": Case(("-m", "package.inner", "1"), {"package/inner.py": WHO_AM_I}),
    "who am I, attached": Case(("-mpackage.inner", "1"), {"package/inner.py": WHO_AM_I}),
    "who am I, as a package": Case(
        ("-m", "package", "-q"), {"package/__init__.py": "", "package/__main__.py": WHO_AM_I}
    ),
    "who am I, as code": Case(("-c", WHO_AM_I, "-m", "x")),
    "who am I, from the standard input": Case(("-", "1", "2"), stdin=WHO_AM_I),
    "who am I, as a folder": Case(("folder", "1"), {"folder/__main__.py": WHO_AM_I}),
    "who am I, as an archive": Case(("program.zip", "1"), {"program.zip:__main__.py": WHO_AM_I}),
    "options of the interpreter": Case(
        files={"program.py": WHO_AM_I + "\nassert False"},
        options=("-O", "-X", "dev", "-W", "error", "-u", "-B", "-P"),
    ),
    "a file that is not there": Case(("nowhere.py",), traced=False),
    "a module that is not there": Case(("-m", "nowhere.at.all")),
    "a module whose package fails": Case(
        ("-m", "package.inner"), {"package/__init__.py": "1/0", "package/inner.py": ""}
    ),
    "a package without a program": Case(("-m", "package"), {"package/__init__.py": ""}),
    "a folder without a program": Case(("folder",), {"folder/other.py": ""}),
    "a syntax error": script("print(1)\nif True print(2)\n"),
    "a syntax error in a module": Case(("-m", "package.inner"), {"package/inner.py": "a b"}),
    "a declared encoding": Case(files={"program.py": "# coding: latin-1\nprint(ascii('\xe4'))"}),
    "an unknown encoding": script("# coding: nowhere\nprint(1)"),
    "a null byte": script("print(1)\0"),
    "exit with a number": script("import sys; sys.exit(3)"),
    "exit with a text": script("import sys; print('out'); sys.exit('what is wrong')"),
    "exit with None": script("import sys; sys.exit()"),
    "exit with a large number": script("raise SystemExit(1000)"),
    "exit with an object": script("raise SystemExit((1, 2))"),
    "exit by builtin": script("exit(4)"),
    "an exception": script("def f():\n    1/0\n\nf()"),
    "a chain of exceptions": script(
        """
        def inner():
            raise KeyError("a")
        try:
            inner()
        except KeyError as error:
            raise ValueError("b") from error
        """
    ),
    "an exception group": script("raise ExceptionGroup('g', [ValueError(1), KeyError(2)])"),
    "too deep a recursion": script("def f():\n    f()\n\nf()"),
    "an exception in a lock": script(
        "import threading\nlock = threading.Lock()\nwith lock:\n    lock.release()"
    ),
    "an exception in a module": Case(
        files={"program.py": "import other", "other.py": "raise RuntimeError('in import')"}
    ),
    "an interrupt": script("import sys; print('before', flush=True); raise KeyboardInterrupt"),
    "an interrupt by signal": script(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)"
    ),
    "an interrupt that is handled": script(
        """
        import os, signal, time
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            print("handled")
        """
    ),
    "ended by SIGTERM": script("import os; print(1, flush=True); os.kill(os.getpid(), 15)"),
    "ended by SIGKILL": script("import os; print(1, flush=True); os.kill(os.getpid(), 9)"),
    "aborted": script("import os; os.abort()"),
    "SIGTERM that is handled": script(
        """
        import os, signal, sys, time
        def handler(number, frame):
            print("handler", number, frame.f_code.co_name)
            sys.exit(5)
        signal.signal(signal.SIGTERM, handler)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
        """
    ),
    "what signals do": script(
        "import signal\nfor s in sorted(signal.valid_signals()): print(s, signal.getsignal(s))\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    ),
    "os._exit": script("import os; print('lost'); os._exit(7)"),
    "os._exit without a number": script("import os; os._exit()"),
    "executing another program": script(
        "import os, sys; print('one', flush=True)\n"
        "os.execv(sys.executable, ['python', '-c', 'import sys; sys.exit(sys.argv != [])', 'x'])"
    ),
    "executing by search": script("import os; os.execvp('sh', ['sh', '-c', 'echo $0; exit 8'])"),
    "executing what is not there": script("import os; os.execv('nowhere', ['nowhere'])"),
    "executing with an environment": script(
        "import os; os.execve('/bin/sh', ['sh', '-c', 'env | sort'], {'A': '1'})"
    ),
    "exit in a thread": script(
        """
        import sys, threading
        def work():
            sys.exit(3)
        thread = threading.Thread(target=work)
        thread.start(); thread.join(); print("alive", thread)
        """
    ),
    "an exception in a thread": script(
        "import threading\nt = threading.Thread(target=lambda: 1/0)\nt.start(); t.join()"
    ),
    "daemon threads alive at the end": script(
        """
        import threading, time
        lock = threading.Lock()
        def work():
            while True:
                with lock:
                    time.sleep(0.001)
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
        """
    ),
    "a thread that outlives the main one": script(
        """
        import threading, time
        def work():
            time.sleep(0.05); print("late", threading.main_thread())
        threading.Thread(target=work).start()
        print("main ends")
        """
    ),
    "an excepthook that takes a lock": script(
        """
        import sys, threading
        lock = threading.RLock()
        def hook(kind, value, traceback):
            with lock:
                print("hook", kind, value, traceback.tb_frame.f_code.co_filename)
        sys.excepthook = hook
        1/0
        """
    ),
    "an excepthook that fails": script(
        "import sys\ndef hook(*a): raise ValueError(1)\nsys.excepthook = hook\n1/0"
    ),
    "handlers at exit": script(
        """
        import atexit, threading
        lock = threading.Lock()
        def second():
            with lock:
                print("second")
        atexit.register(second)
        atexit.register(print, "first")
        atexit.register(lambda: 1/0)
        """
    ),
    "locks in finalizers": script(
        """
        import threading, queue
        class Thing:
            def __init__(self):
                self.lock, self.queue = threading.Condition(), queue.Queue()
            def __del__(self):
                with self.lock:
                    self.queue.put(1); self.lock.notify_all()
                print("gone", self.queue.get())
        kept = Thing(); kept.cycle = kept
        """
    ),
    "warnings": script(
        "import warnings\nwarnings.warn('old', DeprecationWarning)\nwarnings.warn('u')\n"
        "open('program.py')\nprint(warnings.filters)"
    ),
    "output that nobody reads": script(
        "import os, sys\nos.dup2(os.open('/dev/full', os.O_WRONLY), 1)\nprint('x' * 100)"
    ),
    "a closed standard error stream": script(
        "import os\nos.close(2)\nprint(open('x', 'w').fileno())"
    ),
    "standard error replaced": script(
        "import os\nos.dup2(os.open('log', os.O_WRONLY | os.O_CREAT), 2)\nimport sys; sys.exit('e')"
    ),
    "reading the standard input": script(
        "import sys\nprint(sys.stdin.readline())\nprint(input())\nprint(sys.stdin.read())",
        stdin="one\ntwo\nthree\nfour\n",
    ),
    "the environment": script(
        "import os\nprint(dict(os.environ))\nprint(os.environb)\nos.system('env')"
    ),
    "the environment of children": script(
        """
        import os, subprocess, sys
        show = (
            "import os, sys; print(sorted(os.environ.items()), sys.path, "
            "'contention_lab' in sys.modules)"
        )
        for env in (None, {"A": "1"}, dict(os.environ, B="2")):
            print(subprocess.run([sys.executable, "-c", show], env=env, capture_output=True).stdout)
        """
    ),
    "file descriptors": script(
        "import os\nprint(os.open('program.py', os.O_RDONLY), os.dup(1), os.get_inheritable(0))"
    ),
    "the current folder is gone": script("import os, sys\nprint(sys.path[0] == os.getcwd())"),
    "threads and frames": script(
        "import threading, sys\nprint(threading.enumerate(), threading.active_count())\n"
        "f = sys._getframe()\nwhile f: print(f.f_code); f = f.f_back\nprint(sys.gettrace())"
    ),
    "types of locks": script(
        """
        import _thread, threading, pickle, copy
        for make in (threading.Lock, threading.RLock, _thread.allocate_lock):
            lock = make()
            print(type(lock), isinstance(lock, _thread.LockType), lock.acquire(), lock.locked
                  if not hasattr(lock, "locked") else 0)
            for f in (pickle.dumps, copy.copy, copy.deepcopy):
                try:
                    f(lock)
                except TypeError as error:
                    print(error)
        """
    ),
    "logging": script(
        "import logging\nlogging.basicConfig(level=10)\nlogging.info('a')\nlogging.error('b')"
    ),
    "fork": script(
        """
        import os, threading
        lock = threading.Lock()
        with lock:
            child = os.fork()
        if child == 0:
            with lock:
                print("child", flush=True)
            raise SystemExit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    ),
    "a program that records itself": script(
        "import sys\nsys.path.append(sys.argv[1])\nimport contention_lab.native._core\nprint(1)",
        str(ROOT),
    ),
}

MULTIPROCESSING = """
import multiprocessing, sys
print("imported as", __name__, flush=True)
lock = None
def work(lock, number):
    with lock:
        return (__name__, number, sorted(k for k in sys.modules if k.startswith("contention")))
def main(method):
    context = multiprocessing.get_context(method)
    with context.Manager() as manager, context.Pool(1) as pool:
        print(pool.apply(work, (manager.Lock(), 3)))
    process = context.Process(target=sys.exit, args=(7,))
    process.start(); process.join(); print(process.exitcode)
if __name__ == "__main__":
    main(sys.argv[1])
"""
for _method in ("spawn", "forkserver"):
    CASES[f"multiprocessing by {_method}"] = script(MULTIPROCESSING, _method)


def write(case: Case, folder: Path) -> None:
    for name, text in (case.files or {}).items():
        archive, _, member = name.partition(":")
        path = folder / archive
        path.parent.mkdir(parents=True, exist_ok=True)
        content = textwrap.dedent(text)
        if member:
            with zipfile.ZipFile(path, "w") as file:
                file.writestr(member, content)
        else:
            path.write_text(content, encoding="latin-1" if "latin-1" in text else "utf-8")


def run(
    case: Case, folder: Path, *before: str, env: dict[str, str] | None = None
) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *case.options, *before, *case.command],
        input=case.stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
        env=environment() if env is None else env,
    )
    return done.returncode, done.stdout, done.stderr


def environment() -> dict[str, str]:
    """Fix what may differ between two runs without us: the order of sets."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}


def without_addresses(text: str) -> str:
    text = re.sub(r"0x[0-9a-f]{6,}", "0x", text)
    text = re.sub(r"\(Thread-\d+, (started|stopped) (daemon )?\d+\)", "(Thread)", text)
    return re.sub(r"(started|stopped) \d+", r"\1", text)


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_program_does_what_it_does_without(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    write(case, tmp_path)

    plain = run(case, tmp_path)
    recorded = run(case, tmp_path, *RECORD)

    assert recorded[0] == plain[0], recorded[2]
    assert without_addresses(recorded[1]) == without_addresses(plain[1])
    assert without_addresses(recorded[2]) == without_addresses(plain[2])
    assert (tmp_path / "trace.clt").exists() == case.traced
    if case.traced:
        trace = cl.load(tmp_path / "trace.clt")
        assert trace.complete == (
            plain[0] not in (-signal.SIGTERM, -signal.SIGKILL, -signal.SIGABRT)
        )


GEVENT = """
import BEFORE
from gevent import monkey
monkey.patch_all()
import concurrent.futures, gevent, logging, queue, subprocess, sys, threading, time
from gevent.threadpool import ThreadPool
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
lock, line, permits = threading.Lock(), queue.Queue(1), threading.Semaphore(1)
condition, event, again = threading.Condition(), threading.Event(), threading.RLock()
def work(number):
    for _ in range(5):
        with lock, permits, again, again:
            time.sleep(0.001)
    line.put(number)
    logging.info("done %s", number)
def wait():
    with condition:
        print(condition.wait(5), event.wait(5))
def outside():
    with lock:
        return threading.current_thread() is threading.main_thread()
waiter = threading.Thread(target=wait)
waiter.start()
jobs = [gevent.spawn(work, number) for number in range(4)]
print(sorted(line.get() for _ in jobs))
gevent.joinall(jobs, timeout=20)
with condition:
    condition.notify_all()
event.set()
waiter.join(5)
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print(list(pool.map(lambda x: x * 2, range(6))))
print(subprocess.check_output([sys.executable, "-c", "print(4)"]))
print([ThreadPool(3).spawn(outside).get() for _ in range(3)], type(lock).__module__)
"""


@pytest.mark.parametrize("before", ["sys", "queue, threading, logging, concurrent.futures.thread"])
def test_a_program_of_gevents_does_what_it_does_without(before: str, tmp_path: Path) -> None:
    pytest.importorskip("gevent")
    case = Case(files={"program.py": GEVENT.replace("BEFORE", before)}, options=("-W", "ignore"))
    write(case, tmp_path)

    plain, recorded = run(case, tmp_path), run(case, tmp_path, *RECORD)

    assert plain[0] == 0, plain[2]
    assert recorded == plain
    assert cl.load(tmp_path / "trace.clt").complete


def test_the_program_loads_no_module_because_of_us(tmp_path: Path) -> None:
    case = script("import sys; print(*sorted(sys.modules))")
    write(case, tmp_path)

    plain = set(run(case, tmp_path)[1].split())
    recorded = set(run(case, tmp_path, *RECORD)[1].split())

    foreign = {
        name
        for name in recorded - plain
        if not name.startswith("contention_lab") and name not in sys.builtin_module_names
    }
    assert foreign == set()
    assert plain <= recorded
