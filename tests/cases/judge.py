"""Run programs with known answers under `record`, diagnose them, and say which answers are right.

    python tests/cases/judge.py FOLDER... [--runs N] [--python PATH] [--only GLOB] [--json]

Every program in a folder (and the folders in it) that has a sidecar, `name.py` with `name.json`, is
run as it is and with the arguments of its variants. A table goes to stdout (kind, cases, right,
wrong, silent), then a line for each miss. The exit status is 0 only if all are right.
It judges what `record` and `diagnose --json` leave, and imports nothing of the package.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgement import RIGHT, SILENT, WRONG, Judgement, judge
from sidecar import Case, SidecarError, Truth, read_case

LONGEST_S = 90
"""A program of a few seconds that has not ended by then never will."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one program, judged."""

    case: Case
    truth: Truth
    run: int
    judgement: Judgement

    @property
    def name(self) -> str:
        """The program and its arguments."""
        return " ".join([self.case.program.name, *self.truth.args])

    @property
    def kind(self) -> str:
        """What it is filed under."""
        kind = self.case.truths[0].verdicts[0]
        return f"{kind} (fixed)" if self.truth.gone else kind

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "program": self.case.program.name,
            "args": list(self.truth.args),
            "run": self.run,
            "kind": self.kind,
            "outcome": self.judgement.outcome,
            "complaints": list(self.judgement.complaints),
            "remarks": list(self.judgement.remarks),
        }


def diagnosis_of(case: Case, truth: Truth, python: str, trace: Path) -> dict[str, Any] | str:
    """Record and diagnose; a text says what went wrong."""
    module = [python, "-m", "contention_lab"]
    for command in (
        [*module, "record", "-q", "-o", str(trace), str(case.program), *truth.args],
        [*module, "diagnose", "--json", str(trace)],
    ):
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S
            )
        except subprocess.TimeoutExpired:
            return f"`{command[3]}` did not end in {LONGEST_S} s"
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [""])[-1]
            return f"`{command[3]}` exits with {done.returncode}: {last}"
    return dict(json.loads(done.stdout))


def judged(case: Case, truth: Truth, run: int, python: str, traces: Path) -> Result:
    """Run a program once."""
    words = [case.program.stem, *truth.args, *([str(run)] if run > 1 else [])]
    diagnosis = diagnosis_of(case, truth, python, traces / f"{'_'.join(words)}.clt")
    if isinstance(diagnosis, str):
        return Result(case, truth, run, Judgement(WRONG, (diagnosis,)))
    return Result(case, truth, run, judge(truth, case.sources, diagnosis))


def read_cases(folders: list[str], only: list[str], *, free_threaded: bool) -> list[Case]:
    """Return the cases in folders; of the wanted names only, where any are given."""
    sidecars = [
        path
        for folder in folders
        for path in sorted(Path(folder).rglob("*.json"))
        if path.with_suffix(".py").is_file()
        and (not only or any(fnmatch.fnmatch(path.stem, f"*{glob}*") for glob in only))
    ]
    return [read_case(path, free_threaded=free_threaded) for path in sidecars]


def table(results: list[Result]) -> str:
    """Return how many runs of each kind came out how."""
    counts: dict[str, Counter[str]] = {}
    for result in results:
        counts.setdefault(result.kind, Counter())[result.judgement.outcome] += 1
    rows = sorted(counts.items())
    rows.append(("all", sum(counts.values(), Counter())))
    width = max(len(kind) for kind, _ in rows)
    lines = [f"{'kind':<{width}}  cases  right  wrong  silent"]
    lines += [
        f"{kind:<{width}}  {c.total():5}  {c[RIGHT]:5}  {c[WRONG]:5}  {c[SILENT]:6}"
        for kind, c in rows
    ]
    return "\n".join(lines)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=1, help="how often each program is run")
    parser.add_argument("--python", default=sys.executable, metavar="PATH")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="of names")
    parser.add_argument("--json", action="store_true", help="every run as JSON on stdout")
    parser.add_argument("--plain", action="store_true", help="without variants")
    parser.add_argument("--remarks", action="store_true", help="also what could be more exact")
    parser.add_argument("--scale", type=float, help="multiplies the durations of programs that ask")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the traces stay")
    return parser.parse_args()


def has_gil(python: str) -> bool:
    """Ask a Python whether it was built with a GIL."""
    code = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "0"


def main() -> int:
    """Judge, and return the exit status."""
    args = options()
    if args.scale is not None:
        os.environ["CASE_SCALE"] = str(args.scale)
    try:
        cases = read_cases(args.folders, args.only, free_threaded=not has_gil(args.python))
    except SidecarError as error:
        print(f"judge: {error}", file=sys.stderr)
        return 2
    if not cases:
        print("judge: no program with a sidecar there", file=sys.stderr)
        return 2
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        traces = args.keep or Path(folder)
        traces.mkdir(parents=True, exist_ok=True)
        for run in range(1, args.runs + 1):
            for case in cases:
                for truth in case.truths[:1] if args.plain else case.truths:
                    results.append(result := judged(case, truth, run, args.python, traces))
                    if sys.stderr.isatty():
                        print(f"{result.judgement.outcome:6} {result.name}", file=sys.stderr)
    if args.json:
        print(json.dumps([result.to_json() for result in results], indent=1))
    else:
        print(table(results))
        for r in results:
            said = [(r.judgement.outcome, text) for text in r.judgement.complaints]
            said += [("remark", text) for text in r.judgement.remarks if args.remarks]
            at = f" run {r.run}" if args.runs > 1 else ""
            for word, text in said:
                print(f"{word}: {r.name}{at}: {text}")
    return int(any(result.judgement.outcome != RIGHT for result in results))


if __name__ == "__main__":
    sys.exit(main())
