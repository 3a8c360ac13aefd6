"""Starting a Python that records itself from its first import on.

`record` executes the interpreter again, with the program's command line and an environment that
makes `startup/sitecustomize.py` the first thing it runs. So the program is run by Python itself and
not by an imitation of it: `__main__`, `sys.path`, `sys.flags`, tracebacks, signals and exit codes
are Python's own. The variables are taken out of the environment again before the program sees it.
"""

import os
import sys

from contention_lab.capture import native_layer, native_program, trace_file
from contention_lab.capture.refusal import NOT_FOUND, NOT_RUNNABLE, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from contention_lab.capture.request import Request

STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")
PREFIX = "CONTENTION_LAB_RECORD_"
"""Of the variables that tell the new Python what to do; see `startup/sitecustomize.py`."""

_PATH = "PYTHONPATH"


class LaunchError(Exception):
    """`record` cannot start: one line, what, why and what to do.

    Attributes
    ----------
    status
        The exit status.
    """

    def __init__(self, line: str, status: int = 1) -> None:
        super().__init__(line)
        self.status = status


def launch(request: "Request", typed: "Sequence[str]") -> "NoReturn":
    """Become a Python that runs the program and records it.

    Parameters
    ----------
    request
        What to run and how.
    typed
        The arguments of this command, of which `sys.orig_argv` says how Python was called.

    Raises
    ------
    LaunchError
        The trace must not be written there, or this Python cannot be started so.
    """
    refused = refusal(request.program)
    if refused is not None:
        raise LaunchError(*refused)
    native = bool(request.program) and native_program.is_native(request.program)
    if request.functions and native:
        raise LaunchError("--functions is for Python: leave it out for a program that is not")
    if request.functions and not _viztracer():
        raise LaunchError("--functions needs viztracer for this Python: pip install viztracer")
    if request.sample and native:
        raise LaunchError("--sample is for Python: leave it out for a program that is not")
    if native:
        _launch_native(request)
    flags = sys.flags
    if flags.isolated or flags.ignore_environment or flags.no_site:
        raise LaunchError("record works through Python's start-up files: leave out -I, -E and -S")
    if not sys.executable:
        raise LaunchError(
            "this Python does not know its own executable, so it cannot be started again"
        )
    environment = _environment()
    if request.can_run():
        output = _output(request)
        environment = add_to(environment, _main_variables(request, output, _layer(request)))
        _start_companions(request, output)
    command = [sys.executable, *_interpreter_options(typed), *request.program]
    try:
        os.execve(sys.executable, command, environment)
    except OSError as error:
        raise LaunchError(f"{sys.executable}: {error.strerror}; it cannot be started") from None


def _start_companions(request: "Request", output: str) -> None:
    if not request.live and not request.sample:
        return
    from contention_lab.capture import companion

    if request.live:
        companion.start(companion.LIVE, output)
    if request.sample:
        companion.start(companion.SAMPLE, output)


def _output(request: "Request") -> str:
    """The absolute path of the trace, which may be written there."""
    output = os.path.abspath(request.output)
    try:
        trace_file.refuse_other_files(output)
    except OSError as error:
        raise LaunchError(f"{request.output}: {error.strerror} (-o)") from None
    if os.path.isdir(output):
        raise LaunchError(f"{request.output}: this is a folder; give -o a file's name")
    return output


def _launch_native(request: "Request") -> "NoReturn":
    """Become a program that is not Python, with the layer to record it."""
    path = os.path.abspath(request.program[0])
    layer, reason = native_layer.find(path) if request.native_layer else ("", "")
    if not layer:
        raise LaunchError(native_program.unusable(reason))
    output = _output(request)
    _start_companions(request, output)
    shown = request.output
    next_command = f"next: contention-lab diagnose {trace_file.quoted(shown)}"
    said = "" if request.quiet else f"contention-lab: wrote {shown}; {next_command}\n"
    failed = f"contention-lab: {shown}: "
    added = {
        f"{PREFIX}{name}": value
        for name, value in native_program.variables(request.program, output, said, failed).items()
    }
    try:
        os.execve(path, request.program, native_program.environment(_environment(), layer, added))
    except OSError as error:
        status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
        raise LaunchError(f"{request.program[0]}: {error.strerror}", status) from None


def child_variables(trace: str, level: str, layer: str, *, existing: bool) -> "dict[str, str]":
    """Return the variables by which a child process records itself.

    Parameters
    ----------
    trace
        The absolute path of the trace of the first process.
    layer
        What to preload, or empty.
    level, existing
        As for the parent.
    """
    return _variables("child", trace, level, layer, existing=existing, subprocesses=True)


def _environment() -> "dict[str, str]":
    """Return what this process was given: a Python in the C locale adds LC_CTYPE to that."""
    environment = dict(os.environ)
    try:
        with open("/proc/self/environ", "rb") as file:
            given = b"\0" + file.read()
    except OSError:
        return environment
    if b"\0LC_CTYPE=" not in given and environment.get("LC_CTYPE") == "C.UTF-8":
        del environment["LC_CTYPE"]
    return environment


def add_to(
    environment: "Mapping[Any, Any]", variables: "Mapping[str, str]", *, in_bytes: bool = False
) -> "dict[Any, Any]":
    """Return an environment, of str or of bytes, with the variables of a recording added."""
    result = dict(environment)
    key = os.fsencode(_PATH) if in_bytes else _PATH
    before = os.fsdecode(result.get(key, ""))
    added = {_PATH: STARTUP + (os.pathsep + before if before else ""), **variables}
    if key in result:
        added[f"{PREFIX}{_PATH}"] = before
    layer = variables.get(f"{PREFIX}LAYER")
    if layer:
        preload = native_layer.PRELOAD
        value = result.get(os.fsencode(preload) if in_bytes else preload)
        before_us = None if value is None else os.fsdecode(value)
        added[preload] = native_layer.with_layer(before_us, layer)
    places = [f"{name}:{at}" for at, name in enumerate(map(os.fsdecode, result)) if name in added]
    if places:
        added[f"{PREFIX}PLACES"] = ",".join(places)
    # The last ones, LD_PRELOAD before all others: so they are taken out again without a gap.
    for name in sorted(added, key=lambda name: name != native_layer.PRELOAD):
        word = os.fsencode(name) if in_bytes else name
        result.pop(word, None)
        result[word] = os.fsencode(added[name]) if in_bytes else added[name]
    return result


def _viztracer() -> str:
    """The file of viztracer's recorder, or nothing."""
    from contention_lab.capture import functions

    return functions.find()


def _layer(request: "Request") -> str:
    """What to preload; where it cannot be, say so."""
    if not request.native_layer:
        return ""
    path, reason = native_layer.find(sys.executable)
    if reason and not request.quiet and sys.stderr is not None:
        print(
            f"contention-lab: without the native layer ({reason}): {native_layer.LOST}",
            file=sys.stderr,
        )
        sys.stderr.flush()
    return path


def _main_variables(request: "Request", output: str, layer: str) -> "dict[str, str]":
    variables = _variables(
        "main",
        output,
        request.level,
        layer,
        existing=request.existing,
        subprocesses=request.subprocesses,
    )
    variables[f"{PREFIX}SHOWN"] = request.output
    if request.quiet:
        variables[f"{PREFIX}QUIET"] = "1"
    if request.watch:
        variables[f"{PREFIX}WATCH"] = repr(request.watch)
    if request.functions:
        variables[f"{PREFIX}FUNCTIONS"] = str(request.functions)
        variables[f"{PREFIX}FUNCTIONS_FROM"] = _viztracer()
    if request.aborts:
        variables[f"{PREFIX}ABORT"] = "1"
    if not request.output_given:
        variables[f"{PREFIX}UNNAMED"] = "1"
    return variables


def _variables(
    role: str, trace: str, level: str, layer: str, *, existing: bool, subprocesses: bool
) -> "dict[str, str]":
    package = os.path.dirname(os.path.dirname(STARTUP))
    variables = {
        "ROLE": role,
        "TRACE": trace,
        "LEVEL": level,
        "HOME": os.path.dirname(package),
    }
    if layer:
        variables["LAYER"] = layer
    if existing:
        variables["EXISTING"] = "1"
    if subprocesses:
        from contention_lab.capture import unrecorded

        variables["SUBPROCESSES"] = "1"
        variables["UNRECORDED"] = unrecorded.notes_path(trace)
    return {f"{PREFIX}{name}": value for name, value in variables.items()}


def _interpreter_options(typed: "Sequence[str]") -> list[str]:
    """The options this Python was started with: they come before our module or script."""
    called = sys.orig_argv[1:]
    if called[len(called) - len(typed) :] != [*typed]:
        return []  # somebody called main() with arguments of his own
    ours = called[: len(called) - len(typed)]
    if ours[-2:-1] and ours[-2].startswith("-") and ours[-2].endswith("m"):  # -m contention_lab
        letters = ours[-2][1:-1]
        return [*ours[:-2], *([f"-{letters}"] if letters else [])]
    return ours[:-1]  # a script, or -mcontention_lab
