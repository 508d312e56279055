#!/usr/bin/env python3
"""The crates of others that are compiled into the module and the tool.

    scripts/linked_crates.py list TARGET PACKAGE...       name and version, a line each
    scripts/linked_crates.py licences TARGET PACKAGE...   their licences and notices, as a text to ship with them
    scripts/linked_crates.py check TARGET PACKAGE SBOM    fail unless the CycloneDX file lists them all
    scripts/linked_crates.py --self-test                  check the checker

TARGET is a Rust target triple. Crates that only run while compiling (build scripts and procedural macros) are not in
what we ship, and are left out.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# How crates name the files with their licence and notices.
NOTICES = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicen[cs]e)", re.IGNORECASE)

HEAD = """What others wrote and Rollcall contains, compiled in: each crate with its licence and the texts that come with it.
Beside them: Rust's standard library (MIT OR Apache-2.0), and LLVM's libunwind and compiler-rt (Apache-2.0 WITH
LLVM-exception).
"""


def cargo(*arguments: str) -> str:
    command = ["cargo", *arguments, "--locked", "--offline"]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def linked(target: str, packages: list[str]) -> list[tuple[str, str]]:
    """Name and version of each crate, ours left out."""
    names = [argument for package in packages for argument in ("--package", package)]
    lines = cargo("tree", *names, "--edges", "normal,no-proc-macro", "--target", target, "--prefix", "none", "--no-dedupe")
    found = set()
    for line in lines.splitlines():
        # `name v1.2.3`; our own crates have their path behind it.
        match = re.fullmatch(r"(\S+) v(\S+)", line.strip())
        if match:
            found.add((match.group(1), match.group(2)))
    if not found:
        raise SystemExit(f"linked crates: cargo tree listed none for {', '.join(packages)}")
    return sorted(found)


def licences(target: str, crates: list[tuple[str, str]]) -> str:
    # Without the platform it would ask for crates of other systems, which nobody has downloaded.
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))
    packages = {(package["name"], package["version"]): package for package in metadata["packages"]}
    parts = [HEAD]
    for crate in crates:
        package = packages[crate]
        parts.append(f"{'=' * 80}\n{crate[0]} {crate[1]}\n{package['license'] or 'see below'}\n{package['repository'] or ''}".rstrip() + "\n")
        folder = Path(package["manifest_path"]).parent
        for file in sorted(file for file in folder.iterdir() if file.is_file() and NOTICES.match(file.name)):
            parts.append(f"--- {file.name}\n\n{file.read_text(encoding='utf-8', errors='replace').strip()}\n")
    return "\n".join(parts)


def missing(crates: list[tuple[str, str]], bill: dict) -> list[str]:
    """The crates that the bill of materials does not list."""
    if bill.get("bomFormat") != "CycloneDX":
        return ["the file is no CycloneDX bill"]
    listed = {(component.get("name"), component.get("version")) for component in bill.get("components", [])}
    return [f"{name} {version}" for name, version in crates if (name, version) not in listed]


def check(target: str, package: str, file: str) -> int:
    crates = linked(target, [package])
    lacking = missing(crates, json.loads(Path(file).read_text()))
    for crate in lacking:
        print(f"{file}: not listed: {crate}")
    print(f"bill of materials of {package}: {len(crates)} linked crates, {len(lacking)} not listed")
    return 1 if lacking else 0


def self_test() -> int:
    bill = {"bomFormat": "CycloneDX", "components": [{"name": "a", "version": "1.0.0"}, {"name": "b", "version": "2.0.0"}]}
    results = {
        "all are there": missing([("a", "1.0.0"), ("b", "2.0.0")], bill) == [],
        "one is not": missing([("a", "1.0.0"), ("c", "1.0.0")], bill) == ["c 1.0.0"],
        "another version": missing([("a", "1.0.1")], bill) == ["a 1.0.1"],
        "an empty bill": missing([("a", "1.0.0")], {"bomFormat": "CycloneDX"}) == ["a 1.0.0"],
        "something else": len(missing([], {"components": []})) == 1,
        "names of notices": all(map(NOTICES.match, ["LICENSE-MIT", "license", "COPYING", "NOTICE.md", "UNLICENSE"]))
        and not NOTICES.match("Cargo.toml"),
    }
    failed = [name for name, passed in results.items() if not passed]
    for name in failed:
        print(f"self-test: {name}")
    print(f"linked crates: self-test: {len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--self-test"]:
            return self_test()
        case ["list", target, *packages] if packages:
            print("\n".join(f"{name} {version}" for name, version in linked(target, packages)))
        case ["licences", target, *packages] if packages:
            print(licences(target, linked(target, packages)))
        case ["check", target, package, file]:
            return check(target, package, file)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
