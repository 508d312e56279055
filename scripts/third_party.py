#!/usr/bin/env python3
"""Lists the crates that are compiled into a package, with their licences and notices, as a text for the package.

    scripts/third_party.py TARGET PACKAGE...          the text
    scripts/third_party.py --list TARGET PACKAGE...   name and version alone, a line each

TARGET is a Rust target triple. Crates that run only while compiling (build scripts, procedural
macros) are left out. cargo-about would do the same, but takes minutes to compile.
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
    # Lines are `name v1.2.3`. The repository's own crates have a path after the version.
    linked = sorted(set(re.findall(r"^(\S+) v(\S+)$", tree, re.MULTILINE)))
    assert linked, tree
    # With the platform, cargo does not ask for crates of other systems, which are not
    # downloaded.
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
