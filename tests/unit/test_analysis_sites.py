"""Which frames are the user's."""

from __future__ import annotations

import queue
import sys
import threading

import numpy as np
import pytest

from contention_lab.analysis import is_user_code, user_frame
from contention_lab.trace import Frame


@pytest.mark.parametrize(
    "path",
    [
        threading.__file__,
        queue.__file__,
        "/usr/lib/python3.11/threading.py",
        "/usr/lib/python3.13t/concurrent/futures/thread.py",
        "/usr/lib64/python3.12/asyncio/locks.py",
        "/opt/venv/lib/python3.11/logging/__init__.py",
        r"C:\Python311\Lib\queue.py",
        r"C:\Python311\Lib\asyncio\locks.py",
        "/src/cpython/Lib/threading.py",
        "/usr/lib/python311.zip/contextlib.py",
        "<frozen importlib._bootstrap>",
        "/opt/venv/lib/python3.11/site-packages/contention_lab/locks/__init__.py",
        "/src/contention_lab/capture/session.py",
        "/src/contention_lab/sweep/child.py",
        "/src/contention_lab/__init__.py",
    ],
)
def test_libraries_are_not_user_code(path: str) -> None:
    assert not is_user_code(path)


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/train.py",
        "train.py",
        "<string>",
        "<stdin>",
        "/home/me/threading.py",
        "/opt/venv/lib/python3.11/site-packages/sqlalchemy/pool/impl.py",
        "/usr/lib/python3/dist-packages/yaml/loader.py",
        "/opt/venv/lib/python3.11/site-packages/contention_lab/autodiff/client.py",
        "/src/contention_lab/autodiff/client.py",
        "/src/contention_lab/scenarios/queue_case.py",
        "/home/me/contention_lab/tests/cases/slow.py",
        "/home/me/contention_lab/checkout/train.py",
        r"C:\Users\me\Lib\site-packages\torch\autograd.py",
        "/src/cpython/Lib/test/lock_tests.py",
        "/usr/lib/python3.11/test/lock_tests.py",
        "/home/me/lib/catalog.py",
    ],
)
def test_programs_and_their_packages_are_user_code(path: str) -> None:
    assert is_user_code(path)


def test_an_installed_package_is_user_code_here() -> None:
    assert is_user_code(np.__file__)
    assert "numpy" not in sys.stdlib_module_names


def test_the_innermost_user_frame_stands_for_the_stack() -> None:
    acquire = Frame("Queue.put", "/usr/lib/python3.11/queue.py", 140, 120)
    send = Frame("send", "/srv/app.py", 12, 10)
    main = Frame("main", "/srv/app.py", 99, 90)

    assert user_frame((acquire, send, main)) == send
    assert user_frame((acquire,)) is None
    assert user_frame(()) is None
