"""Tests commands without a method in redis-py, by its generic call: LC.*, BF.MERGE, BF.CLEAR, BF.DEBUG, and options of
windows."""

from variants import Suite, in_every_variant


@in_every_variant
class Generic(Suite):
    def pairs(self, reply) -> dict:
        """All lines of a reply to INFO as a dict. RESP3 has a map, RESP2 a flat list."""
        if self.variant.resp == 3:
            self.assertIs(type(reply), dict)
            return reply
        self.assertIs(type(reply), list)
        return dict(zip(reply[::2], reply[1::2], strict=True))

    def line(self, label: bytes, value):
        """The reply to INFO for a single field."""
        return {label: value} if self.variant.resp == 3 else [value]

    async def test_reserve(self):
        key = self.key()
        self.is_exactly(await self.call("LC.RESERVE", key, "ERROR", 0.005, "EXACT", 10, "SEED", 7), b"OK")
        await self.is_rejected("^item exists$", self.client.execute_command, "LC.RESERVE", key)
        self.is_exactly(await self.call("LC.INFO", key, "EXACT"), self.line(b"Exact limit", 10))
        self.is_exactly(await self.call("LC.INFO", key, "ERROR"), self.line(b"Error rate", self.double(0.005)))

    async def test_add_and_insert(self):
        key, other = self.key(), self.key("other")
        self.is_exactly(await self.call("LC.ADD", key, "ann", "ben", b"\x00\xff", "ann"), 3)
        self.is_exactly(await self.call("LC.INSERT", key, "NOCREATE", "ITEMS", "ben", "cem"), 1)
        self.is_exactly(sorted(await self.call("LC.MEMBERS", key)), [b"\x00\xff", b"ann", b"ben", b"cem"])
        await self.is_rejected(
            "^not found$", self.client.execute_command, "LC.INSERT", other, "NOCREATE", "ITEMS", "ann"
        )
        options = ("ERROR", 0.02, "EXACT", 5, "SEED", 1)
        self.is_exactly(await self.call("LC.INSERT", other, *options, "ITEMS", "ann"), 1)

    async def test_count_difference_and_merge(self):
        read, received, union = self.key("read"), self.key("received"), self.key("union")
        await self.call("LC.ADD", received, "ann", "ben", "cem")
        await self.call("LC.ADD", read, "ann", "eva")
        self.is_exactly(await self.call("LC.COUNT", received), 3)
        self.is_exactly(await self.call("LC.COUNT", received, read), 4)
        self.is_exactly(await self.call("LC.COUNT", self.key("missing")), 0)
        self.is_exactly(await self.call("LC.DIFFCARD", 2, received, read), [2, self.double(0.0)])
        self.is_exactly(await self.call("LC.MERGE", union, received, read), b"OK")
        self.is_exactly(await self.call("LC.COUNT", union), 4)

    async def test_estimates(self):
        key, half = self.key(), self.key("half")
        members = [f"user:{number}" for number in range(20_000)]
        self.assertLessEqual(await self.call("LC.ADD", key, *members), 20_000)
        await self.call("LC.ADD", half, *members[:10_000])
        self.assertAlmostEqual(await self.call("LC.COUNT", key), 20_000, delta=20_000 * 4 * 0.01)
        count, error = await self.call("LC.DIFFCARD", 2, key, half)
        self.assertEqual((type(count), type(error)), (int, type(self.double(0.5))))
        self.assertAlmostEqual(count, 10_000, delta=4 * float(error))
        await self.is_rejected("counter holds an estimate", self.client.execute_command, "LC.MEMBERS", key)

    async def test_info(self):
        await self.call("LC.ADD", self.key(), "ann", "ben")
        info = self.pairs(await self.call("LC.INFO", self.key()))
        self.assertGreater(info.pop(b"Size"), 0)
        expected = {
            b"Error rate": self.double(0.01),
            b"Exact limit": 250,
            b"Exact bytes": 16_384,
            b"Mode": b"exact",
            b"Count": 2,
            b"Standard error": self.double(0.0),
            b"Window": None,
            b"Slices": None,
            b"Slice": None,
            b"Clock": None,
            b"Volatile": None,
        }
        self.is_exactly(info, expected)
        await self.is_rejected("^not found$", self.client.execute_command, "LC.INFO", self.key("missing"))

    async def dump(self, key: str) -> list:
        chunks, iterator = [], 0
        while True:
            iterator, data = await self.call("LC.SCANDUMP", key, iterator)
            self.assertEqual((type(iterator), type(data)), (int, bytes))
            if iterator == 0:
                return chunks
            chunks.append((iterator, data))

    async def test_scandump_and_loadchunk(self):
        key, copy = self.key(), self.key("copy")
        await self.call("LC.ADD", key, *range(5000))
        chunks = await self.dump(key)
        for iterator, data in chunks:
            self.is_exactly(await self.call("LC.LOADCHUNK", copy, iterator, data), b"OK")
        self.is_exactly(await self.call("LC.COUNT", copy), await self.call("LC.COUNT", key))
        self.assertEqual(await self.dump(copy), chunks)

    async def test_wrong_type(self):
        await self.got(self.client.set, self.key(), "value")
        await self.is_rejected("^WRONGTYPE ", self.client.execute_command, "LC.ADD", self.key(), "ann")
        await self.is_rejected("^WRONGTYPE ", self.client.execute_command, "LC.COUNT", self.key())

    async def test_filters(self):
        one, other, union = self.key("one"), self.key("other"), self.key("union")
        await self.got(self.bf.madd, one, "ann", "ben")
        await self.got(self.bf.madd, other, "cem")
        self.is_exactly(await self.call("BF.MERGE", union, one, other), b"OK")
        self.is_exactly(await self.got(self.bf.mexists, union, "ann", "cem", "eva"), self.flags(1, 1, 0))
        debug = await self.call("BF.DEBUG", union)
        self.assertEqual([type(line) for line in debug], [bytes, bytes])
        self.is_exactly(await self.call("BF.CLEAR", union), b"OK")
        self.is_exactly(await self.got(self.bf.card, union), 0)

    async def has_lines(self, key: str, lines: dict) -> None:
        if self.variant.parses_info:
            # In this variant, redis-py converts every reply to BF.INFO to five lines,
            # so single fields cannot be tested.
            return
        for label, value in lines.items():
            self.is_exactly(await self.call("BF.INFO", key, label.upper()), self.line(label, value))

    async def test_a_filter_with_a_window(self):
        """The filter is created by the generic call, and used by the client's methods."""
        key = self.key()
        window = ("WINDOW", 86_400, "MANUAL", "SLICES", 4)
        self.is_exactly(await self.call("BF.RESERVE", key, 0.001, 1000, *window), True)
        self.is_exactly(await self.got(self.bf.add, key, "ann"), self.flag(1))
        self.is_exactly(await self.got(self.bf.add, key, "ann"), self.flag(0))
        self.is_exactly(await self.call("BF.ADVANCE", key, 4), b"OK")
        self.is_exactly(await self.got(self.bf.madd, key, "ann", "ben", "cem"), self.flags(0, 1, 1))
        self.is_exactly(await self.got(self.bf.insert, key, ["cem", "dan"]), self.flags(0, 1))
        self.is_exactly(await self.got(self.bf.exists, key, "ann"), self.flag(1))
        self.is_exactly(await self.got(self.bf.card, key), 4)
        self.is_exactly(await self.call("BF.ADVANCE", key, 5), b"OK")
        self.is_exactly(await self.got(self.bf.mexists, key, "ann", "ben", "dan"), self.flags(0, 1, 1))
        self.is_exactly(await self.got(self.bf.card, key), 3)
        info = await self.got(self.bf.info, key)
        found = (
            (info.capacity, info.insertedNum)
            if self.variant.parses_info
            else (info[b"Capacity"], info[b"Number of items inserted"])
        )
        self.is_exactly(found, (1000, 3))
        await self.has_lines(key, {b"Window": 86_400, b"Slice": 5, b"Clock": b"manual"})
        copy, iterator = self.key("copy"), 0
        while True:
            iterator, data = await self.got(self.bf.scandump, key, iterator)
            if iterator == 0:
                break
            self.is_exactly(await self.got(self.bf.loadchunk, copy, iterator, data), b"OK")
        self.is_exactly(await self.got(self.bf.mexists, copy, "ann", "ben", "dan"), self.flags(0, 1, 1))

    async def test_a_counter_with_a_window(self):
        key = self.key()
        window = ("WINDOW", 86_400, "MANUAL", "SLICES", 4)
        self.is_exactly(await self.call("LC.RESERVE", key, *window), b"OK")
        self.is_exactly(await self.call("LC.ADD", key, "ann", "ben"), 2)
        self.is_exactly(await self.call("LC.ADVANCE", key, 4), b"OK")
        self.is_exactly(await self.call("LC.ADD", key, "ben", "cem"), 1)
        self.is_exactly(await self.call("LC.COUNT", key), 3)
        self.is_exactly(await self.call("LC.COUNTSINCE", key, 3600), 2)
        self.is_exactly(sorted(await self.call("LC.MEMBERS", key, "SINCE", 3600)), [b"ben", b"cem"])
        counts = [(86_400, 2), (64_800, 2), (43_200, 2), (21_600, 2), (0, 3)]
        rows = [[begin, count, self.double(0.0)] for begin, count in counts]
        self.is_exactly(await self.call("LC.HISTORY", key), rows)
        info = self.pairs(await self.call("LC.INFO", key))
        self.is_exactly(
            [info[label] for label in (b"Window", b"Slices", b"Slice", b"Clock")], [86_400, 4, 4, b"manual"]
        )

    async def test_sets(self):
        window, plain = self.key("window"), self.key("plain")
        options = ("WINDOW", 86_400, "MANUAL", "SLICES", 4)
        self.is_exactly(await self.call("LC.INSERT", window, *options, "ITEMS", "ann", "ben"), 2)
        self.is_exactly(await self.call("LC.ADVANCE", window, 4), b"OK")
        await self.call("LC.ADD", window, "ben", "cem")
        await self.call("LC.ADD", plain, "cem", "dan")
        all, late, others = {b"ann", b"ben", b"cem"}, {b"ben", b"cem"}, {b"cem", b"dan"}
        for keys, since, (first, second) in [
            ((window, plain), (), (all, others)),
            ((window, plain), ("SINCE", 3600, "-"), (late, others)),
            ((window, window), ("SINCE", "-", 3600), (all, late)),
            ((window, window), ("SINCE", 3600), (late, late)),
        ]:
            for name, members in [("UNION", first | second), ("INTER", first & second), ("DIFF", first - second)]:
                number = await self.call(f"LC.{name}CARD", 2, *keys, *since)
                self.is_exactly(number, [len(members), self.double(0.0)])
                self.is_exactly(sorted(await self.call(f"LC.{name}", 2, *keys, *since)), sorted(members))
        await self.is_rejected(
            "has no window of time", self.client.execute_command, "LC.INTERCARD", 2, window, plain, "SINCE", 3600
        )
