"""Tables of all events, and totals, read back by other people's code."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from export_case import HOSTILE, case

from contention_lab.cli.export import _FORMATS, command
from contention_lab.export.registry import FORMATS
from contention_lab.report.visible_text import name as visible_name
from contention_lab.trace import TraceBuilder


def written(name: str) -> bytes:
    sink = io.BytesIO()
    FORMATS[name].write(case(), sink, None)
    return sink.getvalue()


def test_csv_has_a_line_for_each_event_by_its_start() -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv").decode())))

    assert [row["event"] for row in rows] == ["hold", "wait", "hold", "hold", "wait"]
    assert [int(row["start_ns"]) for row in rows] == sorted(int(row["start_ns"]) for row in rows)
    wait = rows[1]
    assert (wait["lock"], wait["thread"], wait["outcome"]) == ("catalog", "reader", "acquired")
    assert (wait["start_ns"], wait["end_ns"], wait["spin_ns"]) == ("10000", "100000", "60000")
    assert wait["site"] == "/srv/catalog.py:20 Catalog.get"
    assert wait["holder_site"] == "/srv/catalog.py:40 Catalog.refresh"
    assert rows[0]["outcome"] == rows[0]["holder"] == ""
    assert rows[4]["lock"] == visible_name(HOSTILE)


def test_parquet_says_the_same_as_csv() -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(written("parquet"))).to_pylist()
    rows = list(csv.DictReader(io.StringIO(written("csv").decode())))

    assert [{key: str(value) for key, value in row.items()} for row in table] == rows


def test_prometheus_reads_the_totals() -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    families = {
        family.name: family
        for family in parser.text_string_to_metric_families(written("openmetrics").decode())
    }

    waited = families["contention_lab_lock_wait_seconds"]
    totals = {sample.labels["lock"]: sample.value for sample in waited.samples}
    assert waited.type == "counter"
    assert totals["catalog"] == pytest.approx(90e-6)
    assert totals[visible_name(HOSTILE)] == pytest.approx(20e-6)


def test_the_help_names_every_format() -> None:
    assert [*_FORMATS] == [*FORMATS]


@pytest.mark.parametrize("name", [*FORMATS])
def test_a_file_is_written_beside_the_trace(name: str, tmp_path: Path) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    trace = saved(tmp_path)

    result = CliRunner().invoke(command, [str(trace), "--format", name])

    assert result.exit_code == 0, result.output
    assert Path(result.stdout.strip()) == trace.with_suffix(FORMATS[name].suffix)
    assert trace.with_suffix(FORMATS[name].suffix).stat().st_size > 0
    assert not list(tmp_path.glob("*.partial"))


def test_a_folder_that_is_missing_is_named_by_the_file_that_was_asked_for(tmp_path: Path) -> None:
    wanted = tmp_path / "nowhere" / "run.csv"

    result = CliRunner().invoke(
        command, [str(saved(tmp_path)), "--format", "csv", "-o", str(wanted)]
    )

    assert result.exit_code == 1
    assert f"{wanted}: No such file or directory; check the path" in result.stderr


def test_standard_output_gets_the_bytes_and_nothing_else(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(saved(tmp_path)), "-f", "collapsed", "-o", "-"])

    assert result.stdout == "catalog 10\n"
    assert "open it with" in result.stderr


def test_the_trace_is_not_written_over(tmp_path: Path) -> None:
    trace = saved(tmp_path)
    before = trace.read_bytes()

    result = CliRunner().invoke(command, [str(trace), "-f", "csv", "-o", str(trace)])

    assert result.exit_code == 2
    assert "is the trace itself" in result.stderr
    assert trace.read_bytes() == before


def test_a_view_is_refused_where_everything_is_written(tmp_path: Path) -> None:
    arguments = [str(saved(tmp_path)), "-f", "csv", "--view", "spin"]
    result = CliRunner().invoke(command, arguments)

    assert result.exit_code == 2
    assert "leave it out" in result.stderr


def test_a_missing_trace_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "no.clt"), "-f", "csv"])

    assert result.exit_code == 1
    assert "no.clt" in result.stderr


def test_numbers_beyond_what_floats_hold_stay_exact() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock(), builder.add_thread()
    builder.add_hold(lock, thread, 2**53 - 3, 2**53 - 1)
    from contention_lab.export.event_table import TextColumn, event_table
    from contention_lab.trace import parse

    start = event_table(parse(builder.bytes()))["start_ns"]

    assert not isinstance(start, TextColumn)
    assert np.array_equal(start, [2**53 - 3])


def saved(folder: Path) -> Path:
    path = folder / "run.clt"
    builder = TraceBuilder()
    lock, thread, other = (
        builder.add_lock(name="catalog"),
        builder.add_thread(),
        builder.add_thread(),
    )
    builder.add_hold(lock, other, 0, 20)
    builder.add_wait(lock, thread, 10, 20)
    builder.write(path)
    return path
