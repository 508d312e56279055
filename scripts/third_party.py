#!/usr/bin/env python3
"""The crates of others that are compiled into what we ship, with their licences and notices: a text that goes with it.

    scripts/third_party.py TARGET PACKAGE...          the text
    scripts/third_party.py --list TARGET PACKAGE...   name and version alone, a line each

TARGET is a Rust target triple. What only runs while compiling (build scripts, procedural macros) is not shipped, and
left out. cargo-about would do the same, but takes minutes to compile, which `make wheel` has no use for.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTICES = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicen[cs]e)", re.IGNORECASE)
HEAD = """What others wrote and Rollcall contains, compiled in: each crate with its licence and the texts that come
with it.
Beside them: Rust's standard library (MIT OR Apache-2.0), and LLVM's libunwind and compiler-rt (Apache-2.0 WITH
LLVM-exception).
"""


def cargo(*arguments: str) -> str:
    return subprocess.check_output(["cargo", *arguments, "--locked", "--offline"], cwd=ROOT, text=True)


def main(target: str, names: list[str], only_list: bool) -> None:
    chosen = [argument for name in names for argument in ("--package", name)]
    edges = ("--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe")
    tree = cargo("tree", *chosen, "--target", target, *edges)
    # `name v1.2.3`; our own crates have their path behind it.
    linked = sorted(set(re.findall(r"^(\S+) v(\S+)$", tree, re.MULTILINE)))
    assert linked, tree
    # Without the platform it would ask for crates of other systems, which nobody has downloaded.
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))
    packages = {(package["name"], package["version"]): package for package in metadata["packages"]}
    if not only_list:
        print(HEAD)
    for name, version in linked:
        if only_list:
            print(name, version)
            continue
        package = packages[name, version]
        facts = [f"{name} {version}", package["license"] or "see below", package["repository"] or ""]
        print("=" * 80, *facts, sep="\n", end="\n\n" if facts[-1] else "\n")
        for file in sorted(Path(package["manifest_path"]).parent.iterdir()):
            if file.is_file() and NOTICES.match(file.name):
                print(f"--- {file.name}\n\n{file.read_text(encoding='utf-8', errors='replace').strip()}\n")


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    if len(arguments) < 2:
        sys.exit(__doc__)
    main(arguments[0], arguments[1:], "--list" in sys.argv)
