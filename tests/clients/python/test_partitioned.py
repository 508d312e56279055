"""Tests the partitioned filter of examples/python on a cluster whose slots move: added items are found, and items go to
the same parts as in the library."""

import sys
import time
import unittest
from pathlib import Path

import redis

from variants import URL

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "examples" / "python"))

from partitioned import ROUTING_SEED, ClusterCounter, ClusterFilter, Partitioned, in_order, unite, xxhash  # noqa: E402

PARTS = 16
ITEMS = 8_000
BATCH = 500
BYTES = bytes(range(256))


class Node:
    """A connection to one primary. Replies to CLUSTER are not parsed by the client, because the subcommand is sent as a
    separate argument."""

    def __init__(self, port):
        self.port = port
        self.client = redis.Redis(port=port, socket_timeout=60)
        self.close = self.client.close
        self.ask = self.client.execute_command
        self.id = self.ask("CLUSTER", "MYID")

    def view(self):
        """The slots and the epoch of each node, as this node knows them."""
        lines = [line.split() for line in self.ask("CLUSTER", "NODES").decode().splitlines()]
        return sorted((line[0], line[6], [slots for slots in line[8:] if not slots.startswith("[")]) for line in lines)


def open_slot(slot, source, target):
    """Begins to move a slot. From now on the nodes redirect with ASK for keys that have left the source."""
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)


def move_keys(slot, source, target):
    """Moves the keys of a slot, and returns their number."""
    keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)
    return sum(source.ask("MIGRATE", "127.0.0.1", target.port, key, 0, 60_000) == b"OK" for key in keys)


def close_slot(slot, target, nodes):
    """Makes the target the owner of the slot. From now on the other nodes redirect with MOVED. All nodes must know the
    target's epoch before the next slot moves; otherwise an old message about the former owner could undo the change."""
    for node in [target, *(node for node in nodes if node is not target)]:
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
    deadline = time.monotonic() + 30
    while any(node.view() != target.view() for node in nodes):
        assert time.monotonic() < deadline, f"the nodes do not agree about slot {slot}"
        time.sleep(0.002)


class Routing(unittest.TestCase):
    def test_the_routing_hash_is_that_of_rust(self):
        """The Python hash equals that of Rust, for the test vectors of examples/cluster/partition.rs."""
        vectors = {
            b"": 0x2DDF_1348_E67D_DACE,
            b"a": 0xEFE6_972B_6321_5397,
            b"ann": 0x45D0_60C9_793F_7720,
            b"user:1": 0x079F_7ACA_4F88_9113,
            b"token-1": 0x820B_80BE_17D6_5517,
            BYTES[:16]: 0xD463_68A9_FF84_5E4D,
            BYTES[:128]: 0x39C6_8AAA_CE26_E67D,
            BYTES[:240]: 0x11AD_50FC_B281_0FE3,
            BYTES: 0x409F_9718_3BF4_4C50,
            b"rollcall" * 200: 0x78BA_BD59_6DD9_2FCC,
        }
        pinned = (ROOT / "examples/cluster/partition.rs").read_text().replace("_", "").lower()
        for item, expected in vectors.items():
            self.assertEqual(xxhash.xxh3_64_intdigest(item, seed=ROUTING_SEED), expected, item)
            self.assertIn(f"0x{expected:016x}", pinned)
            for parts in (1, 2, 64, 16_384):
                self.assertEqual(Partitioned("name", parts).part_of(item), expected % parts)
        self.assertEqual(Partitioned("name", 64).part_of("déjà"), Partitioned("name", 64).part_of("déjà".encode()))

    def test_capacities_are_those_of_rust(self):
        cases = [(1, 1, 1), (1, 1024, 1), (10, 4, 10), (10**6, 1, 10**6), (10**6, 16, 64_000), (10**9, 64, 15_648_718)]
        cases.append((1 << 53, 16_384, 549_755_813_888 + 4_448_732))
        for capacity, parts, expected in cases:
            self.assertEqual(Partitioned("name", parts).capacity_of_part(capacity), expected)
        cases = [(0, 0, 1), (1, 1, 8), (0, 3, 32), (32 << 20, 0, 1), ((32 << 20) + 1, 0, 2), (1 << 40, 3, 16_384)]
        for size, nodes, expected in cases:
            self.assertEqual(Partitioned.suggested_parts(size, nodes), expected)

    def test_bad_input_is_rejected(self):
        for parts in (-1, 0, 3, 15, 16_383, 32_768):
            self.assertRaisesRegex(ValueError, "power of two", Partitioned, "name", parts)
        for name in ("{a}", "x{a}y", "}{a}", "{{}}", "a{b}{c}"):
            self.assertRaisesRegex(ValueError, "hash tag", Partitioned, name, 4)
        for name in ("", "a", "{", "}", "}{", "{}", "{}{a}", "{a", "}a{"):
            self.assertEqual(Partitioned(name, 4).key(3), f"{name}:3")
        parts = Partitioned("name", 4)
        for part in (-1, 4):
            self.assertRaisesRegex(ValueError, "below the number of parts", parts.key, part)
        for capacity in (0, (1 << 53) + 1):
            self.assertRaisesRegex(ValueError, "capacity", parts.capacity_of_part, capacity)

    def test_replies_come_in_the_order_of_the_list(self):
        parts = Partitioned("name", 4)
        items = [str(number) for number in range(100)]
        shares = parts.split(items)
        self.assertEqual([share.part for share in shares], [0, 1, 2, 3])
        self.assertEqual(in_order(shares, [share.items for share in shares]), items)
        replies = [list(share.items) for share in shares]
        self.assertRaisesRegex(ValueError, "lists of replies: expected 4, got 3", in_order, shares, replies[:3])
        full = redis.ResponseError("non scaling filter is full")
        self.assertRaisesRegex(redis.ResponseError, "full", in_order, shares, [*replies[:3], [*replies[3][:-1], full]])
        replies[2].pop()
        self.assertRaisesRegex(ValueError, "of part 2, got", in_order, shares, replies)
        self.assertEqual(parts.split([]), [])

    def test_counts_and_variances_add_up(self):
        self.assertEqual(unite([(30, 3.0), (40, 4.0)]), (70, 5.0))
        self.assertEqual(unite([]), (0, 0.0))


class OverCluster(unittest.TestCase):
    def setUp(self):
        self.cluster = redis.RedisCluster.from_url(URL, socket_timeout=60)
        self.addCleanup(self.cluster.close)
        self.nodes = [Node(node.port) for node in self.cluster.get_primaries()]
        for node in self.nodes:
            self.addCleanup(node.close)
        self.assertGreater(len(self.nodes), 2)

    def answered(self, error: str) -> int:
        """The number of times that the nodes replied with this error."""
        fields = [node.client.info("errorstats").get(f"errorstat_{error}", {}) for node in self.nodes]
        return sum(field.get("count", 0) for field in fields)

    def test_slots_that_move_lose_no_items(self):
        seen, users = Partitioned("python:seen", PARTS), Partitioned("python:users", PARTS)
        filter_, counter = ClusterFilter(seen, self.cluster), ClusterCounter(users, self.cluster)
        filter_.reserve(0.01, ITEMS)
        counter.reserve(0.02)
        keys = [key for pair in zip(seen.keys(), users.keys()) for key in pair]
        known = [f"item:{number}" for number in range(ITEMS)]
        new, on_the_way = 0, []
        for round_, first in enumerate(range(0, ITEMS, BATCH)):
            # The commands of one list meet keys that have not moved yet, keys that cause ASK, and keys that cause
            # MOVED.
            if round_ % 3 == 0:
                for key in (keys * 2)[2 * round_ : 2 * round_ + 4]:
                    slot = self.nodes[0].ask("CLUSTER", "KEYSLOT", key)
                    at = next(at for at, node in enumerate(self.nodes) if node.ask("CLUSTER", "COUNTKEYSINSLOT", slot))
                    moving = (slot, self.nodes[at], self.nodes[(at + 1) % len(self.nodes)])
                    open_slot(*moving)
                    on_the_way.append(moving)
            elif round_ % 3 == 1:
                self.assertEqual([move_keys(*moving) for moving in on_the_way], [1] * len(on_the_way))
            else:
                for slot, _, target in on_the_way:
                    close_slot(slot, target, self.nodes)
                on_the_way = []
            answers = filter_.add(known[first : first + BATCH])
            new += sum(answers)
            counter.add(known[first : first + BATCH])
            # The old items are reported as known, at their positions in the list.
            mixed = [item for at in range(10) for item in (known[first + at], f"stranger:{first + at}")]
            self.assertTrue(all(filter_.may_contain(mixed)[::2]))
        self.assertGreater(self.answered("ASK"), 0)
        self.assertGreater(self.answered("MOVED"), 0)

        self.assertTrue(all(filter_.may_contain(known)))
        self.assertEqual(filter_.card(), new)
        # New items that are false positives: at most as many as in a full filter, plus four standard errors.
        self.assertLess(ITEMS - new, 0.01 * ITEMS + 4 * (0.01 * ITEMS) ** 0.5)
        found = sum(filter_.may_contain([f"stranger:{number}" for number in range(ITEMS)]))
        self.assertLess(found, 0.01 * ITEMS + 4 * (0.01 * ITEMS) ** 0.5)
        self.assertGreater(found, 0)
        count, error = counter.estimate()
        self.assertLess(abs(count - ITEMS), 4 * error)
        self.assertLess(error / ITEMS, 0.02 / PARTS**0.5)

    def test_errors_of_one_part_are_reported(self):
        parts = Partitioned("python:wrong", 4)
        filter_ = ClusterFilter(parts, self.cluster)
        self.assertEqual(filter_.add([]), [])
        self.cluster.set(parts.key(parts.part_of("ann")), "text")
        self.assertRaisesRegex(redis.ResponseError, "WRONGTYPE", filter_.add, ["ann", "ben", "cem"])
        # The parts are in different slots, so commands with several keys reject them.
        self.assertRaises(redis.exceptions.ClusterCrossSlotError, self.nodes[0].ask, "LC.COUNT", *parts.keys())
