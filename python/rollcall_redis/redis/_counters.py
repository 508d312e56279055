"""The arguments of each LC.* command. The classes that applications use are generated from this class."""

from collections.abc import Iterable
from typing import Any, Literal

from ._columns import Buffer, Rows, WithItems
from ._command import Item, Key, Moment, Seconds, Spans, Word, encoded, expiry, in_seconds, numbered, options, span


class CounterCommands:
    """Commands on counters of distinct members."""

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
    ) -> list[Word]:
        """LC.RESERVE: creates an empty counter. Returns True, or raises an error if the key exists."""
        return [
            key,
            *options(("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes), ("SEED", seed)),
            *span("WINDOW", window),
            *options(("MANUAL", manual), ("SLICES", slices)),
            *expiry(ex, px, exat, pxat),
        ]

    create = reserve

    def add(self, key: Key, *items: Item) -> list[Word]:
        """LC.ADD: adds items. Returns how many were new; if the counter estimates, how many changed the estimate."""
        return [key, *map(encoded, items)]

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
    ) -> WithItems:
        """LC.INSERT: adds items like `add`. If the key is missing, creates the counter with these options first.

        A column of items of the same width, such as an array of bytes, is sent in one argument, and above 2^20 items in
        several calls. `width` is the number of bytes of an item in another buffer.
        """
        words: list[Word] = [
            key,
            *options(("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes)),
            *options(("SEED", seed), ("NOCREATE", noCreate)),
            *span("WINDOW", window),
            *options(("MANUAL", manual), ("VOLATILE", volatile), ("SLICES", slices)),
            *expiry(ex, px, exat, pxat),
        ]
        return words, items, width

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
    ) -> WithItems:
        """LC.ADMIT: adds new members as long as the counter has fewer than `limit`. The counter stays exact.

        Returns for each item, in order: 1 (ADMITTED) if it was added, 0 (KNOWN) if it was a member already, -1
        (REJECTED) if it was rejected. With `all`, either all new items are added or none. With `dryrun`, nothing is
        changed. With `withroom`, returns `Admissions`: these outcomes, and the room that is left.
        """
        words: list[Word] = [
            key,
            "LIMIT",
            limit,
            *options(("ALL", all), ("DRYRUN", dryrun), ("WITHROOM", withroom)),
            *options(("ERROR", error_rate), ("EXACT", exact), ("BYTES", bytes)),
            *options(("SEED", seed), ("NOCREATE", noCreate)),
            *span("WINDOW", window),
            *options(("MANUAL", manual), ("VOLATILE", volatile), ("SLICES", slices)),
            *expiry(ex, px, exat, pxat),
        ]
        return words, items, width

    def rem(self, key: Key, *members: Item) -> list[Word]:
        """LC.REM: removes members. Returns how many were members. The counter must be exact, and stays if it is empty
        then."""
        return [key, *map(encoded, members)]

    def count(self, key: Key, *keys: Key) -> list[Word]:
        """LC.COUNT: the number of distinct members of a counter, or of the union of several counters."""
        return [key, *keys]

    def countsince(self, key: Key, seconds: Seconds) -> list[Word]:
        """LC.COUNTSINCE: the number of distinct members that were added to a windowed counter in the last `seconds`
        seconds.

        Members of the whole slice in which the time span begins are counted too."""
        return [key, in_seconds(seconds)]

    def history(self, key: Key) -> list[Word]:
        """LC.HISTORY: for each slice of the window, newest first, its begin and the number of members since then."""
        return [key]

    def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> list[Word]:
        """LC.ADVANCE: moves the window forward to a slice. With "CLOCK", the window follows the system clock from now
        on."""
        return [key, slice]

    def merge(self, destination: Key, *sources: Key) -> list[Word]:
        """LC.MERGE: makes the destination the union of itself and the sources."""
        return [destination, *sources]

    def mergedump(self, destination: Key, *payloads: bytes) -> list[Word]:
        """LC.MERGEDUMP: makes the destination the union of itself and values that DUMP or `to_bytes` returned."""
        return [destination, *payloads]

    def unioncard(self, key: Key, *keys: Key, since: Spans = None) -> list[Word]:
        """LC.UNIONCARD: the number of distinct members of all counters together, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        return numbered((key, *keys), since)

    def intercard(self, key: Key, *keys: Key, since: Spans = None) -> list[Word]:
        """LC.INTERCARD: the number of members that all counters have in common, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        return numbered((key, *keys), since)

    def diffcard(self, key: Key, *keys: Key, since: Spans = None) -> list[Word]:
        """LC.DIFFCARD: the number of members of the first counter that none of the others has, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        return numbered((key, *keys), since)

    def union(self, key: Key, *keys: Key, since: Spans = None) -> list[Word]:
        """LC.UNION: the members of all counters together, in no order. All counters must be exact."""
        return numbered((key, *keys), since)

    def inter(self, key: Key, *keys: Key, since: Spans = None) -> list[Word]:
        """LC.INTER: the members that all counters have in common, in no order. All counters must be exact."""
        return numbered((key, *keys), since)

    def diff(self, key: Key, *keys: Key, since: Spans = None) -> list[Word]:
        """LC.DIFF: the members of the first counter that none of the others has, in no order. All counters must be
        exact."""
        return numbered((key, *keys), since)

    def exists(self, key: Key, item: Item) -> list[Word]:
        """LC.EXISTS: whether an item is a member. The counter must be exact."""
        return [key, encoded(item)]

    def mexists(self, key: Key, *items: Item) -> list[Word]:
        """LC.MEXISTS: whether each of several items is a member, in order. The counter must be exact."""
        return [key, *map(encoded, items)]

    def query(
        self, key: Key, items: Iterable[Item] | Rows | Buffer, since: Seconds | None = None, *, width: int | None = None
    ) -> WithItems:
        """LC.QUERY: whether each of several items is a member, or was added in the last `since` seconds, in order. The
        counter must be exact."""
        return [key, *span("SINCE", since)], items, width

    def members(self, key: Key, since: Seconds | None = None, *, withages: bool = False) -> list[Word]:
        """LC.MEMBERS: the members of an exact counter, or those of the last `since` seconds, in no order.

        With `withages`, each with the seconds since the slice began in which it was last added, oldest first.
        """
        return [key, *span("SINCE", since), *options(("WITHAGES", withages))]

    def clear(self, key: Key) -> list[Word]:
        """LC.CLEAR: empties a counter, which is then exact. It keeps its parameters, window and time to live."""
        return [key]

    def info(self, key: Key, field: Any = None) -> list[Word]:
        """LC.INFO: the parameters and the state of a counter, or a single field of them."""
        return [key] if field is None else [key, field]

    def scandump(self, key: Key, iter: int) -> list[Word]:
        """LC.SCANDUMP: dumps a counter in chunks. Begin with 0, and continue with the iterator of each reply, until it
        is 0."""
        return [key, iter]

    def loadchunk(self, key: Key, iter: int, data: bytes) -> list[Word]:
        """LC.LOADCHUNK: loads a chunk that `scandump` returned, with the iterator that it returned with the chunk."""
        return [key, iter, data]
