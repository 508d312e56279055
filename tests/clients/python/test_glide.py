"""Tests every command by the generic call of Valkey GLIDE, blocking and asyncio, over RESP2 and RESP3. GLIDE has no
methods for filters."""

import inspect
import os
import unittest
from urllib.parse import urlsplit

import glide
import glide_sync

from rows import ROWS, expected, found, is_as
from variants import URL

ADDRESS = urlsplit(URL)

# Without this, GLIDE prints every error of the server.
glide.Logger.set_logger_config(glide.LogLevel.OFF)


class Glide:
    module = glide
    resp = 3

    async def asyncSetUp(self):
        module = self.module
        configuration = module.GlideClientConfiguration(
            [module.NodeAddress(ADDRESS.hostname, ADDRESS.port)],
            protocol=module.ProtocolVersion.RESP3 if self.resp == 3 else module.ProtocolVersion.RESP2,
            # In milliseconds. A busy machine may exceed the default of 250.
            request_timeout=60_000,
        )
        self.client = await self.got(module.GlideClient.create(configuration))

    async def asyncTearDown(self):
        await self.got(self.client.close())

    async def got(self, reply):
        return await reply if inspect.isawaitable(reply) else reply

    def key(self, name: str) -> str:
        return f"{self.id()}:{name}"

    async def call(self, *words):
        return await self.got(self.client.custom_command(list(words)))

    async def test_every_command(self):
        for words, reply in ROWS:
            sent = [self.key(word[1:]) if word[:1] == "@" else word.encode("latin-1") for word in words]
            with self.subTest(" ".join(words)):
                if isinstance(reply, dict) and "error" in reply:
                    with self.assertRaisesRegex(self.module.RequestError, reply["error"]):
                        await self.call(*sent)
                    continue
                value = found(await self.call(*sent))
                if isinstance(reply, dict) and "sorted" in reply:
                    value.sort()
                wanted = expected(reply, self.resp)
                self.assertTrue(is_as(value, wanted), f"{value!r}, not {wanted!r}")

    async def test_a_full_filter(self):
        """The client raises the error as the whole reply. Items added before the error stay in the filter."""
        key = self.key("small")
        await self.call("BF.RESERVE", key, "0.001", "2", "NONSCALING")
        with self.assertRaisesRegex(self.module.RequestError, "non scaling filter is full"):
            await self.call("BF.MADD", key, "a", "b", "c", "d")
        self.assertEqual(await self.call("BF.CARD", key), 2)

    async def test_chunks(self):
        await self.call("BF.RESERVE", self.key("BF"), "0.0001", "1500000")
        for family in ("BF", "LC"):
            key, copy = self.key(family), self.key(f"{family}:copy")
            await self.call(f"{family}.INSERT", key, "ITEMS", *map(str, range(5000)))
            iterator, chunks = 0, 0
            while True:
                iterator, data = await self.call(f"{family}.SCANDUMP", key, str(iterator))
                if iterator == 0:
                    break
                self.assertEqual(await self.call(f"{family}.LOADCHUNK", copy, str(iterator), data), "OK")
                chunks += 1
            self.assertGreater(chunks, 1 if family == "BF" else 0)
            with self.assertRaises(self.module.RequestError):
                await self.call(f"{family}.LOADCHUNK", copy, "1", "no header")
            equal = await self.got(self.client.dump(key)), await self.got(self.client.dump(copy))
            self.assertEqual(*equal)
            self.assertEqual(await self.call(f"{family}.MERGEDUMP", self.key(f"{family}:merged"), equal[0]), "OK")

    async def test_a_transaction(self):
        batch = self.module.Batch(is_atomic=True)
        for words in (["BF.ADD", self.key("f"), "a"], ["LC.ADD", self.key("c"), "a", "b"], ["LC.COUNT", self.key("f")]):
            batch.custom_command(words)
        added, new, error = await self.got(self.client.exec(batch, raise_on_error=False))
        self.assertEqual((added, new), (1, 2))
        self.assertRegex(str(error), "WRONGTYPE")


class Resp3(Glide, unittest.IsolatedAsyncioTestCase):
    pass


class Resp2(Resp3):
    resp = 2


class BlockingResp3(Resp3):
    module = glide_sync

    def setUp(self):
        # GLIDE prints every error of the server whatever its log level is, so standard
        # error is redirected.
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        self.addCleanup(os.close, kept)
        self.addCleanup(os.dup2, kept, 2)
        os.close(nowhere)


class BlockingResp2(BlockingResp3):
    resp = 2


class Rows(unittest.TestCase):
    def test_the_rows_have_every_command(self):
        with glide_sync.GlideClient.create(
            glide_sync.GlideClientConfiguration([glide_sync.NodeAddress(ADDRESS.hostname, ADDRESS.port)])
        ) as client:
            served = {name.decode().upper() for name in client.custom_command(["COMMAND", "LIST"])}
        here = {words[0] for words, _ in ROWS} | {"BF.SCANDUMP", "BF.LOADCHUNK", "LC.SCANDUMP", "LC.LOADCHUNK"}
        self.assertEqual(here, {name for name in served if name.startswith(("BF.", "LC."))})
