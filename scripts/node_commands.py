#!/usr/bin/env python3
"""Writes js/src/commands.ts: the layout and the types of each command, for JavaScript.

    scripts/node_commands.py            fail if the file is not what would be written
    scripts/node_commands.py --write    write the file

The arguments are those of docs/commands.json, and the replies those of scripts/replies.toml. Arguments with a token
are options. The others are parameters, in the order of the command.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "js" / "src" / "commands.ts"
COMMANDS = json.loads((ROOT / "docs" / "commands.json").read_text())
TABLE = tomllib.loads((ROOT / "scripts" / "replies.toml").read_text())
NUMBERS = ("integer", "double", "unix-time")


def parameter(argument):
    """The name, the type and the layout of an argument without a token."""
    name, kind = argument["name"], argument["type"]
    if kind == "oneof":
        return name, words(argument), "value"
    type_ = "number" if kind in NUMBERS else "Argument"
    layout = "key" if kind == "key" else "item" if kind == "string" else "value"
    if argument.get("multiple"):
        return f"{name}s", "List", f"{layout}s"
    return re.sub(r"-(\w)", lambda found: found[1].upper(), name), type_, layout


def words(argument):
    """The type of an argument that is one of several words, or a number."""
    return " | ".join(json.dumps(one["token"]) if "token" in one else "number" for one in argument["arguments"])


def value(option):
    """The type of an option's value."""
    if option["type"] == "oneof":
        return words(option)
    if option["name"] == "seed":
        return "number | bigint"
    return {"pure-token": "boolean", "string": "Spans"}.get(option["type"], "number")


def is_group(option):
    return option["type"] in ("block", "oneof") and "token" not in option


def fields(arguments):
    """The type of options that do not depend on each other."""
    rows = [f"{one['token']}{'?' * one.get('optional', False)}: {value(one)}" for one in arguments]
    return f"{{ {'; '.join(rows)} }}"


def options(arguments):
    """The types whose intersection is the type of these options."""
    plain = [one for one in arguments if not is_group(one)]
    types = [fields(plain)] if plain else []
    for group in filter(is_group, arguments):
        if group["type"] == "oneof":
            types.append(f"OneOf<{fields(group['arguments'])}>")
        else:
            first, *more = group["arguments"]
            types.append(f"Block<{fields([first])}, {' & '.join(options(more))}>")
    return types


def apart(command, arguments):
    """The types of options of this command that exclude others."""
    tokens = {part[:-1] for one in arguments for part in layouts(one)}
    for described, others in TABLE["apart"].items():
        only, _, option = described.rpartition(" ")
        token, *beside = option.split(":")
        if token in tokens and only in ("", command):
            excluded = " | ".join(map(json.dumps, others))
            yield f"Apart<{', '.join([json.dumps(token), excluded, *map(json.dumps, beside)])}>"


def layouts(option):
    """The layout of an option or a group."""
    if is_group(option):
        return [part for one in option["arguments"] for part in layouts(one)]
    return [option["token"] + {"pure-token": "?", "string": "*"}.get(option["type"], "=")]


def method(command, described, kind):
    """The lines of a method: the type of its options, its signature, and its row in the table."""
    called, sign, word = re.fullmatch(r"(\w+)(?:([+-])(\w+))?", described).groups()
    family, name = command.split(".")
    fixed = {other.partition("+")[2] for other in TABLE[family][name]} - {""}
    parameters, wanted, layout = [], [], []
    for one in COMMANDS[command]["arguments"]:
        token = one.get("token")
        if one["name"] == "numkeys":
            layout.append("numkeys")
        elif token in fixed:
            layout += [token] * (sign == "+")
        elif token == "ITEMS":
            parameters.append("items: List")
            layout += ["ITEMS", "items"]
        elif token or one["name"] in ("window", "expiration"):
            wanted.append(one)
            layout += layouts(one)
        elif not (sign == "-" and one["name"] == word):
            text, type_, part = parameter(one)
            parameters.append(f"{text}: {type_}")
            layout.append(part)
    exported = []
    if wanted:
        type_ = f"{family.capitalize()}{name.capitalize()}Options"
        is_optional = all(one.get("optional") for one in wanted)
        parameters.append(f"options{'?' * is_optional}: {type_}")
        types = [*options(wanted), *apart(command, wanted)]
        exported = ["", f"export type {type_} =", *(f"  & {one}" for one in types)]
        exported[-1] += ";"
    flags = [str(flag).lower() for flag in ("readonly" in COMMANDS[command]["command_flags"], is_cut(layout, kind))]
    row = ", ".join([*map(json.dumps, (command, " ".join(layout), kind)), *flags])
    signature = f"  {called}({', '.join(parameters)}): {TABLE['kinds'][kind]['javascript']};"
    return exported, [f"  /** {command}: {COMMANDS[command]['summary']}. */", signature], [f"  {called}: row({row}),"]


def is_cut(layout, kind):
    return layout[-1] == "items" and kind in TABLE["cut"]["kinds"]


def written():
    lines = ["// The commands: their types and layouts. Written by scripts/node_commands.py.", ""]
    lines += ['import type { Aged, Chunk, CounterInfo, Estimate, Field, FilterInfo, ItemError } from "./replies";']
    lines += ['import type { Outcome, Room, Slice } from "./replies";']
    lines += ['import { row } from "./words";']
    lines += ['import type { Apart, Argument, Block, List, OneOf, Spans } from "./words";']
    for family, title in (("BF", "Filters"), ("LC", "Counters<Text>")):
        exported, types, table = [], [], []
        for name, methods in TABLE[family].items():
            for described, kind in methods.items():
                option_lines, type_lines, table_lines = method(f"{family}.{name}", described, kind)
                exported += option_lines if option_lines != exported[-len(option_lines) :] else []
                types += type_lines
                table += table_lines
        lines += [*exported, "", f"export interface {title} {{", *types, "}"]
        lines += ["", f"export const {family} = {{", *table, "};"]
    return "\n".join(lines) + "\n"


named = {f"{family}.{name}" for family in ("BF", "LC") for name in TABLE[family]}
if named != set(COMMANDS):
    raise SystemExit(f"node_commands: not in both tables: {sorted(named ^ set(COMMANDS))}")
text = written()
if sys.argv[1:] == ["--write"]:
    FILE.write_text(text)
elif sys.argv[1:]:
    raise SystemExit(__doc__)
elif not FILE.exists() or FILE.read_text() != text:
    raise SystemExit("node_commands: run scripts/node_commands.py --write: js/src/commands.ts is not as written")
