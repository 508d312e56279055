"""Tests every BF.* command and every option, in every variant of calling."""

from datetime import timedelta
from typing import Any

import pytest
from redis_ways import BINARY, CENTURY, Driven, admits, is_exactly

from rollcall_redis import BloomFilter, Counter
from rollcall_redis.redis import Admission, Admissions, Chunk, FilterInfo, replies_before


def test_reserve_and_info(rollcall: Driven) -> None:
    is_exactly(rollcall.bf.reserve("seen", 0.001, 1_000_000), True)
    is_exactly(rollcall.bf.info("seen"), FilterInfo(1_000_000, 1_866_480, 1, 0, 2, {}))
    with rollcall.rejects("^item exists$"):
        rollcall.bf.reserve("seen", 0.001, 1_000_000)


def test_create_is_reserve_with_the_arguments_of_the_clients(rollcall: Driven) -> None:
    is_exactly(rollcall.bf.create("seen", 0.01, 1000, 4), True)
    assert rollcall.bf.info("seen", "EXPANSION") == 4
    is_exactly(rollcall.bf.reserve("fixed", error_rate=0.01, capacity=1000, noScale=True), True)
    is_exactly(rollcall.bf.info("fixed", "EXPANSION"), None)
    assert rollcall.bf.info("fixed").expansion_rate is None


def test_every_option_of_reserve_reaches_the_server(rollcall: Driven) -> None:
    bf = rollcall.bf
    bf.reserve("classic", 0.01, 1000, layout="classic", seed=None, ex=1000)
    is_exactly(bf.info("classic", "LAYOUT"), "classic")
    assert 0 < rollcall.command("TTL", "classic") <= 1000
    bf.reserve("hours", 0.01, 1000, window=timedelta(days=1), slices=24, refresh=True, manual=True, exat=CENTURY)
    is_exactly([bf.info("hours", field) for field in ("WINDOW", "SLICES", "SLICE", "CLOCK")], [86_400, 24, 0, "manual"])
    is_exactly(bf.info("hours", "REFRESH"), True)
    assert rollcall.command("EXPIRETIME", "hours") == 4_102_444_800
    bf.reserve("clock", 0.01, 1000, window=3600, px=timedelta(hours=1))
    is_exactly([bf.info("clock", "CLOCK"), bf.info("clock", "REFRESH")], ["system", False])
    assert 0 < rollcall.command("PTTL", "clock") <= 3_600_000
    bf.reserve("until", 0.01, 1000, pxat=4_102_444_800_000)
    assert rollcall.command("EXPIRETIME", "until") == 4_102_444_800
    bf.reserve("a", 0.01, 1000, seed=2**64 - 1)
    bf.reserve("b", 0.01, 1000, seed=7)
    with rollcall.rejects("differ in seed"):
        bf.merge("a", "b")
    with rollcall.rejects("EX, PX, EXAT and PXAT exclude each other"):
        bf.reserve("two", 0.01, 1000, ex=1, px=1)


def test_add_and_ask(rollcall: Driven) -> None:
    is_exactly(rollcall.bf.add("seen", "token-1"), True)
    is_exactly(rollcall.bf.add("seen", "token-1"), False)
    is_exactly(rollcall.bf.madd("seen", "token-1", "token-2", BINARY, 7, memoryview(b"view")), [False] + [True] * 4)
    is_exactly(rollcall.bf.exists("seen", BINARY), True)
    is_exactly(rollcall.bf.mexists("seen", "token-2", "7", "view", "token-9"), [True] * 3 + [False])
    is_exactly(rollcall.bf.exists("missing", "token-1"), False)
    is_exactly(rollcall.bf.card("seen"), 5)
    is_exactly(rollcall.bf.card("missing"), 0)
    is_exactly(rollcall.bf.card(b"seen"), 5)


def test_insert_makes_the_filter_with_its_options(rollcall: Driven) -> None:
    bf = rollcall.bf
    is_exactly(bf.insert("daily", ["a", "b", "a"], 5000, 0.001, None, 4), [True, True, False])
    is_exactly([bf.info("daily", field) for field in ("CAPACITY", "ERROR", "EXPANSION")], [5000, 0.001, 4])
    is_exactly(bf.insert("daily", (item for item in "bc"), noCreate=True), [False, True])
    with rollcall.rejects("^not found$"):
        bf.insert("missing", ["a"], noCreate=True)
    bf.insert("fixed", {"a"}, noScale=True, seed=5, layout="lines", pxat=CENTURY)
    assert bf.info("fixed").expansion_rate is None
    assert rollcall.command("EXPIRETIME", "fixed") == 4_102_444_800
    bf.insert("hours", ["a"], window=86_400, manual=True, slices=24, refresh=True, ex=timedelta(seconds=0.5))
    is_exactly([bf.info("hours", field) for field in ("WINDOW", "SLICES", "CLOCK")], [86_400, 24, "manual"])
    assert rollcall.command("TTL", "hours") <= 1
    bf.insert("plain", ["a"], px=100_000)
    bf.insert("user", ["a"], window=86_400, volatile=True)
    is_exactly([bf.info(key, "VOLATILE") for key in ("user", "hours", "plain")], [True, False, None])
    assert 86_400 < rollcall.command("TTL", "user") <= 5 * 21_600
    bf.insert("until", ["a"], exat=4_102_444_800)
    assert rollcall.command("EXPIRETIME", "until") == 4_102_444_800


def test_admit_up_to_a_limit(rollcall: Driven) -> None:
    bf = rollcall.bf
    plan: Any = {"limit": 4, "capacity": 500, "error_rate": 0.001, "expansion": 4, "exat": CENTURY}
    admits(bf.admit("contacts", ["ann", "ben", "ann"], all=True, seed=3, **plan), [1, 1, 0])
    admits(bf.admit("contacts", ["ben", "cem", "dee", "eva"], 4, all=True, dryrun=True), [0, -1, -1, -1])
    admits(bf.admit("contacts", ["ben", "cem", "dee", "eva"], limit=4, noCreate=True), [0, 1, 1, -1])
    is_exactly([bf.info("contacts", field) for field in ("CAPACITY", "ERROR", "EXPANSION")], [500, 0.001, 4])
    assert rollcall.command("EXPIRETIME", "contacts") == 4_102_444_800
    with rollcall.rejects("^not found$"):
        bf.admit("missing", ["ann"], 4, noCreate=True)
    admits(bf.admit("fixed", ["ann"], 4, noScale=True, layout="classic", ex=100), [1])
    admits(bf.admit("hours", ["ann"], 4, window=3600, manual=True, slices=2, refresh=True, px=10_000), [1])
    is_exactly([bf.info("hours", field) for field in ("WINDOW", "SLICES", "REFRESH")], [3600, 2, True])
    admits(bf.admit("until", ["ann"], 0, pxat=4_102_444_800_000), [-1])
    admits(bf.admit("user", ["ann"], 4, window=3600, volatile=True), [1])
    is_exactly(bf.info("user", "VOLATILE"), True)


def test_admit_says_what_room_is_left_and_when_there_is_more(rollcall: Driven) -> None:
    bf = rollcall.bf
    admitted, rejected = Admission.ADMITTED, Admission.REJECTED
    is_exactly(bf.admit("contacts", ["ann"], 3, withroom=True), Admissions([admitted], room=2, retry_after=0))
    small = bf.admit("small", ["ann", "ben", "cem"], 9, capacity=2, noScale=True, withroom=True)
    is_exactly(small, Admissions([admitted, admitted, rejected], 0, None))
    outcomes, room, retry_after = bf.admit("hour", ["ann"], 1, window=3600, slices=4, withroom=True)
    admits(outcomes, [1])
    is_exactly(room, 0)
    # A slice of 900 seconds is kept for an hour after its end.
    assert type(retry_after) is int and 3600 < retry_after <= 4500


def test_a_full_filter_raises_and_reports_what_went_in(rollcall: Driven) -> None:
    rollcall.bf.reserve("small", 0.01, 2, noScale=True)
    with rollcall.rejects("^non scaling filter is full$") as caught:
        rollcall.bf.madd("small", "a", "b", "a", "c", "d")
    is_exactly(replies_before(caught.value), [True, True, False])
    with rollcall.rejects("full") as caught:
        rollcall.bf.insert("small", ["a", "e"])
    is_exactly(replies_before(caught.value), [False])
    with rollcall.rejects("full") as caught:
        rollcall.bf.add("small", "e")
    is_exactly(replies_before(caught.value), [])


def test_every_field_of_info(rollcall: Driven) -> None:
    rollcall.bf.reserve("seen", 0.01, 1000)
    rollcall.bf.add("seen", "a")
    expected = {
        "CAPACITY": 1000,
        "FILTERS": 1,
        "ITEMS": 1,
        "EXPANSION": 2,
        "ERROR": 0.01,
        "LAYOUT": "lines",
        "WINDOW": None,
        "SLICES": None,
        "SLICE": None,
        "CLOCK": None,
        "REFRESH": None,
    }
    for field, value in expected.items():
        is_exactly(rollcall.bf.info("seen", field), value)
        is_exactly(rollcall.bf.info("seen", field.lower()), value)
    is_exactly(rollcall.bf.info("seen", "SIZE"), rollcall.bf.info("seen").size)
    assert 0 < rollcall.bf.info("seen", "FPR") < 1e-6
    assert isinstance(rollcall.bf.info("seen", "FILL"), float)
    with rollcall.rejects("Invalid information value"):
        rollcall.bf.info("seen", "WEIGHT")
    with rollcall.rejects("^not found$"):
        rollcall.bf.info("missing")


def test_windows_move_on(rollcall: Driven) -> None:
    rollcall.bf.reserve("shifts", 0.01, 1000, window=86_400, slices=3, manual=True)
    rollcall.bf.add("shifts", "ann")
    is_exactly(rollcall.bf.advance("shifts", 3), True)
    is_exactly(rollcall.bf.exists("shifts", "ann"), True)
    is_exactly(rollcall.bf.query("shifts", iter(["ann", "ben"])), [True, False])
    is_exactly(rollcall.bf.query("shifts", ["ann"], since=timedelta(hours=1)), [False])
    is_exactly(rollcall.bf.query("missing", ["ann"], 5), [False])
    with rollcall.rejects("bad seconds for 'shifts'"):
        rollcall.bf.query("shifts", ["ann"], 86_401)
    is_exactly(rollcall.bf.advance("shifts", 4), True)
    is_exactly(rollcall.bf.exists("shifts", "ann"), False)
    is_exactly(rollcall.bf.advance("shifts", "CLOCK"), True)
    is_exactly(rollcall.bf.info("shifts", "CLOCK"), "system")
    with rollcall.rejects("bad slice"):
        rollcall.bf.advance("shifts", 5)


def test_merge_and_clear(rollcall: Driven) -> None:
    for day, item in (("monday", "ann"), ("tuesday", "ben")):
        rollcall.bf.insert(day, [item], capacity=1000)
    is_exactly(rollcall.bf.merge("week", "monday", "tuesday"), True)
    is_exactly(rollcall.bf.mexists("week", "ann", "ben", "cem"), [True, True, False])
    is_exactly(rollcall.bf.clear("week"), True)
    is_exactly(rollcall.bf.card("week"), 0)


def test_values_are_merged_as_bytes(rollcall: Driven) -> None:
    days = {"monday": ["ann"], "tuesday": ["ben"]}
    for day, items in days.items():
        rollcall.bf.insert(day, items, capacity=100_000)
    dumps = [rollcall.got(rollcall.client.dump(day)) for day in days]
    week = BloomFilter.from_bytes(dumps[0])
    week |= BloomFilter.from_bytes(dumps[1])
    assert week.contains_many(["ann", "ben", "cem"]) == [True, True, False]
    is_exactly(rollcall.bf.mergedump("week", *dumps), True)
    is_exactly(rollcall.bf.mergedump("same", week.to_bytes()), True)
    assert BloomFilter.from_bytes(rollcall.got(rollcall.client.dump("week"))) == week
    assert BloomFilter.from_bytes(rollcall.got(rollcall.client.dump("same"))) == week
    with rollcall.rejects("payload 1: expected a filter, got a counter"):
        rollcall.bf.mergedump("week", Counter().to_bytes())


def test_dumps_are_binary_whatever_the_client_decodes(rollcall: Driven) -> None:
    rollcall.bf.reserve("seen", 0.01, 100_000)
    rollcall.bf.madd("seen", *range(1000))
    if rollcall.variant.is_transaction and rollcall.variant.decodes:
        with pytest.raises(TypeError, match=r"BF.SCANDUMP in a transaction needs a client without decode_responses"):
            rollcall.bf.scandump("seen", 0)
        return
    chunk = rollcall.bf.scandump("seen", 0)
    chunks = 0
    while chunk.iterator:
        is_exactly(rollcall.bf.loadchunk("copy", *chunk), True)
        chunk = rollcall.bf.scandump("seen", chunk.iterator)
        chunks += 1
    assert chunks > 1
    is_exactly(chunk, Chunk(0, b""))
    assert rollcall.bf.mexists("copy", *range(1000)) == [True] * 1000
    with rollcall.rejects("received bad data"):
        rollcall.bf.loadchunk("copy", 65, b"anything")


def test_debug(rollcall: Driven) -> None:
    rollcall.bf.insert("seen", ["a"])
    whole, first = rollcall.bf.debug("seen")
    assert whole.startswith("size:1 filters:1") and first.startswith("bytes:")


def test_an_error_of_the_type_is_the_clients_own(rollcall: Driven) -> None:
    rollcall.command("SET", "text", "x")
    with rollcall.rejects("^WRONGTYPE"):
        rollcall.bf.add("text", "a")


def test_one_text_is_no_list_of_items(rollcall: Driven) -> None:
    for text in ("ann", b"ann", bytearray(b"ann"), memoryview(b"ann")):
        with pytest.raises(TypeError, match="items must be a list or another iterable of items, got one"):
            rollcall.bf.insert("seen", text)
        with pytest.raises(TypeError, match="items must be a list"):
            rollcall.bf.admit("seen", text, 4)
        with pytest.raises(TypeError, match="items must be a list"):
            rollcall.bf.query("seen", text)
    assert rollcall.command("EXISTS", "seen") == 0
