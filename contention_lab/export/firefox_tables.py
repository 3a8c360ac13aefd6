"""The tables of stacks of one thread in a Firefox profile: strings, functions, frames, stacks.

Everything refers to everything else by its position; see `firefox.py` for the format.
"""

from __future__ import annotations

from typing import Any

from contention_lab.report.visible_text import visible


class StackTables:
    """Tables that grow as stacks are asked for; equal ones are one."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._functions: dict[tuple[int, int | None, int], int] = {}
        self._frames: dict[tuple[int, int, int], int] = {}
        self._stacks: dict[tuple[int, int | None], int] = {}

    def text(self, text: str) -> int:
        """Return the number of a text."""
        return self._texts.setdefault(text, len(self._texts))

    def stack(
        self,
        function: str,
        filename: str,
        line: int,
        first_line: int,
        *,
        prefix: int | None,
        category: int,
    ) -> int:
        """Return the number of the stack that is this frame called from another stack.

        Parameters
        ----------
        function, filename, line, first_line
            The frame; 0 where a line is unknown, an empty file name for what is no code.
        prefix
            The stack it is called from, None for the outermost.
        category
            Position in the profile's list of categories.
        """
        file = self.text(visible(filename)) if filename else None
        known = (self.text(function), file, first_line)
        number = self._functions.setdefault(known, len(self._functions))
        frame = self._frames.setdefault((number, line, category), len(self._frames))
        return self._stacks.setdefault((frame, prefix), len(self._stacks))

    def to_json(self) -> dict[str, Any]:
        """Return the tables under their names in a thread."""
        frames, functions = [*self._frames], [*self._functions]
        categories = [category for _, _, category in frames]
        return {
            "stackTable": {
                "frame": [frame for frame, _ in self._stacks],
                "prefix": [prefix for _, prefix in self._stacks],
                "category": [categories[frame] for frame, _ in self._stacks],
                "subcategory": [0] * len(self._stacks),
                "length": len(self._stacks),
            },
            "frameTable": {
                "address": [-1] * len(frames),
                "inlineDepth": [0] * len(frames),
                "category": categories,
                "subcategory": [0] * len(frames),
                "func": [function for function, _, _ in frames],
                "nativeSymbol": [None] * len(frames),
                "innerWindowID": [0] * len(frames),
                "implementation": [None] * len(frames),
                "line": [line or None for _, line, _ in frames],
                "column": [None] * len(frames),
                "length": len(frames),
            },
            "funcTable": {
                "name": [text for text, _, _ in functions],
                "isJS": [False] * len(functions),
                "relevantForJS": [False] * len(functions),
                "resource": [-1] * len(functions),
                "fileName": [file for _, file, _ in functions],
                "lineNumber": [line or None for _, _, line in functions],
                "columnNumber": [None] * len(functions),
                "length": len(functions),
            },
            "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
            "nativeSymbols": {
                "libIndex": [],
                "address": [],
                "name": [],
                "functionSize": [],
                "length": 0,
            },
            "stringArray": [*self._texts],
        }
