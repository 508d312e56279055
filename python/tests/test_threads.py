"""Tests threads that share a filter or a counter."""

import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from rollcall_redis import BloomFilter, Counter, inter_card, union_card

THREADS = 4
ITEMS = 20_000


@pytest.fixture(autouse=True)
def switches_often() -> Iterator[None]:
    """Makes Python switch between threads a thousand times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], None]) -> None:
    """Runs functions at the same time, and raises the first exception."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            start.wait()
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "threads wait for each other for ever"
    if raised:
        raise raised[0]


def test_items_that_threads_add_are_found() -> None:
    seen = BloomFilter(THREADS * ITEMS)
    visitors = Counter()

    def adds(thread: int) -> Callable[[], None]:
        items = [f"{thread}:{number}" for number in range(ITEMS)]

        def work() -> None:
            for start in range(0, ITEMS, 500):
                seen.update(items[start : start + 500])
                visitors.update(items[start : start + 500])
                for item in items[start : start + 20]:
                    assert item in seen
            assert all(seen.contains_many(items))

        return work

    together(*map(adds, range(THREADS)))
    one_after_another = Counter()
    one_after_another.update(f"{thread}:{number}" for thread in range(THREADS) for number in range(ITEMS))
    assert visitors == one_after_another
    assert abs(len(seen) - THREADS * ITEMS) < 0.01 * THREADS * ITEMS


def test_a_thread_asks_while_another_adds_grows_and_stores() -> None:
    seen = BloomFilter(100)
    rows = np.arange(200_000).view("V8")
    done = threading.Event()

    def adds() -> None:
        for start in range(0, len(rows), 5000):
            seen.update(rows[start : start + 5000])
        done.set()

    def asks() -> None:
        while not done.is_set():
            before = len(seen)
            copy = BloomFilter.from_bytes(seen.to_bytes())
            assert before <= len(copy) <= len(seen)
            assert repr(seen) and seen.size_bytes and seen.fill_ratio < 1

    together(adds, asks, asks)
    assert seen.contains_many(rows).all()


def test_unions_in_both_directions_end() -> None:
    one, other = BloomFilter(10_000), BloomFilter(10_000)
    june, july = Counter(), Counter()
    one.add("ann")
    other.add("ben")

    def unites(ours: BloomFilter, theirs: BloomFilter, us: Counter, them: Counter) -> Callable[[], None]:
        def work() -> None:
            for number in range(300):
                ours.merge(theirs, ours, theirs)
                us.add(str(number))
                us.merge(them, us)
                union_card(us, them, us)
                assert inter_card(us, them).count <= us.count()
                assert (ours == theirs) in (True, False)

        return work

    together(unites(one, other, june, july), unites(other, one, july, june))
    assert "ann" in one and "ben" in one and one == other
    june |= july
    july |= june
    assert june == july


def test_lists_and_arrays_that_change_meanwhile() -> None:
    seen = BloomFilter(1_000_000)
    items = [str(number) for number in range(100_000)]
    data = np.zeros((100_000, 8), np.uint8)
    done = threading.Event()

    def adds() -> None:
        for _ in range(5):
            assert len(seen.add_many(items)) >= 1
            assert len(seen.add_many(data)) == len(data)
        done.set()

    def changes() -> None:
        number = 0
        while not done.is_set():
            number += 1
            items[number % 1000] = str(-number)
            items.append(str(number))
            items.pop()
            data[:] = number % 256

    together(adds, changes)
    # An item whose bytes change during the call may be read half changed. It is still added as an
    # item.
    assert "5" in seen or "-5" in seen


def test_other_threads_run_during_long_calls() -> None:
    """A thread keeps counting while another one adds items. It would stop if calls kept Python's lock."""
    seen = BloomFilter(2_000_000)
    rows = np.arange(2_000_000).view("V8")
    ticks = 0
    done = threading.Event()
    within: list[int] = []

    def counts() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1

    def adds() -> None:
        before = ticks
        seen.update(rows)
        within.append(ticks - before)
        done.set()

    together(counts, adds)
    assert within[0] > 1000
