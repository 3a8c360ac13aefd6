"""`record --subprocesses`: one trace for each process, and no process that notices."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import contention_lab as cl

ROOT = Path(cl.__path__[0]).parent

USE = (
    "import threading\nlock = threading.Lock()\nfor _ in range(11):\n    with lock:\n        pass\n"
)


def record(
    folder: Path,
    text: str,
    *arguments: str,
    options: tuple[str, ...] = ("--subprocesses",),
    quiet: bool = True,
) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(textwrap.dedent(text))
    (folder / "use.py").write_text(USE)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "contention_lab",
            "record",
            *(("-q",) if quiet else ()),
            *options,
            "program.py",
            *arguments,
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
        env=environment(),
    )


def environment() -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths}


def children(folder: Path) -> list[cl.Trace]:
    traces = [cl.load(path) for path in sorted(folder.glob("program.*.clt"))]
    for trace in traces:
        assert Path(trace.path).name.split(".")[1].split("-")[0] == str(trace.pid)
    return traces


def unrecorded(folder: Path) -> list[dict[str, Any]]:
    notes = cl.load(folder / "program.clt").meta["not_seen"]
    return [note for note in notes if note["what"].startswith("child process")]


def uses(trace: cl.Trace, count: int = 11) -> int:
    """Return how many locks of the trace were acquired exactly that often."""
    counters = trace.counters
    return sum(
        int(counters["acquires"][counters["lock"] == lock].sum()) == count for lock in trace.locks
    )


EXECUTED = {
    "run": "subprocess.run([sys.executable, 'use.py'], check=True)",
    "with an environment": "subprocess.run([sys.executable, 'use.py'], env={'A': '1'}, check=True)",
    "with bytes": "subprocess.run([sys.executable, b'use.py'], env={b'A': b'1'}, check=True)",
    "without closing": "subprocess.run([sys.executable, 'use.py'], close_fds=False, check=True)",
    "through a shell": "subprocess.run(sys.executable + ' use.py', shell=True, check=True)",
    "os.system": "assert os.system(sys.executable + ' use.py') == 0",
    "os.posix_spawn": (
        "child = os.posix_spawn(sys.executable, ['python', 'use.py'], os.environ)\n"
        "assert os.waitpid(child, 0)[1] == 0"
    ),
    "os.spawnv": "assert os.spawnv(os.P_WAIT, sys.executable, ['python', 'use.py']) == 0",
    "of a child": (
        "inner = 'import subprocess, sys; subprocess.run([sys.executable, \"use.py\"])'\n"
        "subprocess.run([sys.executable, '-c', inner], check=True)"
    ),
    "after a change of folder": (
        "use = os.path.abspath('use.py')\nos.mkdir('d')\nos.chdir('d')\n"
        "subprocess.run([sys.executable, use], check=True)"
    ),
}


@pytest.mark.parametrize("way", EXECUTED)
def test_a_python_that_is_executed_leaves_a_trace_of_its_own(way: str, tmp_path: Path) -> None:
    done = record(tmp_path, f"import os, subprocess, sys\n{EXECUTED[way]}\n")
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")

    assert cl.load(tmp_path / "program.clt").complete
    traces = children(tmp_path)
    assert all(trace.complete for trace in traces)
    assert sum(map(uses, traces)) == 1


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_processes_of_multiprocessing_leave_traces(method: str, tmp_path: Path) -> None:
    done = record(
        tmp_path,
        """
        import multiprocessing, sys, threading
        def work(result):
            exec(open("use.py").read(), {})
            result.put(multiprocessing.current_process().name)
        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[1])
            result = context.SimpleQueue()
            processes = [context.Process(target=work, args=(result,)) for _ in range(2)]
            for process in processes: process.start()
            for process in processes: process.join(); assert process.exitcode == 0
            print(len({result.get(), result.get()}))
        """,
        method,
    )
    assert (done.stdout, done.stderr) == ("2\n", "")

    used = [trace for trace in children(tmp_path) if uses(trace)]
    assert len(used) == 2
    assert all(trace.complete for trace in used)


def test_a_forked_child_leaves_a_trace_however_it_ends(tmp_path: Path) -> None:
    done = record(
        tmp_path,
        """
        import os, sys
        for ending in (lambda: os._exit(0), lambda: sys.exit(0)):
            child = os.fork()
            if child == 0:
                import use
                ending()
            assert os.waitpid(child, 0)[1] == 0
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")

    traces = children(tmp_path)
    assert [(trace.complete, uses(trace)) for trace in traces] == [(True, 1), (True, 1)]


def test_what_a_forked_child_executes_leaves_a_trace_and_not_the_fork(tmp_path: Path) -> None:
    done = record(
        tmp_path,
        """
        import os, sys
        child = os.fork()
        if child == 0:
            os.environ["PATH"] = "/nowhere:" + os.path.dirname(sys.executable)
            os.execvp("python", ["python", "use.py"])
        assert os.waitpid(child, 0)[1] == 0
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")

    (trace,) = children(tmp_path)
    assert uses(trace) == 1
    assert trace.complete


def test_a_program_that_executes_another_leaves_both_traces(tmp_path: Path) -> None:
    done = record(tmp_path, "import os, sys, use\nos.execv(sys.executable, ['python', 'use.py'])")
    assert (done.returncode, done.stderr) == (0, "")

    first = cl.load(tmp_path / "program.clt")
    (second,) = children(tmp_path)
    assert first.pid == second.pid
    assert uses(first) == uses(second) == 1
    assert first.complete
    assert second.complete


def test_a_failed_execution_does_not_end_the_recording(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("no program at all")
    (tmp_path / "broken").chmod(0o755)
    done = record(
        tmp_path,
        """
        import os
        for path in ("nowhere", "./broken"):
            try:
                os.execv(path, [path])
            except OSError as error:
                print(error)
        import use
        """,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2

    assert sum(map(uses, [cl.load(tmp_path / "program.clt"), *children(tmp_path)])) == 1


def test_children_see_the_environment_they_were_given(tmp_path: Path) -> None:
    show = "import os, sys, use; print(sorted(os.environ.items()), sys.path, sys.argv, sys.flags)"
    program = f"""
        import os, subprocess, sys
        print(sorted(os.environ.items()))
        for env in (None, {{"A": "1"}}, dict(os.environ, PYTHONPATH="a:b")):
            done = subprocess.run([sys.executable, "-W", "error", "-c", {show!r}, "x"], env=env,
                                  capture_output=True, text=True)
            print(done)
        """
    done = record(tmp_path, program)
    plain = subprocess.run(
        [sys.executable, "program.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )

    assert done.stdout == plain.stdout
    assert len(children(tmp_path)) == 3


CLOSED = {
    "subprocess": "subprocess.run([sys.executable, '-B', '-I', 'use.py'])",
    "an option with a value before it": (
        "subprocess.run([sys.executable, '-W', 'ignore', '-X', 'utf8', '-BI', 'use.py'])"
    ),
    "a shell": "subprocess.run(f'true && \"{sys.executable}\" -I use.py', shell=True)",
    "os.system": "os.system(f'{sys.executable} -I use.py')",
    "os.posix_spawn": (
        "os.waitpid(os.posix_spawn(sys.executable, ['python', '-I', 'use.py'], os.environ), 0)"
    ),
    "os.spawnv": "os.spawnv(os.P_WAIT, sys.executable, ['python', '-I', 'use.py'])",
    "os.execv": "os.execv(sys.executable, ['python', '-I', 'use.py'])",
    "a child": (
        'inner = \'import subprocess, sys; subprocess.run([sys.executable, "-I", "use.py"])\'\n'
        "subprocess.run([sys.executable, '-c', inner])"
    ),
}


@pytest.mark.parametrize("way", CLOSED)
def test_a_python_that_cannot_be_recorded_is_said_to_be_missing(way: str, tmp_path: Path) -> None:
    done = record(
        tmp_path,
        f"import os, subprocess, sys\nsubprocess.run(['true', '-I'])\n{CLOSED[way]}\n",
        quiet=False,
    )

    assert done.returncode == 0
    assert re.search(
        r"; 1 child process was not recorded \(python[\d.]*: started with -I, [a-z ]+\); ",
        done.stderr,
    )
    (note,) = unrecorded(tmp_path)
    assert note["count"] == 1
    assert not [*tmp_path.glob("*.unrecorded")]


@pytest.mark.parametrize(
    "arguments",
    ["'use.py', '-I'", "'-c', '1', '-E'", "'-m', 'use', '-S'", "'-W', 'ignore', 'use.py'", "'-u'"],
)
def test_options_of_a_childs_program_shut_nobody_out(arguments: str, tmp_path: Path) -> None:
    done = record(
        tmp_path,
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, {arguments}], stdin=subprocess.DEVNULL)\n",
        quiet=False,
    )

    assert done.returncode == 0
    assert "not recorded" not in done.stderr
    assert unrecorded(tmp_path) == []


def test_a_python_without_a_recorder_of_its_own_says_that_it_is_missing(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    (foreign / "contention_lab").mkdir(parents=True)
    (foreign / "contention_lab" / "__init__.py").write_text("raise ImportError('built for 3.14')")
    done = record(
        tmp_path,
        """
        import os, subprocess, sys
        for _ in range(2):
            subprocess.run([sys.executable, "use.py"], env={**os.environ, "PYTHONPATH": "foreign"})
        """,
        quiet=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "; 2 child processes were not recorded (of Python 3." in done.stderr
    (note,) = unrecorded(tmp_path)
    assert (note["why"], note["count"]) == ("built for 3.14", 2)


def test_without_the_option_children_are_left_alone(tmp_path: Path) -> None:
    done = record(
        tmp_path,
        """
        import multiprocessing, os, subprocess, sys
        show = "import os, sys; print([k for k in os.environ if 'CONTENTION' in k], "
        show += "[m for m in sys.modules if m.startswith('contention')])"
        for env in (None, {"A": "1"}):
            print(subprocess.run([sys.executable, "-c", show], env=env, capture_output=True).stdout)
        child = os.fork()
        if child == 0:
            import use
            os._exit(0)
        os.waitpid(child, 0)
        """,
        options=(),
    )
    assert (done.stdout, done.stderr) == ("b'[] []\\n'\n" * 2, "")
    assert [path.name for path in tmp_path.glob("*.clt")] == ["program.clt"]
    assert cl.load(tmp_path / "program.clt").complete


def test_an_original_sitecustomize_and_an_old_python_are_not_disturbed(tmp_path: Path) -> None:
    folder = tmp_path / "custom"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import builtins\nbuiltins.CUSTOM = __file__\n")
    program = "import sys; print(CUSTOM, sys.modules['sitecustomize'].__file__, sys.path)"
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([str(folder), env["PYTHONPATH"]])

    answers = {
        subprocess.run(
            [sys.executable, *before, "-c", program],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=env,
            check=True,
        ).stdout
        for before in ((), ("-m", "contention_lab", "record", "-q"))
    }

    assert len(answers) == 1
    assert str(folder) in answers.pop()


def test_traces_of_an_earlier_run_are_removed_and_other_files_are_not(tmp_path: Path) -> None:
    run = "import subprocess, sys\nsubprocess.run([sys.executable, 'use.py'], check=True)\n"
    assert record(tmp_path, run).returncode == 0
    (tmp_path / "program.12.clt").write_text("mine")
    (tmp_path / "program.old.clt").write_bytes((tmp_path / "program.clt").read_bytes())
    assert record(tmp_path, run).returncode == 0

    names = {path.name for path in tmp_path.glob("program.*.clt")}
    assert len(names) == 3
    assert {"program.12.clt", "program.old.clt"} <= names


def test_a_recording_inside_a_program_follows_children_too(tmp_path: Path) -> None:
    done = record(
        tmp_path,
        """
        import subprocess, sys
        import contention_lab as cl
        command = [sys.executable, "use.py"]
        with cl.record("run.clt", subprocesses=True):
            subprocess.run(command, check=True)
        subprocess.run(command, check=True)
        """,
        options=(),
    )
    assert "already recording" in done.stderr

    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    (child,) = tmp_path.glob("run.*.clt")
    assert uses(cl.load(child)) == 1


@pytest.mark.parametrize("handler", ["signal.SIG_DFL", "lambda *_: print('SIGXFSZ')"])
def test_a_note_beyond_the_limit_of_a_file_sends_no_signal(handler: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        f"""
import resource, signal, subprocess, sys, threading
signal.signal(signal.SIGXFSZ, {handler})
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
print("done")
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "contention_lab", "record", "-q", "--subprocesses", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
