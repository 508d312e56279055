#!/usr/bin/env python3
"""Checks what rollcall-core shows its users: nothing becomes public, or ceases to be, unnoticed.

    scripts/check_surface.py               compare with core/surface.txt; exit 1 and one line a difference if there is any
    scripts/check_surface.py --write       write core/surface.txt anew
    scripts/check_surface.py --self-test   check the checker, on a page of its own

What is public is what `cargo doc` has a page or an anchor for: modules, types, fields, variants, constants, functions,
methods. Impls of traits are left out, and so is the module `unstable`. Each function and method has an example, which
`cargo test` runs.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "core/surface.txt"
UNSTABLE = "unstable"

# From the first match on, a page lists items of traits, not of the type.
OF_TRAITS = re.compile(r'id="(?:trait|synthetic|blanket|foreign)-impl|id="implementors')
ANCHOR = re.compile(r'<(?:section|span) id="(variant|structfield|associatedconstant|method|tymethod)\.(\w+)"')
CALLED = {"fn", "method", "tymethod"}


def names(page: str, text: str) -> Iterator[tuple[str, str, bool]]:
    """Kind and path of what a page shows, and whether it has an example. `page` is relative to the crate's folder."""
    *modules, file = page.removesuffix(".html").split("/")
    kind, _, name = file.rpartition(".")
    path = "::".join([*modules, name] if kind else modules)
    own = OF_TRAITS.split(text)[0]
    if not kind:
        yield "mod", path, False
        return
    anchors = list(ANCHOR.finditer(own))
    yield kind, path, "example-wrap" in own[: anchors[0].start() if anchors else None]
    for anchor, following in zip(anchors, [*anchors[1:], None]):
        part = own[anchor.end() : following.start() if following else None]
        yield anchor[1], f"{path}::{anchor[2]}", "example-wrap" in part


def surface(pages: dict[str, str]) -> tuple[list[str], list[str]]:
    """The items that the pages show, and those of them that lack an example."""
    shown, bare = set(), set()
    for page, text in pages.items():
        if page in ("all.html", "index.html") or page.startswith(f"{UNSTABLE}/") or 'http-equiv="refresh"' in text:
            continue
        for kind, path, has_example in names(page, text):
            shown.add(f"{path} ({kind.removeprefix('ty')})")
            if kind in CALLED and not has_example:
                bare.add(path)
    return sorted(shown), sorted(bare)


def pages_of_core() -> dict[str, str]:
    metadata = ["cargo", "metadata", "--locked", "--no-deps", "--format-version=1"]
    target = json.loads(subprocess.check_output(metadata, cwd=ROOT))["target_directory"]
    crate = Path(target, "doc", "rollcall_core")
    # Pages of private items may be left from other runs.
    shutil.rmtree(crate, ignore_errors=True)
    subprocess.run(["cargo", "doc", "--quiet", "--locked", "--no-deps", "--package=rollcall-core"], cwd=ROOT, check=True)
    return {page.relative_to(crate).as_posix(): page.read_text("utf-8") for page in crate.rglob("*.html")}


def differences(listed: list[str], shown: list[str], bare: list[str]) -> Iterator[str]:
    for line in sorted({*shown} - {*listed}):
        yield f"{line}: public, and not in core/surface.txt: hide it, or run scripts/check_surface.py --write"
    for line in sorted({*listed} - {*shown}):
        yield f"{line}: in core/surface.txt, and no longer public: run scripts/check_surface.py --write"
    for path in bare:
        yield f"{path}: has no example"


def check() -> int:
    shown, bare = surface(pages_of_core())
    problems = [*differences(LIST.read_text("utf-8").split("\n")[:-1], shown, bare)]
    for line in problems:
        print(line)
    print(f"surface: {len(shown)} names, {len(problems)} differences")
    return 1 if problems else 0


def self_test() -> int:
    example = '<div class="example-wrap">'
    pages = {
        "all.html": "",
        "a/index.html": example,
        "a/fn.f.html": example,
        "a/fn.g.html": "",
        "a/struct.S.html": f'<span id="structfield.x"></span><section id="method.m">{example}<section id="method.n">'
        '<h2 id="trait-implementations"></h2><section id="method.fmt">',
        "a/trait.T.html": '<section id="tymethod.t"><h2 id="foreign-impls"></h2><section id="method.u">',
        "b/struct.S.html": '<meta http-equiv="refresh" content="0">',
        "unstable/fn.h.html": "",
    }
    shown, bare = surface(pages)
    expected = "a (mod)|a::S (struct)|a::S::m (method)|a::S::n (method)|a::S::x (structfield)|a::T (trait)|a::T::t (method)"
    expected = [*expected.split("|"), "a::f (fn)", "a::g (fn)"]
    passed = shown == expected and bare == ["a::S::n", "a::T::t", "a::g"]
    passed = passed and len([*differences(["a (mod)", "a::R (struct)"], shown, bare)]) == 8 + 1 + 3
    print(f"surface: self-test: {'passed' if passed else f'failed: {shown}, {bare}'}")
    return 0 if passed else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if sys.argv[1:] == ["--write"]:
        LIST.write_text("".join(f"{line}\n" for line in surface(pages_of_core())[0]), "utf-8")
        sys.exit()
    if sys.argv[1:]:
        sys.exit("usage: check_surface.py [--write | --self-test]")
    sys.exit(check())
