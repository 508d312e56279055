"""Each command as a call. Written by scripts/python_commands.py."""

from collections.abc import Iterable
from typing import Any, Literal, overload

import rollcall_redis.redis._reply as read
from rollcall_redis._types import Admission, Admissions

from ._columns import Answers, AnswersView, Buffer, Rows, with_items
from ._command import Command, Item, Key, Moment, Seconds
from ._filters import FilterCommands, Layout
from ._reply import Chunk, FilterInfo
from ._run import Run


class Filters:
    """Commands on Bloom filters."""

    def __init__(self, run: Run) -> None:
        self._commands = FilterCommands()
        self._run = run

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
    ) -> bool:
        """BF.RESERVE: creates an empty filter. Returns True, or raises an error if the key exists."""
        arguments = self._commands.reserve(
            key,
            error_rate,
            capacity,
            expansion,
            noScale,
            seed=seed,
            layout=layout,
            window=window,
            manual=manual,
            slices=slices,
            refresh=refresh,
            ex=ex,
            px=px,
            exat=exat,
            pxat=pxat,
        )
        return self._run(Command("BF.RESERVE", arguments, read.ok))

    create = reserve

    def add(self, key: Key, item: Item) -> bool:
        """BF.ADD: adds an item. Returns whether it was new to the filter."""
        return self._run(Command("BF.ADD", self._commands.add(key, item), read.boolean))

    def madd(self, key: Key, *items: Item) -> list[bool]:
        """BF.MADD: adds items. Returns for each, in order, whether it was new.

        If a filter that does not scale becomes full, its error is raised for the remaining items. `replies_before`
        returns the replies for the items before.
        """
        return self._run(Command("BF.MADD", self._commands.madd(key, *items), read.added))

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
    ) -> Answers: ...
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
    ) -> AnswersView: ...
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
    ) -> list[bool]: ...
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
    ) -> Any:
        """BF.INSERT: adds items like `madd`. If the key is missing, creates the filter with these options first.

        A column of items of the same width, such as an array of bytes, is sent in one argument, and above 2^20 items in
        several calls. The answers are an array. `width` is the number of bytes of an item in another buffer.
        """
        arguments = self._commands.insert(
            key,
            items,
            capacity,
            error_rate,
            noCreate,
            expansion,
            noScale,
            seed=seed,
            layout=layout,
            window=window,
            manual=manual,
            volatile=volatile,
            slices=slices,
            refresh=refresh,
            ex=ex,
            px=px,
            exat=exat,
            pxat=pxat,
            width=width,
        )
        return self._run(with_items("BF.INSERT", arguments, read.added))

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
    ) -> Any: ...
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
    ) -> list[Admission]: ...
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
    ) -> Admissions: ...
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
    ) -> Any:
        """BF.ADMIT: adds new items as long as the filter has fewer than `limit`.

        Returns for each item, in order: 1 (ADMITTED) if it was added, 0 (KNOWN) if it was in the filter already, -1
        (REJECTED) if it was rejected. With `all`, either all new items are added or none. With `dryrun`, nothing is
        changed. With `withroom`, returns `Admissions`: these outcomes, and the room that is left.
        """
        reader = read.room if withroom else read.outcomes
        arguments = self._commands.admit(
            key,
            items,
            limit,
            capacity,
            error_rate,
            noCreate,
            expansion,
            noScale,
            all=all,
            dryrun=dryrun,
            withroom=withroom,
            seed=seed,
            layout=layout,
            window=window,
            manual=manual,
            volatile=volatile,
            slices=slices,
            refresh=refresh,
            ex=ex,
            px=px,
            exat=exat,
            pxat=pxat,
            width=width,
        )
        return self._run(with_items("BF.ADMIT", arguments, reader))

    def exists(self, key: Key, item: Item) -> bool:
        """BF.EXISTS: whether an item may be in the filter. False is certain; True may be wrong, at the error rate."""
        return self._run(Command("BF.EXISTS", self._commands.exists(key, item), read.boolean))

    def mexists(self, key: Key, *items: Item) -> list[bool]:
        """BF.MEXISTS: whether each of several items may be in the filter, in order."""
        return self._run(Command("BF.MEXISTS", self._commands.mexists(key, *items), read.booleans))

    @overload
    def query(self, key: Key, items: Rows, since: Seconds | None = None, *, width: None = None) -> Answers: ...
    @overload
    def query(self, key: Key, items: Buffer, since: Seconds | None = None, *, width: int) -> AnswersView: ...
    @overload
    def query(
        self,
        key: Key,
        items: Iterable[Item],
        since: Seconds | None = None,
        *,
        width: None = None,
    ) -> list[bool]: ...
    def query(
        self,
        key: Key,
        items: Iterable[Item] | Rows | Buffer,
        since: Seconds | None = None,
        *,
        width: int | None = None,
    ) -> Any:
        """BF.QUERY: whether each of several items may be in the filter, or may have been added in the last `since`
        seconds, in order.
        """
        return self._run(with_items("BF.QUERY", self._commands.query(key, items, since, width=width), read.booleans))

    def card(self, key: Key) -> int:
        """BF.CARD: the number of items that were new when they were added; 0 for a missing key."""
        return self._run(Command("BF.CARD", self._commands.card(key), read.integer))

    @overload
    def info(self, key: Key, field: None = None) -> FilterInfo: ...
    @overload
    def info(self, key: Key, field: Literal["CAPACITY", "SIZE", "FILTERS", "ITEMS"]) -> int: ...
    @overload
    def info(self, key: Key, field: Literal["EXPANSION", "WINDOW", "SLICES", "SLICE"]) -> int | None: ...
    @overload
    def info(self, key: Key, field: Literal["ERROR", "FPR", "FILL"]) -> float: ...
    @overload
    def info(self, key: Key, field: Literal["LAYOUT"]) -> str: ...
    @overload
    def info(self, key: Key, field: Literal["CLOCK"]) -> str | None: ...
    @overload
    def info(self, key: Key, field: Literal["VOLATILE", "REFRESH"]) -> bool | None: ...
    def info(self, key: Key, field: Any = None) -> Any:
        """BF.INFO: the parameters and the state of a filter, or a single field. Most fields are only sent if named."""
        reader = read.filter if field is None else read.field(field)
        return self._run(Command("BF.INFO", self._commands.info(key, field), reader))

    def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> bool:
        """BF.ADVANCE: moves the window forward to a slice. With "CLOCK", the window follows the system clock from now
        on.
        """
        return self._run(Command("BF.ADVANCE", self._commands.advance(key, slice), read.ok))

    def merge(self, destination: Key, *sources: Key) -> bool:
        """BF.MERGE: makes the destination the union of itself and the sources."""
        return self._run(Command("BF.MERGE", self._commands.merge(destination, *sources), read.ok))

    def mergedump(self, destination: Key, *payloads: bytes) -> bool:
        """BF.MERGEDUMP: makes the destination the union of itself and values that DUMP or `to_bytes` returned."""
        return self._run(Command("BF.MERGEDUMP", self._commands.mergedump(destination, *payloads), read.ok))

    def clear(self, key: Key) -> bool:
        """BF.CLEAR: empties a filter, which keeps its parameters, its window and its time to live."""
        return self._run(Command("BF.CLEAR", self._commands.clear(key), read.ok))

    def scandump(self, key: Key, iter: int) -> Chunk:
        """BF.SCANDUMP: dumps a filter in chunks. Begin with 0, and continue with the iterator of each reply, until it
        is 0.
        """
        return self._run(Command("BF.SCANDUMP", self._commands.scandump(key, iter), read.chunk, content="binary"))

    def loadchunk(self, key: Key, iter: int, data: bytes) -> bool:
        """BF.LOADCHUNK: loads a chunk that `scandump` returned, with the iterator that it returned with the chunk."""
        return self._run(Command("BF.LOADCHUNK", self._commands.loadchunk(key, iter, data), read.ok))

    def debug(self, key: Key) -> list[str]:
        """BF.DEBUG: a description of a filter and of each of its sub-filters, for people."""
        return self._run(Command("BF.DEBUG", self._commands.debug(key), read.texts))
