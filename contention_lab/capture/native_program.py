"""Starting a program that is not Python under the layer's own recorder.

It is told what to do by variables that the layer takes out of the environment before the program
sees them. Locks of the C library are recorded; there are no Python stacks, and no GIL.
"""

import os

from contention_lab.capture import native_layer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_ELF = b"\x7fELF"
_LONGEST_META = 100_000
"""The system takes no longer variable than 128 KiB."""


def is_native(program: "Sequence[str]") -> bool:
    """Whether what is to be run is a path to an executable that is no script."""
    path = program[0]
    try:
        with open(path, "rb") as file:
            return file.read(len(_ELF)) == _ELF and os.access(path, os.X_OK)
    except OSError:
        return False


def variables(program: "Sequence[str]", output: str, said: str, failed: str) -> "dict[str, str]":
    """Return the variables by which the layer records a program, without their prefix.

    Parameters
    ----------
    program
        Its path and arguments.
    output
        The absolute path of the trace.
    said
        What to print at the end, or nothing.
    failed
        What to begin a line with that says why the trace is not whole.
    """
    result = {"ROLE": "native", "TRACE": output, "META": _metadata(program), "FAIL": failed}
    if said:
        result["SAY"] = said
    return result


def environment(
    before: "Mapping[str, str]", layer: str, added: "Mapping[str, str]"
) -> "dict[str, str]":
    """Return an environment with the layer and its variables: last, as they are taken out again."""
    result = dict(before)
    preload = native_layer.with_layer(result.pop(native_layer.PRELOAD, None), layer)
    return {**result, native_layer.PRELOAD: preload, **added}


def _metadata(program: "Sequence[str]") -> str:
    from contention_lab.capture.metadata import describe, encode

    meta: dict[str, Any] = describe("profile")
    for key in ("switch_interval_s", "acquire_cost_ns"):
        meta.pop(key, None)
    meta |= {"program": program[0], "argv": [*program], "native_layer": True, "gil_source": "none"}
    executable = os.path.abspath(program[0])
    meta["python"] = {"version": "", "implementation": "", "gil": False, "executable": executable}
    meta["not_seen"] = []
    text = encode(meta)
    if len(text) > _LONGEST_META:
        text = encode({**meta, "argv": meta["argv"][:1]})
    return text.decode("ascii")


def unusable(layer_reason: str) -> str:
    """Say why such a program cannot be recorded here."""
    return (
        "a program that is not Python can be recorded only with the native layer: "
        f"{layer_reason or 'leave out --no-native-layer'}"
    )
