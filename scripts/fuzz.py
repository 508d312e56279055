#!/usr/bin/env python3
"""Runs the fuzz targets of fuzz/ under libFuzzer. `scripts/tools.sh fuzz` has fetched cargo-fuzz.

    scripts/fuzz.py run SECONDS [TARGET...]   fuzz each target (all of them) so long, FUZZ_JOBS=2 at a time
    scripts/fuzz.py keep [TARGET...]          write fuzz/corpus anew: the inputs that reach most of what was reached

FUZZ_SANITIZER=address runs them under the address sanitizer, some times slower. The library has no `unsafe`: overflows
and broken assertions panic in either build, and what is left to the sanitizer are the crates that it is built on.

An input that fails is in target/fuzz/failed/. Once what it shows is mended, it goes to fuzz/regressions/TARGET/, which
`cargo test -p rollcall-fuzz` runs. What was found is in target/fuzz/corpus/ and is used again by the next run.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "fuzz/libfuzzer"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "fuzz"
KEPT, FOUND, FAILED = ROOT / "fuzz/corpus", BUILT / "corpus", BUILT / "failed"
TARGETS = sorted(file.stem for file in (CRATE / "fuzz_targets").glob("*.rs"))

# Longest input, bytes. Longer ones are slower and reach no more: 16 operations take fewer.
MAX_LEN = 512
# A value takes at most 1 MiB (fuzz/src/limit.rs), and what is worked out of several at most 64 MiB. Single allocations are
# watched under the sanitizer alone.
LIMITS = ["-malloc_limit_mb=100", "-rss_limit_mb=2048", "-timeout=10", f"-max_len={MAX_LEN}"]
# Nothing here leaks without `unsafe`; and weighing inputs by how rare what they reach is takes longer than they do.
FAST = ["-detect_leaks=0", "-entropic=0", "-reload=0"]
# Kept inputs of a target, at most.
MAX_KEPT = 250
SANITIZER = os.environ.get("FUZZ_SANITIZER") or "none"
# Targets at a time.
JOBS = int(os.environ.get("FUZZ_JOBS") or os.cpu_count() or 1)


class Run(NamedTuple):
    target: str
    executions: int
    failed: bool
    output: str


def build() -> Path:
    """Builds all targets. Returns the folder of the programs."""
    tools = Path(ROOT / "target/tools/fuzz/bin")
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    # cargo-fuzz asks for its own folder of builds, so that other builds are not made anew.
    target = BUILT / f"build-{SANITIZER}"
    command = ["cargo", "+nightly", "fuzz", "build", "--fuzz-dir", str(CRATE), "--target-dir", str(target)]
    # No input has to guess a value that it is compared with: what is checked is made right. A third faster without.
    command += ["--sanitizer", SANITIZER, "--no-trace-compares"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    host = re.search(r"host: (\S+)", subprocess.run(["rustc", "+nightly", "-vV"], capture_output=True, text=True).stdout)
    return target / host.group(1) / "release"


def environment() -> dict[str, str]:
    # A refused allocation is an error that targets expect, not an end.
    return os.environ | {"ASAN_OPTIONS": "allocator_may_return_null=1"}


def fuzz(programs: Path, target: str, seconds: int) -> Run:
    folders = [FOUND / target, KEPT / target]
    for folder in [*folders, FAILED]:
        folder.mkdir(parents=True, exist_ok=True)
    command = [programs / target, *LIMITS, f"-max_total_time={seconds}", "-print_final_stats=1", *FAST]
    command += [f"-artifact_prefix={FAILED}/{target}-", *folders]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment())
    executed = re.findall(r"stat::number_of_executed_units:\s*(\d+)", run.stdout)
    return Run(target, int(executed[-1]) if executed else 0, run.returncode != 0, run.stdout)


def run(seconds: int, targets: list[str]) -> int:
    programs = build()
    with ThreadPoolExecutor(JOBS) as pool:
        runs = list(pool.map(lambda target: fuzz(programs, target, seconds), targets))
    for one in runs:
        (BUILT / f"{one.target}.log").write_text(one.output, "utf-8")
        covered = re.findall(r"cov: (\d+) ft: (\d+)", one.output)
        edges = f"{covered[-1][0]} edges" if covered else "none"
        print(f"fuzz: {one.target}: {one.executions} executions, {edges}{', FAILED' if one.failed else ''}")
        if one.failed:
            print("\n".join(one.output.splitlines()[-60:]))
    print(f"fuzz: {sum(one.executions for one in runs)} executions in all, {sum(one.failed for one in runs)} targets failed")
    return 1 if any(one.failed for one in runs) else 0


def features(programs: Path, target: str) -> dict[Path, set[str]]:
    """What each input of a target reaches: the kept ones and those found."""
    with tempfile.TemporaryDirectory() as folder:
        control = Path(folder, "control")
        out = Path(folder, "out")
        out.mkdir()
        command = [programs / target, *LIMITS, "-merge=1", f"-merge_control_file={control}", out, KEPT / target, FOUND / target]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), check=True)
        lines = control.read_text("utf-8").splitlines()
    count = int(lines[0])
    files = [Path(name) for name in lines[2 : 2 + count]]
    reached: dict[Path, set[str]] = {}
    for line in lines[2 + count :]:
        kind, number, *rest = line.split()
        if kind == "FT":
            reached[files[int(number)]] = set(rest)
    return reached


def keep(targets: list[str]) -> int:
    programs = build()
    for target in targets:
        (KEPT / target).mkdir(parents=True, exist_ok=True)
        reached = features(programs, target)
        left, chosen = set().union(*reached.values()), []
        while left and len(chosen) < MAX_KEPT:
            best = max(sorted(reached), key=lambda file: (len(reached[file] & left), -file.stat().st_size))
            if not reached[best] & left:
                break
            chosen.append(best)
            left -= reached[best]
        contents = {file.name: file.read_bytes() for file in chosen}
        for file in (KEPT / target).iterdir():
            file.unlink()
        for name, content in contents.items():
            (KEPT / target / name).write_bytes(content)
        everything = len(set().union(*reached.values()))
        size = sum(map(len, contents.values()))
        print(f"fuzz: {target}: {len(chosen)} inputs of {len(reached)} kept, {size} bytes, {everything - len(left)} of {everything} features")
    return 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["run", seconds, *targets] if seconds.isdigit():
            return run(int(seconds), targets or TARGETS)
        case ["keep", *targets]:
            return keep(targets or TARGETS)
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
