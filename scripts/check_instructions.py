#!/usr/bin/env python3
"""Counts the instructions that the core executes for fixed work, and compares them with benches/core/instructions.txt.

    scripts/check_instructions.py            compare; exit 1 if any work takes over 3 % more instructions
    scripts/check_instructions.py --update   store the present numbers

On a shared machine, times vary by a factor of two. The instructions that valgrind's callgrind counts are the
same on every x86-64 machine with the same rustc. The work is fixed (benches/core/instructions.rs), and the code is
compiled for the oldest processor. Loops that depend on the processor run without AVX-512, which valgrind does not know.
Another rustc changes the numbers without a change of the code. Then they are shown, but nothing fails. The numbers do
not include the time of waiting for memory, which `make bench` measures.

If valgrind is missing (`scripts/setup.sh counts` installs it) or the architecture is not x86-64, the script says so and
does nothing.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "benches" / "core" / "instructions.txt"
# Changes of the allocator or of libc cost less than this, and a lost inlining costs more.
MARGIN = 0.03
HEAD = """\
# Instructions per item that the core executes for the work in benches/core/instructions.rs, counted by
# callgrind. Compared by `make instructions` with a margin of 3 %; rewritten by `make instructions UPDATE=1`.
"""


def build() -> str:
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "rollcall-core-bench"]
    command += ["--bin", "instructions", "--message-format=json"]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    (program,) = [message["executable"] for message in messages if message.get("executable")]
    return program


def count(program: str, name: str) -> int:
    """The number of instructions executed within the function `measured`."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--toggle-collect=*instructions*measured*"]
        command += [f"--callgrind-out-file={folder}/out", program, name]
        result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"Collected : (\d+)", result.stdout)
    if result.returncode or not found or not int(found.group(1)):
        raise SystemExit(f"instructions: {name}: valgrind counted nothing:\n{result.stdout}")
    return int(found.group(1))


def measure(program: str) -> dict[str, float]:
    listed = subprocess.run([program, "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names, items = zip(*(line.split() for line in listed.splitlines()))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = pool.map(lambda name: count(program, name), names)
        return {name: counted / int(number) for name, counted, number in zip(names, counts, items)}


def read() -> tuple[str, dict[str, float]]:
    lines = [line for line in KEPT.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return lines[0], {name: float(number) for name, number in (line.split() for line in lines[1:])}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--update"]):
        print("usage: check_instructions.py [--update]", file=sys.stderr)
        return 2
    if platform.machine() != "x86_64" or not shutil.which("valgrind"):
        print("instructions: skipped: they are counted by valgrind, on x86-64")
        return 0
    rustc = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    found = measure(build())
    if arguments:
        numbers = "".join(f"{name:36} {number:10.1f}\n" for name, number in found.items())
        KEPT.write_text(f"{HEAD}{rustc}\n{numbers}", "utf-8")
        print(numbers + f"instructions: written to {os.path.relpath(KEPT)}")
        return 0
    kept_rustc, kept = read()
    failed = 0
    for name, number in found.items():
        before = kept.get(name)
        change = number / before - 1 if before else 0.0
        too_much = before is None or change > MARGIN
        failed += too_much
        word = "MORE" if too_much else "less: keep it" if change < -MARGIN else ""
        word = "not in the file" if before is None else word
        print(f"{name:36} {before or 0:10.1f} {number:10.1f} {change:+8.1%}  {word}".rstrip())
    for name in kept.keys() - found.keys():
        failed += 1
        print(f"{name:36} is in the file and no longer in benches/core/instructions.rs")
    print(f"instructions: {len(found) - failed} passed, {failed} failed")
    if failed and rustc != kept_rustc:
        print(f"instructions: not held against {rustc}: the numbers are of {kept_rustc}. `make instructions UPDATE=1`?")
        return 0
    if failed:
        print("instructions: if the change is worth it, keep the new numbers: make instructions UPDATE=1")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
