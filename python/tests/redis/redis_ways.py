"""Ways of using `rollcall_redis.redis`: each client library, protocol and decoding, and each kind of call."""

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
# Without a protocol redis-py speaks RESP3 and shapes the replies that it knows as those of RESP2.
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
        # A client's own limit may pass on a busy machine, and then it sends the command again.
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
    """`bf` and `lc` in one way of calling."""

    def __init__(self, variant: Variant, client: Any, rollcall: Any, runner: asyncio.Runner):
        self.variant = variant
        self.client = client
        self.rollcall = rollcall
        self.runner = runner
        self.ResponseError = variant.library.ResponseError
        self.bf = Family(self, "bf")
        self.lc = Family(self, "lc")

    def got(self, value: Any) -> Any:
        """A value, or what an awaitable gives."""

        async def awaited() -> Any:
            return await value

        return self.runner.run(awaited()) if inspect.isawaitable(value) else value

    @contextmanager
    def rejects(self, pattern: str) -> Generator[pytest.ExceptionInfo[Exception]]:
        """Expects the client's error, with a message that matches. Notes of a pipeline are no part of that."""
        with pytest.raises(self.ResponseError) as caught:
            yield caught
        assert re.search(pattern, str(caught.value))

    def command(self, *words: Any) -> Any:
        """The client's own call."""
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
# No text in UTF-8.
BINARY = b"\xff\x00\xfe"


def connect(variant: Variant, port: int) -> Any:
    """A client for a variant. `bf()` was called on it, which sets the callbacks of its own API on the client."""
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
    """Equal, and of equal types all the way down: 1 and True are equal in Python."""
    assert repr(value) == repr(expected)


def admits(value: object, expected: list[int]) -> None:
    is_exactly(value, [Admission(number) for number in expected])
