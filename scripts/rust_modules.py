"""Reads Rust sources: which file names which.

It reads tokens, not text, so comments and strings may say anything. It follows `mod`, `#[path]`, `use` trees, renames
and re-exports to the file that has the item. Macros are not followed: neither their output nor a call by a bare name.
check_layers.py uses it, and tests it by its own self-test.
"""

import os
import re
from pathlib import PurePosixPath
from typing import Iterator, NamedTuple

Names = tuple[str, ...]

# Keywords that can stand before a path which starts with `::`; the path begins after them.
BEFORE_PATH = {"return", "in", "as", "dyn", "impl", "mut", "const", "for", "match", "if", "while", "where", "break"}
DEFINES = {"fn", "struct", "enum", "union", "trait", "type", "const", "static"}

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
    text: str  # a literal keeps its quotes
    line: int
    is_ident: bool


class Reference(NamedTuple):
    """One path as it is written out in full: `use a::{b, c::*}` gives a::b and a::c::*."""

    path: Names
    line: int
    inside: Names  # the inline modules that it stands in
    name: str | None = None  # what a `use` calls it
    public: bool = False  # `pub use`


class Declaration(NamedTuple):
    """`mod name;`, or `mod name { .. }` where `inline`."""

    name: str
    inside: Names
    inline: bool
    test: bool
    path: str | None  # of #[path]


class Source(NamedTuple):
    """What one file has, without knowing which module it is."""

    length: int
    stream: list[Token]
    declared: list[Declaration]
    references: list[Reference]
    defined: set[tuple[Names, str]]  # items, by inline module


def tokens(source: str) -> list[Token]:
    found, at, line = [], 0, 1
    while at < len(source):
        match = TOKEN.match(source, at)
        text, kind = match.group(), match.lastgroup
        if match.group("block"):
            text = block_comment(source, at)
        elif kind != "space":
            found.append(Token(text.removeprefix("r#") if kind == "ident" else text, line, kind == "ident"))
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


def scan(text: str) -> Source:
    """Reads a file once, from the first token to the last."""
    stream = tokens(text)
    end = Token("", stream[-1].line if stream else 1, False)
    source = Source(text.count("\n"), stream, [], [], set())
    padded = [*stream, end, end, end]
    open_modules: list[tuple[str, int, bool]] = []  # inline: name, brace depth inside, whether for tests
    depth = at = 0
    while at < len(stream):
        token, after, then = padded[at : at + 3]
        inside = tuple(name for name, _, _ in open_modules)
        if token.text == "mod" and after.is_ident and then.text in ("{", ";"):
            attributes, _ = before_item(padded, at)
            test = is_for_tests(attributes) or any(test for _, _, test in open_modules)
            inline = then.text == "{"
            source.declared.append(Declaration(after.text, inside, inline, test, path_attribute(attributes)))
            if inline:
                depth += 1
                open_modules.append((after.text, depth, test))
            at += 3
        elif token.text == "use" and (after.is_ident or after.text in ("::", "{", "$")):
            _, public = before_item(padded, at)
            branches, at = use_tree(padded, at + 1)
            source.references.extend(Reference(path, token.line, inside, name, public) for path, name in branches)
        elif token.text == "pub" and after.text == "(" and (then.text == "in" or padded[at + 3].text == ")"):
            at += next(step for step, each in enumerate(padded[at:]) if each.text == ")") + 1  # `pub(in crate::bloom)`
        elif token.text in "{}" and token.text:
            if token.text == "}" and open_modules and open_modules[-1][1] == depth:
                open_modules.pop()
            depth += 1 if token.text == "{" else -1
            at += 1
        elif is_field(padded, at) or not token.is_ident or token.text in BEFORE_PATH - DEFINES:
            at += 1
        elif token.text in DEFINES or token.text == "macro_rules":
            named = padded[at + 2] if after.text == "!" else after
            source.defined.add((inside, named.text))
            at += 1
        else:
            path, at = path_at(padded, at)
            source.references.append(Reference(path, token.line, inside))
    return source


def is_field(stream: list[Token], at: int) -> bool:
    """Whether a name is a field's or a method's: after one dot. After two it ends a range."""
    return at > 0 and stream[at - 1].text == "." and not (at > 1 and stream[at - 2].text == ".")


def before_item(stream: list[Token], at: int) -> tuple[list[list[Token]], bool]:
    """The attributes before the item whose keyword is at `at`, and whether it is public in any way."""
    at -= 1
    if at >= 0 and stream[at].text == ")":
        while stream[at].text != "(":
            at -= 1
        at -= 1
    public = at >= 0 and stream[at].text == "pub"
    at -= public
    attributes = []
    while at >= 0 and stream[at].text == "]":
        last, depth = at, 0
        while depth := depth + {"]": 1, "[": -1}.get(stream[at].text, 0):
            at -= 1
        attributes.append(stream[at + 1 : last])
        at -= 2
    return attributes, public


def is_for_tests(attributes: list[list[Token]]) -> bool:
    words = [[token.text for token in attribute] for attribute in attributes]
    return any(each[0] == "cfg" and "test" in each and not {"not", "any"} & set(each) for each in words)


def path_attribute(attributes: list[list[Token]]) -> str | None:
    return next((each[2].text.strip('"') for each in attributes if each[0].text == "path"), None)


def path_at(stream: list[Token], at: int) -> tuple[Names, int]:
    """The path that starts at `at`, up to a turbofish at most, and where the first token after it is."""
    path = [stream[at].text]
    at += 1
    while stream[at].text == "::" and stream[at + 1].is_ident:
        path.append(stream[at + 1].text)
        at += 2
    return tuple(path), at


def use_tree(stream: list[Token], at: int) -> tuple[list[tuple[Names, str]], int]:
    """The paths of a `use` from `at` on, each with the name that it gives, and where the first token after them is."""
    path: list[str] = []
    while stream[at].text in ("::", "$"):
        at += 1
    while stream[at].is_ident:
        path.append(stream[at].text)
        at += 1
        if stream[at].text != "::":
            break
        at += 1
    if stream[at].text == "*":
        return [((*path, "*"), "*")], at + 1
    if stream[at].text == "{":
        branches = []
        at += 1
        while stream[at].text not in ("}", ""):
            found, at = use_tree(stream, at)
            branches += found
            at += stream[at].text == ","
        return [within(path, *branch) for branch in branches], at + 1
    if not path:
        return [], at + 1
    name = path[-1]
    if stream[at].text == "as":
        name, at = stream[at + 1].text, at + 2
    return [(tuple(path), name)], at


def within(path: list[str], branch: Names, name: str) -> tuple[Names, str]:
    """A branch of `path::{..}`, where `self` is `path`."""
    if branch != ("self",):
        return (*path, *branch), name
    return tuple(path), path[-1] if name == "self" else name


class Module:
    """A module of a crate: where it is, and which names lead out of it."""

    def __init__(self, file: str, test: bool):
        self.file, self.test = file, test
        self.uses: dict[str, Names] = {}
        self.exported: set[str] = set()  # those of `uses` that are public
        self.globs: list[Names] = []
        self.defined: set[str] = set()

    @property
    def node(self) -> str:
        return f"{self.file} (tests)" if self.test else self.file


class Place(NamedTuple):
    """A module, as the end of a path."""

    tree: "Tree"
    path: Names

    @property
    def module(self) -> Module:
        return self.tree.modules[self.path]


class Tree:
    """The modules of one crate, test or bench, from its root file on."""

    def __init__(self, root: str, sources: dict[str, Source], others: dict[str, "Tree"]):
        self.modules: dict[Names, Module] = {}
        self.others = others  # by the name of the crate
        self.standing: list[tuple[Names, Reference]] = []  # every reference, and the module that it stands in
        self.mount(root, (), False, sources)

    def mount(self, file: str, path: Names, test: bool, sources: dict[str, Source]) -> None:
        source = sources[file]
        self.modules[path] = Module(file, test)
        for declared in source.declared:
            child = (*path, *declared.inside, declared.name)
            if declared.inline:
                self.modules[child] = Module(file, test or declared.test)
            elif (found := module_file(file, declared, sources)) is not None:
                self.mount(found, child, test or declared.test, sources)
        for inside, name in source.defined:
            self.modules[(*path, *inside)].defined.add(name)
        for reference in source.references:
            module = (*path, *reference.inside)
            self.standing.append((module, reference))
            if reference.name == "*":
                self.modules[module].globs.append(reference.path[:-1])
            elif reference.name:
                self.modules[module].uses[reference.name] = reference.path
                if reference.public:
                    self.modules[module].exported.add(reference.name)

    def resolve(self, module: Names, path: Names, seen: frozenset = frozenset()) -> Place | None:
        """The module that has what `path` names, or None where it leads elsewhere."""
        if (module, path) in seen:
            return None  # modules that have each other's names by `*`
        seen |= {(module, path)}
        first, rest = path[0], path[1:]
        if first == "crate":
            return self.walk((), rest, seen)
        if first in ("self", "super"):
            if first == "super":
                module = module[:-1]
            return self.walk(module, rest, seen) if rest[:1] != ("super",) else self.resolve(module, rest, seen)
        if first in self.others:
            return self.others[first].walk((), rest, seen)
        if (*module, first) in self.modules or first in self.modules[module].uses:
            return self.walk(module, path, seen)
        return None

    def walk(self, module: Names, path: Names, seen: frozenset) -> Place | None:
        if not path or path == ("*",):
            return Place(self, module)
        first, rest = path[0], path[1:]
        here = self.modules[module]
        if (*module, first) in self.modules:
            return self.walk((*module, first), rest, seen)
        if first in here.uses:
            used = here.uses[first]
            # `use multiversion::multiversion;` leads to another crate. Then this module is the last of ours on the way.
            place = None if used[0] == first else self.resolve(module, (*used, *rest), seen)
            return place or Place(self, module)
        if first not in here.defined:
            for glob in here.globs:
                place = self.resolve(module, glob, seen)
                if place and place.tree.gives(place.path, first):
                    return place.tree.walk(place.path, path, seen)
        return Place(self, module)

    def gives(self, module: Names, name: str) -> bool:
        """Whether `use module::*` brings this name."""
        here = self.modules[module]
        return name in here.defined or name in here.exported or (*module, name) in self.modules

    def names(self) -> Iterator[tuple[Names, Reference, Place]]:
        """Every reference that leads to a module of ours, and where it leads."""
        for module, reference in self.standing:
            if reference.name is None and len(reference.path) == 1:
                continue  # a variable more often than a module
            place = self.resolve(module, reference.path)
            used = reference.name is None and reference.path[0] in self.modules[module].uses
            # A reference that leads no further than its `use` counts where the `use` stands.
            if place and not (used and place == self.resolve(module, reference.path[:1])):
                yield module, reference, place

    def imports(self) -> Iterator[tuple[Module, Reference, Module]]:
        """References of a file, or of its tests, to another file of this tree, without what only re-exports."""
        heads = {(module, reference.path[0]) for module, reference in self.standing if not reference.name}
        for module, reference, place in self.names():
            if place.tree is not self or place.module.node == self.modules[module].node:
                continue
            if place.module.test and not self.modules[module].test:
                continue  # a statement under `#[cfg(test)]`
            downwards = place.path[: len(module)] == module
            if not (reference.public and downwards and (module, reference.name) not in heads):
                yield self.modules[module], reference, place.module


def module_file(file: str, declared: Declaration, sources: dict[str, Source]) -> str | None:
    """The file of `mod name;`: beside a root or a mod.rs, else in the folder with the name of the file."""
    beside = PurePosixPath(file).parent
    if declared.path:
        return os.path.normpath(beside / declared.path)
    stem = PurePosixPath(file).stem
    folders = [beside] if stem in ("mod", "lib", "main") else [beside / stem, beside]
    for folder in folders:
        for candidate in (f"{declared.name}.rs", f"{declared.name}/mod.rs"):
            found = str(folder.joinpath(*declared.inside, candidate))
            if found in sources and found != file:
                return found
    return None
