"""The cells of an IPython or Jupyter session, as a recording is to name them: `In [3]`.

Python knows the code of a cell by a made-up file, whose number IPython keeps for its tracebacks.
Texts are those of the cell that is recorded and of the cells whose functions and classes the
session has: others cannot be named by a recording, and are nobody's business.
"""

from __future__ import annotations

import linecache
import re
import sys
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CHARACTERS: Final = 200_000
"""Of all texts."""


class Cells:
    """The cells of a session, of which one is recorded.

    Parameters
    ----------
    shell
        The running IPython.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._recorded: list[str] = []
        """Files of the code that runs while it is noted."""
        self._number = self._number_above()

    def _number_above(self) -> int:
        """Return the number of the cell that called us: what runs inside it may count on."""
        frame = sys._getframe(1)
        while frame is not None:
            number = self._numbered(frame.f_code.co_filename)
            if number is not None:
                return number
            frame = frame.f_back  # type: ignore[assignment]
        return int(getattr(self._shell, "execution_count", 0))

    def _numbered(self, file: str) -> int | None:
        """Return the number of a cell by its file, as tracebacks of IPython name it."""
        said = getattr(self._shell.compile, "format_code_name", lambda _: None)(file)
        number = re.search(r"\d+", said[1]) if said else None
        return int(number[0]) if number else None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the files of cells that run."""
        compiler = self._shell.compile
        cache = compiler.cache

        def noting(*arguments: Any, **options: Any) -> Any:
            file = cache(*arguments, **options)
            self._recorded.append(file)
            return file

        compiler.cache = noting
        try:
            yield
        finally:
            del compiler.cache  # the method of its class is there again

    def described(self) -> list[dict[str, str]]:
        """Return the cells as a trace's metadata has them."""
        texts, room = self._recorded + self._in_use(), MOST_CHARACTERS
        cells = []
        for file in dict.fromkeys([*texts, *linecache.cache]):
            number = self._number if file in self._recorded else self._numbered(file)
            if number is None:
                continue
            text = "".join(linecache.getlines(file)) if file in texts else ""
            room -= len(text)
            cells.append({"file": file, "name": f"In [{number}]", "text": text if room > 0 else ""})
        return cells

    def _in_use(self) -> list[str]:
        """Return the files of the functions of the session's namespace, and of its classes."""
        found = []
        for thing in list(self._shell.user_ns.values()):
            parts = list(vars(thing).values()) if isinstance(thing, type) else [thing]
            functions = [part for part in parts if isinstance(part, FunctionType)]
            found += [function.__code__.co_filename for function in functions]
        return found
