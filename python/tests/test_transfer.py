"""Tests transfers of filters and counters to and from servers, by every client with every setting."""

import asyncio
import inspect
import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple, cast

import pytest
import redis
import redis.asyncio
import valkey
import valkey.asyncio

import rollcall_redis as rollcall
from rollcall_redis import BloomFilter, Counter, _transfer
from rollcall_redis.redis import Rollcall

LIBRARIES: dict[str, Any] = {"redis": redis, "valkey": valkey}


class Way(NamedTuple):
    library: str
    is_async: bool
    protocol: int
    decodes: bool

    def __str__(self) -> str:
        words = [self.library, "async" if self.is_async else "sync", f"RESP{self.protocol}"]
        return "-".join([*words, "decodes"] if self.decodes else words)

    def connect(self, port: int, is_cluster: bool = False) -> Any:
        library = LIBRARIES[self.library]
        name = ("Redis" if self.library == "redis" else "Valkey") + ("Cluster" if is_cluster else "")
        place = library.asyncio if self.is_async else library
        client = getattr(place, name)
        return client(host="127.0.0.1", port=port, protocol=self.protocol, decode_responses=self.decodes)


WAYS = [Way(*way) for way in itertools.product(LIBRARIES, [False, True], [2, 3], [False, True])]

Run = Callable[[Callable[[Any], Any]], Any]
"""Runs something with a client, and awaits its result if that has to be."""


def run_with(way: Way, port: int, is_cluster: bool = False) -> Run:
    def run(use: Callable[[Any], Any]) -> Any:
        if not way.is_async:
            with way.connect(port, is_cluster) as client:
                return use(client)

        async def awaited() -> Any:
            async with way.connect(port, is_cluster) as client:
                result = use(client)
                assert inspect.isawaitable(result)
                return await result

        return asyncio.run(awaited())

    return run


@pytest.fixture(params=WAYS, ids=str)
def run(request: pytest.FixtureRequest, server: Any) -> Run:
    return run_with(request.param, server.port)


@pytest.fixture
def plain(server: Any) -> Iterator[Any]:
    """A plain client that prepares keys and checks results."""
    with redis.Redis(port=server.port) as client:
        client.flushall()
        yield client
        left = cast(list[bytes], client.keys("rollcall.*"))
        assert not left, f"{left} is left"


def with_key(use: Callable[[Any, Any], Any], key: Any) -> Callable[[Any], Any]:
    """Makes a function of a client from `use`, with this key."""
    return lambda client: use(client, key)


def filled(value: Any, number: int) -> Any:
    value.update(str(item) for item in range(number))
    return value


@pytest.mark.parametrize("items", [0, 10, 50_000])
@pytest.mark.parametrize("layout", ["lines", "classic"])
def test_filters_go_and_come(run: Run, plain: Any, items: int, layout: Any) -> None:
    seen = filled(BloomFilter(1000, layout=layout), items)
    assert run(lambda client: seen.upload(client, "seen")) is None
    assert plain.ttl("seen") == -1
    command = "RF" if layout == "lines" else "BF"
    assert plain.execute_command(f"{command}.CARD", "seen") == len(seen)
    assert plain.execute_command(f"{command}.MEXISTS", "seen", "1", "zoe") == [items > 0, 0]
    copy = run(lambda client: BloomFilter.download(client, "seen"))
    assert copy == seen
    plain.execute_command(f"{command}.ADD", "seen", "zoe")
    assert "zoe" in run(lambda client: BloomFilter.download(client, b"seen", max_bytes=1 << 24))


@pytest.mark.parametrize("items", [0, 10, 50_000])
def test_counters_go_and_come(run: Run, plain: Any, items: int) -> None:
    visitors = filled(Counter(), items)
    run(lambda client: visitors.upload(client, b"visitors"))
    assert plain.execute_command("LC.COUNT", "visitors") == visitors.count()
    assert run(lambda client: Counter.download(client, "visitors")) == visitors


def test_windows_go_and_come(run: Run, plain: Any) -> None:
    sent = filled(BloomFilter(50_000, window=86_400), 40_000)
    run(lambda client: sent.upload(client, "sent"))
    assert plain.execute_command("RF.EXISTS", "sent", "5") == 1
    assert run(lambda client: BloomFilter.download(client, "sent")) == sent
    visitors = filled(Counter(window=3600), 5000)
    run(lambda client: visitors.upload(client, "visitors"))
    assert run(lambda client: Counter.download(client, "visitors")) == visitors


def test_keys_are_kept_or_replaced(run: Run, plain: Any) -> None:
    one, other = filled(BloomFilter(1000), 5), filled(BloomFilter(1000), 50)
    run(lambda client: one.upload(client, "key", ttl=100))
    assert 99_000 < plain.pttl("key") <= 100_000
    with pytest.raises(rollcall.KeyExistsError, match="the key 'key' exists"):
        run(lambda client: other.upload(client, "key"))
    assert run(lambda client: BloomFilter.download(client, "key")) == one
    run(lambda client: other.upload(client, "key", ttl=0.5e6, replace=True))
    assert run(lambda client: BloomFilter.download(client, "key")) == other and plain.ttl("key") > 100
    run(lambda client: one.upload(client, "key", replace=True))
    assert plain.ttl("key") == -1
    run(lambda client: one.upload(client, "key", ttl=timedelta(minutes=2), replace=True))
    assert 119_000 < plain.pttl("key") <= 120_000
    run(lambda client: one.upload(client, "new", replace=True))
    assert plain.exists("new")


def test_downloads_of_other_keys_are_rejected(run: Run, plain: Any) -> None:
    plain.set("text", "x")
    plain.execute_command("LC.ADD", "visitors", "ann")
    with pytest.raises(rollcall.KeyMissingError, match="there is no key 'missing'") as raised:
        run(lambda client: BloomFilter.download(client, "missing"))
    assert isinstance(raised.value, KeyError)
    for key, found in (("text", "string"), ("visitors", "RCcounter")):
        with pytest.raises(rollcall.Error, match=f"holds {found}, expected RCfilter- or MBbloom--"):
            run(with_key(lambda client, key: BloomFilter.download(client, key), key))
    with pytest.raises(rollcall.Error, match="holds string, expected RCcounter"):
        run(lambda client: Counter.download(client, "text"))
    filled(BloomFilter(1000), 5)
    plain.execute_command("RF.RESERVE", "large", "0.01", "1000000")
    with pytest.raises(rollcall.SizeError):
        run(lambda client: BloomFilter.download(client, "large", max_bytes=1000))


def test_payloads_of_dump_are_read(plain: Any) -> None:
    values: list[Any] = [
        filled(BloomFilter(1000), 500),
        filled(BloomFilter(200_000, layout="classic"), 5000),
        filled(BloomFilter(1000, window=60, manual=True), 500),
        filled(Counter(), 0),
        filled(Counter(), 100),
        filled(Counter(window=60, manual=True), 5000),
    ]
    for value in values:
        value.upload(plain, "key", replace=True)
        payload = plain.dump("key")
        assert type(value).from_bytes(payload) == value
        other: Any = Counter if isinstance(value, BloomFilter) else BloomFilter
        with pytest.raises(rollcall.CorruptError, match=r"expected a .*, got a "):
            other.from_bytes(payload)
        with pytest.raises(rollcall.CorruptError, match="CRC-64"):
            type(value).from_bytes(payload[:-1] + bytes([payload[-1] ^ 1]))
    with pytest.raises(rollcall.SizeError):
        Counter.from_bytes(payload, 100)
    plain.sadd("set", "ann")
    with pytest.raises(rollcall.CorruptError, match="expected a counter, got a value of another type"):
        Counter.from_bytes(plain.dump("set"))


def test_keys_with_any_bytes(run: Run, plain: Any) -> None:
    visitors = filled(Counter(), 5)
    for key in ("", "{", "}", "a}b", "{}x", "{tag}x", "a{b}c{d}", "ключ", b"\xff\0"):
        run(with_key(lambda client, key: visitors.upload(client, key), key))
        assert run(with_key(lambda client, key: Counter.download(client, key), key)) == visitors


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_clusters(way: Way, cluster: int) -> None:
    run = run_with(way, cluster, is_cluster=True)
    seen, visitors = filled(BloomFilter(1000), 50_000), filled(Counter(), 50_000)
    for key in ("one", "{tag}two", "three{tag}", "ключ"):
        run(with_key(lambda client, key: seen.upload(client, key, replace=True, ttl=1000), key))
        assert run(with_key(lambda client, key: BloomFilter.download(client, key), key)) == seen
        run(with_key(lambda client, key: visitors.upload(client, key, replace=True), key))
        assert run(with_key(lambda client, key: Counter.download(client, key), key)) == visitors


def test_keys_without_a_name_beside_them_are_rejected_by_clusters(cluster: int) -> None:
    with redis.RedisCluster(host="127.0.0.1", port=cluster) as client:
        client.flushall(target_nodes=client.PRIMARIES)
        with pytest.raises(redis.exceptions.RedisClusterException, match="same key slot"):
            filled(Counter(), 5).upload(client, "a}b", replace=True)
        assert client.keys("*", target_nodes=client.PRIMARIES) == []


class Failing:
    """A client whose nth command fails, before or after the server received it."""

    def __init__(self, client: Any, at: int, is_late: bool, error: BaseException):
        self.client, self.at, self.is_late, self.error, self.calls = client, at, is_late, error, 0

    def execute_command(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls == self.at and not self.is_late:
            raise self.error
        reply = self.client.execute_command(*args, **options)
        if self.calls == self.at:
            raise self.error
        return reply


class AsyncFailing(Failing):
    async def execute_command(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls == self.at and not self.is_late:
            raise self.error
        reply = await self.client.execute_command(*args, **options)
        if self.calls == self.at:
            raise self.error
        return reply


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("is_late", [False, True], ids=["unsent", "unanswered"])
@pytest.mark.parametrize("replace", [False, True], ids=["new", "replaces"])
@pytest.mark.parametrize("error", [ConnectionError("gone"), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
def test_an_upload_that_fails_leaves_nothing(
    server: Any, plain: Any, is_async: bool, is_late: bool, replace: bool, error: BaseException
) -> None:
    value, before = filled(BloomFilter(1_000_000), 1000), filled(BloomFilter(1000), 5)
    at = 0
    while True:
        at += 1
        plain.flushall()
        if replace:
            before.upload(plain, "key")
        way = Way("redis", is_async, 2, False)

        def use(client: Any, at: int = at) -> Any:
            failing = (AsyncFailing if is_async else Failing)(client, at, is_late, error)
            return value.upload(failing, "key", replace=replace)

        try:
            run_with(way, server.port)(use)
            break
        except type(error):
            pass
        kept = BloomFilter.download(plain, "key") if plain.exists("key") else None
        # The upload happens completely or not at all. If the reply to the rename was
        # lost, the key was renamed.
        assert kept in (before if replace else None, value), f"command {at}"
        assert not plain.keys("rollcall.*"), f"command {at}"
    assert at > 6 and BloomFilter.download(plain, "key") == value


def test_temporary_keys_that_cannot_be_deleted_expire(server: Any, plain: Any) -> None:
    class Gone(Failing):
        def execute_command(self, *args: Any, **options: Any) -> Any:
            if self.calls >= self.at:
                raise self.error
            return super().execute_command(*args, **options)

    with pytest.raises(ConnectionError, match="gone") as raised:
        filled(BloomFilter(1_000_000), 10).upload(Gone(plain, 5, False, ConnectionError("gone")), "key")
    assert "may be left, mostly for an hour at most: gone" in raised.value.__notes__[0]
    (left,) = plain.keys("*")
    assert left.startswith(_transfer.PREFIX) and 0 < plain.ttl(left) <= _transfer.TEMPORARY_SECONDS
    plain.delete(left)


def test_a_key_that_comes_up_meanwhile_is_kept(plain: Any) -> None:
    class Late(Failing):
        def execute_command(self, *args: Any, **options: Any) -> Any:
            if args[0] == "RENAMENX":
                self.client.set("key", "theirs")
            return self.client.execute_command(*args, **options)

    with pytest.raises(rollcall.KeyExistsError, match="has come up meanwhile"):
        filled(Counter(), 5).upload(Late(plain, 0, False, ConnectionError()), "key")
    assert plain.get("key") == b"theirs" and plain.keys("*") == [b"key"]


def test_a_download_of_a_changing_key_is_rejected(plain: Any) -> None:
    class Growing(Failing):
        def execute_command(self, *args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == 4:
                self.client.execute_command("RF.MADD", "key", *range(200_000, 600_000))
            return self.client.execute_command(*args, **options)

    filled(BloomFilter(300_000, 1e-6), 100_000).upload(plain, "key")
    with pytest.raises(rollcall.CorruptError):
        BloomFilter.download(Growing(plain, 0, False, ConnectionError()), "key")


def test_chunks_out_of_place_are_rejected() -> None:
    class Server:
        """A fake server with replies that no real server sends."""

        def __init__(self, replies: list[Any]):
            self.replies = iter(replies)

        def execute_command(self, *args: Any, **options: Any) -> Any:
            return next(self.replies)

    seen = filled(BloomFilter(1_000_000), 10)
    chunks = [seen._scandump(0)]
    while chunks[-1][0]:
        chunks.append(seen._scandump(chunks[-1][0]))
    assert BloomFilter.download(Server([b"RCfilter-", *chunks]), "key") == seen
    for wrong in ([], chunks[1:], chunks[:1] + chunks[2:], [*chunks[:2], chunks[1]], chunks[:-2]):
        with pytest.raises(rollcall.CorruptError):
            BloomFilter.download(Server([b"RCfilter-", *wrong, (0, b"")]), "key")


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), timedelta(0)])
def test_times_to_live_are_checked(plain: Any, ttl: float | timedelta) -> None:
    with pytest.raises(rollcall.ParameterError, match="ttl must be"):
        Counter().upload(plain, "key", ttl=ttl)


def test_items_added_during_an_upload_are_not_sent(plain: Any) -> None:
    seen = filled(BloomFilter(1000), 10)

    class Adding(Failing):
        def execute_command(self, *args: Any, **options: Any) -> Any:
            seen.update(str(number) for number in range(100_000))
            return self.client.execute_command(*args, **options)

    seen.upload(Adding(plain, 0, False, ConnectionError()), "key")
    assert len(BloomFilter.download(plain, "key")) == 10


def test_a_pipeline_and_a_strange_key_are_rejected(server: Any) -> None:
    with redis.Redis(port=server.port) as client:
        seen = BloomFilter(10)
        calls: list[Callable[[], Any]] = [
            lambda: seen.upload(client.pipeline(), "k"),
            lambda: BloomFilter.download(client.pipeline(), "k"),
        ]
        for rejected in calls:
            with pytest.raises(TypeError, match="got a pipeline"):
                rejected()
        with pytest.raises(TypeError, match="got Rollcall, expected a client of redis-py or valkey-py"):
            seen.upload(cast(Any, Rollcall(client)), "k")
        with pytest.raises(TypeError, match="a key is str or bytes, got int"):
            seen.upload(client, cast(Any, 5))
        with pytest.raises(rollcall.ParameterError):
            BloomFilter.download(client, "k", max_bytes=-1)
