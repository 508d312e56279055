"""Clients for the tests of `rollcall_redis.redis`, of the servers that the tests above have.

A test that takes `rollcall` runs in some of the ways of `redis_ways`, others for each test, and all tests together in
all of them; with ROLLCALL_ALL_WAYS=1 each in all. What it gets has `bf` and `lc`, whose methods give the value, however
it came.
"""

import asyncio
import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from redis_ways import VARIANTS, Driven, close, connect, drive


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def clients(server: Any, runner: asyncio.Runner) -> Iterator[dict[Any, Any]]:
    """Clients of the server, made when they are first asked for."""
    made: dict[Any, Any] = {}
    yield made
    for client in made.values():
        close(client, runner)


# A test takes every so many-th way. It shares no factor with any number of choices, so that all of each are in.
STEP = 1 if os.environ.get("ROLLCALL_ALL_WAYS") == "1" else 7


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rollcall" in metafunc.fixturenames:
        first = zlib.crc32(metafunc.function.__name__.encode()) % STEP
        metafunc.parametrize("rollcall", VARIANTS[first::STEP], ids=str, indirect=True)


@pytest.fixture
def rollcall(request: pytest.FixtureRequest, server: Any, clients: dict[Any, Any], runner: asyncio.Runner) -> Driven:
    variant = request.param
    place = (variant.library, variant.protocol, variant.decodes, variant.is_async)
    if place not in clients:
        clients[place] = connect(variant, server.port)
    driven = drive(variant, clients[place], runner)
    driven.command("FLUSHALL")
    return driven
