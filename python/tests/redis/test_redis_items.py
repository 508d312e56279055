"""Tests the items of typed commands: the bytes that the server gets, and rejected values whose text is ambiguous."""

import array
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest
from redis_ways import Driven

from rollcall_redis import Counter


class Role(IntEnum):
    ADMIN = 7


class Colour(StrEnum):
    RED = "red"


NUMBERS = array.array("I", [1, 2])
# redis-py alone sends `<Role.ADMIN: 7>` for an enum. For a memoryview with elements of several bytes it
# sends a wrong length.
ITEMS: list[tuple[Any, bytes]] = [
    ("bén", "bén".encode()),
    (b"\xff\x00", b"\xff\x00"),
    (bytearray(b"cem"), b"cem"),
    (memoryview(b"dee"), b"dee"),
    (memoryview(NUMBERS), NUMBERS.tobytes()),
    (12, b"12"),
    (-(2**70), b"-1180591620717411303424"),
    (Role.ADMIN, b"7"),
    (Colour.RED, b"red"),
    (np.str_("eva"), b"eva"),
    (np.bytes_(b"fay"), b"fay"),
]
REJECTED = [
    1.0,
    float("nan"),
    np.float64(7.0),
    np.float32(7.0),
    np.int64(7),
    np.ma.masked,
    True,
    None,
    ["ann"],
    np.arange(3),
]


def test_items_are_the_bytes_that_the_classes_store(rollcall: Driven) -> None:
    expected = sorted(item for _, item in ITEMS)
    if not (rollcall.variant.is_transaction and rollcall.variant.decodes):
        rollcall.lc.add("added", *(value for value, _ in ITEMS))
        rollcall.lc.insert("inserted", [value for value, _ in ITEMS])
        rollcall.lc.admit("admitted", [value for value, _ in ITEMS], limit=100)
        assert [sorted(rollcall.lc.members(key)) for key in ("added", "inserted", "admitted")] == [expected] * 3
        stored = Counter()
        stored.update(str(int(value)) if isinstance(value, int) else value for value, _ in ITEMS)
        assert sorted(stored.members()) == expected
    for value, item in ITEMS:
        rollcall.bf.add("seen", value)
        assert rollcall.bf.exists("seen", item) and rollcall.bf.mexists("seen", value, "zoe") == [True, False]
    rollcall.lc.add("visitors", *expected)
    assert all(rollcall.lc.mexists("visitors", *(value for value, _ in ITEMS)))


@pytest.mark.parametrize("item", REJECTED, ids=lambda item: type(item).__name__)
def test_values_without_one_text_are_rejected(rollcall: Driven, item: Any) -> None:
    bf, lc = rollcall.bf, rollcall.lc
    for call in (bf.add, bf.madd, bf.exists, bf.mexists, lc.add, lc.exists, lc.mexists):
        with pytest.raises(TypeError, match="an item is str, bytes, bytearray, memoryview or int, got "):
            call("key", item)
    for call in (bf.insert, lc.insert):
        with pytest.raises(TypeError, match="an item is "):
            call("key", ["ann", item])
    for call in (bf.admit, lc.admit):
        with pytest.raises(TypeError, match="an item is "):
            call("key", ["ann", item], limit=3)
    assert rollcall.command("EXISTS", "key") == 0
