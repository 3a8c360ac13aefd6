"""A frame of a sampled stack, of Python code or of native code.

Stacks are tuples of them, innermost first. The text of the source line, where somebody has read
it, says what a call into the interpreter was for: C functions have no Python frame of their own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SampledFrame:
    """One frame.

    Attributes
    ----------
    function
        Qualified name of the Python function, or the native symbol (an address where unknown).
    file
        Source file as the code object has it; empty for native frames.
    line
        The line that was being executed, 0 where unknown.
    image
        Of a native frame: the library or program it belongs to; empty for Python frames.
    text
        The line's source, stripped; empty where nobody has read it.
    """

    function: str
    file: str = ""
    line: int = 0
    image: str = ""
    text: str = ""

    @property
    def is_native(self) -> bool:
        """Whether it is not a frame of Python code."""
        return not self.file

    @property
    def name(self) -> str:
        """The last part of a Python function's qualified name (`Condition.wait`: `wait`)."""
        return self.function.rpartition(".")[2]
