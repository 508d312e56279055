"""One logical filter or counter over a cluster: the routing of `examples/cluster/partition.rs`, for redis-py.

    pip install redis xxhash

Copy this file into your application. `Partitioned` decides which part has which items; keys, hash and result are the
same in every language. `ClusterFilter` and `ClusterCounter` send commands with redis-py's cluster client. Its
pipeline writes to all nodes before it reads any reply, and follows redirections (MOVED, ASK) of single commands.
"""

import math
from typing import Any, Iterable, NamedTuple, Sequence, Union

import redis
import xxhash

Item = Union[str, bytes]

# The first 64 bits of the fraction of pi. With another seed, stored items would not be
# found.
ROUTING_SEED = 0x243F_6A88_85A3_08D3
MAX_PARTS = 16_384
MAX_CAPACITY = 1 << 53
PART_BYTES = 32 << 20
PARTS_A_NODE = 8


class Share(NamedTuple):
    """The items of a list that belong to one part, and their positions in the list."""

    part: int
    key: str
    items: list[Item]
    places: list[int]


class Partitioned:
    """The name of a logical filter or counter, and the number of its parts: a power of two that never changes."""

    def __init__(self, name: str, parts: int):
        if not 1 <= parts <= MAX_PARTS or parts & (parts - 1):
            raise ValueError(f"number of parts must be a power of two from 1 to {MAX_PARTS}, got {parts}")
        _, opened, rest = name.partition("{")
        tag, closed, _ = rest.partition("}")
        if opened and closed and tag:
            raise ValueError(f"name must be without a hash tag, which puts all parts into one slot, got {name}")
        self.name = name
        self.parts = parts

    def key(self, part: int) -> str:
        if not 0 <= part < self.parts:
            raise ValueError(f"part must be below the number of parts, got {part}")
        return f"{self.name}:{part}"

    def keys(self) -> list[str]:
        return [self.key(part) for part in range(self.parts)]

    def part_of(self, item: Item) -> int:
        encoded = item.encode() if isinstance(item, str) else item
        return xxhash.xxh3_64_intdigest(encoded, seed=ROUTING_SEED) & (self.parts - 1)

    def split(self, items: Sequence[Item]) -> list[Share]:
        """The shares of all parts that have any of these items. Shares are in the order of parts, items in the order of
        the list."""
        shares: dict[int, Share] = {}
        for place, item in enumerate(items):
            part = self.part_of(item)
            share = shares.get(part)
            if share is None:
                share = shares[part] = Share(part, self.key(part), [], [])
            share.items.append(item)
            share.places.append(place)
        return [shares[part] for part in sorted(shares)]

    def capacity_of_part(self, capacity: int) -> int:
        """The capacity of each part, for `capacity` items in total."""
        if not 1 <= capacity <= MAX_CAPACITY:
            raise ValueError(f"capacity must be from 1 to {MAX_CAPACITY}, got {capacity}")
        mean = capacity / self.parts
        return min(capacity, math.ceil(mean + 6 * math.sqrt(mean)))

    @staticmethod
    def suggested_parts(size_bytes: int, nodes: int) -> int:
        """A number of parts with which a part has at most 32 MiB, and each node eight parts or more."""
        wanted = max(-(-size_bytes // PART_BYTES), nodes * PARTS_A_NODE, 1)
        return 1 << (min(wanted, MAX_PARTS) - 1).bit_length()


def in_order(shares: Sequence[Share], replies: Sequence[Sequence[Any]]) -> list:
    """The replies in the order of the list that was split. `replies` has a list of replies for each share."""
    if len(replies) != len(shares):
        raise ValueError(f"lists of replies: expected {len(shares)}, got {len(replies)}")
    ordered = [None] * sum(len(share.places) for share in shares)
    for share, answers in zip(shares, replies):
        # If a full filter cannot grow, the last element of its reply is an error.
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        if len(answers) != len(share.places):
            raise ValueError(f"replies: expected {len(share.places)} of part {share.part}, got {len(answers)}")
        for place, answer in zip(share.places, answers):
            ordered[place] = answer
    return ordered


def unite(estimates: Iterable[tuple[int, float]]) -> tuple[int, float]:
    """The total count and its standard error, from the replies of LC.UNIONCARD for each part."""
    estimates = list(estimates)
    return sum(count for count, _ in estimates), math.sqrt(sum(error * error for _, error in estimates))


class _OverCluster:
    def __init__(self, parts: Partitioned, cluster: redis.RedisCluster):
        self.parts = parts
        self.cluster = cluster

    def _ask(self, commands: Iterable[tuple]) -> list:
        """Sends one command for each part, and returns the replies in the same order."""
        with self.cluster.pipeline() as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return pipeline.execute()

    def _ask_all(self, command: str, *arguments: Any) -> list:
        return self._ask((command, key, *arguments) for key in self.parts.keys())


class ClusterFilter(_OverCluster):
    """One logical Bloom filter over all nodes."""

    def reserve(self, error_rate: float, capacity: int) -> None:
        """Creates all parts, for `capacity` items in total."""
        self._ask_all("BF.RESERVE", error_rate, self.parts.capacity_of_part(capacity))

    def add(self, items: Sequence[Item]) -> list[bool]:
        """Adds items. Returns for each whether it is new."""
        return self._answers("BF.MADD", items)

    def may_contain(self, items: Sequence[Item]) -> list[bool]:
        """Looks up items. Returns for each whether it may have been added; False is certain."""
        return self._answers("BF.MEXISTS", items)

    def card(self) -> int:
        return sum(self._ask_all("BF.CARD"))

    def _answers(self, command: str, items: Sequence[Item]) -> list[bool]:
        shares = self.parts.split(items)
        replies = self._ask((command, share.key, *share.items) for share in shares)
        return [bool(answer) for answer in in_order(shares, replies)]


class ClusterCounter(_OverCluster):
    """One logical counter of distinct members over all nodes."""

    def reserve(self, error_rate: float) -> None:
        """Creates all parts with this standard error. With n parts, the sum has a standard error smaller by sqrt(n)."""
        self._ask_all("LC.RESERVE", "ERROR", error_rate)

    def add(self, members: Sequence[Item]) -> None:
        self._ask(("LC.ADD", share.key, *share.items) for share in self.parts.split(members))

    def estimate(self) -> tuple[int, float]:
        """The number of distinct members, and its standard error in members."""
        counts = self._ask(("LC.UNIONCARD", 1, key) for key in self.parts.keys())
        return unite((count, float(error)) for count, error in counts)
