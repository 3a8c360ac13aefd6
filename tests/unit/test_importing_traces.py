"""What an imported file becomes: a trace of samples, of which nothing wrong is said."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from perf_scene import perf_text

import contention_lab as cl
from contention_lab.cli import main
from contention_lab.importing.imported_trace import imported_trace, read
from contention_lab.importing.stack_file import StackFileError
from contention_lab.trace import parse

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.diagnosis import Diagnosis


def diagnosed(text: str, **options: str) -> Diagnosis:
    file = read(text.splitlines(), "x", None)
    return cl.diagnose(parse(imported_trace(file, "x", **options).bytes()))  # type: ignore[arg-type]


def collapsed_text(text: str) -> str:
    """Return `perf script` text as collapsed stacks, without threads and times."""
    stacks = Counter(
        ";".join(frame.function for frame in reversed(sample.frames))
        for sample in read(text.splitlines(), "x", None).samples
    )
    return "".join(f"prog;{stack} {count}\n" for stack, count in stacks.items())


def names(parties: object) -> list[str]:
    return [party.site.function for party in parties]  # type: ignore[attr-defined]


def test_spinning_in_one_function_is_laid_to_the_one_that_has_the_lock() -> None:
    diagnosis = diagnosed(perf_text())
    finding = diagnosis.findings[0]

    assert diagnosis.verdict == "spin-collapse"  # nothing says how many cores there are
    assert finding.lock is not None
    assert finding.lock.name == "spin_lock"
    assert names(finding.victims)[0] == "server_register"
    assert names(finding.culprits)[0] == "server_backward"
    assert finding.culprits[0].share > 0.8
    assert "inferred" in diagnosis.summary
    assert "By samples" in diagnosis.summary


def test_a_culprit_that_never_waits_itself_is_found() -> None:
    diagnosis = diagnosed(
        perf_text(backward_waits=True).replace(
            "\n\t    1000 spin_lock+0x4 (/opt/prog)\n\t    1001 server_backward",
            "\n\t    1000 spin_lock+0x4 (/opt/prog)\n\t    1001 server_register",
        )
    )
    finding = diagnosis.findings[0]

    assert names(finding.victims) == ["server_register"]
    assert names(finding.culprits)[0] == "server_backward"


def test_a_core_for_every_thread_makes_it_a_matter_of_the_holds() -> None:
    assert diagnosed(f"# nrcpus online : 8\n#\n{perf_text()}").verdict == "serialised-by-lock"
    assert diagnosed(f"# nrcpus online : 2\n#\n{perf_text()}").verdict == "spin-collapse"


def test_shares_have_an_interval_and_it_covers_the_truth() -> None:
    text = perf_text()
    truth = text.count("spin_lock+") / text.count("cpu-clock")
    evidence = diagnosed(perf_text(seconds=2.0)).findings[0].evidence

    assert evidence["spin_of_cpu_low"] < truth < evidence["spin_of_cpu_high"]  # type: ignore[operator]


def test_nobody_is_accused_where_nobody_spins() -> None:
    diagnosis = diagnosed(perf_text(locked=False).replace("spin_lock", "kernel"))

    assert diagnosis.verdict == "healthy"
    assert diagnosis.findings == ()


def test_without_times_and_threads_the_spinning_is_told_and_no_holder() -> None:
    diagnosis = diagnosed(collapsed_text(perf_text()))
    finding = diagnosis.findings[0]

    assert names(finding.victims)[0] == "server_register"
    assert finding.culprits == ()
    assert "who has it, the samples do not show" in diagnosis.summary


def test_what_the_samples_cannot_show_is_told() -> None:
    said = " ".join(diagnosed(perf_text()).not_seen)

    assert "perf script" in said
    assert "sleep" in said


def test_other_processes_events_and_idle_cores_are_left_out_and_told() -> None:
    other = "other 5/5 [001] 100.5: 2000000 cpu-clock:u: \n\t 12 f (/x)\n\n"
    fault = "prog 900/900 [000] 100.5: 1 page-faults: \n\t 12 f (/x)\n\n"
    idle = "swapper 0/0 [000] 100.5: 2000000 cpu-clock: \n\t 12 halt ([kernel.kallsyms])\n\n"
    lost = "prog 900/900 [000] 100.5: PERF_RECORD_LOST lost 3\n"
    diagnosis = diagnosed(perf_text(seconds=1.0) + other + fault + idle + lost)
    said = "; ".join(diagnosis.not_seen)

    assert "samples of other processes (other 5)" in said
    assert "samples of page-faults" in said
    assert "samples of idle cores" in said
    assert "3 times samples: lost by the profiler" in said


def test_a_process_and_an_event_can_be_chosen() -> None:
    text = "a 5/5 1.0: 9 cycles: \n\t 12 f (/x)\n\nb 6/6 1.0: 9 faults: \n\t 12 g (/x)\n\n"
    file = read(text.splitlines(), "x", None)
    trace = parse(imported_trace(file, "x", event="faults", process="b").bytes())

    assert [frame.function for frame in trace.frames.values()] == ["g"]
    with pytest.raises(StackFileError, match="x: no samples of misses; there are: cycles, faults"):
        imported_trace(file, "x", event="misses")
    with pytest.raises(StackFileError, match="x: no samples of a process c; there are: a"):
        imported_trace(file, "x", event="cycles", process="c")


def test_it_becomes_a_trace_that_report_and_diagnose_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out.perf").write_text(perf_text(seconds=1.0))

    assert main(["import", str(tmp_path / "out.perf")]) == 0
    assert "next: contention-lab diagnose" in capsys.readouterr().out
    assert main(["diagnose", "--json", str(tmp_path / "out.clt")]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["lock"]["name"] == "spin_lock"
    assert main(["report", str(tmp_path / "out.clt")]) == 0
    page = (tmp_path / "out.html").read_text()
    assert "server_backward" in page
    assert "By samples" in page


def test_a_file_that_is_no_trace_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out.perf").write_text(perf_text(seconds=0.1))
    (tmp_path / "out.clt").write_text("mine")

    assert main(["import", str(tmp_path / "out.perf")]) == 1
    assert "not a trace and is not replaced" in capsys.readouterr().err
    assert (tmp_path / "out.clt").read_text() == "mine"


def test_a_mistake_names_the_file_and_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.folded").write_text("a;b 1\na;b\n")

    assert main(["import", str(tmp_path / "x.folded")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "x.folded:2: no stack with a number at the end" in said


def test_two_locks_that_one_function_takes_accuse_nobody() -> None:
    other = perf_text().replace("server_", "cache_").replace("900/90", "900/91")
    diagnosis = diagnosed(perf_text() + other)
    finding = diagnosis.findings[0]

    assert {"server_register", "cache_register"} <= {*names(finding.victims)}
    assert finding.culprits == ()
    assert "who has it, the samples do not show" in diagnosis.summary


def test_code_beside_the_lock_is_not_accused() -> None:
    culprits = {
        frame.function
        for party in diagnosed(perf_text()).findings[0].culprits
        for frame in (party.site,)
        if frame is not None
    }

    assert culprits <= {"server_backward", "server_register"}  # never kernel, train or worker
