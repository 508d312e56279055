"""Clients for the tests of `rollcall_redis.redis`, connected to the servers of ../conftest.py.

The fixture `rollcall` has `bf` and `lc`, whose methods return the value itself in every variant of `redis_ways`. Each
test runs in some variants, and all tests together in all of them. With ROLLCALL_ALL_WAYS=1, each test runs in all.
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
    """The clients of the server by variant. A client is created on first use."""
    made: dict[Any, Any] = {}
    yield made
    for client in made.values():
        close(client, runner)


# A test runs in every seventh variant. Seven divides no number of choices, so every choice occurs.
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
