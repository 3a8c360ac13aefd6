"""The gradient rules, as data: what each operation computes, and one line of calculus per operand.

Nothing here knows the tape. For y = f(a, b) and a scalar loss L with g = dL/dy, the rule of `a`
returns dL/da = g . dy/da, a vector-Jacobian product: reverse mode never builds a Jacobian. A rule
is given g, y, the operands and the operation's options, and nothing else, so all that a tape must
keep is y and the operands: references, not copies.
"""
# ruff: noqa: ARG005 (every rule takes the same arguments, and few need all of them)

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contention_lab.autodiff.backend import Array


@dataclass(frozen=True, slots=True)
class Rule:
    """An operation ``forward(*operands, **options)`` and its derivatives.

    ``backward[i](g, y, *operands, **options)`` is the gradient of operand ``i``.
    """

    forward: Callable[..., Any]
    backward: Sequence[Callable[..., Any]]


def fit(g: Array, like: Array) -> Array:
    """Sum `g` over the axes along which `like` was broadcast: copies add up on the way back."""
    if g.shape == like.shape:
        return g
    g = g.sum(axis=tuple(range(g.ndim - like.ndim)))
    stretched = tuple(i for i, n in enumerate(like.shape) if n == 1 and g.shape[i] != 1)
    total: Array = g.sum(axis=stretched, keepdims=True)
    return total


def spread(g: Array, like: Array, axis: Any, keepdims: bool) -> Array:
    """Undo the shape of a reduction of `like` over `axis`: every summand receives g."""
    if not keepdims:
        g = np.expand_dims(g, tuple(range(like.ndim)) if axis is None else axis)
    return np.broadcast_to(g, like.shape)


def _matmul(a: Array, b: Array) -> Array:
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError(f"matmul needs matrices, not shapes {a.shape} and {b.shape}; reshape them")
    return np.asarray(a @ b)


def _max_gradient(g: Array, y: Array, a: Array, axis: Any, keepdims: bool) -> Array:
    peak = a == spread(y, a, axis, keepdims)  # peaks that are level share the gradient
    return np.asarray(spread(g, a, axis, keepdims) * peak / peak.sum(axis=axis, keepdims=True))


def _transpose_gradient(g: Array, _: Array, a: Array, axes: tuple[int, ...] | None) -> Array:
    return g.transpose(axes and np.argsort([axis % a.ndim for axis in axes]))


def _index_gradient(g: Array, _: Array, a: Array, index: Any) -> Array:
    out = np.zeros_like(a)
    np.add.at(out, index, g)  # and not out[index] += g, which adds once where an index repeats
    return out


def _cross_entropy(a: Array, labels: Array) -> Any:
    z = a - a.max(axis=1, keepdims=True)  # exp cannot overflow, and the quotient stays the same
    return np.mean(np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(labels)), labels])


def _cross_entropy_gradient(g: Array, _: Array, a: Array, labels: Array) -> Array:
    p = np.exp(a - a.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1  # softmax minus the one-hot target
    return np.asarray(p * (g / len(labels)))


RULES: dict[str, Rule] = {
    "add": Rule(np.add, [lambda g, y, a, b: fit(g, a), lambda g, y, a, b: fit(g, b)]),
    "sub": Rule(np.subtract, [lambda g, y, a, b: fit(g, a), lambda g, y, a, b: fit(-g, b)]),
    "mul": Rule(np.multiply, [lambda g, y, a, b: fit(g * b, a), lambda g, y, a, b: fit(g * a, b)]),
    "div": Rule(
        np.divide, [lambda g, y, a, b: fit(g / b, a), lambda g, y, a, b: fit(-g * y / b, b)]
    ),
    "pow": Rule(
        np.power,
        [
            # a ** 0 is 1 everywhere: its derivative at a = 0 is 0, not 0 times infinity.
            lambda g, y, a, b: fit(g * b * a ** np.where(b == 0, 1, b - 1), a),
            lambda g, y, a, b: fit(g * y * np.log(np.where(a > 0, a, 1)), b),
        ],
    ),
    "matmul": Rule(
        _matmul,
        [
            lambda g, y, a, b: fit(g @ b.swapaxes(-1, -2), a),
            lambda g, y, a, b: fit(a.swapaxes(-1, -2) @ g, b),
        ],
    ),
    "neg": Rule(np.negative, [lambda g, y, a: -g]),
    "exp": Rule(np.exp, [lambda g, y, a: g * y]),
    "log": Rule(np.log, [lambda g, y, a: g / a]),
    "relu": Rule(lambda a: np.maximum(a, 0), [lambda g, y, a: g * (a > 0)]),
    "tanh": Rule(np.tanh, [lambda g, y, a: g * (1 - y * y)]),
    "sigmoid": Rule(lambda a: 0.5 + 0.5 * np.tanh(0.5 * a), [lambda g, y, a: g * y * (1 - y)]),
    "sum": Rule(np.sum, [lambda g, y, a, **over: spread(g, a, **over)]),
    "mean": Rule(np.mean, [lambda g, y, a, **over: spread(g, a, **over) * (y.size / a.size)]),
    "max": Rule(np.max, [_max_gradient]),
    "reshape": Rule(lambda a, shape: a.reshape(shape), [lambda g, y, a, shape: g.reshape(a.shape)]),
    "transpose": Rule(np.transpose, [_transpose_gradient]),
    "index": Rule(lambda a, index: a[index], [_index_gradient]),
    "cross_entropy": Rule(_cross_entropy, [_cross_entropy_gradient]),
}
