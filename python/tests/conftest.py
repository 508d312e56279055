"""Servers and clusters for tests.

`ROLLCALL_MODULE` is the path of the module. `ROLLCALL_SERVER` is the path of a server, or several paths with ":"
between them; the tests run on each server.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = Path(os.environ.get("ROLLCALL_MODULE") or ROOT / "target/release/librollcall.so").resolve()
SERVERS = [name for name in os.environ.get("ROLLCALL_SERVER", "").split(os.pathsep) if name] or ["redis-server"]
WITH_SERVER = os.environ.get("ROLLCALL_WITH_SERVER") or str(ROOT / "target/debug/with-server")


def version(program: str) -> str:
    """The name and version that a server program reports."""
    words = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()
    return f"{words[0].lower()} {words[2].removeprefix('v=')}"


class Server(NamedTuple):
    program: str
    port: int


@pytest.fixture(scope="session", params=SERVERS, ids=version)
def program(request: pytest.FixtureRequest) -> str:
    """The path of a server program."""
    assert MODULE.is_file(), f"{MODULE} is missing: make build, or set ROLLCALL_MODULE"
    name: str = request.param
    return name


@contextmanager
def beside(program: str, *options: str) -> Iterator[int]:
    """Starts a server or cluster with the module, by tests/kit, and returns the port of a node."""
    # The shell prints the server's URL, and ends when its input is closed.
    command = [WITH_SERVER, *options, "sh", "-c", "echo $ROLLCALL_URL; exec cat >/dev/null"]
    environment = {**os.environ, "ROLLCALL_SERVER": program, "ROLLCALL_MODULE": str(MODULE)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        url = process.stdout.readline()
        assert url, "the server did not start: its log is above"
        yield int(url.rpartition(":")[2])
        process.stdin.close()
        assert process.wait() == 0, "the server ended"


@pytest.fixture(scope="session")
def server(program: str) -> Iterator[Server]:
    """A server with the module."""
    with beside(program) as port:
        yield Server(program, port)


@pytest.fixture(scope="session")
def cluster(program: str) -> Iterator[int]:
    """A port of a cluster with the module."""
    with beside(program, "--primaries", "3") as port:
        yield port


@pytest.fixture
def two_servers(program: str) -> Iterator[tuple[int, int]]:
    """The ports of two servers with the module, without data."""
    with beside(program) as first, beside(program) as second:
        yield first, second


@pytest.fixture
def killed(program: str, tmp_path: Path) -> Callable[[], AbstractContextManager[int]]:
    """Starts a server with the module that keeps no files, always on one port, and kills it at the end."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]

    @contextmanager
    def run() -> Iterator[int]:
        options = ["--port", str(port), "--dir", str(tmp_path), "--save", "", "--loadmodule", str(MODULE)]
        with subprocess.Popen([program, *options], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                while "eady to accept connections" not in (line := process.stdout.readline()):
                    assert line, "the server did not start"
                yield port
            finally:
                process.kill()

    return run
