#!/usr/bin/env python3
"""Checks rules about the shape of the code base that the compiler does not check.

    scripts/check_layers.py               check this repository; exit 1 and one line a violation if there is any
    scripts/check_layers.py --self-test   check the checker, on small sources that break each rule

The rules:
- Floors: the tables below say for each crate, folder by folder, which file or folder (a room) stands on which floor. A
  room names only rooms on floors below its own. Rooms of one floor may name each other in one direction, or not at all
  where `|` stands between them. Every room in the tree has a floor, and every room on a floor is in the tree.
- No circles: no files of a crate, a test or a bench name each other, directly or by way of others.
- The core is a plain library: parameters arrive as values. It does not name `redis_module`, `rand`, `std::env` or
  `std::time`. The server's API (src/server) knows of the core only the ground floor, so no filter and no counter.
- `unsafe` stands only in src/, in python/src/rows.rs, which looks at arrays of Python programs, in benches/floor/, a
  module for benchmarks that is nothing but server API, and in core/tests/allocation/failing.rs, which has an allocator
  that fails.
- No Rust file is longer than 600 lines: split it by concern.
- docs/design.md shows the same floors.

rust_modules.py finds which file names which, and follows re-exports. So:
- A file that names a re-exported item names the file that has the item, not the file that re-exports it.
- `mod x;` is no import. `pub use` of an item further down is none either, unless the file uses the item itself. So a
  mod.rs that only re-exports is in no circle. One whose items its children name, while it names theirs, is in one.
- The mod.rs of a folder with floors is not one of its rooms. Only the rule against circles holds between them.
- Modules under `#[cfg(test)]` count as files of their own, which nothing else names: `use super::*` makes no circle. The
  floors hold for them too.
"""

import os
import sys
from collections import deque
from pathlib import Path
from typing import Iterator, NamedTuple

from rust_modules import Names, Reference, Source, Tree, module_file, scan

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = "docs/design.md"
MAX_LINES = 600
NOT_OURS = {"target", "node_modules"}
MAY_BE_UNSAFE = ("src/", "python/src/rows.rs", "benches/floor/", "core/tests/allocation/failing.rs")


class Crate(NamedTuple):
    """What holds for one crate. Floors go from the ground up, each with its rooms."""

    source: str  # the folder of its root file
    name: str  # as other crates call it
    floors: dict[str, str]  # by folder, "" for the crate itself
    narrower: dict[str, str] = {}  # rooms that may name less of this crate than their floor allows
    of_core: dict[str, str] = {}  # rooms that may name only these rooms of the core
    never: tuple[Names, ...] = ()  # paths that nothing here names
    root: str = "lib"  # the root file, and its room


CORE = Crate(
    source="core/src",
    name="rollcall_core",
    floors={
        "": "bits hash error size_limit heap shared window admission parallel partition rounding health < bloom | counting < persist < unstable < lib",
        "bloom": "bitmap params < sliding < chain < lines | classic < ring < filter < admit windowed build collect",
        "persist": "payload value codec gaps enclosed bitmaps < chunks rdb < bloom | counting | redisbloom < ring < filter < file",
    },
    never=(("redis_module",), ("rand",), ("std", "env"), ("std", "time")),
)
SERVER = Crate(
    source="src",
    name="rollcall",
    floors={"": "server number < refusal < config args reply < limits < types < unserved < info | commands < lib"},
    of_core={"server": "bits hash error size_limit heap"},
)
TOOL = Crate(
    source="cli/src",
    name="rollcall_cli",
    floors={"": "failure interrupt output progress numbers table < file items lines memory server < watch http < commands < main"},
    root="main",
)
PYTHON = Crate(
    source="python/src",
    name="_rollcall",
    floors={
        "": "errors guarded rows < arguments < items < chunks stored transfer equality < filter counter < loaders < lib"
    },
)
CRATES = (CORE, SERVER, TOOL, PYTHON)


def check_files(sources: dict[str, Source]) -> Iterator[str]:
    for file, source in sources.items():
        if source.length > MAX_LINES:
            yield f"{file}: {source.length} lines, more than {MAX_LINES}: split it by concern"
        if not file.startswith(MAY_BE_UNSAFE):
            for token in source.stream:
                if token.text == "unsafe":
                    yield f"{file}:{token.line}: unsafe outside {' and '.join(MAY_BE_UNSAFE)}"


def check_trees(sources: dict[str, Source]) -> Iterator[str]:
    """Checks each crate, test, bench and example from its root file on; the core first, which others name."""
    claimed = {
        module_file(file, declared, sources)
        for file, source in sources.items()
        for declared in source.declared
        if not declared.inline
    }
    known: dict[str, Tree] = {}
    for root in sorted(sources.keys() - claimed, key=lambda file: (file != f"{CORE.source}/lib.rs", file)):
        crate = next((crate for crate in CRATES if root.startswith(f"{crate.source}/")), None)
        if crate and root != f"{crate.source}/{crate.root}.rs":
            yield f"{root}: no `mod` leads here"
            continue
        tree = Tree(root, sources, known)
        if crate:
            known = {**known, crate.name: tree}
            yield from check_crate(crate, tree)
        steps: dict[tuple[str, str], str] = {}
        for here, reference, there in tree.imports():
            steps.setdefault((here.node, there.node), str(reference.line))
        for way in circles(steps):
            yield f"{way[0]}: a circle of files: {shown(way, steps)}"


class Floors:
    """One line of a table: the rooms of a folder, and what each may name."""

    def __init__(self, crate: Crate, folder: str):
        self.folder: Names = tuple(folder.split("/")) if folder else ()
        self.root = crate.root
        self.may_name: dict[str, set[str]] = {}
        below: set[str] = set()
        for floor in crate.floors[folder].split("<"):
            apart = [set(rooms.split()) for rooms in floor.split("|")]
            for rooms in apart:
                self.may_name |= {room: below | rooms for room in rooms}
            below |= set().union(*apart)
        if not folder:
            self.may_name |= {room: set(rooms.split()) for room, rooms in crate.narrower.items()}

    def room(self, tree: Tree, module: Names) -> str | None:
        """The room that a module is in. None: it is elsewhere, or is the folder's mod.rs or the tests of that."""
        if module[: len(self.folder)] != self.folder:
            return None
        inner = module[: len(self.folder) + 1]
        own = tree.modules[self.folder].file
        if tree.modules[inner].test or tree.modules[inner].file == own:
            return None if self.folder else self.root
        return inner[-1]


def check_crate(crate: Crate, tree: Tree) -> Iterator[str]:
    for module, reference in tree.standing:
        for banned in crate.never:
            if reference.path[: len(banned)] == banned:
                yield f"{where(tree, module, reference)}: {crate.name} does not name {'::'.join(banned)}"
    for module, reference, place in tree.names():
        room = module[0] if module else crate.root
        if room in crate.of_core and place.tree is tree.others.get(CORE.name):
            named = place.path[0] if place.path else "lib"
            if named not in crate.of_core[room].split():
                yield f"{where(tree, module, reference)}: {room} must not know {CORE.name}::{named}"
    for folder in crate.floors:
        yield from check_floors(crate, tree, Floors(crate, folder))


def check_floors(crate: Crate, tree: Tree, floors: Floors) -> Iterator[str]:
    folder = "/".join((crate.source, *floors.folder))
    rooms = {room for module in tree.modules if (room := floors.room(tree, module))}
    for room in sorted(rooms - floors.may_name.keys()):
        yield f"{folder}: {room} has no floor: give it one in scripts/check_layers.py"
    for room in sorted(floors.may_name.keys() - rooms):
        yield f"{folder}: {room} has a floor in scripts/check_layers.py, and is not in the tree"
    steps: dict[tuple[str, str], str] = {}
    for module, reference, place in tree.names():
        if place.tree is not tree:
            continue
        room, named = floors.room(tree, module), floors.room(tree, place.path)
        if not room or not named or room == named or not {room, named} <= floors.may_name.keys():
            continue
        if named not in floors.may_name[room]:
            yield f"{where(tree, module, reference)}: {room} must not know {named}"
        elif not tree.modules[module].test:
            steps.setdefault((room, named), f"{tree.modules[module].file}:{reference.line}")
    for way in circles(steps):
        yield f"{folder}: a circle of rooms: {shown(way, steps)}"


def where(tree: Tree, module: Names, reference: Reference) -> str:
    return f"{tree.modules[module].file}:{reference.line}: {'::'.join(reference.path)}"


def circles(steps: dict[tuple[str, str], str]) -> list[list[str]]:
    """The shortest circle through each node that is in one, each circle once, its first node again as its last."""
    following: dict[str, list[str]] = {}
    for start, end in sorted(steps):
        following.setdefault(start, []).append(end)
    found: dict[frozenset[str], list[str]] = {}
    for start in following:
        came_from: dict[str, str] = {}
        queue = deque([start])
        while queue and start not in came_from:
            at = queue.popleft()
            for end in following.get(at, []):
                if end not in came_from:
                    came_from[end] = at
                    queue.append(end)
        if start in came_from:
            way = [start]
            while len(way) == 1 or way[-1] != start:
                way.append(came_from[way[-1]])
            found.setdefault(frozenset(way), way[::-1])
    return list(found.values())


def shown(way: list[str], steps: dict[tuple[str, str], str]) -> str:
    """A circle, with the place from which each step goes."""
    return " -> ".join([f"{start} ({steps[start, end]})" for start, end in zip(way, way[1:])] + way[:1])


def check(files: dict[str, str]) -> list[str]:
    sources = {file: scan(text) for file, text in files.items()}
    return sorted({*check_files(sources), *check_trees(sources)})


def check_document(text: str) -> Iterator[str]:
    """The floors as the document has them, a line a folder, with arrows."""
    lines = {" ".join(line.split()) for line in text.splitlines()}
    for crate in CRATES:
        for folder, floors in crate.floors.items():
            line = f"{'/'.join(filter(None, (crate.source, folder)))} {floors.replace('<', '<-')}"
            if line not in lines:
                yield f"{DOCUMENT}: not as in scripts/check_layers.py: {line}"


def check_repository() -> int:
    files = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS and not name.startswith(".")]
        for path in (Path(folder, name) for name in names if name.endswith(".rs")):
            files[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8")
    problems = [*check(files), *check_document((ROOT / DOCUMENT).read_text("utf-8"))]
    for line in problems:
        print(line)
    print(f"layers: {len(files)} files, {len(problems)} violations")
    return 1 if problems else 0


BITS, HASH, ERROR, COUNTING, CORE_LIB = (f"core/src/{room}.rs" for room in "bits hash error counting lib".split())
CHAIN, LINES, CLASSIC, FILTER, BLOOM = (
    f"core/src/bloom/{room}.rs" for room in "chain lines classic filter mod".split()
)
CODEC, PERSIST = "core/src/persist/codec.rs", "core/src/persist/mod.rs"
API, REFUSAL, ARGS, CONFIG, INFO, LIMITS, TYPES, LIB = (
    f"src/{room}.rs" for room in "server refusal args config info limits types lib".split()
)
# Files inside a room.
A, B, TESTS = (f"core/src/bloom/lines/{name}.rs" for name in ("a", "b", "tests"))

# Each case: what is written into files of a tree whose rooms are all empty, and words of every violation expected. None
# means that the case is allowed.
CASES = [
    # Tokens.
    ({LINES: "// crate::counting\n/* a /* nested */ unsafe */ const A: &str = \"unsafe crate::counting\";"}, None),
    ({LINES: "const A: &str = r#\"a \" unsafe\"#; const B: char = '\"'; const C: &[u8] = b\"unsafe\";"}, None),
    ({LINES: "fn f<'a>(x: &'a str) -> char { '\\'' } // unsafe"}, None),
    ({LINES: "#![deny(unsafe_code)] const V: &str = env!(\"CARGO_PKG_VERSION\");"}, None),
    # Floors of the core.
    ({LINES: "use crate::{bits, error::Error, hash::*};"}, None),
    ({LINES: "use super::chain::Chain; fn f() { super::params::check() }"}, None),
    ({FILTER: "use super::{lines, classic::Classic}; use crate::size_limit::SizeLimit;"}, None),
    ({"core/src/size_limit.rs": "use crate::error::Error;"}, None),
    ({"core/src/persist/bloom.rs": "use crate::bloom::lines; use super::rdb::Sink; use super::value::Stored;"}, None),
    ({CORE_LIB: "pub use bloom::filter::Filter; use persist::codec;"}, None),
    ({LINES: "pub(in crate::bloom) fn f() {} pub(crate) fn g(counting: u8) { counting.bloom() }"}, None),
    ({LINES: "use crate::counting::Counter;"}, "bloom must not know counting"),
    ({LINES: "use super::super::counting::Counter;"}, "bloom must not know counting"),
    ({LINES: "mod tests { use super::super::super::counting; }"}, "bloom must not know counting"),
    ({LINES: "mod a { fn f() {} } use super::super::counting;"}, "bloom must not know counting"),
    ({LINES: "use crate as root; fn f() { root::counting::f() }"}, "bloom must not know"),
    ({COUNTING: "use crate::{bits, bloom};"}, "counting must not know bloom"),
    ({COUNTING: "fn f() -> crate::bloom::Filter { todo!() }"}, "counting must not know bloom"),
    ({COUNTING: "#[derive(crate::bloom::Derived)] struct A;"}, "counting must not know bloom"),
    ({BLOOM: "use super::{bits, persist};"}, "bloom must not know persist"),
    ({BITS: "use crate::bloom;"}, "bits must not know bloom"),
    ({BITS: "use super::*;"}, "bits must not know lib"),
    ({BITS: "use crate::*;"}, "bits must not know lib"),
    ({CORE_LIB: "pub struct A;", LINES: "use crate::A;"}, "bloom must not know lib"),
    ({CORE_LIB: "pub use counting::Counter;", LINES: "use crate::Counter;"}, "bloom must not know counting"),
    ({CLASSIC: "use super::lines::Line;"}, "classic must not know lines"),
    ({LINES: "fn f() { super::classic::f() }"}, "lines must not know classic"),
    ({CHAIN: "use super::lines::CHUNK;"}, "chain must not know lines"),
    ({BLOOM: "pub use lines::Line;", CHAIN: "use super::Line;"}, "chain must not know lines"),
    ({BLOOM: "pub use lines as rows;", CHAIN: "use super::rows::Line;"}, "chain must not know lines"),
    ({BLOOM: "pub use lines::*;", LINES: "pub struct Line;", CHAIN: "use super::Line;"}, "chain must not know lines"),
    ({BLOOM: "#[cfg(test)] mod tests { use super::{chain, classic, lines}; }"}, None),
    ({CHAIN: "#[cfg(test)] mod tests { use super::super::lines; }"}, "chain must not know lines"),
    ({CODEC: "use super::rdb::Sink;"}, "codec must not know rdb"),
    ({"core/src/persist/redisbloom.rs": "use super::bloom::MAGIC;"}, "redisbloom must not know bloom"),
    ({CORE_LIB: "mod utils;", "core/src/utils.rs": ""}, "utils has no floor"),
    ({"core/src/utils.rs": ""}, "no `mod` leads here"),
    # What the core does not name.
    ({LINES: "use redis_module::Context;"}, "does not name redis_module"),
    ({HASH: "use ::rand::Rng;"}, "does not name rand"),
    ({HASH: "fn f() { let x = std::env::var(\"A\"); }"}, "does not name std::env"),
    ({PERSIST: "use std::{fmt, time::{self, Instant}};"}, "does not name std::time"),
    # Floors of the server module, and what it may know of the core.
    ({TYPES: "use crate::{limits, server}; use rollcall_core::{bloom, persist};"}, None),
    ({API: "use redis_module::raw; use rollcall_core::size_limit::SizeLimit; use std::time::Duration;"}, None),
    ({INFO: "use crate::server; use crate::refusal::Refusal;"}, None),
    ({LIB: "use rollcall_core::bloom; use types::Family;"}, None),
    ({API: "use crate::refusal::Refusal;"}, "server must not know refusal"),
    ({API: "use crate::limits;"}, "server must not know limits"),
    ({API: "use rollcall_core::bloom::Bloom;"}, "server must not know rollcall_core::bloom"),
    ({API: "fn f(x: rollcall_core::counting::Counter) {}"}, "server must not know rollcall_core::counting"),
    ({CORE_LIB: "pub use persist::codec::load;", API: "use rollcall_core::load;"}, "must not know rollcall_core::persist"),
    (
        {"core/src/unstable.rs": "pub mod persist { pub use crate::persist::codec::load; }"}
        | {API: "use rollcall_core::unstable::persist::load;"},
        "must not know rollcall_core::persist",
    ),
    (
        {"core/src/heap.rs": "pub trait Mover {}", "core/src/unstable.rs": "pub mod heap { pub use crate::heap::Mover; }"}
        | {API: "use rollcall_core::unstable::heap::Mover;"},
        None,
    ),
    ({LINES: "use crate::unstable::heap;"}, "bloom must not know unstable"),
    ({LIMITS: "pub use redis_module::raw::Context;", REFUSAL: "use crate::limits::Context;"}, "refusal must not know limits"),
    ({REFUSAL: "use crate::config::Options;"}, "refusal must not know config"),
    ({LIMITS: "use crate::info::REFUSED;"}, "limits must not know info"),
    ({INFO: "use crate::types::Family;"}, None),
    ({INFO: "use crate::commands::Table;"}, "info must not know commands"),
    ({"cli/src/file.rs": "use crate::commands::Command;"}, "file must not know commands"),
    ({"cli/src/main.rs": "use commands::Command;", "cli/src/commands.rs": "use crate::file::Reader;"}, None),
    ({CONFIG: "use crate::args;", "src/reply.rs": "use crate::config;"}, None),
    (
        {CONFIG: "mod a; mod b;", "src/config/a.rs": "use crate::args;", "src/config/b.rs": ""}
        | {ARGS: "use crate::config::b;"},
        "circle of rooms",
    ),
    # Circles of files.
    ({BITS: "use crate::hash;", HASH: "use crate::bits;"}, "circle"),
    ({BITS: "use crate::hash;", HASH: "use crate::error;", ERROR: "use crate::bits;"}, "circle"),
    ({LINES: "mod a; mod b;", A: "use super::b;", B: "use super::a;"}, "circle of files"),
    ({LINES: "mod a; use a::A; struct B;", A: "use super::B;"}, "circle of files"),
    ({LINES: "mod a; fn f() { a::f() } struct B;", A: "use super::B;"}, "circle of files"),
    ({LINES: "mod a; pub use a::A; fn f(x: A) {} struct B;", A: "use super::B;"}, "circle of files"),
    ({LINES: "mod a; pub use a::A; struct B;", A: "use super::B;"}, None),
    ({LINES: "mod a; mod b; pub use b::B; use a::A;", A: "use super::B;", B: ""}, None),
    (
        {LINES: "mod a; mod b; pub use a::*; pub use b::*;", A: "pub struct A; use super::B;"}
        | {B: "pub struct B; use super::A;"},
        "circle of files",
    ),
    ({LINES: "mod a; use a::A; #[cfg(test)] mod tests;", A: "", TESTS: "use super::*;"}, None),
    ({LINES: "mod a; use a::A;", A: "#[cfg(test)] mod tests { use super::super::*; }"}, None),
    ({LINES: "fn f() { #[cfg(test)] tests::CALLS.add(1) } #[cfg(test)] mod tests { use super::*; }"}, None),
    ({LINES: "mod a; use a::A; struct B;", A: "#[cfg(not(test))] mod tests { use super::super::B; }"}, "circle"),
    ({"tests/a/main.rs": "mod b; mod c;", "tests/a/b.rs": "use crate::c::C;", "tests/a/c.rs": "use crate::b::B;"}, "circle"),
    (
        {
            "tests/a/main.rs": "mod b; #[path = \"../d/c.rs\"] #[allow(dead_code)] mod c;",
            "tests/a/b.rs": "use crate::c::C;",
            "tests/d/c.rs": "fn f() { crate::b::f() }",
        },
        "circle of files",
    ),
    ({"tests/a/main.rs": "mod b; use b::B; fn f() {}", "tests/a/b.rs": "use crate::f;"}, "circle of files"),
    ({"examples/a.rs": "mod demo; use demo::run;", "examples/demo/mod.rs": "pub fn run() {}"}, None),
    ({"examples/a.rs": "mod demo; use demo::run; struct A;", "examples/demo/mod.rs": "use super::A;"}, "circle"),
    ({"benches/a/main.rs": "use rollcall_core::bloom; use std::time::Duration; use std::env;"}, None),
    # Unsafe, and length.
    ({API: "fn f() { unsafe { g() } }", LIB: "#[unsafe(no_mangle)] fn f() {}"}, None),
    ({"benches/floor/lib.rs": "unsafe fn f() {}"}, None),
    ({"core/tests/allocation/failing.rs": "unsafe impl A for B {}"}, None),
    ({"core/tests/golden.rs": "unsafe fn f() {}"}, "unsafe outside src/"),
    ({LINES: "fn f() { unsafe { g() } }"}, "unsafe outside src/"),
    ({"tests/format.rs": "unsafe fn f() {}"}, "unsafe outside src/"),
    ({"benches/server/main.rs": "unsafe fn f() {}"}, "unsafe outside src/"),
    ({BITS: "\n" * 600}, None),
    ({BITS: "\n" * 601}, "601 lines, more than 600"),
    ({BITS: "/*\n\n*/\n\"\n\"; unsafe {}"}, "core/src/bits.rs:5: unsafe"),
]


def empty_tree() -> dict[str, str]:
    """A tree that has every room, each of them empty."""
    files = {}
    for crate in CRATES:
        for folder in crate.floors:
            rooms = [room for room in Floors(crate, folder).may_name if room != crate.root]
            for room in rooms:
                if "/".join(filter(None, (folder, room))) not in crate.floors:
                    files["/".join(filter(None, (crate.source, folder, f"{room}.rs")))] = ""
            top = f"{folder}/mod.rs" if folder else f"{crate.root}.rs"
            files[f"{crate.source}/{top}"] = "".join(f"pub mod {room}; " for room in rooms)
    return files


def self_test() -> int:
    failed = 0
    for written, expected in [({}, None), *CASES]:
        files = empty_tree()
        for file, source in written.items():
            files[file] = files.get(file, "") + source
        found = check(files)
        right = found and all(expected in line for line in found) if expected else not found
        if not right:
            failed += 1
            print(f"self-test: {str(written)[:120]}\n  expected: {expected or 'nothing'}\n  found: {found}")
    files = {file: source.replace("pub mod chain;", "") for file, source in empty_tree().items() if file != CHAIN}
    if check(files) != ["core/src/bloom: chain has a floor in scripts/check_layers.py, and is not in the tree"]:
        failed += 1
        print("self-test: a room that is not in the tree was not missed")
    shown = "core/src  bits <- lib"
    if len(list(check_document(shown))) != sum(len(crate.floors) for crate in CRATES):
        failed += 1
        print("self-test: other floors in the document were not seen")
    print(f"layers: self-test: {len(CASES) + 3 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if sys.argv[1:]:
        sys.exit("usage: check_layers.py [--self-test]")
    sys.exit(check_repository())
