"""The words and the reply of each BF.* command. The classes that applications use are generated from this class."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, overload

from rollcall_redis._types import Admission, Admissions

from ._columns import ADMISSIONS, BOOLEANS, OUTCOMES, Answers, AnswersView, Buffer, Rows, with_items
from ._command import Command, Item, Key, Moment, Seconds, Word, encoded, expiry, options, span
from ._reply import (
    Chunk,
    FilterInfo,
    anything,
    boolean,
    chunk,
    double,
    filter_info,
    integer,
    list_of,
    ok,
    or_none,
    single,
    text,
)

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
    ) -> Command[bool]:
        """BF.RESERVE: creates an empty filter. Returns True, or raises an error if the key exists."""
        return Command(
            "BF.RESERVE",
            [
                key,
                error_rate,
                capacity,
                *options(("EXPANSION", expansion), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
                *_window(window, manual, slices, refresh),
                *expiry(ex, px, exat, pxat),
            ],
            ok,
        )

    create = reserve

    def add(self, key: Key, item: Item) -> Command[bool]:
        """BF.ADD: adds an item. Returns whether it was new to the filter."""
        return Command("BF.ADD", [key, encoded(item)], boolean)

    def madd(self, key: Key, *items: Item) -> Command[list[bool]]:
        """BF.MADD: adds items. Returns for each, in order, whether it was new.

        If a filter that does not scale becomes full, its error is raised for the remaining items. `replies_before`
        returns the replies for the items before.
        """
        return Command("BF.MADD", [key, *map(encoded, items)], list_of(boolean))

    @overload
    def insert(
        self,
        key: Key,
        items: Rows,
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
        width: None = None,
    ) -> Command[Answers]: ...
    @overload
    def insert(
        self,
        key: Key,
        items: Buffer,
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
        width: int,
    ) -> Command[AnswersView]: ...
    @overload
    def insert(
        self,
        key: Key,
        items: Iterable[Item],
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
        width: None = None,
    ) -> Command[list[bool]]: ...
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
    ) -> Command[Any]:
        """BF.INSERT: adds items like `madd`. If the key is missing, creates the filter with these options first.

        A column of items of the same width, such as an array of bytes, is sent in one argument, and above 2^20 items in
        several calls. The answers are an array. `width` is the number of bytes of an item in another buffer.
        """
        return with_items(
            "BF.INSERT",
            [
                key,
                *options(("CAPACITY", capacity), ("ERROR", error_rate), ("EXPANSION", expansion)),
                *options(("NOCREATE", noCreate), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
                *_window(window, manual, slices, refresh),
                *options(("VOLATILE", volatile)),
                *expiry(ex, px, exat, pxat),
            ],
            items,
            width,
            BOOLEANS,
        )

    @overload
    def admit(
        self,
        key: Key,
        items: Rows | Buffer,
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
    ) -> Command[Any]: ...
    @overload
    def admit(
        self,
        key: Key,
        items: Iterable[Item],
        limit: int,
        capacity: int | None = None,
        error_rate: float | None = None,
        noCreate: bool | None = None,
        expansion: int | None = None,
        noScale: bool | None = None,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: Literal[False] = False,
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
        width: None = None,
    ) -> Command[list[Admission]]: ...
    @overload
    def admit(
        self,
        key: Key,
        items: Iterable[Item],
        limit: int,
        capacity: int | None = None,
        error_rate: float | None = None,
        noCreate: bool | None = None,
        expansion: int | None = None,
        noScale: bool | None = None,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: Literal[True],
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
        width: None = None,
    ) -> Command[Admissions]: ...
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
    ) -> Command[Any]:
        """BF.ADMIT: adds new items as long as the filter has fewer than `limit`.

        Returns for each item, in order: 1 (ADMITTED) if it was added, 0 (KNOWN) if it was in the filter already, -1
        (REJECTED) if it was rejected. With `all`, either all new items are added or none. With `dryrun`, nothing is
        changed. With `withroom`, returns `Admissions`: these outcomes, and the room that is left.
        """
        return with_items(
            "BF.ADMIT",
            [
                key,
                "LIMIT",
                limit,
                *options(("ALL", all), ("DRYRUN", dryrun), ("WITHROOM", withroom)),
                *options(("CAPACITY", capacity), ("ERROR", error_rate), ("EXPANSION", expansion)),
                *options(("NOCREATE", noCreate), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
                *_window(window, manual, slices, refresh),
                *options(("VOLATILE", volatile)),
                *expiry(ex, px, exat, pxat),
            ],
            items,
            width,
            ADMISSIONS if withroom else OUTCOMES,
        )

    def exists(self, key: Key, item: Item) -> Command[bool]:
        """BF.EXISTS: whether an item may be in the filter. False is certain; True may be wrong, at the error rate."""
        return Command("BF.EXISTS", [key, encoded(item)], boolean)

    def mexists(self, key: Key, *items: Item) -> Command[list[bool]]:
        """BF.MEXISTS: whether each of several items may be in the filter, in order."""
        return Command("BF.MEXISTS", [key, *map(encoded, items)], list_of(boolean))

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
        """BF.QUERY: whether each of several items may be in the filter, or may have been added in the last `since`
        seconds, in order."""
        return with_items("BF.QUERY", [key, *span("SINCE", since)], items, width, BOOLEANS)

    def card(self, key: Key) -> Command[int]:
        """BF.CARD: the number of items that were new when they were added; 0 for a missing key."""
        return Command("BF.CARD", [key], integer)

    @overload
    def info(self, key: Key, field: None = None) -> Command[FilterInfo]: ...
    @overload
    def info(self, key: Key, field: Literal["CAPACITY", "SIZE", "FILTERS", "ITEMS"]) -> Command[int]: ...
    @overload
    def info(self, key: Key, field: Literal["ERROR", "FPR", "FILL"]) -> Command[float]: ...
    @overload
    def info(self, key: Key, field: Literal["LAYOUT"]) -> Command[str]: ...
    @overload
    def info(self, key: Key, field: Literal["WINDOW"]) -> Command[int | None]: ...
    @overload
    def info(self, key: Key, field: Literal["EXPANSION", "SLICES", "SLICE"]) -> Command[int | None]: ...
    @overload
    def info(self, key: Key, field: Literal["CLOCK"]) -> Command[str | None]: ...
    @overload
    def info(self, key: Key, field: Literal["VOLATILE", "REFRESH"]) -> Command[bool | None]: ...
    def info(self, key: Key, field: Any = None) -> Command[Any]:
        """BF.INFO: the parameters and the state of a filter, or a single field. Most fields are only sent if named."""
        if field is None:
            return Command("BF.INFO", [key], filter_info)
        return Command("BF.INFO", [key, field], single(_FIELDS.get(field.upper(), anything)))

    def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> Command[bool]:
        """BF.ADVANCE: moves the window forward to a slice. With "CLOCK", the window follows the system clock from now
        on."""
        return Command("BF.ADVANCE", [key, slice], ok)

    def merge(self, destination: Key, *sources: Key) -> Command[bool]:
        """BF.MERGE: makes the destination the union of itself and the sources."""
        return Command("BF.MERGE", [destination, *sources], ok)

    def mergedump(self, destination: Key, *payloads: bytes) -> Command[bool]:
        """BF.MERGEDUMP: makes the destination the union of itself and values that DUMP or `to_bytes` returned."""
        return Command("BF.MERGEDUMP", [destination, *payloads], ok)

    def clear(self, key: Key) -> Command[bool]:
        """BF.CLEAR: empties a filter, which keeps its parameters, its window and its time to live."""
        return Command("BF.CLEAR", [key], ok)

    def scandump(self, key: Key, iter: int) -> Command[Chunk]:
        """BF.SCANDUMP: dumps a filter in chunks. Begin with 0, and continue with the iterator of each reply, until it
        is 0."""
        return Command("BF.SCANDUMP", [key, iter], chunk, content="binary")

    def loadchunk(self, key: Key, iter: int, data: bytes) -> Command[bool]:
        """BF.LOADCHUNK: loads a chunk that `scandump` returned, with the iterator that it returned with the chunk."""
        return Command("BF.LOADCHUNK", [key, iter, data], ok)

    def debug(self, key: Key) -> Command[list[str]]:
        """BF.DEBUG: a description of a filter and of each of its sub-filters, for people."""
        return Command("BF.DEBUG", [key], list_of(text))


_FIELDS: dict[str, Callable[[Any], object]] = {
    "CAPACITY": integer,
    "SIZE": integer,
    "FILTERS": integer,
    "ITEMS": integer,
    "EXPANSION": or_none(integer),
    "ERROR": double,
    "FPR": double,
    "FILL": double,
    "LAYOUT": text,
    "WINDOW": or_none(integer),
    "SLICES": or_none(integer),
    "SLICE": or_none(integer),
    "CLOCK": or_none(text),
    "VOLATILE": or_none(boolean),
    "REFRESH": or_none(boolean),
}


def _window(window: Seconds | None, manual: bool, slices: int | None, refresh: bool) -> list[Word]:
    flags = options(("MANUAL", manual), ("SLICES", slices), ("REFRESH", refresh))
    return [*span("WINDOW", window), *flags]
