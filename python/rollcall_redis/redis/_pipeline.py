"""Pipelines: commands that are sent together, with or without a transaction."""

from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, overload

from ._command import Command
from ._counters_queued import QueuedCounters
from ._filters_queued import QueuedFilters
from ._reply import Member, binary, text
from ._run import Family, Queued, is_pipeline, send

T = TypeVar("T")


class _Queueing(Generic[Member]):
    """The common part of blocking and asyncio pipelines, which queue commands in the same way."""

    bf: QueuedFilters
    lc: QueuedCounters[Member]

    def __init__(self, pipeline: Any, *, decode_responses: bool = False, family: Family = "BF"):
        if not is_pipeline(pipeline):
            raise TypeError("got a client, expected a pipeline of one")
        self.client = pipeline
        self._family: Family = family
        self._queued: list[tuple[slice, Queued[Any]]] = []
        member: Any = text if decode_responses else binary
        self.bf = QueuedFilters(self._queue)
        self.lc = QueuedCounters(self._queue, member)

    def __len__(self) -> int:
        return len(self.client)

    def __bool__(self) -> bool:
        return True

    def _queue(self, command: Command[T]) -> Queued[T]:
        pipeline = self.client
        if _has(pipeline, "watching") and not _has(pipeline, "explicit_transaction"):
            raise RuntimeError("the pipeline watches keys and does not queue yet: call client.multi() first")
        if command.content == "binary" and _is_transaction(pipeline) and _decodes(pipeline):
            # The client decodes the whole reply of EXEC. Bytes that are not UTF-8 would break its connection.
            raise TypeError(f"{command.name} in a transaction needs a client without decode_responses")
        self._forget_reset()
        begin = len(pipeline)
        for words in command.calls():
            send(pipeline, self._family, command, words)
        queued = Queued(command)
        self._queued.append((slice(begin, len(pipeline)), queued))
        return queued

    def _forget_reset(self) -> None:
        """Drops commands that the client's pipeline no longer has, because it was reset or executed directly."""
        while self._queued and self._queued[-1][0].stop > len(self.client):
            self._queued.pop()

    def _take(self) -> list[tuple[slice, Queued[Any]]]:
        self._forget_reset()
        queued, self._queued = self._queued, []
        return queued


class Pipeline(_Queueing[Member]):
    """Commands that are sent together, on a pipeline of a blocking client.

    Each method queues a command and returns a `Queued`, which has the reply after `execute`. Other commands can be
    queued on `client`, the client's own pipeline. `execute` returns the replies to all of them.
    """

    @overload
    def __init__(self: "Pipeline[bytes]", pipeline: Any, *, family: Family = "BF") -> None: ...
    @overload
    def __init__(
        self: "Pipeline[bytes]", pipeline: Any, *, decode_responses: Literal[False], family: Family = "BF"
    ) -> None: ...
    @overload
    def __init__(
        self: "Pipeline[str]", pipeline: Any, *, decode_responses: Literal[True], family: Family = "BF"
    ) -> None: ...
    def __init__(self, pipeline: Any, *, decode_responses: bool = False, family: Family = "BF") -> None:
        super().__init__(pipeline, decode_responses=decode_responses, family=family)

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Sends all queued commands and returns the replies in order. With `raise_on_error`, raises the first error."""
        queued = self._take()
        with _failing(queued):
            replies = self.client.execute(raise_on_error=False)
        return _settle(queued, replies, raise_on_error)

    def reset(self) -> None:
        """Drops all queued commands, and stops watching keys."""
        self._queued.clear()
        self.client.reset()

    def __enter__(self) -> "Pipeline[Member]":
        self.client.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queued.clear()
        self.client.__exit__(kind, error, trace)


class AsyncPipeline(_Queueing[Member]):
    """Like `Pipeline`, for asyncio clients. Commands are queued without `await`; `execute` is awaited."""

    @overload
    def __init__(self: "AsyncPipeline[bytes]", pipeline: Any, *, family: Family = "BF") -> None: ...
    @overload
    def __init__(
        self: "AsyncPipeline[bytes]", pipeline: Any, *, decode_responses: Literal[False], family: Family = "BF"
    ) -> None: ...
    @overload
    def __init__(
        self: "AsyncPipeline[str]", pipeline: Any, *, decode_responses: Literal[True], family: Family = "BF"
    ) -> None: ...
    def __init__(self, pipeline: Any, *, decode_responses: bool = False, family: Family = "BF") -> None:
        super().__init__(pipeline, decode_responses=decode_responses, family=family)

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Sends all queued commands and returns the replies in order. With `raise_on_error`, raises the first error."""
        queued = self._take()
        with _failing(queued):
            replies = await self.client.execute(raise_on_error=False)
        return _settle(queued, replies, raise_on_error)

    async def reset(self) -> None:
        """Drops all queued commands, and stops watching keys."""
        self._queued.clear()
        await self.client.reset()

    async def __aenter__(self) -> "AsyncPipeline[Member]":
        await self.client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queued.clear()
        await self.client.__aexit__(kind, error, trace)


@contextmanager
def _failing(queued: list[tuple[slice, Queued[Any]]]) -> Generator[None]:
    """If execution raises an error, stores the error as the reply of all commands."""
    try:
        yield
    except Exception as error:
        for _, command in queued:
            command.fail(error)
        raise


def _settle(queued: list[tuple[slice, Queued[Any]]], replies: list[Any], raise_on_error: bool) -> list[Any]:
    """Stores the replies in their commands, one for each. Replies to the client's own commands stay unchanged."""
    for calls, command in reversed(queued):
        replies[calls] = [command.settle(replies[calls])]
    if raise_on_error:
        for position, reply in enumerate(replies):
            if isinstance(reply, Exception):
                reply.add_note(f"This is the reply to command {position + 1} of {len(replies)} in the pipeline.")
                raise reply
    return replies


def _has(pipeline: Any, flag: str) -> bool:
    # In pipelines of a cluster, the flag is an attribute of their strategy.
    owner = getattr(pipeline, "_execution_strategy", None) or pipeline
    return any(getattr(owner, name, False) is True for name in (flag, f"_{flag}"))


def _is_transaction(pipeline: Any) -> bool:
    # The names of the flag in blocking, asyncio and cluster clients. In pipelines of a cluster, their strategy has
    # it.
    flags = ("transaction", "is_transaction", "explicit_transaction")
    strategy = getattr(pipeline, "_execution_strategy", None)
    return any(getattr(pipeline, flag, False) is True for flag in flags) or "Transaction" in type(strategy).__name__


def _decodes(pipeline: Any) -> bool:
    # Pipelines of a cluster have no connections of their own. The node manager has the options of all connections.
    owner = getattr(pipeline, "connection_pool", None) or getattr(pipeline, "nodes_manager", None)
    if owner is None:
        owner = pipeline.cluster_client.nodes_manager
    return bool(owner.connection_kwargs.get("decode_responses"))
