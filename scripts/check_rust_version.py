#!/usr/bin/env python3
"""Checks that the oldest Rust which Cargo.toml says we need is the one that our dependencies need.

    scripts/check_rust_version.py               check; exit 1 and one line for each that is wrong
    scripts/check_rust_version.py --self-test   check the checker

The workspace's `rust-version` has to be the newest that a dependency of the library, the module or the tool asks for:
a lower one would be untrue, and a higher one would shut people out. What our own code uses is clippy's to check
(`incompatible_msrv`). Where that toolchain is installed, the crates are also compiled with it. Tests, benchmarks and
examples may need a newer one: they run with the toolchain of rust-toolchain.toml.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Version = tuple[int, int, int]


def parse(text: str | None) -> Version:
    numbers = [int(number) for number in (text or "0").split(".")]
    major, minor, patch = numbers + [0] * (3 - len(numbers))
    return major, minor, patch


def show(version: Version) -> str:
    return ".".join(str(number) for number in (version if version[2] else version[:2]))


def shipped(metadata: dict) -> tuple[list[dict], list[dict]]:
    """Our own crates, and those that they are built of: normal and build dependencies, at any depth."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    ours = set(metadata["workspace_members"])
    waiting, seen = list(ours), set(ours)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            if all(kind["kind"] == "dev" for kind in dependency["dep_kinds"]) or dependency["pkg"] in seen:
                continue
            seen.add(dependency["pkg"])
            waiting.append(dependency["pkg"])
    return [packages[name] for name in sorted(ours)], [packages[name] for name in sorted(seen - ours)]


def check(ours: list[dict], others: list[dict]) -> list[str]:
    if not others:
        return ["no dependencies were found"]
    newest = max(others, key=lambda package: parse(package["rust_version"]))
    needed = parse(newest["rust_version"])
    wrong = []
    for crate in ours:
        says = parse(crate["rust_version"])
        if says != needed:
            wrong.append(
                f"{crate['name']} says rust-version {show(says)}, but {newest['name']} {newest['version']} needs {show(needed)}: "
                f'write rust-version = "{show(needed)}" in Cargo.toml, README.md and CHANGELOG.md'
            )
    return wrong


def metadata() -> dict:
    version = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout
    host = re.search(r"^host: (\S+)$", version, re.MULTILINE).group(1)
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)


def compiles(version: str) -> bool:
    """Whether our crates compile with that toolchain; true, with a line that says so, where it is not installed."""
    try:
        listed = subprocess.run(["rustup", "toolchain", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        listed = ""
    if not re.search(rf"^{re.escape(version)}(\.0)?-", listed, re.MULTILINE):
        print(f"rust-version: not compiled with {version}: `rustup toolchain install {version}` lets this check do so")
        return True
    command = ["cargo", f"+{version}", "check", "--workspace", "--lib", "--bins", "--locked", "--offline", "--quiet"]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def check_repository() -> int:
    ours, others = shipped(metadata())
    wrong = check(ours, others)
    for line in wrong:
        print(line)
    if wrong:
        return 1
    version = show(parse(ours[0]["rust_version"]))
    if not compiles(version):
        print(f"rust-version: the above does not compile with Rust {version}, which Cargo.toml promises")
        return 1
    print(f"rust-version: {version}, what the newest of {len(others)} dependencies needs")
    return 0


def self_test() -> int:
    def crate(name: str, needs: str | None) -> dict:
        return {"name": name, "version": "1.0.0", "rust_version": needs}

    others = [crate("old", "1.60"), crate("silent", None), crate("newest", "1.90.0")]
    tree = {
        "workspace_members": ["us"],
        "packages": [{"id": name} for name in ("us", "a", "b", "c", "d")],
        "resolve": {
            "nodes": [
                {"id": "us", "deps": [dependency("a", None), dependency("c", "dev")]},
                {"id": "a", "deps": [dependency("b", "build"), dependency("us", None)]},
                {"id": "b", "deps": []},
                {"id": "c", "deps": [dependency("d", None)]},
                {"id": "d", "deps": []},
            ]
        },
    }
    results = {
        "the same": check([crate("us", "1.90")], others) == [],
        "lower": len(check([crate("us", "1.89")], others)) == 1,
        "higher": len(check([crate("us", "1.95"), crate("core", "1.90")], others)) == 1,
        "none": len(check([crate("us", None)], others)) == 1,
        "nothing found": len(check([crate("us", "1.90")], [])) == 1,
        "in numbers, not letters": parse("1.100") > parse("1.90"),
        "what is shipped": [package["id"] for package in shipped(tree)[1]] == ["a", "b"],
    }
    failed = [name for name, passed in results.items() if not passed]
    for name in failed:
        print(f"self-test: {name}")
    print(f"rust-version: self-test: {len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def dependency(name: str, kind: str | None) -> dict:
    return {"pkg": name, "dep_kinds": [{"kind": kind}]}


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if sys.argv[1:]:
        sys.exit("usage: check_rust_version.py [--self-test]")
    sys.exit(check_repository())
