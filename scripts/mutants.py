#!/usr/bin/env python3
"""Changes the code a little in one place at a time, and asks whether a test notices.

    scripts/mutants.py core since COMMIT    the lines of core/src that have changed since a commit
    scripts/mutants.py core files GLOB...   whole files: 'core/src/persist/*.rs'
    scripts/mutants.py core named FILE      the changes that a file names, such as one of those below
    scripts/mutants.py server ...           the same of src/, with the tests that run a server, ROLLCALL_SERVER

cargo-mutants (`scripts/tools.sh mutants` has fetched it) says what to change. It would compile the library for each change,
the whole of it within a day. Here all changes are compiled once: a function has a body for each, and an environment variable
says which one runs. What each test reaches is noted first, so a change is tried with the tests that can notice it alone, the
shortest first.

A change that no test notices is named in target/mutants/missed.txt. A test is missing, or the change makes no difference:
then it stands in .cargo/mutants.toml with the reason. Changes that do not compile this way (of constants, of functions whose
type depends on their body) are named in target/mutants/left.txt: `cargo mutants --re NAME` tries them one by one.

At first each property has PROPTEST_CASES=20. What is missed so stands in target/mutants/doubtful.txt, and is tried again
after all others: with the examples in comments, with all tests, of the library with those of accuracy too, and with as many
cases as `make test` has. JOBS=2 are as many tests at a time; SAMPLE=20 tries every twentieth change; MOST_SECONDS=60 tries at first the shortest tests alone,
so many seconds of them for each change. It ends with 1 if anything was missed.
"""

import bisect
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "target/mutants"
TREE, BUILT, REACHED = OUT / "tree", OUT / "build", OUT / "reached"
# All examples as one program, which the compiler keeps if asked.
EXAMPLES = OUT / "examples"
EXAMPLES_PROGRAM = EXAMPLES / "merged_doctest_2024_0/rust_out"
TOOL = ROOT / "target/tools/mutants/bin/cargo-mutants"
JOBS = int(os.environ.get("JOBS") or os.cpu_count() or 1)

# Cases of a property, at first and at last: there are thousands of changes.
FEW_CASES, ALL_CASES = int(os.environ.get("PROPTEST_CASES") or 20), 256

ENVIRONMENT = os.environ | {
    "CARGO_TARGET_DIR": str(BUILT),
    "CARGO_PROFILE_TEST_DEBUG": "0",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "PROPTEST_CASES": str(FEW_CASES),
    "PROPTEST_RNG_SEED": "1",
    "RUST_BACKTRACE": "0",
}

# Short tests that are tried together first; and what a test may take, as a multiple of what it took, in seconds and beyond.
FIRST, TIMES, BEYOND = 8, 4, 10

# What stands after a change in a function that no test calls.
NOT_REACHED = " (no test comes there)"

# Seconds of tests for a change, at most.
MOST_SECONDS = float(os.environ.get("MOST_SECONDS") or "inf")


@dataclass(frozen=True)
class Crate:
    """A crate whose code is changed, and where its tests are."""

    package: str
    sources: str
    # Where its tests run.
    folder: str
    tests: list[str]
    # The library that tests load into servers.
    module: str | None = None
    # Tests that take long, for what all others miss.
    last: tuple[str, ...] = ()
    # Whether comments have examples, for what tests miss.
    has_examples: bool = False


CRATES = {
    "core": Crate(
        "rollcall-core",
        "core/src",
        "core",
        ["--lib", "--tests"],
        last=("--profile", "accuracy", "--test", "accuracy"),
        has_examples=True,
    ),
    "server": Crate("rollcall", "src", ".", ["--lib", "--test", "server"], "debug/librollcall.so"),
}

# The code that says which change is made, and notes which functions were reached.
SWITCH = """
pub(crate) mod mutant_switch {
    use std::io::Write;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    static ON: LazyLock<u32> = LazyLock::new(|| std::env::var("MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0));
    static NOTED: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os("MUTANT_REACHED"));
    static SEEN: [AtomicBool; FUNCTIONS] = [const { AtomicBool::new(false) }; FUNCTIONS];
    pub(crate) fn at(function: usize) -> u32 {
        if let Some(path) = &*NOTED && !SEEN[function].swap(true, Ordering::Relaxed) {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            let _ = file.and_then(|mut file| writeln!(file, "{function}"));
        }
        *ON
    }
}
"""


@dataclass
class Mutant:
    """A change: text of a file that is replaced, from one place to another."""

    name: str
    file: str
    start: int
    end: int
    replacement: str
    number: int = 0


@dataclass
class Function:
    """A function with changes, by the places of its body's braces."""

    start: int
    end: int
    mutants: list[Mutant] = field(default_factory=list)
    number: int = 0


@dataclass
class Test:
    program: Path
    name: str
    seconds: float
    reaches: set[int]
    is_last: bool


def listed(crate: Crate, arguments: list[str]) -> list[dict]:
    command = [TOOL, "mutants", "--list", "--json", "--package", crate.package, *arguments]
    listing = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(listing.stdout)


def chosen(crate: Crate, arguments: list[str]) -> list[dict]:
    match arguments:
        case ["since", commit]:
            diff = OUT / "diff"
            with diff.open("wb") as out:
                subprocess.run(["git", "diff", commit, "--", crate.sources], cwd=ROOT, stdout=out, check=True)
            if not diff.stat().st_size:
                sys.exit(f"mutants: no line of {crate.sources} has changed since {commit}")
            return listed(crate, ["--in-diff", str(diff)])
        case ["files", _, *_]:
            return listed(crate, [f"--file={glob}" for glob in arguments[1:]])
        case ["named", names]:
            wanted = {line.removesuffix(NOT_REACHED) for line in Path(names).read_text().splitlines()}
            return [one for one in listed(crate, []) if one["name"] in wanted]
    sys.exit(__doc__)


def skip(text: str, at: int) -> int:
    """The place after the comment, string or character at `at`, or after one character."""
    if text.startswith("//", at):
        return text.find("\n", at) if "\n" in text[at:] else len(text)
    if text.startswith("/*", at):
        return text.index("*/", at) + 2
    if raw := re.compile(r'b?r(#*)"').match(text, at):
        return text.index('"' + raw[1], raw.end()) + 1 + len(raw[1])
    if literal := re.compile(r"""b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\]|\\.[^']*)'""", re.DOTALL).match(text, at):
        return literal.end()
    return at + 1


def body(text: str, start: int, end: int) -> tuple[int, int]:
    """The places of the braces of a function's body."""
    at, depth = start, 0
    while at < end:
        if text[at] == "{" and depth == 0:
            return at, end - 1
        depth += (text[at] in "([") - (text[at] in ")]")
        at = skip(text, at)
    raise ValueError(f"no body: {text[start:end]}")


def functions_of(text: str, file: str, listing: list[dict]) -> tuple[list[Function], list[Mutant]]:
    """The functions with their changes, and the changes that are in none that can be switched."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(position: dict) -> int:
        return starts[position["line"] - 1] + position["column"] - 1

    functions: dict[tuple[int, int], Function] = {}
    left = []
    for one in listing:
        span = one["span"]
        mutant = Mutant(one["name"], file, place(span["start"]), place(span["end"]), one["replacement"])
        owner = one["function"] and one["function"]["span"]
        signature = owner and text[place(owner["start"]) : place(owner["end"])]
        if not owner or re.match(r"(?:\s|#\[[^\n]*\n|//[^\n]*\n)*(?:pub(?:\([^)]*\))? )?const ", signature):
            left.append(mutant)
            continue
        braces = body(text, place(owner["start"]), place(owner["end"]))
        functions.setdefault(braces, Function(*braces)).mutants.append(mutant)
    # A function within another one would be changed twice.
    outer = sorted(functions.values(), key=lambda function: function.start)
    kept: list[Function] = []
    for function in outer:
        if kept and function.start < kept[-1].end:
            left += function.mutants
        else:
            kept.append(function)
    return kept, left


def written(text: str, functions: list[Function]) -> tuple[str, list[tuple[int, int, int]]]:
    """The text with all changes, and the lines of each: first, last, its number."""
    parts: list[str] = []
    lines: list[tuple[int, int, int]] = []
    line, at = 1, 0

    def put(part: str) -> None:
        nonlocal line
        parts.append(part)
        line += part.count("\n")

    for function in functions:
        if not function.mutants:
            continue
        original = text[function.start + 1 : function.end]
        numbers = [mutant.number for mutant in function.mutants]
        put(text[at : function.start + 1])
        put(f" match crate::mutant_switch::at({function.number}) {{\n")
        # By a name that no function has for something of its own.
        put(f"mutant if !(mutant >= {min(numbers)} && mutant <= {max(numbers)}) => {{{original}\n}}\n")
        for mutant in function.mutants:
            first = line
            start, end = mutant.start - function.start - 1, mutant.end - function.start - 1
            put(f"{mutant.number} => {{{original[:start]}{mutant.replacement}{original[end:]}\n}}\n")
            lines.append((first, line - 1, mutant.number))
        put("_ => unreachable!(),\n} ")
        at = function.end
    put(text[at:])
    return "".join(parts), lines


def put_file(path: Path, content: bytes) -> None:
    """Writes it if it is another: what is not touched is not compiled again."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Tree:
    """A copy of the repository with all changes in it."""

    def __init__(self, crate: Crate, listing: list[dict]):
        self.crate = crate
        self.root = f"{crate.sources}/lib.rs"
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        files = [name for name in names if name and (ROOT / name).is_file()]
        by_file = defaultdict(list)
        for one in listing:
            by_file[one["file"]].append(one)
        self.texts = {file: (ROOT / file).read_text("utf-8") for file in [*by_file, self.root]}
        self.functions: dict[str, list[Function]] = {}
        self.left: list[Mutant] = []
        for file, ones in by_file.items():
            self.functions[file], left = functions_of(self.texts[file], file, ones)
            self.left += left
        for number, function in enumerate(self.all_functions()):
            function.number = number
        for number, mutant in enumerate(self.mutants(), 1):
            mutant.number = number
        for name in files:
            if name not in self.texts:
                put_file(TREE / name, (ROOT / name).read_bytes())

    def all_functions(self) -> list[Function]:
        return [function for functions in self.functions.values() for function in functions]

    def mutants(self) -> list[Mutant]:
        return [mutant for function in self.all_functions() for mutant in function.mutants]

    def write(self) -> None:
        self.lines = {}
        for file, text in self.texts.items():
            text, self.lines[file] = written(text, self.functions.get(file, []))
            # With all their changes, functions within functions would make one without end.
            text = re.sub(r"#\[inline(\(always\))?\]", "", text)
            if file == self.root:
                text = re.sub(r"(?m)\A((?://.*)?\n)*", r"\g<0>#![allow(arithmetic_overflow, unconditional_panic)]\n", text, count=1)
                text += SWITCH.replace("FUNCTIONS", str(max(1, len(self.all_functions()))))
            put_file(TREE / file, text.encode())

    def drop(self, numbers: set[int]) -> None:
        for function in self.all_functions():
            self.left += [mutant for mutant in function.mutants if mutant.number in numbers]
            function.mutants = [mutant for mutant in function.mutants if mutant.number not in numbers]

    def at(self, file: str, line: int) -> int | None:
        """The change that a line of a file in the tree belongs to."""
        lines = self.lines.get(file, [])
        index = bisect.bisect_right(lines, line, key=lambda entry: entry[0]) - 1
        return lines[index][2] if index >= 0 and line <= lines[index][1] else None

    def compile(self) -> list[tuple[Path, bool]]:
        """The programs of the tests, and whether they come last. Changes that do not compile are left out."""
        common = ["--locked", "--package", self.crate.package, "--message-format=json"]
        self.write()
        self.compiled(["cargo", "check", *common, "--lib"])
        if self.crate.module:
            self.compiled(["cargo", "build", *common, "--lib"])
        programs = [(path, False) for path in self.compiled(["cargo", "test", *common, *self.crate.tests, "--no-run"])]
        if self.crate.last:
            last = self.compiled(["cargo", "test", *common, *self.crate.last, "--no-run"])
            programs += [(path, True) for path in last]
        return programs

    def compile_examples(self) -> None:
        flags = f"-Zunstable-options --no-run --persist-doctests {EXAMPLES}"
        environment = ENVIRONMENT | {"RUSTC_BOOTSTRAP": "1", "RUSTDOCFLAGS": flags}
        command = ["cargo", "test", "--locked", "--quiet", "--doc", "--package", self.crate.package]
        subprocess.run(command, cwd=TREE, env=environment, stdout=subprocess.DEVNULL, check=True)

    def compiled(self, command: list[str]) -> list[Path]:
        """The programs that a command makes, once what does not compile is left out."""
        while wrong := self.wrong(build := self.cargo(command)):
            print(f"mutants: {len(wrong)} changes do not compile", flush=True)
            self.drop(wrong)
            self.write()
        messages = (json.loads(line) for line in build.stdout.splitlines() if line.startswith("{"))
        return [Path(message["executable"]) for message in messages if message.get("executable")]

    def cargo(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=TREE, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wrong(self, build: subprocess.CompletedProcess[str]) -> set[int]:
        """The changes that do not compile."""
        if build.returncode == 0:
            return set()
        numbers: set[int] = set()
        for line in build.stdout.splitlines():
            message = json.loads(line).get("message") or {}
            if message.get("level") != "error":
                continue
            spans = sorted(message["spans"], key=lambda span: not span["is_primary"])
            found = (self.at(span["file_name"], line) for span in spans for line in (span["line_start"], span["line_end"]))
            if number := next((number for number in found if number is not None), None):
                numbers.add(number)
        if not numbers:
            sys.exit(f"mutants: the copy does not compile, and no change is the cause:\n{build.stderr[-4000:]}")
        return numbers


def run(crate: Crate, program: Path, names: list[str] | None, seconds: float, environment: dict[str, str]) -> bool:
    """Whether these tests pass, in time; all that a program has without names."""
    if crate.module:
        environment = environment | {"ROLLCALL_MODULE": str(BUILT / crate.module)}
    options = ["-Zunstable-options", "--exact", "--fail-fast", "--test-threads=1"]
    command = [program] if names is None else [program, *options, *names]
    try:
        done = subprocess.run(
            command,
            cwd=TREE / crate.folder,
            env=ENVIRONMENT | {"RUSTC_BOOTSTRAP": "1"} | environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def measured(crate: Crate, program: Path, is_last: bool, name: str) -> Test | None:
    """How long a test takes, and what it reaches."""
    noted = REACHED / f"{program.name}-{name.replace('::', '-')}"
    noted.unlink(missing_ok=True)
    # Few cases of a property reach less than all.
    passes = run(crate, program, [name], 900, {"MUTANT_REACHED": str(noted), "PROPTEST_CASES": str(ALL_CASES)})
    start = time.monotonic()
    if not passes or not run(crate, program, [name], 600, {}):
        print(f"mutants: {program.name}: {name} fails without any change, and is left out", flush=True)
        return None
    seconds = time.monotonic() - start
    numbers = noted.read_text().split() if noted.is_file() else []
    return Test(program, name, seconds, {int(number) for number in numbers}, is_last)


def listed_tests(crate: Crate, program: Path, *options: str) -> list[str]:
    command = [program, "--list", "--format=terse", *options]
    listing = subprocess.run(command, cwd=TREE / crate.folder, capture_output=True, text=True, check=True)
    return [line.removesuffix(": test") for line in listing.stdout.splitlines() if line.endswith(": test")]


def all_tests(crate: Crate, programs: list[tuple[Path, bool]]) -> list[Test]:
    REACHED.mkdir(parents=True, exist_ok=True)
    found = []
    for program, is_last in programs:
        skipped = {*listed_tests(crate, program, "--ignored")}
        found += [(program, is_last, name) for name in listed_tests(crate, program) if name not in skipped]
    with ThreadPoolExecutor(JOBS) as pool:
        tests = list(pool.map(lambda one: measured(crate, *one), found))
    return sorted(filter(None, tests), key=lambda test: test.seconds)


def fails(crate: Crate, mutant: Mutant, tests: list[Test], cases: int) -> bool:
    """Whether one of the tests fails with this change."""
    by_program: dict[Path, list[Test]] = defaultdict(list)
    for test in tests:
        by_program[test.program].append(test)
    environment = {"MUTANT": str(mutant.number), "PROPTEST_CASES": str(cases)}
    for program, own in by_program.items():
        seconds = TIMES * sum(test.seconds for test in own) * max(1, cases / FEW_CASES) + BEYOND
        if not run(crate, program, [test.name for test in own], seconds, environment):
            return True
    return False


def is_noticed(crate: Crate, mutant: Mutant, tests: list[Test]) -> bool:
    """Whether one of the tests fails, the shortest first, with few cases of each property."""
    first = [test for test in tests if not test.is_last]
    sums = accumulate(test.seconds for test in first)
    short = [test for test, seconds in zip(first, sums) if seconds <= MOST_SECONDS]
    return fails(crate, mutant, short[:FIRST], FEW_CASES) or fails(crate, mutant, short[FIRST:], FEW_CASES)


def is_noticed_at_last(crate: Crate, mutant: Mutant, tests: list[Test]) -> bool:
    """Whether an example fails, or one of all tests, with all cases."""
    first, last = [[test for test in tests if test.is_last == is_last] for is_last in (False, True)]
    return (
        crate.has_examples and not run(crate, EXAMPLES_PROGRAM, None, BEYOND, {"MUTANT": str(mutant.number)})
        or fails(crate, mutant, first, ALL_CASES)
        or fails(crate, mutant, last, ALL_CASES)
    )


# A change, and the tests that come there.
Tried = tuple[Mutant, list[Test]]


def missed_of(mutants: list[Tried], noticed: Callable[[Mutant, list[Test]], bool], path: Path) -> list[Tried]:
    """The changes that are not noticed, which are named in a file as they are found."""
    missed, start = [], time.monotonic()
    with path.open("w") as out, ThreadPoolExecutor(JOBS) as pool:
        for done, (pair, seen) in enumerate(zip(mutants, pool.map(lambda pair: noticed(*pair), mutants)), 1):
            if not seen:
                missed.append(pair)
                print(f"{pair[0].name}{'' if pair[1] else NOT_REACHED}", file=out, flush=True)
            if done % 100 == 0:
                print(f"mutants: {done} of {len(mutants)}, {len(missed)} missed, {time.monotonic() - start:.0f} s", flush=True)
    return missed


def main(arguments: list[str]) -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    if not arguments or arguments[0] not in CRATES:
        sys.exit(__doc__)
    crate = CRATES[arguments[0]]
    listing = chosen(crate, arguments[1:])[:: int(os.environ.get("SAMPLE") or 1)]
    tree = Tree(crate, listing)
    print(f"mutants: {len(listing)} changes in {len(tree.functions)} files", flush=True)
    programs = tree.compile()
    if crate.has_examples:
        tree.compile_examples()
    tests = all_tests(crate, programs)
    reaching: dict[int, list[Test]] = defaultdict(list)
    for test in tests:
        for number in test.reaches:
            reaching[number].append(test)
    mutants = [(mutant, reaching[function.number]) for function in tree.all_functions() for mutant in function.mutants]
    print(f"mutants: {len(mutants)} are tried with {len(tests)} tests; {len(tree.left)} are left", flush=True)
    (OUT / "left.txt").write_text("".join(f"{mutant.name}\n" for mutant in tree.left))
    doubtful = missed_of(mutants, partial(is_noticed, crate), OUT / "doubtful.txt")
    print(f"mutants: {len(doubtful)} of {len(mutants)} are tried again, with all tests", flush=True)
    missed = missed_of(doubtful, partial(is_noticed_at_last, crate), OUT / "missed.txt")
    print("".join(f"missed: {mutant.name}\n" for mutant, _ in missed), end="")
    print(f"mutants: {len(mutants) - len(missed)} of {len(mutants)} noticed, {len(missed)} missed, {len(tree.left)} left")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
