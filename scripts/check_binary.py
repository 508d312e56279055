#!/usr/bin/env python3
"""Checks what a module or program of ours needs of the system that it runs on, and that its symbols are in another file.

    scripts/check_binary.py FILE [--glibc 2.28]   check; exit 1 and one line for each thing that is wrong
    scripts/check_binary.py --self-test           check the checker

Without --glibc the file is for musl. Beside FILE there has to be FILE.debug, with its lines. Reads what readelf says.
"""

import re
import subprocess
import sys
import zlib
from pathlib import Path

# The parts of the C library that a program may name, by its file.
GLIBC_FILES = re.compile(r"(libc|libm|libdl|librt|libpthread)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")
MUSL_FILES = re.compile(r"libc\.so|libc\.musl-\w+\.so\.1")


def needed(dynamic: str) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)


def glibc_versions(versions: str) -> list[tuple[int, ...]]:
    found = set(re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)\b", versions))
    return sorted(tuple(int(number) for number in version.split(".")) for version in found)


def show(version: tuple[int, ...]) -> str:
    return ".".join(str(number) for number in version)


def wrong_needs(dynamic: str, versions: str, glibc: str | None) -> list[str]:
    allowed = GLIBC_FILES if glibc else MUSL_FILES
    wrong = [f"needs {name}, which is no part of the C library" for name in needed(dynamic) if not allowed.fullmatch(name)]
    found = glibc_versions(versions)
    if glibc is None:
        return wrong + (["needs glibc, and is for musl"] if found else [])
    if not found:
        return wrong + ["names no version of glibc: is it what was meant to be built?"]
    limit = tuple(int(number) for number in glibc.split("."))
    return wrong + [f"needs glibc {show(version)}, newer than {glibc}" for version in found if version > limit]


def sections(table: str) -> set[str]:
    return set(re.findall(r"^\s*\[\s*\d+\]\s+(\.\S+)", table, re.MULTILINE))


# Which scripts a debugger may load: a few bytes in every Rust program, not symbols.
HARMLESS = {".debug_gdb_scripts"}


def wrong_symbols(shipped: set[str], debug: set[str]) -> list[str]:
    symbols = sorted(name for name in shipped - HARMLESS if name.startswith(".debug") or name == ".symtab")
    wrong = [f"still has the section {name}" for name in symbols]
    if ".gnu_debuglink" not in shipped:
        wrong.append("does not say where its symbols are: no .gnu_debuglink")
    wrong += [f"its symbols lack the section {name}" for name in (".symtab", ".debug_line") if name not in debug]
    return wrong


def readelf(*arguments: str) -> str:
    # Of a file that has only symbols it warns that the rest is missing.
    command = ["readelf", "--wide", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def debug_link(file: Path) -> tuple[str, int]:
    """The name and CRC-32 in the file's .gnu_debuglink."""
    dump = readelf("--hex-dump=.gnu_debuglink", str(file))
    words = [line.split()[1:5] for line in dump.splitlines() if re.match(r"\s+0x[0-9a-f]+ ", line)]
    # The last column of a short line is text: whatever is not eight or fewer hexadecimal digits ends the line.
    data = bytes.fromhex("".join(word for line in words for word in line if re.fullmatch(r"(?:[0-9a-f]{2}){1,4}", word)))
    name = data[: data.index(0)].decode()
    start = (len(name) + 4) // 4 * 4
    return name, int.from_bytes(data[start : start + 4], "little")


def check(file: Path, glibc: str | None) -> int:
    debug = file.with_name(file.name + ".debug")
    versions = readelf("--version-info", str(file))
    wrong = wrong_needs(readelf("--dynamic", str(file)), versions, glibc)
    wrong += wrong_symbols(sections(readelf("--section-headers", str(file))), sections(readelf("--section-headers", str(debug))))
    if not wrong and debug_link(file) != (debug.name, zlib.crc32(debug.read_bytes())):
        wrong.append(f"names other symbols than {debug.name}")
    for line in wrong:
        print(f"{file}: {line}")
    if not wrong:
        needs = f"at most glibc {show(glibc_versions(versions)[-1])}" if glibc else "musl"
        print(f"{file.name}: {file.stat().st_size} bytes, needs {needs} and nothing else; symbols in {debug.name}")
    return 1 if wrong else 0


def self_test() -> int:
    c, gcc = " 0x1 (NEEDED)  Shared library: [libc.so.6]\n", " 0x1 (NEEDED)  Shared library: [libgcc_s.so.1]\n"
    old, new = "Name: GLIBC_2.2.5  Flags\n Name: GLIBC_2.28", "Name: GLIBC_2.9\n Name: GLIBC_2.34\n"
    table = "  [ 1] .text   PROGBITS\n  [12] .gnu_debuglink PROGBITS\n"
    debug = {".symtab", ".debug_line"}
    results = {
        "an old glibc": wrong_needs(c, old, "2.28") == [],
        "a newer glibc": wrong_needs(c, old + new, "2.28") == ["needs glibc 2.34, newer than 2.28"],
        "libgcc_s": len(wrong_needs(c + gcc, old, "2.28")) == 1,
        "no glibc at all": len(wrong_needs("", "", "2.28")) == 1,
        "musl": wrong_needs(c.replace(".6", ""), "", None) == [],
        "glibc where musl is meant": len(wrong_needs(c, old, None)) == 2,
        "stripped": wrong_symbols(sections(table), debug) == [],
        "not stripped": len(wrong_symbols(sections(table + "  [ 3] .debug_info X\n  [13] .symtab X\n"), debug)) == 2,
        "a program": wrong_symbols(sections(table + "  [ 4] .debug_gdb_scripts X\n"), debug) == [],
        "no link": len(wrong_symbols({".text"}, debug)) == 1,
        "no lines": len(wrong_symbols(sections(table), {".symtab"})) == 1,
    }
    failed = [name for name, passed in results.items() if not passed]
    for name in failed:
        print(f"self-test: {name}")
    print(f"binary: self-test: {len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--self-test"]:
            return self_test()
        case [file]:
            return check(Path(file), None)
        case [file, "--glibc", version]:
            return check(Path(file), version)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
