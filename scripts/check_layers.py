#!/usr/bin/env python3
"""Checks which files use which, and other rules that the compiler does not check. Prints each violation, and then exits
with 1.

- Layers: docs/design.md has a line for each folder of `core/src` and `src` with two rooms or more (files or folders),
  and for OTHER_FOLDERS, such as `core/src  bits hash <- bloom | counting <- lib`. A room may use only those to its
  left. Within a layer, those separated by `|` must not use each other.
- Files must not use each other in a circle. Modules under `#[cfg(test)]` count as separate files.
- The core must not use anything in NEVER, and src/server only SERVER_KNOWS of it. `unsafe` is allowed in MAY_BE_UNSAFE.
- A file has at most 600 lines, and no re-exports by `*`, so that every use of a re-exported item can be resolved.
- Code and comments have at most 120 columns.
"""

import json
import os
import re
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import SimpleNamespace

os.chdir(Path(__file__).resolve().parent.parent)
OTHER_FOLDERS = ("cli/src", "python/src")
NEVER = re.compile(r"(redis_module|rand|std::env|std::time)\b")
SERVER_KNOWS = {"bits", "hash", "error", "size_limit", "heap"}
MAY_BE_UNSAFE = ("src/", "python/src/rows.rs", "python/src/arrow.rs", "core/tests/allocation/failing.rs")

TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|\b[bc]?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\])'""", re.DOTALL)
MOD = r"^( *)(?P<attributes>(?:#\[[^\n]*\]\s*)*)(?:pub(?:\([^)]*\))? )?mod (?P<name>\w+)"
DECLARED, INLINE = re.compile(MOD + ";", re.M), re.compile(MOD + r" \{$(?P<body>.*?)^\1\}$", re.DOTALL | re.M)
USE = re.compile(r"(?P<public>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);|\bpub\([^)]*\)")
NAME = re.compile(r"(?<!\w)(?<![^.]\.)[A-Za-z_]\w*(?:::\w+)*")
BLANK = lambda found: "\n" * found[0].count("\n")


def place(file, text, found):
    return f"{file}:{text.count(chr(10), 0, found.start()) + 1}"


def leaves(tree):
    """The paths of a `use`, each with the name that it introduces."""
    tree = re.sub(r"\s", "", re.sub(r"\sas\s+", "@", tree))
    while "{" in tree:
        each = lambda found: ",".join(found[1] + one for one in found[2].split(","))
        tree = re.sub(r"([\w:]*)\{([^{}]*)\}", each, tree)
    for path, name in re.findall(r"(\w+(?:::\w+)*?(?:::\*)?)(?:::self)?(?:@(\w+))?(?:,|$)", tree):
        yield tuple(path.split("::")), name or path.split("::")[-1]


def file_of(file, name):
    """The file of `mod name;`: the one in `#[path]`, or one in the folder named like `file`, or one next to `file`."""
    by_path = re.search(rf'#\[path = "(.*?)"\](?:\s*#\[.*\])*\s*(?:pub )?mod {name};', Path(file).read_text())
    names = [folder + name + end for folder in (f"{Path(file).stem}/", "") for end in (".rs", "/mod.rs")]
    places = (os.path.normpath(Path(file).parent / name) for name in ([by_path[1]] if by_path else names))
    return next(place for place in places if place in SOURCES and place != file)


class Tree(dict):
    """The modules of a crate, test, bench or example, by their paths."""

    def mount(self, file, path, test, text):
        module = self[path] = SimpleNamespace(file=file, test=bool(test), uses={}, names=[], words=set())
        for mod in [*INLINE.finditer(text), *DECLARED.finditer(INLINE.sub(BLANK, text))]:
            inner = file if mod.re is INLINE else file_of(file, mod["name"])
            body = "\n" * text.count("\n", 0, mod.start("body")) + mod["body"] if mod.re is INLINE else SOURCES[inner]
            self.mount(inner, (*path, mod["name"]), test or re.search(r"cfg\((all\()?test\b", mod["attributes"]), body)
        text = DECLARED.sub(BLANK, INLINE.sub(BLANK, text))
        for use in USE.finditer(text):  # path, place, name that it gives, whether to others
            at = place(file, text, use)
            module.names += [(whole, at, name, use["public"]) for whole, name in leaves(use["tree"] or "")]
        module.uses |= {name: whole for whole, _, name, _ in module.names}
        text = USE.sub(BLANK, text)
        for found in NAME.finditer(text):
            first, *more = found[0].split("::")
            module.words.add(first)
            module.names += [((first, *more), place(file, text, found), None, None)] if more else []
        return self

    def find(self, at, path, inside=False, seen=()):
        """The tree and the module that contain the item `path`, as named in the module `at`; None if it is in another
        crate."""
        while path[:1] in (("crate",), ("self",), ("super",)):
            at, path, inside = {"crate": (), "self": at, "super": at[:-1]}[path[0]], path[1:], True
        if path in ((), ("*",)):
            return self, at
        first, used = path[0], self[at].uses.get(path[0])
        tree, to = (LIBRARIES[first], ()) if first in LIBRARIES and not inside else (self, (*at, first))
        if to in tree:
            return tree.find(to, path[1:], True, seen)
        # A path may lead through `use` into another crate, as with `use multiversion::multiversion;`. Then the last
        # module of this crate on the way is returned.
        found = used and used[0] != first and used not in seen and self.find(at, used + path[1:], False, (used, *seen))
        return found or ((self, at) if used or inside else None)

    def references(self):
        """All uses of modules: user, used module, place, path, and whether it is only a re-export."""
        for at, module in self.items():
            for path, where, name, public in module.names:
                tree, to = self.find(at, path) or (None, None)
                # If a path leads no further than the `use` of its first name, it counts as a use there.
                if tree and (name or path[0] not in module.uses or (tree, to) != self.find(at, path[:1])):
                    passed_on = public and tree is self and to[: len(at)] == at and name not in module.words
                    yield module, tree[to], where, "::".join(path), passed_on


def listed(*patterns):
    """The files of the tree with these names."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    return [file for file in subprocess.check_output(command, text=True).split() if Path(file).is_file()]


def room(folder, file):
    """The first-level file or folder of `folder` that a file belongs to; None if there is none."""
    return (found := re.match(rf"{folder}/(?!mod\.|tests\.)(\w+)", file)) and found[1]


def folders():
    """The folders whose layers docs/design.md lists. Folders of tests have no layers."""
    ours = {str(Path(file).parent) for file in SOURCES if re.match("(core/)?src/(?!.*tests/)", file)}
    yield from OTHER_FOLDERS
    yield from (folder for folder in ours if len({room(folder, file) for file in SOURCES} - {None}) > 1)


def check(references):
    steps = {}
    for file, text in SOURCES.items():
        if (length := text.count("\n")) > 600:
            yield f"{file}: {length} lines, more than 600: split it by concern"
        for found in re.finditer(r"\bunsafe\b|\bpub(\(.*?\))? use [^;]*\*", text):
            if found[0] != "unsafe" or not file.startswith(MAY_BE_UNSAFE):
                yield f"{place(file, text, found)}: {found[0]}: not here"
    for file in listed("*.rs", "*.py", "*.sh", "*.js", ".ci/run"):
        lines = enumerate(Path(file).read_text().splitlines(), 1)
        yield from (f"{file}:{at}: {len(line)} columns, more than 120" for at, line in lines if len(line) > 120)
    for path, where, *_ in (name for module in LIBRARIES["rollcall_core"].values() for name in module.names):
        yield from [f"{where}: the core does not name {'::'.join(path)}"] if NEVER.match("::".join(path)) else []
    for here, there, where, name, passed_on in references:
        start, end = (module.file + " (tests)" * module.test for module in (here, there))
        if start != end and not passed_on and (here.test or not there.test):
            steps.setdefault(start, {}).setdefault(end, where)
        if here.file.startswith("src/server/") and room("core/src", there.file) not in SERVER_KNOWS | {None}:
            yield f"{where}: {name}: the server's API must not know this of the core"
    layers = dict(re.findall(r"^([\w/]+) +(\w.* (?:<-|\|) .*)", Path("docs/design.md").read_text(), re.M))
    for folder in sorted({*folders(), *layers}):
        known, rooms_of = {}, {room(folder, file) for file in SOURCES} - {None}
        for layer in layers.get(folder, "").split("<-"):
            known |= {one: {*known, *rooms.split()} for rooms in layer.split("|") for one in rooms.split()}
        for one in rooms_of ^ known.keys():
            yield f"{folder}: {one} is not both in the tree and in a layer of docs/design.md"
        for here, there, where, name, _ in references:
            start, end = room(folder, here.file), room(folder, there.file)
            if start != end and {start, end} <= known.keys() and end not in known[start]:
                yield f"{where}: {name}: {start} must not know {end}"
            elif start != end and {start, end} <= known.keys() and not here.test:
                steps.setdefault(f"{folder}: {start}", {}).setdefault(f"{folder}: {end}", where)
    try:
        TopologicalSorter(steps).prepare()
    except CycleError as error:
        way = error.args[1][::-1]
        yield "a circle: " + ", ".join(f"{start} -> {end} ({steps[start][end]})" for start, end in zip(way, way[1:]))


SOURCES = {file: TEXT.sub(BLANK, Path(file).read_text()) for file in listed("*.rs")}
TREES, LIBRARIES, METADATA = [], {}, ["cargo", "metadata", "--no-deps", "--offline", "--format-version=1"]
for workspace in (".", "tests/clients/rust"):
    packages = json.loads(subprocess.check_output(METADATA, cwd=workspace))["packages"]
    for target in (target for package in packages for target in package["targets"]):
        root = os.path.relpath(target["src_path"])
        TREES.append(Tree().mount(root, (), False, SOURCES[root]))
        LIBRARIES |= {target["name"]: TREES[-1]} if {"lib", "cdylib"} & {*target["kind"]} else {}
problems = sorted({*check([reference for tree in TREES for reference in tree.references()])})
print(*problems, f"layers: {len(SOURCES)} files, {len(problems)} violations", sep="\n")
raise SystemExit(bool(problems))
