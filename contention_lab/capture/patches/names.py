"""Replacing a thing under every name that modules have for it (`from threading import Lock`).

Only variables of modules, by identity; our own package's are left alone. What modules that come
during the recording bind to ours is given back at its end, too.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from contention_lab.capture.undo import Undo

_MODULE = type(sys)
_OWN = "contention_lab."


def replace_names(
    undo: "Undo",
    replacements: "list[tuple[object, object]]",
    except_for: "frozenset[tuple[str, str]]" = frozenset(),
) -> None:
    """Replace the first of each pair by the second, wherever a module's variable refers to it.

    Parameters
    ----------
    undo
        Puts the first of each pair back.
    replacements
        Pairs of an original and what stands in for it.
    except_for
        Names of modules and of variables in them that keep the original.
    """
    _rename(replacements, except_for)
    undo.call(lambda: _rename([(ours, original) for original, ours in replacements], frozenset()))


def _rename(
    replacements: "list[tuple[object, object]]", except_for: "frozenset[tuple[str, str]]"
) -> None:
    by_id = {id(original): new for original, new in replacements}
    for module_name, variables in module_variables():
        if module_name.startswith(_OWN):
            continue
        for name, value in [*variables.items()]:
            if id(value) in by_id and (module_name, name) not in except_for:
                variables[name] = by_id[id(value)]


def module_variables() -> "Iterator[tuple[str, dict[str, Any]]]":
    """Yield each module's name and variables."""
    for name, module in [*sys.modules.items()]:
        if issubclass(type(module), _MODULE):
            # Not vars(), nor isinstance(): a lazy module would load itself.
            yield name, object.__getattribute__(module, "__dict__")
