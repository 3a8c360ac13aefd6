"""A process beside the program that is recorded: it shows the locks live, or samples the program.

It is started before this process becomes the program, and is no child of it: the program finds
nothing to wait for, and a Ctrl-C at the terminal does not reach it. It ends when the program does.
What it does is in `cli/companion.py`; nothing of it is in the program.
"""

import os
import sys

LIVE = "live"
SAMPLE = "sample"
MODULE = "contention_lab.cli.companion"

_SET_PTRACER = 0x59616D61  # prctl's PR_SET_PTRACER


def start(purpose: str, trace: str) -> None:
    """Start a companion of this process.

    Parameters
    ----------
    purpose
        `LIVE` or `SAMPLE`.
    trace
        The absolute path of the trace that the program will write.
    """
    mine = os.getpid()
    may_draw = os.isatty(2) and not os.isatty(1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                os.write(writer, str(os.getpid()).encode())
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(2, 1)  # who reads the program's output must not wait for this process
                words = [str(mine), trace, purpose, "draw" if may_draw else "print"]
                os.execv(sys.executable, [sys.executable, "-m", MODULE, *words])
        finally:
            os._exit(1)
    os.close(writer)
    number = os.read(reader, 32)
    os.close(reader)
    os.waitpid(child, 0)
    if purpose == SAMPLE and number:
        _permit(int(number))


def _permit(process: int) -> None:
    """Let a process look into this one, where the kernel lets only parents do so."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_SET_PTRACER, ctypes.c_ulong(process), 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # the samples will not be there, and why is said then
