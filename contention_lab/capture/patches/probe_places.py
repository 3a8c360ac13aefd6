"""Where in a function probes are put: in its syntax tree, by what its statements do.

By their meaning and not by their lines: the same rules hold for all versions of asyncio. A place
that is not found says so, and then the function is left as it is.

The texts are statements with the names of probes in braces, such as `{took} @ self`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Parse = Callable[[str], list[Any]]
    Place = Callable[[Any, Parse], bool]


def at_start(text: str) -> "Place":
    """Before the first statement."""

    def place(function: "Any", parse: "Parse") -> bool:
        first = _after_docstring(function.body)
        return _insert(function.body, first, parse(text), function.body[first])

    return place


def at_end(text: str) -> "Place":
    """After the last statement of a function that returns there and nowhere else."""

    def place(function: "Any", parse: "Parse") -> bool:
        if any(_is(statement, "Return") for _body, _at, statement in _statements(function.body)):
            return False
        return _insert(function.body, len(function.body), parse(text), function.body[-1])

    return place


def after_try(text: str) -> "Place":
    """After the first statement of the function that is a `try`."""

    def place(function: "Any", parse: "Parse") -> bool:
        for at, statement in enumerate(function.body):
            if _is(statement, "Try"):
                return _insert(function.body, at + 1, parse(text), statement)
        return False

    return place


def before_assignment(text: str) -> "Place":
    """Before the first statement that changes an attribute."""

    def place(function: "Any", parse: "Parse") -> bool:
        for body, at, statement in _statements(function.body):
            if _is(statement, "Assign", "AugAssign"):
                target = statement.target if _is(statement, "AugAssign") else statement.targets[0]
                if _is(target, "Attribute"):
                    return _insert(body, at, parse(text), statement)
        return False

    return place


def before_early_return(text: str) -> "Place":
    """Before the `return` in the first `if`, where the rest of the function waits."""

    def place(function: "Any", parse: "Parse") -> bool:
        for statement in function.body:
            if _is(statement, "If") and _is(statement.body[-1], "Return"):
                body = statement.body
                return _insert(body, len(body) - 1, parse(text), body[-1])
        return False

    return place


def around_await(begins: str, failed: str, over: str) -> "Place":
    """Around the one statement that awaits a future."""

    def place(function: "Any", parse: "Parse") -> bool:
        found = [
            (body, at)
            for body, at, statement in _statements(function.body)
            if _awaits_a_future(statement)
        ]
        if len(found) != 1:
            return False
        body, at = found[0]
        return _enclose(body, at, at + 1, parse, begins, failed, over)

    return place


def around_loop(begins: str, failed: str, over: str) -> "Place":
    """Around the one `while`; it begins where that awaits a future, again and again."""

    def place(function: "Any", parse: "Parse") -> bool:
        loops = [at for at, statement in enumerate(function.body) if _is(statement, "While")]
        if len(loops) != 1:
            return False
        at = loops[0]
        for body, inner, statement in _statements(function.body[at].body):
            if _awaits_a_future(statement):
                _insert(body, inner, parse(begins), statement)
                return _enclose(function.body, at, at + 1, parse, "pass", failed, over)
        return False

    return place


def around_rest(begins: str, failed: str, over: str) -> "Place":
    """Around all that follows the first statement that may refuse the call."""

    def place(function: "Any", parse: "Parse") -> bool:
        first = _after_docstring(function.body)
        if not (_is(function.body[first], "If") and _is(function.body[first].body[-1], "Raise")):
            return False
        return _enclose(function.body, first + 1, len(function.body), parse, begins, failed, over)

    return place


def around_all(begins: str, over: str) -> "Place":
    """Around the whole function."""

    def place(function: "Any", parse: "Parse") -> bool:
        first = _after_docstring(function.body)
        return _enclose(function.body, first, len(function.body), parse, begins, "pass", over)

    return place


def _enclose(
    body: "list[Any]", start: int, end: int, parse: "Parse", begins: str, failed: str, over: str
) -> bool:
    """Put statements into a `try`: a bare `raise` leaves the traceback as it is."""
    anchor = body[start]
    text = f"try:\n pass\nexcept:\n {failed}\n raise\nfinally:\n {over}"
    (enclosing,) = parse(text)
    _put_at(enclosing, anchor)
    enclosing.body = body[start:end]
    body[start:end] = [enclosing]
    return _insert(body, start, parse(begins), anchor)


def _insert(body: "list[Any]", at: int, statements: "list[Any]", anchor: "Any") -> bool:
    for statement in statements:
        _put_at(statement, anchor)
    body[at:at] = statements
    return True


def _put_at(node: "Any", anchor: "Any") -> None:
    """Give a node and all in it the position of another one."""
    if "lineno" in node._attributes:
        node.lineno, node.col_offset = anchor.lineno, anchor.col_offset
        node.end_lineno, node.end_col_offset = anchor.lineno, anchor.col_offset
    for field in node._fields:
        value = getattr(node, field, None)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "_fields"):
                _put_at(each, anchor)


def _statements(body: "list[Any]") -> "Iterator[tuple[list[Any], int, Any]]":
    """Yield the statements in a body, in their order: in which list, where, and itself."""
    for at, statement in enumerate([*body]):
        yield body, at, statement
        for field in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, field, None) or [])
        for handler in getattr(statement, "handlers", ()):
            yield from _statements(handler.body)


def _after_docstring(body: "list[Any]") -> int:
    first = body[0]
    return int(_is(first, "Expr") and _is(first.value, "Constant"))


def _awaits_a_future(statement: "Any") -> bool:
    value = statement.value if _is(statement, "Expr") else None
    return value is not None and _is(value, "Await") and _is(value.value, "Name")


def _is(node: object, *kinds: str) -> bool:
    return type(node).__name__ in kinds
