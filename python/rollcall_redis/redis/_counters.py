"""The words and the reply of each LC.* command. The classes that applications use are generated from this class."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar, overload

from rollcall_redis._types import Admission, Admissions, Estimate

from ._columns import ADMISSIONS, BOOLEANS, NUMBER, OUTCOMES, Answers, AnswersView, Buffer, Rows, with_items
from ._command import (
    Command,
    Item,
    Key,
    Moment,
    Seconds,
    Spans,
    Word,
    encoded,
    expiry,
    in_seconds,
    numbered,
    options,
    span,
)
from ._reply import (
    Chunk,
    CounterInfo,
    Slice,
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
    with_ages,
)

Member = TypeVar("Member")
"""The type of members: `bytes` or `str`."""


class CounterCommands(Generic[Member]):
    """Commands on counters of distinct members."""

    def __init__(self, member: Callable[[Any], Member]):
        self._members = list_of(member)
        self._members_with_ages = with_ages(member)

    def reserve(
        self,
        key: Key,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        *,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> Command[bool]:
        """LC.RESERVE: creates an empty counter. Returns True, or raises an error if the key exists."""
        return Command(
            "LC.RESERVE",
            [
                key,
                *options(("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes), ("SEED", seed)),
                *span("WINDOW", window),
                *options(("MANUAL", manual), ("SLICES", slices)),
                *expiry(ex, px, exat, pxat),
            ],
            ok,
        )

    create = reserve

    def add(self, key: Key, *items: Item) -> Command[int]:
        """LC.ADD: adds items. Returns how many were new; if the counter estimates, how many changed the estimate."""
        return Command("LC.ADD", [key, *map(encoded, items)], integer)

    def insert(
        self,
        key: Key,
        items: Iterable[Item] | Rows | Buffer,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        noCreate: bool | None = None,
        *,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
        width: int | None = None,
    ) -> Command[int]:
        """LC.INSERT: adds items like `add`. If the key is missing, creates the counter with these options first.

        A column of items of the same width, such as an array of bytes, is sent in one argument, and above 2^20 items in
        several calls. `width` is the number of bytes of an item in another buffer.
        """
        return with_items(
            "LC.INSERT",
            [
                key,
                *options(("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes)),
                *options(("SEED", seed), ("NOCREATE", noCreate)),
                *span("WINDOW", window),
                *options(("MANUAL", manual), ("VOLATILE", volatile), ("SLICES", slices)),
                *expiry(ex, px, exat, pxat),
            ],
            items,
            width,
            NUMBER,
        )

    @overload
    def admit(
        self,
        key: Key,
        items: Rows | Buffer,
        limit: int,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        noCreate: bool | None = None,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: bool = False,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
        width: int | None = None,
    ) -> Command[Any]: ...
    @overload
    def admit(
        self,
        key: Key,
        items: Iterable[Item],
        limit: int,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        noCreate: bool | None = None,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: Literal[False] = False,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
        width: None = None,
    ) -> Command[list[Admission]]: ...
    @overload
    def admit(
        self,
        key: Key,
        items: Iterable[Item],
        limit: int,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        noCreate: bool | None = None,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: Literal[True],
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
        width: None = None,
    ) -> Command[Admissions]: ...
    def admit(
        self,
        key: Key,
        items: Iterable[Item] | Rows | Buffer,
        limit: int,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        noCreate: bool | None = None,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: bool = False,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
        width: int | None = None,
    ) -> Command[Any]:
        """LC.ADMIT: adds new members as long as the counter has fewer than `limit`. The counter stays exact.

        Returns for each item, in order: 1 (ADMITTED) if it was added, 0 (KNOWN) if it was a member already, -1
        (REJECTED) if it was rejected. With `all`, either all new items are added or none. With `dryrun`, nothing is
        changed. With `withroom`, returns `Admissions`: these outcomes, and the room that is left.
        """
        return with_items(
            "LC.ADMIT",
            [
                key,
                "LIMIT",
                limit,
                *options(("ALL", all), ("DRYRUN", dryrun), ("WITHROOM", withroom)),
                *options(("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes)),
                *options(("SEED", seed), ("NOCREATE", noCreate)),
                *span("WINDOW", window),
                *options(("MANUAL", manual), ("VOLATILE", volatile), ("SLICES", slices)),
                *expiry(ex, px, exat, pxat),
            ],
            items,
            width,
            ADMISSIONS if withroom else OUTCOMES,
        )

    def rem(self, key: Key, *members: Item) -> Command[int]:
        """LC.REM: removes members. Returns how many were members. The counter must be exact, and stays if it is empty
        then."""
        return Command("LC.REM", [key, *map(encoded, members)], integer)

    def count(self, key: Key, *keys: Key) -> Command[int]:
        """LC.COUNT: the number of distinct members of a counter, or of the union of several counters."""
        return Command("LC.COUNT", [key, *keys], integer)

    def countsince(self, key: Key, seconds: Seconds) -> Command[int]:
        """LC.COUNTSINCE: the number of distinct members that were added to a windowed counter in the last `seconds`
        seconds.

        Members of the whole slice in which the time span begins are counted too."""
        return Command("LC.COUNTSINCE", [key, in_seconds(seconds)], integer)

    def history(self, key: Key) -> Command[list[Slice]]:
        """LC.HISTORY: for each slice of the window, newest first, its begin and the number of members since then."""
        return Command("LC.HISTORY", [key], list_of(history_slice))

    def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> Command[bool]:
        """LC.ADVANCE: moves the window forward to a slice. With "CLOCK", the window follows the system clock from now
        on."""
        return Command("LC.ADVANCE", [key, slice], ok)

    def merge(self, destination: Key, *sources: Key) -> Command[bool]:
        """LC.MERGE: makes the destination the union of itself and the sources."""
        return Command("LC.MERGE", [destination, *sources], ok)

    def mergedump(self, destination: Key, *payloads: bytes) -> Command[bool]:
        """LC.MERGEDUMP: makes the destination the union of itself and values that DUMP or `to_bytes` returned."""
        return Command("LC.MERGEDUMP", [destination, *payloads], ok)

    def unioncard(self, key: Key, *keys: Key, since: Spans = None) -> Command[Estimate]:
        """LC.UNIONCARD: the number of distinct members of all counters together, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        return Command("LC.UNIONCARD", numbered((key, *keys), since), estimate)

    def intercard(self, key: Key, *keys: Key, since: Spans = None) -> Command[Estimate]:
        """LC.INTERCARD: the number of members that all counters have in common, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        return Command("LC.INTERCARD", numbered((key, *keys), since), estimate)

    def diffcard(self, key: Key, *keys: Key, since: Spans = None) -> Command[Estimate]:
        """LC.DIFFCARD: the number of members of the first counter that none of the others has, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        return Command("LC.DIFFCARD", numbered((key, *keys), since), estimate)

    def union(self, key: Key, *keys: Key, since: Spans = None) -> Command[list[Member]]:
        """LC.UNION: the members of all counters together, in no order. All counters must be exact."""
        return Command("LC.UNION", numbered((key, *keys), since), self._members, content="members")

    def inter(self, key: Key, *keys: Key, since: Spans = None) -> Command[list[Member]]:
        """LC.INTER: the members that all counters have in common, in no order. All counters must be exact."""
        return Command("LC.INTER", numbered((key, *keys), since), self._members, content="members")

    def diff(self, key: Key, *keys: Key, since: Spans = None) -> Command[list[Member]]:
        """LC.DIFF: the members of the first counter that none of the others has, in no order. All counters must be
        exact."""
        return Command("LC.DIFF", numbered((key, *keys), since), self._members, content="members")

    def exists(self, key: Key, item: Item) -> Command[bool]:
        """LC.EXISTS: whether an item is a member. The counter must be exact."""
        return Command("LC.EXISTS", [key, encoded(item)], boolean)

    def mexists(self, key: Key, *items: Item) -> Command[list[bool]]:
        """LC.MEXISTS: whether each of several items is a member, in order. The counter must be exact."""
        return Command("LC.MEXISTS", [key, *map(encoded, items)], list_of(boolean))

    @overload
    def query(self, key: Key, items: Rows, since: Seconds | None = None, *, width: None = None) -> Command[Answers]: ...
    @overload
    def query(self, key: Key, items: Buffer, since: Seconds | None = None, *, width: int) -> Command[AnswersView]: ...
    @overload
    def query(
        self, key: Key, items: Iterable[Item], since: Seconds | None = None, *, width: None = None
    ) -> Command[list[bool]]: ...
    def query(
        self, key: Key, items: Iterable[Item] | Rows | Buffer, since: Seconds | None = None, *, width: int | None = None
    ) -> Command[Any]:
        """LC.QUERY: whether each of several items is a member, or was added in the last `since` seconds, in order. The
        counter must be exact."""
        return with_items("LC.QUERY", [key, *span("SINCE", since)], items, width, BOOLEANS)

    @overload
    def members(
        self, key: Key, since: Seconds | None = None, *, withages: Literal[False] = False
    ) -> Command[list[Member]]: ...
    @overload
    def members(
        self, key: Key, since: Seconds | None = None, *, withages: Literal[True]
    ) -> Command[list[tuple[Member, int]]]: ...
    def members(self, key: Key, since: Seconds | None = None, *, withages: bool = False) -> Command[Any]:
        """LC.MEMBERS: the members of an exact counter, or those of the last `since` seconds, in no order.

        With `withages`, each with the seconds since the slice began in which it was last added, oldest first.
        """
        words: list[Word] = [key, *span("SINCE", since), *options(("WITHAGES", withages))]
        return Command("LC.MEMBERS", words, self._members_with_ages if withages else self._members, content="members")

    def clear(self, key: Key) -> Command[bool]:
        """LC.CLEAR: empties a counter, which is then exact. It keeps its parameters, window and time to live."""
        return Command("LC.CLEAR", [key], ok)

    @overload
    def info(self, key: Key, field: None = None) -> Command[CounterInfo]: ...
    @overload
    def info(self, key: Key, field: Literal["EXACT", "BYTES", "SIZE", "COUNT"]) -> Command[int]: ...
    @overload
    def info(self, key: Key, field: Literal["ERROR", "STDERR"]) -> Command[float]: ...
    @overload
    def info(self, key: Key, field: Literal["MODE"]) -> Command[str]: ...
    @overload
    def info(self, key: Key, field: Literal["WINDOW", "SLICES", "SLICE"]) -> Command[int | None]: ...
    @overload
    def info(self, key: Key, field: Literal["CLOCK"]) -> Command[str | None]: ...
    @overload
    def info(self, key: Key, field: Literal["VOLATILE"]) -> Command[bool | None]: ...
    def info(self, key: Key, field: Any = None) -> Command[Any]:
        """LC.INFO: the parameters and the state of a counter, or a single field of them."""
        if field is None:
            return Command("LC.INFO", [key], counter_info)
        return Command("LC.INFO", [key, field], single(_FIELDS.get(field.upper(), anything)))

    def scandump(self, key: Key, iter: int) -> Command[Chunk]:
        """LC.SCANDUMP: dumps a counter in chunks. Begin with 0, and continue with the iterator of each reply, until it
        is 0."""
        return Command("LC.SCANDUMP", [key, iter], chunk, content="binary")

    def loadchunk(self, key: Key, iter: int, data: bytes) -> Command[bool]:
        """LC.LOADCHUNK: loads a chunk that `scandump` returned, with the iterator that it returned with the chunk."""
        return Command("LC.LOADCHUNK", [key, iter, data], ok)


_FIELDS: dict[str, Callable[[Any], object]] = {
    "ERROR": double,
    "EXACT": integer,
    "BYTES": integer,
    "MODE": text,
    "SIZE": integer,
    "COUNT": integer,
    "STDERR": double,
    "WINDOW": or_none(integer),
    "SLICES": or_none(integer),
    "SLICE": or_none(integer),
    "CLOCK": or_none(text),
    "VOLATILE": or_none(boolean),
}
