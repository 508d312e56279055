"""Tests columns that Arrow's C data interface hands out."""

import ctypes
import threading
import uuid
from typing import Any, Literal

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from rollcall_redis import BloomFilter, Counter, ParameterError

# Empty, of one byte, within a view (12 bytes) and beyond it, and not ASCII.
TEXTS = ["", "a", "twelve bytes", "thirteen byte", "übergrößenträger"]
UUIDS = [uuid.UUID(int=5), uuid.UUID("ABCDEF00-1234-5678-9abc-def012345678")]
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
INTEGER_TYPES = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]


def extremes(type: Any) -> list[int]:
    limits = np.iinfo(type.to_pandas_dtype())
    return [int(limits.min), 0, 7, 10, 99, 100, int(limits.max)]


def uuids(values: list[uuid.UUID | None]) -> Any:
    return pa.array([value and value.bytes for value in values], pa.uuid())


# Columns without missing values, and their items in a list.
COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    **{str(type): (pa.array(TEXTS, type), TEXTS) for type in TEXT_TYPES},
    **{str(type): (pa.array(extremes(type), type), [*map(str, extremes(type))]) for type in INTEGER_TYPES},
    "bytes that are no text": (pa.array([b"\xff\0", b"\0"]), [b"\xff\0", b"\0"]),
    "fixed size": (pa.array([b"\0\0\xff", b"abc", b"de\0"], pa.binary(3)), [b"\0\0\xff", b"abc", b"de\0"]),
    "no size": (pa.array([b"", b""], pa.binary(0)), [b"", b""]),
    "UUIDs": (uuids([*UUIDS]), [*map(str, UUIDS)]),
    "UUIDs as bytes": (uuids([*UUIDS]).storage, [value.bytes for value in UUIDS]),
    "UUIDs of pandas": (
        pd.Series([value.bytes for value in UUIDS], dtype=pd.ArrowDtype(pa.uuid())),
        [*map(str, UUIDS)],
    ),
    "UUIDs that Polars reads from Parquet": (
        pl.Series([value.bytes for value in UUIDS]).to_arrow().cast(pa.binary(16)).cast(pa.uuid()),
        [*map(str, UUIDS)],
    ),
    "dictionary of UUIDs": (
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.uint8()), uuids([*UUIDS])),
        [str(UUIDS[number]) for number in (1, 0, 1)],
    ),
    "dictionary of integers": (pa.array([70, 60, 70, 2**40]).dictionary_encode(), ["70", "60", "70", str(2**40)]),
    **{
        f"dictionary of {type}": (
            pa.DictionaryArray.from_arrays(pa.array([4, 0, 3, 3, 2], keys), pa.array(TEXTS, type)),
            [TEXTS[number] for number in (4, 0, 3, 3, 2)],
        )
        for type, keys in zip(TEXT_TYPES, INTEGER_TYPES[1:], strict=False)
    },
    "dictionary of a fixed size": (
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.uint64()), pa.array([b"ab\0", b"cde"], pa.binary(3))),
        [b"cde", b"ab\0", b"cde"],
    ),
    "chunks with other dictionaries": (
        pa.chunked_array([pa.array(TEXTS[:2]).dictionary_encode(), pa.array(TEXTS[1:])[1:].dictionary_encode()]),
        TEXTS,
    ),
    "text of Polars": (pl.Series(TEXTS), TEXTS),
    "categories of Polars": (pl.Series(TEXTS, dtype=pl.Categorical), TEXTS),
    "enumeration of Polars": (pl.Series(TEXTS, dtype=pl.Enum(TEXTS)), TEXTS),
    "numbers of Polars": (pl.Series([-5, 6]), ["-5", "6"]),
    "objects of Polars": (pl.Series(TEXTS, dtype=pl.Object), TEXTS),
    "text of pandas": (pd.Series(TEXTS), TEXTS),
    "categories of pandas": (pd.Series(TEXTS, dtype="category"), TEXTS),
    "numbers of pandas": (pd.Series([-5, 6]), ["-5", "6"]),
    "objects of pandas": (pd.Series(TEXTS, dtype=object), TEXTS),
}


def exact(items: Any, **options: Any) -> Counter:
    counter = Counter(exact_limit=1000)
    counter.update(items, **options)
    return counter


@pytest.mark.parametrize(("column", "items"), COLUMNS.values(), ids=COLUMNS)
def test_a_column_has_the_items_of_a_list(column: Any, items: list[Any]) -> None:
    assert exact(column).members() == exact(items).members()
    one, other = BloomFilter(1000), BloomFilter(1000)
    answers = one.add_many(column)
    assert isinstance(answers, np.ndarray) and answers.tolist() == other.add_many(items)
    assert one == other and all(one.contains_many(column))
    counter = exact(items)
    assert counter.contains_many(column).all() and not Counter().contains_many(column).any()


@pytest.mark.parametrize("type", INTEGER_TYPES)
def test_numbers_of_every_length_are_their_digits(type: Any) -> None:
    limits, random = np.iinfo(type.to_pandas_dtype()), np.random.default_rng(3)
    near = {
        sign * power + by
        for digits in range(64)
        for power in (10**digits, 2**digits)
        for sign in (-1, 1)
        for by in (-1, 0, 1)
    }
    near |= {int(number) for digits in range(1, 19) for number in random.integers(10**digits, size=99)}
    numbers = sorted(number for number in near | {int(limits.min)} if limits.min <= number <= limits.max)
    # Digits are written for 64 numbers at a time, here of one length and of all lengths.
    for order in (numbers, [numbers[at] for at in random.permutation(len(numbers))]):
        counter = Counter(exact_limit=10_000, exact_bytes=1 << 20)
        counter.update(pa.array(order, type))
        assert counter.members() == [str(number).encode() for number in order]


@pytest.mark.parametrize(
    "type", [*TEXT_TYPES, pa.binary(12), *INTEGER_TYPES, pa.uuid(), pa.dictionary(pa.int16(), pa.utf8())]
)
def test_slices_chunks_and_missing_values(type: Any) -> None:
    number = np.random.default_rng(5).integers
    values: list[Any] = []
    for row in range(300):
        text = f"{row:012}" + ("" if type == pa.binary(12) else "x" * int(number(20)))
        values.append(
            {True: int(number(100)), False: text.encode() if "binary" in str(type) else text}[pa.types.is_integer(type)]
        )
        if type == pa.uuid():
            values[-1] = uuid.UUID(int=row).bytes
        if number(3) == 0:
            values[-1] = None
    column = pa.array(values, type)
    expected = [str(value) if pa.types.is_integer(type) or type == pa.uuid() else value for value in column.to_pylist()]
    assert 50 < column.null_count < 150
    for start, stop in [(0, 300), (1, 300), (7, 291), (64, 128), (299, 300), (13, 13), (300, 300)]:
        part, items = column[start:stop], [item for item in expected[start:stop] if item not in (None, "None")]
        chunked = pa.chunked_array([part[:5], part[5:5], part[5:90], column[:0], part[90:]], type)
        for given in (part, chunked):
            seen, other = BloomFilter(1000), BloomFilter(1000)
            assert exact(given, nulls="skip").members() == exact(items).members()
            answers = iter(other.add_many(items))
            # A missing value is answered by False, so the answers select rows.
            rows = [value is not None and next(answers) for value in part.to_pylist()]
            assert seen.add_many(given, nulls="skip").tolist() == rows
            assert seen == other
            found = [value is not None for value in part.to_pylist()]
            assert seen.contains_many(given, nulls="skip").tolist() == found
            if missing := part.null_count:
                before = exact(items)
                for rejected in (before.update, before.add_many, before.contains_many, seen.update, seen.contains_many):
                    with pytest.raises(TypeError, match=rf'\({missing} here\): pass nulls="skip", or leave them out'):
                        rejected(given)
                with pytest.raises(TypeError, match=rf"\({missing} here\): leave them out in the engine"):
                    before.remove(given)
                with pytest.raises(TypeError, match=rf"\({missing} here\): leave them out in the engine"):
                    before.admit(given, 5)
                assert before == exact(items) and seen == other


def test_missing_values_in_a_dictionary() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 0], pa.int8()), pa.array(["x", None, "y"]))
    assert exact(column[1:], nulls="skip").members() == [b"y", b"x"]
    with pytest.raises(TypeError, match=r"\(2 here\)"):
        Counter().update(column)
    assert BloomFilter(10).add_many(column, nulls="skip").tolist() == [True, False, False, True, False]


@pytest.mark.parametrize("column", [pa.array([None, None]), pl.Series([None, None]), pd.Series([None, None])])
def test_columns_without_a_type(column: Any) -> None:
    with pytest.raises(TypeError, match=r"\(2 here\)"):
        Counter().update(column)
    assert len(exact(column, nulls="skip")) == 0
    assert BloomFilter(10).contains_many(column, nulls="skip").tolist() == [False, False]


@pytest.mark.parametrize(
    "column",
    [
        *(pa.array([], type) for type in [*TEXT_TYPES, *INTEGER_TYPES, pa.uuid(), pa.null(), pa.binary(5)]),
        pa.array(["a"]).dictionary_encode()[:0],
        pa.chunked_array([], pa.string()),
        pl.Series([], dtype=pl.String),
        pl.Series([]),
        pd.Series([], dtype=str),
    ],
)
def test_empty_columns(column: Any) -> None:
    assert len(exact(column)) == 0
    answers = BloomFilter(10).add_many(column)
    assert answers.dtype == np.bool_ and len(answers) == 0


NULLS: list[Literal["error", "skip"]] = ["error", "skip"]
CAST = "cast it to text or to whole numbers in the engine"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.5]), f"Float64 has no items, and a missing value makes floats of whole numbers: {CAST}"),
        (pd.Series([1, None]), f"Float64 has no items, .*: {CAST}"),
        (pl.Series([1.0]), "Float64 has no items"),
        (pa.array([1], pa.decimal128(5, 2)), f"Decimal128.* has no items: {CAST}"),
        (pa.array([True]), f"Boolean has no items: {CAST}"),
        (pa.array([1], pa.date32()), f"Date32 has no items: {CAST}"),
        (pa.array([1], pa.timestamp("us", "UTC")), f"Timestamp.* has no items: {CAST}"),
        (pa.array([1], pa.time64("ns")), f"Time64.* has no items: {CAST}"),
        (pa.array([[1]]), f"List.* has no items: {CAST}"),
        (pa.RunEndEncodedArray.from_arrays([2], ["a"]), "RunEndEncoded.* has no items"),
        (pa.array([1.5]).dictionary_encode(), "Float64 has no items"),
        (pl.Series([1], dtype=pl.Int128), f"Arrow's format _pli128 has no items: {CAST}"),
        (pa.array([], pa.float64()), "Float64 has no items"),
        (
            pa.array(["{}"]).cast(pa.json_()),
            "extension type arrow.json has no agreed text: cast it to text, or to Utf8, ",
        ),
        (
            pa.array([1], pa.int8()).cast(pa.bool8()),
            "type arrow.bool8 has no agreed text: cast it to text, or to Int8, ",
        ),
        (
            pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["{}"]).cast(pa.json_())),
            "extension type arrow.json has no agreed text",
        ),
        (pa.table({"id": [1], "name": ["a"]}), "got a table with the columns id, name: choose a column$"),
        (pa.record_batch({"id": [1]}), "got a table with the column id: choose a column$"),
        (pl.DataFrame({"id": [1]}), "got a table with the column id"),
        (pd.DataFrame({"id": [1]}), "got a table with the column id"),
        (pa.array([{"id": 1}]), "got a table with the column id"),
    ],
)
def test_other_types_are_rejected(column: Any, message: str) -> None:
    counter, seen = Counter(), BloomFilter(10)
    for rejected in (seen.update, seen.contains_many, counter.add_many):
        for nulls in NULLS:
            with pytest.raises(TypeError, match=message):
                rejected(column, nulls=nulls)
    with pytest.raises(TypeError, match=message):
        counter.remove(column)
    assert len(counter) == len(seen) == 0


@pytest.mark.parametrize(
    "column", [uuids([*UUIDS]), pa.chunked_array([uuids([*UUIDS])]), pa.array([b"a" * 16], pa.binary(16))]
)
def test_columns_have_no_width(column: Any) -> None:
    for rejected in (BloomFilter(10).update, BloomFilter(10).contains_many, Counter().add_many):
        with pytest.raises(
            TypeError, match="width= is for the bytes of a buffer: the items of a column follow from its"
        ):
            rejected(column, width=16)


def test_nulls_are_an_error_or_skipped() -> None:
    for wrong in ("drop", None, True):
        with pytest.raises(ParameterError, match="nulls must be 'error' or 'skip', got"):
            Counter().update(pa.array(["a"]), nulls=wrong)  # type: ignore[call-overload]
    assert exact(pa.array(["a"]), nulls="error").members() == [b"a"]


def test_columns_are_admitted_and_removed() -> None:
    counter = Counter()
    assert counter.admit(pa.array([5, 6, 7]), 2) == [1, 1, -1]
    assert counter.remove(pa.array([6, 8])) == [True, False]
    assert counter.members() == [b"5"]


def exporter(method: str, export: Any) -> Any:
    """An object with one method of Arrow's interface, and nothing else."""
    return type("Exporter", (), {method: lambda self: export()})()


def test_each_method_of_the_interface() -> None:
    array = pa.array(["ann", None, "zoe"])
    chunks = pa.chunked_array([array, array])
    for given, rows in [
        (exporter("__arrow_c_array__", array.__arrow_c_array__), 3),
        (exporter("__arrow_c_stream__", chunks.__arrow_c_stream__), 6),
    ]:
        assert exact(given, nulls="skip").members() == [b"ann", b"zoe"]
        answers = BloomFilter(10).add_many(given, nulls="skip")
        # Without `__array__`, as for another buffer.
        assert isinstance(answers, memoryview) and answers.tolist() == [True, False, True, *[False] * (rows - 3)]


def test_errors_of_a_producer_are_raised() -> None:
    def fails() -> Any:
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        Counter().update(exporter("__arrow_c_stream__", fails))
    with pytest.raises(TypeError):
        Counter().update(exporter("__arrow_c_stream__", lambda: 5))
    with pytest.raises(TypeError):
        Counter().update(exporter("__arrow_c_array__", lambda: 5))
    # A stream, or an array, can be taken once.
    column = pa.chunked_array([["ann"]])
    stream, array = column.__arrow_c_stream__(), column.chunk(0).__arrow_c_array__()
    for taken in (exporter("__arrow_c_stream__", lambda: stream), exporter("__arrow_c_array__", lambda: array)):
        Counter().update(taken)
        with pytest.raises(ValueError, match="the column cannot be read: it was read before"):
            Counter().update(taken)
    array = column.chunk(0).__arrow_c_array__()
    pa.Array._import_from_c_capsule(*array)
    with pytest.raises(ValueError, match="the column cannot be read: it was read before"):
        Counter().update(exporter("__arrow_c_array__", lambda: array))
    # A capsule of another name has something else.
    with pytest.raises(ValueError, match="incorrect name"):
        Counter().update(exporter("__arrow_c_stream__", lambda: column.chunk(0).__arrow_c_array__()[1]))


class Stream(ctypes.Structure):
    """Arrow's ArrowArrayStream."""


FIELDS: list[tuple[str, Any]] = [
    *((name, ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.c_void_p)) for name in ("schema", "next")),
    ("error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
    ("data", ctypes.c_void_p),
]
Stream._fields_ = FIELDS


@pytest.mark.parametrize("text", [b"the disk is full", None])
def test_a_stream_that_fails_says_why(text: bytes | None) -> None:
    """The stream has a column's type and its first chunk, and then fails."""
    column = pa.chunked_array([["ann"], ["ben"]])
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = column.__arrow_c_stream__()
    inner = ctypes.cast(address(capsule, b"arrow_array_stream"), ctypes.POINTER(Stream))
    chunks, released = iter([0, 5]), []
    said = ctypes.create_string_buffer(text) if text else None
    fields = dict(FIELDS)

    def release(stream: Any) -> None:
        released.append(True)
        # What is released has no `release`.
        ctypes.memset(ctypes.addressof(stream.contents) + Stream.release.offset, 0, ctypes.sizeof(ctypes.c_void_p))

    stream = Stream(
        fields["schema"](lambda _, out: inner.contents.schema(inner, out)),
        fields["next"](lambda _, out: next(chunks) or inner.contents.next(inner, out)),
        fields["error"](lambda _: ctypes.addressof(said) if said else None),
        fields["release"](release),
    )
    counter = Counter()
    given = make(ctypes.addressof(stream), b"arrow_array_stream", None)
    message = text.decode() if text else "error 5"
    with pytest.raises(ValueError, match=f"^the column cannot be read: {message}$"):
        counter.update(exporter("__arrow_c_stream__", lambda: given))
    # All chunks are read before anything is added.
    assert len(counter) == 0 and released == [True]


def test_items_outside_the_memory_of_a_column_are_rejected() -> None:
    offsets, views = np.array([0, 3, 2, 6], np.int32), np.zeros((1, 4), np.int32)
    views[0] = 13, 0, 0, 5  # 13 bytes from the fifth on, of 16
    keys = pa.array([0, 7])
    for column in (
        pa.StringArray.from_buffers(3, pa.py_buffer(offsets), pa.py_buffer(b"annbob")),
        pa.LargeStringArray.from_buffers(3, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(b"annbob")),
        pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(views), pa.py_buffer(b"x" * 16)]),
        pa.DictionaryArray.from_arrays(keys, pa.array(["ann"]), safe=False),
        pa.DictionaryArray.from_arrays(keys, pa.array([5]), safe=False),
        pa.DictionaryArray.from_arrays(keys, pa.array(["ann", None])[:1], safe=False),
        pa.DictionaryArray.from_arrays(pa.array([-1]), pa.array([5]), safe=False),
    ):
        counter = Counter()
        with pytest.raises(ValueError, match="cannot be read: an item lies outside its memory"):
            counter.update(column)
        assert len(counter) == 0


def test_a_producer_that_lacks_a_package_is_iterated() -> None:
    def needs() -> Any:
        raise ImportError("pyarrow")

    given = exporter("__arrow_c_stream__", needs)
    type(given).__iter__ = lambda self: iter(["ann"])
    assert exact(given).members() == [b"ann"]


def test_many_rows_are_answered_in_order() -> None:
    rows = 140_001
    items = [None if row % 7 == 0 else str(row) for row in range(rows)]
    seen = BloomFilter(rows, 1e-9)
    seen.update([item for item in items[::2] if item])
    expected = [item is not None and row % 2 == 0 for row, item in enumerate(items)]
    numbers = pa.array([item and int(item) for item in items])
    for column in (pa.array(items), numbers, pa.chunked_array([numbers[:70_000], numbers[70_000:]]), pl.Series(items)):
        assert seen.contains_many(column, nulls="skip").tolist() == expected


def test_counters_of_many_rows_equal_those_of_lists() -> None:
    numbers = np.random.default_rng(5).integers(-(2**63), 2**63, 200_000)
    column = pa.array(numbers)
    one, other = Counter(), Counter()
    one.update(column)
    other.update(map(str, column.to_pylist()))
    assert one == other and not one.is_exact and one.to_bytes() == other.to_bytes()


def test_threads_share_a_column() -> None:
    column = pa.array([str(number) for number in range(200_000)])
    seen, visitors = BloomFilter(200_000), Counter()
    ticks, done = 0, threading.Event()

    def counts() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1

    def adds() -> None:
        for _ in range(5):
            seen.update(column)
            visitors.update(column)

    ticking = threading.Thread(target=counts)
    threads = [threading.Thread(target=adds) for _ in range(3)]
    for thread in (ticking, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    ticking.join()
    expected = Counter()
    expected.update(column)
    assert visitors == expected and seen.contains_many(column).all() and ticks > 1000


def counters(*members: list[str], **options: Any) -> list[bytes]:
    stored = []
    for some in members:
        counter = Counter(**options)
        counter.update(some)
        stored.append(counter.to_bytes())
    return stored


def test_stored_counters_are_merged() -> None:
    lists = [[f"{part}:{row}" for row in range(size)] for part, size in enumerate([3, 0, 40, 1, 7])]
    stored, expected = counters(*lists), Counter()
    for some in lists:
        expected.update(some)
    column = pa.array([stored[0], None, *stored[1:]])
    for given in (stored, tuple(stored), iter(stored), map(bytearray, stored), pa.array(stored), pl.Series(stored)):
        assert Counter.merge_all(given) == expected
    assert Counter.merge_all(column, nulls="skip") == expected
    assert Counter.merge_all(column.to_pylist(), nulls="skip") == expected
    assert Counter.merge_all(pa.array(stored).dictionary_encode()) == expected
    assert Counter.merge_all(pa.chunked_array([column[:3], column[3:]]), nulls="skip") == expected


def test_a_merge_of_all_is_the_union() -> None:
    lists = [[str(number) for number in range(start, start + 3000)] for start in range(0, 20_000, 1000)]
    one = Counter.merge_all(counters(*lists))
    other = Counter()
    for some in lists:
        other |= Counter.from_bytes(counters(some)[0])
    assert one == other and not one.is_exact
    # As after a merge, the error rate of the coarsest.
    coarse = Counter.merge_all([*counters(lists[0]), *counters(lists[1], error_rate=0.05)])
    assert coarse.error_rate == 0.05


def test_windows_are_merged_at_a_time() -> None:
    noon = 1_800_000_000
    stored = []
    for member, age in (("ann", 7200), ("ben", 60)):
        visitors = Counter(window=86_400, slices=24, now=noon - age)
        visitors.add(member, now=noon - age)
        stored.append(visitors.to_bytes())
    merged = Counter.merge_all(stored, now=noon)
    assert (merged.count(now=noon), merged.count(since=3600, now=noon)) == (2, 1)


def test_a_merge_names_the_counter_that_is_wrong() -> None:
    good, other = *counters(["ann"]), *counters(["ben"], seed=1)
    for bad, error, message in [
        ([good, b"zz"], ValueError, r"^counters\[1\]: no file"),
        ([good, good[:-1]], ValueError, r"^counters\[1\]: "),
        ([good, BloomFilter(10).to_bytes()], ValueError, r"^counters\[1\]: "),
        (pa.array([None, good, None, b""]), ValueError, r"^counters\[3\]: "),
        ([good, other], ValueError, r"^counters\[1\]: seed differs"),
        ([good, "text"], TypeError, r"^counters\[1\]: expected the bytes of a counter, got str$"),
        ([good, Counter()], TypeError, r"^counters\[1\]: expected the bytes of a counter, got Counter$"),
        ([], ParameterError, "expected one counter or more, got none"),
        (pa.array([None], pa.binary()), ParameterError, "expected one counter or more, got none"),
    ]:
        with pytest.raises(error, match=message):
            Counter.merge_all(bad, nulls="skip")
    with pytest.raises(TypeError, match=r'^counters\[1\]: .* got NoneType: pass nulls="skip" to leave it out'):
        Counter.merge_all([good, None])
    with pytest.raises(TypeError, match=r"\(1 here\)"):
        Counter.merge_all(pa.array([good, None]))
    with pytest.raises(TypeError, match="not iterable"):
        Counter.merge_all(5)  # type: ignore[arg-type]


def test_a_merge_is_limited() -> None:
    stored = counters(*([f"{part}:{row}" for row in range(3000)] for part in range(3)))
    size = Counter.merge_all(stored).size_bytes
    with pytest.raises(MemoryError, match=r"^counters\[0\]: "):
        Counter.merge_all(stored, max_bytes=1000)
    merged = Counter.merge_all(stored, max_bytes=4 * size)
    assert merged.max_bytes == 4 * size and merged.size_bytes == size
