"""Tests columns in one argument: they do what the same items in a list do."""

import array
import ctypes
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from redis_ways import Driven, is_exactly

from rollcall_redis import FullError, ParameterError
from rollcall_redis.redis import Admission, _columns, replies_before
from rollcall_redis.redis._counters_blocking import Counters
from rollcall_redis.redis._filters_blocking import Filters

TOKENS = [bytes([number, 0, 255, number % 3]) for number in (*range(40), 7, 7)]
TEXTS = [f"t{number:03}".encode() for number in (*range(40), 7, 7)]
ARROW = pa.array([b"skip", *TOKENS], pa.binary(4))[1:]
BYTES = b"".join(TOKENS)
NUMBERS = array.array("I", BYTES)

# Each column with its items, the options of the call, and the type of the answers.
COLUMNS: dict[str, tuple[Any, list[bytes], dict[str, int], type]] = {
    "V": (np.array(TOKENS, "V4"), TOKENS, {}, np.ndarray),
    "V, every second": (np.array([item for item in TOKENS for _ in "12"], "V4")[::2], TOKENS, {}, np.ndarray),
    "S": (np.array(TEXTS, "S4"), TEXTS, {}, np.ndarray),
    "S of several lengths": (np.array([*TEXTS, b"a"], "S5"), [*TEXTS, b"a"], {}, np.ndarray),
    "rows": (np.array([list(item) for item in TOKENS], np.uint8), TOKENS, {}, np.ndarray),
    "rows, by columns": (np.array([list(item) for item in TOKENS], np.uint8, order="F"), TOKENS, {}, np.ndarray),
    "Arrow": (ARROW, TOKENS, {}, np.ndarray),
    "chunks of Arrow": (pa.chunked_array([ARROW[:5], ARROW[5:5], ARROW[5:]]), TOKENS, {}, np.ndarray),
    "bytes": (BYTES, TOKENS, {"width": 4}, memoryview),
    "memoryview": (memoryview(bytearray(BYTES)), TOKENS, {"width": 4}, memoryview),
    "numbers": (NUMBERS, TOKENS, {"width": 4}, memoryview),
    "ctypes": ((ctypes.c_uint32 * len(NUMBERS))(*NUMBERS), TOKENS, {"width": 4}, memoryview),
    "integers of NumPy": (np.array(NUMBERS, np.uint32), TOKENS, {"width": 4}, np.ndarray),
}


def are(answers: Any, expected: Any, kind: type[Any]) -> None:
    """Asserts that the answers are an array of this kind, with the expected values."""
    assert type(answers) is kind
    is_exactly(answers.tolist(), [int(each) if isinstance(each, Admission) else each for each in expected])


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_one_argument(name: str) -> None:
    column, items, _, _ = COLUMNS[name]
    options: Any = COLUMNS[name][2]
    bf: Any = Filters(lambda command: command)
    lc: Any = Counters(lambda command: command, bytes)
    for command in (
        bf.insert("key", column, **options),
        lc.insert("key", column, **options),
        bf.admit("key", column, 3, **options),
        lc.admit("key", column, 3, **options),
        bf.query("key", column, **options),
        lc.query("key", column, **options),
    ):
        last = ["ITEMS", *items] if name == "S of several lengths" else ["WIDTH", 4, "ITEMS", b"".join(items)]
        assert command.words[-len(last) :] == last and "WIDTH" not in command.words[: -len(last)]


def digest(rollcall: Driven, key: str) -> Any:
    (digest,) = rollcall.command("DEBUG", "DIGEST-VALUE", key)
    return digest


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("family", ["bf", "lc"])
def test_a_column_does_what_a_list_does(rollcall: Driven, family: str, name: str) -> None:
    column, items, options, kind = COLUMNS[name]
    commands = getattr(rollcall, family)
    by_list, by_column = commands.insert("list", items), commands.insert("column", column, **options)
    if family == "lc":
        assert by_list == by_column == len(set(items))
    else:
        are(by_column, by_list, kind)
    assert digest(rollcall, "list") == digest(rollcall, "column")
    commands.insert("some", items[::2])
    are(commands.query("some", column, **options), commands.query("some", items), kind)
    for call in ({"limit": 30}, {"limit": 30, "all": True}, {"limit": 30, "dryrun": True}):
        rollcall.command("DEL", "list", "column")
        commands.insert("list", items[::3])
        commands.insert("column", items[::3])
        admitted = commands.admit("list", items, **call)
        assert len({*admitted}) == (2 if "all" in call else 3)
        are(commands.admit("column", column, **call, **options), admitted, kind)
        assert digest(rollcall, "list") == digest(rollcall, "column")
    room = commands.admit("column", column, limit=50, withroom=True, **options)
    are(room.outcomes, commands.admit("list", items, limit=50), kind)
    assert (room.room, room.retry_after) == (50 - len(set(items)), 0)


def calls(rollcall: Driven, command: str) -> int:
    stats: Any = rollcall.got(rollcall.client.info("commandstats"))
    return int(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"])


def test_a_long_column_is_cut_into_calls(rollcall: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_columns, "MAX_ITEMS", 20)
    column = np.array(TOKENS, "V4")
    rollcall.command("CONFIG", "RESETSTAT")
    are(rollcall.bf.insert("seen", column), [True] * 40 + [False] * 2, np.ndarray)
    assert rollcall.lc.insert("visitors", column) == 40
    are(rollcall.lc.query("visitors", np.array([*TOKENS, b"none"], "V4")), [True] * 42 + [False], np.ndarray)
    assert [calls(rollcall, name) for name in ("bf.insert", "lc.insert", "lc.query")] == [3, 3, 3]
    for commands in (rollcall.bf, rollcall.lc):
        with pytest.raises(ValueError, match=r"the column is too long: ..\.ADMIT decides .* at most 20 items, got 42"):
            commands.admit("seats", column, limit=50)
    assert rollcall.command("EXISTS", "seats") == 0
    monkeypatch.setattr(_columns, "MAX_BYTES", 5 * 4)
    assert rollcall.lc.insert("visitors", column) == 0 and calls(rollcall, "lc.insert") == 3 + 9
    with rollcall.rejects("WRONGTYPE"):
        rollcall.lc.insert("seen", column)


def test_the_longest_call(rollcall: Driven) -> None:
    items = np.arange((1 << 20) + 1, dtype=">u4")
    rollcall.command("CONFIG", "RESETSTAT")
    answers = rollcall.bf.query("seen", items[:-1], width=4)
    assert len(answers) == 1 << 20 and calls(rollcall, "bf.query") == 1
    assert len(rollcall.bf.query("seen", items, width=4)) == len(items) and calls(rollcall, "bf.query") == 3
    assert len(rollcall.lc.admit("seats", items[:-1], limit=5, width=4)) == 1 << 20
    with pytest.raises(ValueError, match="too long"):
        rollcall.lc.admit("seats", items, limit=5, width=4)


def test_replies_in_a_pipeline_stay_with_their_commands(rollcall: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_columns, "MAX_ITEMS", 20)
    column = np.array(TOKENS, "V4")
    pipe = rollcall.rollcall.pipeline()
    added, number, known = pipe.lc.add("other", "ann"), pipe.lc.insert("key", column), pipe.lc.query("key", column)
    wrong, count = pipe.bf.insert("key", column), pipe.lc.count("key")
    replies = rollcall.got(pipe.execute(raise_on_error=False))
    assert len(replies) == 5 and isinstance(replies[3], rollcall.ResponseError)
    assert (added.value, number.value, count.value, replies[1], replies[4]) == (1, 40, 40, 40, 40)
    are(known.value, [True] * 42, np.ndarray)
    with pytest.raises(rollcall.ResponseError, match="WRONGTYPE"):
        _ = wrong.value


@pytest.mark.parametrize(
    "column", [np.array([b"a1", b"b2", b"a1", b"c3", b"d4"]), np.array([b"a", b"b2", b"a", b"c", b"d"])]
)
def test_a_full_filter(rollcall: Driven, column: Any) -> None:
    rollcall.bf.reserve("small", 0.001, 2, noScale=True)
    with pytest.raises(FullError, match="non scaling filter is full") as caught:
        rollcall.bf.insert("small", column)
    is_exactly(replies_before(caught.value), [True, True, False])
    assert rollcall.bf.card("small") == 2


def test_texts_and_integers_are_sent_as_before(rollcall: Driven) -> None:
    is_exactly(rollcall.bf.insert("seen", array.array("I", [5, 6])), [True, True])
    is_exactly(rollcall.bf.query("seen", np.array(["5", "7"])), [True, False])
    with pytest.raises(TypeError, match="an item is "):
        rollcall.bf.insert("seen", np.array([5, 6]))


REJECTED: list[tuple[Any, dict[str, int], type[Exception], str]] = [
    (b"abc", {}, TypeError, "items must be a list"),
    (["abc"], {"width": 3}, TypeError, "width= is for the bytes of a buffer, got list"),
    (b"abc", {"width": 2}, ValueError, "width must be at least 1 and divide the 3 bytes of the buffer, got 2"),
    (b"abc", {"width": 0}, ValueError, "width must be at least 1"),
    (b"abc", {"width": -1}, ValueError, "width must be at least 1"),
    (b"a" * 65_537, {"width": 65_537}, ValueError, "must have 1 to 65536 bytes, got 65537"),
    (np.zeros((3, 0), np.uint8), {}, ValueError, "must have 1 to 65536 bytes, got 0"),
    (np.zeros(2), {"width": 8}, TypeError, "floats has no bytes for items"),
    (np.array(["a", None]), {"width": 8}, TypeError, "objects"),
    (np.array(["a", "b"]), {"width": 4}, TypeError, "texts"),
    (np.array([(1, 2.0)], "i4,f4"), {"width": 8}, TypeError, "floats"),
    (np.ma.array([b"ab", b"cd"], mask=[False, True]), {}, TypeError, "masked"),
    (np.ma.array([1, 2], mask=[False, True]), {"width": 8}, TypeError, "masked"),
    (pa.array([b"abcd", None], pa.binary(4)), {}, TypeError, "missing value"),
]


@pytest.mark.parametrize(("column", "options", "error", "message"), REJECTED, ids=range(len(REJECTED)))
def test_invalid_columns_are_rejected(
    rollcall: Driven, column: Any, options: dict[str, int], error: type[Exception], message: str
) -> None:
    for commands in (rollcall.bf, rollcall.lc):
        for call, limit in ((commands.insert, {}), (commands.query, {}), (commands.admit, {"limit": 3})):
            with pytest.raises(error, match=message):
                call("key", column, **limit, **options)
    assert rollcall.command("EXISTS", "key") == 0


def test_an_empty_list_or_column_is_rejected(rollcall: Driven) -> None:
    """The server complained about the number of arguments."""
    empty: list[Any] = [[], iter(()), np.array([], "S4"), np.array([], "V4"), pa.array([], pa.binary(4)), pa.array([])]
    for items in empty:
        for call, limit in ((rollcall.lc.insert, {}), (rollcall.bf.query, {}), (rollcall.bf.admit, {"limit": 3})):
            with pytest.raises(ParameterError, match="expected one item or more, got none"):
                call("key", items, **limit)
    with pytest.raises(ParameterError, match="got none"):
        rollcall.lc.insert("key", b"", width=4)


def test_arrays_of_arrow_with_other_types_are_lists(rollcall: Driven) -> None:
    """Their scalars were rejected."""
    texts, numbers = pa.chunked_array([["ann"], ["ben"]]), pa.array([7, 8])
    assert rollcall.lc.insert("key", texts) == rollcall.lc.insert("key", numbers) == 2
    assert rollcall.lc.query("key", pa.array(["ann", "7", "zoe"])) == [True, True, False]
    assert rollcall.bf.insert("filter", texts.dictionary_encode()) == [True, True]
    with pytest.raises(TypeError, match=r"got NoneType: leave missing values out$"):
        rollcall.lc.insert("key", pa.array(["cem", None]))
    for other in (pa.array([1.5]), pa.array([b"0" * 16], pa.binary(16)).cast(pa.uuid())):
        with pytest.raises(TypeError, match="decide on its text"):
            rollcall.lc.insert("key", other)
