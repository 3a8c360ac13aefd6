"""How busy the machine was, besides what the sweep itself did to it.

It reads `/proc` and judges nothing by time of day or history. Pressure and load average count the
sweep's own threads, so they are a fact about the machine only before it starts; while it runs,
what others used is the CPU time of the whole machine less that of our own processes.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BUSY_SHARE: Final = 0.10
"""Other programs that take more than this share of all CPUs are reported."""
STEAL_SHARE: Final = 0.02
"""A hypervisor that withholds more than this share of all CPUs is reported."""
PRESSURE_PERCENT: Final = 20.0
"""More pressure than this before the sweep is reported."""
OBSERVATION_S: Final = 0.5

_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """CPU seconds of the whole machine and of our processes, since some moment in the past."""

    total_s: float
    busy_s: float
    stolen_s: float
    own_s: float


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """Load over some stretch of time.

    Attributes
    ----------
    load1
        Load average over one minute at its end.
    cpu_some_avg10
        Percent of the last ten seconds in which some task waited for a CPU; None where the kernel
        does not say.
    steal_share
        Share of all CPUs that the hypervisor withheld.
    others_share
        Share of all CPUs that processes other than ours used.
    """

    load1: float
    cpu_some_avg10: float | None
    steal_share: float
    others_share: float

    def to_json(self) -> dict[str, float | None]:
        """Return the figures by name."""
        return {
            "load1": self.load1,
            "cpu_some_avg10": self.cpu_some_avg10,
            "steal_share": self.steal_share,
            "others_share": self.others_share,
        }


def observed_load(duration_s: float = OBSERVATION_S, proc: Path = _PROC) -> MachineLoad:
    """Watch the machine for a moment and return its load."""
    before = cpu_times(proc)
    time.sleep(duration_s)
    return load_between(before, cpu_times(proc), proc)


def load_between(before: CpuTimes, after: CpuTimes, proc: Path = _PROC) -> MachineLoad:
    """Return the load between two readings of `cpu_times`, the later one just taken."""
    total_s = after.total_s - before.total_s
    others_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return MachineLoad(
        load1=os.getloadavg()[0],
        cpu_some_avg10=_pressure(proc),
        steal_share=_share(after.stolen_s - before.stolen_s, total_s),
        others_share=_share(others_s, total_s),
    )


def cpu_times(proc: Path = _PROC) -> CpuTimes:
    """Return what the machine and our processes have used so far, all zero without `/proc`."""
    own_s = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    try:
        fields = (proc / "stat").read_text().splitlines()[0].split()[1:9]
        jiffies = [int(field) for field in fields]
    except (OSError, IndexError, ValueError):
        return CpuTimes(0.0, 0.0, 0.0, own_s)
    jiffies += [0] * (8 - len(jiffies))
    user, nice, system, idle, iowait, irq, softirq, steal = jiffies
    busy = user + nice + system + irq + softirq
    hertz = os.sysconf("SC_CLK_TCK")
    return CpuTimes((busy + idle + iowait + steal) / hertz, busy / hertz, steal / hertz, own_s)


def load_warnings(before: MachineLoad, during: MachineLoad | None = None) -> list[str]:
    """Return a line for everything that makes figures measured here doubtful.

    Parameters
    ----------
    before
        Load before anything was started.
    during
        Load while a sweep ran, where one did.
    """
    lines = []
    first = "now" if during is None else "before the start"
    for load, moment in ((before, first), (during, "during the sweep")):
        if load is None:
            continue
        if load.others_share > BUSY_SHARE:
            lines.append(
                f"busy machine: other programs used {load.others_share:.0%} of all CPUs {moment}"
            )
        if load.steal_share > STEAL_SHARE:
            lines.append(
                f"busy host: the hypervisor withheld {load.steal_share:.0%} of all CPUs {moment}"
            )
    if before.cpu_some_avg10 is not None and before.cpu_some_avg10 > PRESSURE_PERCENT:
        lines.append(
            f"busy machine: tasks waited for a CPU {before.cpu_some_avg10:.0f} % of ten "
            f"seconds {first}"
        )
    return lines


def _pressure(proc: Path) -> float | None:
    try:
        first = (proc / "pressure" / "cpu").read_text().splitlines()[0]
        return float(dict(pair.split("=") for pair in first.split()[1:])["avg10"])
    except (OSError, LookupError, ValueError):
        return None


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
