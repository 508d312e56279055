"""Tests items in lists, iterables, arrays and other buffers."""

import array
import ctypes
import mmap
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from rollcall_redis import BloomFilter, Counter, ParameterError

ROWS = 200_000


def many(items: Any, **options: Any) -> Any:
    """Adds items and returns the answers. Also looks up the added items."""
    seen = BloomFilter(1000)
    added = seen.add_many(items, **options)
    assert all(seen.contains_many(items, **options))
    return added


@pytest.mark.parametrize("kind", [list, tuple, iter, set, dict.fromkeys])
def test_lists_and_iterables(kind: Any) -> None:
    assert many(list(kind(["ann", b"ben", memoryview(b"cem")]))) == [True, True, True]
    seen = BloomFilter(1000)
    assert seen.add_many(kind(["ann", b"ben"])) == [True, True]
    assert many([]) == [] and many(iter(())) == []


@pytest.mark.parametrize("length", [1, 255, 256, 257, 65_535, 65_536, 65_537, 140_000])
def test_any_number_of_items_is_answered_in_order(length: int) -> None:
    items = [str(number) for number in range(length)]
    seen = BloomFilter(200_000, 1e-9)
    seen.update(items[::2])
    expected = [number % 2 == 0 for number in range(length)]
    assert seen.contains_many(items) == seen.contains_many(tuple(items)) == seen.contains_many(iter(items)) == expected
    rows = np.array(items, dtype="S")
    assert seen.contains_many(rows).tolist() == expected


@pytest.mark.parametrize("item", [5, 5.0, None, ["ann"], ("ann",), np.int64(5), object()])
def test_other_items_are_rejected(item: Any) -> None:
    seen, visitors = BloomFilter(1000), Counter()
    for rejected in (
        lambda: seen.add(item),
        lambda: item in seen,
        lambda: seen.update([item]),
        lambda: seen.add_many(["ann", item]),
        lambda: seen.contains_many(iter([item])),
        lambda: visitors.add(item),
        lambda: visitors.update([item]),
    ):
        with pytest.raises(TypeError, match="an item is str, bytes, bytearray or memoryview, got "):
            rejected()
    # All items of a list are read before the first is added.
    assert len(seen) == 0


@pytest.mark.parametrize("items", ["ann", b"ann", bytearray(b"ann"), memoryview(b"ann"), 5, None, np.array(b"ann")])
def test_one_item_is_no_list(items: Any) -> None:
    for rejected in (BloomFilter(10).update, BloomFilter(10).contains_many, Counter().add_many):
        with pytest.raises(TypeError, match="expected"):
            rejected(items)


def test_errors_of_an_iterable_are_raised() -> None:
    def fails() -> Iterator[str]:
        yield "ann"
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        BloomFilter(10).update(fails())


def test_rows_of_numpy_are_the_bytes_that_numpy_hands_out() -> None:
    rows = np.array([b"ann", b"zoe\0\0", b"", b"a\0b"])
    seen = BloomFilter(1000)
    answers = seen.add_many(rows)
    assert isinstance(answers, np.ndarray) and answers.dtype == np.bool_ and answers.flags.writeable
    assert all(item in seen for item in rows.tolist())
    assert b"zoe" in seen and b"zoe\0\0" not in seen
    assert rows[~seen.contains_many(rows)].tolist() == []


def test_voids_are_their_bytes() -> None:
    seen = BloomFilter(1000)
    assert seen.add_many(np.frombuffer(b"ann\0ben\0", "V4")).tolist() == [True, True]
    assert b"ann\0" in seen and b"ann" not in seen


# A regression test: integer arrays added their raw bytes, while clients send digits to servers.
@pytest.mark.parametrize("kind", ["<i8", "<u4", ">i8", "?", "i2,i4"])
def test_bytes_of_numbers_are_items_only_if_their_width_is_given(kind: str) -> None:
    rows = np.zeros(2, dtype=kind)
    rows[1] = np.ones(1, dtype=kind)[0]
    digits = "" if kind == "i2,i4" else r"pass map\('{:d}'.format, array.tolist\(\)\) .*"
    for rejected in (BloomFilter(10).update, BloomFilter(10).contains_many, Counter().add_many):
        with pytest.raises(TypeError, match=f"expected an array of bytes .*: {digits}width= for its bytes$"):
            rejected(rows)
    seen = BloomFilter(1000)
    assert seen.add_many(rows, width=rows.itemsize).tolist() == [True, True]
    # Scalars of NumPy have this machine's byte order. Elements of an array have the order of the
    # array's type.
    assert rows[1:].tobytes() in seen and rows[:1].tobytes() in seen and len(seen) == 2


# A regression test: a missing value turns a column of integers into floats, and so into other
# items.
@pytest.mark.parametrize("kind", ["<f8", ">f4", "f2", "g", "c16", "i4,f8"])
def test_floats_are_rejected_whatever_their_width(kind: str) -> None:
    seen = BloomFilter(1000)
    rows: Any = np.zeros(2, kind)
    for options in ({}, {"width": rows.itemsize}):
        for items in (rows, memoryview(rows)):
            with pytest.raises(TypeError, match="floats are no items, and a missing value makes floats"):
                seen.update(items, **options)
    assert len(seen) == 0


# A regression test: masked values were counted.
@pytest.mark.parametrize("values", [[b"1", b"2"], [1, 2], ["1", "2"]])
def test_masked_arrays_are_rejected(values: list[Any]) -> None:
    masked: Any = np.ma.array(values, mask=[False, True])
    for rejected in (BloomFilter(10).update, BloomFilter(10).contains_many, Counter().add_many):
        for width in (None, masked.itemsize):
            with pytest.raises(TypeError, match="masked in an array is no item"):
                rejected(masked, width=width)
    visitors = Counter()
    visitors.update(masked.compressed().astype("S"))
    assert visitors.members() == [b"1"]


def test_bytes_of_the_last_of_two_dimensions_are_items() -> None:
    rows = np.arange(ROWS * 16, dtype=np.uint32).view(np.uint8).reshape(-1, 16)
    seen = BloomFilter(len(rows))
    seen.update(rows)
    assert rows[7].tobytes() in seen and rows[-1].tobytes() in seen
    assert seen.contains_many(rows).all()
    listed = BloomFilter(len(rows))
    listed.update([row.tobytes() for row in rows])
    assert listed == seen


def test_width_cuts_any_buffer() -> None:
    data = b"annbencem"
    buffers: list[Any] = [data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)]
    for buffer in [*buffers, array.array("B", data)]:
        seen = BloomFilter(1000)
        answers = seen.add_many(buffer, width=3)
        assert list(answers) == [True] * 3
        assert isinstance(answers, np.ndarray if isinstance(buffer, np.ndarray) else memoryview)
        assert "ann" in seen and "cem" in seen
    with pytest.raises(ValueError, match="9 bytes are no whole number of rows of 2"):
        BloomFilter(10).update(data, width=2)
    with pytest.raises(ValueError, match="width must be at least 1"):
        BloomFilter(10).update(data, width=0)
    with pytest.raises(ParameterError, match="whole number from 0"):
        BloomFilter(10).update(data, width=-1)
    with pytest.raises(TypeError, match="bytes-like"):
        BloomFilter(10).update(["ann"], width=3)  # type: ignore[call-overload]


def test_buffers_of_arrow() -> None:
    column = pa.array([b"ann!", b"ben!", b"cem!"], pa.binary(4))
    seen, other = BloomFilter(1000), BloomFilter(1000)
    seen.update(column.buffers()[1], width=column.type.byte_width)
    other.update(column)
    assert "ann!" in seen and len(seen) == 3 and seen == other


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        (np.array(["ann"]), TypeError, r"UTF-32: pass array.tolist\(\)$"),
        # astype("S") would make an item of a missing value, and cut off zero bytes at the end.
        (np.array(["ann", None], object), TypeError, r"an array of objects holds no bytes: pass array.tolist\(\)$"),
        (np.zeros(3, np.uint8), TypeError, "got one dimension of format 'B': .* or width= for its bytes"),
        (np.zeros((2, 2, 2), np.uint8), TypeError, "got 3 dimensions of format 'B': width= for its bytes"),
        (np.zeros((2, 2), np.int64), TypeError, "got 2 dimensions"),
        (np.zeros(10, "S4")[::2], ValueError, "pass numpy.ascontiguousarray"),
        (np.zeros((4, 4), np.uint8).T, ValueError, "do not lie one after another"),
    ],
)
def test_arrays_without_rows_are_rejected(items: Any, error: type[Exception], message: str) -> None:
    for rejected in (BloomFilter(10).update, BloomFilter(10).contains_many, Counter().add_many):
        with pytest.raises(error, match=message):
            rejected(items)


def test_arrays_without_a_buffer_are_iterated() -> None:
    """They raised NumPy's "cannot include dtype ... in a buffer"."""
    texts: Any = np.array(["ann", "b" * 40], np.dtypes.StringDType())
    seen = BloomFilter(10)
    assert seen.add_many(texts).tolist() == [True, True] and "b" * 40 in seen
    with pytest.raises(TypeError, match="got datetime64: decide on its text"):
        seen.update(np.array(["2027-01-01"], "datetime64[s]"))


def test_missing_values_in_a_list_are_rejected_whatever_nulls_says() -> None:
    with pytest.raises(TypeError, match=r'out, or pass a column and nulls="skip"$'):
        Counter().update(cast(Any, ["ann", None]), nulls="skip")


def test_empty_arrays() -> None:
    for empty in (np.zeros(0, "S4"), np.zeros((0, 16), np.uint8)):
        answers = BloomFilter(10).contains_many(empty)
        assert answers.dtype == np.bool_ and len(answers) == 0
    assert len(BloomFilter(10).contains_many(b"", width=4)) == 0
    # Rows of zero bytes are empty items.
    seen = BloomFilter(10)
    assert seen.add_many(np.zeros((3, 0), np.uint8)).tolist() == [True, False, False]
    assert b"" in seen


def test_other_buffers() -> None:
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:8] = b"annetten"
        seen = BloomFilter(1000)
        seen.update(mapped, width=8)
        assert "annetten" in seen
        # The call keeps no reference to the memory, so it can be resized.
        mapped.resize(8192)
    numbers = (ctypes.c_uint32 * 3)(1, 2, 3)
    assert list(BloomFilter(10).add_many(numbers, width=4)) == [True] * 3
    with pytest.raises(TypeError, match="format '<I'"):
        BloomFilter(10).add_many(numbers)


def test_buffers_are_released_also_after_errors() -> None:
    data = bytearray(b"annbencem")
    with pytest.raises(ValueError):
        BloomFilter(10).update(data, width=2)
    BloomFilter(10).update(data, width=3)
    data.append(0)


def test_counters_take_the_same_items() -> None:
    visitors = Counter()
    assert visitors.add_many(np.arange(100).astype("S")).sum() == 100
    assert visitors.contains_many(np.arange(90, 110).astype("S")).sum() == 10
    visitors.update(np.arange(100_000).astype("S"))
    count, error = visitors.estimate()
    assert abs(count - 100_000) < 4 * error
    listed = Counter()
    listed.update(map(str, range(100_000)))
    assert listed == visitors


def test_structures_are_their_bytes_and_hold_no_objects() -> None:
    rows = np.array([(1, 0), (2, 0)], dtype=[("ids", "<i8"), ("s", "<i4")])
    seen = BloomFilter(100)
    seen.update(rows, width=12)
    assert rows[0].tobytes() in seen and rows[1].tobytes() in seen
    # The names of fields do not count as types.
    assert many(np.array([(1,), (2,)], dtype=[("Of", "<u8")]), width=8) is not None
    with pytest.raises(TypeError, match="objects"):
        seen.update(np.array([("a", 1)], dtype=[("x", "O"), ("y", "<i8")]), width=16)


def test_a_failed_allocation_is_an_error() -> None:
    """Runs in a process whose address space is limited to little more than it already uses."""
    program = """
import resource
import numpy as np
from rollcall_redis import BloomFilter

seen, large = BloomFilter(1000), bytearray(400 << 20)
row = np.zeros((1, 400 << 20), np.uint8)
used = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
for rejected in (
    lambda: seen.add(large),
    lambda: seen.update([large]),
    lambda: seen.update(row),
    lambda: BloomFilter.from_bytes(large),
):
    try:
        rejected()
        print("no error")
    except MemoryError:
        pass
print(len(seen))
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
