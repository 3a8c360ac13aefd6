"""Optimisers, models and the workload: they learn, and all clients learn the same."""

from contextlib import contextmanager

import numpy as np
import pytest

from contention_lab.autodiff import CLIENTS, connect, parameter
from contention_lab.autodiff.optimizers import OPTIMIZERS, SGD, Adam
from contention_lab.autodiff.workload import defaults, parse, run

TINY = {"trainings": 6, "steps": 4, "batch": 16, "layers": [8, 12, 5]}


@pytest.fixture(scope="module")
def expected():
    return run({**TINY, "client": "thread-local"}, 1).losses


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("client", CLIENTS)
def test_losses_are_the_same_to_the_last_bit_whatever_the_client(client, threads, expected):
    result = run({**TINY, "client": client}, threads)
    assert result.losses == expected
    assert result.work == 6
    assert result.wall_s > 0
    assert result.cpu_s > 0


@pytest.mark.parametrize("client", ["narrow-lock", "async-backend"])
def test_adam_is_the_same_to_the_last_bit_whatever_the_client(client):
    adam = {**TINY, "optimizer": "adam", "rate": 0.01}
    losses = [run({**adam, "client": c}, 4).losses for c in ("global-mutex", client)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 0.1), ("adam", 0.01)])
def test_training_lowers_the_loss(optimizer, rate):
    first, last = (
        run({**TINY, "optimizer": optimizer, "rate": rate, "steps": steps}, 1).losses
        for steps in (1, 40)
    )
    assert all(b < 0.5 * a for a, b in zip(first, last, strict=True))


def test_training_raises_the_accuracy_which_is_a_share():
    first, last = (run({**TINY, "rate": 0.1, "steps": n}, 2).accuracies for n in (1, 40))
    assert all(0 <= a < b <= 1 for a, b in zip(first, last, strict=True))
    assert all((a * TINY["batch"]).is_integer() for a in (*first, *last))


def test_another_seed_is_another_batch(expected):
    losses = run({**TINY, "seed": 1}, 1).losses
    assert len(set(losses) | set(expected)) == 12


def test_sgd_moves_against_the_gradient():
    with connect("thread-local") as client:
        w = parameter([1.0, 2.0], client)
        (moved,) = SGD(0.5).step([w], (w * w).sum().backward())
        assert moved.numpy().tolist() == [0.0, 0.0]


def test_adam_follows_its_definition():
    def reference(w, gradient, steps, rate=0.1, b1=0.9, b2=0.999):
        m = v = np.zeros_like(w)
        for t in range(1, steps + 1):
            g = gradient(w)
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
            w = w - rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8)
        return w

    start = np.array([1.0, -3.0])
    with connect("thread-local") as client:
        adam, w = Adam(0.1), parameter(start, client, np.float64)
        for _ in range(5):
            (w,) = adam.step([w], (w**4).sum().backward())
        expected = reference(start, lambda w: 4 * w**3, 5)
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-12)


def test_only_the_batch_is_inside_the_context_around_it():
    seen = []

    @contextmanager
    def around():
        seen.append("in")
        yield
        seen.append("out")

    assert run(TINY, 2, around).work == 6
    assert seen == ["in", "out"]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("good_steps", [0, 1])  # fails in the warm-up, or in the batch
@pytest.mark.parametrize("error", [ArithmeticError, IndexError])
def test_an_error_in_a_training_reaches_the_caller(monkeypatch, error, good_steps, threads):
    class Broken:
        def __init__(self, rate):
            self.left = good_steps

        def step(self, parameters, gradients):
            if not self.left:
                raise error("diverged")
            self.left -= 1
            return parameters

    monkeypatch.setitem(OPTIMIZERS, "sgd", Broken)
    with pytest.raises(error, match="diverged"):
        run(TINY, threads)


def test_defaults_are_valid_and_plain():
    assert parse(defaults()) == parse({})
    assert {type(v) for v in defaults().values()} <= {int, float, str, list}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stesp": 1}, "parameter 'stesp' is unknown; did you mean 'steps'?"),
        ({"client": "narow-lock"}, "client 'narow-lock' is unknown; did you mean 'narrow-lock'?"),
        ({"client": 3}, "client '3' is unknown"),
        ({"client": ["narrow-lock"]}, "is unknown"),
        ({"lock": "mutx"}, "lock 'mutx' is unknown; did you mean 'mutex'?"),
        ({"optimizer": "adm"}, "optimizer 'adm' is unknown; did you mean 'adam'?"),
        ({"steps": 0}, "parameter 'steps' must be a positive integer, not 0"),
        ({"steps": True}, "parameter 'steps' must be a positive integer, not True"),
        ({"steps": 1.5}, "parameter 'steps' must be a positive integer, not 1.5"),
        ({"trainings": "8"}, "parameter 'trainings' must be a positive integer, not '8'"),
        ({"seed": -1}, "parameter 'seed' must be an integer of 0 or more, not -1"),
        ({"rate": 0}, "parameter 'rate' must be a positive number, not 0"),
        ({"rate": float("nan")}, "parameter 'rate' must be a positive number, not nan"),
        ({"layers": [8]}, "parameter 'layers' must be a list of two or more positive integers"),
        ({"layers": "8,8"}, "parameter 'layers' must be a list of two or more positive integers"),
    ],
)
def test_parameters_that_cannot_be_are_refused_in_one_line(given, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the text is compared below)
        parse(given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("threads", [0, -1, 1.0, True])
def test_threads_must_be_a_positive_integer(threads):
    with pytest.raises(ValueError, match="threads must be a positive integer"):
        run(TINY, threads)
