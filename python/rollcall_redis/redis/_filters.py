"""The arguments of each BF.* command. The classes that applications use are generated from this class."""

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from ._columns import Buffer, Rows, WithItems
from ._command import Item, Key, Moment, Seconds, Word, encoded, expiry, options, span

Layout: TypeAlias = Literal["lines", "classic"]


class FilterCommands:
    """Commands on Bloom filters."""

    def reserve(
        self,
        key: Key,
        error_rate: float,
        capacity: int,
        expansion: int | None = None,
        noScale: bool | None = None,
        *,
        seed: int | None = None,
        layout: Layout | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        slices: int | None = None,
        refresh: bool = False,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> list[Word]:
        """BF.RESERVE: creates an empty filter. Returns True, or raises an error if the key exists."""
        return [
            key,
            error_rate,
            capacity,
            *options(("EXPANSION", expansion), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
            *_window(window, manual, slices, refresh),
            *expiry(ex, px, exat, pxat),
        ]

    create = reserve

    def add(self, key: Key, item: Item) -> list[Word]:
        """BF.ADD: adds an item. Returns whether it was new to the filter."""
        return [key, encoded(item)]

    def madd(self, key: Key, *items: Item) -> list[Word]:
        """BF.MADD: adds items. Returns for each, in order, whether it was new.

        If a filter that does not scale becomes full, its error is raised for the remaining items. `replies_before`
        returns the replies for the items before.
        """
        return [key, *map(encoded, items)]

    def insert(
        self,
        key: Key,
        items: Iterable[Item] | Rows | Buffer,
        capacity: int | None = None,
        error_rate: float | None = None,
        noCreate: bool | None = None,
        expansion: int | None = None,
        noScale: bool | None = None,
        *,
        seed: int | None = None,
        layout: Layout | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        refresh: bool = False,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
        width: int | None = None,
    ) -> WithItems:
        """BF.INSERT: adds items like `madd`. If the key is missing, creates the filter with these options first.

        A column of items of the same width, such as an array of bytes, is sent in one argument, and above 2^20 items in
        several calls. The answers are an array. `width` is the number of bytes of an item in another buffer.
        """
        words: list[Word] = [
            key,
            *options(("CAPACITY", capacity), ("ERROR", error_rate), ("EXPANSION", expansion)),
            *options(("NOCREATE", noCreate), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
            *_window(window, manual, slices, refresh),
            *options(("VOLATILE", volatile)),
            *expiry(ex, px, exat, pxat),
        ]
        return words, items, width

    def admit(
        self,
        key: Key,
        items: Iterable[Item] | Rows | Buffer,
        limit: int,
        capacity: int | None = None,
        error_rate: float | None = None,
        noCreate: bool | None = None,
        expansion: int | None = None,
        noScale: bool | None = None,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: bool = False,
        seed: int | None = None,
        layout: Layout | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        refresh: bool = False,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
        width: int | None = None,
    ) -> WithItems:
        """BF.ADMIT: adds new items as long as the filter has fewer than `limit`.

        Returns for each item, in order: 1 (ADMITTED) if it was added, 0 (KNOWN) if it was in the filter already, -1
        (REJECTED) if it was rejected. With `all`, either all new items are added or none. With `dryrun`, nothing is
        changed. With `withroom`, returns `Admissions`: these outcomes, and the room that is left.
        """
        words: list[Word] = [
            key,
            "LIMIT",
            limit,
            *options(("ALL", all), ("DRYRUN", dryrun), ("WITHROOM", withroom)),
            *options(("CAPACITY", capacity), ("ERROR", error_rate), ("EXPANSION", expansion)),
            *options(("NOCREATE", noCreate), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
            *_window(window, manual, slices, refresh),
            *options(("VOLATILE", volatile)),
            *expiry(ex, px, exat, pxat),
        ]
        return words, items, width

    def exists(self, key: Key, item: Item) -> list[Word]:
        """BF.EXISTS: whether an item may be in the filter. False is certain; True may be wrong, at the error rate."""
        return [key, encoded(item)]

    def mexists(self, key: Key, *items: Item) -> list[Word]:
        """BF.MEXISTS: whether each of several items may be in the filter, in order."""
        return [key, *map(encoded, items)]

    def query(
        self, key: Key, items: Iterable[Item] | Rows | Buffer, since: Seconds | None = None, *, width: int | None = None
    ) -> WithItems:
        """BF.QUERY: whether each of several items may be in the filter, or may have been added in the last `since`
        seconds, in order."""
        return [key, *span("SINCE", since)], items, width

    def card(self, key: Key) -> list[Word]:
        """BF.CARD: the number of items that were new when they were added; 0 for a missing key."""
        return [key]

    def info(self, key: Key, field: Any = None) -> list[Word]:
        """BF.INFO: the parameters and the state of a filter, or a single field. Most fields are only sent if named."""
        return [key] if field is None else [key, field]

    def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> list[Word]:
        """BF.ADVANCE: moves the window forward to a slice. With "CLOCK", the window follows the system clock from now
        on."""
        return [key, slice]

    def merge(self, destination: Key, *sources: Key) -> list[Word]:
        """BF.MERGE: makes the destination the union of itself and the sources."""
        return [destination, *sources]

    def mergedump(self, destination: Key, *payloads: bytes) -> list[Word]:
        """BF.MERGEDUMP: makes the destination the union of itself and values that DUMP or `to_bytes` returned."""
        return [destination, *payloads]

    def clear(self, key: Key) -> list[Word]:
        """BF.CLEAR: empties a filter, which keeps its parameters, its window and its time to live."""
        return [key]

    def scandump(self, key: Key, iter: int) -> list[Word]:
        """BF.SCANDUMP: dumps a filter in chunks. Begin with 0, and continue with the iterator of each reply, until it
        is 0."""
        return [key, iter]

    def loadchunk(self, key: Key, iter: int, data: bytes) -> list[Word]:
        """BF.LOADCHUNK: loads a chunk that `scandump` returned, with the iterator that it returned with the chunk."""
        return [key, iter, data]

    def debug(self, key: Key) -> list[Word]:
        """BF.DEBUG: a description of a filter and of each of its sub-filters, for people."""
        return [key]


def _window(window: Seconds | None, manual: bool, slices: int | None, refresh: bool) -> list[Word]:
    flags = options(("MANUAL", manual), ("SLICES", slices), ("REFRESH", refresh))
    return [*span("WINDOW", window), *flags]
