"""Traces to tables: pure functions that count, sum and divide time, and accuse nobody.

No function here changes a trace or looks at the machine; all are whole-array arithmetic, so that
ten million events are a matter of seconds.
"""

from contention_lab.analysis.blame import HAND_OFF, UNRECORDED, Blame, blame
from contention_lab.analysis.block_matrix import BlockMatrix, block_matrix
from contention_lab.analysis.chains import ChainStep, chain
from contention_lab.analysis.critical_path import CriticalPath, critical_path
from contention_lab.analysis.flame import FlameNode, flame
from contention_lab.analysis.lock_order import Inversion, inversions
from contention_lab.analysis.lock_table import LockRow, lock_table
from contention_lab.analysis.parties import GIL
from contention_lab.analysis.selection import by_site, selected
from contention_lab.analysis.sites import is_user_code, user_frame
from contention_lab.analysis.thread_time import ThreadTime, thread_time, working
from contention_lab.analysis.wait_for import Deadlock, deadlocks

__all__ = [
    "GIL",
    "HAND_OFF",
    "UNRECORDED",
    "Blame",
    "BlockMatrix",
    "ChainStep",
    "CriticalPath",
    "Deadlock",
    "FlameNode",
    "Inversion",
    "LockRow",
    "ThreadTime",
    "blame",
    "block_matrix",
    "by_site",
    "chain",
    "critical_path",
    "deadlocks",
    "flame",
    "inversions",
    "is_user_code",
    "lock_table",
    "selected",
    "thread_time",
    "user_frame",
    "working",
]
