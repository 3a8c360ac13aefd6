"""What the server remembers: as long as it can matter, and no longer."""

import gc
import weakref

import numpy as np
import pytest

from contention_lab.autodiff import CLIENTS, GraphError, connect, parameter
from contention_lab.autodiff.server import CROWDED


def sizes(client):
    """Nodes, steps and leaves of all its servers."""
    return tuple(map(sum, zip((0, 0, 0), *[s.sizes() for s in client.servers()], strict=True)))


@pytest.fixture(params=CLIENTS)
def client(request):
    with connect(request.param) as client:
        yield client


@pytest.fixture
def one_server():
    with connect("global-mutex") as client:
        yield client


def test_after_a_backward_pass_only_live_parameters_are_left(client):
    w = parameter([2.0], client)
    loss = ((w * 3).tanh() + w).sum()
    gradients = loss.backward()
    assert w in gradients
    assert sizes(client) == (1, 1, 1)


def test_tensors_dropped_without_backward_free_their_nodes_at_the_next_backward(client):
    w, other = parameter([2.0], client), parameter([1.0], client)
    for _ in range(10):
        (w * 3).exp()
    (w * other).backward()
    assert sizes(client)[0] == 2


def test_tables_stay_small_over_a_thousand_steps(client):
    w, largest = parameter(np.ones(2), client), 0
    for _ in range(1_000):
        loss = (w * 0.5).sum()
        gradients = loss.backward()
        w = parameter(w.numpy() - 0.1 * gradients[w], client)
        largest = max(largest, *sizes(client))
    assert largest <= 4


def test_tables_stay_bounded_over_ten_thousand_steps_without_any_backward(client):
    w, largest = parameter(np.ones(2), client), 0
    for step in range(10_000):
        (w * 0.5).sum()
        if step % 100 == 0:
            largest = max(largest, sizes(client)[0])
    assert 100 < largest <= CROWDED + 2


def test_parameters_dropped_without_any_use_are_forgotten(client):
    for _ in range(3 * CROWDED):
        parameter([1.0], client)
    assert sizes(client)[0] <= CROWDED + 1


def test_arrays_are_freed_with_the_nodes(one_server):
    w = parameter(np.ones(3), one_server)
    y = w.exp()
    array = weakref.ref(y.handle)
    y.sum().backward()
    del y
    gc.collect()
    assert array() is None


def test_a_tensor_keeps_its_whole_graph(client):
    w = parameter([2.0], client)
    y = (w * 3) * w  # the inner product is held by y's graph alone
    parameter([1.0], client).backward()  # cleans up
    assert y.backward()[w].tolist() == [12.0]


def test_clean_up_spares_the_graphs_of_others(client):
    losses = []
    for i in range(5):
        w = parameter([1.0 + i], client)
        losses.append((w, (w * w).sum()))
    for w, loss in reversed(losses):
        assert loss.backward()[w].tolist() == [2 * float(w)]


def test_two_losses_of_one_parameter_have_a_backward_pass_each(client):
    w = parameter([3.0], client)
    first, second = (w * 2).sum(), (w * w).sum()
    assert first.backward()[w].tolist() == [2.0]
    assert second.backward()[w].tolist() == [6.0]


def test_a_dropped_parameter_does_not_break_what_was_computed_from_it(client):
    w, v = parameter([3.0], client), parameter([4.0], client)
    first, second = (w * 2).sum(), (w * v).sum()
    del w
    first.backward()
    assert second.backward()[v].tolist() == [3.0]


def test_a_second_backward_through_the_same_graph_is_refused(client):
    w = parameter([3.0], client)
    y = w * 2
    first, second, third = y.sum(), (y * y).sum(), None
    first.backward()
    for loss in (first, second):
        with pytest.raises(GraphError, match="consumed"):
            loss.backward()
    third = (y + w).sum()  # built on what is gone
    with pytest.raises(GraphError, match="consumed"):
        third.backward()


def test_a_refused_backward_leaves_the_tables_as_they_were(one_server):
    w = parameter([3.0], one_server)
    y = w * 2
    y.sum().backward()
    broken = (w.exp() + y).sum()
    before = sizes(one_server)
    with pytest.raises(GraphError):
        broken.backward()
    assert sizes(one_server) == before


def test_clean_up_drops_what_lost_an_ancestor_even_if_a_tensor_holds_it(one_server):
    w = parameter([3.0], one_server)
    y = w * 2
    held = y.exp()
    y.sum().backward()
    assert sizes(one_server) == (1, 1, 1)
    with pytest.raises(GraphError, match="consumed"):
        held.backward()


def test_a_step_that_raises_reaches_the_caller_and_leaves_no_rubbish(client):
    from contention_lab.autodiff.tensor import record

    w = parameter([3.0], client)

    def broken(gradient):
        raise ArithmeticError("no way back")

    loss = record(w.handle, [w], broken) * 2
    with pytest.raises(ArithmeticError, match="no way back"):
        loss.backward()
    assert sizes(client) == (1, 1, 1)
    assert (w * 2).backward()[w].tolist() == [2.0]


def test_the_tables_of_one_server_hold_the_graphs_of_every_thread_that_shares_it(one_server):
    import threading

    kept = []
    threads = [
        threading.Thread(target=lambda: kept.append(parameter([1.0], one_server) * 2))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes(one_server) == (8, 8, 4)
