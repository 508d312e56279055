#!/usr/bin/env python3
"""Writes the classes of python/rollcall_redis/redis that have a method for each command: for calls, asyncio and
pipelines.

    scripts/python_commands.py            fail if a file is not what would be written
    scripts/python_commands.py --write    write the files

_filters.py and _counters.py define once what each command sends, and scripts/replies.toml what it replies. The classes
have the same signatures and comments, and return T, an awaitable T, or `Queued[T]`. They are written out, because type
checkers and editors read them. Where the type of the reply depends on arguments, they have overloads.
"""

import ast
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "rollcall_redis" / "redis"
COMMANDS = json.loads((ROOT / "docs" / "commands.json").read_text())
TABLE = tomllib.loads((ROOT / "scripts" / "replies.toml").read_text())
LINE = 120
INDENT = " " * 4


class Family(NamedTuple):
    """The commands that a file describes: their prefix, its class, and what the written files import."""

    prefix: str
    file: str
    described: str
    name: str
    member: str
    imports: str


FAMILIES = (
    Family(
        "BF",
        "_filters",
        "FilterCommands",
        "Filters",
        "",
        """from collections.abc import Iterable
from typing import Any, Literal, overload

import rollcall_redis.redis._reply as read
from rollcall_redis._types import Admission, Admissions

from ._columns import Answers, AnswersView, Buffer, Rows, with_items
from ._command import Command, Item, Key, Moment, Seconds
from ._filters import FilterCommands, Layout
from ._reply import Chunk, FilterInfo""",
    ),
    Family(
        "LC",
        "_counters",
        "CounterCommands",
        "Counters",
        "Member",
        """from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, overload

import rollcall_redis.redis._reply as read
from rollcall_redis._types import Admission, Admissions, Estimate

from ._columns import Answers, AnswersView, Buffer, Rows, with_items
from ._command import Command, Item, Key, Moment, Seconds, Spans
from ._counters import CounterCommands
from ._reply import Chunk, CounterInfo, Member, Slice""",
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
    base = f"(Generic[{family.member}])" if family.member else ""
    given = f", member: Callable[[Any], {family.member}]" if family.member else ""
    lines = [f'"""{face.title} Written by scripts/python_commands.py."""', "", *family.imports.split("\n")]
    lines += [f"from ._run import {runner}", "", "", f"class {face.prefix}{family.name}{base}:", *docstring(definition)]
    lines += ["", f"    def __init__(self, run: {face.runner}{given}) -> None:"]
    lines += [f"        self._commands = {family.described}()", "        self._run = run"]
    lines += ["        self._member = member"] if given else []
    for node in definition.body:
        if isinstance(node, ast.Assign):
            lines += ["", f"    {ast.unparse(node)}"]
        elif isinstance(node, ast.FunctionDef):
            lines += ["", *method(node, family, face)]
    return "\n".join(lines) + "\n"


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


class Replies(NamedTuple):
    """The kinds of a command's replies: the usual one, and the one that it has with an argument."""

    usual: str
    other: str = ""
    argument: str = ""


def replies_of(command: str) -> Replies:
    family, _, name = command.partition(".")
    arguments = re.findall(r"[+-](\w+)", " ".join(TABLE[family][name]))
    return Replies(*TABLE[family][name].values(), *map(str.lower, arguments))


def type_of(kind: str) -> str:
    return TABLE["kinds"][kind]["python"]


def method(node: ast.FunctionDef, family: Family, face: Face) -> list[str]:
    command = f"{family.prefix}.{node.name.upper()}"
    start = f"    {face.define} {node.name}("
    types = overloads(node, command)
    lines = []
    for changed, type_ in types:
        end = f") -> {face.result.format(type_)}: ..."
        lines += ["    @overload", *signature(start, parameters(node.args, changed), end)]
    result = face.result.format("Any" if types else type_of(replies_of(command).usual))
    lines += signature(start, parameters(node.args, {}), f") -> {result}:")
    return [*lines, *docstring(node, 2), *call(node, command, face.run)]


def overloads(node: ast.FunctionDef, command: str) -> list[tuple[dict[str, str], str]]:
    """The overloads of a method: the parameters that differ, and the type of the reply."""
    usual, other, argument = replies_of(command)
    if argument == "field":
        fields = [({argument: f"Literal[{words}]"}, type_) for type_, words in fields_of(command).items()]
        return [({argument: "None = None"}, type_of(usual)), *fields]
    columns = TABLE["columns"].get(usual) if "width" in names(node) else None
    types, changed = [], {}
    if columns:
        widths = {"Rows": {"width": "None = None"}, "Buffer": {"width": "int"}}
        types = [({"items": items} | widths.get(items, {}), type_) for items, type_ in columns.items()]
        changed = {"items": "Iterable[Item]", "width": "None = None"}
    if argument:
        types.append((changed | {argument: "Literal[False] = False"}, type_of(usual)))
        types.append((changed | {argument: "Literal[True]"}, type_of(other)))
    elif columns:
        types.append((changed, type_of(usual)))
    return types


def fields_of(command: str) -> dict[str, str]:
    """The types of the fields of INFO, each with its fields. `FIELDS` of _reply.py has the functions that read them."""
    body = ast.parse(path("_reply").read_text()).body
    returned = {node.name: ast.unparse(node.returns) for node in body if isinstance(node, ast.FunctionDef)}
    (table,) = [node.value for node in body if isinstance(node, ast.AnnAssign) and node.target.id == "FIELDS"]
    readers = {key.value: ast.unparse(value) for key, value in zip(table.keys, table.values, strict=True)}
    types: dict[str, list[str]] = {}
    for field in COMMANDS[command]["arguments"][1]["arguments"]:
        outer, _, inner = readers[field["token"]].rpartition("(")
        type_ = returned[inner.rstrip(")")] + (" | None" if outer else "")
        types.setdefault(type_, []).append(f'"{field["token"]}"')
    return {type_: ", ".join(words) for type_, words in types.items()}


def call(node: ast.FunctionDef, command: str, run: str) -> list[str]:
    """The body of a generated method, which runs the command."""
    usual, other, argument = replies_of(command)
    pad, lines, reader = INDENT * 2, [], f"read.{usual}"
    if argument:
        with_field = f"read.{usual} if field is None else read.{other}(field)"
        with_option = f"read.{other} if {argument} else read.{usual}"
        lines, reader = [f"{pad}reader = {with_field if argument == 'field' else with_option}"], "reader"
    if content := TABLE["kinds"][usual].get("content", ""):
        reader += f'{"(self._member)" * (content == "members")}, content="{content}"'
    maker = "with_items" if "width" in names(node) else "Command"
    send = f"self._commands.{node.name}("
    arguments = f"{send}{', '.join(passed(node.args))})"
    if len(last := f'{pad}return {run}({maker}("{command}", {arguments}, {reader}))') <= LINE:
        return [*lines, last]
    lines += signature(f"{pad}arguments = {send}", passed(node.args), ")")
    return [*lines, last.replace(arguments, "arguments")]


def names(node: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]


def parameters(arguments: ast.arguments, changed: dict[str, str]) -> list[str]:
    """The parameters of a signature, each as text. Those of `changed` have other types and defaults."""
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    texts = [parameter(*pair, changed) for pair in zip(arguments.args, defaults, strict=True)]
    if arguments.vararg:
        texts.append(f"*{parameter(arguments.vararg, None, changed)}")
    elif arguments.kwonlyargs:
        texts.append("*")
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return texts + [parameter(*pair, changed) for pair in pairs]


def parameter(argument: ast.arg, default: ast.expr | None, changed: dict[str, str]) -> str:
    text = argument.arg
    if text in changed:
        return f"{text}: {changed[text]}"
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


files = {path(f"{family.file}_{face.suffix}"): written(family, face) for family in FAMILIES for face in FACES}
drifted = {file: text for file, text in files.items() if not file.exists() or file.read_text() != text}
if sys.argv[1:] == ["--write"]:
    for file, text in drifted.items():
        file.write_text(text)
elif sys.argv[1:]:
    raise SystemExit(__doc__)
elif drifted:
    stale = [file.name for file in drifted]
    raise SystemExit(f"python_commands: run scripts/python_commands.py --write: not as written: {stale}")
