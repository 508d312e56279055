"""BF.*: what is sent for each command, and how its reply is read. The classes that clients use are made of this."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, overload

from rollcall_redis._types import Admission

from ._command import Command, Item, Key, Moment, Seconds, Word, expiry, listed, options, span
from ._reply import (
    Chunk,
    FilterInfo,
    admission,
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
    window,
)

Layout: TypeAlias = Literal["lines", "classic"]


class FilterCommands:
    """Bloom filters: was this item added before?"""

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
        last: bool = False,
        slices: int | None = None,
        refresh: bool = False,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> Command[bool]:
        """BF.RESERVE: creates an empty filter. True, or an error if the key exists."""
        return Command(
            "BF.RESERVE",
            [
                key,
                error_rate,
                capacity,
                *options(("EXPANSION", expansion), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
                *_window(window, manual, last, slices, refresh),
                *expiry(ex, px, exat, pxat),
            ],
            ok,
        )

    create = reserve

    def add(self, key: Key, item: Item) -> Command[bool]:
        """BF.ADD: adds an item. True if it was new to the filter."""
        return Command("BF.ADD", [key, item], boolean)

    def madd(self, key: Key, *items: Item) -> Command[list[bool]]:
        """BF.MADD: adds items. For each, in order, whether it was new.

        A full filter that does not scale rejects the rest: its error is raised, and `replies_before` has the others.
        """
        return Command("BF.MADD", [key, *items], list_of(boolean))

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
        last: bool = False,
        slices: int | None = None,
        refresh: bool = False,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> Command[list[bool]]:
        """BF.INSERT: adds items, and makes the filter with these options if it is missing. Answers as `madd` does."""
        return Command(
            "BF.INSERT",
            [
                key,
                *options(("CAPACITY", capacity), ("ERROR", error_rate), ("EXPANSION", expansion)),
                *options(("NOCREATE", noCreate), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
                *_window(window, manual, last, slices, refresh),
                *options(("VOLATILE", volatile)),
                *expiry(ex, px, exat, pxat),
                *listed(items),
            ],
            list_of(boolean),
        )

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
        seed: int | None = None,
        layout: Layout | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        last: bool = False,
        slices: int | None = None,
        refresh: bool = False,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> Command[list[Admission]]:
        """BF.ADMIT: lets new items in while there are fewer than `limit`.

        For each item, in order: 1 (ADMITTED) came in now, 0 (KNOWN) was in already, -1 (REJECTED) was not let in. With
        `all`, either all new ones come in or none. With `dryrun` nothing is changed.
        """
        return Command(
            "BF.ADMIT",
            [
                key,
                "LIMIT",
                limit,
                *options(("ALL", all), ("DRYRUN", dryrun)),
                *options(("CAPACITY", capacity), ("ERROR", error_rate), ("EXPANSION", expansion)),
                *options(("NOCREATE", noCreate), ("NONSCALING", noScale), ("SEED", seed), ("LAYOUT", layout)),
                *_window(window, manual, last, slices, refresh),
                *options(("VOLATILE", volatile)),
                *expiry(ex, px, exat, pxat),
                *listed(items),
            ],
            list_of(admission),
        )

    def exists(self, key: Key, item: Item) -> Command[bool]:
        """BF.EXISTS: False is certain, True may be wrong at the error rate."""
        return Command("BF.EXISTS", [key, item], boolean)

    def mexists(self, key: Key, *items: Item) -> Command[list[bool]]:
        """BF.MEXISTS: asks for several items, and answers in their order."""
        return Command("BF.MEXISTS", [key, *items], list_of(boolean))

    def card(self, key: Key) -> Command[int]:
        """BF.CARD: how many items were new when they were added. 0 for a missing key."""
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
    def info(self, key: Key, field: Literal["WINDOW"]) -> Command[int | str | None]: ...
    @overload
    def info(self, key: Key, field: Literal["EXPANSION", "SLICES", "SLICE"]) -> Command[int | None]: ...
    @overload
    def info(self, key: Key, field: Literal["CLOCK"]) -> Command[str | None]: ...
    @overload
    def info(self, key: Key, field: Literal["VOLATILE", "REFRESH"]) -> Command[bool | None]: ...
    def info(self, key: Key, field: Any = None) -> Command[Any]:
        """BF.INFO: parameters and state of a filter, or one field of them. Most fields come only when asked for."""
        if field is None:
            return Command("BF.INFO", [key], filter_info)
        return Command("BF.INFO", [key, field], single(_FIELDS.get(field.upper(), anything)))

    def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> Command[bool]:
        """BF.ADVANCE: moves the window on to a slice, or hands it to the clock."""
        return Command("BF.ADVANCE", [key, slice], ok)

    def merge(self, destination: Key, *sources: Key) -> Command[bool]:
        """BF.MERGE: makes the destination hold what it and the sources hold."""
        return Command("BF.MERGE", [destination, *sources], ok)

    def clear(self, key: Key) -> Command[bool]:
        """BF.CLEAR: empties a filter. It keeps its parameters, its window and its time to live."""
        return Command("BF.CLEAR", [key], ok)

    def scandump(self, key: Key, iter: int) -> Command[Chunk]:
        """BF.SCANDUMP: reads a filter out in chunks. Begin with 0, go on with the iterator of each reply, until 0."""
        return Command("BF.SCANDUMP", [key, iter], chunk, content="binary")

    def loadchunk(self, key: Key, iter: int, data: bytes) -> Command[bool]:
        """BF.LOADCHUNK: takes a chunk as `scandump` gave it, with the iterator that came with it."""
        return Command("BF.LOADCHUNK", [key, iter, data], ok)

    def debug(self, key: Key) -> Command[list[str]]:
        """BF.DEBUG: describes a filter and each of its sub-filters, for people."""
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
    "WINDOW": or_none(window),
    "SLICES": or_none(integer),
    "SLICE": or_none(integer),
    "CLOCK": or_none(text),
    "VOLATILE": or_none(boolean),
    "REFRESH": or_none(boolean),
}


def _window(window: Seconds | None, manual: bool, last: bool, slices: int | None, refresh: bool) -> list[Word]:
    flags = options(("MANUAL", manual), ("LAST", last), ("SLICES", slices), ("REFRESH", refresh))
    return [*span("WINDOW", window), *flags]
