"""Tests the types that mypy and pyright infer for commands. This file is not run."""

from typing import Any, assert_type

import numpy as np
import redis
import redis.asyncio
import valkey
import valkey.asyncio
from numpy.typing import NDArray

from rollcall_redis.redis import (
    Admission,
    Admissions,
    AsyncPipeline,
    AsyncRollcall,
    Chunk,
    CounterInfo,
    Estimate,
    FilterInfo,
    Pipeline,
    Queued,
    Rollcall,
    Slice,
)


def calls() -> None:
    rollcall = Rollcall(redis.Redis())
    assert_type(rollcall, Rollcall[bytes])
    assert_type(rollcall.lc.count("key"), int)
    assert_type(rollcall.lc.add("key", "ann", b"ben", 7), int)
    assert_type(rollcall.lc.rem("key", "ann", b"ben"), int)
    assert_type(rollcall.lc.members("key"), list[bytes])
    assert_type(rollcall.lc.diff("key", "other"), list[bytes])
    assert_type(rollcall.lc.unioncard("key", since=60), Estimate)
    assert_type(rollcall.lc.unioncard("key", since=60).count, int)
    assert_type(rollcall.lc.diffcard("key", "other", since=[60, None]).standard_error, float)
    assert_type(rollcall.lc.history("key"), list[Slice])
    assert_type(rollcall.lc.info("key"), CounterInfo)
    assert_type(rollcall.lc.info("key", "STDERR"), float)
    assert_type(rollcall.lc.info("key", "WINDOW"), int | None)
    assert_type(rollcall.lc.admit("key", ["ann"], limit=3), list[Admission])
    assert_type(rollcall.lc.admit("key", ["ann"], limit=3, withroom=True), Admissions)
    assert_type(rollcall.bf.admit("key", ["ann"], 3, all=True, withroom=True).retry_after, int | None)
    assert_type(rollcall.lc.query("key", ["ann", 7], since=60), list[bool])
    assert_type(rollcall.lc.members("key", withages=True), list[tuple[bytes, int]])
    assert_type(rollcall.lc.scandump("key", 0), Chunk)
    assert_type(rollcall.bf.reserve("key", 0.01, 1000, noScale=True), bool)
    assert_type(rollcall.bf.madd("key", "a", "b"), list[bool])
    assert_type(rollcall.bf.insert("key", ["a"], capacity=1000), list[bool])
    tokens: NDArray[np.bytes_] = np.array([b"ann", b"ben"])
    texts: NDArray[np.str_] = np.array(["ann", "ben"])
    assert_type(rollcall.bf.insert("key", tokens), NDArray[np.bool_])
    assert_type(rollcall.bf.insert("key", tokens.tobytes(), width=3), memoryview[bool])
    assert_type(rollcall.bf.insert("key", texts), list[bool])
    assert_type(rollcall.lc.query("key", tokens), NDArray[np.bool_])
    assert_type(rollcall.lc.insert("key", tokens), int)
    rollcall.bf.insert("key", ["ann"], width=3)  # type: ignore[call-overload]
    assert_type(rollcall.bf.info("key"), FilterInfo)
    assert_type(rollcall.bf.info("key", "FPR"), float)
    assert_type(rollcall.bf.info("key", "WINDOW"), int | None)
    assert_type(rollcall.bf.info("key", "REFRESH"), bool | None)
    rollcall.bf.info("key", "FPRS")  # type: ignore[call-overload]
    rollcall.bf.admit("key", ["ann"], 3, withroom="yes")  # type: ignore[call-overload]
    rollcall.bf.reserve("key", 0.01)  # type: ignore[call-arg]
    rollcall.bf.reserve("key", 0.01, 1000, layout="lists")  # type: ignore[arg-type]


def clients() -> None:
    assert_type(Rollcall(redis.Redis(), decode_responses=True).lc.members("key"), list[str])
    texts = Rollcall(redis.Redis(), decode_responses=True)
    assert_type(texts.lc.members("key", 60, withages=True), list[tuple[str, int]])
    assert_type(Rollcall(redis.Redis(), decode_responses=False).lc.members("key"), list[bytes])
    assert_type(Rollcall(redis.RedisCluster(host="localhost")).bf.card("key"), int)
    assert_type(Rollcall(valkey.Valkey(), family="RF").bf.card("key"), int)
    assert_type(Rollcall(valkey.ValkeyCluster(host="localhost")).bf.card("key"), int)


async def coroutines() -> None:
    rollcall = AsyncRollcall(redis.asyncio.Redis())
    assert_type(rollcall, AsyncRollcall[bytes])
    assert_type(await rollcall.lc.count("key"), int)
    assert_type(await rollcall.lc.members("key"), list[bytes])
    assert_type(await rollcall.lc.info("key"), CounterInfo)
    assert_type(await rollcall.bf.admit("key", ["ann"], 3, withroom=True), Admissions)
    assert_type(await rollcall.lc.members("key", withages=True), list[tuple[bytes, int]])
    assert_type(await rollcall.bf.madd("key", "a"), list[bool])
    assert_type(await rollcall.bf.info("key", "SLICE"), int | None)
    assert_type(await AsyncRollcall(redis.asyncio.RedisCluster(host="localhost")).lc.count("key"), int)
    assert_type(await AsyncRollcall(valkey.asyncio.Valkey(), decode_responses=True).lc.members("key"), list[str])
    async with rollcall.pipeline(transaction=False) as pipe:
        assert_type(pipe, AsyncPipeline[bytes])
        assert_type(pipe.bf.add("key", "a"), Queued[bool])
        assert_type(await pipe.execute(), list[Any])


def pipelines(wrapped: Any) -> None:
    with Rollcall(redis.Redis(), decode_responses=True).pipeline() as pipe:
        assert_type(pipe, Pipeline[str])
        count = pipe.lc.count("key")
        assert_type(count, Queued[int])
        assert_type(pipe.lc.members("key").value, list[str])
        assert_type(pipe.lc.members("key", withages=True).value, list[tuple[str, int]])
        assert_type(pipe.bf.admit("key", ["ann"], 3, withroom=True), Queued[Admissions])
        assert_type(pipe.execute(), list[Any])
        assert_type(count.value, int)
    assert_type(Pipeline(wrapped).lc.members("key"), Queued[list[bytes]])
