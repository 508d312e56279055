"""Tests docs/without-the-module.md with a server without the module, SQLite, and Postgres if it is installed."""

import glob
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pg8000.dbapi  # type: ignore[import-untyped]
import pytest
import redis

from rollcall_redis import Admission, BloomFilter, Counter

PAGE = (Path(__file__).resolve().parents[2] / "docs/without-the-module.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def plain(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    """A client of a server without the module."""
    folder = tmp_path_factory.mktemp("plain")
    options = ["--port", "0", "--unixsocket", "s", "--save", "", "--dir", str(folder)]
    with subprocess.Popen([shutil.which(program) or program, *options], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert any("eady to accept connections" in line for line in server.stdout)
        drained = threading.Thread(target=server.stdout.read)
        drained.start()
        with redis.Redis(unix_socket_path=str(folder / "s")) as client:
            yield client
        server.terminate()
        drained.join()


@pytest.fixture
def page(plain: redis.Redis) -> dict[str, Any]:
    """The functions that the page defines."""
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)
    names["client"].close()
    names["client"] = plain
    plain.flushall()
    return names


def test_one_writer_collects(page: dict[str, Any]) -> None:
    page["record"]("ann", "ben", "ann")
    page["collect"]()
    page["record"]("cem")
    assert page["count"]() == 2
    page["collect"]()
    assert page["count"]() == 3 and page["client"].exists("visitors:new") == 0


def test_several_writers_lose_nothing(page: dict[str, Any]) -> None:
    def work(worker: int) -> None:
        for step in range(10):
            collected = Counter()
            collected.update([f"{worker}:{step}", "everybody"])
            page["merge"]("key", collected)
            answers.append(page["admit"]("account", f"{worker}:{step}", 5))

    answers: list[Admission] = []
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter.from_bytes(page["client"].get("key")).count() == 41
    assert answers.count(Admission.ADMITTED) == 5 and answers.count(Admission.REJECTED) == 35


def test_a_filter_takes_the_place_of_a_counter(page: dict[str, Any]) -> None:
    page["Counter"] = BloomFilter
    for item in ("ann", "ben"):
        collected = BloomFilter(1000, 0.001)
        collected.add(item)
        page["merge"]("seen", collected)
    seen = BloomFilter.from_bytes(page["client"].get("seen"))
    assert "ann" in seen and "ben" in seen and "zoe" not in seen


def merge_rows(page: dict[str, Any], connections: list[Any]) -> None:
    """Merges rows by several connections at the same time, each in its own thread."""
    (statement,) = blocks("sql")
    connections[0].execute(statement)
    connections[0].commit()

    def work(worker: int) -> None:
        for step in range(5):
            collected = Counter()
            collected.update([f"{worker}:{step}", "everybody"])
            page["merge_row"](connections[worker], "visitors", collected)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(len(connections))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (value,) = connections[0].execute("SELECT value FROM sketch").fetchone()
    assert Counter.from_bytes(value).count() == 5 * len(connections) + 1
    for connection in connections:
        connection.close()


class Lite:
    """SQLite with psycopg's placeholders."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, check_same_thread=False, timeout=60)
        self.commit, self.close = self.connection.commit, self.connection.close

    def execute(self, statement: str, arguments: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement.replace("%s", "?"), arguments)


def test_rows_of_sqlite(page: dict[str, Any], tmp_path: Path) -> None:
    merge_rows(page, [Lite(tmp_path / "db") for _ in range(3)])


class Postgres:
    """A connection of pg8000 with the method `execute` of psycopg."""

    def __init__(self, folder: str) -> None:
        self.connection = pg8000.dbapi.connect("test", database="postgres", unix_sock=f"{folder}/.s.PGSQL.5432")
        self.commit, self.close = self.connection.commit, self.connection.close

    def execute(self, statement: str, arguments: tuple[Any, ...] = ()) -> Any:
        cursor = self.connection.cursor()
        cursor.execute(statement, arguments)
        return cursor


def test_rows_of_postgres(page: dict[str, Any]) -> None:
    # Debian installs Postgres outside of PATH.
    where = os.pathsep.join([os.environ["PATH"], *glob.glob("/usr/lib/postgresql/*/bin")])
    initdb, postgres = shutil.which("initdb", path=where), shutil.which("postgres", path=where)
    if initdb is None or postgres is None:
        pytest.skip("no Postgres is here")
    # Postgres refuses to run as root.
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory() as folder:
        if user is not None:
            shutil.chown(folder, user)
        make = [initdb, "-D", f"{folder}/data", "-U", "test", "--no-sync"]
        subprocess.run(make, check=True, capture_output=True, user=user, cwd="/")
        options = ["-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with subprocess.Popen([postgres, *options], stderr=subprocess.PIPE, text=True, user=user, cwd="/") as server:
            try:
                assert server.stderr is not None
                assert any("ready to accept" in line for line in server.stderr)
                merge_rows(page, [Postgres(folder) for _ in range(3)])
            finally:
                server.terminate()


def test_a_value_moves_to_the_module(page: dict[str, Any], server: Any) -> None:
    counter = Counter()
    counter.update(["ann", "ben"])
    with redis.Redis(port=server.port) as target:
        page["move"](counter.to_bytes(), target, "moved")
        assert target.execute_command("LC.COUNT", "moved") == 2
        assert Counter.from_bytes(cast(bytes, target.dump("moved"))).to_bytes() == counter.to_bytes()
        target.delete("moved")
