"""Every number that decides whether something is said, with its reason.

A wrong accusation is worse than silence, so each is set where a program of the other kind does not
come near it. None depends on the speed of a machine.
"""

from __future__ import annotations

from typing import Final

LEAST_WAIT_S: Final = 0.01
"""Waiting, in seconds, below which nothing is concluded. A scheduler delay on a busy machine is a
few milliseconds: two or three of them can make up most of a very short recording."""

LEAST_WAIT_SHARE: Final = 0.10
"""Share of the time of a lock's users that they must have waited for it. Below it, removing the
lock altogether could not make the program a ninth faster; between 1 % and 10 % lie programs that
share a queue or a cache and are fine."""

LEAST_SPIN_OF_CPU: Final = 0.3
"""Share of the process's CPU time that waiters burn in spin loops, for them to be able to take
the CPU from anybody. Locks that spin briefly before they park stay under a tenth."""

LEAST_SURPLUS_THREADS: Final = 0.25
"""By how much the average number of threads that spin, and the one that holds, must exceed the
number of cores. Up to the number of cores spinners use CPUs nobody else of the program wants;
the margin covers waits that begin or end between two samples of the average."""

LEAST_STRETCH: Final = 1.5
"""How many times as long as usual (the median at the same place) holds must last on average.
Holds that do the same work vary by a few percent alone on a core; one that is preempted for a
scheduler slice (3 ms and more) among holds of a millisecond exceeds it many times."""

LEAST_GROWTH: Final = 2.0
"""Across a sweep: how many times the hold time of the same work must grow from the fewest threads
to the most to say that waiters slow the holder. Sharing caches and memory costs less."""

MOSTLY: Final = 0.5
"""More than half of something is most of it: of a lock's waiting spent spinning, for a sweep to
call it a lock that spins."""

NEARLY_ALWAYS: Final = 0.8
"""Share of the run during which somebody waited, below which a sentence about how many threads wait
says for how long."""

LEAST_HAND_OFF: Final = 0.1
"""Share of the waiting that no code under the lock causes, from which it is mentioned. Some
percent are normal: a woken thread needs its time to start."""

SAME: Final = 0.05
"""Batch times that differ by less are called the same: about the spread of repeats on a quiet
machine."""

RETROGRADE: Final = 1.5
"""How many times as long as with the fewest threads a batch must take with the most to say that
threads make it slower: more than a busy machine does to one of two medians."""

LARGEST_SEVERITY: Final = 0.99
"""A lock cannot be said to cost all of a program's time; also keeps bounds on gains finite."""

RISK_SEVERITY: Final = 0.01
"""Severity of what costs nothing until it hangs: it is told, but after everything that costs a
hundredth of the program's time."""

CASES: Final = 8
"""Locks (by creation site) examined in detail, the most waited for first; the next one cannot
account for more than a ninth of the waiting."""

LEAST_KNOWN: Final = 0.5
"""Share of the time under a lock for which it must be known what its holders did, before a finding
rests on it."""

LEAST_BLOCKED: Final = 0.8
"""Share of the time that code under a lock spends in system calls, from which it is said to do
input and output under it: a request and a little work on its answer. What computes as well for a
good part of the time is serialised whatever is done about the input and output."""

MOST_NATIVE_BESIDE_IO: Final = 0.05
"""Share of native work, which could use another core, up to which input and output are all that is
wrong with a lock."""

LEAST_ONE_PATH: Final = 0.8
"""Share of the blame that one function must have to be called the one that others wait for."""

MOST_OWN_PATH: Final = 0.2
"""Share of the waiting that this function may do itself."""

MOST_SELDOM: Final = 0.2
"""Share of the acquires up to which a function takes a lock seldom: others at least four times as
often."""

LEAST_LONGER_HOLD: Final = 5.0
"""How many times longer than others it must hold the lock; holds for equal work differ by less."""

LEAST_UNDER_GIL: Final = 0.9
"""Share of the time under a lock in Python code (or waiting to run it) from which the GIL would
order the threads anyway. A tenth without the GIL lets others gain a ninth at most."""

LEAST_GIL_SATURATION: Final = 0.7
"""Share of a recording during which the GIL is held, from which it has nothing left to give worth
mentioning: hand-overs and start-up take most of the rest."""
