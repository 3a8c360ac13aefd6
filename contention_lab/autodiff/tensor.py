"""Tensors: values that remember, through their node, how they were computed.

An operation first computes on the backend and then registers its step with the client; it knows
neither how the client shares the server nor when the backend runs. Arrays behind tensors are
never written to, because tapes keep references to them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from contention_lab.autodiff.backend import Array, Handle
from contention_lab.autodiff.clients.client import Client
from contention_lab.autodiff.graph import GraphError, Node, Step
from contention_lab.autodiff.rules import RULES
from contention_lab.autodiff.tape import Gradients

Axis: TypeAlias = int | tuple[int, ...] | None
Operand: TypeAlias = "Tensor | ArrayLike"


def constant(value: ArrayLike, client: Client, dtype: DTypeLike = np.float32) -> "Tensor":
    """Return a copy of `value` as data, through which no gradient flows."""
    return Tensor(np.array(value, dtype), client, np.dtype(dtype))


def parameter(value: ArrayLike, client: Client, dtype: DTypeLike = np.float32) -> "Tensor":
    """Return a copy of `value` as a root of a graph: `Tensor.backward` gives its gradient.

    `dtype` is float32 but for gradient checks, where float32 would drown the differences.
    """
    return constant(value, client, dtype).tracked()


def _operator(name: str) -> Callable[["Tensor", Operand], "Tensor"]:
    def operator(self: "Tensor", other: Operand) -> "Tensor":
        return apply(name, self, self.like(other))

    return operator


def _reflected(name: str) -> Callable[["Tensor", Operand], "Tensor"]:
    def reflected(self: "Tensor", other: Operand) -> "Tensor":
        return apply(name, self.like(other), self)

    return reflected


def _function(name: str) -> Callable[["Tensor"], "Tensor"]:
    def function(self: "Tensor") -> "Tensor":
        return apply(name, self)

    return function


class Tensor:
    """A value on a client's backend. Operators broadcast, and take anything that NumPy takes.

    Attributes
    ----------
    handle : Handle
        The value on the backend, computed or still to come; `numpy` waits for it.
    client : Client
        What steps are registered with.
    dtype : numpy.dtype
        Of the value, of all that is computed from it, and of its gradient.
    node : Node or None
        Its place in the graph; None for data.
    """

    __slots__ = ("client", "dtype", "handle", "node")
    __array_ufunc__ = None  # array + tensor is ours to compute

    def __init__(
        self, handle: Handle, client: Client, dtype: np.dtype[Any], node: Node | None = None
    ) -> None:
        self.handle, self.client, self.dtype, self.node = handle, client, dtype, node

    def tracked(self) -> "Tensor":
        """Return a new root with this value."""
        node = Node()
        self.client.register(node, Step(node.id, 0, (), lambda _: ()), ())
        return Tensor(self.handle, self.client, self.dtype, node)

    def detached(self) -> "Tensor":
        """Return this value as data."""
        return Tensor(self.handle, self.client, self.dtype)

    def like(self, value: Operand) -> "Tensor":
        """Return `value` if it is a tensor, else as data of this client and dtype."""
        return value if isinstance(value, Tensor) else constant(value, self.client, self.dtype)

    def numpy(self) -> Array:
        """Wait for the value and return a read-only view of it."""
        view = self.client.backend.read(self.handle).view()
        view.flags.writeable = False
        return view

    def __float__(self) -> float:
        return float(self.numpy().item())

    def __repr__(self) -> str:
        return f"<Tensor {self.dtype} {f'order {self.node.order}' if self.node else 'data'}>"

    def backward(self, gradient: "Tensor | None" = None) -> Gradients:
        """Return the gradients with respect to the parameters; the graph behind is consumed.

        `gradient`, of this tensor's shape, is where to start from; by default 1, for a single
        value. GraphError if nothing is tracked, the graph was consumed before, or the client
        cannot do this here.
        """
        if self.node is None:
            raise GraphError("nothing behind this tensor is tracked; start from a parameter()")
        start = () if gradient is None else (gradient.handle,)
        seed = self.client.backend.call(_seed, self.handle, *start)
        return self.client.backward(self.node, Gradients(self.client.backend, self.node, seed))

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("sub"), _reflected("sub")
    __mul__, __rmul__ = _operator("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _operator("div"), _reflected("div")
    __pow__, __rpow__ = _operator("pow"), _reflected("pow")
    __matmul__, __rmatmul__ = _operator("matmul"), _reflected("matmul")
    __neg__, exp, log = _function("neg"), _function("exp"), _function("log")
    relu, tanh, sigmoid = _function("relu"), _function("tanh"), _function("sigmoid")

    def sum(self, axis: Axis = None, keepdims: bool = False) -> "Tensor":
        """Sum over one axis, several, or all."""
        return apply("sum", self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> "Tensor":
        """Mean over one axis, several, or all."""
        return apply("mean", self, axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> "Tensor":
        """Maximum over one axis, several, or all; equal maxima share the gradient."""
        return apply("max", self, axis=axis, keepdims=keepdims)

    def reshape(self, *shape: int) -> "Tensor":
        """Same elements in another shape; one length may be -1."""
        return apply("reshape", self, shape=shape)

    def transpose(self, *axes: int) -> "Tensor":
        """Permute the axes; by default reverse them."""
        return apply("transpose", self, axes=axes or None)

    def __getitem__(self, index: Any) -> "Tensor":
        return apply("index", self, index=index)

    def cross_entropy(self, labels: ArrayLike) -> "Tensor":
        """Mean cross-entropy of the softmax of these logits, shape (n, classes).

        `labels` holds the right column for each row: integers, shape (n,).
        """
        labels = np.asarray(labels)
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels < 0).any():
            raise ValueError("labels must be one column index (an integer >= 0) for each row")
        return apply("cross_entropy", self, labels=labels)


def apply(name: str, *operands: Tensor, **options: Any) -> Tensor:
    """Compute the operation `name` of `rules.RULES` and record the way back."""
    rule, call, dtype = RULES[name], operands[0].client.backend.call, operands[0].dtype
    handles = [operand.handle for operand in operands]
    value = call(partial(_kernel, rule.forward, dtype, options), *handles)
    kernels = [
        partial(_kernel, backward, dtype, options)
        for backward, operand in zip(rule.backward, operands, strict=True)
        if operand.node is not None
    ]
    return record(
        value, operands, lambda g: [call(kernel, g, value, *handles) for kernel in kernels]
    )


def record(
    value: Handle, operands: Sequence[Tensor], pull_back: Callable[[Handle], Sequence[Handle]]
) -> Tensor:
    """Return what was computed as a tensor, its step registered if an operand is tracked.

    `pull_back` turns its gradient into those of the *tracked* operands, in order.
    """
    client, dtype = operands[0].client, operands[0].dtype
    if any(operand.client is not client or operand.dtype != dtype for operand in operands):
        raise ValueError("the operands differ in client or dtype; make them with the same")
    parents = [operand.node for operand in operands if operand.node is not None]
    if not parents:
        return Tensor(value, client, dtype)
    node = Node(parents)
    client.register(node, Step(node.id, node.order, node.parents, pull_back), parents)
    return Tensor(value, client, dtype, node)


def _kernel(
    function: Callable[..., Any], dtype: np.dtype[Any], options: dict[str, Any], *arrays: Array
) -> Array:
    return np.asarray(function(*arrays, **options), dtype)


def _seed(value: Array, gradient: Array | None = None) -> Array:
    if gradient is None and value.size == 1:
        return np.ones_like(value)
    if gradient is None or gradient.shape != value.shape:
        raise ValueError(f"backward needs a gradient of this tensor's shape, {value.shape}")
    return gradient
