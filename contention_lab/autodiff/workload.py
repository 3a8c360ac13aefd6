"""The workload: a fixed batch of small independent trainings, spread over threads.

It measures the batch and interprets nothing. The trainings are the same whatever the client and
the number of threads, down to the last bit of their losses.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from contention_lab import locks
from contention_lab.autodiff.backend import Array
from contention_lab.autodiff.clients import CLIENTS, connect
from contention_lab.autodiff.clients.client import Client, unknown
from contention_lab.autodiff.layers import MLP, initial_weights
from contention_lab.autodiff.optimizers import OPTIMIZERS
from contention_lab.autodiff.tensor import constant, parameter

Around: TypeAlias = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is trained, and how; `parse` makes one."""

    client: str = "global-spinlock"
    lock: str = ""  # the client's usual kind
    trainings: int = 32
    steps: int = 4
    batch: int = 1024  # rows that a model sees at each step
    layers: tuple[int, ...] = (128, 256, 10)  # widths: inputs, hidden layers, classes
    optimizer: str = "sgd"
    rate: float = 0.05  # of learning
    seed: int = 0  # of data and initial weights


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """What one run of the batch took and gave."""

    wall_s: float  # of the batch
    cpu_s: float  # of the whole process during the batch
    work: int  # trainings
    losses: tuple[float, ...]  # at the last step of each training
    accuracies: tuple[float, ...]  # shares of rows classified rightly, at the same moment


def defaults() -> dict[str, Any]:
    """Return the parameters' names and default values, as TOML or JSON would hold them."""
    return {**asdict(Parameters()), "layers": list(Parameters().layers)}


def run(
    parameters: Mapping[str, Any],
    threads: int,
    around: Around = nullcontext,
) -> WorkloadResult:
    """Train the batch on some threads, after a small warm-up, with BLAS on one thread.

    Parameters
    ----------
    parameters : mapping
        Changes to `defaults`.
    threads : int
        Number of threads; each takes the next training that nobody has begun.
    around : callable, optional
        Returns a context manager that is entered just before the batch and left just after, in
        which it can be recorded; what it takes itself is not counted.

    Raises ValueError for parameters as `parse` does, and for threads that are no positive integer.
    """
    p = parse(parameters)
    if not _whole(threads):
        raise ValueError(f"threads must be a positive integer, not {threads!r}")
    with threadpool_limits(1, "blas"), connect(p.client, p.lock or None) as client:
        tasks = [Task.of(p, number) for number in range(p.trainings)]
        crew = Crew([partial(task.train, client, p.steps) for task in tasks])
        return crew.run(threads, partial(tasks[0].train, client, steps=1), around)


@dataclass(frozen=True, slots=True)
class Task:
    """One training: data to learn, weights to start from, and how to move them."""

    inputs: Array
    labels: Array
    weights: Sequence[Array]
    optimizer: str
    rate: float

    @classmethod
    def of(cls, p: Parameters, number: int) -> "Task":
        """Make a training of the batch, with the labels that a random linear map would give."""
        random = np.random.default_rng([p.seed, number])
        inputs = random.standard_normal((p.batch, p.layers[0]), np.float32)
        teacher = random.standard_normal((p.layers[0], p.layers[-1]), np.float32)
        labels = (inputs @ teacher).argmax(axis=1)
        return cls(inputs, labels, initial_weights(p.layers, random), p.optimizer, p.rate)

    def train(self, client: Client, steps: int) -> tuple[float, float]:
        """Train a new model and return its loss and accuracy at the last step.

        As training loops do, it looks at the accuracy of every step before going backward.
        """
        inputs = constant(self.inputs, client)
        model = MLP(tuple(parameter(array, client) for array in self.weights))
        optimizer = OPTIMIZERS[self.optimizer](self.rate)
        for _ in range(steps):
            scores = model(inputs)
            loss = scores.cross_entropy(self.labels)
            accuracy = client.backend.call(self.accuracy, scores.handle)
            model = MLP(tuple(optimizer.step(model.parameters, loss.backward())))
        return float(loss), float(client.backend.read(accuracy))

    def accuracy(self, scores: Array) -> Array:
        """Return the share of rows whose largest score is that of their label."""
        return np.asarray((scores.argmax(axis=1) == self.labels).mean())


class Crew:
    """Threads that do a list of jobs, timed from a common start; the first exception ends it."""

    def __init__(self, jobs: Sequence[Callable[[], tuple[float, float]]]) -> None:
        self._todo = deque(enumerate(jobs))
        self._results, self._errors = dict[int, tuple[float, float]](), list[BaseException]()
        self._warming, self._go = threading.Lock(), threading.Event()

    def run(self, threads: int, warm_up: Callable[[], object], around: Around) -> WorkloadResult:
        """Do the jobs on new threads.

        Each thread warms up first, one after the other. For one, its memory is then its own: in a
        training that takes minutes, the first touch of every page does not count.
        """
        warm = threading.Barrier(threads + 1)
        pool = [
            threading.Thread(target=self._work, args=(warm_up, warm), name=f"trainer {i}")
            for i in range(threads)
        ]
        try:
            for thread in pool:
                thread.start()
            with suppress(threading.BrokenBarrierError):  # the error itself is raised below
                warm.wait()
            with around():
                wall_s, cpu_s = time.perf_counter(), time.process_time()
                self._go.set()
                for thread in pool:
                    thread.join()
                wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
        finally:  # after Ctrl-C each thread ends with the training it is in
            self._todo.clear()
            self._go.set()
            warm.abort()
        if self._errors:
            raise self._errors[0]
        results = [self._results[number] for number in range(len(self._results))]
        losses, accuracies = zip(*results, strict=True)
        return WorkloadResult(wall_s, cpu_s, len(results), losses, accuracies)

    def _work(self, warm_up: Callable[[], object], warm: threading.Barrier) -> None:
        try:
            with self._warming:
                warm_up()
            warm.wait()
            self._go.wait()
            while True:
                try:
                    number, job = self._todo.popleft()
                except IndexError:  # all are taken
                    return
                self._results[number] = job()
        except BaseException as error:
            self._errors.append(error)
            self._todo.clear()
            warm.abort()


def parse(given: Mapping[str, Any]) -> Parameters:
    """Return the defaults, changed by `given`.

    An unknown key or name (the nearest is told) or an impossible value is a one-line ValueError.
    """
    known = {"client": [*CLIENTS], "lock": ["", *locks.KINDS], "optimizer": [*OPTIMIZERS]}
    for key, value in given.items():
        if key not in defaults():
            raise ValueError(unknown("parameter", key, defaults()))
        if key in known:
            if value not in known[key]:
                raise ValueError(unknown(key, str(value), known[key]))
            continue
        test, wanted = _CHECKS.get(key, (_whole, "a positive integer"))
        if not test(value):
            raise ValueError(f"parameter {key!r} must be {wanted}, not {value!r}")
    changes: dict[str, Any] = {k: tuple(v) if k == "layers" else v for k, v in given.items()}
    return Parameters(**changes)


def _whole(value: object, least: int = 1) -> bool:
    return type(value) is int and value >= least


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "layers": (
        lambda v: isinstance(v, list | tuple) and len(v) > 1 and all(map(_whole, v)),
        "a list of two or more positive integers",
    ),
    "rate": (lambda v: type(v) in (int, float) and 0 < v < float("inf"), "a positive number"),
    "seed": (lambda v: _whole(v, 0), "an integer of 0 or more"),
}
