"""Signals that come while the recorder is at work, and what `faulthandler` shows of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import contention_lab as cl

ROOT = Path(cl.__path__[0]).parent

STORM = """
import logging, queue, signal, sys, threading, time
import contention_lab.native._core
ends_at = int(sys.argv[1])
seen = 0
shared, line = threading.RLock(), queue.SimpleQueue()
log = logging.getLogger("storm")
log.addHandler(logging.NullHandler())
done = False
def use():
    made = [threading.Lock() for _ in range(20)]
    for lock in made:
        with lock, shared:
            line.put(1)
            line.get()
    log.error("from %s", len(made))
def handler(number, frame):
    global seen
    seen += 1
    use()
    if seen == ends_at:
        sys.exit(5)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)  # not before: handlers would pile up
def work():
    while not done:
        use()
        time.sleep(0)
signal.signal(signal.SIGTERM, handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
for thread in threads: thread.start()
sys.setswitchinterval(1e-4)
signal.setitimer(signal.ITIMER_REAL, 0.0005)
while True:
    use()
"""


def environment() -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths}


def python(
    folder: Path, text: str, *before: str, arguments: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    (folder / "program.py").write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, *before, "program.py", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(),
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


RECORD = ("-m", "contention_lab", "record", "-q", "-o", "trace.clt")


@pytest.mark.parametrize("level", ["profile", "trace"])
@pytest.mark.parametrize("ends_at", [1, 2, 50, 300])
def test_a_sigterm_handler_that_locks_and_exits_meets_no_lock_of_the_recorder(
    ends_at: int, level: str, tmp_path: Path
) -> None:
    done = python(tmp_path, STORM, *RECORD, "--level", level, arguments=(str(ends_at),))

    assert done == (5, "", "")
    trace = cl.load(tmp_path / "trace.clt")
    assert trace.complete
    assert not trace.problems


def test_handlers_that_lock_do_not_disturb_the_begin_and_the_end_of_recordings(
    tmp_path: Path,
) -> None:
    program = STORM.partition("while True:")[0] + (
        "import contention_lab as cl\n"
        "for _ in range(30):\n"
        "    with cl.record('trace.clt', existing=True):\n"
        "        use()\n"
        "signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
        "done = True\n"
        "for thread in threads: thread.join(20)\n"
        "print(seen > 10, [thread.is_alive() for thread in threads])\n"
    )

    assert python(tmp_path, program, arguments=("0",)) == (0, "True [False, False, False]\n", "")
    assert cl.load(tmp_path / "trace.clt").complete


FAULTS = {
    "a dump of all threads": "faulthandler.dump_traceback(all_threads=True)",
    "a dump on a signal": (
        "faulthandler.register(signal.SIGUSR1, all_threads=False)\n"
        "with lock:\n    os.kill(os.getpid(), signal.SIGUSR1)"
    ),
    "a dump of a deadlock": (
        "faulthandler.dump_traceback_later(0.2, exit=True)\nlock.acquire()\nlock.acquire()"
    ),
    "a crash in a locked region": "with lock:\n    faulthandler._sigsegv()",
    "a fatal error": "with lock:\n    faulthandler._fatal_error_c_thread()",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulthandler_shows_the_program_as_without_us(fault: str, tmp_path: Path) -> None:
    program = (
        "import faulthandler, os, signal, threading\n"
        "faulthandler.enable()\n"
        "lock = threading.Lock()\n"
        "def go():\n" + textwrap.indent(FAULTS[fault], "    ") + "\ngo()\n"
    )

    plain, recorded = (python(tmp_path, program, *before) for before in ((), RECORD))

    assert recorded[:2] == plain[:2]
    assert shown(recorded[2]) == shown(plain[2])
    assert "in go" in plain[2]
    trace = cl.load(tmp_path / "trace.clt")
    assert trace.complete == (plain[0] == 0)


def shown(text: str) -> str:
    """Leave out addresses, and that our extension module is one of those loaded."""
    text = re.sub(r"0x[0-9a-f]{6,}", "0x", text)
    return re.sub(r"\n+Extension modules: .*", "", text)
