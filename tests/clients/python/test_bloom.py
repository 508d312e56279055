"""Tests every command of redis-py's `client.bf()`. They use nothing beyond RedisBloom, so they pass with RedisBloom
too."""

from redis.commands.bf.info import BFInfo

from variants import Suite, in_every_variant

# The attributes of BFInfo, and the labels of BF.INFO that they stand for.
ATTRIBUTES = {
    "capacity": b"Capacity",
    "size": b"Size",
    "filterNum": b"Number of filters",
    "insertedNum": b"Number of items inserted",
    "expansionRate": b"Expansion rate",
}


@in_every_variant
class Bloom(Suite):
    async def info(self, key: str) -> dict:
        """The five attributes of the client's reply to BF.INFO. All are integers; the expansion of a filter that does
        not grow is None."""
        found = await self.got(self.bf.info, key)
        if self.variant.parses_info:
            self.assertIs(type(found), BFInfo)
            found = {name: found.get(name) for name in ATTRIBUTES}
        else:
            self.assertIs(type(found), dict)
            self.assertEqual(list(found), list(ATTRIBUTES.values()))
            found = {name: found[label] for name, label in ATTRIBUTES.items()}
        for name, value in found.items():
            self.assertIn(type(value), (int, type(None)) if name == "expansionRate" else (int,), name)
        return found

    async def test_reserve_and_info(self):
        key = self.key()
        self.is_exactly(await self.got(self.bf.reserve, key, 0.001, 1000), True)
        info = await self.info(key)
        self.assertGreater(info.pop("size"), 1000)
        self.assertEqual(info, {"capacity": 1000, "filterNum": 1, "insertedNum": 0, "expansionRate": 2})
        await self.is_rejected("^item exists$", self.bf.reserve, key, 0.001, 1000)

    async def test_create_is_reserve(self):
        self.is_exactly(await self.got(self.bf.create, self.key(), 1e-7, 100), True)
        self.assertEqual((await self.info(self.key()))["capacity"], 100)

    async def test_expansion(self):
        key = self.key()
        self.is_exactly(await self.got(self.bf.reserve, key, 0.01, 10, expansion=4), True)
        for start in range(0, 50, 10):
            await self.got(self.bf.madd, key, *range(start, start + 10))
        info = await self.info(key)
        self.assertEqual((info["expansionRate"], info["filterNum"], info["capacity"]), (4, 2, 50))
        self.assertEqual(info["insertedNum"], await self.got(self.bf.card, key))

    async def test_no_scale(self):
        key = self.key()
        self.is_exactly(await self.got(self.bf.reserve, key, 0.0001, 3, noScale=True), True)
        self.assertIsNone((await self.info(key))["expansionRate"])
        *added, error = await self.got(self.bf.madd, key, "a", "b", "c", "d", "e")
        self.is_exactly(added, self.flags(1, 1, 1))
        self.is_error(error, "non scaling filter is full")
        await self.is_rejected("^non scaling filter is full$", self.bf.add, key, "d")
        *added, error = await self.got(self.bf.insert, key, ["a", "d"])
        self.is_exactly(added, self.flags(0))
        self.is_error(error, "non scaling filter is full")
        self.is_exactly(await self.got(self.bf.add, key, "a"), self.flag(0))

    async def test_add_and_exists(self):
        key = self.key()
        self.is_exactly(await self.got(self.bf.exists, key, "ann"), self.flag(0))
        self.is_exactly(await self.got(self.bf.add, key, "ann"), self.flag(1))
        self.is_exactly(await self.got(self.bf.add, key, "ann"), self.flag(0))
        self.is_exactly(await self.got(self.bf.exists, key, "ann"), self.flag(1))
        self.is_exactly(await self.got(self.bf.exists, key, "ben"), self.flag(0))

    async def test_madd_and_mexists(self):
        key = self.key()
        self.is_exactly(await self.got(self.bf.mexists, key, "ann", "ben"), self.flags(0, 0))
        self.is_exactly(await self.got(self.bf.madd, key, "ann"), self.flags(1))
        self.is_exactly(await self.got(self.bf.madd, key, "ann", "ben", "ben"), self.flags(0, 1, 0))
        self.is_exactly(await self.got(self.bf.mexists, key, "ann", "cem", "ben"), self.flags(1, 0, 1))

    async def test_items_are_any_bytes(self):
        items = [b"", b"\r\n", b"\x00\xff\xfe", bytes(range(256)), "déjà vu".encode()]
        self.is_exactly(await self.got(self.bf.madd, self.key(), *items), self.flags(1, 1, 1, 1, 1))
        self.is_exactly(await self.got(self.bf.mexists, self.key(), *items, b"\xff"), self.flags(1, 1, 1, 1, 1, 0))

    async def test_insert(self):
        key = self.key()
        await self.is_rejected("^not found$", self.bf.insert, key, ["a"], noCreate=True)
        inserted = await self.got(self.bf.insert, key, ["a", "b", "a"], capacity=700, error=0.01, expansion=3)
        self.is_exactly(inserted, self.flags(1, 1, 0))
        info = await self.info(key)
        self.assertEqual((info["capacity"], info["expansionRate"], info["insertedNum"]), (700, 3, 2))
        inserted = await self.got(self.bf.insert, key, ["b", "c"], capacity=5, error=0.5, noCreate=True)
        self.is_exactly(inserted, self.flags(0, 1))
        self.assertEqual((await self.info(key))["capacity"], 700)

    async def test_insert_of_defaults_and_no_scale(self):
        self.is_exactly(await self.got(self.bf.insert, self.key(), [1, 2]), self.flags(1, 1))
        self.assertEqual((await self.info(self.key()))["expansionRate"], 2)
        key = self.key("fixed")
        self.is_exactly(await self.got(self.bf.insert, key, ["a"], capacity=9, noScale=True), self.flags(1))
        info = await self.info(key)
        self.assertEqual((info["capacity"], info["expansionRate"]), (9, None))

    async def test_insert_with_every_option(self):
        key = self.key()
        options = {"capacity": 9, "error": 0.1, "expansion": 3, "noScale": True}
        self.is_exactly(await self.got(self.bf.insert, key, ["a"], **options), self.flags(1))
        self.is_exactly(await self.got(self.bf.insert, key, ["a", "b"], noCreate=True, **options), self.flags(0, 1))
        info = await self.info(key)
        self.assertEqual((info["capacity"], info["expansionRate"]), (9, None))
        # BF.RESERVE rejects a filter that has an expansion and cannot grow. BF.INSERT
        # accepts it.
        await self.is_rejected("(?i)nonscaling", self.bf.reserve, self.key("other"), 0.1, 9, expansion=3, noScale=True)

    async def test_card(self):
        self.is_exactly(await self.got(self.bf.card, self.key()), 0)
        await self.got(self.bf.madd, self.key(), "a", "b", "a")
        self.is_exactly(await self.got(self.bf.card, self.key()), 2)

    async def dump(self, bf, key: str) -> list:
        chunks, iterator = [], 0
        while True:
            iterator, data = await self.got(bf.scandump, key, iterator)
            self.assertEqual((type(iterator), type(data)), (int, bytes))
            if iterator == 0:
                self.assertEqual(data, b"")
                return chunks
            chunks.append((iterator, data))

    async def test_scandump_and_loadchunk(self):
        key, copy = self.key(), self.key("copy")
        # The filter has 4 MB, which this module dumps in several chunks of at most 1
        # MiB.
        await self.got(self.bf.reserve, key, 0.0001, 1_500_000)
        items = [f"user:{number}" for number in range(20_000)]
        await self.got(self.bf.madd, key, *items)
        chunks = await self.dump(self.bf, key)
        self.assertGreaterEqual(len(chunks), 2)
        for iterator, data in chunks:
            self.is_exactly(await self.got(self.bf.loadchunk, copy, iterator, data), b"OK")
        self.is_exactly(await self.got(self.bf.mexists, copy, *items), self.flags(*[1] * len(items)))
        self.assertEqual(await self.info(copy), await self.info(key))
        self.assertEqual(await self.dump(self.bf, copy), chunks)

    async def test_a_client_that_decodes_can_dump(self):
        client = self.connect(decode_responses=True)
        bf = client.bf()
        await self.got(bf.madd, self.key(), *range(50))
        self.assertEqual(await self.dump(bf, self.key()), await self.dump(self.bf, self.key()))
        if self.variant.parses_info:
            self.assertEqual((await self.got(bf.info, self.key())).insertedNum, 50)

    async def test_pipeline(self):
        pipeline = self.client.pipeline(transaction=True)
        for item in ("a", "b", "a"):
            pipeline.bf().add(self.key(), item)
        pipeline.bf().mexists(self.key(), "a", "c")
        pipeline.bf().card(self.key())
        expected = [*self.flags(1, 1, 0), self.flags(1, 0), 2]
        self.is_exactly(await self.got(pipeline.execute), expected)

    async def test_errors(self):
        text = self.key("text")
        await self.got(self.client.set, text, "value")
        for rejected in (
            (self.bf.add, text, "a"),
            (self.bf.madd, text, "a"),
            (self.bf.insert, text, ["a"]),
            (self.bf.card, text),
            (self.bf.info, text),
            (self.bf.scandump, text, 0),
        ):
            await self.is_rejected("^WRONGTYPE ", *rejected)
        missing = self.key("missing")
        await self.is_rejected("^not found$", self.bf.info, missing)
        await self.is_rejected("", self.bf.scandump, missing, 0)
        await self.is_rejected("", self.bf.loadchunk, missing, 1, b"not a header")
        for rate, capacity in ((0, 100), (1, 100), ("much", 100), (0.01, 0), (0.01, -1), (0.01, "many")):
            await self.is_rejected("", self.bf.reserve, missing, rate, capacity)
        self.assertEqual(await self.got(self.client.exists, missing), 0)
