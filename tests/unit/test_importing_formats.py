"""`perf script` text and collapsed stacks, in the forms that tools write."""

from __future__ import annotations

import pytest

from contention_lab.importing import collapsed, perf_script
from contention_lab.importing.imported_trace import read
from contention_lab.importing.stack_file import StackFileError, StackThread
from contention_lab.sampling.frame import SampledFrame

FRAMES = "\t    1254 kernel+0x24 (/opt/prog)\n\t    1323 worker+0x23 (/opt/prog)\n"
KERNEL = (SampledFrame("kernel", image="/opt/prog"), SampledFrame("worker", image="/opt/prog"))


def perf(text: str) -> perf_script.StackFile:
    return perf_script.read(text.splitlines(), "x.perf")


def folded(text: str) -> perf_script.StackFile:
    return collapsed.read(text.splitlines(), "x.folded")


@pytest.mark.parametrize(
    ("head", "thread", "time_ns", "weight", "event"),
    [
        (
            "prog  9336   633.502723:    2000000 cpu-clock: ",
            StackThread(0, 9336, "prog"),
            633_502_723_000,
            2e6,
            "cpu-clock",
        ),
        (
            "prog 9333/9336 [001] 633.502723: cycles:ppp: ",
            StackThread(9333, 9336, "prog"),
            633_502_723_000,
            1.0,
            "cycles",
        ),
        (
            "Web Content 12 3/4 [000] 1.000000001: 7 cpu/event=0x3c/: ",
            StackThread(3, 4, "Web Content 12"),
            1_000_000_001,
            7.0,
            "cpu/event=0x3c/",
        ),
        (
            ":77    77 [003] 5.5:  1 sched:sched_switch: prev_comm=a b prev_pid=7 ==> next_comm=c",
            StackThread(0, 77, ":77"),
            5_500_000_000,
            1.0,
            "sched:sched_switch",
        ),
        ("prog  9336 ", StackThread(0, 9336, "prog"), None, 1.0, ""),
        (" 9336   633.5: ", StackThread(0, 9336, ""), 633_500_000_000, 1.0, ""),
        ("prog 9336 633.5:  200 ", StackThread(0, 9336, "prog"), 633_500_000_000, 200.0, ""),
        (" 9333 ", StackThread(0, 9333, ""), None, 1.0, ""),
        ("  633.5: cpu-clock:u: ", StackThread(), 633_500_000_000, 1.0, "cpu-clock"),
    ],
)
def test_a_sample_is_read_whatever_its_line_holds(
    head: str, thread: StackThread, time_ns: int | None, weight: float, event: str
) -> None:
    (sample,) = perf(f"{head}\n{FRAMES}\n").samples

    assert sample.thread == thread
    assert (sample.time_ns, sample.weight, sample.event) == (time_ns, weight, event)
    assert sample.frames == KERNEL


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("\t  12 kernel", SampledFrame("kernel")),
        ("\t  12", SampledFrame("[unknown]")),
        ("\t  7f12 [unknown] ([unknown])", SampledFrame("[unknown]")),
        ("\t  7f12 [unknown] (/lib/x.so)", SampledFrame("[unknown]", image="/lib/x.so")),
        (
            "\tffffffff81775b9a elf_load+0x28a ([kernel.kallsyms])",
            SampledFrame("elf_load", image="[kernel.kallsyms]"),
        ),
        ("\t  12 spin::lock+0x5 (inlined)", SampledFrame("spin::lock")),
        (
            "\t  12 std::function<void (int)>::operator()(int) const+0x12 (/a b/libx.so.1)",
            SampledFrame(
                "std::function<void (int)>::operator()(int) const", image="/a b/libx.so.1"
            ),
        ),
        ("\t  12 f+0x1 (/memfd:x (deleted))", SampledFrame("f", image="/memfd:x (deleted)")),
        (
            "\t  12 py::Pool.run:/opt/app.py+0x9 (/tmp/perf-7.map)",
            SampledFrame("Pool.run", "/opt/app.py"),
        ),
    ],
)
def test_a_frame_is_taken_apart(line: str, frame: SampledFrame) -> None:
    (sample,) = perf(f"prog 1 2.0: cycles:\n{line}\n\n").samples

    assert sample.frames == (frame,)


def test_a_stack_may_stand_beside_its_sample() -> None:
    text = "prog 1 2.0:  3 page-faults:  ffffffff81775b9a f+0x2 ([kernel.kallsyms])\n" * 2

    assert [sample.frames[0].function for sample in perf(text).samples] == ["f", "f"]


def test_lines_of_sources_are_no_frames() -> None:
    text = (
        "prog 1/2 3.0: cycles: \n\t  12 f+0x1\n  file.c:12 (inlined)\n\t  12 g (/x)\n  file.c:9\n"
        "\t  13 h ([kernel.kallsyms])\n  [kernel.kallsyms][ffffffff813ae293]\n\n"
    )
    (sample,) = perf(text).samples

    assert [frame.function for frame in sample.frames] == ["f", "g", "h"]


def test_headers_records_and_lost_samples_are_told_apart() -> None:
    text = (
        "# ========\n# nrcpus online : 8\n# os release : 6.1\n# arch : x86_64\n# ========\n#\n"
        "prog 1 [000] 0.0: PERF_RECORD_MMAP2 1/1: [0x1(0x2) @ 0]: r-xp /opt/prog\n"
        f"prog 1 [000] 1.0: 5 cycles: \n{FRAMES}\n"
        "prog 1 [000] 2.0: PERF_RECORD_LOST lost 12\n"
    )
    file = perf(text)

    assert len(file.samples) == 1
    assert file.lost == 12
    assert file.machine == {
        "cores": 8,
        "system": "Linux",
        "release": "6.1",
        "processor": "x86_64",
    }


@pytest.mark.parametrize(
    ("line", "thread", "functions"),
    [
        ("main;work;spin_lock 12", StackThread(), ["spin_lock", "work", "main"]),
        ("prog-9/11;main;f 1", StackThread(9, 11, "prog"), ["f", "main"]),
        ("prog-?/11;main;f 1", StackThread(0, 11, "prog"), ["f", "main"]),
        ("thread (4711): w 1;main;f 1", StackThread(0, 4711, "w 1"), ["f", "main"]),
        ('process 3:"python b.py";thread (0x7F): w;f 1', StackThread(3, 127, "w"), ["f"]),
        ("[http-nio-1 tid=99];run;f 1", StackThread(0, 99, "http-nio-1"), ["f", "run"]),
        ("P3;T4;f 1", StackThread(3, 4), ["f"]),
        ("MainThread;f 1", StackThread(0, 0, "MainThread"), ["f"]),
        ("one 1", StackThread(), ["one"]),
        (
            "operator new(unsigned long);f g 1",
            StackThread(),
            ["f g", "operator new(unsigned long)"],
        ),
    ],
)
def test_the_thread_of_a_collapsed_stack_is_found(
    line: str, thread: StackThread, functions: list[str]
) -> None:
    (sample,) = folded(line).samples

    assert sample.thread == thread
    assert [frame.function for frame in sample.frames] == functions


def test_frames_of_python_and_of_libraries_are_told_apart() -> None:
    (sample,) = folded("w (a.py:3);sqlite3_step (libsqlite3.so.0);futex_[k];f_[i] 2").samples

    assert sample.frames == (
        SampledFrame("f"),
        SampledFrame("futex", image="[kernel]"),
        SampledFrame("sqlite3_step", image="libsqlite3.so.0"),
        SampledFrame("w", "a.py", 3),
    )


def test_counts_may_be_fractions_and_nothing() -> None:
    assert [one.weight for one in folded("a 1.5\n\n# x\nb 0\nc 2e1\r\n").samples] == [1.5, 20.0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a;b 1\nfoo;bar\n", "x:2: no stack with a number at the end, as in `main;work 12`: 'foo"),
        ("a;b 1\na;b -3\n", "x:2: -3 samples: a number of samples is 0 or more"),
        ("a;b 1\na;b nan\n", "x:2: no stack with a number"),
        ("a;b 1\n12\n", "x:2: no stack with a number"),
        ("a;b 1 2\n", "x:1: two numbers: a difference of two profiles; import one of them"),
        ("", "x: it is empty"),
        ("\n\n", "x: it is empty"),
        ("a;b 0\n", "x: no stack in it; it is empty"),
        ("hello world\n", "x: neither text of `perf script` nor collapsed stacks"),
        ("prog 1/2 3.0: 1 cycles:\n\t12 f (x)\n\n?? what\n", "x:4: neither a sample nor a frame"),
        ("prog 1/2 3.0: 1 cycles:\n\nprog 1/2 3.1: 1 cycles:\n\n", "record them with -g"),
    ],
)
def test_what_cannot_be_read_is_one_line(text: str, complaint: str) -> None:
    with pytest.raises(StackFileError) as error:
        read(text.splitlines(), "x", None)

    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_each_format_is_recognised() -> None:
    assert read(f"prog 1 2.0: c:\n{FRAMES}".splitlines(), "x", None).source == "perf script"
    assert read(f"prog 1 \n{FRAMES}".splitlines(), "x", None).source == "perf script"
    assert read(FRAMES.splitlines(), "x", None).source == "perf script"
    assert read("# captured on: now\nx 1 2.0: c:\n\t12 f\n".splitlines(), "x", None).samples
    assert read(["a;b 1", "a;c 2"], "x", None).source == "collapsed stacks"
    assert read(["a 1"], "x", None).source == "collapsed stacks"
