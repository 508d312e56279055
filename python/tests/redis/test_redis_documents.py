"""Runs the section "Commands" of docs/python.md and the programs of examples/python. Tests what docs/clients.md says
about valkey-py and about redis-py's cache."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
import valkey
from redis.cache import CacheConfig

from rollcall_redis.redis import Counters, Filters

ROOT = Path(__file__).resolve().parents[3]
URL = "redis://127.0.0.1:6379"
# A line that each program prints if its promises hold.
PROGRAMS = {
    "message_summary.py": r"class: to remind: class-\d+, .*\nclass: came back: class-\d+, ",
    "push_dedupe.py": r"\d+ of 100000 devices notified",
    "contact_limit.py": r"autumn: 12000 contacts would go over the limit\n9\d+ contacts by now",
}


def section() -> str:
    text = (ROOT / "docs" / "python.md").read_text()
    (found,) = re.findall(r"^## Commands\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return str(found)


def client(server: Any) -> Any:
    return redis.Redis(port=server.port)


def run(server: Any, arguments: list[str], program: str = "") -> str:
    url = f"redis://127.0.0.1:{server.port}"
    with client(server) as connected:
        connected.flushall()
    result = subprocess.run(
        [sys.executable, "-P", "-W", "error", *arguments],
        input=program.replace(URL, url),
        env={**os.environ, "ROLLCALL_URL": url},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_the_examples_of_the_document_run(server: Any) -> None:
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", section(), re.MULTILINE | re.DOTALL))
    assert program.count("assert ") > 20 and program.count(URL) == 2
    run(server, ["-"], program)


def test_the_table_of_replies_has_every_method() -> None:
    _, table = section().split("### Types of replies")
    named = set(re.findall(r"[a-z]+", " ".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE))))
    methods = {name for commands in (Filters, Counters) for name in vars(commands) if not name.startswith("_")}
    assert len(methods) > 20 and methods <= named


def test_the_versions_are_those_tested() -> None:
    assert f"redis-py {version('redis')} and valkey-py {version('valkey')}" in section()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_keep_their_promises(server: Any, name: str) -> None:
    printed = run(server, [str(ROOT / "examples" / "python" / name)])
    assert re.search(PROGRAMS[name], printed)
    with client(server) as connected:
        assert connected.keys() == []


def test_counters_of_other_slots_are_united(cluster: int) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert program.count('host="any-node"') == 1
    program = program.replace('host="any-node"', f'host="127.0.0.1", port={cluster}')
    names: dict[str, Any] = {}
    with redis.RedisCluster(host="127.0.0.1", port=cluster, decode_responses=True) as other:
        for key, first in (("visitors:eu", 0), ("visitors:us", 1000)):
            for name in (key, "{visitors}:direct"):
                other.execute_command("LC.ADD", name, *range(first, first + 2000))
        exec(program, names)
        assert names["payloads"] == [other.dump("visitors:eu"), other.dump("visitors:us")]
        names["cluster"].close()
        assert other.dump("visitors") == other.dump("{visitors}:direct")
        other.delete("visitors", "visitors:eu", "visitors:us", "{visitors}:direct")


def test_members_of_valkey_py_and_of_numpy(server: Any) -> None:
    page = (ROOT / "docs" / "clients.md").read_text()
    (row,) = re.findall(rf"^\| valkey-py {re.escape(version('valkey'))} \|(.*) \|$", page, re.MULTILINE)
    values: list[Any] = [1.0, 0.1 + 0.2, 1e16, 1e21, True, None]
    with valkey.Valkey(port=server.port) as connected:
        connected.flushall()
        for value, cell in zip(values, row.split("|"), strict=True):
            if cell.strip() == "rejected":
                with pytest.raises(valkey.DataError):
                    connected.execute_command("LC.ADD", "members", value)
                continue
            connected.delete("members")
            connected.execute_command("LC.ADD", "members", value)
            assert connected.execute_command("LC.MEMBERS", "members") == [cell.strip(" `").encode()]
        connected.delete("members")
    with client(server) as other:
        other.execute_command("LC.ADD", "members", np.float64(7.0))
        assert other.execute_command("LC.MEMBERS", "members") == [b"np.float64(7.0)"]
        other.flushall()
    assert "`np.float64(7.0)` is stored as these 15 characters" in page


def test_the_cache_of_redis_py_has_no_filters_and_counters(server: Any) -> None:
    page = (ROOT / "docs" / "clients.md").read_text()
    assert f"redis-py {version('redis')} with `CacheConfig` cache no command" in page
    with client(server) as other:
        if int(other.info("server")["redis_version"].split(".")[0]) < 8:
            pytest.skip("redis-py caches with Redis 7.4 and later only")
        other.flushall()
        for words in (["SET", "text", "a"], ["BF.ADD", "seen", "a"], ["LC.ADD", "visitors", "a"]):
            other.execute_command(*words)
        other.config_resetstat()
        with redis.Redis(port=server.port, protocol=3, cache_config=CacheConfig()) as cached:
            for words, calls in (
                (["GET", "text"], 1),
                (["BF.EXISTS", "seen", "a"], 2),
                (["BF.MEXISTS", "seen", "a"], 2),
                (["BF.CARD", "seen"], 2),
                (["LC.COUNT", "visitors"], 2),
            ):
                for _ in range(2):
                    cached.execute_command(*words, keys=[words[1]])
                assert other.info("commandstats")[f"cmdstat_{words[0].lower()}"]["calls"] == calls
        other.flushall()
