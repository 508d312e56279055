"""Counters that are collected in the process and merged into a key once an interval.

A hot key gets one LC.MERGEDUMP an interval from each process instead of a command for each list of members. Every
interval begins with an empty counter, and is sent again with the next one, which changes nothing unless the server has
lost it (DEL, LC.CLEAR, expiry, eviction, a failover). So a loss before the end takes nothing that was added less than
an interval before it.
"""

import asyncio
import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Generator, Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from rollcall_redis import Counter
from rollcall_redis._types import Error, KeyMissingError, ParameterError

from ._columns import Buffer, Rows
from ._command import Key, Moment, Seconds, Word
from ._counters import CounterCommands
from ._run import AsyncClient, Client, check_client

Member: TypeAlias = str | bytes | bytearray | memoryview
Nulls: TypeAlias = Literal["error", "skip"]
"""What is done with missing values of a column."""
Transaction: TypeAlias = list[list[Word]]
Steps: TypeAlias = Generator[Transaction, list[Any], None]
"""Transactions to send, or single commands. Each gets the list of its replies. In that of a transaction, errors are
elements."""

PASSING_CLASSES = {
    "BusyLoadingError",
    "ClusterDownError",
    "ConnectionError",
    "KeyMissingError",
    "MasterDownError",
    "MovedError",
    "AskError",
    "OutOfMemoryError",
    "ReadOnlyError",
    "TimeoutError",
    "TryAgainError",
}
PASSING_WORDS = {
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOREPLICAS",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
}


def passes(error: BaseException) -> bool:
    """Whether the same command may succeed later: the server is away, is loading, is full, or has become a replica, or
    the key was deleted as soon as it was made."""
    names = {base.__name__ for base in type(error).__mro__}
    if not names.isdisjoint({"AuthenticationError", "AuthorizationError"}):
        # Both are errors of the connection, too.
        return False
    if isinstance(error, OSError) or not names.isdisjoint(PASSING_CLASSES):
        return True
    # redis-py puts words of its own before the server's, for a command in a pipeline.
    return str(error).rpartition("caused error: ")[2].split(" ", 1)[0] in PASSING_WORDS


class Part(NamedTuple):
    """A counter, and one of its members."""

    counter: Counter
    member: bytes


class Collected:
    """What one process has collected for a key, and what it knows of the key.

    The server may lack two parts: what was collected before the present interval began, and since. A flush sends both.
    If it succeeds after an interval, the older part is dropped and the next interval begins.
    """

    def __init__(self, key: Key, interval: float, options: dict[str, Any]):
        self._key = key
        self._interval = interval
        self._options = options
        self._commands = CounterCommands()
        self._lock = threading.Lock()
        self._offset = 0.0
        """The server's time less `time.monotonic()`, in seconds."""
        self._empty: Counter | None = None
        """An empty counter with the parameters of the key; None before the first add."""
        self._counter: Counter | None = None
        """What was added since the last flush."""
        self._member: bytes | None = None
        """A member of the counter; None if the counter is empty."""
        self._begun = time.monotonic()
        """When the present interval began."""
        self._flushed: Part | None = None
        """What was added between the beginning of the interval and the last flush. That may have failed because the key
        has changed, so new members are kept apart from it."""
        self._older: Part | None = None
        """What was added before the interval began."""
        self._follows_clock = False
        """Whether the key has a window that goes by the server's clock."""
        self._is_known = False
        """Whether the parameters are those of the key, as far as this process knows."""
        self._lost: BaseException | None = None
        """Why members can never be sent. The next call raises it."""

    def starts_empty(self) -> None:
        """Forgets what was collected, in a forked child: its parent sends that."""
        self._lock = threading.Lock()
        self._counter = None if self._empty is None else self._empty.copy()
        self._member = self._flushed = self._older = self._lost = None

    def forget_sent(self) -> None:
        """Forgets what was sent: no later flush may bring it back."""
        with self._lock:
            self._flushed = self._older = None

    def _forget_all(self, error: BaseException, is_new: bool) -> None:
        """Forgets what can no longer be sent, since the time of EXAT or PXAT is over. What was sent before was to
        expire."""
        with self._lock:
            if is_new or self._member is not None:
                self._lost = error
            self._counter = None if self._empty is None else self._empty.copy()
            self._member = self._flushed = self._older = None

    def loss(self) -> BaseException | None:
        """Why members can never be sent; once for each loss."""
        with self._lock:
            lost, self._lost = self._lost, None
        return lost

    def is_started(self) -> bool:
        return self._empty is not None

    def now(self) -> int | None:
        return int(time.monotonic() + self._offset) if self._follows_clock else None

    def _joined(self, older: Counter, newer: Counter) -> Counter:
        """`newer` with the members of `older` too. If their parameters differ, these are kept while they can be
        listed."""
        try:
            newer.merge(older, now=self.now())
        except Error as error:
            if older.is_exact:
                newer.update(older.members(), now=self.now())
            else:
                self._lost = Error(f"members were left out: {error}")
        return newer

    def collect_one(self, member: Member) -> bool:
        """Adds a member, unless it is the first since the last flush. Returns whether it did."""
        with self._lock:
            if self._member is None or self._counter is None or self._lost is not None:
                return False
            self._counter.add(member, self.now())
        return True

    def collect(self, items: Any, width: int | None, nulls: Nulls) -> None:
        with self._lock:
            counter = self._counter
            if counter is None:
                # There was no member yet, and there is none among these items.
                return
            member = first_of(items, width, nulls) if self._member is None else self._member
            if member is not None:
                counter.update(items, width=width, nulls=nulls, now=self.now())
                self._member = member

    def reading(self, member: bytes, creates: bool = True) -> Steps:
        """Reads the parameters of the key. A missing key is created with a member, because LC.RESERVE makes no VOLATILE
        windows."""
        if creates:
            yield [self._creation(member)]
        (dumped,) = yield [["DUMP", self._key]]
        if dumped is None:
            raise KeyMissingError(f"the key {self._key!r} was deleted as soon as it was made")
        empty = Counter.from_bytes(dumped)
        empty.clear()
        (clock,) = yield [["TIME"]]
        with self._lock:
            self._takes_time(clock)
            self._follows_clock = empty.window is not None and not empty.manual
            self._counter = empty.copy() if self._counter is None else self._joined(self._counter, empty.copy())
            self._flushed, self._older = (
                part and part._replace(counter=self._joined(part.counter, empty.copy()))
                for part in (self._flushed, self._older)
            )
            self._empty, self._is_known = empty, True

    def flushing(self) -> Steps:
        """Sends what the server may lack."""
        with self._lock:
            is_new = self._member is not None
            newest = self._flushed or self._older
            if not is_new and newest is not None and self._has_expired():
                newest = self._flushed = self._older = None
            member = newest.member if newest is not None and self._member is None else self._member
        if member is None:
            return
        try:
            # The creation would move a member that is not new to the present slice, so it is sent only if it is needed.
            creates = is_new or not (yield [["EXISTS", self._key]])[0]
            if creates and (self._options["exat"] is not None or self._options["pxat"] is not None):
                # After that time this fails, and the transaction would make a key without a time to live.
                yield [self._creation(member)]
            if not self._is_known:
                # After an error, the key may have other parameters.
                yield from self.reading(member, creates)
            now, sent = self._taken()
            is_manual = sent.window is not None and sent.manual
            commands: Transaction = [["EXISTS", self._key]]
            if creates:
                commands.append(self._creation(member))
            if is_manual:
                # A key that was made anew begins with slice 0, and takes members of slice 1 at most.
                commands.append(["LC.ADVANCE", self._key, sent.newest_slice or 0])
            commands.append(["LC.MERGEDUMP", self._key, sent.to_bytes()])
            if is_manual:
                commands.append(["LC.INFO", self._key, "SLICE"])
            replies = yield commands
            if replies[0] == 0 and (not creates or isinstance(replies[1], Exception)):
                # The merge has made a key without the options.
                yield [["UNLINK", self._key]]
                if not creates:
                    raise KeyMissingError(f"the key {self._key!r} was deleted between two commands")
            for words, reply in zip(commands, replies, strict=True):
                if isinstance(reply, Exception) and not (words[0] == "LC.ADVANCE" and "bad slice" in str(reply)):
                    raise reply
            clock = (yield [["TIME"]])[0] if self._follows_clock else None
        except BaseException as error:
            self._is_known = False
            if not str(error).endswith(" has passed"):
                raise
            self._forget_all(error, is_new)
            return
        with self._lock:
            if now - self._begun >= self._interval:
                self._begun, self._older, self._flushed = now, self._flushed, None
            if clock is not None:
                self._takes_time(clock)
            if is_manual:
                self._takes_slice(replies[-1])
        # If the key was missing, it may have other parameters than before.
        self._is_known = bool(replies[0])

    def _has_expired(self) -> bool:
        """Whether no member that was sent is in the window any more."""
        parts = (self._flushed, self._older)
        return all(part is None or part.counter.count(now=self.now()) == 0 for part in parts)

    def _taken(self) -> tuple[float, Counter]:
        """What the server may lack, and when it was taken."""
        with self._lock:
            empty, counter = self._empty, self._counter
            assert empty is not None and counter is not None
            if self._member is not None:
                if self._flushed is not None:
                    counter = self._joined(self._flushed.counter, counter)
                self._flushed, self._counter, self._member = Part(counter, self._member), empty.copy(), None
            sent = empty.copy()
            for part in (self._flushed, self._older):
                if part is not None:
                    sent = self._joined(part.counter, sent)
            return time.monotonic(), sent

    def _creation(self, member: bytes) -> list[Word]:
        words, _, _ = self._commands.insert(self._key, [member], **self._options)
        return ["LC.INSERT", *words, "ITEMS", member]

    def _takes_time(self, reply: Any) -> None:
        seconds, microseconds = reply
        self._offset = int(seconds) + int(microseconds) / 1e6 - time.monotonic()

    def _takes_slice(self, reply: Any) -> None:
        values: Any = list(reply.values()) if isinstance(reply, dict) else reply  # pyright: ignore
        for counter in (self._empty, self._counter):
            assert counter is not None
            counter.advance(int(values[0]))


BLOCK = 10_000
"""The number of items that are taken from an iterator before the lock is."""


def blocks(items: Any, width: int | None) -> Iterator[Any]:
    """The items in parts that can be sliced. An iterator runs code of the application, which may add items too."""
    names = ("dtype", "__arrow_c_array__", "__arrow_c_stream__")
    is_sliced = isinstance(items, list | tuple) or any(hasattr(items, name) for name in names)
    if is_sliced or width is not None or isinstance(items, str | bytes | bytearray):
        yield items
        return
    iterator = iter(cast(Iterable[Any], items))
    while block := list(islice(iterator, BLOCK)):
        yield block


def first_of(items: Any, width: int | None, nulls: Nulls) -> bytes | None:
    """The first member of a block; None if there is none."""
    probe = Counter(exact_bytes=1 << 20)
    if width is not None:
        view = memoryview(items)
        probe.update(view.cast("B")[:width] if view.nbytes else b"", width=width)
        return next(iter(probe.members()), None)
    start, length = 0, 1
    while start <= len(items):
        probe.clear()
        # A single text is rejected here, since it is no list of members.
        probe.update(items[start : start + length], nulls=nulls)
        if not probe:
            # Missing values may come first. Their number is unknown, so the next part is longer.
            start, length = start + length, 2 * length
        elif length > 1:
            length = 1
        else:
            return probe.members()[0]
    return None


_OPTIONS = {
    "error_rate",
    "exact",
    "bytes",
    "seed",
    "window",
    "manual",
    "volatile",
    "slices",
    "ex",
    "px",
    "exat",
    "pxat",
}


def _seconds(interval: float | timedelta) -> float:
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
    if not 0 < seconds <= 86_400:
        raise ParameterError(f"interval must be above 0 and at most a day, got {seconds} seconds")
    return seconds


def _sent(client: Any, commands: Transaction) -> Any:
    """Sends a command, or a transaction. Returns the reply of the client, which an asyncio client has to be awaited
    for. The reply to a single command is not decoded."""
    if len(commands) == 1:
        return client.execute_command(*commands[0], NEVER_DECODE=True)
    pipeline = client.pipeline(transaction=True)
    for words in commands:
        pipeline.execute_command(*words)
    return pipeline.execute(raise_on_error=False)


def _resumed(steps: Steps, replies: list[Any] | None, failed: BaseException | None) -> Transaction:
    if failed is not None:
        return steps.throw(failed)
    return steps.send(replies or [])


_OPEN: "weakref.WeakSet[WriteBehind]" = weakref.WeakSet()


class WriteBehind:
    """Collects members of a counter in this process, and merges them into a key once an interval.

        with WriteBehind(redis.Redis(), "visitors", window=86400) as visitors:
            visitors.add("ann")

    The first add reads the key, or creates it with these options. All other adds are local. A thread sends what was
    collected in an interval, and again with the next one, in case the server has lost it; `flush` does so at once, and
    so does `close`, which the end of the process calls too. While the server is away, members are collected further. An
    error that no retry heals is raised by the next call. A forked child begins empty.
    """

    @staticmethod
    def _close_all() -> None:
        """Sends the rest at the end of the process."""
        for behind in list(_OPEN):
            try:
                behind.close()
            except Exception as error:
                logging.getLogger(__name__).error("not sent at the end of the process: %s", error)

    @staticmethod
    def _begin_all() -> None:
        """Begins anew in a forked child, which has none of its parent's threads."""
        for behind in list(_OPEN):
            behind._collected.starts_empty()
            behind._begin()

    def __init__(
        self,
        client: Client,
        key: Key,
        interval: float | timedelta = 1.0,
        *,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> None:
        options = {name: value for name, value in locals().items() if name in _OPTIONS}
        check_client(client, "WriteBehind", wants_async=False, pipelines="here")
        self._client = client
        self._interval = _seconds(interval)
        self._collected = Collected(key, self._interval, options)
        self._begin()
        _OPEN.add(self)

    def _begin(self) -> None:
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failed: BaseException | None = None

    def add(self, member: Member) -> None:
        """Adds a member."""
        if self._failed is not None or not self._collected.collect_one(member) or self._thread is None:
            self.update((member,))

    def update(
        self, members: "Iterable[Member] | Rows | Buffer", *, width: int | None = None, nulls: Nulls = "error"
    ) -> None:
        """Adds members: any iterable, or a column as `Counter.update` takes it."""
        for block in blocks(members, width):
            if self._thread is None:
                self._start(block, width, nulls)
            self._collected.collect(block, width, nulls)
            if self._thread is None:
                # Another thread has closed this meanwhile.
                self._start(block, width, nulls)
        self._raise_failure()

    def flush(self) -> None:
        """Sends what was collected in this interval and the one before. Raises the error if that fails; it then stays
        collected."""
        with self._sending:
            self._flush()
        self._raise_failure()

    def _flush(self) -> None:
        self._run(self._collected.flushing())
        # Whatever failed before has healed.
        self._failed = None

    def close(self) -> None:
        """Sends what was collected, and ends the thread. Raises the error if that fails; it may be called again."""
        with self._sending:
            thread, self._thread = self._thread, None
            self._stop.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        with self._sending:
            self._flush()
            # Otherwise another thread has begun anew.
            if self._thread is None:
                self._collected.forget_sent()
                _OPEN.discard(self)
        self._raise_failure()

    def __enter__(self) -> "WriteBehind":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, members: Any, width: int | None, nulls: Nulls) -> None:
        with self._sending:
            if self._thread is not None:
                return
            if not self._collected.is_started():
                member = first_of(members, width, nulls)
                if member is None:
                    return
                self._run(self._collected.reading(member))
            self._stop = threading.Event()
            work = threading.Thread(
                target=self._flush_again, args=(self._stop,), name="rollcall write-behind", daemon=True
            )
            work.start()
            self._thread = work
            _OPEN.add(self)

    def _flush_again(self, stop: threading.Event) -> None:
        while not stop.wait(self._interval):
            try:
                with self._sending:
                    self._flush()
            except Exception as error:
                self._failed = None if passes(error) else error

    def _raise_failure(self) -> None:
        failed, self._failed = self._failed, None
        failed = self._collected.loss() or failed
        if failed is not None:
            raise failed

    def _run(self, steps: Steps) -> None:
        replies: list[Any] | None = None
        failed: BaseException | None = None
        while True:
            try:
                commands = next(steps) if replies is None and failed is None else _resumed(steps, replies, failed)
            except StopIteration:
                return
            replies, failed = None, None
            try:
                reply = _sent(self._client, commands)
                replies = [reply] if len(commands) == 1 else reply
            except BaseException as error:
                failed = error


atexit.register(WriteBehind._close_all)  # pyright: ignore[reportPrivateUsage]
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WriteBehind._begin_all)  # pyright: ignore[reportPrivateUsage]


_ASYNC: "weakref.WeakSet[AsyncWriteBehind]" = weakref.WeakSet()


class AsyncWriteBehind:
    """`WriteBehind` for asyncio: a task sends what was collected. `add` and `update` wait only the first time."""

    @staticmethod
    def _begin_all() -> None:
        """Begins anew in a forked child, which has none of its parent's tasks."""
        for behind in list(_ASYNC):
            behind._collected.starts_empty()
            behind._begin()

    def __init__(
        self,
        client: AsyncClient,
        key: Key,
        interval: float | timedelta = 1.0,
        *,
        error_rate: float | None = None,
        exact: int | None = None,
        bytes: int | None = None,
        seed: int | None = None,
        window: Seconds | None = None,
        manual: bool = False,
        volatile: bool = False,
        slices: int | None = None,
        ex: Seconds | None = None,
        px: Seconds | None = None,
        exat: Moment | None = None,
        pxat: Moment | None = None,
    ) -> None:
        options = {name: value for name, value in locals().items() if name in _OPTIONS}
        check_client(client, "WriteBehind", wants_async=True, pipelines="here")
        self._client = client
        self._interval = _seconds(interval)
        self._collected = Collected(key, self._interval, options)
        self._begin()
        _ASYNC.add(self)

    def _begin(self) -> None:
        self._sending = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._failed: BaseException | None = None

    def _runs(self) -> bool:
        """Whether the task runs. It ends with its loop, of which an application may have several."""
        return self._task is not None and not self._task.done()

    async def add(self, member: Member) -> None:
        """Adds a member."""
        if self._failed is not None or not self._runs() or not self._collected.collect_one(member):
            await self.update((member,))

    async def update(
        self, members: "Iterable[Member] | Rows | Buffer", *, width: int | None = None, nulls: Nulls = "error"
    ) -> None:
        """Adds members: any iterable, or a column as `Counter.update` takes it."""
        for block in blocks(members, width):
            if not self._runs():
                await self._start(block, width, nulls)
            self._collected.collect(block, width, nulls)
        self._raise_failure()

    async def flush(self) -> None:
        """Sends what was collected in this interval and the one before. Raises the error if that fails; it then stays
        collected."""
        async with self._sending:
            await self._flush()
        self._raise_failure()

    async def _flush(self) -> None:
        await self._run(self._collected.flushing())
        # Whatever failed before has healed.
        self._failed = None

    async def close(self) -> None:
        """Sends what was collected, and ends the task. Raises the error if that fails; it may be called again."""
        async with self._sending:
            if self._task is not None:
                self._task.cancel()
                self._task = None
            await self._flush()
            self._collected.forget_sent()
        self._raise_failure()

    async def __aenter__(self) -> "AsyncWriteBehind":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _start(self, members: Any, width: int | None, nulls: Nulls) -> None:
        async with self._sending:
            if self._runs():
                return
            if not self._collected.is_started():
                member = first_of(members, width, nulls)
                if member is None:
                    return
                await self._run(self._collected.reading(member))
            self._task = asyncio.get_running_loop().create_task(self._flush_again())

    async def _flush_again(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                async with self._sending:
                    await self._flush()
            except Exception as error:
                self._failed = None if passes(error) else error

    def _raise_failure(self) -> None:
        failed, self._failed = self._failed, None
        failed = self._collected.loss() or failed
        if failed is not None:
            raise failed

    async def _run(self, steps: Steps) -> None:
        replies: list[Any] | None = None
        failed: BaseException | None = None
        while True:
            try:
                commands = next(steps) if replies is None and failed is None else _resumed(steps, replies, failed)
            except StopIteration:
                return
            replies, failed = None, None
            try:
                reply = await _sent(self._client, commands)
                replies = [reply] if len(commands) == 1 else reply
            except BaseException as error:
                failed = error


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=AsyncWriteBehind._begin_all)  # pyright: ignore[reportPrivateUsage]
