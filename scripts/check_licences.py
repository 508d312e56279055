#!/usr/bin/env python3
"""Checks that every crate in a Cargo.lock of ours that this platform uses may be used under a permissive licence.

    scripts/check_licences.py               check; exit 1 and one line a crate that may not
    scripts/check_licences.py --self-test   check the checker

Reads what `cargo metadata` says, without a network: the crates must have been downloaded, as any build does. Crates used
only by tests and examples count too. The licence of a crate is an SPDX expression. One side of `A OR B` has to be
allowed, and both sides of `A AND B`; `A/B` is an old way to write OR. A crate that states no licence fails, and so does
a licence that is not on the list: add one only after reading it.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The module's manifest, and that of the suite for redis-rs.
MANIFESTS = ["Cargo.toml", "tests/clients/rust/Cargo.toml"]

PERMISSIVE = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
}


def allowed(expression: str) -> bool:
    """Whether the SPDX expression can be met by the licences above. WITH binds tightest, then AND, then OR."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either() -> bool:
        result = both()
        while words and words[0] == "OR":
            words.pop(0)
            result = both() or result
        return result

    def both() -> bool:
        result = one()
        while words and words[0] == "AND":
            words.pop(0)
            result = one() and result
        return result

    def one() -> bool:
        if not words:
            raise ValueError(expression)
        word = words.pop(0)
        if word == "(":
            result = either()
            if not words or words.pop(0) != ")":
                raise ValueError(expression)
            return result
        if len(words) > 1 and words[0] == "WITH":
            word = f"{word} {words.pop(0)} {words.pop(0)}"
        return word in PERMISSIVE

    try:
        result = either()
    except ValueError:
        return False
    return result and not words


def host() -> str:
    version = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r"^host: (\S+)$", version, re.MULTILINE).group(1)


def crates_of(manifest: str) -> list[dict]:
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host()]
    command += ["--manifest-path", manifest]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    used = {node["id"] for node in metadata["resolve"]["nodes"]}
    return [package for package in metadata["packages"] if package["id"] in used]


def check_repository() -> int:
    crates = list({crate["id"]: crate for manifest in MANIFESTS for crate in crates_of(manifest)}.values())
    refused = [package for package in crates if not allowed(package["license"] or "")]
    for package in refused:
        print(f"{package['name']} {package['version']}: {package['license'] or 'states no licence'}: not on the list of permissive ones")
    print(f"licences: {len(crates)} crates, {len(refused)} refused")
    return 1 if refused else 0


CASES = [
    ("MIT", True),
    ("MIT/Apache-2.0", True),
    ("GPL-3.0-only OR MIT", True),
    ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
    ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", True),
    ("Apache-2.0 WITH LLVM-exception", True),
    ("GPL-3.0-only", False),
    ("MIT AND GPL-3.0-only", False),
    ("MIT AND (GPL-3.0-only OR AGPL-3.0-only)", False),
    ("GPL-2.0-only OR MIT AND SSPL-1.0", False),
    ("GPL-2.0-only WITH Classpath-exception-2.0", False),
    ("MIT WITH made-up-exception", False),
    ("mit-ish", False),
    ("(MIT", False),
    ("MIT Apache-2.0", False),
    ("MIT OR", False),
    ("", False),
]


def self_test() -> int:
    failed = [(expression, expected) for expression, expected in CASES if allowed(expression) != expected]
    for expression, expected in failed:
        print(f"self-test: {expression!r}: expected {'allowed' if expected else 'refused'}")
    print(f"licences: self-test: {len(CASES) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if sys.argv[1:]:
        sys.exit("usage: check_licences.py [--self-test]")
    sys.exit(check_repository())
