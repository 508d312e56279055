"""The examples of docs/python.md and docs/tutorials/cache.md in one's own process, and of the package's page."""

import doctest
import os
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, heading: str, language: str) -> list[str]:
    """The fenced blocks of a language under a heading of the second level."""
    text = (ROOT / page).read_text()
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = [part for part in section if part.startswith(heading + "\n")]
    return re.findall(rf"^```{language}\n(.*?)^```$", found, flags=re.MULTILINE | re.DOTALL)


def test_examples_print_what_is_shown(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks("docs/python.md", "In your own process", "pycon")
    assert len(examples) >= 6
    text = "\n".join(examples).replace("redis.Redis()", f"redis.Redis(port={server.port})")
    test = doctest.DocTestParser().get_doctest(text, {}, "docs/python.md", None, 0)
    reported: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    results = runner.run(test, out=reported.append, clear_globs=False)
    assert results.attempted > 30
    assert not results.failed, "".join(reported)
    test.globs["client"].flushall()
    test.globs["client"].close()
    assert os.listdir() == ["seen.rollcall"]


def test_the_copy_of_a_filter_in_the_tutorial(server: Any) -> None:
    (text,) = blocks("docs/tutorials/cache.md", "In your own process", "python")
    names: dict[str, Any] = {}
    exec(text.replace("redis.Redis()", f"redis.Redis(port={server.port})"), names)
    assert names["new"] == ["zoe@example.com"] and names["client"].ttl("seen") > 86_000
    names["client"].flushall()
    names["client"].close()


def test_the_page_of_the_package() -> None:
    (text,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "python/README.md").read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    shown = []
    for line in text.splitlines():
        code, _, comment = line.partition("#")
        if comment:
            shown.append((eval(code, names), comment.strip()))
        else:
            exec(code, names)
    assert [(value, comment.startswith(str(value))) for value, comment in shown if comment[0].isdigit()] == [(2, True)]
    assert [value for value, comment in shown if not comment[0].isdigit()] == [True, False]
