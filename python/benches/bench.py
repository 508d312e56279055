"""Compares the speed of the Python package with that of alternatives.

    bench.py [--quick] [--write FILE]

Measures items per second, and bytes, for a million different items; a quick run has a tenth. Each figure is the median
of five runs (quick: three). The candidates take turns, so that noise affects all alike. With --write, the tables
replace what stands between the marks of the document.
"""

import argparse
import gc
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import datasketch
import numpy as np
import pybloom_live
import rbloom

from rollcall_redis import BloomFilter, Counter

MARKS = ("<!-- measured: python, written by make bench-python -->", "<!-- measured: end -->")
ERROR_RATE = 0.01
# The number of HyperLogLog's registers as a power of two: the smallest with a standard error of at
# most 1 %.
PRECISION = 14

Work = Callable[[], Any]


class Candidate(NamedTuple):
    """One alternative: a function that makes an empty set, and the steps to measure, each over all items."""

    name: str
    steps: dict[str, Callable[[Any], Any]]
    make: Work
    num_bytes: Callable[[Any], int]


def each(call: Callable[[Any], Any], items: list[Any]) -> None:
    for item in items:
        call(item)


def filters(count: int) -> list[Candidate]:
    items = [f"user:{number:012}" for number in range(count)]
    # Half of the items that are looked up are in the set.
    asked = items[: count // 2] + [f"none:{number:012}" for number in range(count // 2)]
    rows, asked_rows = np.array(items, "S"), np.array(asked, "S")

    def of_container(update: str = "update") -> dict[str, Callable[[Any], Any]]:
        return {
            "add": lambda to: each(to.add, items),
            "in": lambda to: [item in to for item in asked],
            **({"update": lambda to: getattr(to, update)(items)} if update else {}),
        }

    return [
        Candidate(
            "rollcall",
            {**of_container(), "contains_many": lambda of: of.contains_many(asked)},
            lambda: BloomFilter(count, ERROR_RATE),
            lambda of: of.size_bytes,
        ),
        Candidate(
            "rollcall, NumPy arrays",
            {"update": lambda to: to.update(rows), "contains_many": lambda of: of.contains_many(asked_rows)},
            lambda: BloomFilter(count, ERROR_RATE),
            lambda of: of.size_bytes,
        ),
        Candidate(
            "set",
            of_container(),
            set,
            lambda of: sys.getsizeof(of) + sum(map(sys.getsizeof, of)),
        ),
        Candidate(
            f"rbloom {version('rbloom')}",
            of_container(),
            lambda: rbloom.Bloom(count, ERROR_RATE),
            lambda of: of.size_in_bits // 8,
        ),
        Candidate(
            f"pybloom-live {version('pybloom-live')}",
            of_container(update=""),
            lambda: pybloom_live.BloomFilter(count, ERROR_RATE),
            lambda of: of.num_bits // 8,
        ),
    ]


def counters(count: int) -> list[Candidate]:
    items = [f"user:{number:012}".encode() for number in range(count)]
    rows = np.array(items, "S")
    return [
        Candidate(
            "rollcall",
            {"add": lambda to: each(to.add, items), "update": lambda to: to.update(items)},
            lambda: Counter(ERROR_RATE),
            lambda of: of.size_bytes,
        ),
        Candidate(
            "rollcall, NumPy arrays",
            {"update": lambda to: to.update(rows)},
            lambda: Counter(ERROR_RATE),
            lambda of: of.size_bytes,
        ),
        Candidate(
            "set",
            {"add": lambda to: each(to.add, items), "update": lambda to: to.update(items)},
            set,
            lambda of: sys.getsizeof(of) + sum(map(sys.getsizeof, of)),
        ),
        Candidate(
            f"datasketch {version('datasketch')}, HyperLogLog",
            {"add": lambda to: each(to.update, items)},
            lambda: datasketch.HyperLogLog(PRECISION),
            lambda of: int(of.reg.nbytes),
        ),
    ]


def measure(candidates: list[Candidate], count: int, runs: int) -> tuple[dict[tuple[str, str], float], dict[str, int]]:
    """Returns the items per second of each candidate and step, and the bytes of each candidate."""
    seconds: dict[tuple[str, str], list[float]] = {}
    sizes: dict[str, int] = {}
    for run in range(runs):
        for candidate in candidates:
            for step, work in candidate.steps.items():
                value = candidate.make()
                if step in ("in", "contains_many"):
                    candidate.steps["update" if "update" in candidate.steps else "add"](value)
                gc.collect()
                gc.disable()
                start = time.perf_counter()
                work(value)
                seconds.setdefault((candidate.name, step), []).append(time.perf_counter() - start)
                gc.enable()
                sizes.setdefault(candidate.name, candidate.num_bytes(value) if run == 0 else 0)
    return {key: count / statistics.median(times) for key, times in seconds.items()}, sizes


def shown(number: float) -> str:
    """Formats a number with three digits."""
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number:.3g}"


def times(ratio: float) -> str:
    """Formats a ratio: with two digits if it is below 10, otherwise as a whole number."""
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def table(title: str, candidates: list[Candidate], count: int, runs: int) -> list[str]:
    rates, sizes = measure(candidates, count, runs)
    steps = list(dict.fromkeys(step for candidate in candidates for step in candidate.steps))
    first = candidates[0].name
    lines = [
        f"| {title} | " + " | ".join(f"`{step}`" for step in steps) + " | bytes |",
        "|---|" + "---|" * (len(steps) + 1),
    ]
    for candidate in candidates:
        cells = []
        for step in steps:
            rate = rates.get((candidate.name, step))
            if rate is None:
                cells.append("-")
            elif candidate.name == first:
                cells.append(shown(rate))
            else:
                cells.append(f"{shown(rate)} ({times(rate / rates[first, step])})")
        size, own = sizes[candidate.name], sizes[first]
        cells.append(f"{size:,}" if candidate.name == first else f"{size:,} ({times(size / own)})")
        lines.append(f"| {candidate.name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    count, runs = (100_000, 3) if options.quick else (1_000_000, 5)
    lines = [
        f"Items a second and bytes, of {count:,} different strings of 17 characters, on one core; in brackets how many",
        f"times those of the first row. Medians of {runs} runs, on CPython {platform.python_version()}.",
        "",
        *table("filters of 1 %", filters(count), count, runs),
        "",
        *table("counters of 1 %", counters(count), count, runs),
    ]
    text = "\n".join([MARKS[0], "", *lines, "", MARKS[1]])
    print(text)
    if options.write:
        page = options.write.read_text()
        start, end = page.index(MARKS[0]), page.index(MARKS[1]) + len(MARKS[1])
        options.write.write_text(page[:start] + text + page[end:])


if __name__ == "__main__":
    main()
