#!/usr/bin/env python3
"""Checks the shape of the code base: what the compiler does not.

    scripts/check_layers.py               check this repository; exit 1 and one line a violation if there is any
    scripts/check_layers.py --self-test   check the checker, on small sources that break each rule

The rules:
- Direction: bits, hash, error, limit <- bloom | counting <- persist <- redis <- lib. A module names only modules below
  its own; bloom and counting never name each other; nothing names the whole crate (`crate::*`) or what lib.rs
  re-exports, which would hide the direction.
- The core (all below redis) is a plain library: parameters arrive as values. It does not name `redis_module`, `rand`,
  `std::env` or `std::time`.
- `unsafe` stands only in src/redis/, and in benches/floor/, a module for benchmarks that is nothing but server API.
- No Rust file is longer than 600 lines: split it by concern.

It reads tokens, not text, so that comments and strings may say anything; and it follows `use` trees, `self` and `super`.
What a macro builds at compile time is not seen.
"""

import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 600

BASE = {"bits", "hash", "error", "limit"}
CORE = BASE | {"bloom", "counting", "persist"}
MAY_NAME = {name: BASE for name in BASE} | {
    "bloom": BASE,
    "counting": BASE,
    "persist": BASE | {"bloom", "counting"},
    "redis": CORE,
    "lib": CORE | {"redis"},
}
# Keywords that can stand before a path which starts with `::`; the path begins after them.
BEFORE_PATH = {"use", "return", "in", "as", "dyn", "impl", "mut", "const", "for", "match", "if", "while", "where", "break"}
MAY_BE_UNSAFE = ("src/redis/", "benches/floor/")
NOT_IN_CORE = [("redis_module",), ("rand",), ("std", "env"), ("std", "time")]

TOKEN = re.compile(
    r"""
      (?P<space>\s+ | //[^\n]*)
    | (?P<block>/\*)
    | (?P<raw>b?c?r(?P<hashes>\#*)".*?"(?P=hashes))
    | (?P<string>[bc]?"(?:\\.|[^"\\])*")
    | (?P<char>b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\])')
    | (?P<lifetime>'\w+)
    | (?P<ident>(?:r\#)?[A-Za-z_]\w*)
    | (?P<number>\d[\w.]*)
    | (?P<punct>::|.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    text: str
    line: int
    is_ident: bool


class Reference(NamedTuple):
    """One path as it is written out in full: `use a::{b, c::*}` gives a::b and a::c::*."""

    path: tuple[str, ...]
    line: int
    module: tuple[str, ...]  # where it stands, inline modules included


def tokens(source: str) -> list[Token]:
    found, at, line = [], 0, 1
    while at < len(source):
        match = TOKEN.match(source, at)
        text, kind = match.group(), match.lastgroup
        if match.group("block"):
            text = block_comment(source, at)
        elif kind in ("ident", "punct"):
            found.append(Token(text.removeprefix("r#"), line, kind == "ident"))
        elif kind != "space":
            found.append(Token('""', line, False))  # a literal: a place, without its text
        line += text.count("\n")
        at += len(text)
    return found


def block_comment(source: str, start: int) -> str:
    """Rust's block comments nest."""
    depth, at = 1, start + 2
    while depth and at < len(source):
        two = source[at : at + 2]
        step = {"/*": 1, "*/": -1}.get(two, 0)
        depth += step
        at += 2 if step else 1
    return source[start:at]


def references(stream: list[Token], module: tuple[str, ...]) -> Iterator[Reference]:
    inline: list[tuple[str, int]] = []  # names of open inline modules, and the brace depth inside each
    depth, at = 0, 0
    while at < len(stream):
        token = stream[at]
        if token.text == "mod" and at + 2 < len(stream) and stream[at + 1].is_ident and stream[at + 2].text == "{":
            depth += 1
            inline.append((stream[at + 1].text, depth))
            at += 3
        elif token.text == "{":
            depth, at = depth + 1, at + 1
        elif token.text == "}":
            if inline and inline[-1][1] == depth:
                inline.pop()
            depth, at = depth - 1, at + 1
        elif token.is_ident and token.text not in BEFORE_PATH:
            here = module + tuple(name for name, _ in inline)
            paths, at = path_tree(stream, at)
            for path in paths:
                yield Reference(path, token.line, here)
        else:
            at += 1


def path_tree(stream: list[Token], at: int) -> tuple[list[tuple[str, ...]], int]:
    """The paths that start at `at`, and where the first token after them is."""
    path = [stream[at].text]
    at += 1
    while at + 1 < len(stream) and stream[at].text == "::":
        after = stream[at + 1]
        if after.is_ident:
            path.append(after.text)
            at += 2
        elif after.text == "*":
            return [(*path, "*")], at + 2
        elif after.text == "{":
            branches: list[tuple[str, ...]] = []
            at += 2
            while at < len(stream) and stream[at].text != "}":
                if stream[at].is_ident:
                    found, at = path_tree(stream, at)
                    branches += found
                elif stream[at].text == "*":
                    branches.append(("*",))
                    at += 1
                else:
                    at += 1
            return [(*path, *(b for b in branch if b != "self")) for branch in branches], at + 1
        else:
            break  # a turbofish, or a generic argument: its own paths come next
    return [tuple(path)], at


def module_path(file: str) -> tuple[str, ...]:
    """src/bloom/filter.rs is bloom::filter; src/lib.rs is the crate's root."""
    parts = Path(file).with_suffix("").parts[1:]
    return () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts


def in_crate(reference: Reference) -> tuple[str, ...] | None:
    """The path from the crate's root, or None where it leads elsewhere."""
    first, *rest = reference.path
    if first == "crate":
        return tuple(rest) if rest else None  # `pub(crate)`
    if first not in ("self", "super") or not rest:
        return None
    base = list(reference.module)
    parts = list(reference.path)
    while parts and parts[0] in ("self", "super"):
        if parts.pop(0) == "super" and base:
            base.pop()
    return (*base, *parts)


def check_source(file: str, source: str) -> Iterator[str]:
    if (length := source.count("\n")) > MAX_LINES:
        yield f"{file}: {length} lines, more than {MAX_LINES}: split it by concern"
    stream = tokens(source)
    if not file.startswith(MAY_BE_UNSAFE):
        for token in stream:
            if token.text == "unsafe":
                yield f"{file}:{token.line}: unsafe outside {' and '.join(MAY_BE_UNSAFE)}"
    if file.startswith("src/"):
        yield from check_direction(file, stream)


def check_direction(file: str, stream: list[Token]) -> Iterator[str]:
    module = module_path(file)
    layer = module[0] if module else "lib"
    if layer not in MAY_NAME:
        yield f"{file}: module {layer} has no place in the layers: give it one in scripts/check_layers.py"
        return
    for reference in references(stream, module):
        written = "::".join(reference.path)
        where = f"{file}:{reference.line}"
        if layer in CORE:
            for banned in NOT_IN_CORE:
                if reference.path[: len(banned)] == banned:
                    yield f"{where}: {written}: the core does not name {'::'.join(banned)}, it takes values"
        target = in_crate(reference)
        if target is None or layer == "lib":
            continue
        named = target[0] if target else "*"
        if named not in MAY_NAME:
            yield f"{where}: {written} names something at the crate's root: name the module that it is in"
        elif named != layer and named not in MAY_NAME[layer]:
            yield f"{where}: {written}: {layer} must not know {named}"


def check_repository() -> int:
    files = sorted(path for folder in ("src", "tests", "examples", "benches") for path in (ROOT / folder).rglob("*.rs"))
    problems = [line for path in files for line in check_source(str(path.relative_to(ROOT)), path.read_text("utf-8"))]
    for line in problems:
        print(line)
    print(f"layers: {len(files)} files, {len(problems)} violations")
    return 1 if problems else 0


# (file, source, words of the one violation expected; None: allowed)
CASES = [
    ("src/bloom/filter.rs", "use crate::{bits, error::CoreError, hash::*};", None),
    ("src/bloom/filter.rs", "use super::math::num_lines;", None),
    ("src/bloom/mod.rs", "pub mod filter; pub use self::filter::Filter; pub(crate) fn f() {}", None),
    ("src/bloom/filter.rs", "mod tests { use super::*; use super::super::math; }", None),
    ("src/bloom/filter.rs", "// crate::counting\n/* a /* nested */ unsafe */ const A: &str = \"unsafe crate::redis\";", None),
    ("src/bloom/filter.rs", "const A: &str = r#\"a \" unsafe\"#; const B: char = '\"'; const C: &[u8] = b\"unsafe\";", None),
    ("src/bloom/filter.rs", "fn f<'a>(x: &'a str) -> char { '\\'' } // unsafe", None),
    ("src/bloom/filter.rs", "#![deny(unsafe_code)] const V: &str = env!(\"CARGO_PKG_VERSION\");", None),
    ("src/limit.rs", "use crate::error::CoreError;", None),
    ("src/persist/bloom.rs", "use crate::bloom::Filter; use crate::counting;", None),
    ("src/redis/ffi.rs", "use redis_module::raw; use std::time::Duration; fn f() { unsafe { g() } }", None),
    ("src/redis/commands/bloom.rs", "use crate::{bloom, persist}; use super::super::args;", None),
    ("src/lib.rs", "pub mod bloom; pub use bloom::Filter; pub use crate::error::CoreError;", None),
    ("tests/server/main.rs", "use rollcall::bloom; use std::time::Duration; use std::env;", None),
    ("src/bloom/filter.rs", "use crate::counting::Counter;", "bloom must not know counting"),
    ("src/counting/counter.rs", "use crate::{bits, bloom};", "counting must not know bloom"),
    ("src/counting/counter.rs", "fn f() -> crate::bloom::Filter { todo!() }", "counting must not know bloom"),
    ("src/counting/counter.rs", "use super::super::bloom::Filter;", "counting must not know bloom"),
    ("src/bloom/mod.rs", "use super::{bits, persist};", "bloom must not know persist"),
    ("src/bloom/filter.rs", "mod tests { use super::super::super::counting; }", "bloom must not know counting"),
    ("src/bloom/filter.rs", "mod a { fn f() {} } use super::super::counting;", "bloom must not know counting"),
    ("src/bits.rs", "use crate::bloom;", "bits must not know bloom"),
    ("src/persist/codec.rs", "use crate::redis::reply;", "persist must not know redis"),
    ("src/persist/codec.rs", "fn f() { let x = Vec::<crate::redis::A>::new(); }", "persist must not know redis"),
    ("src/bloom/filter.rs", "use crate::*;", "names something at the crate's root"),
    ("src/bits.rs", "use super::*;", "names something at the crate's root"),
    ("src/bloom/filter.rs", "use crate::Filter;", "names something at the crate's root"),
    ("src/bloom/filter.rs", "use redis_module::Context;", "does not name redis_module"),
    ("src/hash.rs", "use ::rand::Rng;", "does not name rand"),
    ("src/hash.rs", "fn f() { let x = std::env::var(\"A\"); }", "does not name std::env"),
    ("src/persist/mod.rs", "use std::{fmt, time::{self, Instant}};", "does not name std::time"),
    ("src/utils.rs", "", "has no place in the layers"),
    ("src/bloom/filter.rs", "fn f() { unsafe { g() } }", "unsafe outside src/redis/"),
    ("src/lib.rs", "#[unsafe(no_mangle)] fn f() {}", "unsafe outside src/redis/"),
    ("tests/format.rs", "unsafe fn f() {}", "unsafe outside src/redis/"),
    ("benches/floor/lib.rs", "unsafe fn f() {}", None),
    ("benches/server/main.rs", "unsafe fn f() {}", "unsafe outside src/redis/"),
    ("src/bloom/filter.rs", "\n" * 600, None),
    ("src/bloom/filter.rs", "\n" * 601, "601 lines, more than 600"),
]


def self_test() -> int:
    failed = 0
    for file, source, expected in CASES:
        found = sorted(set(check_source(file, source)))
        if expected is None and found or expected is not None and (not found or any(expected not in line for line in found)):
            failed += 1
            print(f"self-test: {file}: {source.strip()[:80]!r}\n  expected: {expected or 'nothing'}\n  found: {found}")
    line = next(check_source("src/bits.rs", "/*\n\n*/\n\"\n\"; unsafe {}"))
    if ":5:" not in line:
        failed += 1
        print(f"self-test: wrong line number: {line}")
    print(f"layers: self-test: {len(CASES) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if sys.argv[1:]:
        sys.exit("usage: check_layers.py [--self-test]")
    sys.exit(check_repository())
