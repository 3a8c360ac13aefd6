"""Checkpointing: forget a part of the graph on the way forward, rebuild it on the way back.

It saves the memory of the part's intermediate values and pays by computing them twice. It is here
because its step is a whole backward pass: the case of a backward pass inside another, which a
client that holds one lock from end to end cannot serve.
"""

from collections.abc import Callable

import numpy as np

from contention_lab.autodiff.backend import Handle
from contention_lab.autodiff.tensor import Tensor, record


def checkpoint(function: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """Return ``function(*operands)`` as one step of the graph.

    `function` is called on untracked operands now, and on tracked ones in the backward pass. It
    must depend on tracked tensors through `operands` only, else it is a ValueError.
    """
    inputs = [operand.detached() for operand in operands]
    output = function(*inputs)
    if output.node is not None:
        raise ValueError("a checkpointed function uses a tracked tensor that is not an operand")
    wanted = [operand.node is not None for operand in operands]

    def pull_back(gradient: Handle) -> list[Handle]:
        again = [x.tracked() if track else x for x, track in zip(inputs, wanted, strict=True)]
        start = Tensor(gradient, output.client, output.dtype)
        inner, call = function(*again).backward(start), output.client.backend.call
        return [
            inner.handle(x) if x in inner else call(np.zeros_like, x.handle)
            for x in again
            if x.node is not None
        ]

    return record(output.handle, operands, pull_back)
