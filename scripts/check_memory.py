#!/usr/bin/env python3
"""Runs server tests on servers that are watched for errors of memory, and lists those in which code of ours has a part.

    scripts/check_memory.py memcheck [FILTER...]   under valgrind's memcheck, with the module in $ROLLCALL_MODULE or
                                                   target/release/librollcall.so
    scripts/check_memory.py sanitize [FILTER...]   with a module that has the address and leak sanitizer in it, which is
                                                   built first, by the nightly compiler
    scripts/check_memory.py --self-test            check the reading of reports, on reports of either kind

FILTERs are of test names, as `cargo test --test server --test fuzz` takes them. The exit status is 1 if a test fails or an error is
ours. An error is ours if one of the places that its report names is in the module. Errors of the server by itself are
counted and not listed: its own tests are for them.

The server is $ROLLCALL_SERVER, else redis-server. Its malloc is replaced by that of the tool, so all that the module
takes through the server is watched block by block. Most tests end their servers by force, and then nothing is said
about leaks; those that are shut down in good order are asked for them.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TRIPLE = "x86_64-unknown-linux-gnu"
# Both report under this name, the one with a file for each process, the other with a suffix of its own.
REPORT = "report"
# The tests wait this many times as long as usual. valgrind runs a program some 30 times slower.
PATIENCE = {"memcheck": "20", "sanitize": "4"}
# The compression that servers use for strings reads its table before it has written it, by design.
SUPPRESSED = "".join(f"{{\n   compression\n   Memcheck:{kind}\n   fun:lzf_compress\n}}\n" for kind in ("Cond", "Value8"))


def blocks(report: str) -> Iterator[str]:
    """The paragraphs of a report, without the process at the beginning of each of valgrind's lines."""
    lines = [re.sub(r"^==\d+== ?", "", line).rstrip() for line in report.splitlines()]
    block: list[str] = []
    for line in [*lines, ""]:
        if line:
            block.append(line)
        elif block:
            yield "\n".join(block)
            block = []


def errors(report: str) -> Iterator[str]:
    """The paragraphs that are errors: those that name places in the program."""
    for block in blocks(report):
        if re.search(r"^\s+(?:at 0x|by 0x|#\d+ 0x)", block, re.MULTILINE):
            yield block


def is_ours(error: str) -> bool:
    """All Rust in the process is the module's."""
    return bool(re.search(r"\.rs:\d+|rollcall", error))


def memcheck_command(server: str, reports: Path) -> str:
    linked = subprocess.run(["ldd", server], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    # Where the allocator is: in a library, or in the program itself.
    allocator = "*jemalloc*" if "jemalloc" in linked else "NONE"
    options = ["--error-limit=no", "--num-callers=40", "--leak-check=full", "--show-leak-kinds=definite"]
    suppressions = reports / "suppressions"
    suppressions.write_text(SUPPRESSED, "utf-8")
    options += [f"--log-file={reports}/{REPORT}.%p", f"--soname-synonyms=somalloc={allocator}", f"--suppressions={suppressions}"]
    return f'exec valgrind {" ".join(options)} {server} "$@"'


def sanitize_command(server: str, reports: Path) -> str:
    compiler = ["cc", "-print-file-name=libasan.so"]
    runtime = subprocess.run(compiler, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    if not Path(runtime).is_absolute():
        raise SystemExit("sanitize: the compiler has no libasan.so")
    options = ["detect_leaks=1", "exitcode=0", "allocator_may_return_null=1", f"log_path={reports}/{REPORT}"]
    # Of libraries that a test preloads itself, the sanitizer's comes first.
    preload = f"{runtime}${{LD_PRELOAD:+:$LD_PRELOAD}}"
    return f'exec env ASAN_OPTIONS={":".join(options)} LD_PRELOAD="{preload}" {server} "$@"'


def build_sanitized() -> Path:
    environment = {
        **os.environ,
        "RUSTFLAGS": "-Zsanitizer=address",
        "CARGO_PROFILE_RELEASE_LTO": "false",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    }
    folder = TARGET / "sanitize"
    command = ["cargo", "+nightly", "build", "--release", "--locked", "--lib", "--target", TRIPLE]
    subprocess.run([*command, "--target-dir", str(folder)], cwd=ROOT, env=environment, check=True)
    return folder / TRIPLE / "release" / "librollcall.so"


def run(tool: str, filters: list[str]) -> int:
    server = shutil.which(os.environ.get("ROLLCALL_SERVER", "redis-server"))
    if server is None:
        raise SystemExit(f"{tool}: no server")
    module = build_sanitized() if tool == "sanitize" else Path(os.environ.get("ROLLCALL_MODULE", TARGET / "release/librollcall.so"))
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder)
        command = memcheck_command(server, reports) if tool == "memcheck" else sanitize_command(server, reports)
        wrapper = reports / "server"
        wrapper.write_text(f"#!/bin/sh\n{command}\n", "utf-8")
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
        environment = {**os.environ, "ROLLCALL_SERVER": str(wrapper), "ROLLCALL_MODULE": str(module), "ROLLCALL_PATIENCE": PATIENCE[tool]}
        tests = ["cargo", "test", "--locked", "--no-fail-fast", "--test", "server", "--test", "fuzz", "--", *filters]
        failed = subprocess.run(tests, cwd=ROOT, env=environment).returncode
        texts = [file.read_text("utf-8", "replace") for file in sorted(reports.glob(f"{REPORT}.*"))]
    found = [error for text in texts for error in errors(text)]
    ours = list(dict.fromkeys(error for error in found if is_ours(error)))
    for error in ours:
        print(f"\n{error}")
    others = len(found) - sum(map(is_ours, found))
    print(f"\n{tool}: {len(texts)} reports: {len(ours)} errors of ours, {others} of the server alone")
    return 1 if failed or ours else 0


SERVER_ERROR = """\
==7== Memcheck, a memory error detector
==7==
==7== Invalid read of size 8
==7==    at 0x1: dictFind (dict.c:1)
==7==    by 0x2: main (server.c:2)
==7==
"""
OUR_ERROR = """\
==7== Conditional jump or move depends on uninitialised value(s)
==7==    at 0x1: ??? (in /lib/x.so)
==7==    by 0x2: rollcall_core::bits::count (bits.rs:12)
==7==
==7== HEAP SUMMARY:
==7==     in use at exit: 1 bytes in 1 blocks
"""
SANITIZED = """\
=================================================================
==7==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 8 byte(s) in 1 object(s) allocated from:
    #0 0x1 in malloc
    #1 0x2 in rollcall::server::alloc /x/librollcall.so

Direct leak of 8 byte(s) in 1 object(s) allocated from:
    #0 0x1 in malloc
    #1 0x2 in main server.c

SUMMARY: AddressSanitizer: 8 byte(s) leaked in 1 allocation(s).
"""


def self_test() -> int:
    expected = [(SERVER_ERROR, [False]), (OUR_ERROR, [True]), (SANITIZED, [True, False]), ("", [])]
    wrong = [report for report, kinds in expected if [is_ours(error) for error in errors(report)] != kinds]
    print("\n".join(wrong) or f"check_memory: self-test passed on {len(expected)} reports")
    return 1 if wrong else 0


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return self_test()
    if not arguments or arguments[0] not in PATIENCE:
        print("usage: check_memory.py {memcheck,sanitize} [FILTER...] | --self-test", file=sys.stderr)
        return 2
    return run(arguments[0], arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
