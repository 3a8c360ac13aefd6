"""Optimisers: from parameters and their gradients to the next parameters, which are new roots.

They compute on the client's backend like any operation, so that they queue where it queues.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from contention_lab.autodiff.backend import Array, Handle
from contention_lab.autodiff.tape import Gradients
from contention_lab.autodiff.tensor import Tensor


class SGD:
    """Plain gradient descent, ``w - rate * g``."""

    def __init__(self, rate: float = 0.1) -> None:
        self._rate = rate

    def step(self, parameters: Sequence[Tensor], gradients: Gradients) -> list[Tensor]:
        """Return the next parameters, in the order of `parameters`."""
        return [_moved(w, self._move, w.handle, gradients.handle(w)) for w in parameters]

    def _move(self, w: Array, g: Array) -> Array:
        return w - self._rate * g


class Adam:
    """Adam (Kingma and Ba, 2015, algorithm 1). It keeps moments by position of the parameter."""

    def __init__(self, rate: float = 1e-3, decay: tuple[float, float] = (0.9, 0.999)) -> None:
        self._rate, self._decay, self._steps = rate, decay, 0
        self._moments: dict[int, tuple[Handle, Handle]] = {}

    def step(self, parameters: Sequence[Tensor], gradients: Gradients) -> list[Tensor]:
        """Return the next parameters, in the order of `parameters`."""
        self._steps += 1
        b1, b2 = self._decay
        u1, u2 = 1 - b1**self._steps, 1 - b2**self._steps  # undo the bias towards the zero start

        def move(w: Array, m: Array, v: Array) -> Array:
            return w - self._rate * (m / u1) / (np.sqrt(v / u2) + 1e-8)

        following = []
        for i, w in enumerate(parameters):
            call, g = w.client.backend.call, gradients.handle(w)
            m, v = self._moments.get(i) or (call(np.zeros_like, g),) * 2
            m = call(lambda m, g: b1 * m + (1 - b1) * g, m, g)
            v = call(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)
            self._moments[i] = m, v
            following.append(_moved(w, move, w.handle, m, v))
        return following


def _moved(old: Tensor, kernel: Callable[..., Array], *operands: Handle) -> Tensor:
    handle = old.client.backend.call(lambda *a: np.asarray(kernel(*a), old.dtype), *operands)
    return Tensor(handle, old.client, old.dtype).tracked()


Optimizer: TypeAlias = SGD | Adam
OPTIMIZERS: dict[str, Callable[[float], Optimizer]] = {"sgd": SGD, "adam": Adam}
