"""Layers and a multi-layer perceptron, as values: an optimiser's step gives a new model.

They hold parameters and no state of a training. Nothing is updated in place, for a tape, or a
kernel that is still queued, may refer to the old parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from contention_lab.autodiff.backend import Array
from contention_lab.autodiff.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Linear:
    """An affine layer, ``x @ weight + bias``: weight (inputs, outputs), bias (outputs,)."""

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Map a batch, shape (n, inputs), to shape (n, outputs)."""
        return x @ self.weight + self.bias


@dataclass(frozen=True, slots=True)
class MLP:
    """A multi-layer perceptron: linear layers with ReLU between them.

    `parameters` are the weight and bias of each layer in turn.
    """

    parameters: Sequence[Tensor]

    def __call__(self, x: Tensor) -> Tensor:
        """Map a batch, shape (n, inputs), to logits, shape (n, outputs)."""
        *hidden, last = map(Linear, self.parameters[::2], self.parameters[1::2])
        for layer in hidden:
            x = layer(x).relu()
        return last(x)


def initial_weights(widths: Sequence[int], random: np.random.Generator) -> list[Array]:
    """Return the arrays from which to start an `MLP` of these widths, float32.

    Weights are normal with variance 2 / inputs, which keeps the variance of a signal through ReLU
    layers (He et al., "Delving deep into rectifiers", 2015); biases are 0.
    """
    arrays: list[Array] = []
    for n, m in pairwise(widths):
        arrays.append((random.standard_normal((n, m)) * np.sqrt(2 / n)).astype(np.float32))
        arrays.append(np.zeros(m, np.float32))
    return arrays
