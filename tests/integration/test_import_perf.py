"""A native program that spins, sampled by perf itself: the spinning is seen in its text."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import contention_lab as cl
from contention_lab.cli import main

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = r"""
#include <pthread.h>
#include <stdatomic.h>
static atomic_int taken;
#define OWN __attribute__((noinline))
OWN void spin_lock(atomic_int *lock) {
    while (atomic_exchange(lock, 1))
        while (atomic_load(lock))
            ;
}
OWN double kernel(int n, double x) {
    for (int i = 0; i < n; i++)
        x = x * 1.0000001 + 0.1;
    return x;
}
OWN double server_register(double x) {
    spin_lock(&taken);
    x = kernel(1000, x);
    atomic_store(&taken, 0);
    return x + 1;
}
OWN double server_backward(double x) {
    spin_lock(&taken);
    x = kernel(2000000, x);
    atomic_store(&taken, 0);
    return x + 1;
}
OWN void *worker(void *unused) {
    volatile double x = 1;
    for (int i = 0; i < 60; i++)
        x = server_register(i % 4 ? x : server_backward(x));
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    return 0;
}
"""


@pytest.mark.parametrize("fields", [[], ["-F", "comm,pid,tid,time,event,ip,sym,dso"]])
def test_the_spinning_of_a_native_program_is_seen(
    tmp_path: Path, fields: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    perf, compiler = shutil.which("perf"), shutil.which("gcc")
    if perf is None or compiler is None:
        pytest.skip("perf and gcc are not both installed")
    (tmp_path / "seed.c").write_text(PROGRAM)
    program, data = str(tmp_path / "seed"), str(tmp_path / "perf.data")
    build = [compiler, "-O1", "-g", "-o", program, str(tmp_path / "seed.c"), "-lpthread"]
    subprocess.run(build, check=True)
    how = ["-e", "cpu-clock", "-F", "500", "--call-graph", "dwarf,4096"]
    run = [perf, "record", *how, "-o", data, program]
    recorded = subprocess.run(run, capture_output=True, text=True, timeout=100, check=False)
    if recorded.returncode:
        pytest.skip(f"perf may not record here: {recorded.stderr.strip()[:200]}")
    script = [perf, "script", "--header", "-i", data, *fields]
    shown = subprocess.run(script, capture_output=True, text=True, check=True)
    (tmp_path / "seed.perf").write_text(shown.stdout)

    assert main(["import", str(tmp_path / "seed.perf")]) == 0
    capsys.readouterr()
    diagnosis = cl.diagnose(cl.load(tmp_path / "seed.clt"))

    assert diagnosis.findings, diagnosis.summary
    finding = diagnosis.findings[0]
    assert finding.lock is not None
    assert finding.lock.name == "spin_lock"
    victims = {party.site.function for party in finding.victims if party.site is not None}
    assert victims <= {"server_register", "server_backward", "worker"}
    assert {party.site.function for party in finding.culprits if party.site is not None} <= {
        "server_register",
        "server_backward",
    }
