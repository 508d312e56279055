"""Runs the tutorials, and the examples of docs/python.md and of the package's page that need no server."""

import doctest
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import redis

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))


def blocks(page: str, heading: str, language: str) -> list[str]:
    """The code blocks of a language under a second-level heading."""
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


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorials_run_from_top_to_bottom(server: Any, page: Path) -> None:
    """Runs a tutorial's commands, then its Python code as one program, on one server, as a reader would. A regression
    test: programs reserved keys that the commands had reserved. The replies to commands are compared by tests/docs."""
    text = page.read_text()
    programs: list[str] = []
    with redis.Redis(port=server.port) as client:
        client.flushall()
        for block in re.finditer(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
            language, code = block.groups()
            if language == "console":
                assert not programs
                for command in re.findall(r"^127\.0\.0\.1:6379> (.*)$", code, flags=re.MULTILINE):
                    client.execute_command(*shlex.split(command))
                continue
            assert language == "python" and "assert " in code
            installed = " ".join(re.findall(r"^    pip install (.*)$", text[: block.start()], flags=re.MULTILINE))
            for module in re.findall(r"^(?:import|from) (\w+)", code, flags=re.MULTILINE):
                assert module in sys.stdlib_module_names or re.search(rf"\b{module}\b", installed), module
            programs.append(code)
        program = "\n\n".join(programs).replace("redis://127.0.0.1:6379", f"redis://127.0.0.1:{server.port}")
        program = program.replace("redis.Redis()", f"redis.Redis(port={server.port})")
        assert str(server.port) in program
        run = subprocess.run([sys.executable, "-P", "-"], input=program, capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, "")
        client.flushall()


def test_code_of_the_page_on_engines_is_that_of_the_programs() -> None:
    """tests/engines runs the programs."""
    programs = [path.read_text() for path in sorted((ROOT / "examples/engines").glob("*.py"))]
    page = (ROOT / "docs/engines.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(programs) == 3 and len(code) >= 4
    for block in code:
        assert any(block in program for program in programs), block


def test_pages_name_the_package_as_it_is_installed() -> None:
    name = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]["name"]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {found for page in pages for found in re.findall(r"package `([^`]+)` for \[Python\]", page.read_text())}
    assert named == {name}


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
