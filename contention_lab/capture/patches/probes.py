"""Probes: calls into the recorder from within functions of the standard library, in place.

The function stays the same object, with the same name, file and lines: its code object is compiled
anew from its own source with the probes between its statements, at the lines of those. Nothing is
added to the stack, so tracebacks, coroutines and warnings are what they were. What a probe does is
a constant of that code (`native/probe.h`); no name is added anywhere.

The source is used only if, without probes, it compiles to the code that runs. Where it does not (it
has changed meanwhile, somebody else has replaced the function) nothing is changed and the caller
records nothing of it.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType
    from typing import Any

    from contention_lab.capture.patches.probe_places import Place
    from contention_lab.capture.undo import Undo
    from contention_lab.native import _core

_AS_TREE = 0x400
"""`ast.PyCF_ONLY_AST`, without importing `ast`."""

_FUTURE_FEATURES = 0x1FE0000
"""Flags of a code object that say how to compile its source."""

_WHAT_IT_DOES = (
    *("co_code", "co_names", "co_varnames", "co_freevars", "co_flags"),
    *("co_firstlineno", "co_linetable", "co_exceptiontable"),
)
"""Attributes of a code object."""

_probed: "dict[int, tuple[CodeType, CodeType]]" = {}
"""By the id of a code object: itself, and the one with probes. Both are kept: they may run."""

_ours: "set[int]" = set()
"""The ids of code objects with probes."""

_last_read: "list[Any]" = [None, [], set()]
"""A source file and its state, its lines and what it imports: several functions of it follow."""

refused: "set[str]" = set()
"""Classes and functions whose source could not be used."""


def insert(
    undo: "Undo",
    owner: "Any",
    places: "Mapping[str, tuple[Place, ...]]",
    probes: "Mapping[str, _core.Probe]",
) -> bool:
    """Insert probes into several functions of a class or module, or into none.

    Parameters
    ----------
    undo
        Takes them out again.
    owner
        The class or module.
    places
        By the function's name: where to put what.
    probes
        By the names that the places use.

    Returns
    -------
    bool
        Whether they are there now.
    """
    pairs = []
    for name, edits in places.items():
        function = _own(owner, name)
        code = None if function is None else _with_probes(function.__code__, owner, edits, probes)
        if code is None:
            refused.add(_called(owner))
            return False
        pairs.append((function, code))
    for function, code in pairs:
        if function.__code__ is not code:
            _exchange(undo, function, code)
    return True


def _exchange(undo: "Undo", function: "Any", code: "CodeType") -> None:
    before = function.__code__
    function.__code__ = code

    def put_back() -> None:
        if function.__code__ is code:
            function.__code__ = before

    undo.call(put_back)


def _called(owner: "Any") -> str:
    is_module = isinstance(owner, type(sys))
    return str(owner.__name__) if is_module else f"{owner.__module__}.{owner.__qualname__}"


def _own(owner: "Any", name: str) -> "Any":
    """Return the owner's own function of that name, below what others have wrapped around it."""
    module = owner.__name__ if isinstance(owner, type(sys)) else owner.__module__
    function = vars(owner).get(name)
    while function is not None:
        variables = getattr(function, "__globals__", None)
        if variables is not None and variables.get("__name__") == module:
            return function
        function = getattr(function, "__wrapped__", None)
    return None


def _with_probes(
    code: "CodeType",
    owner: "Any",
    places: "tuple[Place, ...]",
    probes: "Mapping[str, _core.Probe]",
) -> "CodeType | None":
    """Return a function's code with probes in it, None if that cannot be made."""
    if id(code) in _ours:
        return code
    known = _probed.get(id(code))
    if known is not None:
        return known[1]
    tree = _tree(code, owner)
    if tree is None or not _same_constant(_compiled(tree, code), code):
        return None
    texts = {name: repr(_marker(name)) for name in probes}
    function = tree.body[-1]
    function = function if hasattr(function, "args") else function.body[0]
    for place in places:
        if not place(function, lambda text: _statements(text.format_map(texts))):
            return None
    made: CodeType = _compiled(tree, code)
    by_marker = {_marker(name): probe for name, probe in probes.items()}
    constants = tuple(
        by_marker.get(constant, constant) if type(constant) is str else constant
        for constant in made.co_consts
    )
    made = made.replace(co_consts=constants, co_qualname=code.co_qualname)
    _probed[id(code)] = code, made
    _ours.add(id(made))
    return made


def _marker(name: str) -> str:
    return f"\0probe {name}"


def _statements(text: str) -> "list[Any]":
    tree: Any = compile(text, "<probe>", "exec", _AS_TREE, dont_inherit=True)
    return list(tree.body)


def _tree(code: "CodeType", owner: "Any") -> "Any":
    """Return the tree of a function's source, in its class, at its lines; None if there is none."""
    lines, imported = _read(code.co_filename)
    start = code.co_firstlineno - 1
    if not 2 <= start < len(lines):
        return None
    indent = _indent(lines[start])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > indent):
        end += 1
    head = [""] * start
    names = [name for name in code.co_names if name in imported]
    head[0] = f"import {', '.join(names)}" if names else ""
    head[-1] = f"class {owner.__name__}:" if indent else ""
    text = "\n".join(head) + "\n" + "".join(lines[start:end])
    flags = _AS_TREE | code.co_flags & _FUTURE_FEATURES
    try:
        return compile(text, code.co_filename, "exec", flags, dont_inherit=True)
    except SyntaxError:
        return None


def _read(path: str) -> "tuple[list[str], set[str]]":
    """Return a file's lines and what it imports, of which calls compile otherwise."""
    try:
        status = os.stat(path)
        state = path, status.st_mtime_ns, status.st_size
        if _last_read[0] != state:
            with open(path, encoding="utf-8") as file:
                lines = file.readlines()
            imports = [line.split() for line in lines if line.startswith(("import ", "from "))]
            imported = {word.strip(",") for words in imports for word in words}
            _last_read[:] = state, lines, imported
    except (OSError, ValueError):
        return [], set()
    return _last_read[1], _last_read[2]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _compiled(tree: "Any", code: "CodeType") -> "Any":
    """Return the code of the function in a tree, None if it is not there."""
    flags = code.co_flags & _FUTURE_FEATURES
    inner: Any = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
    while inner is not None and inner.co_name != code.co_name:
        inner = next((each for each in inner.co_consts if isinstance(each, type(code))), None)
    return inner


def _same(one: "CodeType", other: "CodeType") -> bool:
    """Return whether two code objects do the same, at the same lines."""
    return (
        all(getattr(one, name) == getattr(other, name) for name in _WHAT_IT_DOES)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_same_constant, one.co_consts, other.co_consts))
    )


def _same_constant(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    return _same(one, other) if hasattr(one, "co_code") else one == other  # type: ignore[arg-type]
