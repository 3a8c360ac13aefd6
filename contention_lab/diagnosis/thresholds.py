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

OFF_THE_PATH: Final = 0.5
"""Of the share of the critical path that the worst lock has, the severity of a lock that is not on
it at most: it comes after all that take half as much of the path, and is still told."""

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
input and output under it, whatever it does in the rest: a request and a little work on its answer.
What waits for other locks and for other threads as well for a good part of the time is serialised
whatever is done about the input and output."""

MOST_BESIDE_IO: Final = 0.05
"""Share of anything but Python, above all of native work, which could use another core, up to which
input and output are all that is wrong with a lock."""

LEAST_NATIVE_LOOKS: Final = 3
"""Looks at holders that must have found native work, for there to be any: who is just getting the
GIL, or giving it away, is seen without it, too."""

LEAST_ONE_PATH: Final = 0.8
"""Share of the blame that one function must have to be called the one that others wait for."""

MOST_OWN_PATH: Final = 0.2
"""Share of the waiting that this function may do itself."""

MOST_SELDOM: Final = 0.2
"""Share of the acquires up to which a function takes a lock seldom: others at least four times as
often."""

LEAST_LONGER_HOLD: Final = 5.0
"""How many times longer than others it must hold the lock; holds for equal work differ by less."""

LEAST_UNDER_GIL: Final = 0.8
"""Share of the time under a lock in Python code (or waiting to run it) from which the GIL would
order the threads anyway. A fifth without the GIL lets others gain a quarter at most; some percent
are hand-overs of the GIL, during which nobody has it."""

LEAST_GIL_SATURATION: Final = 0.7
"""Share of a recording during which the GIL is held, from which it has nothing left to give worth
mentioning: hand-overs and start-up take most of the rest."""

COORDINATION_CASES: Final = 24
"""Things waited for (by creation site and purpose) examined in detail, the most waited for first:
few have more, and the rest has a small part of the waiting."""

LEAST_BUSY: Final = 0.8
"""Share of the time with somebody waiting in which whoever is waited for must be in no recorded
wait itself, to be called the bottleneck. One that waits more is waiting for somebody further on;
waiting for the lock of what all of them use, as on a busy machine, does not count."""

LEAST_WORK_OF_WAIT: Final = 0.1
"""How much waiters must work (together, against the time with somebody waiting) to be called
starved. An idle log writer or pool works a few percent of the time, and a faster producer would
give it nothing more to do."""

LEAST_RUNNING: Final = 0.5
"""Share of its busy time that a producer must run, or be in functions of its own that do not hand
out items, to be called slow. One that mostly sleeps or reads where it hands out items waits for
work to arrive itself."""

LEAST_SELF_SUPPLIED: Final = 0.3
"""Share of the waiting for items that must be ended by threads which wait for them, too, to say
that the items are a stock of permits. In a pipeline nobody gives back what he takes; of threads
that share a stock the lucky ones never wait, so that it is not all."""

LEAST_AT_WORK: Final = 1.5
"""Users of a stock that must be at work, on average while somebody waits for a piece of it: with
one at a time it is a lock, or a turn that goes round."""

LEAST_STRAGGLER: Final = 0.5
"""Share of the waiting at a meeting that one thread must end by coming last, in addition to half
of what it would end by chance, to be the straggler. Equal threads take turns at coming last."""

MOST_TAKES_OF_CONSUMER: Final = 1.8
"""How often those who end waits may take the lock of a condition for each time that they do, to be
called consumers of a full buffer. They take it once an item; who comes in and leaves, twice."""

LEAST_WORK_OF_OTHERS: Final = 0.1
"""Share of the straggler's work that the others must have, on average, for it to have more than its
share of the same work. Who only asks for a result has next to none."""

LONGEST_SINGLE_HOLD: Final = 0.5
"""Share of the time that permits are out for which one thread may account, among three or more,
where the limit is to blame and not that thread."""

LEAST_USELESS: Final = 0.5
"""Share of wake-ups that found nothing to do, from which waking everybody is a herd. With one item
for two waiters half are useless, and that is cheaper than what avoids it."""

LEAST_HERD: Final = 3
"""Threads woken together, on average where several were, for them to be a herd."""

LEAST_WAKEUPS: Final = 30
"""Wake-ups of several threads together before anything is concluded from what they found: a program
that ends wakes everybody once."""

LEAST_STORM_SHARE: Final = 0.05
"""Share of the run with threads awake that found nothing to do. Below it the herd costs less than
the switches that any wake-up costs."""

LEAST_READERS: Final = 2
"""Threads that must come and go while a writer waits, for the writer to be starved by their
overlap; one alone leaves gaps."""

LEAST_COVERED: Final = 0.9
"""Share of a writer's wait during which a reader must be inside. With gaps, however short, the
writer gets in: it needs only to be woken in one."""

LEAST_ENTRIES: Final = 3
"""How often, for each reader, others must have come in while the writer waited: once each is a
writer that waits its turn."""

LEAST_STARVED_SHARE: Final = 0.2
"""Share of the run for which the starved writer waited. A writer that waits for readers a tenth of
its time is what a readers-writer lock is for."""

LONG_STEP_S: Final = 0.005
"""A step of an event loop that takes longer keeps others waiting for longer than CPython lets a
thread keep the GIL (its switch interval): tasks then take turns worse than threads do."""

LEAST_BLOCKED_SHARE: Final = 0.1
"""Share of the run for which long steps kept ready tasks waiting: as for locks."""

LEAST_STARVED_WORKERS: Final = 0.75
"""Share of a pool's workers that must wait for results of the pool itself, on average while tasks
queue for a worker, to say that the pool starves itself: one of four that still works makes progress
a quarter as fast, which is what the sizes of such pools hide."""

IDLE_LOOP: Final = 0.5
"""Share of the run that an event loop's thread must be off the CPU, for the waiting of its tasks to
be the fault of what they await under a lock and not of the work there is."""

LONGEST_TASK: Final = 2.0
"""How many times as long as the median of its batch a task must take, for the batch to wait for
that task and not just for its last one."""

LEAST_GIL_WAIT_SHARE: Final = 0.2
"""Share of the time of threads that run Python that they must wait for the GIL: with two of them
it is a half, if they do nothing else."""

LEAST_COVERING: Final = 0.2
"""Share of the time that threads have the GIL which they must spend under one lock, and with taking
it, for that to be said: with less, two cores give nine tenths of what they could."""

LEAST_TAKING_PART: Final = 0.05
"""Share of its time that a thread must have or want the GIL to take part in the competition."""

LIGHT_USE: Final = 0.5
"""Share of a switch interval for which a thread keeps the GIL at a time, and of what the longest
holder has in all, below which it uses it lightly. Whoever computes keeps it for an interval or
more while others wait."""

LEAST_KEPT: Final = 0.1
"""Share of a switch interval that threads must run each time they have the GIL, to be what others
wait for. Who computes runs for an interval, or for a scheduler slice where many want the core: a
fifth of one and more. Who blocks in between runs for a hundredth; if others wait for an interval
all the same, the machine has taken its core away meanwhile."""

LEAST_HUNGRY: Final = 0.5
"""Share of the use of the GIL by threads that keep it, below which no such thread is the reason for
the waiting of others."""

LEAST_INTERVALS: Final = 0.5
"""Switch intervals that a thread must usually wait to get the GIL back in a convoy; where the GIL
is given back early it is a small part of one."""

LEAST_RETURNS: Final = 5
"""Waits for the GIL that must have been seen before they are said to be usual."""

LEAST_OVERLOAD: Final = 1.5
"""Threads that want a core, as a multiple of the cores, from which native ones are too many. A
library that has a thread for each core, and its caller, stay below on two cores or more."""

LEAST_OVERLOADED: Final = 0.2
"""Share of the recording for which there must be too many."""

LEAST_NATIVE_CPU: Final = 0.33
"""Share of the process's CPU time that the native threads must have used."""

LEAST_LOOKS: Final = 3
"""Looks at the process that must have found too many: one may be a burst."""

LEAST_LOOKS_IN_VAIN: Final = 100
"""Looks in vain, of each thread where they cost CPU time, from which it is polling: few programs
retry anything that often by design."""

LEAST_TRIES_IN_VAIN: Final = 20
"""And failed tries at a lock between which threads do nothing but sleep: who does something else if
a lock is taken does not sleep instead."""

LEAST_ANYWAY: Final = 0.1
"""Time at a place without a failed try before, against the time there after one, from which threads
are there anyway. A nap between tries is never taken otherwise; where one round in ten gets the
lock, the pause after it is as long as a ninth of the pauses after the others."""

LONGEST_POLL_S: Final = 0.005
"""Timeout up to which a wait is a look; longer ones cost less CPU time than is worth a word."""

MOST_FOUND: Final = 0.2
"""Share of a thread's waits that may be successful, if it is called polling."""

LEAST_POLL_RATIO: Final = 20.0
"""How many times as often as all others a thread must take a queue's lock. A get and a put are one
each; some calls take it twice."""

LEAST_POLL_OF_CPU: Final = 0.2
"""Share of the process's CPU time that threads must burn by looking."""

MOST_HELD_OF_TRIES: Final = 0.5
"""Share of the time between failed tries for which the lock may be held: with more, it is the holds
that are waited for."""

LEAST_RETAKES: Final = 20
"""How often a lock must have gone back to the thread that released it, past waiting ones, before
that is a habit."""

LEAST_RETAKE_SHARE: Final = 0.5
"""Share of the hand-overs that go back to the same thread in an unfair lock. Any lock that lets a
running thread take it before a sleeping one wakes has some."""

LEAST_IN_ROW: Final = 5.0
"""How many retakes there are in a row, as most of them have it."""

LEAST_OWNER_SHARE: Final = 0.8
"""Share of the retakes by one thread, for it to be the one that keeps the lock."""

MOST_FAIRNESS: Final = 0.5
"""Jain's index (stretched to 0..1) up to which threads get a lock unequally often: with two, one
gets it six times as often as the other."""

LEAST_EXTERNAL_SAMPLES: Final = 5
"""Times threads must have been seen waiting for a lock that is not Python's."""

LEAST_WORKING_LOOKS: Final = 1 / 3
"""Share of the looks at threads that wait for a lock outside Python at which another one must be at
work, for one of them to have it: it was at nearly half in programs that keep SQLite's lock
themselves, whose waiters sleep on for a while when it is free, and at a twentieth where another
process kept it."""

LEAST_OVERHEAD: Final = 0.16
"""Share of the CPU time that taking free locks must cost, from what one costs. A program that does
anything between two acquires (a function call and a few operations) stays below a tenth."""

LEAST_OVERHEAD_S: Final = 0.02
"""And in seconds: less is not worth a change of the program."""

MOST_CONTENDED: Final = 0.01
"""Share of acquires that may find the lock taken where its cost is not that of waiting."""

HOLDS_EXAMINED: Final = 40_000
"""Holds of one lock of which it is asked what was done in them: the half that cost most, and of the
others as many at equal steps, which stand for all."""

LEAST_NATIVE_IDLE: Final = 0.1
"""Share of the cores that must be idle, on average while threads wait for a lock of native code,
for it to be accused: with less, who waits could not have run. A numerical library lets one call use
all cores at a time, by a lock."""

LEAST_SAMPLES: Final = 20
"""Samples of a thing below which nothing is said of it where a program was only sampled: of a share
of a half, the interval from twenty goes from 0.3 to 0.7."""

LEAST_SAMPLED_WAITERS: Final = 0.5
"""Threads that must be seen waiting for others or for the GIL, on average over all moments sampled,
for that to limit a program: for half of the time one of them cannot go on."""

LEAST_SAMPLED_SPIN: Final = 0.25
"""Share of the time that threads want a CPU or the GIL which goes into spinning, with 95 %
confidence. It is less than `LEAST_SPIN_OF_CPU`: who waits for the GIL is in the whole, too."""

LEAST_HOLDER_SEEN: Final = 0.6
"""Share of the waiting for which a holder must have been seen, for it to be blamed: what is left is
too little to be called the reason itself."""

LEAST_ONE_LOCK: Final = 0.6
"""Share of the spinning for known locks that one must have to be named for all of it."""

LEAST_RING_S: Final = 1.0
"""How long, in seconds, sampled threads must have stood in a ring at the end of the recording.
Holders are inferred, and a stack may be read a moment late: such rings are gone the next moment."""

LEAST_UNKNOWN_SLEEP: Final = 0.1
"""Share of the time of sampled threads, asleep for something unknown, from which that is said: a
lock of native code that is waited for as long would be a finding, see `LEAST_WAIT_SHARE`."""

NEARLY_ALL_WAITING: Final = 0.9
"""Share of the waiting by which those are told who wait, or end waits, as a matter of course: in
the last tenth is a main thread that puts one mark of the end behind the items."""
