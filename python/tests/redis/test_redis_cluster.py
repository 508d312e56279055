"""Tests cluster clients of both libraries, in both protocols, with and without decoding, blocking and asyncio."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from redis_ways import LIBRARIES, Library, close, is_exactly

from rollcall_redis.redis import AsyncRollcall, Estimate, Rollcall

KEYS = [f"key:{number}" for number in range(32)]


class Way(NamedTuple):
    library: Library
    protocol: int
    decodes: bool

    def __str__(self) -> str:
        return f"{self.library.name} RESP{self.protocol} {'str' if self.decodes else 'bytes'}"


PROTOCOLS = (2, 3)
EVERY_WAY = [
    Way(library, number, decodes) for library in LIBRARIES.values() for number in PROTOCOLS for decodes in (False, True)
]


@pytest.fixture(params=EVERY_WAY, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    made: Way = request.param
    return made


@pytest.fixture
def client(way: Way, cluster: int) -> Iterator[Any]:
    make = way.library.blocking_cluster
    with make(host="127.0.0.1", port=cluster, protocol=way.protocol, decode_responses=way.decodes) as client:
        client.flushall(target_nodes=make.PRIMARIES)
        yield client


@pytest.fixture
def async_client(way: Way, cluster: int, client: Any, runner: asyncio.Runner) -> Iterator[Any]:
    """A client of a cluster that the blocking client has emptied."""
    make = way.library.asyncio_cluster

    async def made() -> Any:
        client = make(host="127.0.0.1", port=cluster, protocol=way.protocol, decode_responses=way.decodes)
        # If a new client has to send many commands at once, both libraries may send some twice, or fail.
        return await client.initialize()

    client = runner.run(made())
    yield client
    close(client, runner)


def test_commands_find_their_node(client: Any) -> None:
    rollcall = Rollcall(client)
    for key in KEYS:
        is_exactly(rollcall.bf.reserve(f"{key}:filter", 0.01, 1000), True)
        is_exactly(rollcall.bf.madd(f"{key}:filter", "a", "b", "a"), [True, True, False])
        is_exactly(rollcall.bf.info(f"{key}:filter", "ERROR"), 0.01)
        assert rollcall.bf.info(f"{key}:filter").number_of_items_inserted == 2
        is_exactly(rollcall.lc.add(key, "ann"), 1)
        is_exactly(rollcall.lc.members(key), [b"ann"])
        chunk = rollcall.lc.scandump(key, 0)
        is_exactly(rollcall.lc.loadchunk(f"{key}:copy", *chunk), True)
        is_exactly(rollcall.lc.members(f"{key}:copy"), [b"ann"])


def test_keys_of_one_slot_go_together(client: Any) -> None:
    lc = Rollcall(client).lc
    lc.insert("{day}:1", ["ann", "ben"], window=3600)
    lc.insert("{day}:2", ["ben", "cem"], window=3600)
    is_exactly(lc.unioncard("{day}:1", "{day}:2", since=3600), Estimate(3, 0.0))
    is_exactly(lc.unioncard("{day}:1", "{day}:2"), Estimate(3, 0.0))
    is_exactly(lc.merge("{day}:both", "{day}:1", "{day}:2"), True)
    is_exactly(lc.diff("{day}:both", "{day}:2"), [b"ann"])
    with pytest.raises(Exception, match=r"(?i)same (key )?slot"):
        lc.count("day:1", "day:2", "day:3", "day:4")


def test_a_pipeline_goes_to_all_nodes(client: Any, way: Way) -> None:
    with Rollcall(client).pipeline() as pipe:
        added = [pipe.lc.add(key, "ann", key) for key in KEYS]
        infos = [pipe.bf.insert(f"{key}:filter", ["a"]) for key in KEYS]
        members = pipe.lc.members(KEYS[0])
        chunk = pipe.lc.scandump(KEYS[0], 0)
        assert pipe.execute()[: len(KEYS)] == [2] * len(KEYS)
    assert [queued.value for queued in added] == [2] * len(KEYS)
    assert [queued.value for queued in infos] == [[True]] * len(KEYS)
    assert sorted(members.value) == [b"ann", KEYS[0].encode()]
    assert chunk.value.iterator == 1
    pipe = Rollcall(client).pipeline()
    pipe.lc.clear("missing")
    pipe.lc.count(KEYS[0])
    with pytest.raises(way.library.ResponseError, match="not found"):
        pipe.execute()


def test_a_transaction_is_of_one_slot(client: Any, way: Way) -> None:
    if way.library.name == "valkey-py":
        with pytest.raises(Exception, match="transaction is deprecated in cluster mode"):
            Rollcall(client).pipeline(transaction=True)
        return
    with Rollcall(client).pipeline(transaction=True) as pipe:
        if way.decodes:
            with pytest.raises(TypeError, match="in a transaction needs a client without decode_responses"):
                pipe.bf.scandump("{slot}:a", 0)
        pipe.bf.insert("{slot}:a", ["a", "b"], capacity=1000)
        pipe.lc.add("{slot}:b", "ann")
        info = pipe.bf.info("{slot}:a", "CAPACITY")
        assert pipe.execute() == [[True, True], 1, 1000]
        is_exactly(info.value, 1000)


def test_a_watched_key_makes_a_transaction_fail(client: Any, way: Way) -> None:
    if way.library.name == "valkey-py":
        pytest.skip("has no transactions in clusters")
    rollcall = Rollcall(client)
    with rollcall.pipeline(transaction=True) as pipe:
        pipe.client.watch("received")
        with pytest.raises(RuntimeError, match=r"call client.multi\(\) first"):
            pipe.lc.count("received")
        pipe.client.multi()
        pipe.lc.add("received", "ann")
        assert pipe.execute() == [1]
        pipe.client.watch("received")
        rollcall.lc.add("received", "ben")
        pipe.client.multi()
        rejected = pipe.lc.add("received", "cem")
        with pytest.raises(Exception, match="Watched variable changed"):
            pipe.execute()
        with pytest.raises(Exception, match="Watched variable changed"):
            _ = rejected.value
    assert rollcall.lc.count("received") == 2


def test_asyncio(async_client: Any, way: Way, runner: asyncio.Runner) -> None:
    async def work() -> None:
        rollcall = AsyncRollcall(async_client)
        assert await asyncio.gather(*(rollcall.lc.add(key, "ann") for key in KEYS)) == [1] * len(KEYS)
        is_exactly(await rollcall.lc.members(KEYS[0]), [b"ann"])
        is_exactly(await rollcall.bf.insert("seen", ["a"], capacity=1000), [True])
        is_exactly(await rollcall.bf.info("seen", "FPR"), await rollcall.bf.info("seen", "FPR"))
        chunk = await rollcall.bf.scandump("seen", 0)
        assert chunk.iterator == 1 and isinstance(chunk.data, bytes)
        async with rollcall.pipeline() as pipe:
            counts = [pipe.lc.count(key) for key in KEYS]
            chunk_again = pipe.bf.scandump("seen", 0)
            members = pipe.lc.members(KEYS[1])
            await pipe.execute()
            assert [count.value for count in counts] == [1] * len(KEYS)
            assert chunk_again.value == chunk and members.value == [b"ann"]
        if way.library.name == "redis-py":
            pipe = rollcall.pipeline(transaction=True)
            if way.decodes:
                with pytest.raises(TypeError, match="in a transaction needs a client without decode_responses"):
                    pipe.bf.scandump("seen", 0)
            pipe.bf.card("seen")
            pipe.bf.info("seen", "CAPACITY")
            is_exactly(await pipe.execute(), [1, 1000])

    runner.run(work())
