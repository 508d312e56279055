"""LC.*: what is sent for each command, and how its reply is read. The classes that clients use are made of this."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar, overload

from rollcall_redis._types import Admission, Estimate

from ._command import Command, Item, Key, Moment, Seconds, Spans, expiry, in_seconds, listed, numbered, options, span
from ._reply import (
    Chunk,
    CounterInfo,
    Slice,
    admission,
    anything,
    boolean,
    chunk,
    counter_info,
    double,
    estimate,
    history_slice,
    integer,
    list_of,
    ok,
    or_none,
    single,
    text,
)

Member = TypeVar("Member")
"""`bytes`, or `str`."""


class CounterCommands(Generic[Member]):
    """Counters: how many different members were added, and who they are while they are few."""

    def __init__(self, member: Callable[[Any], Member]):
        self._members = list_of(member)

    def reserve(
        self,
        key: Key,
        capacity: int,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        *,
        precision: int | None = None,
        tail: int | None = None,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> Command[bool]:
        """LC.RESERVE: creates an empty counter. True, or an error if the key exists."""
        return Command(
            "LC.RESERVE",
            [
                key,
                capacity,
                *options(
                    ("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes), ("PRECISION", precision), ("TAIL", tail)
                ),
                *options(("SEED", seed)),
                *span("WINDOW", window),
                *options(("MANUAL", manual), ("SLICES", slices)),
                *expiry(ex, px, exat, pxat),
            ],
            ok,
        )

    create = reserve

    def add(self, key: Key, *items: Item) -> Command[int]:
        """LC.ADD: adds items. How many were new, or, of an estimate, how many changed its bitmap."""
        return Command("LC.ADD", [key, *items], integer)

    def insert(
        self,
        key: Key,
        items: Iterable[Item],
        capacity: int | None = None,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        noCreate: bool | None = None,
        *,
        precision: int | None = None,
        tail: int | None = None,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> Command[int]:
        """LC.INSERT: adds items, and makes the counter with these options if it is missing. Answers as `add` does."""
        return Command(
            "LC.INSERT",
            [
                key,
                *options(("CAPACITY", capacity), ("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes)),
                *options(("PRECISION", precision), ("TAIL", tail), ("SEED", seed), ("NOCREATE", noCreate)),
                *span("WINDOW", window),
                *options(("MANUAL", manual), ("VOLATILE", volatile), ("SLICES", slices)),
                *expiry(ex, px, exat, pxat),
                *listed(items),
            ],
            integer,
        )

    def admit(
        self,
        key: Key,
        items: Iterable[Item],
        limit: int,
        capacity: int | None = None,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        noCreate: bool | None = None,
        *,
        all: bool = False,
        dryrun: bool = False,
        precision: int | None = None,
        tail: int | None = None,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> Command[list[Admission]]:
        """LC.ADMIT: lets new members in while there are fewer than `limit`. The counter stays exact.

        For each item, in order: 1 (ADMITTED) came in now, 0 (KNOWN) was in already, -1 (REJECTED) was not let in. With
        `all`, either all new ones come in or none. With `dryrun` nothing is changed.
        """
        return Command(
            "LC.ADMIT",
            [
                key,
                "LIMIT",
                limit,
                *options(("ALL", all), ("DRYRUN", dryrun)),
                *options(("CAPACITY", capacity), ("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes)),
                *options(("PRECISION", precision), ("TAIL", tail), ("SEED", seed), ("NOCREATE", noCreate)),
                *span("WINDOW", window),
                *options(("MANUAL", manual), ("VOLATILE", volatile), ("SLICES", slices)),
                *expiry(ex, px, exat, pxat),
                *listed(items),
            ],
            list_of(admission),
        )

    def count(self, key: Key, *keys: Key) -> Command[int]:
        """LC.COUNT: the different members of a counter, or of the union of several."""
        return Command("LC.COUNT", [key, *keys], integer)

    def countsince(self, key: Key, seconds: Seconds) -> Command[int]:
        """LC.COUNTSINCE: how many different members a counter with a window has seen in the last seconds, at least."""
        return Command("LC.COUNTSINCE", [key, in_seconds(seconds)], integer)

    def history(self, key: Key) -> Command[list[Slice]]:
        """LC.HISTORY: for each slice of the window, the present one first, when it began and the count since."""
        return Command("LC.HISTORY", [key], list_of(history_slice))

    def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> Command[bool]:
        """LC.ADVANCE: moves the window on to a slice, or hands it to the clock."""
        return Command("LC.ADVANCE", [key, slice], ok)

    def merge(self, destination: Key, *sources: Key) -> Command[bool]:
        """LC.MERGE: makes the destination the union of itself and the sources."""
        return Command("LC.MERGE", [destination, *sources], ok)

    def unioncard(self, key: Key, *keys: Key, since: Spans = None) -> Command[Estimate]:
        """LC.UNIONCARD: how many different members all counters have together, with its standard error.

        With `since`, of the last seconds alone: one value for all keys, or a list with one for each, None for all.
        """
        return Command("LC.UNIONCARD", numbered((key, *keys), since), estimate)

    def intercard(self, key: Key, *keys: Key, since: Spans = None) -> Command[Estimate]:
        """LC.INTERCARD: how many members all counters have in common, with its standard error.

        With `since`, of the last seconds alone: one value for all keys, or a list with one for each, None for all.
        """
        return Command("LC.INTERCARD", numbered((key, *keys), since), estimate)

    def diffcard(self, key: Key, *keys: Key, since: Spans = None) -> Command[Estimate]:
        """LC.DIFFCARD: how many members of the first counter are in none of the others, with its standard error.

        With `since`, of the last seconds alone: one value for all keys, or a list with one for each, None for all.
        """
        return Command("LC.DIFFCARD", numbered((key, *keys), since), estimate)

    def union(self, key: Key, *keys: Key, since: Spans = None) -> Command[list[Member]]:
        """LC.UNION: the members of all counters together, in no order, while all are exact."""
        return Command("LC.UNION", numbered((key, *keys), since), self._members, content="members")

    def inter(self, key: Key, *keys: Key, since: Spans = None) -> Command[list[Member]]:
        """LC.INTER: the members that all counters have in common, in no order, while all are exact."""
        return Command("LC.INTER", numbered((key, *keys), since), self._members, content="members")

    def diff(self, key: Key, *keys: Key, since: Spans = None) -> Command[list[Member]]:
        """LC.DIFF: the members of the first counter that no other has, in no order, while all are exact."""
        return Command("LC.DIFF", numbered((key, *keys), since), self._members, content="members")

    def exists(self, key: Key, item: Item) -> Command[bool]:
        """LC.EXISTS: whether an item is a member, while the counter is exact."""
        return Command("LC.EXISTS", [key, item], boolean)

    def mexists(self, key: Key, *items: Item) -> Command[list[bool]]:
        """LC.MEXISTS: asks for several items, and answers in their order."""
        return Command("LC.MEXISTS", [key, *items], list_of(boolean))

    def members(self, key: Key, since: Seconds | None = None) -> Command[list[Member]]:
        """LC.MEMBERS: the members of an exact counter, or those of the last `since` seconds. In no order."""
        return Command("LC.MEMBERS", [key, *span("SINCE", since)], self._members, content="members")

    def clear(self, key: Key) -> Command[bool]:
        """LC.CLEAR: empties a counter, which is exact again. It keeps its parameters, window and time to live."""
        return Command("LC.CLEAR", [key], ok)

    @overload
    def info(self, key: Key, field: None = None) -> Command[CounterInfo]: ...
    @overload
    def info(
        self,
        key: Key,
        field: Literal["CAPACITY", "EXACT", "BYTES", "SIZE", "COUNT", "BITS", "BITSSET", "PRECISION", "TAIL"],
    ) -> Command[int]: ...
    @overload
    def info(self, key: Key, field: Literal["ERROR", "STDERR"]) -> Command[float]: ...
    @overload
    def info(self, key: Key, field: Literal["MODE", "REPRESENTATION"]) -> Command[str]: ...
    @overload
    def info(self, key: Key, field: Literal["WINDOW", "SLICES", "SLICE"]) -> Command[int | None]: ...
    @overload
    def info(self, key: Key, field: Literal["CLOCK"]) -> Command[str | None]: ...
    @overload
    def info(self, key: Key, field: Literal["VOLATILE"]) -> Command[bool | None]: ...
    def info(self, key: Key, field: Any = None) -> Command[Any]:
        """LC.INFO: parameters and state of a counter, or one field of them."""
        if field is None:
            return Command("LC.INFO", [key], counter_info)
        return Command("LC.INFO", [key, field], single(_FIELDS.get(field.upper(), anything)))

    def scandump(self, key: Key, iter: int) -> Command[Chunk]:
        """LC.SCANDUMP: reads a counter out in chunks. Begin with 0, go on with the iterator of each reply, until 0."""
        return Command("LC.SCANDUMP", [key, iter], chunk, content="binary")

    def loadchunk(self, key: Key, iter: int, data: bytes) -> Command[bool]:
        """LC.LOADCHUNK: takes a chunk as `scandump` gave it, with the iterator that came with it."""
        return Command("LC.LOADCHUNK", [key, iter, data], ok)


_FIELDS: dict[str, Callable[[Any], object]] = {
    "CAPACITY": integer,
    "ERROR": double,
    "EXACT": integer,
    "BYTES": integer,
    "MODE": text,
    "REPRESENTATION": text,
    "SIZE": integer,
    "COUNT": integer,
    "STDERR": double,
    "BITS": integer,
    "BITSSET": integer,
    "PRECISION": integer,
    "TAIL": integer,
    "WINDOW": or_none(integer),
    "SLICES": or_none(integer),
    "SLICE": or_none(integer),
    "CLOCK": or_none(text),
    "VOLATILE": or_none(boolean),
}
