"""Every gradient rule against finite differences, in float64 so that differences mean something."""

import numpy as np
import pytest

from contention_lab.autodiff import GraphError, connect, constant, parameter
from contention_lab.autodiff.layers import MLP, initial_weights
from contention_lab.autodiff.rules import RULES

LABELS = np.array([2, 0, 1, 2])


def values(*shape, low=-1.5, high=1.5):
    """Numbers at least 0.02 apart from each other and from 0, where some rules have kinks."""
    count = int(np.prod(shape))
    grid = np.linspace(low, high, count + 2)[1:-1] + 0.013
    return np.random.default_rng(count).permutation(grid).reshape(shape)


# name of the rule, function of tensors, operands
CASES = [
    ("add", lambda a, b: a + b, [values(3, 4), values(3, 4)]),
    ("add", lambda a, b: a + b, [values(3, 4), values(4)]),
    ("add", lambda a: 2.5 + a, [values(3)]),
    ("sub", lambda a, b: a - b, [values(3, 1), values(2, 1, 4)]),
    ("sub", lambda a: 1.0 - a, [values(3)]),
    ("mul", lambda a, b: a * b, [values(3, 4), values(1, 4)]),
    ("mul", lambda a, b: a * b, [values(2, 3), np.array(0.7)]),
    ("mul", lambda a: a * a, [values(3)]),
    ("mul", lambda a: np.arange(3.0) * a, [values(3)]),
    ("div", lambda a, b: a / b, [values(3, 4), values(4, low=0.5, high=2)]),
    ("div", lambda a: 1 / a, [values(4, low=0.5, high=2)]),
    ("neg", lambda a: -a, [values(3)]),
    ("pow", lambda a: a**3, [values(5)]),
    ("pow", lambda a: a**-2.0, [values(5, low=0.5, high=2)]),
    ("pow", lambda a, b: a**b, [values(3, 4, low=0.5, high=2), values(4)]),
    ("pow", lambda b: 2.0**b, [values(4)]),
    ("exp", lambda a: a.exp(), [values(3, 4)]),
    ("log", lambda a: a.log(), [values(3, 4, low=0.5, high=2)]),
    ("relu", lambda a: a.relu(), [values(3, 4)]),
    ("tanh", lambda a: a.tanh(), [values(3, 4)]),
    ("sigmoid", lambda a: a.sigmoid(), [values(3, 4)]),
    ("matmul", lambda a, b: a @ b, [values(3, 4), values(4, 2)]),
    ("matmul", lambda a, b: a @ b, [values(2, 3, 4), values(4, 2)]),
    ("matmul", lambda a, b: a @ b, [values(3, 4), values(2, 4, 5)]),
    ("matmul", lambda b: np.ones((2, 3)) @ b, [values(3, 4)]),
    ("sum", lambda a: a.sum(), [values(3, 4)]),
    ("sum", lambda a: a.sum(axis=1), [values(3, 4)]),
    ("sum", lambda a: a.sum(axis=(0, -1), keepdims=True), [values(2, 3, 4)]),
    ("mean", lambda a: a.mean(), [values(3, 4)]),
    ("mean", lambda a: a.mean(axis=-1), [values(2, 3, 4)]),
    ("mean", lambda a: a.mean(axis=(0, 2), keepdims=True), [values(2, 3, 4)]),
    ("max", lambda a: a.max(), [values(3, 4)]),
    ("max", lambda a: a.max(axis=0), [values(3, 4)]),
    ("max", lambda a: a.max(axis=(1, 2), keepdims=True), [values(2, 3, 4)]),
    ("reshape", lambda a: a.reshape(2, -1), [values(3, 4)]),
    ("transpose", lambda a: a.transpose(), [values(2, 3, 4)]),
    ("transpose", lambda a: a.transpose(1, 2, 0), [values(2, 3, 4)]),
    ("transpose", lambda a: a.transpose(0, -1, 1), [values(2, 3, 4)]),
    ("index", lambda a: a[1], [values(3, 4)]),
    ("index", lambda a: a[:, ::2], [values(3, 4)]),
    ("index", lambda a: a[..., None], [values(3)]),
    ("index", lambda a: a[[0, 2, 0, 0]], [values(3, 4)]),
    ("index", lambda a: a[np.arange(3), [1, 1, 0]], [values(3, 4)]),
    ("cross_entropy", lambda a: a.cross_entropy(LABELS), [values(4, 3)]),
]
IDS = [f"{name}-{'x'.join(str(o.shape) for o in operands)}" for name, _, operands in CASES]


@pytest.fixture
def client():
    with connect("thread-local") as client:
        yield client


def differences(function, operands, step=1e-5):
    """Central differences of a scalar function of arrays: the error is of the order step ** 2."""
    gradients = []
    for i, operand in enumerate(operands):
        gradient = np.zeros_like(operand)
        for at in np.ndindex(operand.shape):
            low, high = [o.copy() for o in operands], [o.copy() for o in operands]
            low[i][at] -= step
            high[i][at] += step
            gradient[at] = (function(*high) - function(*low)) / (2 * step)
        gradients.append(gradient)
    return gradients


def weighted(function, client, dtype):
    """Make a scalar of the function's value, such that every element has its own weight."""

    def scalar(*tensors):
        out = function(*tensors)
        shape = out.numpy().shape
        weights = np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape) + 0.1
        return (out * constant(weights, client, dtype)).sum()

    return scalar


def test_every_rule_has_a_case():
    assert {name for name, _, _ in CASES} == set(RULES)


@pytest.mark.parametrize(("name", "function", "operands"), CASES, ids=IDS)
def test_gradient_agrees_with_finite_differences(client, name, function, operands):
    scalar = weighted(function, client, np.float64)
    tensors = [parameter(o, client, np.float64) for o in operands]
    gradients = scalar(*tensors).backward()

    def plain(*arrays):
        return float(scalar(*[constant(a, client, np.float64) for a in arrays]))

    for tensor, expected in zip(tensors, differences(plain, operands), strict=True):
        np.testing.assert_allclose(gradients[tensor], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "function", "operands"), CASES, ids=IDS)
def test_float32_gives_the_float64_gradient_to_its_precision(client, name, function, operands):
    results = []
    for dtype in (np.float32, np.float64):
        rounded = [o.astype(np.float32) for o in operands]
        tensors = [parameter(o, client, dtype) for o in rounded]
        gradients = weighted(function, client, dtype)(*tensors).backward()
        results.append([gradients[t] for t in tensors])
    for single, double in zip(*results, strict=True):
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-5)


def test_gradient_of_a_whole_model_agrees_with_finite_differences(client):
    arrays = [a.astype(np.float64) for a in initial_weights([5, 4, 3], np.random.default_rng(1))]
    arrays[1] += 0.3  # keep the differences on one side of every kink of relu
    inputs = constant(values(4, 5), client, np.float64)
    parameters = [parameter(a, client, np.float64) for a in arrays]
    gradients = MLP(parameters)(inputs).cross_entropy(LABELS).backward()

    def plain(*arrays):
        model = MLP([constant(a, client, np.float64) for a in arrays])
        return float(model(inputs).cross_entropy(LABELS))

    for tensor, expected in zip(parameters, differences(plain, arrays), strict=True):
        np.testing.assert_allclose(gradients[tensor], expected, rtol=1e-6, atol=1e-9)


def test_equal_maxima_share_the_gradient(client):
    x = parameter([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]], client)
    gradients = x.max(axis=1).sum().backward()
    assert gradients[x].tolist() == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]


def test_power_zero_has_derivative_zero_even_at_zero(client):
    x = parameter([0.0, 2.0], client)
    assert (x**0).sum().backward()[x].tolist() == [0.0, 0.0]


def test_cross_entropy_survives_logits_whose_exponentials_overflow(client):
    x = parameter([[1000.0, 0.0], [0.0, -1000.0]], client)
    loss = x.cross_entropy([0, 1])
    assert float(loss) == 500.0
    assert loss.backward()[x].tolist() == [[0.0, 0.0], [0.5, -0.5]]


def test_gradients_of_all_uses_of_a_value_add_up(client):
    x = parameter([2.0], client)
    y = x * 3
    assert (y * y + y + x).sum().backward()[x].tolist() == [2 * 3 * 6 + 3 + 1]


def test_a_diamond_of_unequal_depth_runs_each_step_once_and_after_all_its_uses(client):
    x = parameter([1.0], client)
    y = x + 1
    short, long = y * 2, ((y * 3) + 0) * 1
    assert (short + long).sum().backward()[x].tolist() == [5.0]


def test_backward_starts_from_a_given_gradient(client):
    x = parameter([1.0, 2.0], client)
    gradients = (x * x).backward(constant([1.0, 10.0], client))
    assert gradients[x].tolist() == [2.0, 40.0]


def test_a_graph_deeper_than_the_recursion_limit_is_no_problem(client):
    x = y = parameter([1.0], client)
    for _ in range(5000):
        y = y + 1
    assert y.backward()[x].tolist() == [1.0]


def test_operations_keep_the_dtype(client):
    x = parameter(1.5, client)
    for y in (x + 1, 2.0 * x, x**2, x.sigmoid(), x.mean(), x.relu()):
        assert y.numpy().dtype == np.float32


def test_a_value_cannot_be_changed_behind_the_tape(client):
    source = np.ones(3, np.float32)
    x = parameter(source, client)
    source[0] = 5
    assert x.numpy().tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 5


def test_a_value_that_is_not_single_needs_a_gradient_to_start_from(client):
    x = parameter([1.0, 2.0], client)
    with pytest.raises(ValueError, match=r"shape, \(2,\)"):
        (x * 2).backward()


def test_data_has_no_gradient(client):
    x, c = parameter([1.0], client), constant([2.0], client)
    gradients = (x * c).backward()
    assert x in gradients
    with pytest.raises(KeyError, match="not a parameter"):
        gradients[c]
    with pytest.raises(GraphError, match="tracked"):
        (c * c).backward()


@pytest.mark.parametrize("labels", [[0, -1], [0.0, 1.0], [[0, 1]]])
def test_cross_entropy_refuses_labels_that_are_no_columns(client, labels):
    with pytest.raises(ValueError, match="labels"):
        parameter(np.zeros((2, 2)), client).cross_entropy(labels)


def test_matmul_of_vectors_is_refused_in_words(client):
    with pytest.raises(ValueError, match="matmul needs matrices"):
        parameter([1.0], client) @ parameter([1.0], client)


def test_operands_of_two_clients_are_refused(client):
    with connect("thread-local") as other, pytest.raises(ValueError, match="client or dtype"):
        parameter([1.0], client) + parameter([1.0], other)
