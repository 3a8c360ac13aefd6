"""A reference engine for reverse-mode differentiation, whose server can be shared in seven ways.

Read it in this order: `graph` (nodes and steps), `rules` (the calculus), `tensor` (forward:
compute, then register a step), `tape` (backward: run the steps in reverse), `server` and `memory`
(where steps wait, and what may be forgotten), `clients` (who may touch the server, and when).
`layers`, `optimizers` and `workload` train models with it. It imports no sibling but `locks`.

>>> with connect("thread-local") as client:
...     x = parameter([1.0, 2.0], client)
...     gradients = (x * x).sum().backward()
>>> gradients[x].tolist()
[2.0, 4.0]
"""

from contention_lab.autodiff.checkpoint import checkpoint
from contention_lab.autodiff.clients import CLIENTS, connect
from contention_lab.autodiff.graph import GraphError
from contention_lab.autodiff.tensor import Tensor, constant, parameter

__all__ = ["CLIENTS", "GraphError", "Tensor", "checkpoint", "connect", "constant", "parameter"]
