"""Tests that columns of pandas, Polars, Arrow and NumPy have the same items, and that others are rejected."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from rollcall_redis import BloomFilter, Counter, inter_card, union_card

IDS = [*range(1000)]
WITH_MISSING: list[Any] = [*IDS, None]
TEXTS = ["ann", None, "zoe"]


def masked(values: list[Any]) -> Any:
    """A masked array, as DuckDB returns columns to NumPy."""
    return np.ma.array([value or 0 for value in values], mask=[value is None for value in values])


# Missing values are left out, and whole numbers become their digits.
RIGHT: dict[str, Callable[[], Iterable[Any]]] = {
    "pandas": lambda: pd.Series(WITH_MISSING, dtype="Int64"),
    "pandas, without what is missing": lambda: pd.Series(IDS),
    "pandas, converted": lambda: pd.Series(WITH_MISSING).convert_dtypes(),
    "pandas, objects": lambda: pd.Series(WITH_MISSING, dtype=object),
    "Polars": lambda: pl.Series(WITH_MISSING),
    "Arrow": lambda: pa.array(WITH_MISSING),
    "chunks of Arrow": lambda: pa.chunked_array([IDS, [None]]),
    "a list": lambda: map("{:d}".format, pa.array(WITH_MISSING).drop_null().to_pylist()),
    "NumPy": lambda: map("{:d}".format, np.array(IDS).tolist()),
    "NumPy, masked": lambda: map("{:d}".format, masked(WITH_MISSING).compressed().tolist()),
}

# Inputs that must be rejected. Each was once accepted, or would add floats, `nan` or
# masked values.
WRONG: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.Series(WITH_MISSING),
    "pandas as an array": lambda: pd.Series(WITH_MISSING).to_numpy(),
    "pandas, digits of floats": lambda: map("{:d}".format, pd.Series(WITH_MISSING).dropna()),
    "pandas, Int64": lambda: pd.Series(WITH_MISSING, dtype="Int64"),
    "Polars": lambda: pl.Series(WITH_MISSING),
    "Polars as an array": lambda: pl.Series(WITH_MISSING).to_numpy(),
    "Arrow": lambda: pa.array(WITH_MISSING),
    "Arrow as an array": lambda: pa.array(WITH_MISSING).to_numpy(zero_copy_only=False),
    "NumPy": lambda: np.array(IDS),
    "NumPy, masked": lambda: masked(WITH_MISSING),
    "NumPy, digits of what is masked": lambda: map("{:d}".format, masked(WITH_MISSING).tolist()),
    "texts of pandas": lambda: pd.Series(TEXTS),
    "texts of pandas as an array": lambda: pd.Series(TEXTS).to_numpy(),
    "texts of Polars": lambda: pl.Series(TEXTS),
    "texts of Polars as an array": lambda: pl.Series(TEXTS).to_numpy(),
    "texts of Arrow as an array": lambda: pa.array(TEXTS).to_numpy(zero_copy_only=False),
    "texts in a list": lambda: pd.Series(TEXTS).tolist(),
}


@pytest.mark.parametrize("items", RIGHT.values(), ids=RIGHT)
def test_a_missing_value_changes_no_other(items: Callable[[], Iterable[Any]]) -> None:
    expected, counter = Counter(exact_limit=2000), Counter(exact_limit=2000)
    expected.update(map(str, IDS))
    counter.update(items(), nulls="skip")
    # A regression test: for two equal sets of 1,000 members, the union was 1,996 and
    # the intersection 0.
    assert union_card(expected, counter) == inter_card(expected, counter) == (1000, 0.0)


@pytest.mark.parametrize("items", WRONG.values(), ids=WRONG)
def test_floats_and_missing_values_are_no_items(items: Callable[[], Any]) -> None:
    for rejected in (BloomFilter(10).update, BloomFilter(10).contains_many, Counter().update, Counter().add_many):
        with pytest.raises((TypeError, ValueError)):
            rejected(items())


def test_a_missing_value_is_noticed_where_the_bytes_of_numbers_are_items() -> None:
    counter = Counter()
    counter.update(pd.Series(IDS).to_numpy(), width=8)
    for name in ("pandas as an array", "Polars as an array", "Arrow as an array", "NumPy, masked"):
        with pytest.raises(TypeError):
            counter.update(WRONG[name](), width=8)
    assert abs(counter.count() - 1000) < 60


@pytest.mark.parametrize("column", [pd.Series, pd.Index, pd.Categorical, pl.Series])
def test_answers_about_a_column_are_an_array(column: Any) -> None:
    values: list[Any] = [BloomFilter(10), Counter()]
    for value in values:
        value.add("ann")
        for answers, expected in [
            (value.contains_many(column(["ann", "zoe"])), [True, False]),
            (value.add_many(column(["ann", "zoe"])), [False, True]),
        ]:
            assert isinstance(answers, np.ndarray) and answers.dtype == np.bool_ and answers.tolist() == expected


def test_answers_select_rows() -> None:
    seen = BloomFilter(10)
    seen.add("ann")
    frame = pd.DataFrame({"email": ["ann", "zoe"]}, index=[7, 7])
    # A list of bool does not support `~`.
    assert frame[~seen.contains_many(frame.email)].email.tolist() == ["zoe"]
    other = pl.DataFrame({"email": ["ann", "zoe"]})
    assert other.filter(~seen.contains_many(other["email"]))["email"].to_list() == ["zoe"]
