"""Tests every LC.* command and every option, in every variant of calling."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis_ways import BINARY, CENTURY, Driven, Variant, admits, drive, is_exactly

from rollcall_redis import Counter
from rollcall_redis.redis import Admission, Admissions, Chunk, CounterInfo, Estimate, Slice


def test_reserve_and_info(rollcall: Driven) -> None:
    is_exactly(rollcall.lc.reserve("visitors", 0.005, 1000, 50_000), True)
    info = rollcall.lc.info("visitors")
    assert isinstance(info, CounterInfo)
    is_exactly((info.error_rate, info.exact_limit, info.exact_bytes), (0.005, 1000, 50_000))
    is_exactly((info.mode, info.count, info.standard_error), ("exact", 0, 0.0))
    is_exactly((info.window, info.slices, info.slice, info.clock, info.volatile), (None, None, None, None, None))
    assert not info.others
    with rollcall.rejects("^item exists$"):
        rollcall.lc.create("visitors")


def test_every_option_of_reserve_reaches_the_server(rollcall: Driven) -> None:
    lc = rollcall.lc
    lc.reserve("seeded", seed=4, ex=1000)
    assert 0 < rollcall.command("TTL", "seeded") <= 1000
    lc.reserve("hours", window=timedelta(days=1), manual=True, slices=24, px=100_000)
    is_exactly([lc.info("hours", field) for field in ("WINDOW", "SLICES", "SLICE", "CLOCK")], [86_400, 24, 0, "manual"])
    assert 0 < rollcall.command("TTL", "hours") <= 100
    lc.reserve("century", exat=CENTURY)
    lc.reserve("century too", error_rate=0.02, exact=0, bytes=100, pxat=4_102_444_800_000)
    assert [rollcall.command("EXPIRETIME", key) for key in ("century", "century too")] == [4_102_444_800] * 2
    is_exactly([lc.info("century too", field) for field in ("ERROR", "EXACT", "BYTES")], [0.02, 0, 100])
    with rollcall.rejects("differ in seed"):
        lc.merge("seeded", "century")


def test_add_and_count(rollcall: Driven) -> None:
    is_exactly(rollcall.lc.add("received", "ann", "ben", "ann", b"cem", 7), 4)
    is_exactly(rollcall.lc.add("received", "ann"), 0)
    is_exactly(rollcall.lc.count("received"), 4)
    is_exactly(rollcall.lc.count("received", "missing"), 4)
    is_exactly(rollcall.lc.count("missing"), 0)
    is_exactly(rollcall.lc.exists("received", "ann"), True)
    is_exactly(rollcall.lc.exists("missing", "ann"), False)
    is_exactly(rollcall.lc.mexists("received", "7", "zoe"), [True, False])


def test_members_are_bytes(rollcall: Driven) -> None:
    rollcall.lc.add("received", "ann", "bén", "cem")
    rollcall.lc.add("read", "ann")
    is_exactly(sorted(rollcall.lc.members("received")), [b"ann", "bén".encode(), b"cem"])
    is_exactly(sorted(rollcall.lc.diff("received", "read")), ["bén".encode(), b"cem"])
    is_exactly(rollcall.lc.members("missing"), [])
    if not (rollcall.variant.is_transaction and rollcall.variant.decodes):
        rollcall.lc.add("binary", BINARY)
        is_exactly(rollcall.lc.members("binary"), [BINARY])


def test_members_are_texts_if_asked_for(rollcall: Driven) -> None:
    driven = drive(rollcall.variant, rollcall.client, rollcall.runner, decode_responses=True)
    driven.lc.add("received", "ann", "bén")
    is_exactly(sorted(driven.lc.members("received")), ["ann", "bén"])
    is_exactly(sorted(driven.lc.diff("received", "missing")), ["ann", "bén"])
    if not (rollcall.variant.is_transaction and rollcall.variant.decodes):
        chunk = driven.lc.scandump("received", 0)
        assert isinstance(chunk.data, bytes)


def test_insert_makes_the_counter_with_its_options(rollcall: Driven) -> None:
    lc = rollcall.lc
    is_exactly(lc.insert("buyers", ["ann", "ben"], 0.02, 100, 1000), 2)
    fields = ("ERROR", "EXACT", "BYTES")
    is_exactly([lc.info("buyers", field) for field in fields], [0.02, 100, 1000])
    is_exactly(lc.insert("buyers", iter(["ben", "cem"]), noCreate=True), 1)
    with rollcall.rejects("^not found$"):
        lc.insert("missing", ["ann"], noCreate=True)
    lc.insert("seeded", ["ann"], seed=4, exat=4_102_444_800)
    assert rollcall.command("EXPIRETIME", "seeded") == 4_102_444_800
    lc.insert("hours", ["ann"], window=86_400, manual=True, slices=24, ex=100)
    is_exactly([lc.info("hours", field) for field in ("WINDOW", "SLICES", "CLOCK")], [86_400, 24, "manual"])
    lc.insert("user", ["ann"], window=timedelta(days=1), volatile=True)
    is_exactly(lc.info("user", "VOLATILE"), True)
    assert 86_400 < rollcall.command("TTL", "user") <= 13 * 7200
    lc.insert("soon", ["ann"], px=timedelta(milliseconds=100_000))
    assert 0 < rollcall.command("PTTL", "soon") <= 100_000
    lc.insert("century", ["ann"], pxat=CENTURY)
    assert rollcall.command("EXPIRETIME", "century") == 4_102_444_800


def test_admit_up_to_a_limit(rollcall: Driven) -> None:
    lc = rollcall.lc
    admits(lc.admit("seats", ["ann", "ben", "ann"], 3, 0.02, 100, 1000, exat=CENTURY, seed=4), [1, 1, 0])
    admits(lc.admit("seats", ["ben", "cem", "dee"], limit=3, all=True), [0, -1, -1])
    admits(lc.admit("seats", ["cem", "dee"], limit=3, dryrun=True), [1, -1])
    admits(lc.admit("seats", ["cem", "dee"], limit=3, noCreate=True), [1, -1])
    fields = ("ERROR", "EXACT", "BYTES")
    is_exactly([lc.info("seats", field) for field in fields], [0.02, 100, 1000])
    assert rollcall.command("EXPIRETIME", "seats") == 4_102_444_800
    with rollcall.rejects("^not found$"):
        lc.admit("missing", ["ann"], 3, noCreate=True)
    admits(lc.admit("soon", ["ann"], 3, ex=100), [1])
    admits(lc.admit("hours", ["ann"], 3, window=86_400, manual=True, slices=24, px=10_000), [1])
    is_exactly([lc.info("hours", field) for field in ("WINDOW", "SLICES", "CLOCK")], [86_400, 24, "manual"])
    admits(lc.admit("until", ["ann"], 3, pxat=4_102_444_800_000), [1])


def test_admit_says_what_room_is_left_and_when_there_is_more(rollcall: Driven) -> None:
    lc = rollcall.lc
    known, admitted, rejected = Admission.KNOWN, Admission.ADMITTED, Admission.REJECTED
    dry = lc.admit("seats", ["ann"], 3, dryrun=True, withroom=True)
    is_exactly(dry, Admissions([admitted], room=2, retry_after=0))
    admits(lc.admit("seats", ["ann"], 3, withroom=False), [1])
    is_exactly(lc.admit("seats", ["ann", "ben"], 3, withroom=True), Admissions([known, admitted], 1, 0))
    # Without a window nothing expires.
    two = lc.admit("seats", ["cem", "dee"], 3, all=True, withroom=True)
    is_exactly(two, Admissions([rejected, rejected], 1, None))
    outcomes, room, retry_after = lc.admit("hour", ["ann", "ben"], 1, window=3600, slices=4, withroom=True)
    admits(outcomes, [1, -1])
    is_exactly(room, 0)
    # A slice of 900 seconds is kept for an hour after its end.
    assert type(retry_after) is int and 3600 < retry_after <= 4500


def test_an_estimate_says_its_error_and_lists_nobody(rollcall: Driven) -> None:
    lc = rollcall.lc
    lc.add("visitors", *(f"user:{number}" for number in range(1, 20_001)))
    is_exactly(lc.count("visitors"), 20_002)
    estimate = lc.unioncard("visitors")
    assert isinstance(estimate, Estimate) and type(estimate.count) is int
    assert estimate.count == 20_002 and 100 < estimate.standard_error < 200
    is_exactly(lc.info("visitors", "STDERR"), 0.007854833526860113)
    is_exactly(lc.info("visitors").mode, "estimate")
    for name, arguments in (("members", ()), ("diff", ("other",)), ("exists", ("ann",)), ("query", (["ann"],))):
        with rollcall.rejects("^counter holds an estimate"):
            getattr(lc, name)("visitors", *arguments)


def test_differences_and_intersections(rollcall: Driven) -> None:
    lc = rollcall.lc
    lc.add("received", "ann", "ben", "cem")
    lc.add("read", "ann")
    is_exactly(lc.unioncard("received", "read"), Estimate(3, 0.0))
    is_exactly(lc.diffcard("received", "read", "missing"), Estimate(2, 0.0))
    is_exactly(lc.intercard("received", "read"), Estimate(1, 0.0))
    is_exactly(sorted(lc.union("received", "read")), [b"ann", b"ben", b"cem"])
    is_exactly(lc.inter("received", "read"), [b"ann"])
    unread, error = lc.diffcard("received", "read")
    is_exactly((unread, error), (2, 0.0))


def test_windows(rollcall: Driven) -> None:
    lc = rollcall.lc
    lc.reserve("staff", window=86_400, slices=3, manual=True)
    lc.add("staff", "ann", "ben", "cem")
    is_exactly(lc.advance("staff", 1), True)
    lc.add("staff", "cem", "dee")
    is_exactly(lc.countsince("staff", 3600), 2)
    is_exactly(lc.countsince("staff", timedelta(days=1)), 4)
    is_exactly(lc.unioncard("staff", "missing", since=timedelta(days=1)), Estimate(4, 0.0))
    # Members of the last day that were not added in the last hour.
    is_exactly(sorted(lc.diff("staff", "staff", since=[None, 3600])), [b"ann", b"ben"])
    is_exactly(
        lc.history("staff"),
        [Slice(begin, count, 0.0) for begin, count in ((28_800, 2), (0, 4), (-28_800, 4), (-57_600, 4))],
    )
    is_exactly(sorted(lc.members("staff", since=timedelta(hours=1))), [b"cem", b"dee"])
    is_exactly(sorted(lc.members("staff", 86_400)), [b"ann", b"ben", b"cem", b"dee"])
    is_exactly(lc.advance("staff", "CLOCK"), True)
    is_exactly(lc.info("staff", "CLOCK"), "system")
    with rollcall.rejects("bad seconds"):
        lc.countsince("staff", 604_800)


def test_questions_about_a_span(rollcall: Driven) -> None:
    lc = rollcall.lc
    lc.reserve("staff", window=86_400, slices=3, manual=True)
    lc.add("staff", "ann", "ben")
    lc.advance("staff", 1)
    lc.add("staff", "ben")
    is_exactly(lc.query("staff", ["ann", "ben", b"zoe", 7]), [True, True, False, False])
    is_exactly(lc.query("staff", iter(["ann", "ben"]), timedelta(hours=1)), [False, True])
    is_exactly(lc.query("missing", {"ann"}, since=5), [False])
    # A manual window is at the last second of its newest slice.
    is_exactly(lc.members("staff", withages=True), [(b"ann", 57_599), (b"ben", 28_799)])
    is_exactly(lc.members("staff", 3600, withages=True), [(b"ben", 28_799)])
    is_exactly(lc.members("missing", withages=True), [])
    is_exactly(lc.members("staff", 3600, withages=False), [b"ben"])
    texts = drive(rollcall.variant, rollcall.client, rollcall.runner, decode_responses=True)
    is_exactly(texts.lc.members("staff", since=3600, withages=True), [("ben", 28_799)])
    if not (rollcall.variant.is_transaction and rollcall.variant.decodes):
        lc.advance("staff", 2)
        lc.add("staff", BINARY)
        is_exactly(lc.members("staff", 3600, withages=True), [(BINARY, 28_799)])
    lc.add("plain", "ann")
    with rollcall.rejects("the counter 'plain' has no window of time"):
        lc.query("plain", ["ann"], since=5)
    with rollcall.rejects("the counter 'plain' has no window of time"):
        lc.members("plain", withages=True)


def test_every_field_of_info(rollcall: Driven) -> None:
    rollcall.lc.add("received", "ann")
    info = rollcall.lc.info("received")
    fields = {
        "ERROR": info.error_rate,
        "EXACT": info.exact_limit,
        "BYTES": info.exact_bytes,
        "MODE": info.mode,
        "SIZE": info.size,
        "COUNT": info.count,
        "STDERR": info.standard_error,
        "WINDOW": info.window,
        "SLICES": info.slices,
        "SLICE": info.slice,
        "CLOCK": info.clock,
        "VOLATILE": info.volatile,
    }
    for field, value in fields.items():
        is_exactly(rollcall.lc.info("received", field), value)
    with rollcall.rejects("Invalid information value"):
        rollcall.lc.info("received", "WEIGHT")


def test_merge_and_clear(rollcall: Driven) -> None:
    rollcall.lc.add("monday", "ann", "ben")
    rollcall.lc.add("tuesday", "ben", "cem")
    is_exactly(rollcall.lc.merge("week", "monday", "tuesday"), True)
    is_exactly(rollcall.lc.count("week"), 3)
    is_exactly(rollcall.lc.rem("week", "ann", "dee", b"cem", "ann"), 2)
    is_exactly(rollcall.lc.count("week"), 1)
    is_exactly(rollcall.lc.clear("week"), True)
    is_exactly(rollcall.lc.count("week"), 0)
    with rollcall.rejects("^not found$"):
        rollcall.lc.clear("missing")


def test_values_are_merged_as_bytes(rollcall: Driven) -> None:
    rollcall.lc.add("monday", "ann", "ben")
    rollcall.lc.add("tuesday", *range(20_000))
    dumps = [rollcall.got(rollcall.client.dump(day)) for day in ("monday", "tuesday")]
    copies = [Counter.from_bytes(dump) for dump in dumps]
    assert copies[0].members() == rollcall.lc.members("monday") and copies[1].count() == rollcall.lc.count("tuesday")
    is_exactly(rollcall.lc.mergedump("week", *dumps), True)
    copies[0] |= copies[1]
    is_exactly(rollcall.lc.mergedump("same", copies[0].to_bytes()), True)
    assert [rollcall.lc.count(key) for key in ("week", "same")] == [copies[0].count()] * 2
    with rollcall.rejects("payload 2: expected what DUMP replies, or a file with one value"):
        rollcall.lc.mergedump("week", dumps[0], b"text")


def test_dumps_are_binary_whatever_the_client_decodes(rollcall: Driven) -> None:
    rollcall.lc.add("visitors", *range(20_000))
    if rollcall.variant.is_transaction and rollcall.variant.decodes:
        with pytest.raises(TypeError, match=r"LC.SCANDUMP in a transaction needs a client without decode_responses"):
            rollcall.lc.scandump("visitors", 0)
        return
    chunk = rollcall.lc.scandump("visitors", 0)
    while chunk.iterator:
        is_exactly(rollcall.lc.loadchunk("copy", chunk.iterator, chunk.data), True)
        chunk = rollcall.lc.scandump("visitors", chunk.iterator)
    is_exactly(chunk, Chunk(0, b""))
    assert rollcall.lc.count("copy") == rollcall.lc.count("visitors")


def test_the_zone_of_a_moment_counts(rollcall: Driven) -> None:
    moment = datetime(2100, 1, 1, 2, tzinfo=UTC).astimezone()
    rollcall.lc.insert("until", ["ann"], exat=moment)
    assert rollcall.command("EXPIRETIME", "until") == 4_102_444_800 + 7200


def test_variants_are_what_their_names_say(rollcall: Driven) -> None:
    """Checks that the variants really differ. Otherwise the other tests would pass with a single connection."""
    variant: Variant = rollcall.variant
    fields: Any = rollcall.command("HELLO")
    if variant.protocol != "default":
        assert isinstance(fields, dict) is (variant.protocol == "3")
    assert isinstance(rollcall.command("ECHO", "x"), str) is variant.decodes
