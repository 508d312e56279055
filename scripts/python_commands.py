#!/usr/bin/env python3
"""Writes the classes of python/rollcall_redis/redis that have a method for each command: for calls, asyncio and
pipelines.

    scripts/python_commands.py            fail if a file is not what would be written
    scripts/python_commands.py --write    write the files

_filters.py and _counters.py define once how a command is sent and its reply is read, as methods that return
`Command[T]`. The classes have the same signatures and comments, and return T, an awaitable T, or `Queued[T]`. They are
written out, because type checkers and editors read them. The types of replies must be those of scripts/replies.toml.
"""

import ast
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "rollcall_redis" / "redis"
REPLIES = tomllib.loads(Path(__file__).with_name("replies.toml").read_text())
LINE = 120
INDENT = " " * 4


class Family(NamedTuple):
    """The commands that a file describes: its class, and what the written files import."""

    file: str
    described: str
    name: str
    member: str
    imports: str


FAMILIES = (
    Family(
        "_filters",
        "FilterCommands",
        "Filters",
        "",
        """from collections.abc import Iterable
from typing import Any, Literal, cast, overload

from rollcall_redis._types import Admission, Admissions

from ._columns import Answers, AnswersView, Buffer, Rows
from ._command import Command, Item, Key, Moment, Seconds
from ._filters import FilterCommands, Layout
from ._reply import Chunk, FilterInfo""",
    ),
    Family(
        "_counters",
        "CounterCommands",
        "Counters",
        "Member",
        """from collections.abc import Iterable
from typing import Any, Generic, Literal, cast, overload

from rollcall_redis._types import Admission, Admissions, Estimate

from ._columns import Answers, AnswersView, Buffer, Rows
from ._command import Command, Item, Key, Moment, Seconds, Spans
from ._counters import CounterCommands, Member
from ._reply import Chunk, CounterInfo, Slice""",
    ),
)


class Face(NamedTuple):
    """A way of using a client. Each family has a file for it."""

    suffix: str
    title: str
    prefix: str
    runner: str
    define: str
    run: str
    result: str


FACES = (
    Face("blocking", "Each command as a call.", "", "Run", "def", "self._run", "{}"),
    Face("asyncio", "Each command as a coroutine.", "Async", "RunAsync", "async def", "await self._run", "{}"),
    Face("queued", "Each command in a pipeline.", "Queued", "Queue", "def", "self._run", "Queued[{}]"),
)


def written(family: Family, face: Face) -> str:
    runner = "Queue, Queued" if face.runner == "Queue" else face.runner
    classes = [node for node in ast.parse(path(family.file).read_text()).body if isinstance(node, ast.ClassDef)]
    (definition,) = [node for node in classes if node.name == family.described]
    member, base = (f"[{family.member}]", f"(Generic[{family.member}])") if family.member else ("", "")
    lines = [f'"""{face.title} Written by scripts/python_commands.py."""', "", *family.imports.split("\n")]
    lines += [f"from ._run import {runner}", "", "", f"class {face.prefix}{family.name}{base}:", *docstring(definition)]
    lines += ["", f"    def __init__(self, commands: {family.described}{member}, run: {face.runner}) -> None:"]
    lines += ["        self._commands = commands", "        self._run = run"]
    for node in definition.body:
        if isinstance(node, ast.Assign):
            lines += ["", f"    {ast.unparse(node)}"]
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            # Overloads of one name stand together: no blank line before the others.
            same = [other for other in definition.body if getattr(other, "name", "") == node.name]
            lines += method(node, face, same[0] is node)
    return "\n".join(lines) + "\n"


def missing(family: Family, prefix: str) -> list[str]:
    """The methods that cannot return what the table says, each with the missing type."""
    types: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path(family.file).read_text())):
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Subscript):
            types.setdefault(node.name, set()).add(ast.unparse(node.returns.slice))
    wanted = ((name.lower(), kind) for name, kinds in REPLIES[prefix].items() for kind in kinds.values())
    expected = ((name, REPLIES["kinds"][kind]["python"]) for name, kind in wanted)
    return [f"{prefix}.{name}: {one}" for name, one in expected if one not in types.get(name, ())]


def path(file: str) -> Path:
    return PACKAGE / f"{file}.py"


def docstring(node: ast.ClassDef | ast.FunctionDef, depth: int = 1) -> list[str]:
    text = ast.get_docstring(node)
    if text is None:
        return []
    first, *rest = text.split("\n")
    pad = INDENT * depth
    lines = [f'{pad}"""{first}' + ("" if rest else '"""')]
    lines += [pad + line if line else "" for line in rest]
    return lines if not rest else [*lines, f'{pad}"""']


def method(node: ast.FunctionDef, face: Face, is_first: bool) -> list[str]:
    is_overload = any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
    assert isinstance(node.returns, ast.Subscript), f"{node.name} does not return Command[...]"
    result = face.result.format(ast.unparse(node.returns.slice))
    lines = [""] if is_first else []
    if is_overload:
        lines.append("    @overload")
    end = " ..." if is_overload else ""
    lines += signature(f"    {face.define} {node.name}(", parameters(node.args), f") -> {result}:{end}")
    if not is_overload:
        lines += docstring(node, 2)
        lines += call(face.run, node.name, passed(node.args), is_overloaded=not is_first)
    return lines


def call(run: str, name: str, arguments: list[str], *, is_overloaded: bool) -> list[str]:
    """The body of a generated method, which runs the command."""
    pad = INDENT * 2
    if is_overloaded:
        # The caller has decided which overload it is.
        start = f"{pad}command: Command[Any] = cast(Any, self._commands).{name}("
        return [*signature(start, arguments, ")"), f"{pad}return {run}(command)"]
    line = f"{pad}return {run}(self._commands.{name}({', '.join(arguments)}))"
    if len(line) <= LINE:
        return [line]
    return [f"{pad}return {run}(", *signature(f"{pad}{INDENT}self._commands.{name}(", arguments, ")"), f"{pad})"]


def parameters(arguments: ast.arguments) -> list[str]:
    """The parameters of a signature, each as text."""
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    texts = [parameter(argument, default) for argument, default in zip(arguments.args, defaults, strict=True)]
    if arguments.vararg:
        texts.append(f"*{parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        texts.append("*")
    return texts + [parameter(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg
    if argument.annotation:
        text += f": {ast.unparse(argument.annotation)}"
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}" if argument.annotation else f"{text}={ast.unparse(default)}"


def passed(arguments: ast.arguments) -> list[str]:
    """The arguments with which a generated method passes its parameters on."""
    texts = [argument.arg for argument in arguments.args[1:]]
    if arguments.vararg:
        texts.append(f"*{arguments.vararg.arg}")
    return texts + [f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs]


def signature(start: str, parts: list[str], end: str) -> list[str]:
    """A signature in the formatter's style: on one line, with all parameters on the next line, or one line each."""
    pad = " " * (len(start) - len(start.lstrip()))
    joined = ", ".join(parts).replace("'", '"')
    if len(start + joined + end) <= LINE:
        return [start + joined + end]
    if len(pad + INDENT + joined) <= LINE and "*" not in parts:
        return [start, pad + INDENT + joined, pad + end]
    rows = [f"{pad}{INDENT}{part},".replace("'", '"') for part in parts]
    return [start, *rows, pad + end]


wrong = [one for family, prefix in zip(FAMILIES, ("BF", "LC"), strict=True) for one in missing(family, prefix)]
if wrong:
    raise SystemExit(f"python_commands: scripts/replies.toml has other types: {wrong}")
files = {path(f"{family.file}_{face.suffix}"): written(family, face) for family in FAMILIES for face in FACES}
drifted = {file: text for file, text in files.items() if not file.exists() or file.read_text() != text}
if sys.argv[1:] == ["--write"]:
    for file, text in drifted.items():
        file.write_text(text)
elif sys.argv[1:]:
    raise SystemExit(__doc__)
elif drifted:
    names = [file.name for file in drifted]
    raise SystemExit(f"python_commands: run scripts/python_commands.py --write: not as written: {names}")
