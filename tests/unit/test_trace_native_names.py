"""Names of C++ and Rust functions, as the linker has them and as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contention_lab.trace import native_names
from contention_lab.trace.native_names import readable

if TYPE_CHECKING:
    from collections.abc import Iterator

needs_library = pytest.mark.skipif(
    native_names._demangler() is None, reason="multi-demangle is not installed"
)
CONTENDED = "_RNvMs_NtNtNtNtCs5l0EXMQXRMU_3std3sys4sync5mutex5futexNtB4_5Mutex14lock_contended"
OLD = "_ZN3std4sync5mutex14Mutex$LT$T$GT$4lock17h0123456789abcdefE"


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(native_names, "LIBRARY", "no_such_demangler")
    native_names._demangler.cache_clear()
    readable.cache_clear()
    yield
    native_names._demangler.cache_clear()
    readable.cache_clear()


@needs_library
@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (CONTENDED, "<std::sys::sync::mutex::futex::Mutex>::lock_contended"),
        (OLD, "std::sync::mutex::Mutex<T>::lock"),
        ("_RNCNvCs4fqI2P2rA04_4test4main0B3_", "test::main::{closure#0}"),
        (
            "_RINvNtCs9ltgdHTiPiY_4core3ptr13drop_in_placeNtNtCs1234_5alloc6string6StringECs3_5hello",
            "core::ptr::drop_in_place::<alloc::string::String>",
        ),
        ("_ZN8autodiff6Server8backwardEi", "autodiff::Server::backward(int)"),
        ("~_ZN8autodiff6Server8backwardEi", "~autodiff::Server::backward(int)"),
    ],
)
def test_a_library_reads_names_of_both_languages(symbol: str, name: str) -> None:
    assert readable(symbol) == name


@pytest.mark.usefixtures("without_library")
@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (CONTENDED, "std::sys::sync::mutex::futex::Mutex::lock_contended"),
        (OLD, "std::sync::mutex::Mutex$LT$T$GT$::lock"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_ZN8autodiff6Server8backwardEi", "autodiff::Server::backward"),
        ("_ZNSt6thread11_State_implE", "_ZNSt6thread11_State_implE"),  # more than a path
        (OLD[:16], "std::sync"),  # it was cut
    ],
)
def test_without_it_there_is_the_path(symbol: str, name: str) -> None:
    assert readable(symbol) == name


@pytest.mark.parametrize(
    "symbol", ["", "~", "main", "sqlite3_step", "pthread_mutex_lock", "_Z", "_R"]
)
def test_other_names_are_what_they_are(symbol: str) -> None:
    assert readable(symbol) == symbol


@pytest.mark.usefixtures("without_library")
def test_other_names_are_what_they_are_without_the_library() -> None:
    assert [readable(symbol) for symbol in ("_Z", "_R", "_ZN", "x")] == ["_Z", "_R", "_ZN", "x"]


@given(st.sampled_from(["_ZN", "_R", "_Z", "_RNv"]), st.text("0123456789abNsBE_.hC$", max_size=60))
def test_whatever_a_file_says_has_a_name(start: str, rest: str) -> None:
    assert readable(start + rest)
    assert isinstance(native_names._path(start + rest), str)
