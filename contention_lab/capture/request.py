"""What `record` was asked to do, read from its arguments without a library.

It knows the options of `cli/record.py` and leaves everything it does not understand to it: there
the help and the complaints are made. The program begins at the first argument that is no option of
ours.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LEVELS = ("counters", "profile", "trace")
FUNCTION_ENTRIES = 1_000_000
"""Calls of functions that are kept by default, the last ones; each takes about 100 bytes."""
FUNCTION_ENTRIES_RANGE = (1_000, 100_000_000)

_VALUED = {
    "-o": "output",
    "--output": "output",
    "--level": "level",
    "--watch": "watch",
    "--function-entries": "function entries",
}
_FLAGS = {
    "--existing": "existing",
    "--subprocesses": "subprocesses",
    "-q": "quiet",
    "--quiet": "quiet",
    "--no-native-layer": "no native layer",
    "--abort": "abort",
    "--functions": "functions",
    "--live": "live",
    "--sample": "sample",
}
PYTHON_SUFFIXES = (".py", ".pyw", ".pyc", ".pyz")


class Request:
    """A program to record, and how.

    Attributes
    ----------
    program : list of str
        What `python` would be given.
    output : str
        The trace's path.
    output_given : bool
        Whether the user named it.
    level : str
    existing, subprocesses, quiet, native_layer : bool
    watch : float
        After how many seconds without a movement a hang is reported; 0 for never.
    aborts : bool
        Whether the program is aborted then.
    functions : int
        How many calls of functions to keep; 0 to record none.
    live, sample : bool
        Whether a process beside the program shows its locks, and whether one samples it.
    """

    __slots__ = (
        "aborts",
        "existing",
        "functions",
        "level",
        "live",
        "native_layer",
        "output",
        "output_given",
        "program",
        "quiet",
        "sample",
        "subprocesses",
        "watch",
    )

    def __init__(
        self,
        program: "Sequence[str]",
        output: str | None = None,
        level: str = "profile",
        *,
        existing: bool = False,
        subprocesses: bool = False,
        quiet: bool = False,
        native_layer: bool = True,
        watch: float = 0.0,
        aborts: bool = False,
        functions: int = 0,
        live: bool = False,
        sample: bool = False,
    ) -> None:
        self.program = list(program)
        self.output_given = output is not None
        self.output = default_output(program) if output is None else output
        self.level = level
        self.existing = existing
        self.subprocesses = subprocesses
        self.quiet = quiet
        self.native_layer = native_layer
        self.watch = watch
        self.aborts = aborts
        self.functions = functions
        self.live = live
        self.sample = sample

    def can_run(self) -> bool:
        """Whether there is something to record: else Python says at once what is wrong."""
        script = self.program[0] if self.program else "-"
        return script.startswith("-") or os.access(script, os.R_OK)


def split(arguments: "Sequence[str]") -> tuple[list[str], list[str]]:
    """Split the arguments into options of ours and the program with its arguments."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            program = [*arguments[at + 1 :]]
            dashed = program[:1] and program[0].startswith("-")
            return [*arguments[:at]], ["--", *program] if dashed else program
        if not word.startswith("-") or word == "-" or word[:2] in ("-m", "-c"):
            break
        at += 2 if word in _VALUED else 1
    return [*arguments[:at]], [*arguments[at:]]


def read(arguments: "Sequence[str]") -> Request | None:
    """Read the arguments of `record`; None where there is something to explain."""
    options, program = split(arguments)
    values: dict[str, str] = {}
    flags = set()
    words = iter(options)
    for word in words:
        name, equals, value = word.partition("=")
        if word in _FLAGS:
            flags.add(_FLAGS[word])
        elif word in _VALUED:
            values[_VALUED[word]] = next(words, "")
        elif equals and name in _VALUED and name.startswith("--"):
            values[_VALUED[name]] = value
        else:
            return None
    if not is_program(program) or "" in values.values():
        return None
    level = values.get("level", "profile")
    watch = seconds(values["watch"]) if "watch" in values else 0.0
    entries = function_entries(values.get("function entries"), "functions" in flags)
    if level not in LEVELS or watch is None or ("abort" in flags and not watch) or entries is None:
        return None
    return Request(
        program,
        values.get("output"),
        level,
        existing="existing" in flags,
        subprocesses="subprocesses" in flags,
        quiet="quiet" in flags,
        native_layer="no native layer" not in flags,
        watch=watch,
        aborts="abort" in flags,
        functions=entries,
        live="live" in flags,
        sample="sample" in flags,
    )


def function_entries(text: str | None, wanted: bool) -> int | None:
    """Read how many calls of functions to keep, 0 if none are wanted; None if that is no number."""
    if not wanted:
        return 0 if text is None else None
    if text is None:
        return FUNCTION_ENTRIES
    least, most = FUNCTION_ENTRIES_RANGE
    return int(text) if text.isdecimal() and least <= int(text) <= most else None


def seconds(text: str) -> float | None:
    """Read how long to watch for a hang; None if that is no such time."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.1 <= value <= 1e6 else None


def is_program(words: "Sequence[str]") -> bool:
    """Whether that is something to run: `-m` and `-c` need a word, attached or after them.

    Without any word it is what comes from the standard input, as for Python, unless somebody types.
    """
    if not words:
        return sys.stdin is not None and not sys.stdin.isatty()
    return words[0] not in ("-m", "-c", "--") or len(words) > 1


def default_output(program: "Sequence[str]") -> str:
    """The trace's name if none is given: the program's, in the current folder.

    `train.py` is recorded to `train.clt`, `-m package.module` to `package.module.clt`, `-c` to
    `command.clt`, and what comes from the standard input to `stdin.clt`.
    """
    if not program:
        program = ["-"]
    word = program[1] if program[0] == "--" else program[0]
    if program[0] == "-":
        name = "stdin"
    elif word.startswith("-c"):
        name = "command"
    elif word.startswith("-m"):
        name = word[2:] or program[1]
    else:
        name = os.path.basename(word.rstrip(os.sep))
        root, extension = os.path.splitext(name)
        name = root if extension in PYTHON_SUFFIXES else name
    return f"{name or 'program'}.clt"
