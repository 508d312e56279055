"""Each command as a coroutine. Written by scripts/python_commands.py."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, overload

import rollcall_redis.redis._reply as read
from rollcall_redis._types import Admission, Admissions, Estimate

from ._columns import Answers, AnswersView, Buffer, Rows, with_items
from ._command import Command, Item, Key, Moment, Seconds, Spans
from ._counters import CounterCommands
from ._reply import Chunk, CounterInfo, Member, Slice
from ._run import RunAsync


class AsyncCounters(Generic[Member]):
    """Commands on counters of distinct members."""

    def __init__(self, run: RunAsync, member: Callable[[Any], Member]) -> None:
        self._commands = CounterCommands()
        self._run = run
        self._member = member

    async def reserve(
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
    ) -> bool:
        """LC.RESERVE: creates an empty counter. Returns True, or raises an error if the key exists."""
        arguments = self._commands.reserve(
            key,
            error_rate,
            exact,
            bytes,
            seed=seed,
            window=window,
            manual=manual,
            slices=slices,
            ex=ex,
            px=px,
            exat=exat,
            pxat=pxat,
        )
        return await self._run(Command("LC.RESERVE", arguments, read.ok))

    create = reserve

    async def add(self, key: Key, *items: Item) -> int:
        """LC.ADD: adds items. Returns how many were new; if the counter estimates, how many changed the estimate."""
        return await self._run(Command("LC.ADD", self._commands.add(key, *items), read.integer))

    async def insert(
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
    ) -> int:
        """LC.INSERT: adds items like `add`. If the key is missing, creates the counter with these options first.

        A column of items of the same width, such as an array of bytes, is sent in one argument, and above 2^20 items in
        several calls. `width` is the number of bytes of an item in another buffer.
        """
        arguments = self._commands.insert(
            key,
            items,
            error_rate,
            exact,
            bytes,
            noCreate,
            seed=seed,
            window=window,
            manual=manual,
            volatile=volatile,
            slices=slices,
            ex=ex,
            px=px,
            exat=exat,
            pxat=pxat,
            width=width,
        )
        return await self._run(with_items("LC.INSERT", arguments, read.integer))

    @overload
    async def admit(
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
    ) -> Any: ...
    @overload
    async def admit(
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
    ) -> list[Admission]: ...
    @overload
    async def admit(
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
    ) -> Admissions: ...
    async def admit(
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
    ) -> Any:
        """LC.ADMIT: adds new members as long as the counter has fewer than `limit`. The counter stays exact.

        Returns for each item, in order: 1 (ADMITTED) if it was added, 0 (KNOWN) if it was a member already, -1
        (REJECTED) if it was rejected. With `all`, either all new items are added or none. With `dryrun`, nothing is
        changed. With `withroom`, returns `Admissions`: these outcomes, and the room that is left.
        """
        reader = read.room if withroom else read.outcomes
        arguments = self._commands.admit(
            key,
            items,
            limit,
            error_rate,
            exact,
            bytes,
            noCreate,
            all=all,
            dryrun=dryrun,
            withroom=withroom,
            seed=seed,
            window=window,
            manual=manual,
            volatile=volatile,
            slices=slices,
            ex=ex,
            px=px,
            exat=exat,
            pxat=pxat,
            width=width,
        )
        return await self._run(with_items("LC.ADMIT", arguments, reader))

    async def rem(self, key: Key, *members: Item) -> int:
        """LC.REM: removes members. Returns how many were members. The counter must be exact, and stays if it is empty
        then.
        """
        return await self._run(Command("LC.REM", self._commands.rem(key, *members), read.integer))

    async def count(self, key: Key, *keys: Key) -> int:
        """LC.COUNT: the number of distinct members of a counter, or of the union of several counters."""
        return await self._run(Command("LC.COUNT", self._commands.count(key, *keys), read.integer))

    async def countsince(self, key: Key, seconds: Seconds) -> int:
        """LC.COUNTSINCE: the number of distinct members that were added to a windowed counter in the last `seconds`
        seconds.

        Members of the whole slice in which the time span begins are counted too.
        """
        return await self._run(Command("LC.COUNTSINCE", self._commands.countsince(key, seconds), read.integer))

    async def history(self, key: Key) -> list[Slice]:
        """LC.HISTORY: for each slice of the window, newest first, its begin and the number of members since then."""
        return await self._run(Command("LC.HISTORY", self._commands.history(key), read.slices))

    async def advance(self, key: Key, slice: int | Literal["CLOCK"]) -> bool:
        """LC.ADVANCE: moves the window forward to a slice. With "CLOCK", the window follows the system clock from now
        on.
        """
        return await self._run(Command("LC.ADVANCE", self._commands.advance(key, slice), read.ok))

    async def merge(self, destination: Key, *sources: Key) -> bool:
        """LC.MERGE: makes the destination the union of itself and the sources."""
        return await self._run(Command("LC.MERGE", self._commands.merge(destination, *sources), read.ok))

    async def mergedump(self, destination: Key, *payloads: bytes) -> bool:
        """LC.MERGEDUMP: makes the destination the union of itself and values that DUMP or `to_bytes` returned."""
        return await self._run(Command("LC.MERGEDUMP", self._commands.mergedump(destination, *payloads), read.ok))

    async def unioncard(self, key: Key, *keys: Key, since: Spans = None) -> Estimate:
        """LC.UNIONCARD: the number of distinct members of all counters together, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        arguments = self._commands.unioncard(key, *keys, since=since)
        return await self._run(Command("LC.UNIONCARD", arguments, read.estimate))

    async def intercard(self, key: Key, *keys: Key, since: Spans = None) -> Estimate:
        """LC.INTERCARD: the number of members that all counters have in common, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        arguments = self._commands.intercard(key, *keys, since=since)
        return await self._run(Command("LC.INTERCARD", arguments, read.estimate))

    async def diffcard(self, key: Key, *keys: Key, since: Spans = None) -> Estimate:
        """LC.DIFFCARD: the number of members of the first counter that none of the others has, with its standard error.

        `since` limits the members to those of the last seconds: one time span for all keys, or a list with one for
        each key, where None selects all members.
        """
        return await self._run(Command("LC.DIFFCARD", self._commands.diffcard(key, *keys, since=since), read.estimate))

    async def union(self, key: Key, *keys: Key, since: Spans = None) -> list[Member]:
        """LC.UNION: the members of all counters together, in no order. All counters must be exact."""
        arguments = self._commands.union(key, *keys, since=since)
        return await self._run(Command("LC.UNION", arguments, read.members(self._member), content="members"))

    async def inter(self, key: Key, *keys: Key, since: Spans = None) -> list[Member]:
        """LC.INTER: the members that all counters have in common, in no order. All counters must be exact."""
        arguments = self._commands.inter(key, *keys, since=since)
        return await self._run(Command("LC.INTER", arguments, read.members(self._member), content="members"))

    async def diff(self, key: Key, *keys: Key, since: Spans = None) -> list[Member]:
        """LC.DIFF: the members of the first counter that none of the others has, in no order. All counters must be
        exact.
        """
        arguments = self._commands.diff(key, *keys, since=since)
        return await self._run(Command("LC.DIFF", arguments, read.members(self._member), content="members"))

    async def exists(self, key: Key, item: Item) -> bool:
        """LC.EXISTS: whether an item is a member. The counter must be exact."""
        return await self._run(Command("LC.EXISTS", self._commands.exists(key, item), read.boolean))

    async def mexists(self, key: Key, *items: Item) -> list[bool]:
        """LC.MEXISTS: whether each of several items is a member, in order. The counter must be exact."""
        return await self._run(Command("LC.MEXISTS", self._commands.mexists(key, *items), read.booleans))

    @overload
    async def query(self, key: Key, items: Rows, since: Seconds | None = None, *, width: None = None) -> Answers: ...
    @overload
    async def query(self, key: Key, items: Buffer, since: Seconds | None = None, *, width: int) -> AnswersView: ...
    @overload
    async def query(
        self,
        key: Key,
        items: Iterable[Item],
        since: Seconds | None = None,
        *,
        width: None = None,
    ) -> list[bool]: ...
    async def query(
        self,
        key: Key,
        items: Iterable[Item] | Rows | Buffer,
        since: Seconds | None = None,
        *,
        width: int | None = None,
    ) -> Any:
        """LC.QUERY: whether each of several items is a member, or was added in the last `since` seconds, in order. The
        counter must be exact.
        """
        arguments = self._commands.query(key, items, since, width=width)
        return await self._run(with_items("LC.QUERY", arguments, read.booleans))

    @overload
    async def members(
        self,
        key: Key,
        since: Seconds | None = None,
        *,
        withages: Literal[False] = False,
    ) -> list[Member]: ...
    @overload
    async def members(
        self,
        key: Key,
        since: Seconds | None = None,
        *,
        withages: Literal[True],
    ) -> list[tuple[Member, int]]: ...
    async def members(self, key: Key, since: Seconds | None = None, *, withages: bool = False) -> Any:
        """LC.MEMBERS: the members of an exact counter, or those of the last `since` seconds, in no order.

        With `withages`, each with the seconds since the slice began in which it was last added, oldest first.
        """
        reader = read.ages if withages else read.members
        arguments = self._commands.members(key, since, withages=withages)
        return await self._run(Command("LC.MEMBERS", arguments, reader(self._member), content="members"))

    async def clear(self, key: Key) -> bool:
        """LC.CLEAR: empties a counter, which is then exact. It keeps its parameters, window and time to live."""
        return await self._run(Command("LC.CLEAR", self._commands.clear(key), read.ok))

    @overload
    async def info(self, key: Key, field: None = None) -> CounterInfo: ...
    @overload
    async def info(self, key: Key, field: Literal["ERROR", "STDERR"]) -> float: ...
    @overload
    async def info(self, key: Key, field: Literal["EXACT", "BYTES", "SIZE", "COUNT"]) -> int: ...
    @overload
    async def info(self, key: Key, field: Literal["MODE"]) -> str: ...
    @overload
    async def info(self, key: Key, field: Literal["WINDOW", "SLICES", "SLICE"]) -> int | None: ...
    @overload
    async def info(self, key: Key, field: Literal["CLOCK"]) -> str | None: ...
    @overload
    async def info(self, key: Key, field: Literal["VOLATILE"]) -> bool | None: ...
    async def info(self, key: Key, field: Any = None) -> Any:
        """LC.INFO: the parameters and the state of a counter, or a single field of them."""
        reader = read.counter if field is None else read.field(field)
        return await self._run(Command("LC.INFO", self._commands.info(key, field), reader))

    async def scandump(self, key: Key, iter: int) -> Chunk:
        """LC.SCANDUMP: dumps a counter in chunks. Begin with 0, and continue with the iterator of each reply, until it
        is 0.
        """
        return await self._run(Command("LC.SCANDUMP", self._commands.scandump(key, iter), read.chunk, content="binary"))

    async def loadchunk(self, key: Key, iter: int, data: bytes) -> bool:
        """LC.LOADCHUNK: loads a chunk that `scandump` returned, with the iterator that it returned with the chunk."""
        return await self._run(Command("LC.LOADCHUNK", self._commands.loadchunk(key, iter, data), read.ok))
