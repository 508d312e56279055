"""Each command as a coroutine. Written by scripts/python_commands.py."""

from collections.abc import Iterable
from typing import Any, Generic, Literal, cast, overload

from rollcall_redis._types import Admission, Estimate

from ._command import Command, Item, Key, Moment, Seconds, Spans
from ._counters import CounterCommands, Member
from ._filters import FilterCommands, Layout
from ._reply import Chunk, CounterInfo, FilterInfo, Slice
from ._run import RunAsync


class AsyncFilters:
    """Bloom filters: was this item added before?"""

    def __init__(self, commands: FilterCommands, run: RunAsync) -> None:
        self._commands = commands
        self._run = run

    async def reserve(
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
    ) -> bool:
        """BF.RESERVE: creates an empty filter. True, or an error if the key exists."""
        return await self._run(
            self._commands.reserve(
                key,
                error_rate,
                capacity,
                expansion,
                noScale,
                seed=seed,
                layout=layout,
                window=window,
                manual=manual,
                last=last,
                slices=slices,
                refresh=refresh,
                ex=ex,
                px=px,
                exat=exat,
                pxat=pxat,
            )
        )

    create = reserve

    async def add(self, key: Key, item: Item) -> bool:
        """BF.ADD: adds an item. True if it was new to the filter."""
        return await self._run(self._commands.add(key, item))

    async def madd(self, key: Key, *items: Item) -> list[bool]:
        """BF.MADD: adds items. For each, in order, whether it was new.

        A full filter that does not scale rejects the rest: its error is raised, and `replies_before` has the others.
        """
        return await self._run(self._commands.madd(key, *items))

    async def insert(
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
    ) -> list[bool]:
        """BF.INSERT: adds items, and makes the filter with these options if it is missing. Answers as `madd` does."""
        return await self._run(
            self._commands.insert(
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
                last=last,
                slices=slices,
                refresh=refresh,
                ex=ex,
                px=px,
                exat=exat,
                pxat=pxat,
            )
        )

    async def admit(
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
    ) -> list[Admission]:
        """BF.ADMIT: lets new items in while there are fewer than `limit`.

        For each item, in order: 1 (ADMITTED) came in now, 0 (KNOWN) was in already, -1 (REJECTED) was not let in. With
        `all`, either all new ones come in or none. With `dryrun` nothing is changed.
        """
        return await self._run(
            self._commands.admit(
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
                seed=seed,
                layout=layout,
                window=window,
                manual=manual,
                volatile=volatile,
                last=last,
                slices=slices,
                refresh=refresh,
                ex=ex,
                px=px,
                exat=exat,
                pxat=pxat,
            )
        )

    async def exists(self, key: Key, item: Item) -> bool:
        """BF.EXISTS: False is certain, True may be wrong at the error rate."""
        return await self._run(self._commands.exists(key, item))

    async def mexists(self, key: Key, *items: Item) -> list[bool]:
        """BF.MEXISTS: asks for several items, and answers in their order."""
        return await self._run(self._commands.mexists(key, *items))

    async def card(self, key: Key) -> int:
        """BF.CARD: how many items were new when they were added. 0 for a missing key."""
        return await self._run(self._commands.card(key))

    @overload
    async def info(self, key: Key, field: None = None) -> FilterInfo: ...
    @overload
    async def info(self, key: Key, field: Literal["CAPACITY", "SIZE", "FILTERS", "ITEMS"]) -> int: ...
    @overload
    async def info(self, key: Key, field: Literal["ERROR", "FPR", "FILL"]) -> float: ...
    @overload
    async def info(self, key: Key, field: Literal["LAYOUT"]) -> str: ...
    @overload
    async def info(self, key: Key, field: Literal["WINDOW"]) -> int | str | None: ...
    @overload
    async def info(self, key: Key, field: Literal["EXPANSION", "SLICES", "SLICE"]) -> int | None: ...
    @overload
    async def info(self, key: Key, field: Literal["CLOCK"]) -> str | None: ...
    @overload
    async def info(self, key: Key, field: Literal["VOLATILE", "REFRESH"]) -> bool | None: ...
    async def info(self, key: Key, field: Any = None) -> Any:
        """BF.INFO: parameters and state of a filter, or one field of them. Most fields come only when asked for."""
        command: Command[Any] = cast(Any, self._commands).info(key, field)
        return await self._run(command)

    async def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> bool:
        """BF.ADVANCE: moves the window on to a slice, or hands it to the clock."""
        return await self._run(self._commands.advance(key, slice))

    async def merge(self, destination: Key, *sources: Key) -> bool:
        """BF.MERGE: makes the destination hold what it and the sources hold."""
        return await self._run(self._commands.merge(destination, *sources))

    async def clear(self, key: Key) -> bool:
        """BF.CLEAR: empties a filter. It keeps its parameters, its window and its time to live."""
        return await self._run(self._commands.clear(key))

    async def scandump(self, key: Key, iter: int) -> Chunk:
        """BF.SCANDUMP: reads a filter out in chunks. Begin with 0, go on with the iterator of each reply, until 0."""
        return await self._run(self._commands.scandump(key, iter))

    async def loadchunk(self, key: Key, iter: int, data: bytes) -> bool:
        """BF.LOADCHUNK: takes a chunk as `scandump` gave it, with the iterator that came with it."""
        return await self._run(self._commands.loadchunk(key, iter, data))

    async def debug(self, key: Key) -> list[str]:
        """BF.DEBUG: describes a filter and each of its sub-filters, for people."""
        return await self._run(self._commands.debug(key))


class AsyncCounters(Generic[Member]):
    """Counters: how many different members were added, and who they are while they are few."""

    def __init__(self, commands: CounterCommands[Member], run: RunAsync) -> None:
        self._commands = commands
        self._run = run

    async def reserve(
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
    ) -> bool:
        """LC.RESERVE: creates an empty counter. True, or an error if the key exists."""
        return await self._run(
            self._commands.reserve(
                key,
                capacity,
                error_rate,
                exact,
                bytes,
                precision=precision,
                tail=tail,
                seed=seed,
                window=window,
                manual=manual,
                slices=slices,
                ex=ex,
                px=px,
                exat=exat,
                pxat=pxat,
            )
        )

    create = reserve

    async def add(self, key: Key, *items: Item) -> int:
        """LC.ADD: adds items. How many were new, or, of an estimate, how many changed its bitmap."""
        return await self._run(self._commands.add(key, *items))

    async def insert(
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
    ) -> int:
        """LC.INSERT: adds items, and makes the counter with these options if it is missing. Answers as `add` does."""
        return await self._run(
            self._commands.insert(
                key,
                items,
                capacity,
                error_rate,
                exact,
                bytes,
                noCreate,
                precision=precision,
                tail=tail,
                seed=seed,
                window=window,
                manual=manual,
                volatile=volatile,
                slices=slices,
                ex=ex,
                px=px,
                exat=exat,
                pxat=pxat,
            )
        )

    async def admit(
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
    ) -> list[Admission]:
        """LC.ADMIT: lets new members in while there are fewer than `limit`. The counter stays exact.

        For each item, in order: 1 (ADMITTED) came in now, 0 (KNOWN) was in already, -1 (REJECTED) was not let in. With
        `all`, either all new ones come in or none. With `dryrun` nothing is changed.
        """
        return await self._run(
            self._commands.admit(
                key,
                items,
                limit,
                capacity,
                error_rate,
                exact,
                bytes,
                noCreate,
                all=all,
                dryrun=dryrun,
                precision=precision,
                tail=tail,
                seed=seed,
                window=window,
                manual=manual,
                volatile=volatile,
                slices=slices,
                ex=ex,
                px=px,
                exat=exat,
                pxat=pxat,
            )
        )

    async def count(self, key: Key, *keys: Key) -> int:
        """LC.COUNT: the different members of a counter, or of the union of several."""
        return await self._run(self._commands.count(key, *keys))

    async def countsince(self, key: Key, seconds: Seconds) -> int:
        """LC.COUNTSINCE: how many different members a counter with a window has seen in the last seconds, at least."""
        return await self._run(self._commands.countsince(key, seconds))

    async def history(self, key: Key) -> list[Slice]:
        """LC.HISTORY: for each slice of the window, the present one first, when it began and the count since."""
        return await self._run(self._commands.history(key))

    async def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> bool:
        """LC.ADVANCE: moves the window on to a slice, or hands it to the clock."""
        return await self._run(self._commands.advance(key, slice))

    async def merge(self, destination: Key, *sources: Key) -> bool:
        """LC.MERGE: makes the destination the union of itself and the sources."""
        return await self._run(self._commands.merge(destination, *sources))

    async def unioncard(self, key: Key, *keys: Key, since: Spans = None) -> Estimate:
        """LC.UNIONCARD: how many different members all counters have together, with its standard error.

        With `since`, of the last seconds alone: one value for all keys, or a list with one for each, None for all.
        """
        return await self._run(self._commands.unioncard(key, *keys, since=since))

    async def intercard(self, key: Key, *keys: Key, since: Spans = None) -> Estimate:
        """LC.INTERCARD: how many members all counters have in common, with its standard error.

        With `since`, of the last seconds alone: one value for all keys, or a list with one for each, None for all.
        """
        return await self._run(self._commands.intercard(key, *keys, since=since))

    async def diffcard(self, key: Key, *keys: Key, since: Spans = None) -> Estimate:
        """LC.DIFFCARD: how many members of the first counter are in none of the others, with its standard error.

        With `since`, of the last seconds alone: one value for all keys, or a list with one for each, None for all.
        """
        return await self._run(self._commands.diffcard(key, *keys, since=since))

    async def union(self, key: Key, *keys: Key, since: Spans = None) -> list[Member]:
        """LC.UNION: the members of all counters together, in no order, while all are exact."""
        return await self._run(self._commands.union(key, *keys, since=since))

    async def inter(self, key: Key, *keys: Key, since: Spans = None) -> list[Member]:
        """LC.INTER: the members that all counters have in common, in no order, while all are exact."""
        return await self._run(self._commands.inter(key, *keys, since=since))

    async def diff(self, key: Key, *keys: Key, since: Spans = None) -> list[Member]:
        """LC.DIFF: the members of the first counter that no other has, in no order, while all are exact."""
        return await self._run(self._commands.diff(key, *keys, since=since))

    async def exists(self, key: Key, item: Item) -> bool:
        """LC.EXISTS: whether an item is a member, while the counter is exact."""
        return await self._run(self._commands.exists(key, item))

    async def mexists(self, key: Key, *items: Item) -> list[bool]:
        """LC.MEXISTS: asks for several items, and answers in their order."""
        return await self._run(self._commands.mexists(key, *items))

    async def members(self, key: Key, since: Seconds | None = None) -> list[Member]:
        """LC.MEMBERS: the members of an exact counter, or those of the last `since` seconds. In no order."""
        return await self._run(self._commands.members(key, since))

    async def clear(self, key: Key) -> bool:
        """LC.CLEAR: empties a counter, which is exact again. It keeps its parameters, window and time to live."""
        return await self._run(self._commands.clear(key))

    @overload
    async def info(self, key: Key, field: None = None) -> CounterInfo: ...
    @overload
    async def info(
        self,
        key: Key,
        field: Literal["CAPACITY", "EXACT", "BYTES", "SIZE", "COUNT", "BITS", "BITSSET", "PRECISION", "TAIL"],
    ) -> int: ...
    @overload
    async def info(self, key: Key, field: Literal["ERROR", "STDERR"]) -> float: ...
    @overload
    async def info(self, key: Key, field: Literal["MODE", "REPRESENTATION"]) -> str: ...
    @overload
    async def info(self, key: Key, field: Literal["WINDOW", "SLICES", "SLICE"]) -> int | None: ...
    @overload
    async def info(self, key: Key, field: Literal["CLOCK"]) -> str | None: ...
    @overload
    async def info(self, key: Key, field: Literal["VOLATILE"]) -> bool | None: ...
    async def info(self, key: Key, field: Any = None) -> Any:
        """LC.INFO: parameters and state of a counter, or one field of them."""
        command: Command[Any] = cast(Any, self._commands).info(key, field)
        return await self._run(command)

    async def scandump(self, key: Key, iter: int) -> Chunk:
        """LC.SCANDUMP: reads a counter out in chunks. Begin with 0, go on with the iterator of each reply, until 0."""
        return await self._run(self._commands.scandump(key, iter))

    async def loadchunk(self, key: Key, iter: int, data: bytes) -> bool:
        """LC.LOADCHUNK: takes a chunk as `scandump` gave it, with the iterator that came with it."""
        return await self._run(self._commands.loadchunk(key, iter, data))
