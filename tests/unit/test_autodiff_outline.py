"""What clients declare, against what they do: counted by locks that count."""

import pytest

from contention_lab.autodiff import CLIENTS, connect
from contention_lab.autodiff.outline import outline
from contention_lab.autodiff.workload import Task, parse

SMALL = {"trainings": 3, "steps": 2, "batch": 1, "layers": [4, 5, 3]}


class CountedLock:
    """A lock of one thread that knows whether it is held, and how often it was taken."""

    def __init__(self, counts, name):
        self._counts, self._name = counts, name

    def acquire(self):
        self._counts[self._name] = self._counts.get(self._name, 0) + 1
        self._counts["held"] = self._counts.get("held", 0) + 1
        return True

    def release(self):
        self._counts["held"] -= 1

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


def counted(name, monkeypatch):
    """Train once; return how often each lock was taken, and kernels run with a lock held."""
    counts = {"held": 0, "kernels under a lock": 0}
    choice = None if CLIENTS[name].usual_lock is None else lambda lock: CountedLock(counts, lock)
    with connect(name, choice) as client:
        call = client.backend.call

        def counting(kernel, *operands):
            counts["kernels under a lock"] += counts["held"] > 0
            return call(kernel, *operands)

        monkeypatch.setattr(client.backend, "call", counting)
        Task.of(parse(SMALL), 0).train(client, SMALL["steps"])
    return counts


def test_a_training_has_a_registration_for_each_operation_and_parameter_and_one_pass_a_step():
    calls = outline(SMALL).calls

    assert len(calls) == 4 + 2 * (6 + 1 + 4)
    assert [call.is_backward for call in calls].count(True) == 2
    # At the second pass the parameters of the step before are still in the server's tables.
    assert [call.nodes for call in calls if call.is_backward] == [10, 14]


@pytest.mark.parametrize("name", CLIENTS)
def test_outlines_of_all_clients_have_the_same_calls(name):
    assert outline({**SMALL, "client": name}).calls == outline(SMALL).calls


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_covers_what_it_declares(name, monkeypatch):
    found, counts = outline({**SMALL, "client": name}), counted(name, monkeypatch)
    calls, sharing = found.calls, found.sharing
    passes = sum(call.is_backward for call in calls)

    within = sum(call.kernels_within for call in calls)
    covered = within if sharing.covers == "calls" else 0
    assert counts["kernels under a lock"] == covered
    taken = {"calls": len(calls), "tables": len(calls) + passes, "nothing": 0}[sharing.covers]
    if sharing.apart == "graphs":
        assert counts["autodiff locator"] >= taken
    else:
        assert counts.get("autodiff server", 0) == taken


def test_the_lock_of_an_outline_is_the_clients_own_unless_another_is_chosen():
    assert outline(SMALL).lock == "spinlock"
    assert outline({**SMALL, "lock": "ticket"}).lock == "ticket"
    assert outline({**SMALL, "client": "channel"}).lock == ""
