"""Transfers filters and counters to and from servers.

The commands of a transfer are defined once, by generators: each generator yields a command and is sent its reply.
`run` drives a generator on a blocking or an asyncio client.
"""

import inspect
import secrets
from collections.abc import Awaitable, Generator
from datetime import timedelta
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from rollcall_redis import _rollcall
from rollcall_redis._types import Error, KeyExistsError, KeyMissingError, ParameterError

Result = TypeVar("Result")

PREFIX = b"rollcall.upload."
"""The prefix of the temporary names of partially uploaded values."""

TEMPORARY_SECONDS = 3600
"""Time to live of a partially uploaded value in seconds, from its first chunk until it is complete. If the process or
the connection ends, the value expires."""


class Client(Protocol):
    """The method of a client that transfers need."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...


class Command(NamedTuple):
    """A command, and whether its reply is binary even if the client decodes replies."""

    words: tuple[Any, ...]
    is_binary: bool = False


Steps = Generator[Command, Any, Result]
"""A generator of commands, which gets their replies and returns the result."""


def download_filter(client: Client, key: Any, max_bytes: int | None) -> Any:
    """Downloads the filter at a key."""
    return run(client, downloading(key, _rollcall._FilterLoader(max_bytes)))


def download_counter(client: Client, key: Any, max_bytes: int | None) -> Any:
    """Downloads the counter at a key."""
    return run(client, downloading(key, _rollcall._CounterLoader(max_bytes)))


def upload(
    value: "_rollcall.BloomFilter | _rollcall.Counter",
    client: Client,
    key: Any,
    *,
    ttl: float | timedelta | None,
    replace: bool,
) -> Any:
    """Stores a value at a key. No other thread may change the value meanwhile."""
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if seconds is not None and not 0.001 <= seconds <= 1e12:
        raise ParameterError(f"ttl must be from 0.001 to 10^12 seconds, got {seconds}")
    return run(client, uploading(value, key, seconds, replace))


def downloading(key: Any, loader: "_rollcall._FilterLoader | _rollcall._CounterLoader") -> Steps[Any]:
    prefixes = dict(loader.PREFIXES)
    reply = yield Command(("TYPE", key))
    found = reply.decode() if isinstance(reply, bytes) else str(reply)
    if found == "none":
        raise KeyMissingError(f"there is no key {shown(key)}")
    if found not in prefixes:
        raise Error(f"the key {shown(key)} holds {found}, expected {' or '.join(prefixes)}")
    iterator = 0
    while True:
        iterator, chunk = yield Command((f"{prefixes[found]}.SCANDUMP", key, iterator), is_binary=True)
        if iterator == 0:
            return loader.finish()
        loader.push(iterator, chunk)


def uploading(
    value: "_rollcall.BloomFilter | _rollcall.Counter", key: Any, ttl: float | None, replace: bool
) -> Steps[None]:
    prefix = value._prefix()
    if not replace and (yield Command(("EXISTS", key))):
        raise KeyExistsError(f"the key {shown(key)} exists: pass replace=True to replace it")
    temporary = beside(as_bytes(key))
    iterator, chunk = value._scandump(0)
    arrives = False
    try:
        while iterator:
            yield Command((f"{prefix}.LOADCHUNK", temporary, iterator, chunk))
            if not arrives:
                arrives = True
                yield Command(("PEXPIRE", temporary, TEMPORARY_SECONDS * 1000))
            iterator, chunk = value._scandump(iterator)
        if ttl is None:
            yield Command(("PERSIST", temporary))
        else:
            yield Command(("PEXPIRE", temporary, round(ttl * 1000)))
        if replace:
            yield Command(("RENAME", temporary, key))
        elif not (yield Command(("RENAMENX", temporary, key))):
            raise KeyExistsError(f"the key {shown(key)} has come up meanwhile: pass replace=True to replace it")
    except GeneratorExit:
        # The upload was never awaited, so nothing was sent.
        raise
    except BaseException as error:
        # Also runs if the program is interrupted or its task cancelled. If the connection is lost, DEL fails too;
        # then the key's time to live deletes it, unless the connection was lost before it was set or after it was
        # removed.
        try:
            yield Command(("DEL", temporary))
        except Exception as further:
            error.add_note(f"{shown(temporary)} may be left, mostly for an hour at most: {further}")
        raise


def beside(key: bytes) -> bytes:
    """A new temporary name in the same cluster slot as a key."""
    start = key.find(b"{") + 1
    end = key.find(b"}", start) if start else -1
    deciding = key[start:end] if start and end > start else key
    name = PREFIX + secrets.token_hex(8).encode()
    if not deciding or b"}" in deciding:
        # No other name has the same slot. A cluster then rejects the rename, and no temporary key is left.
        return name
    return name + b"{" + deciding + b"}"


def as_bytes(key: Any) -> bytes:
    """The bytes of a key, as redis-py sends it."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(cast(bytes, key))
    raise TypeError(f"a key is str or bytes, got {type(key).__name__}")


def shown(key: Any) -> str:
    """A key as text for error messages."""
    return repr(as_bytes(key).decode(errors="backslashreplace"))


def run(client: Client, steps: Steps[Result]) -> Any:
    """Runs a transfer on a client. Returns the result, or an awaitable of it for an asyncio client."""
    if not hasattr(client, "execute_command"):
        raise TypeError(f"got {type(client).__name__}, expected a client of redis-py or valkey-py")
    if hasattr(client.__class__, "__len__"):
        raise TypeError("got a pipeline, expected a client: what is sent next depends on the reply")
    try:
        reply = send(client, next(steps))
    except BaseException as error:
        return run_at_once(client, steps, None, error)
    if inspect.isawaitable(reply):
        return run_awaited(client, steps, reply)
    return run_at_once(client, steps, reply, None)


def run_at_once(client: Client, steps: Steps[Result], reply: Any, failed: BaseException | None) -> Result:
    while True:
        try:
            command = steps.send(reply) if failed is None else steps.throw(failed)
        except StopIteration as stop:
            return cast(Result, stop.value)
        try:
            reply, failed = send(client, command), None
        except BaseException as error:
            failed = error


async def run_awaited(client: Client, steps: Steps[Result], pending: Awaitable[Any]) -> Result:
    while True:
        reply, failed = None, None
        try:
            reply = await pending
        except BaseException as error:
            failed = error
        try:
            command = steps.send(reply) if failed is None else steps.throw(failed)
        except StopIteration as stop:
            return cast(Result, stop.value)
        pending = send(client, command)


def send(client: Client, command: Command) -> Any:
    # Both client libraries test only whether this option is present.
    options: dict[str, Any] = {"NEVER_DECODE": []} if command.is_binary else {}
    return client.execute_command(*command.words, **options)
