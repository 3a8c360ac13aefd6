"""Putting recording code around a method of the program's, which stays the object that it was.

The code is called where the interpreter calls the method (`native/around.h`): no frame is added to
tracebacks and stacks, and what was imported or kept under another name is recorded, too.
"""

from contention_lab.native import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from contention_lab.capture.undo import Undo

    Before = Callable[[Any], object] | None
    After = Callable[[Any, Any, bool], object]


def put_around(
    undo: "Undo",
    owner: type,
    name: str,
    what: "str | tuple[Before, After]",
    context: "type | None" = None,
) -> None:
    """Put something around the method `name` of `owner`, if that is a function of Python's, once.

    Parameters
    ----------
    undo
        Takes it away again.
    owner
        The class.
    name
        The method.
    what
        A name in the core's table, or two functions: the first is called with the method's `self`
        before it; what that returned, unless it was None, and the method's result, and whether it
        raised, are for the second. None for the first: `self` is for the second.
    context
        A class of records for the core's code.
    """
    function = vars(owner).get(name)
    if function is not None and _core.put_around(owner, name, function, what, context):
        undo.call(lambda: _core.remove_around(owner, function))
