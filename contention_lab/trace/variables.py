"""What a program calls a lock: the variable or attribute its making is assigned to, in the source.

A trace says at which line a lock was made. `self._lock = threading.Lock()` there, in
`Catalog.__init__`, makes it `Catalog._lock`. Nothing is asked of the program's objects. A file that
has been changed since the recording is not read: its lines may be others.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contention_lab.trace.model import Frame, Lock

LARGEST_FILE_BYTES: Final = 2_000_000
"""Larger sources are generated; parsing them takes seconds."""

_ADDING: Final = frozenset({"setdefault", "append", "add", "put", "insert"})
"""Methods that put their last argument into what they are called on."""


_FIELD: Final = "."
"""What stands before the field of a class, whoever makes the object: no name begins with it."""

_FACTORIES: Final = ("Lock", "Semaphore", "Condition", "Event", "Queue", "Mutex", "Channel")
"""What the names of classes end in that make locks, or things with locks in them."""


def name_locks(
    locks: Mapping[int, Lock], before_unix_ns: int, program: object = ""
) -> dict[int, Lock]:
    """Return locks with the variables they are assigned to, where the source tells.

    Parameters
    ----------
    locks
        By id.
    before_unix_ns
        Start of the recording: sources changed since are not read.
    program
        Path of the program: its own global variables are called without its name.
    """
    main = PurePath(program).stem if isinstance(program, str) else ""
    named = dict(locks)
    names_of = cache(lambda path: _names_before(path, before_unix_ns))
    calls: dict[Frame, int] = {}
    for lock in locks.values():
        if lock.site is not None:
            calls[lock.site] = max(lock.call, calls.get(lock.site, 1))
    for number, lock in locks.items():
        site = lock.site
        if site is None or (lock.name and not lock.is_shared):
            continue
        targets = names_of(site.filename).get(site.line, ())
        if len(targets) != calls[site] and len({target for _, target in targets}) != 1:
            # Some call makes no lock, or was never made: which is which?
            targets = tuple(one for one in targets if one[0] == _maker(lock.type))
            if len(targets) != calls[site]:
                continue
        _, target = targets[min(lock.call, len(targets)) - 1]
        named[number] = replace(lock, variable=_in_scope(target, site, main))
    return named


def _maker(kind: str) -> str:
    """Return the name of the class that a program calls for a lock of a type."""
    whole, _, maker = kind.partition(" in ")
    return (maker or whole).rpartition(".")[2]


def _in_scope(target: str, site: Frame, main: str) -> str:
    """Return a target with the class or function, or else the module, that it belongs to."""
    scopes = [part for part in site.function.split(".") if not part.startswith("<")]
    if not target:
        return ""
    if target.startswith(_FIELD):
        return target.removeprefix(_FIELD)
    if target.startswith(("self.", "cls.")):
        return ".".join([*scopes[-2:-1], target.partition(".")[2]])
    if "<module>" in site.function:
        return target if site.module == main else f"{site.module}.{target}"
    return ".".join([*scopes[-1:], target])


def _names_before(path: str, before_unix_ns: int) -> dict[int, tuple[tuple[str, str], ...]]:
    """Return what is assigned at each line of a file; of a newer or unreadable one, nothing."""
    try:
        status = Path(path).stat()
        if status.st_mtime_ns > before_unix_ns or status.st_size > LARGEST_FILE_BYTES:
            return {}
        return _names(path, status.st_mtime_ns)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


@lru_cache(maxsize=256)
def _names(path: str, changed_ns: int) -> dict[int, tuple[tuple[str, str], ...]]:
    """Return what each line of a file calls and assigns, as of when it was changed."""
    del changed_ns
    tree = ast.parse(Path(path).read_bytes())
    found: dict[int, dict[tuple[int, int], tuple[str, str]]] = {}
    for call, target in _targets(tree):
        end = call.end_lineno or 0, call.end_col_offset or 0
        func = call.func
        called = func.attr if isinstance(func, ast.Attribute) else _written(func)
        found.setdefault(call.lineno, {})[end] = called, target
    for call, field in _fields(tree):
        end = call.end_lineno or 0, call.end_col_offset or 0
        found.setdefault(call.lineno, {})[end] = "", field
    return {line: tuple(targets[end] for end in sorted(targets)) for line, targets in found.items()}


def _targets(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Yield calls, and what the call's result is assigned to or put into."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield from _assigned(node.targets[0], node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from _made(node.value, _written(node.target))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from _made(node.context_expr, _written(node.optional_vars))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _ADDING
            and node.args
        ):
            yield from _made(node.args[-1], _element_of(_written(node.func.value)))


def _fields(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Yield calls of dataclasses of which one field is made by a factory of locks, with the field.

    The lock is made by code without a file, so that the call is all that a trace knows of it.
    """
    fields: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            fields[node.name] = [
                f"{_FIELD}{node.name}.{part.target.id}"
                for part in node.body
                if isinstance(part, ast.AnnAssign)
                and isinstance(part.target, ast.Name)
                and isinstance(part.value, ast.Call)
                and any(_is_factory(keyword) for keyword in part.value.keywords)
            ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            made = fields.get(node.func.id, ())
            if len(made) == 1:
                yield node, made[0]


def _is_factory(keyword: ast.keyword) -> bool:
    name = _written(keyword.value).rpartition(".")[2]
    return keyword.arg in ("default_factory", "factory") and name.endswith(_FACTORIES)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Call, str]]:
    """Yield calls whose result is assigned to a target, or to one of several."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield from _made(value, _written(target))
        return
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    starred = any(isinstance(one, ast.Starred) for one in (*target.elts, *parts))
    if len(parts) == len(target.elts) and not starred:
        for one, part in zip(target.elts, parts, strict=True):
            yield from _assigned(one, part)


def _made(value: ast.expr, target: str) -> Iterator[tuple[ast.Call, str]]:
    """Yield calls whose result becomes the value, or an element of it."""
    if not target:
        return
    if isinstance(value, ast.Call):
        yield value, target
    elif isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _made(part, target)
    elif isinstance(value, ast.IfExp):
        yield from _made(value.body, target)
        yield from _made(value.orelse, target)
    elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield from _made(value.elt, _element_of(target))
    elif isinstance(value, ast.DictComp):
        yield from _made(value.value, _element_of(target))
    elif isinstance(value, (ast.List, ast.Set, ast.Tuple)):
        for part in value.elts:
            yield from _made(part, _element_of(target))
    elif isinstance(value, ast.Dict):
        for part in value.values:
            yield from _made(part, _element_of(target))


def _written(target: ast.expr) -> str:
    """Return a name, an attribute of a name, or an element of either; else nothing."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        owner = _written(target.value)
        return f"{owner}.{target.attr}" if owner else ""
    if isinstance(target, ast.Subscript):
        return _element_of(_written(target.value))
    return ""


def _element_of(container: str) -> str:
    return f"{container}[...]" if container and not container.endswith("[...]") else container
