"""The base class of all suites: one connection for each way of using redis-py, and a key name for each test.

A suite is written once, as coroutines, and runs in the eight variants of `VARIANTS`. Replies of an asyncio client
are awaited; replies of a blocking client are used directly.
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


# By default redis-py speaks RESP3 and converts replies to their RESP2 form. With `legacy_responses=False`, replies
# have the same form in both protocols.
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
        # The client's default time limit of 5 seconds may pass on a busy machine. Then the client would repeat the
        # command.
        client = self.variant.client.from_url(URL, socket_timeout=60, **self.variant.options, **options)
        close = client.aclose if inspect.iscoroutinefunction(getattr(client, "aclose", None)) else client.close
        self.addAsyncCleanup(self.got, close)
        return client

    async def got(self, reply, *arguments, **options):
        """The result of a call of the client: `await got(bf.add, key, item)`."""
        result = reply(*arguments, **options)
        return await result if inspect.isawaitable(result) else result

    async def call(self, *words):
        """Sends a command by the client's generic call."""
        return await self.got(self.client.execute_command, *words)

    def key(self, name: str = "key") -> str:
        """The name of a key that no other test uses."""
        return f"{self.id()}:{name}"

    def is_exactly(self, value, expected) -> None:
        """Asserts that two values are equal and have equal types at every depth. In Python 1 equals True, so types are
        compared too."""
        self.assertEqual(repr(value), repr(expected))

    async def is_rejected(self, text: str, reply, *arguments, **options) -> None:
        with self.assertRaisesRegex(redis.ResponseError, text):
            await self.got(reply, *arguments, **options)

    def is_error(self, value, text: str) -> None:
        self.assertIsInstance(value, redis.ResponseError)
        self.assertEqual(str(value), text)

    def flags(self, *values: int):
        """The server's booleans as this protocol delivers them: RESP2 has integers."""
        return [bool(value) if self.variant.resp == 3 else value for value in values]

    def flag(self, value: int):
        return self.flags(value)[0]

    def double(self, value: float):
        """A double of the server as this protocol delivers it."""
        if self.variant.resp == 3:
            return value
        return (b"%d" if value == int(value) else b"%r") % value


def in_every_variant(suite: type[Suite]) -> type[Suite]:
    """Decorator that replaces `suite` in its module by one class for each variant, with the variant's name."""
    module = inspect.getmodule(suite)
    for name, variant in VARIANTS.items():
        attributes = {"variant": variant, "__module__": suite.__module__}
        setattr(module, f"{suite.__name__}{name}", type(f"{suite.__name__}{name}", (suite,), attributes))
    return None
