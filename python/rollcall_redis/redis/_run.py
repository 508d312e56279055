"""Sends commands by clients of redis-py and valkey-py. Clients are not changed, and no client package is imported."""

import inspect
from collections.abc import Awaitable
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from ._command import Command, Word

T = TypeVar("T")

Family: TypeAlias = Literal["BF", "RF"]
"""The prefix of filter commands: RF on servers where another module owns BF."""


class Client(Protocol):
    """A blocking client of redis-py or valkey-py, also for clusters."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...
    def pipeline(self, *args: Any, **options: Any) -> Any: ...


class AsyncClient(Protocol):
    """An asyncio client of redis-py or valkey-py, also for clusters."""

    def execute_command(self, *args: Any, **options: Any) -> Awaitable[Any]: ...
    def pipeline(self, *args: Any, **options: Any) -> Any: ...


class Run(Protocol):
    """Sends a command and reads its reply."""

    def __call__(self, command: Command[T], /) -> T: ...


class RunAsync(Protocol):
    """Sends a command, awaits its reply, and reads it."""

    async def __call__(self, command: Command[T], /) -> T: ...


class Queue(Protocol):
    """Adds a command to a pipeline."""

    def __call__(self, command: Command[T], /) -> "Queued[T]": ...


class Sender:
    """Sends commands by a client, with the prefix `family` for filter commands."""

    def __init__(self, client: Any, family: Family, *, wants_async: bool):
        if family not in ("BF", "RF"):
            raise ValueError(f"family must be 'BF' or 'RF', got {family!r}")
        check_client(client, "Rollcall", wants_async=wants_async, pipelines="by pipeline()")
        self._client = client
        self._family: Family = family

    def run(self, command: Command[T]) -> T:
        return command.read([send(self._client, self._family, command, words) for words in command.calls()])

    async def run_async(self, command: Command[T]) -> T:
        return command.read([await send(self._client, self._family, command, words) for words in command.calls()])


def is_pipeline(client: Any) -> bool:
    """Whether this is a pipeline. Pipelines have a length, clients do not."""
    return hasattr(client.__class__, "__len__")


def check_client(client: Any, name: str, *, wants_async: bool, pipelines: str) -> None:
    """Rejects what is no client, and a client that the class `name`, or its asyncio class, does not take.

    `pipelines` says where that class makes its pipelines."""
    execute = getattr(client, "execute_command", None)
    if execute is None:
        raise TypeError(f"got {type(client).__name__}, expected a client of redis-py or valkey-py")
    if is_pipeline(client):
        raise TypeError(f"got a pipeline, expected a client: its pipelines are made {pipelines}")
    if inspect.iscoroutinefunction(execute) != wants_async:
        has, use = ("a blocking", name) if wants_async else ("an asyncio", f"Async{name}")
        raise TypeError(f"got {has} client: use {use}")


def send(client: Any, family: Family, command: Command[Any], words: list[Word]) -> Any:
    """Makes one call of the command so that the client returns the reply as the server sent it.

    The space after the name has no effect on the sent command, as in "CONFIG GET". But it keeps the client from
    applying the reply callbacks of `client.bf()`: its callback for BF.INFO keeps only five rows, and fails for a
    single field. The client's option `NEVER_DECODE` keeps binary replies unchanged.
    """
    name = command.name
    if name.startswith("BF."):
        name = f"{family}{name[2:]}"
    options = {} if command.content == "text" else {"NEVER_DECODE": True}
    return client.execute_command(f"{name} ", *words, **options)


class Queued(Generic[T]):
    """A command in a pipeline. It has a reply after the pipeline was executed."""

    def __init__(self, command: Command[T]):
        self._command = command
        self._state: Literal["waiting", "answered", "rejected"] = "waiting"
        self._value: T
        self._error: Exception

    @property
    def value(self) -> T:
        """The reply. Raises the error if the reply is one, and `RuntimeError` if there is no reply yet."""
        if self._state == "rejected":
            raise self._error
        if self._state == "waiting":
            raise RuntimeError(f"{self._command.name} has no reply yet: the pipeline has not been executed")
        return self._value

    def fail(self, error: Exception) -> None:
        """Stores the reason why there is no reply."""
        self._error, self._state = error, "rejected"

    def settle(self, replies: list[Any]) -> Any:
        """Reads the replies, one for each call, and stores the value. Returns it, or the error that a reply is or
        contains."""
        try:
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
            self._value = self._command.read(replies)
        except Exception as error:
            self._state, self._error = "rejected", error
            return error
        self._state = "answered"
        return self._value
