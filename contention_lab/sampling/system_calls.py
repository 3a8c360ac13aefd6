"""Names of the system calls in which threads wait, by machine and number.

Only those that a thread can be blocked in for long; for others the number is said.
"""

from __future__ import annotations

import platform
from typing import Final

_X86_64: Final = """
0 read, 1 write, 2 open, 7 poll, 17 pread64, 18 pwrite64, 19 readv, 20 writev, 23 select,
24 sched_yield, 34 pause, 35 nanosleep, 40 sendfile, 42 connect, 43 accept, 44 sendto, 45 recvfrom,
46 sendmsg, 47 recvmsg, 61 wait4, 72 fcntl, 73 flock, 74 fsync, 75 fdatasync, 128 rt_sigtimedwait,
202 futex, 230 clock_nanosleep, 232 epoll_wait, 247 waitid, 257 openat, 270 pselect6, 271 ppoll,
281 epoll_pwait, 288 accept4, 299 recvmmsg, 307 sendmmsg, 426 io_uring_enter, 441 epoll_pwait2,
449 futex_waitv, 455 futex_wait
"""
_GENERIC: Final = """
22 epoll_pwait, 25 fcntl, 32 flock, 56 openat, 63 read, 64 write, 65 readv, 66 writev, 67 pread64,
68 pwrite64, 71 sendfile, 72 pselect6, 73 ppoll, 82 fsync, 83 fdatasync, 95 waitid, 98 futex,
101 nanosleep, 115 clock_nanosleep, 124 sched_yield, 137 rt_sigtimedwait, 202 accept, 203 connect,
206 sendto, 207 recvfrom, 211 sendmsg, 212 recvmsg, 242 accept4, 243 recvmmsg, 260 wait4,
269 sendmmsg, 426 io_uring_enter, 441 epoll_pwait2, 449 futex_waitv, 455 futex_wait
"""


def _table(text: str) -> dict[int, str]:
    pairs = (part.split() for part in text.split(","))
    return {int(number): name for number, name in pairs}


_TABLES: Final = {
    "x86_64": _table(_X86_64),
    "aarch64": _table(_GENERIC),
    "riscv64": _table(_GENERIC),
}


def call_name(number: int, machine: str = platform.machine()) -> str:
    """Return the name of a system call, or `call 99` for others."""
    return _TABLES.get(machine, {}).get(number) or f"call {number}"
