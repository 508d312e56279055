"""What every suite needs: one connection for each way of using redis-py, and keys of its own.

A suite is written once, as coroutines, and runs in the eight variants of `VARIANTS`. Replies of a blocking client are
taken as they are, those of an asyncio client are awaited.
"""

import inspect
import os
import unittest
from typing import NamedTuple

import redis
import redis.asyncio

URL = os.environ["ROLLCALL_URL"]


class Variant(NamedTuple):
    client: type
    options: dict
    resp: int  # the protocol on the wire
    parses_info: bool  # whether client.bf().info() is a BFInfo; else what the server sent


# By default redis-py speaks RESP3, with replies shaped as in RESP2. `legacy_responses=False` is its other mode, in
# which both protocols give the same shapes.
WAYS = {
    "Resp2": ({"protocol": 2}, 2, True),
    "Resp3": ({"protocol": 3}, 3, False),
    "Default": ({}, 3, True),
    "Unified": ({"legacy_responses": False}, 3, True),
}
VARIANTS = {
    prefix + name: Variant(client, *way)
    for prefix, client in (("", redis.Redis), ("Async", redis.asyncio.Redis))
    for name, way in WAYS.items()
}


class Suite(unittest.IsolatedAsyncioTestCase):
    variant: Variant

    async def asyncSetUp(self) -> None:
        self.client = self.connect()
        self.bf = self.client.bf()

    def connect(self, **options):
        # The client's own limit of 5 seconds may pass on a busy machine, and then it sends the command again.
        client = self.variant.client.from_url(URL, socket_timeout=60, **self.variant.options, **options)
        close = client.aclose if inspect.iscoroutinefunction(getattr(client, "aclose", None)) else client.close
        self.addAsyncCleanup(self.got, close)
        return client

    async def got(self, reply, *arguments, **options):
        """What a call of the client gives: `got(bf.add, key, item)`."""
        result = reply(*arguments, **options)
        return await result if inspect.isawaitable(result) else result

    async def call(self, *words):
        """The client's generic call."""
        return await self.got(self.client.execute_command, *words)

    def key(self, name: str = "key") -> str:
        """A key that no other test has."""
        return f"{self.id()}:{name}"

    def is_exactly(self, value, expected) -> None:
        """Equal, and of equal types all the way down: 1 and True are equal in Python."""
        self.assertEqual(repr(value), repr(expected))

    async def is_rejected(self, text: str, reply, *arguments, **options) -> None:
        with self.assertRaisesRegex(redis.ResponseError, text):
            await self.got(reply, *arguments, **options)

    def is_error(self, value, text: str) -> None:
        self.assertIsInstance(value, redis.ResponseError)
        self.assertEqual(str(value), text)

    def flags(self, *values: int):
        """How the server's booleans arrive: as integers in RESP2."""
        return [bool(value) if self.variant.resp == 3 else value for value in values]

    def flag(self, value: int):
        return self.flags(value)[0]

    def double(self, value: float):
        """How the server's doubles arrive."""
        if self.variant.resp == 3:
            return value
        return (b"%d" if value == int(value) else b"%r") % value


def in_every_variant(suite: type[Suite]) -> type[Suite]:
    """Puts `suite` into its module once for each variant, under the variant's name, and takes it out itself."""
    module = inspect.getmodule(suite)
    for name, variant in VARIANTS.items():
        attributes = {"variant": variant, "__module__": suite.__module__}
        setattr(module, f"{suite.__name__}{name}", type(f"{suite.__name__}{name}", (suite,), attributes))
    return None
