"""Tests `rollcall_redis.Counter`."""

import copy
import pickle
from datetime import timedelta

import pytest

import rollcall_redis as rollcall
from rollcall_redis import Counter, Estimate, diff, diff_card, inter, inter_card, union, union_card

DAY = 86_400
NOON = 1_800_000_000


def counter_of(first: int, end: int) -> Counter:
    counter = Counter()
    counter.update(str(number) for number in range(first, end))
    return counter


def test_few_members_are_counted_and_listed() -> None:
    visitors = Counter()
    assert not visitors
    assert visitors.add_many(["ann", b"ben", "ann"]) == [True, True, False]
    assert visitors.members() == [b"ann", b"ben"]
    assert len(visitors) == visitors.count() == 2
    assert visitors.estimate() == Estimate(2, 0.0)
    assert visitors.is_exact and visitors.standard_error == 0.0
    assert "ann" in visitors and "zoe" not in visitors
    assert visitors.contains_many(["ann", "zoe"]) == [True, False]
    assert visitors


def test_many_members_are_estimated() -> None:
    visitors = counter_of(0, 10_000)
    count, error = visitors.estimate()
    assert 0 < error < 100
    # The seed is fixed, so the result is always the same. It is within four standard
    # errors.
    assert abs(count - 10_000) < 4 * error
    assert not visitors.is_exact
    assert visitors.standard_error == pytest.approx(error / count, rel=1e-3)
    for asked in (visitors.members, lambda: "ann" in visitors, lambda: visitors.contains_many(["ann"])):
        with pytest.raises(rollcall.NotExactError, match="it holds an estimate"):
            asked()


def test_unions_intersections_and_differences() -> None:
    one, other = counter_of(0, 100), counter_of(50, 150)
    assert union_card(one, other) == Estimate(150, 0.0)
    assert inter_card(one, other) == Estimate(50, 0.0)
    assert diff_card(one, other) == Estimate(50, 0.0)
    assert diff_card(one) == union_card(one, one) == Estimate(100, 0.0)
    assert set(union(one, other)) == set(one.members()) | set(other.members())
    assert set(inter(one, other)) == set(one.members()) & set(other.members())
    assert set(diff(one, other)) == set(one.members()) - set(other.members())
    assert (union_card(), inter(), diff()) == (Estimate(0, 0.0), [], [])
    for operand in (5, "ann", (one, "day"), (one, 5, 5)):
        with pytest.raises(TypeError):
            union_card(operand)  # type: ignore[arg-type]
    assert (one | other).count() == 150 and one.count() == 100
    same = one
    one |= other
    assert same is one and one.count() == 150
    one, other = counter_of(0, 20_000), counter_of(10_000, 30_000)
    for reported, expected in (
        (union_card(one, other), 30_000),
        (inter_card(one, other), 10_000),
        (diff_card(one, other), 10_000),
    ):
        assert reported.standard_error > 0
        assert abs(reported.count - expected) < 4 * reported.standard_error
    assert (one | other).count() == union_card(one, other).count
    with pytest.raises(rollcall.IncompatibleError, match="seed differs"):
        union_card(one, Counter(seed=1))
    with pytest.raises(rollcall.ParameterError, match="number of counters"):
        inter_card(one, *[other] * 40)


def test_equality_copies_and_hash() -> None:
    visitors = Counter(0.02, exact_limit=10, exact_bytes=100, seed=5, max_bytes=1 << 20)
    for number in range(30):
        visitors.add(str(number))
        for same in (
            visitors.copy(),
            copy.copy(visitors),
            copy.deepcopy(visitors),
            pickle.loads(pickle.dumps(visitors)),
        ):
            assert same == visitors and same is not visitors and same.max_bytes == 1 << 20
    one, other = Counter(), Counter()
    one.update(["ann", "ben"])
    other.update(["ben", "ann"])
    assert one == other
    other.add("cem")
    assert one != other and one != Counter(seed=1) and one != 2
    with pytest.raises(TypeError):
        hash(one)
    one.clear()
    assert not one and one == Counter()


def test_properties_and_repr() -> None:
    visitors = Counter(0.02, exact_limit=10, exact_bytes=100, seed=5)
    assert (visitors.error_rate, visitors.exact_limit) == (0.02, 10)
    assert (visitors.exact_bytes, visitors.seed, visitors.window, visitors.slices) == (100, 5, None, None)
    assert (visitors.manual, visitors.newest_slice, visitors.max_bytes) == (False, None, None)
    assert repr(visitors) == f"<rollcall_redis.Counter at 0.02: 0 members, {visitors.size_bytes} bytes>"
    visitors.update(str(number) for number in range(500))
    count, error = visitors.estimate()
    assert f"about {count} members (± {error:.{int(error < 10)}f})" in repr(visitors)
    few = Counter(0.0025, exact_limit=10)
    few.update(str(number) for number in range(20))
    assert "about 20 members (± 0.5)" in repr(few)
    daily = Counter(window=86400, slices=2, manual=True)
    assert repr(daily).endswith(f"{daily.size_bytes} bytes, 86400 seconds on a manual clock in 2 slices>")
    assert Counter(window=60).slices == 12 and Counter(window=5).slices == 5
    assert Counter(window=255, slices=254).slices == 128
    defaults = Counter()
    assert (defaults.error_rate, defaults.exact_limit, defaults.exact_bytes) == (0.01, 250, 16 << 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error_rate": 0.5}, "error rate must be"),
        ({"error_rate": 0.001}, "between 0.0025 and 0.25"),
        ({"seed": -5}, "got -5"),
        ({"exact_limit": 70_000}, "exact limit must be"),
        ({"exact_bytes": 0}, "exact bytes must be"),
        ({"window": 600, "slices": 300}, "slices must be from 1 to 254, got 300"),
        ({"slices": 3}, "slices needs window"),
        ({"manual": True}, "manual needs window"),
    ],
)
def test_parameters_are_rejected_by_name(options: dict[str, float], message: str) -> None:
    with pytest.raises(rollcall.ParameterError, match=message):
        Counter(**options)  # type: ignore[arg-type]


def test_windows() -> None:
    visitors = Counter(window=DAY, slices=24, now=NOON)
    visitors.add("ann", now=NOON)
    visitors.add("ben", now=NOON + 7200)
    later = NOON + 7200
    assert visitors.count(now=later) == 2 and visitors.count(since=3600, now=later) == 1
    assert visitors.estimate(since=3600, now=later) == Estimate(1, 0.0)
    assert visitors.members(since=3600, now=later) == [b"ben"]
    assert visitors.contains("ann", now=later) and not visitors.contains("ann", since=3600, now=later)
    assert visitors.contains_many(["ann", "ben"], since=3600, now=later) == [False, True]
    assert visitors.members(withages=True, now=later + 60) == [(b"ann", 7260), (b"ben", 60)]
    assert visitors.members(since=3600, withages=True, now=later + 60) == [(b"ben", 60)]
    with pytest.raises(rollcall.IncompatibleError, match="window"):
        Counter().members(withages=True)
    history = visitors.history(now=later)
    assert history[:3] == [(later, (1, 0.0)), (later - 3600, (1, 0.0)), (NOON, (2, 0.0))] and len(history) == 25
    other = Counter(window=DAY, slices=24, now=NOON)
    other.add("ann", now=later)
    assert inter_card(visitors, other, now=later).count == 1
    assert inter_card((visitors, 3600), (other, 3600), now=later).count == 0
    assert union_card((visitors, timedelta(hours=1)), (other, None), now=later).count == 2
    # Members of the last day that were not added in the last hour, also with a counter
    # without a window.
    assert diff(visitors, (visitors, 3600), now=later) == [b"ann"]
    assert inter(visitors, counter_of(0, 10) | Counter(), now=later) == []
    with pytest.raises(rollcall.ParameterError, match="seconds"):
        visitors.count(since=DAY + 1, now=later)
    with pytest.raises(rollcall.IncompatibleError, match="window"):
        union_card((counter_of(0, 10), 5))
    assert Counter(window=timedelta(days=1)).window == DAY
    assert visitors.count(now=NOON + 10 * DAY) == 0
    assert pickle.loads(pickle.dumps(visitors)) == visitors
    assert visitors.merge(other, now=later) and visitors.count(since=3600, now=later) == 2


def test_windows_are_advanced_manually() -> None:
    visitors = Counter(window=60, slices=2, manual=True)
    visitors.add("ann")
    visitors.advance(1)
    visitors.add("ben")
    assert visitors.newest_slice == 1 and len(visitors) == 2
    same = Counter(window=60, slices=2, manual=True)
    same.add("ann")
    same.advance(1)
    same.add("ben")
    assert same == visitors
    # The members are the same, but one was last added in another slice.
    same.add("ann")
    assert same != visitors
    # A manual window is at the last second of its newest slice.
    assert visitors.members(withages=True) == [(b"ann", 59), (b"ben", 29)]
    visitors.advance(4)
    assert len(visitors) == 0 and visitors.members(withages=True) == []


def test_admission() -> None:
    readers = Counter(exact_limit=3)
    readers.add("ann")
    assert readers.admit(["ann", "ben", "cem"], 2, dryrun=True) == [0, 1, -1]
    assert readers.admit(["ann", "ben", "cem"], 2, all=True) == [0, -1, -1]
    assert readers.admit(["ann", "ben", "cem"], 2) == [0, 1, -1]
    with pytest.raises(rollcall.NotExactError, match="up to which the counter is exact"):
        readers.admit([str(number) for number in range(10)], 100)
    assert readers.members() == [b"ann", b"ben"]
    # Admitted members can be removed.
    assert readers.remove(["ann", "cem", "ann"]) == [True, False, False]
    assert readers.admit(["cem"], 2) == [1] and readers.members() == [b"ben", b"cem"]
    assert readers.remove(["ben", b"cem"]) == [True, True] and len(readers) == 0 and readers.exact_limit == 3
    hourly = Counter(window=3600, slices=4, now=NOON)
    assert hourly.admit(["ann"], 1, now=NOON) == [1]
    full = hourly.admit(["ben"], 1, withroom=True, now=NOON + 60)
    assert full == rollcall.Admissions([rollcall.Admission.REJECTED], room=0, retry_after=4440)
    dry = hourly.admit(["ben"], 3, dryrun=True, withroom=True, now=NOON + 60)
    assert dry == rollcall.Admissions([rollcall.Admission.ADMITTED], room=1, retry_after=0)
    assert hourly.admit(["ben"], 1, now=NOON + 60 + 4439) == [-1]
    assert hourly.admit(["ben"], 1, now=NOON + 60 + 4440) == [1]
    # Without a window nothing expires.
    assert readers.admit(["ann"], 0, withroom=True) == ([-1], 0, None)
