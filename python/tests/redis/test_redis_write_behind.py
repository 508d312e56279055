"""Tests counters that are collected in the process and merged once an interval."""

import asyncio
import multiprocessing
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    ConnectionError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)
from redis.retry import Retry

from rollcall_redis import Counter, Error, ParameterError
from rollcall_redis.redis import AsyncWriteBehind, WriteBehind
from rollcall_redis.redis._write_behind import passes

FAST = 0.02
"""An interval that the thread flushes in."""
NEVER = 3600
"""An interval in which only `flush` and `close` send anything."""


@pytest.fixture
def client(server: Any) -> Iterator[redis.Redis]:
    with redis.Redis(port=server.port) as client:
        client.flushall()
        yield client


def count(client: redis.Redis, key: str = "k") -> int:
    return int(client.execute_command("LC.COUNT", key))  # type: ignore[no-untyped-call]


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def is_sent(behind: WriteBehind | AsyncWriteBehind) -> bool:
    """Whether everything was sent twice."""
    collected = behind._collected
    return collected._member is None and collected._flushed is None and collected._older is None


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
def test_the_key_is_as_if_added_to_directly(server: Any, protocol: int, decode: bool) -> None:
    with redis.Redis(port=server.port, protocol=protocol, decode_responses=decode) as client:
        client.flushall()
        for members in (3, 4000):
            texts = [f"m{member}" for member in range(members)]
            client.execute_command("LC.ADD", "direct", *texts)
            with WriteBehind(client, "behind", NEVER) as behind:
                for part in range(0, members, 1000):
                    behind.update(texts[part : part + 1000])
                    behind.flush()
            direct, collected = Counter.download(client, "direct"), Counter.download(client, "behind")
            assert direct == collected


def test_a_thread_sends_what_was_collected(client: redis.Redis) -> None:
    with WriteBehind(client, "k", FAST) as behind:
        behind.add("a")
        behind.update(["b", "c"])
        wait_until(lambda: count(client) == 3)
        # Everything was sent twice, so it comes again only with its next add.
        wait_until(lambda: is_sent(behind))
        client.delete("k")
        behind.add("b")
        wait_until(lambda: count(client) == 1)
    client.delete("k")
    behind.close()
    assert not client.exists("k")
    assert not [thread for thread in threading.enumerate() if "write-behind" in thread.name]


def test_members_of_every_form_are_taken(client: redis.Redis) -> None:
    tokens = np.frombuffer(b"aaaabbbbcccc", dtype="V4")
    forms: list[tuple[Any, dict[str, Any], int]] = [
        ((text for text in ["x", "y"]), {}, 2),
        ({"x"}, {}, 1),
        ([], {}, 0),
        (iter([]), {}, 0),
        (["7", b"8"], {}, 2),
        (["", "x"], {}, 2),
        (tokens, {}, 3),
        (b"aaaabbbb", {"width": 4}, 2),
        (pa.array(["x", "y", "z"]), {}, 3),
        (pa.chunked_array([[1], [2, 3]]), {}, 3),
        (pl.Series(["x", "y"]), {}, 2),
        (pl.Series(["x", None]), {"nulls": "skip"}, 1),
        (pa.array([None] * 1000 + ["x", None, "y"]), {"nulls": "skip"}, 2),
        (pa.chunked_array([pa.nulls(3, pa.int64()), [None, 7]]), {"nulls": "skip"}, 1),
        (pa.nulls(3, pa.string()), {"nulls": "skip"}, 0),
        (["x"], {"nulls": "skip"}, 1),
    ]
    for members, options, expected in forms:
        client.delete("k")
        with WriteBehind(client, "k", NEVER) as behind:
            behind.update(members, **options)
        assert count(client) == expected, members
    client.delete("k")
    with WriteBehind(client, "k", NEVER) as behind:
        behind.add("a")
        behind.flush()
        rejections: list[Any] = ["text", "", pa.array(["x", None]), pa.array([None, "x"]), ["x", 5]]
        for rejected in rejections:
            with pytest.raises(TypeError):
                behind.update(rejected)
    assert count(client) == 1


def test_a_missing_key_is_made_with_the_options(client: redis.Redis) -> None:
    with WriteBehind(client, "k", NEVER, error_rate=0.02, exact=10, ex=timedelta(hours=1)) as behind:
        behind.add("a")
        assert 3500 < client.ttl("k") <= 3600
        behind.flush()
        for _ in range(2):
            client.delete("k")
            behind.add("b")
            behind.flush()
            assert 3500 < client.ttl("k") <= 3600
            made = Counter.download(client, "k")
            assert (made.error_rate, made.exact_limit, sorted(made.members())) == (0.02, 10, [b"a", b"b"])
        client.persist("k")
        behind.add("c")
        behind.flush()
        assert client.ttl("k") == -1
    client.delete("k")
    with WriteBehind(client, "k", NEVER, window=40, slices=4, volatile=True) as behind:
        behind.add("a")
        assert 1 <= client.ttl("k") <= 51
        behind.add("b")
    assert count(client) == 2


def test_parameters_are_those_of_the_key(client: redis.Redis) -> None:
    client.execute_command(  # type: ignore[no-untyped-call]
        "LC.RESERVE", "k", "ERROR", 0.05, "EXACT", 3, "SEED", 77, "WINDOW", 40, "MANUAL", "SLICES", 4
    )
    with WriteBehind(client, "k", NEVER) as behind:
        behind.update(["a", "b"])
        client.execute_command("LC.ADVANCE", "k", 2)  # type: ignore[no-untyped-call]
        behind.flush()
        # The flush has learnt of the slice. It added its first member anew, in case the key was missing.
        behind.add("c")
        behind.flush()
        assert client.execute_command("LC.COUNTSINCE", "k", 1) == 2  # type: ignore[no-untyped-call]
        assert count(client) == 3
    made = Counter.download(client, "k")
    assert (made.error_rate, made.exact_limit, made.seed, made.window, made.manual) == (0.05, 3, 77, 40, True)


def test_slices_go_by_the_time_of_the_server(client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock of the process is a day behind.
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with WriteBehind(client, "k", NEVER, window=60, slices=60) as behind:
        behind.update(["a", "b"])
    assert client.execute_command("LC.COUNTSINCE", "k", 30) == 2  # type: ignore[no-untyped-call]


# An eviction: the next command that may need memory frees all of it, and is rejected.
EVICT = "CONFIG SET maxmemory-policy allkeys-lru; CONFIG SET maxmemory 1; SET other x"


@pytest.mark.parametrize(
    "loss",
    [
        "DEL k",
        "LC.CLEAR k",
        "LC.REM k m1",
        "PEXPIRE k 0",
        "PEXPIRE k 1",
        "FLUSHALL",
        "FLUSHDB ASYNC",
        "UNLINK k",
        EVICT,
    ],
)
def test_members_return_after_a_loss(client: redis.Redis, loss: str) -> None:
    with WriteBehind(client, "k", NEVER) as behind:
        behind.update(["m1", "m2"])
        for _ in range(3):
            behind.flush()
            assert count(client) == 2
            try:
                for command in loss.split("; "):
                    client.execute_command(*command.split())  # type: ignore[no-untyped-call]
            except OutOfMemoryError:
                assert client.info("stats")["evicted_keys"]
            finally:
                client.config_set("maxmemory", 0)
            wait_until(lambda: count(client) < 2)


@pytest.mark.parametrize("flushes", [False, True])
def test_a_loss_takes_only_what_was_added_an_interval_before(client: redis.Redis, flushes: bool) -> None:
    interval = 0.05
    added: dict[bytes, float] = {}
    lost = []
    with WriteBehind(client, "k", interval, exact=65536) as behind:
        for number in range(400):
            member = b"%d" % number
            begun = time.monotonic()
            behind.add(member)
            # An add may end late. Then the member may be this much younger.
            added[member] = begun - (time.monotonic() - begun)
            if flushes and number % 7 == 0:
                behind.flush()
            if number % 11 == 0:
                client.delete("k")
                lost.append(time.monotonic())
            time.sleep(0.002)
    kept = set(Counter.download(client, "k").members())
    youngest = min(max(loss - added[member] for loss in lost) for member in added.keys() - kept)
    assert youngest > interval


def test_a_restarted_server_gets_the_members_not_sent(killed: Callable[[], AbstractContextManager[int]]) -> None:
    with killed() as port:
        client = redis.Redis(port=port, retry=Retry(NoBackoff(), 0))
        behind = WriteBehind(client, "k", FAST)
        behind.update(["a", "b"])
        behind.flush()
    behind.add("c")
    with pytest.raises(ConnectionError):
        behind.flush()
    with killed():
        behind.add("a")
        wait_until(lambda: count(client) >= 2)
        assert {b"a", b"c"} <= set(Counter.download(client, "k").members())
        behind.close()
        client.close()


def test_a_key_of_other_parameters_is_learnt_after_an_error(client: redis.Redis) -> None:
    with WriteBehind(client, "k", NEVER) as behind:
        behind.add("a")
        behind.flush()
        client.delete("k")
        client.execute_command("LC.RESERVE", "k", "ERROR", 0.0025, "SEED", 5)  # type: ignore[no-untyped-call]
        behind.add("b")
        with pytest.raises(ResponseError, match="counters differ in seed"):
            behind.flush()
        behind.flush()
        behind.update(str(number) for number in range(1000))
    made = Counter.download(client, "k")
    direct = Counter(0.0025, seed=5)
    direct.update(["a", "b", *(str(number) for number in range(1000))])
    assert made == direct


@pytest.mark.parametrize("members", [20, 2000])
def test_other_parameters_lose_no_later_add(client: redis.Redis, members: int) -> None:
    with WriteBehind(client, "k", NEVER) as behind:
        behind.add("a")
        behind.flush()
        client.delete("k")
        client.execute_command("LC.RESERVE", "k", "SEED", 5, "EXACT", 5000)  # type: ignore[no-untyped-call]
        behind.update(f"before:{number}" for number in range(members))
        with pytest.raises(ResponseError, match="counters differ in seed"):
            behind.flush()
        # What came before can be listed only while it is exact. What comes now is kept in any case.
        behind.update(f"now:{number}" for number in range(100))
        if members < 250:
            behind.flush()
        else:
            with pytest.raises(Error, match="members were left out"):
                behind.flush()
        behind.update(f"later:{number}" for number in range(100))
    assert count(client) == (1 + members if members < 250 else 1) + 200


def test_a_time_that_is_over_brings_no_key_back(client: redis.Redis) -> None:
    with WriteBehind(client, "k", NEVER, pxat=int(time.time() * 1000) + 2000) as behind:
        behind.add("a")
        behind.flush()
        wait_until(lambda: not client.exists("k"))
        # What was sent has expired with the key. What is added now is rejected once.
        behind.flush()
        behind.add("b")
        with pytest.raises(ResponseError, match="has passed"):
            behind.flush()
    assert not client.exists("k")


@pytest.mark.parametrize("interval", [FAST, NEVER])
def test_members_after_that_time_raise_an_error(client: redis.Redis, interval: float) -> None:
    behind = WriteBehind(client, "k", interval, pxat=int(time.time() * 1000) + 2000)
    behind.add("a")
    behind.flush()
    wait_until(lambda: not client.exists("k"))
    with pytest.raises(ResponseError, match="has passed"):
        behind.add("b")
        time.sleep(5 * FAST)
        behind.close()
    behind.close()
    assert not client.exists("k")


class Slow(redis.Connection):
    """A connection that waits before each command."""

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        time.sleep(0.06)
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]


def test_a_time_that_passes_in_a_flush_brings_no_key_back(client: redis.Redis, server: Any) -> None:
    pool = redis.ConnectionPool(connection_class=Slow, port=server.port)
    with redis.Redis(connection_pool=pool) as slow:
        for start in range(0, 60, 20):
            at = int(time.time() * 1000) + 1500 + start
            with WriteBehind(slow, "k", NEVER, pxat=at) as behind:
                behind.add("a")
                time.sleep(max(0.0, at / 1000 - 0.1 - time.time()))
                with pytest.raises(ResponseError, match="has passed"):
                    behind.flush()
                    behind.flush()
                    behind.add("b")
                    behind.flush()
            assert not client.exists("k")


def test_expired_members_do_not_return(client: redis.Redis) -> None:
    with WriteBehind(client, "k", FAST, window=40, slices=4, manual=True) as behind:
        behind.update(["a", "b"])
        wait_until(lambda: count(client) == 2)
        client.execute_command("LC.ADVANCE", "k", 9)  # type: ignore[no-untyped-call]
        wait_until(lambda: is_sent(behind))
        assert count(client) == 0


def test_expired_members_do_not_make_a_key(client: redis.Redis) -> None:
    with WriteBehind(client, "k", NEVER, window=2, slices=2, volatile=True) as behind:
        behind.update(["a", "b"])
        behind.flush()
        wait_until(lambda: not client.exists("k"))
        time.sleep(1)
        behind.flush()
        assert not client.exists("k")


def test_a_manual_window_that_was_lost_is_where_it_was(client: redis.Redis) -> None:
    with WriteBehind(client, "k", NEVER, window=40, slices=4, manual=True) as behind:
        behind.add("a")
        client.execute_command("LC.ADVANCE", "k", 5)  # type: ignore[no-untyped-call]
        behind.flush()
        behind.add("b")
        behind.flush()
        client.delete("k")
        behind.flush()
        assert client.execute_command("LC.COUNTSINCE", "k", 1) == 1  # type: ignore[no-untyped-call]
        client.execute_command("LC.ADVANCE", "k", 7)  # type: ignore[no-untyped-call]
        behind.flush()
        behind.add("c")
    assert Counter.download(client, "k").newest_slice == 7


def make_anew(client: redis.Redis) -> None:
    """Replaces the key by one with another seed."""
    with client.pipeline() as step:
        step.delete("k")
        step.execute_command("LC.RESERVE", "k", "SEED", 5)  # type: ignore[no-untyped-call]
        step.execute()


CALLS: list[Callable[[WriteBehind], None]] = [lambda behind: behind.add("b"), WriteBehind.flush, WriteBehind.close]


@pytest.mark.parametrize("call", CALLS)
def test_members_that_were_left_out_raise_an_error(client: redis.Redis, call: Callable[[WriteBehind], None]) -> None:
    behind = WriteBehind(client, "k", FAST)
    behind.add("a")
    wait_until(lambda: is_sent(behind))
    make_anew(client)
    with pytest.raises(Error, match="members were left out: seed differs"):
        behind.update(str(number) for number in range(2000))
        # A flush has failed, and the next one has learnt of the seed. It could not send an estimate with another one.
        wait_until(lambda: behind._collected._lost is not None)
        time.sleep(3 * FAST)
        call(behind)
    behind.add("c")
    behind.close()
    assert 2 <= count(client) <= 3


def test_members_of_a_lost_key_that_were_left_out_raise_an_error(client: redis.Redis) -> None:
    with WriteBehind(client, "k", NEVER) as behind:
        behind.update(str(number) for number in range(2000))
        behind.flush()
        client.delete("k")
        # The key is made anew, so the next flush reads its parameters first.
        behind.flush()
        make_anew(client)
        with pytest.raises(Error, match="members were left out"):
            behind.flush()


def test_errors_that_a_retry_heals_are_not_raised(client: redis.Redis) -> None:
    behind = WriteBehind(client, "k", FAST)
    behind.add("a")
    with behind._sending:
        client.delete("k")
        client.set("k", "x")
        behind.add("b")
    wait_until(lambda: behind._failed is not None)
    client.delete("k")
    wait_until(lambda: behind._failed is None)
    behind.add("c")
    behind.close()
    # After a close it begins again, and the end of the process would send the rest.
    behind.add("d")
    wait_until(lambda: {b"b", b"c", b"d"} <= set(Counter.download(client, "k").members()))
    behind.close()


def test_an_iterator_may_add_members_itself(client: redis.Redis) -> None:
    with WriteBehind(client, "k", NEVER) as behind:

        def members() -> Iterator[str]:
            yield "a"
            behind.add("b")
            yield "c"

        behind.update(members())
        behind.flush()
        behind.add("x" * 20_000)
    assert count(client) == 4


def test_a_wrong_password_is_raised() -> None:
    assert passes(ConnectionError())
    assert not passes(AuthenticationError())


@pytest.mark.parametrize(("text", "expected"), [("MISCONF no disk", True), ("NOPERM no", False)])
def test_errors_of_pipelines_are_told_apart(text: str, expected: bool) -> None:
    assert passes(ResponseError(f"Command # 1 (LC.INSERT k) of pipeline caused error: {text}")) == expected
    assert passes(ResponseError(text)) == expected


class Moving(redis.Connection):
    """A connection to the port that the class has at the moment."""

    at = 0

    def connect(self) -> None:
        self.port = Moving.at
        super().connect()  # type: ignore[no-untyped-call]


UNREACHABLE = 1
"""A port on which nothing listens."""


def test_a_server_that_is_away_or_fails_over_gets_all(two_servers: tuple[int, int]) -> None:
    first, second = two_servers
    replica = redis.Redis(port=second)
    replica.replicaof("127.0.0.1", first)
    Moving.at = first
    pool = redis.ConnectionPool(connection_class=Moving)
    with redis.Redis(connection_pool=pool) as client, WriteBehind(client, "k", FAST) as behind:
        sent = [f"m{member}" for member in range(400)]
        behind.update(sent[:100])
        behind.flush()
        assert client.execute_command("WAIT", 1, 10_000) == 1
        # The primary is killed, and nobody answers for a time.
        with behind._sending:
            Moving.at = UNREACHABLE
            pool.disconnect()
        for member in sent[100:300]:
            behind.add(member)
        with pytest.raises(ConnectionError):
            behind.flush()
        time.sleep(3 * FAST)
        # A replica that has not been promoted yet rejects writes.
        Moving.at = second
        with pytest.raises(ReadOnlyError):
            behind.flush()
        replica.replicaof("NO", "ONE")
        behind.update(sent[300:])
        direct = Counter()
        direct.update(sent)
        wait_until(lambda: count(replica) == direct.count())
        # The slots are those of direct adds; only the number that was exact before is kept otherwise.
        assert Counter.download(replica, "k").estimate() == direct.estimate()


def test_errors_that_no_retry_heals_are_raised(client: redis.Redis) -> None:
    client.set("text", "x")
    with pytest.raises(ResponseError, match="WRONGTYPE"), WriteBehind(client, "text", FAST) as behind:
        behind.add("a")
    behind = WriteBehind(client, "k", FAST)
    behind.add("a")
    with behind._sending:
        client.delete("k")
        client.set("k", "x")
        behind.add("b")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        for _ in range(2000):
            behind.add("c")
            time.sleep(0.01)
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        behind.close()
    client.delete("k")
    behind.close()
    assert {b"b", b"c"} <= set(Counter.download(client, "k").members())
    with pytest.raises(ResponseError, match="WINDOW"), WriteBehind(client, "k", FAST, window=60) as behind:
        behind.add("a")
    client.acl_setuser("reader", enabled=True, nopass=True, keys="*", categories=["+@all"], commands=["-lc.mergedump"])
    with redis.Redis(port=client.get_connection_kwargs()["port"], username="reader", password="x") as reader:
        behind = WriteBehind(reader, "k", NEVER)
        behind.add("d")
        with pytest.raises((NoPermissionError, ResponseError), match="no permissions"):
            behind.close()
        client.acl_setuser("reader", commands=["+lc.mergedump"])
        behind.close()
    client.acl_deluser("reader")
    assert {b"b", b"c", b"d"} <= set(Counter.download(client, "k").members())


def test_two_threads_lose_nothing(client: redis.Redis) -> None:
    with WriteBehind(client, "k", 0.001) as behind:

        def work(name: int) -> None:
            for member in range(3000):
                behind.add(f"{name}:{member}")

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    direct = Counter()
    direct.update(f"{name}:{member}" for name in range(4) for member in range(3000))
    assert Counter.download(client, "k").count() == direct.count()


def fork_and_add(behind: WriteBehind) -> None:
    behind.add("child")
    behind.close()


def test_a_fork_starts_empty(client: redis.Redis) -> None:
    with WriteBehind(client, "k", NEVER) as behind:
        behind.update(["first", "second"])
        behind.flush()
        client.delete("k")
        behind.add("parent")
        child = multiprocessing.get_context("fork").Process(target=fork_and_add, args=(behind,))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert Counter.download(client, "k").members() == [b"child"]
    assert sorted(Counter.download(client, "k").members()) == [b"child", b"first", b"parent", b"second"]


def test_the_end_of_the_process_sends_the_rest(server: Any, client: redis.Redis) -> None:
    import subprocess
    import sys

    script = f"""
import redis
from rollcall_redis.redis import WriteBehind
WriteBehind(redis.Redis(port={server.port}), "k", 3600).update(["a", "b"])
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True)
    assert count(client) == 2


def test_wrong_arguments_are_named(client: redis.Redis) -> None:
    with pytest.raises(ParameterError, match="interval must be above 0 and at most a day, got 0 seconds"):
        WriteBehind(client, "k", 0)
    with pytest.raises(TypeError, match="got a pipeline"):
        WriteBehind(client.pipeline(), "k")
    with pytest.raises(TypeError, match="got str, expected a client of redis-py or valkey-py"):
        WriteBehind("redis://127.0.0.1", "k")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="use WriteBehind"):
        AsyncWriteBehind(client, "k")
    with pytest.raises(TypeError, match="use AsyncWriteBehind"):
        WriteBehind(redis.asyncio.Redis(), "k")


def test_asyncio(server: Any, client: redis.Redis) -> None:
    async def work() -> None:
        async with redis.asyncio.Redis(port=server.port) as other:
            async with AsyncWriteBehind(other, "k", FAST) as behind:
                await asyncio.gather(*(behind.update([f"{name}", f"{name}:x"]) for name in range(50)))
                for _ in range(1000):
                    if count(client) == 100:
                        break
                    await asyncio.sleep(0.01)
                assert count(client) == 100
                await behind.update(pa.array([None, "last"]), nulls="skip")
            assert count(client) == 101
            behind = AsyncWriteBehind(other, "k", NEVER)
            await behind.add("more")
            client.set("k", "x")
            with pytest.raises(ResponseError, match="WRONGTYPE"):
                await behind.flush()
            client.delete("k")
            await behind.close()
            assert count(client) == 1
            behind = AsyncWriteBehind(other, "k", FAST)
            await behind.add("a")
            while not is_sent(behind):
                await asyncio.sleep(FAST)
            make_anew(client)
            with pytest.raises(Error, match="members were left out: seed differs"):
                await behind.update(str(number) for number in range(2000))
                while behind._collected._lost is None:
                    await asyncio.sleep(FAST)
                await asyncio.sleep(3 * FAST)
                await behind.close()

    asyncio.run(work())


def test_asyncio_goes_on_in_another_loop(server: Any, client: redis.Redis) -> None:
    behinds: list[AsyncWriteBehind] = []

    async def first() -> None:
        async with redis.asyncio.Redis(port=server.port) as other:
            behinds.append(AsyncWriteBehind(other, "k", NEVER))
            await behinds[0].add("a")

    async def second() -> None:
        (behind,) = behinds
        async with redis.asyncio.Redis(port=server.port) as other:
            behind._client, behind._interval = other, FAST
            await behind.add("b")
            for _ in range(1000):
                if count(client) == 2:
                    break
                await asyncio.sleep(0.01)
            assert count(client) == 2
            await behind.close()

    asyncio.run(first())
    asyncio.run(second())


async def update_and_close(behind: AsyncWriteBehind, members: list[str]) -> None:
    await behind.update(members)
    await behind.close()


def fork_and_update(behind: AsyncWriteBehind, client: redis.asyncio.Redis) -> None:
    # The connections belong to the loop of the parent.
    client.connection_pool.reset()  # type: ignore[no-untyped-call]
    asyncio.run(update_and_close(behind, ["child"]))


def test_a_fork_of_asyncio_starts_empty(server: Any, client: redis.Redis) -> None:
    async def work() -> None:
        async with redis.asyncio.Redis(port=server.port) as other:
            behind = AsyncWriteBehind(other, "k", NEVER)
            await behind.update(["first", "second"])
            await behind.flush()
            client.delete("k")
            await behind.add("parent")
            child = multiprocessing.get_context("fork").Process(target=fork_and_update, args=(behind, other))
            child.start()
            child.join()
            assert child.exitcode == 0
            assert Counter.download(client, "k").members() == [b"child"]
            await behind.close()

    asyncio.run(work())
    assert sorted(Counter.download(client, "k").members()) == [b"child", b"first", b"parent", b"second"]


def test_a_cluster(cluster: int) -> None:
    with redis.RedisCluster(host="127.0.0.1", port=cluster) as client:
        members = [str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))) for number in range(1000)]
        for key in ("a", "b", "c"):
            with WriteBehind(client, key, NEVER, window=3600) as behind:
                behind.update(members[:500])
                behind.flush()
                behind.update(members[500:])
            direct = Counter()
            direct.update(members)
            assert client.execute_command("LC.COUNT", key) == direct.count()
