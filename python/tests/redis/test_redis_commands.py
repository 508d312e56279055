"""Compares the package's methods with the commands of docs/commands.json."""

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_overloads, get_type_hints

import pytest

from rollcall_redis import BloomFilter, Counter
from rollcall_redis.redis._command import Command
from rollcall_redis.redis._counters import CounterCommands
from rollcall_redis.redis._counters_asyncio import AsyncCounters
from rollcall_redis.redis._counters_blocking import Counters
from rollcall_redis.redis._counters_queued import QueuedCounters
from rollcall_redis.redis._filters import FilterCommands
from rollcall_redis.redis._filters_asyncio import AsyncFilters
from rollcall_redis.redis._filters_blocking import Filters
from rollcall_redis.redis._filters_queued import QueuedFilters
from rollcall_redis.redis._reply import FIELDS

ROOT = Path(__file__).resolve().parents[3]
# The methods return the commands that they would send.
DESCRIBED: dict[str, Any] = {"bf": Filters(lambda command: command), "lc": Counters(lambda command: command, bytes)}
COMMANDS: dict[str, Any] = json.loads((ROOT / "docs" / "commands.json").read_text())


def methods(family: str) -> dict[str, Any]:
    members = inspect.getmembers(DESCRIBED[family], inspect.ismethod)
    return {name: method for name, method in members if not name.startswith("_") and name != "create"}


def test_every_command_of_the_module_has_a_method() -> None:
    named = {f"{family}.{name}".upper() for family in DESCRIBED for name in methods(family)}
    assert named == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_of_a_command_can_be_sent(name: str) -> None:
    family, method = name.lower().split(".")
    arguments = COMMANDS[name]["arguments"]
    command = send_everything(methods(family)[method])
    assert command.name == name
    known = {word for word in command.words if isinstance(word, str)} | literals(methods(family)[method])
    tokens = set(tokens_of(arguments))
    assert tokens <= known
    assert {word for word in known if word.isupper()} <= tokens
    # Each required argument has one word besides its token: a key, an item or a number.
    required = [argument for argument in arguments if "optional" not in argument]
    plain = [word for word in send_least(methods(family)[method]).words if word not in tokens]
    assert len(plain) == len(required)


def tokens_of(arguments: list[dict[str, Any]]) -> Iterator[str]:
    for argument in arguments:
        if "token" in argument:
            yield argument["token"]
        yield from tokens_of(argument.get("arguments", []))


def send_everything(method: Any) -> Command[Any]:
    """Calls a method with a value for every parameter."""
    return call(method, everything=True)


def send_least(method: Any) -> Command[Any]:
    """Calls a method with the required parameters only, and one value for each repeated parameter."""
    return call(method, everything=False)


def call(method: Any, everything: bool) -> Command[Any]:
    arguments: list[Any] = []
    options: dict[str, Any] = {}
    variadic = [
        parameter.name
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL
    ]
    for parameter in inspect.signature(method).parameters.values():
        # For "key [key ...]" the call already has the first key.
        is_second = parameter.name == "keys" and variadic == ["keys"]
        if is_second or not (everything or parameter.default is inspect.Parameter.empty):
            continue
        # With a width, the items are a buffer.
        is_column = everything and parameter.name == "items" and "width" in inspect.signature(method).parameters
        value = b"7 bytes" if is_column else sample(parameter)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            options[parameter.name] = value
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            arguments.append(value)
        else:
            arguments.append(value)
    made: Command[Any] = method(*arguments, **options)
    return made


def sample(parameter: inspect.Parameter) -> Any:
    """A valid value for a parameter."""
    many = ("items", "keys", "others", "sources", "payloads")
    if parameter.name in many and parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return "x"
    if parameter.name == "items":
        return ["x"]
    if parameter.name in ("key", "destination", "item", "data"):
        return "x"
    if parameter.name == "layout":
        return "lines"
    if parameter.name == "field":
        return None
    is_flag = parameter.default is False or parameter.name in ("noScale", "noCreate")
    return True if is_flag else 7


def literals(method: Any) -> set[str]:
    """The literal values that the types of parameters allow."""
    found: set[str] = set()
    for function in [method.__func__, *get_overloads(method.__func__)]:
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return")
        for hint in hints.values():
            for part in (hint, *get_args(hint)):
                if get_origin(part) is Literal:
                    found |= {value for value in get_args(part) if isinstance(value, str)}
    return found


def test_every_field_of_info_is_read_as_its_type_says() -> None:
    fields = [literals(methods(family)["info"]) for family in DESCRIBED]
    assert set(FIELDS) == set.union(*fields) and min(map(len, fields)) > 10


@pytest.mark.parametrize(
    ("described", "written"),
    [
        (FilterCommands, (Filters, AsyncFilters, QueuedFilters)),
        (CounterCommands, (Counters, AsyncCounters, QueuedCounters)),
    ],
)
def test_every_class_has_the_same_parameters(described: Any, written: tuple[Any, ...]) -> None:
    for name, function in inspect.getmembers(described, inspect.isfunction):
        if name.startswith("_"):
            continue
        for face in written:
            ours, theirs = inspect.signature(getattr(face, name)), inspect.signature(function)
            assert ours.parameters == theirs.parameters
            assert inspect.getdoc(getattr(face, name)) == inspect.getdoc(function)
            assert inspect.iscoroutinefunction(getattr(face, name)) is face.__name__.startswith("Async")


@pytest.mark.parametrize(("commands", "local"), [(Filters, BloomFilter), (Counters, Counter)])
def test_options_are_spelled_as_those_of_the_classes_in_the_process(commands: Any, local: Any) -> None:
    """A regression test: `withroom` and `dryrun` of commands were `with_room` and `dry_run` of counters."""
    for name in ("admit", "members"):
        if hasattr(local, name):
            sent, called = (set(inspect.signature(getattr(one, name)).parameters) for one in (commands, local))
            assert {option for option in called if option.replace("_", "") in sent} <= sent


def test_the_classes_are_as_the_script_writes_them() -> None:
    script = ROOT / "scripts" / "python_commands.py"
    result = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_package_imports_no_client() -> None:
    """The package can be imported without any client library."""
    program = "import sys, rollcall_redis.redis; print([name for name in ('redis', 'valkey') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_types_are_inferred() -> None:
    """mypy checks redis_typed.py in strict mode. A wrong type in it would be an error."""
    typed = Path(__file__).with_name("redis_typed.py")
    claims = [node for node in ast.walk(ast.parse(typed.read_text())) if isinstance(node, ast.Call)]
    assert sum(ast.unparse(claim.func) == "assert_type" for claim in claims) > 30
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", "/dev/null", str(typed)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_times_are_rounded_up() -> None:
    filters = DESCRIBED["bf"]
    assert filters.reserve("k", 0.1, 1, window=timedelta(seconds=1.001)).words[-2:] == ["WINDOW", 2]
    assert filters.reserve("k", 0.1, 1, px=timedelta(milliseconds=0.5)).words[-2:] == ["PX", 1]
