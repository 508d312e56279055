"""Tests `update_groups`, which adds the rows of two columns to a filter or counter for each group."""

import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from rollcall_redis import BloomFilter, Counter, FullError

ROWS = 200_000
"""Several blocks."""


@pytest.mark.parametrize("num_groups", [1, 10, 5000])
@pytest.mark.parametrize("nulls", [0.0, 0.2])
def test_rows_go_to_their_groups_in_order(num_groups: int, nulls: float) -> None:
    numbers = np.random.default_rng(7)
    groups = numbers.integers(num_groups, size=ROWS)
    members, missing = numbers.integers(300, size=ROWS), numbers.random(ROWS) < nulls
    counters: defaultdict[str, Counter] = defaultdict(lambda: Counter(exact_limit=1000))
    filters: defaultdict[str, BloomFilter] = defaultdict(lambda: BloomFilter(1000))
    names, column = pa.array(groups).cast(pa.string()), pa.array(members, mask=missing)
    # The chunks of both columns differ.
    names = pa.chunked_array([names[:7], names[7:150_001], names[150_001:]])
    Counter.update_groups(counters, names, column, nulls="skip")
    BloomFilter.update_groups(filters, names, column, nulls="skip")
    expected: defaultdict[str, list[str]] = defaultdict(list)
    for group, member, is_missing in zip(groups, members, missing, strict=True):
        expected[str(group)] += [] if is_missing else [str(member)]
    assert set(counters) == set(filters) == set(expected)
    for group, items in expected.items():
        assert counters[group].members() == [item.encode() for item in dict.fromkeys(items)]
        one = BloomFilter(1000)
        one.update(items)
        assert filters[group] == one


@pytest.mark.parametrize("kind", ["texts", "ids"])
@pytest.mark.parametrize("nulls", [0.0, 0.2])
def test_groups_of_all_kinds_get_the_bytes_of_direct_adds(kind: str, nulls: float) -> None:
    made: dict[str, Callable[[], Counter]] = {
        "exact": lambda: Counter(exact_limit=10_000),
        "early": Counter,
        "none": lambda: Counter(exact_limit=0),
        "seed": lambda: Counter(exact_limit=0, seed=7),
        "late": lambda: Counter(exact_limit=2000, seed=7),
        "error": lambda: Counter(exact_limit=100, error_rate=0.04),
        "window": lambda: Counter(exact_limit=100, window=60, slices=6, now=1000),
    }
    numbers = np.random.default_rng(11)
    # The seed is that of the first group that estimates.
    for first in ("exact", "none", "seed"):
        counters, expected = ({name: make() for name, make in made.items()} for _ in range(2))
        for now in (1000, 1000, 1010, 1090):
            names = [first, *numbers.choice(list(made), size=10_000)]
            ids = numbers.integers(10**18, size=len(names)) % 4999
            members = pa.array(ids, mask=numbers.random(len(names)) < nulls)
            members = members if kind == "ids" else members.cast(pa.string())
            Counter.update_groups(counters, pa.array(names), members, nulls="skip", now=now)
            for name, member in zip(names, members.to_pylist(), strict=True):
                if member is not None:
                    expected[name].add(str(member), now=now)
            for name, counter in counters.items():
                assert counter.to_bytes() == expected[name].to_bytes(), (first, now, name)
        assert [name for name in made if counters[name].is_exact] == ["exact"]


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (pa.array(["a", None, "", "a"]), ["a", None, ""]),
        (pa.array(["a", None, "ü", "a"], pa.string_view()), ["a", None, "ü"]),
        (pa.array(["a", None, "ü", "a"]).dictionary_encode(), ["a", None, "ü"]),
        (pa.array([b"\xff", None, b"a", b"\xff"]), [b"\xff", None, b"a"]),
        (pa.array([-5, None, 2**63 - 1, -5]), [-5, None, 2**63 - 1]),
        (pa.array([7, None, 8, 7], pa.uint8()).dictionary_encode(), [7, None, 8]),
        (pa.array([uuid.UUID(int=5).bytes] * 4, pa.uuid()), [str(uuid.UUID(int=5))]),
        (pa.array([None] * 4), [None]),
        (pl.Series(["a", "b", "a", "b"]), ["a", "b"]),
    ],
)
def test_groups_are_values_of_python(groups: Any, names: list[Any]) -> None:
    counters: defaultdict[Any, Counter] = defaultdict(Counter)
    Counter.update_groups(counters, groups, pa.array(["m", "n", "o", "p"]))
    assert list(counters) == names
    assert sum(counter.count() for counter in counters.values()) == 4


def test_rows_of_pandas_are_paired_by_position() -> None:
    counters: defaultdict[str, Counter] = defaultdict(Counter)
    Counter.update_groups(counters, pd.Series(["a", "b"], index=[0, 1]), pd.Series(["m", "n"], index=[1, 0]))
    assert (counters["a"].members(), counters["b"].members()) == ([b"m"], [b"n"])
    for kind in (Counter, BloomFilter):
        assert "paired by position" in " ".join((kind.update_groups.__doc__ or "").split())


def test_names_may_differ_in_any_character() -> None:
    names = ["x" * length for length in range(24)]
    names += [name[:at] + "y" + name[at + 1 :] for name in names for at in range(len(name))]
    rows = [names[row] for row in np.random.default_rng(9).permutation(len(names) * 3) % len(names)]
    counters: defaultdict[str, Counter] = defaultdict(Counter)
    Counter.update_groups(counters, pa.array(rows), pa.array(rows))
    assert {name: counter.members() for name, counter in counters.items()} == {name: [name.encode()] for name in names}


def test_a_group_may_have_no_members() -> None:
    counters: defaultdict[Any, Counter] = defaultdict(Counter)
    Counter.update_groups(counters, pa.array([], pa.string()), pa.array([], pa.string()))
    assert not counters
    Counter.update_groups(counters, pa.array(["a", "b"]), pa.array([None, 5]), nulls="skip")
    assert {group: counter.members() for group, counter in counters.items()} == {"a": [], "b": [b"5"]}


def test_groups_may_share_a_counter() -> None:
    both = Counter()
    Counter.update_groups({"a": both, "b": both}, pa.array(["a", "b", "a"]), pa.array([1, 2, 3]))
    assert both.members() == [b"1", b"3", b"2"]


def test_errors_of_update_groups_change_nothing() -> None:
    counter, groups, members = Counter(), pa.array(["a", "b"]), pa.array([1, 2])
    every: Any = {"a": counter, "b": counter}
    wrong: list[tuple[Any, Any, Any, type[Exception], str]] = [
        ({"a": counter}, groups, members, KeyError, "'b'"),
        ({"a": counter, "b": BloomFilter(10)}, groups, members, TypeError, "BloomFilter"),
        (5, groups, members, TypeError, "subscriptable"),
        (every, groups, members[:1], ValueError, "expected as many groups as items, got 2 and 1"),
        (every, ["a", "b"], members, TypeError, "^groups: expected a column of Arrow, got <class 'list'>"),
        (every, groups, [1, 2], TypeError, "^expected a column of Arrow, got <class 'list'>"),
        (every, groups, pa.array([1, None]), TypeError, r'\(1 here\): pass nulls="skip"'),
        (every, groups, pa.array([1.0, 2.0]), TypeError, "whole numbers in the engine"),
        (every, pa.array([True, False]), members, TypeError, "^groups: a column of Boolean .* numbers in the engine"),
    ]
    for counters, names, column, error, text in wrong:
        with pytest.raises(error, match=text):
            Counter.update_groups(counters, names, column)
        assert counter.count() == 0


def test_errors_of_a_value_are_raised() -> None:
    seen = BloomFilter(1, expansion=0)
    with pytest.raises(FullError):
        BloomFilter.update_groups({"a": seen}, pa.array(["a"] * 100), pa.array(range(100)))


def test_time_is_passed_on() -> None:
    counter = Counter(window=60, slices=6, now=1000)
    Counter.update_groups({"a": counter}, pa.array(["a"]), pa.array(["m"]), now=1000)
    assert (counter.count(now=1000), counter.count(now=2000)) == (1, 0)
