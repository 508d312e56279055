"""The variants of using `rollcall_redis.redis`: client libraries, protocols, decoding of replies, kinds of calls."""

import asyncio
import inspect
import re
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
import redis
import redis.asyncio
import valkey
import valkey.asyncio

from rollcall_redis.redis import Admission, AsyncRollcall, Rollcall


class Library(NamedTuple):
    name: str
    blocking: Any
    asyncio: Any
    blocking_cluster: Any
    asyncio_cluster: Any
    ResponseError: type[Exception]


LIBRARIES = {
    "redis-py": Library(
        "redis-py",
        redis.Redis,
        redis.asyncio.Redis,
        redis.RedisCluster,
        redis.asyncio.RedisCluster,
        redis.ResponseError,
    ),
    "valkey-py": Library(
        "valkey-py",
        valkey.Valkey,
        valkey.asyncio.Valkey,
        valkey.ValkeyCluster,
        valkey.asyncio.ValkeyCluster,
        valkey.ResponseError,
    ),
}

WAYS = ("call", "pipeline", "transaction", "await", "async pipeline", "async transaction")
# Without a protocol, redis-py uses RESP3 and converts known replies to their RESP2 form.
PROTOCOLS = {"redis-py": ("2", "3", "default"), "valkey-py": ("2", "3")}


class Variant(NamedTuple):
    library: Library
    protocol: str
    decodes: bool
    way: str

    @property
    def is_async(self) -> bool:
        return self.way.startswith(("a",))

    @property
    def is_transaction(self) -> bool:
        return self.way.endswith("transaction")

    @property
    def options(self) -> dict[str, Any]:
        # The client's default time limit may pass on a busy machine. Then the client would repeat
        # the command.
        options: dict[str, Any] = {"decode_responses": self.decodes, "socket_timeout": 60}
        return options if self.protocol == "default" else {**options, "protocol": int(self.protocol)}

    def __str__(self) -> str:
        return f"{self.library.name} RESP{self.protocol} {'str' if self.decodes else 'bytes'} {self.way}"


VARIANTS = [
    Variant(library, protocol, decodes, way)
    for library in LIBRARIES.values()
    for protocol in PROTOCOLS[library.name]
    for decodes in (False, True)
    for way in WAYS
]


class Driven:
    """The methods of `bf` and `lc` in one variant, which return the value itself."""

    def __init__(self, variant: Variant, client: Any, rollcall: Any, runner: asyncio.Runner):
        self.variant = variant
        self.client = client
        self.rollcall = rollcall
        self.runner = runner
        self.ResponseError = variant.library.ResponseError
        self.bf = Family(self, "bf")
        self.lc = Family(self, "lc")

    def got(self, value: Any) -> Any:
        """A value, or the result of an awaitable."""

        async def awaited() -> Any:
            return await value

        return self.runner.run(awaited()) if inspect.isawaitable(value) else value

    @contextmanager
    def rejects(self, pattern: str) -> Generator[pytest.ExceptionInfo[Exception]]:
        """Expects the client's error with a matching message. Notes that a pipeline adds are ignored."""
        with pytest.raises(self.ResponseError) as caught:
            yield caught
        assert re.search(pattern, str(caught.value))

    def command(self, *words: Any) -> Any:
        """Sends a command by the client's generic call."""
        return self.got(self.client.execute_command(*words))

    def invoke(self, family: str, name: str, arguments: Any, options: Any) -> Any:
        if self.variant.way in ("call", "await"):
            return self.got(getattr(getattr(self.rollcall, family), name)(*arguments, **options))
        pipe = self.rollcall.pipeline(transaction=self.variant.is_transaction)
        queued = getattr(getattr(pipe, family), name)(*arguments, **options)
        with pytest.raises(RuntimeError, match="not been executed"):
            _ = queued.value
        assert self.got(pipe.execute()) == [queued.value]
        return queued.value


class Family:
    def __init__(self, driven: Driven, family: str):
        self._driven = driven
        self._family = family

    def __getattr__(self, name: str) -> Any:
        def method(*arguments: Any, **options: Any) -> Any:
            return self._driven.invoke(self._family, name, arguments, options)

        return method


CENTURY = datetime(2100, 1, 1, tzinfo=UTC)
# Not valid UTF-8.
BINARY = b"\xff\x00\xfe"


def connect(variant: Variant, port: int) -> Any:
    """A client for a variant. `bf()` has been called on it, which adds the client's own reply callbacks."""
    make = variant.library.asyncio if variant.is_async else variant.library.blocking
    client = make(port=port, **variant.options)
    client.bf()
    return client


def close(client: Any, runner: asyncio.Runner) -> None:
    async def closed() -> None:
        await client.aclose()

    if inspect.iscoroutinefunction(client.execute_command):
        runner.run(closed())
    else:
        client.close()


def drive(variant: Variant, client: Any, runner: asyncio.Runner, decode_responses: bool = False) -> Driven:
    make: Any = AsyncRollcall if variant.is_async else Rollcall
    return Driven(variant, client, make(client, decode_responses=decode_responses), runner)


def is_exactly(value: object, expected: object) -> None:
    """Asserts that two values are equal and have equal types at every depth. In Python 1 equals True."""
    assert repr(value) == repr(expected)


def admits(value: object, expected: list[int]) -> None:
    is_exactly(value, [Admission(number) for number in expected])
