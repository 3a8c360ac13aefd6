"""The seven clients: one result, and each its own way of sharing or refusing to."""

import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from contention_lab.autodiff import CLIENTS, GraphError, checkpoint, connect, constant, parameter
from contention_lab.autodiff.clients.global_lock import GlobalLock
from contention_lab.autodiff.tensor import record

NESTING = {
    "global-spinlock": False,
    "global-mutex": False,
    "narrow-lock": True,
    "channel": True,
    "graph-mutex": True,
    "thread-local": True,
    "async-backend": False,
}
SHARING = [name for name in CLIENTS if name != "thread-local"]


@pytest.fixture(params=CLIENTS)
def client(request):
    with connect(request.param) as client:
        yield client


def sizes(client):
    """Nodes, steps and leaves of all its servers."""
    return tuple(map(sum, zip((0, 0, 0), *[s.sizes() for s in client.servers()], strict=True)))


def together(count, work):
    """Run ``work(0) ... work(count - 1)`` on threads that start at once; raise what one raised."""
    barrier, errors = threading.Barrier(count), []

    def run(i):
        try:
            barrier.wait(30)
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "deadlock"
    if errors:
        raise errors[0]


def test_every_client_says_whether_it_nests():
    for name, nests in NESTING.items():
        with connect(name) as client:
            assert client.nested_backward is nests
    assert NESTING.keys() == CLIENTS.keys()


def test_a_backward_inside_a_backward_step_works_or_is_one_clear_error(client):
    def work(_):
        x, w = parameter([[0.5, -1.0]], client), parameter([[1.0], [2.0]], client)
        plain = (x * x @ w).tanh().sum().backward()
        again = checkpoint(lambda x, w: (x * x @ w).tanh(), x, w).sum()
        if client.nested_backward:
            gradients = again.backward()
            assert (gradients[x] == plain[x]).all()
            assert (gradients[w] == plain[w]).all()
        else:
            with pytest.raises(GraphError, match="deadlock") as error:
                again.backward()
            assert "\n" not in str(error.value)
            assert "narrow-lock" in str(error.value)
        after = (x * 2).sum().backward()  # and the client still works
        assert after[x].tolist() == [[2.0, 2.0]]

    together(4, work)


@pytest.mark.parametrize("name", [name for name, nests in NESTING.items() if nests])
def test_a_checkpoint_inside_a_checkpoint_works_where_nesting_does(name):
    with connect(name) as client:
        x = parameter([0.5, 2.0], client)

        def inner(x):
            return checkpoint(lambda x: (x * x).exp(), x) * x

        expected = ((x * x).exp() * x).sum().backward()[x]
        gradient = checkpoint(inner, x).sum().backward()[x]
        np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_a_checkpoint_gives_zero_for_an_operand_that_does_not_matter():
    with connect("thread-local") as client:
        x, y = parameter([1.0], client), parameter([1.0], client)
        gradients = checkpoint(lambda x, y: x * 2, x, y).backward()
        assert (gradients[x].tolist(), gradients[y].tolist()) == ([2.0], [0.0])


def test_a_checkpoint_refuses_a_function_with_another_way_in():
    with connect("thread-local") as client:
        x, w = parameter([1.0], client), parameter([1.0], client)
        with pytest.raises(ValueError, match="not an operand"):
            checkpoint(lambda x: x * w, x)


def test_registering_in_a_step_is_refused_where_nesting_is():
    with connect("global-mutex") as client:
        w = parameter([1.0], client)
        loss = record(w.handle, [w], lambda g: [parameter([1.0], client).handle])
        with pytest.raises(GraphError, match="deadlock"):
            loss.backward()


def test_graph_mutex_refuses_a_step_that_goes_back_into_its_own_graph():
    with connect("graph-mutex") as client:
        w = parameter([1.0], client)
        loss = record(w.handle, [w], lambda g: [(w * 2).handle])
        with pytest.raises(GraphError, match="not younger"):
            loss.backward()
        assert (w * 2).backward()[w].tolist() == [2.0]


def test_graph_mutex_refuses_a_step_that_goes_into_an_older_graph():
    with connect("graph-mutex") as client:
        old, w = parameter([1.0], client), parameter([1.0], client)
        loss = record(w.handle, [w], lambda g: [(old * 2).handle])
        with pytest.raises(GraphError, match="not younger"):
            loss.backward()


@pytest.mark.parametrize("name", SHARING)
def test_graphs_that_meet_lose_no_gradient(name):
    # Eight threads build graphs of their own and then join each of them to all the others.
    count = 8
    with connect(name) as client:
        for _ in range(20):
            roots = [parameter([float(i + 1)], client) for i in range(count)]
            squares, totals = [None] * count, [None] * count
            built = threading.Barrier(count)

            def work(i, roots=roots, squares=squares, totals=totals, built=built):
                squares[i] = roots[i] * roots[i]
                built.wait(30)
                totals[i] = squares[i]
                for j in range(1, count):
                    totals[i] = totals[i] + squares[(i + j) % count]

            together(count, work)
            gradients = sum(totals).backward()
            for i, root in enumerate(roots):
                assert gradients[root].tolist() == [count * 2.0 * (i + 1)]
        del work, roots, root, squares, totals
        last = parameter([1.0], client)
        last.backward()
        assert sizes(client) == (1, 1, 1)


@pytest.mark.parametrize("name", SHARING)
def test_graphs_meet_while_others_run_backward(name):
    # A parameter of all threads: every loss of every thread joins the one graph, and leaves it.
    with connect(name) as client:
        shared = parameter([3.0], client)

        def work(i):
            for _ in range(50):
                own = parameter([float(i)], client)
                gradients = (own * shared + own).sum().backward()
                assert gradients[own].tolist() == [4.0]
                assert gradients[shared].tolist() == [float(i)]

        together(8, work)
        (shared * 1).backward()
        assert sizes(client) == (1, 1, 1)


def test_graph_mutex_forgets_graphs_with_their_last_tensor():
    with connect("graph-mutex") as client:
        a, b = parameter([1.0], client), parameter([1.0], client)
        assert len(client.servers()) == 2
        c = a + b
        assert len(client.servers()) == 1
        del a, b, c
        assert client.servers() == []


def test_thread_local_says_clearly_that_it_shares_nothing():
    with connect("thread-local") as client:
        w = parameter([1.0], client)
        y, errors = w * 2, []

        def elsewhere():
            for attempt in (lambda: w * 2, y.backward, lambda: parameter([1.0], client) + y):
                try:
                    attempt()
                except GraphError as error:
                    errors.append(str(error))

        thread = threading.Thread(target=elsewhere, name="other")
        thread.start()
        thread.join()
        assert len(errors) == 3
        assert all("'other'" in e and "another thread" in e and "\n" not in e for e in errors)


def test_thread_local_shares_what_is_detached():
    with connect("thread-local") as client:
        y, results = parameter([3.0], client) * 2, []

        def elsewhere():
            w = parameter([1.0], client)
            results.append((w * y.detached()).backward()[w].tolist())

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert results == [[6.0]]


def test_an_error_in_a_kernel_reaches_the_caller(client):
    w = parameter(np.ones((2, 3)), client)
    with pytest.raises(ValueError, match="matmul"):
        (w @ constant(np.ones((2, 3)), client)).numpy()


def test_an_error_in_the_backward_kernels_of_async_backend_is_met_where_it_is_read():
    with connect("async-backend") as client:
        w = parameter([1.0, 2.0], client)
        gradients = (w * 2).backward()  # not a single value; found out by the kernel
        with pytest.raises(ValueError, match="needs a gradient"):
            gradients[w]


def test_async_backend_holds_back_a_thread_that_reads_nothing():
    from contention_lab.autodiff.streams import LEAD

    with connect("async-backend") as client:
        x = constant([1.0], client)
        for _ in range(3 * LEAD):
            x = x + 1
            assert len(client.backend._streams[0]._jobs) <= LEAD + 1
        assert float(x) == 3 * LEAD + 1


def test_async_backend_keeps_no_result_that_nobody_holds():
    made = []

    def kernel(array):
        made.append(weakref.ref(result := array + 1))
        return result

    with connect("async-backend") as client:
        handle = np.zeros(4)
        for _ in range(100):
            handle = client.backend.call(kernel, handle)
        client.backend.read(handle)
        deadline = time.monotonic() + 60
        while sum(ref() is not None for ref in made) > 1 and time.monotonic() < deadline:
            time.sleep(0.001)  # the stream drops its last job a moment after its result is there
        assert [ref() is not None for ref in made] == [False] * 99 + [True]


@pytest.mark.parametrize("name", ["channel", "async-backend"])
def test_closing_ends_the_threads(name):
    before = set(threading.enumerate())
    with connect(name) as client:
        w = parameter([1.0], client)
        (w * 2).backward()
        assert set(threading.enumerate()) > before
    assert set(threading.enumerate()) == before
    with pytest.raises(RuntimeError, match="closed"):
        (w * 2).backward()


@pytest.mark.parametrize("name", ["channel", "async-backend"])
def test_a_dropped_client_ends_its_threads(name):
    before = set(threading.enumerate())
    client = connect(name)
    (parameter([1.0], client) * 2).backward()
    workers = set(threading.enumerate()) - before
    assert workers
    del client
    for worker in workers:
        worker.join(10)
        assert not worker.is_alive()


@pytest.mark.parametrize("name", ["channel", "async-backend"])
def test_a_forgotten_client_does_not_hold_up_the_exit(name):
    code = (
        "from contention_lab.autodiff import connect, parameter\n"
        f"client = connect({name!r})\n"
        "w = parameter([1.0], client)\n"
        "print((w * 2).backward()[w].tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2.0]\n", "")


def test_the_kind_of_lock_is_a_parameter():
    made = []

    def factory(name):
        made.append(name)
        return threading.Lock()

    for name in CLIENTS:
        if name in ("channel", "thread-local"):
            with pytest.raises(ValueError, match="no lock to choose"):
                connect(name, factory)
            continue
        with connect(name, factory) as client:
            w = parameter([1.0], client)
            assert (w * 2).backward()[w].tolist() == [2.0]
    assert set(made) == {"autodiff server", "autodiff locator", "autodiff graph"}


def test_clients_choose_their_usual_kind_of_lock():
    from contention_lab.locks import KINDS

    for name, kind in [("global-spinlock", "spinlock"), ("global-mutex", "mutex")]:
        with connect(name) as client:
            assert isinstance(client, GlobalLock)
            assert type(client._lock) is KINDS[kind]
        with connect(name, "mutex") as client:
            assert type(client._lock) is KINDS["mutex"]


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ValueError, match="'global-mutx' is unknown; did you mean 'global-mutex'"):
        connect("global-mutx")
    with pytest.raises(ValueError, match="'spinlok' is unknown; did you mean 'spinlock'"):
        connect("global-mutex", "spinlok")
