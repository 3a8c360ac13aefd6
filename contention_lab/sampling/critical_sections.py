"""Which lines of a source file take which lock, and which run while it is held.

Read from the syntax tree: `with lock:`, `lock.acquire()` up to `lock.release()` in the same block,
and a `try` whose `finally` releases. A lock that is chosen at run time (`self.locks[key]`, what a
call returns) has no name that stays: it is known to be taken, but not which one it is.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TAKES: Final = frozenset({"acquire", "acquire_read", "acquire_write", "__enter__", "lock"})
_ASKS: Final = frozenset({"get", "put", "join", "wait", "wait_for", "result", "exception"})
_MAKERS: Final = ("Lock", "Semaphore", "Condition", "Event", "Mutex", "allocate_lock", "Queue")


@dataclass(frozen=True, slots=True)
class LockName:
    """A lock as a source file calls it.

    Attributes
    ----------
    scope
        The class whose attribute it is, the function whose variable, or empty: of the module.
    name
        The variable or attribute, dotted (`_lock`, `pool.lock`); empty: the object itself.
    fixed
        The same name means the same lock, within one object.
    """

    scope: str
    name: str
    fixed: bool = True

    @property
    def label(self) -> str:
        """What to call it: `Pool._lock`."""
        return ".".join(filter(None, (self.scope, self.name)))


@dataclass(frozen=True, slots=True)
class Making:
    """Where a lock is made: the line, and what is called there, as written."""

    line: int
    call: str


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that run while a lock is held.

    Attributes
    ----------
    lock
        The lock.
    function
        Where its function begins: the line of its `def` or of its first decorator; 0: the module.
    first, last
        The lines.
    """

    lock: LockName
    function: int
    first: int
    last: int


@dataclass(slots=True)
class FileLocks:
    """The locks of one file.

    Attributes
    ----------
    taken
        By line: the locks that are taken there.
    asked
        By line: what is asked there for something that others do (`queue.get()`, `event.wait()`).
    functions
        First and last line of each function.
    sections
        Where they are held.
    made
        By lock: where it is made.
    aliases
        Conditions by the lock that they were given.
    """

    taken: dict[int, list[LockName]] = field(default_factory=dict)
    asked: dict[int, list[LockName]] = field(default_factory=dict)
    functions: list[tuple[int, int]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    made: dict[LockName, list[Making]] = field(default_factory=dict)
    aliases: dict[LockName, LockName] = field(default_factory=dict)

    def taken_at(self, line: int) -> LockName | None:
        """Return the lock that is taken at a line; None where it is none, or more than one."""
        return self._only(self.taken, line)

    def asked_at(self, line: int) -> LockName | None:
        """Return what is asked at a line for something that others do; as `taken_at`."""
        return self._only(self.asked, line)

    def _only(self, table: dict[int, list[LockName]], line: int) -> LockName | None:
        found = {self.resolved(lock) for lock in table.get(line, ())}
        return found.pop() if len(found) == 1 else None

    def held_at(self, line: int) -> tuple[LockName, ...]:
        """Return the locks that are held at a line, each once.

        The line of a `with` is not in its own section.
        """
        # A function that is only made there runs later.
        inside = [first for first, last in self.functions if first <= line <= last]
        function = max(inside, default=0)
        held = (
            one.lock
            for one in self.sections
            if one.first <= line <= one.last and one.function == function
        )
        return tuple(dict.fromkeys(map(self.resolved, held)))

    def resolved(self, lock: LockName) -> LockName:
        """Return the lock that a condition was given, else the lock itself."""
        return self.aliases.get(lock, lock)


def file_locks(source: str | bytes) -> FileLocks:
    """Return the locks of a file.

    Raises
    ------
    SyntaxError, ValueError, RecursionError
        It is no Python that this Python reads.
    """
    tree = ast.parse(source)
    found = FileLocks()
    globals_ = {
        target.id
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in _targets(node)
        if isinstance(target, ast.Name)
    }
    _Reader(found, globals_).block(tree.body, _Scope())
    return found


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a statement stands: the innermost class and function, and that function's line."""

    class_: str = ""
    function: str = ""
    line: int = 0


class _Reader:
    def __init__(self, found: FileLocks, globals_: set[str]) -> None:
        self._found = found
        self._globals = globals_

    def block(self, statements: Sequence[ast.stmt], scope: _Scope) -> None:
        """Read statements that follow one another."""
        for at, statement in enumerate(statements):
            if isinstance(statement, ast.ClassDef):
                self.block(statement.body, _Scope(statement.name))
                continue
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = _inner(scope, statement)
                self._found.functions.append((inner.line, statement.end_lineno or inner.line))
                self.block(statement.body, inner)
                continue
            self._made(statement, scope)
            self._taken(statement, scope)
            if isinstance(statement, (ast.With, ast.AsyncWith)):
                for item in statement.items:
                    lock = self._name(item.context_expr, scope)
                    if lock is not None:
                        self._found.taken.setdefault(item.context_expr.lineno, []).append(lock)
                        self._held(lock, scope, statement.body)
            elif isinstance(statement, ast.Try):
                for lock in self._released(statement.finalbody, scope):
                    self._held(lock, scope, statement.body)
            for lock in self._acquired(statement, scope):
                self._until_release(lock, statements[at + 1 :], scope)
            for block in _blocks(statement):
                self.block(block, scope)

    def _held(self, lock: LockName, scope: _Scope, body: Sequence[ast.stmt]) -> None:
        last = max(statement.end_lineno or statement.lineno for statement in body)
        self._found.sections.append(Section(lock, scope.line, body[0].lineno, last))

    def _until_release(self, lock: LockName, rest: Sequence[ast.stmt], scope: _Scope) -> None:
        for at, statement in enumerate(rest):
            if lock in self._released([statement], scope):
                if at:
                    self._held(lock, scope, rest[:at])
                return

    def _released(self, block: Sequence[ast.stmt], scope: _Scope) -> Iterator[LockName]:
        for statement in block:
            for call in _own_calls(statement):
                if isinstance(call.func, ast.Attribute) and call.func.attr == "release":
                    lock = self._name(call.func.value, scope)
                    if lock is not None:
                        yield lock

    def _acquired(self, statement: ast.stmt, scope: _Scope) -> Iterator[LockName]:
        """Yield locks that a statement by itself acquires for sure: `lock.acquire()`."""
        if not isinstance(statement, (ast.Expr, ast.Assign)):
            return
        call = statement.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return
        if call.func.attr == "acquire" and not call.args and not call.keywords:
            lock = self._name(call.func.value, scope)
            if lock is not None:
                yield lock

    def _taken(self, statement: ast.stmt, scope: _Scope) -> None:
        for call in _own_calls(statement):
            if not isinstance(call.func, ast.Attribute):
                continue
            method = call.func.attr
            if method not in _TAKES and method not in _ASKS:
                continue
            table = self._found.taken if method in _TAKES else self._found.asked
            lock = self._name(call.func.value, scope)
            if lock is not None:
                for line in {call.lineno, call.end_lineno or call.lineno}:
                    table.setdefault(line, []).append(lock)

    def _made(self, statement: ast.stmt, scope: _Scope) -> None:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return
        for target, call in _assigned(statement):
            lock = self._name(target, scope)
            if not isinstance(call, ast.Call) or lock is None:
                continue
            called = _dotted(call.func)
            if called.endswith(_MAKERS):
                self._found.made.setdefault(lock, []).append(Making(call.lineno, called))
            if called.endswith("Condition") and call.args:
                given = self._name(call.args[0], scope)
                if given is not None:
                    self._found.aliases[lock] = given

    def _name(self, expression: ast.expr, scope: _Scope) -> LockName | None:
        """Return a lock by the expression for it; None for what is none (a call's result)."""
        fixed = True
        while isinstance(expression, ast.Subscript):
            expression, fixed = expression.value, False
        dotted = _dotted(expression)
        if not dotted:
            return None
        first, _, rest = dotted.partition(".")
        if first in ("self", "cls") and scope.class_:
            return LockName(scope.class_, rest, fixed)
        if scope.function and first not in self._globals:
            return LockName(scope.function, dotted, fixed)
        return LockName(scope.class_ if not scope.function else "", dotted, fixed)


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    """Return what a statement assigns to, one by one."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])]


def _assigned(
    statement: ast.Assign | ast.AnnAssign,
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield what is assigned to, and what: of `a, b = Lock(), Lock()` each of the two."""
    value = statement.value
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        parts = value.elts if isinstance(value, ast.Tuple) else []
        if isinstance(target, ast.Tuple) and len(target.elts) == len(parts):
            yield from zip(target.elts, parts, strict=True)
        else:
            yield target, value


def _inner(scope: _Scope, function: ast.FunctionDef | ast.AsyncFunctionDef) -> _Scope:
    """Return the scope of a function's body; of a nested one its names are the outermost's."""
    line = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    return _Scope(scope.class_, scope.function or function.name, line)


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """Yield the blocks within a statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body


def _own_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of a statement, those in blocks within it left out."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            yield node
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.Lambda)):
                pending.append(child)


def _dotted(expression: ast.expr) -> str:
    if isinstance(expression, ast.Name):
        return expression.id
    if isinstance(expression, ast.Attribute):
        owner = _dotted(expression.value)
        return f"{owner}.{expression.attr}" if owner else ""
    return ""
