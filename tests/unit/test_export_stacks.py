"""Stacks for speedscope, pprof and flamegraph.pl, read back by other people's code where it is."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from export_case import case

from contention_lab.analysis.weighted_stacks import VIEWS, View, weighted_stacks
from contention_lab.export.protobuf_wire import varint
from contention_lab.export.registry import FORMATS
from contention_lab.trace import TraceBuilder, parse

PROFILE_FIELDS: dict[str, list[tuple[str, int, str, bool]]] = {
    "ValueType": [("type", 1, "int64", False), ("unit", 2, "int64", False)],
    "Label": [("key", 1, "int64", False), ("str", 2, "int64", False)],
    "Sample": [
        ("location_id", 1, "uint64", True),
        ("value", 2, "int64", True),
        ("label", 3, "Label", True),
    ],
    "Line": [("function_id", 1, "uint64", False), ("line", 2, "int64", False)],
    "Location": [("id", 1, "uint64", False), ("line", 4, "Line", True)],
    "Function": [
        ("id", 1, "uint64", False),
        ("name", 2, "int64", False),
        ("filename", 4, "int64", False),
        ("start_line", 5, "int64", False),
    ],
    "Profile": [
        ("sample_type", 1, "ValueType", True),
        ("sample", 2, "Sample", True),
        ("location", 4, "Location", True),
        ("function", 5, "Function", True),
        ("string_table", 6, "string", True),
        ("time_nanos", 9, "int64", False),
        ("duration_nanos", 10, "int64", False),
    ],
}


def written(name: str, view: View | None = None) -> bytes:
    sink = io.BytesIO()
    FORMATS[name].write(case(), sink, view)
    return sink.getvalue()


def test_collapsed_stacks_have_the_lock_innermost() -> None:
    lines = written("collapsed").decode().splitlines()

    expected = (
        "main (srv/shop.py:90);Catalog.get (srv/catalog.py:20);catalog (srv/catalog.py:15) 90000"
    )
    assert expected in lines
    assert len(lines) == 2


def test_collapsed_stacks_of_culprits_begin_with_the_lock() -> None:
    lines = written("collapsed", "culprit").decode().splitlines()

    assert any(
        line == "catalog (srv/catalog.py:15);main (srv/shop.py:90);"
        "Catalog.refresh (srv/catalog.py:40) 90000"
        for line in lines
    )


@pytest.mark.parametrize("view", VIEWS)
def test_a_line_of_collapsed_stacks_is_read_back_whatever_the_names(view: View) -> None:
    total = 0
    for line in written("collapsed", view).decode().splitlines():
        stack, _, count = line.rpartition(" ")
        assert all(stack.split(";"))
        assert "\x00" not in stack
        total += int(count)

    assert total == sum(stack.ns for stack in weighted_stacks(case(), view))


def test_speedscope_has_a_profile_for_each_view() -> None:
    document = json.loads(written("speedscope"))
    frames = document["shared"]["frames"]

    assert len(document["profiles"]) == 6
    for profile, view in zip(document["profiles"], VIEWS, strict=True):
        assert profile["endValue"] == sum(stack.ns for stack in weighted_stacks(case(), view))
        assert sum(profile["weights"]) == profile["endValue"]
    victim = document["profiles"][0]
    stacks = [[frames[at]["name"] for at in sample] for sample in victim["samples"]]
    assert ["main", "Catalog.get", "catalog"] in stacks


def test_speedscope_accepts_it_by_its_own_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    folder = shutil.which("speedscope")
    if folder is None:
        pytest.skip("the npm package speedscope, which brings its schema, is not installed")
    found = list(Path(folder).resolve().parents[1].rglob("file-format-schema.json"))
    jsonschema.validate(json.loads(written("speedscope")), json.loads(found[0].read_text()))


def test_go_reads_the_profile(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go, whose `go tool pprof` reads it, is not installed")
    path = tmp_path / "waits.pb.gz"
    path.write_bytes(written("pprof"))

    def shown(*options: str) -> str:
        command = [go, "tool", "pprof", *options, str(path)]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout

    by_delay, by_count = shown("-top"), shown("-top", "-sample_index=contentions")

    assert re.search(r"^\s*90us +\S+ +\S+ +90us +\S+ +catalog", by_delay, re.M), by_delay
    assert re.search(r"Showing nodes accounting for 110us", by_delay)
    assert re.search(r"Showing nodes accounting for 2, ", by_count)
    assert "reader" not in shown("-top", "-tagfocus=lock=catalog")
    assert "90us" in shown("-traces", "-tagfocus=lock=catalog")


def test_the_profile_is_read_by_the_protocol_buffer_library() -> None:
    profile = _message(gzip.decompress(written("pprof")))
    texts = list(profile.string_table)
    functions = {one.id: texts[one.name] for one in profile.function}
    places = {
        one.id: (functions[one.line[0].function_id], one.line[0].line) for one in profile.location
    }

    assert texts[0] == ""
    assert [(texts[kind.type], texts[kind.unit]) for kind in profile.sample_type] == [
        ("contentions", "count"),
        ("delay", "nanoseconds"),
    ]
    samples = {
        tuple(places[one] for one in sample.location_id): list(sample.value)
        for sample in profile.sample
    }
    assert samples[("catalog", 15), ("Catalog.get", 20), ("main", 90)] == [1, 90_000]
    assert {texts[sample.label[0].str] for sample in profile.sample} >= {"catalog"}


def _message(data: bytes) -> Any:
    """Return the profile, decoded by a schema put together from the documented field numbers."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    for name, fields in PROFILE_FIELDS.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            plain = {"int64": kinds.TYPE_INT64, "uint64": kinds.TYPE_UINT64}
            message.field.add(
                name=field,
                number=number,
                label=kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL,
                type=kinds.TYPE_STRING if kind == "string" else plain.get(kind, kinds.TYPE_MESSAGE),
                type_name=f".p.{kind}" if kind in PROFILE_FIELDS else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    profile = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))()
    profile.ParseFromString(data)
    return profile


def test_the_same_trace_gives_the_same_bytes() -> None:
    for name in FORMATS:
        if name != "parquet":
            assert written(name) == written(name)


@pytest.mark.parametrize(
    ("value", "encoded"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02")]
)
def test_integers_are_encoded_as_documented(value: int, encoded: bytes) -> None:
    assert varint(value) == encoded


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "parquet"])
def test_an_empty_trace_can_be_written(name: str) -> None:
    sink = io.BytesIO()
    FORMATS[name].write(parse(TraceBuilder().bytes()), sink, None)

    if FORMATS[name].suffix.endswith(".json"):
        json.loads(sink.getvalue())
