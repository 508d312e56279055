"""Servers and clusters for tests.

`ROLLCALL_MODULE` is the module. `ROLLCALL_SERVER` is the server, or several with ":" between them, one after the other.
"""

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = Path(os.environ.get("ROLLCALL_MODULE") or ROOT / "target/release/librollcall.so").resolve()
SERVERS = [name for name in os.environ.get("ROLLCALL_SERVER", "").split(os.pathsep) if name] or ["redis-server"]
PRIMARIES = 3

sys.path.append(str(ROOT / "scripts"))
with_server: Any = importlib.import_module("with_server")
with_cluster: Any = importlib.import_module("with_cluster")


def version(program: str) -> str:
    """The name and version of a server, as it says itself."""
    words = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()
    return f"{words[0].lower()} {words[2].removeprefix('v=')}"


class Server(NamedTuple):
    program: str
    port: int


@pytest.fixture(scope="session", params=SERVERS, ids=version)
def program(request: pytest.FixtureRequest) -> str:
    """A server's program."""
    assert MODULE.is_file(), f"{MODULE} is missing: make build, or set ROLLCALL_MODULE"
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def server(program: str) -> Iterator[Server]:
    """A server with the module."""
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        process, port = with_server.start(program, MODULE, folder)
        try:
            yield Server(program, port)
            assert process.poll() is None, "the server ended"
        finally:
            with_server.stop(process)


@pytest.fixture(scope="session")
def cluster(program: str) -> Iterator[int]:
    """A port of a cluster with the module."""
    processes = []
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        try:
            nodes = []
            for number in range(PRIMARIES):
                (own := Path(folder, str(number))).mkdir()
                bus = with_server.free_port()
                process, port = with_server.start(
                    program, MODULE, str(own), ["--cluster-enabled", "yes", "--cluster-port", str(bus)]
                )
                processes.append(process)
                nodes.append(with_cluster.Node(port, bus))
            with_cluster.form(nodes)
            for node in nodes:
                node.close()
            yield nodes[0].port
            assert [process.poll() for process in processes] == [None] * PRIMARIES, "a node ended"
        finally:
            for process in processes:
                with_server.stop(process)
