"""The section "Commands" of docs/python.md, and the programs of examples/python: they run."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import redis

from rollcall_redis.redis import Counters, Filters

ROOT = Path(__file__).resolve().parents[3]
URL = "redis://127.0.0.1:6379"
# A quoted line of each that shows its promise was measured.
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
