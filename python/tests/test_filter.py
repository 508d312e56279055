"""Tests `rollcall_redis.BloomFilter`."""

import copy
import pickle
import random
from datetime import timedelta

import pytest

import rollcall_redis as rollcall
from rollcall_redis import Admission, Admissions, BloomFilter

DAY = 86_400
NOON = 1_800_000_000


def test_added_items_are_found() -> None:
    seen = BloomFilter(1000, 0.001)
    assert not seen
    assert seen.add("ann") is True
    assert seen.add("ann") is False
    assert "ann" in seen and b"ann" in seen and bytearray(b"ann") in seen and memoryview(b"ann") in seen
    assert "zoe" not in seen
    assert len(seen) == seen.num_items() == 1
    assert seen


def test_str_is_utf_8() -> None:
    seen = BloomFilter(1000)
    seen.add("Zoë")
    assert "Zoë".encode() in seen
    assert "Zoë".encode("latin-1") not in seen
    with pytest.raises(UnicodeEncodeError):
        seen.add("\ud800")


def test_error_rate_is_kept_beside_a_set() -> None:
    draw = random.Random(1)
    items = {draw.randbytes(draw.randrange(1, 40)) for _ in range(20_000)}
    seen = BloomFilter(len(items), 0.01)
    new = sum(seen.add_many(list(items)))
    assert all(seen.contains_many(list(items)))
    assert new == len(seen) <= len(items)
    absent = [item for item in (draw.randbytes(40) for _ in range(100_000)) if item not in items]
    found = sum(seen.contains_many(absent))
    # The rate is at most 0.01, plus three standard errors of a hundred thousand
    # look-ups.
    assert found / len(absent) <= 0.01 + 3 * (0.01 / len(absent)) ** 0.5
    assert seen.false_positive_rate < 0.011
    assert 0 < seen.fill_ratio < 1


def test_a_filter_grows_unless_expansion_is_0() -> None:
    grows = BloomFilter(10)
    grows.update(str(number) for number in range(1000))
    assert all(str(number) in grows for number in range(1000))
    fixed = BloomFilter(10, expansion=0)
    with pytest.raises(rollcall.FullError, match="the filter for 10 items is full"):
        fixed.update(str(number) for number in range(1000))
    assert len(fixed) == 10


def test_max_bytes_is_kept_to() -> None:
    seen = BloomFilter(100, max_bytes=10_000)
    assert seen.max_bytes == 10_000
    with pytest.raises(rollcall.SizeError, match="limit of 10000") as raised:
        seen.update(str(number) for number in range(100_000))
    assert isinstance(raised.value, MemoryError)
    assert seen.size_bytes <= 10_000
    with pytest.raises(MemoryError):
        BloomFilter(10**12)


def test_unions() -> None:
    one, other = BloomFilter(1000), BloomFilter(1000)
    one.add("ann")
    other.add("ben")
    union = one | other
    assert "ann" in union and "ben" in union and "ben" not in one
    same = one
    one |= other
    assert same is one and one == union
    assert one.merge(other) is False
    third = BloomFilter(1000)
    third.add("cem")
    assert one.merge(third, other, one) is True and "cem" in one
    with pytest.raises(TypeError):
        one | {"ann"}  # type: ignore[operator]
    with pytest.raises(rollcall.IncompatibleError, match="seed differs"):
        one.merge(BloomFilter(1000, seed=1))


def test_equality_copies_and_hash() -> None:
    seen = BloomFilter(1000, seed=7, max_bytes=1 << 20)
    seen.update(["ann", "ben"])
    for same in (seen.copy(), copy.copy(seen), copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert same == seen and same is not seen
        assert same.max_bytes == 1 << 20
        same.add("zoe")
        assert same != seen and "zoe" not in seen
    assert seen != BloomFilter(1000) and seen != "ann" and seen == seen
    with pytest.raises(TypeError):
        hash(seen)
    seen.clear()
    assert not seen and seen == BloomFilter(1000, seed=7)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_pickle(protocol: int) -> None:
    seen = BloomFilter(1000)
    seen.add("ann")
    assert pickle.loads(pickle.dumps(seen, protocol)) == seen


def test_properties_are_those_of_the_constructor() -> None:
    seen = BloomFilter(1000, 0.001, expansion=4, seed=3)
    assert (seen.capacity, seen.error_rate, seen.expansion, seen.seed, seen.layout) == (1000, 0.001, 4, 3, "lines")
    assert (seen.window, seen.slices, seen.refresh, seen.manual) == (None, None, False, False)
    assert seen.newest_slice is None and seen.max_bytes is None
    assert BloomFilter(1000, layout="classic").layout == "classic"
    daily = BloomFilter(1000, window=DAY, slices=24, refresh=True, manual=True)
    assert (daily.window, daily.slices, daily.refresh, daily.manual) == (DAY, 24, True, True)
    assert BloomFilter(1000, window=DAY).slices == 4 and BloomFilter(1000, window=3).slices == 3
    assert BloomFilter(1000, window=DAY, refresh=True).slices == 2
    # The filter has the least number of slices of whole seconds that cover the window.
    assert BloomFilter(1000, window=65, slices=64).slices == 33


def test_repr_shows_parameters_and_size() -> None:
    seen = BloomFilter(1000)
    seen.add("ann")
    assert repr(seen) == f"<rollcall_redis.BloomFilter of 1000 at 0.01: 1 items, {seen.size_bytes} bytes, lines>"
    daily = BloomFilter(1000, window=DAY, manual=True, refresh=True)
    assert "lines, 86400 seconds on a manual clock in 2 slices with refresh>" in repr(daily)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0,), {}, "capacity must be from 1 to 1099511627776, got 0"),
        ((-1,), {}, "a whole number from 0 to 2\\^64 - 1 is expected, got -1"),
        ((1 << 64,), {}, "got 18446744073709551616"),
        ((10, 0.0), {}, "error rate must be more than 0 and less than 1, got 0"),
        ((10, float("nan")), {}, "error rate must be .*, got NaN"),
        ((10,), {"expansion": 40_000}, "expansion must be"),
        ((10,), {"layout": "rows"}, "layout must be 'lines' or 'classic', got 'rows'"),
        ((10,), {"window": 0}, "window must be from 1 to"),
        ((10,), {"window": 600, "slices": 65}, "slices must be from 1 to 64, got 65"),
        ((10,), {"window": 60, "slices": 1 << 40}, "got 1099511627776"),
        ((10,), {"window": 60, "expansion": 0}, "expansion must be at least 1 with a window"),
        ((10,), {"window": 60, "layout": "classic"}, "window needs layout 'lines'"),
        ((10,), {"slices": 2}, "slices needs window"),
        ((10,), {"refresh": True}, "refresh needs window"),
        ((10,), {"manual": True}, "manual needs window"),
    ],
)
def test_parameters_are_rejected_by_name(
    arguments: tuple[float, ...], options: dict[str, object], message: str
) -> None:
    with pytest.raises(rollcall.ParameterError, match=message) as raised:
        BloomFilter(*arguments, **options)  # type: ignore[arg-type]
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, rollcall.Error)


def test_windows_expire_by_the_time_given() -> None:
    sent = BloomFilter(1000, window=DAY, slices=24, now=NOON)
    assert sent.add("ann", now=NOON) is True
    assert sent.add("ann", now=NOON + DAY - 1) is False
    assert sent.contains("ann", now=NOON + DAY - 1) and sent.num_items(now=NOON + DAY - 1) == 1
    later = NOON + DAY + 3600
    assert not sent.contains("ann", now=later) and sent.num_items(now=later) == 0
    assert sent.contains_many(["ann", "ben"], now=NOON) == [True, False]
    assert sent.add_many(["ann", "ben"], now=later) == [True, True]
    assert pickle.loads(pickle.dumps(sent)) == sent
    # The clock of this machine is later than these slices.
    assert sent.newest_slice == later // 3600


def test_since_finds_items_of_the_last_seconds() -> None:
    sent = BloomFilter(1000, window=DAY, slices=24, now=NOON)
    later = NOON + 7200
    assert sent.add("ann", now=NOON) and sent.add("ben", now=later)
    assert sent.contains("ben", since=3600, now=later) and not sent.contains("ann", since=3600, now=later)
    # Without `refresh`, the add that was new counts.
    assert not sent.add("ann", now=later) and not sent.contains("ann", since=3600, now=later)
    assert sent.contains_many(["ann", "ben"], since=timedelta(hours=1), now=later) == [False, True]
    assert sent.contains_many(["ann", "ben"], since=7200, now=later) == [True, True]
    with pytest.raises(rollcall.ParameterError, match="seconds"):
        sent.contains("ann", since=DAY + 1, now=later)
    with pytest.raises(rollcall.IncompatibleError, match="window"):
        BloomFilter(1000).contains_many(["ann"], since=5)


def test_windows_run_on_the_clock_without_one() -> None:
    sent = BloomFilter(1000, window=DAY)
    sent.add("ann")
    assert "ann" in sent and len(sent) == 1 and sent


def test_windows_are_advanced_manually() -> None:
    sent = BloomFilter(1000, window=60, slices=2, manual=True)
    sent.add("ann")
    assert sent.newest_slice == 0
    sent.advance(2)
    assert "ann" in sent and sent.newest_slice == 2
    sent.advance(3)
    assert "ann" not in sent


def test_merges_of_windows_run_on_the_clock() -> None:
    one, other = BloomFilter(1000, window=DAY, now=NOON), BloomFilter(1000, window=DAY, now=NOON)
    other.add("ben", now=NOON)
    assert one.merge(other, now=NOON) and one.contains("ben", now=NOON)
    ahead = BloomFilter(1000, window=DAY, now=NOON + 10 * DAY)
    with pytest.raises(rollcall.ParameterError, match="at most one ahead of the destination's"):
        one.merge(ahead, now=NOON)
    with pytest.raises(rollcall.IncompatibleError, match="window differs"):
        one.merge(BloomFilter(1000))


def test_admission() -> None:
    contacts = BloomFilter(1000, 0.001)
    contacts.add("ann")
    names = ["ann", "ben", "cem"]
    assert contacts.admit(names, 2, dryrun=True) == [Admission.KNOWN, Admission.ADMITTED, Admission.REJECTED]
    assert len(contacts) == 1
    assert contacts.admit(names, 2, all=True) == [0, -1, -1]
    assert contacts.admit(iter(names), 2) == [0, 1, -1]
    assert len(contacts) == 2
    daily = BloomFilter(1000, window=DAY, now=NOON)
    assert daily.admit(["ann", "ben"], 1, now=NOON) == [1, -1]
    full = daily.admit(["ben"], 1, withroom=True, now=NOON)
    # NOON lies 2 hours into a slice of 6 hours, which is kept for a day after its end.
    assert full == Admissions([Admission.REJECTED], room=0, retry_after=28 * 3600)
    assert daily.admit(["ben"], 1, now=NOON + 28 * 3600 - 1) == [-1]
    assert daily.admit(["ben"], 1, now=NOON + 28 * 3600) == [1]
    fixed = BloomFilter(2, expansion=0)
    assert fixed.admit(["ann", "ben", "cem"], 5, withroom=True) == ([1, 1, -1], 0, None)
