"""Tests the package's type annotations: mypy and pyright check this file, and nothing runs it."""

from collections.abc import Awaitable
from datetime import timedelta
from typing import assert_type

import numpy as np
import polars as pl
import redis
import redis.asyncio
import valkey
import valkey.asyncio
from numpy.typing import NDArray

import rollcall_redis as rollcall
from rollcall_redis import Admission, Admissions, BloomFilter, Counter, Estimate


def filters(seen: BloomFilter) -> None:
    assert_type(seen.add("ann"), bool)
    assert_type(seen.add_many(["ann", b"ben"]), list[bool])
    assert_type(seen.contains_many({"ann"}), list[bool])
    assert_type(seen.contains_many(np.zeros(3)), NDArray[np.bool_])
    assert_type(seen.add_many(np.zeros(3)), NDArray[np.bool_])
    assert_type(seen.contains_many(bytearray(8), width=4), memoryview[bool])
    assert_type(seen.add_many(pl.Series(["ann"]), nulls="skip"), NDArray[np.bool_])
    assert_type(seen | seen, BloomFilter)
    assert_type(seen.admit(["ann"], 5), list[Admission])
    assert_type(seen.admit(["ann"], 5, withroom=True), Admissions)
    assert_type(seen.contains("ann", since=timedelta(hours=1)), bool)
    assert_type(seen.contains_many(np.zeros(3), since=60), NDArray[np.bool_])


def counters(visitors: Counter) -> None:
    assert_type(visitors.count(since=60), int)
    assert_type(visitors.estimate(), Estimate)
    assert_type(visitors.estimate().count, int)
    assert_type(visitors.members(), list[bytes])
    assert_type(visitors.members(since=60, withages=True), list[tuple[bytes, int]])
    assert_type(visitors.admit(["ann"], 5, withroom=True).retry_after, int | None)
    assert_type(visitors.contains_many(np.zeros(3), since=60), NDArray[np.bool_])
    assert_type(visitors.contains_many(b"ann", width=3), memoryview[bool])
    assert_type(visitors.add_many(["ann"]), list[bool])
    assert_type(visitors.remove(["ann"]), list[bool])
    assert_type(Counter.merge_all([b"", None], nulls="skip"), Counter)
    assert_type(Counter.merge_all(pl.Series([b""])), Counter)
    assert_type(rollcall.__version__, str)
    assert_type(rollcall.inter_card(visitors, (visitors, 60)), Estimate)
    assert_type(rollcall.diff(visitors, (visitors, timedelta(hours=1))), list[bytes])


def transfers(seen: BloomFilter, client: redis.Redis, other: valkey.Valkey, cluster: redis.RedisCluster) -> None:
    assert_type(BloomFilter.download(client, "seen"), BloomFilter)
    assert_type(BloomFilter.download(other, b"seen"), BloomFilter)
    assert_type(Counter.download(cluster, "visitors"), Counter)
    seen.upload(client, "seen", ttl=5.0)
    seen.upload(client, "seen", ttl=timedelta(days=1))


async def awaited(
    seen: BloomFilter, client: redis.asyncio.Redis, other: valkey.asyncio.Valkey, cluster: redis.asyncio.RedisCluster
) -> None:
    assert_type(BloomFilter.download(client, "seen"), Awaitable[BloomFilter])
    assert_type(await BloomFilter.download(other, "seen"), BloomFilter)
    assert_type(await Counter.download(cluster, "visitors"), Counter)
    await seen.upload(client, "seen")
