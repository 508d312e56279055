"""Tests bytes and files in the format of the command-line tool."""

import errno
import itertools
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import rollcall_redis as rollcall
from rollcall_redis import BloomFilter, Counter

Value = BloomFilter | Counter


def values() -> list[Value]:
    """Values of each kind: empty, small and large."""
    made: list[Value] = []
    for items in (0, 5, 3000):
        for value in (
            BloomFilter(1000),
            BloomFilter(1000, layout="classic"),
            BloomFilter(100_000, window=60, manual=True),
            Counter(),
            Counter(window=60, manual=True),
        ):
            value.update(str(number) for number in range(items))
            made.append(value)
    return made


@pytest.mark.parametrize("value", values(), ids=repr)
def test_values_come_back(value: Value, tmp_path: Path) -> None:
    data = value.to_bytes()
    assert data.startswith(b"RollCall")
    kind: Any = type(value)
    for copy in (kind.from_bytes(data), kind.from_bytes(bytearray(data)), kind.from_bytes(memoryview(data))):
        assert copy == value and copy.to_bytes() == data
    path = tmp_path / "value"
    value.save(path)
    assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]
    assert kind.load(str(path)) == value == pickle.loads(pickle.dumps(value))
    other: Any = Counter if kind is BloomFilter else BloomFilter
    with pytest.raises(rollcall.CorruptError, match=r"expected a .*, got a "):
        other.from_bytes(data)
    with pytest.raises(rollcall.CorruptError):
        other.load(path)


def test_a_damaged_byte_is_found() -> None:
    seen = BloomFilter(1000, layout="classic")
    seen.update(str(number) for number in range(100))
    data = bytearray(seen.to_bytes())
    for at in itertools.chain(range(0, 100), range(100, len(data), 7)):
        data[at] ^= 0x10
        with pytest.raises(rollcall.CorruptError):
            BloomFilter.from_bytes(data)
        data[at] ^= 0x10
    for end in range(0, len(data), 11):
        with pytest.raises(rollcall.CorruptError):
            BloomFilter.from_bytes(data[:end])
    with pytest.raises(rollcall.CorruptError, match="bytes after the end"):
        BloomFilter.from_bytes(data + b"\0")
    assert BloomFilter.from_bytes(data) == seen


def test_errors_of_files(tmp_path: Path) -> None:
    seen = BloomFilter(100_000)
    with pytest.raises(FileNotFoundError):
        BloomFilter.load(tmp_path / "missing")
    with pytest.raises(OSError):
        seen.save(tmp_path / "missing" / "file")
    with pytest.raises(IsADirectoryError):
        BloomFilter.load(tmp_path)
    with pytest.raises(OSError):
        seen.save(tmp_path)
    assert not list(tmp_path.parent.glob("*.part"))
    with pytest.raises(rollcall.SizeError):
        BloomFilter.from_bytes(seen.to_bytes(), 1000)
    seen.save(tmp_path / "file")
    with pytest.raises(rollcall.SizeError):
        BloomFilter.load(tmp_path / "file", max_bytes=1000)
    assert BloomFilter.load(tmp_path / "file", max_bytes=1 << 20).max_bytes == 1 << 20
    with pytest.raises(TypeError):
        BloomFilter.from_bytes("text")  # type: ignore[arg-type]


def test_the_golden_file_of_the_tool() -> None:
    golden = Path(__file__).resolve().parents[2] / "cli/tests/tool/golden.rollcall"
    built = BloomFilter.load(golden)
    assert built.contains_many(["ann", "ben", "cid", "dee"]) == [True, True, True, False]
    assert (len(built), built.capacity) == (3, 10)


@pytest.mark.skipif("ROLLCALL_TOOL" not in os.environ, reason="ROLLCALL_TOOL names no command-line tool")
def test_files_of_the_tool(tmp_path: Path) -> None:
    items = [f"item {number}" for number in range(5000)]
    (tmp_path / "items").write_text("\n".join(items))
    tool = os.environ["ROLLCALL_TOOL"]
    run = [tool, "build", "filter", str(tmp_path / "filter"), str(tmp_path / "items"), "--capacity", "5000"]
    subprocess.run(run, check=True, capture_output=True)
    built = BloomFilter.load(tmp_path / "filter")
    assert all(built.contains_many(items))
    built.save(tmp_path / "saved")
    reported = subprocess.run(
        [tool, "info", str(tmp_path / "saved")], check=True, capture_output=True, text=True
    ).stdout
    assert "checksums verified" in reported


def test_pickles_load_in_another_process() -> None:
    seen = BloomFilter(1000)
    seen.add("ann")
    program = "import pickle, sys; print('ann' in pickle.load(sys.stdin.buffer))"
    run = [sys.executable, "-P", "-c", program]
    reported = subprocess.run(run, input=pickle.dumps(seen), capture_output=True, check=True)
    assert reported.stdout == b"True\n"


def test_files_that_are_written_at_once_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "seen.rollcall"
    filters = [BloomFilter(200_000, seed=seed) for seed in range(2)]

    def save(filter: BloomFilter) -> None:
        for _ in range(5):
            filter.save(path)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(save, filter) for filter in filters]:
            done.result()
    assert BloomFilter.load(path) in filters
    assert os.listdir(tmp_path) == [path.name]


def test_errors_of_files_name_the_file(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as caught:
        BloomFilter.load(missing)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(missing))
    nowhere = tmp_path / "folder" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        BloomFilter(10).save(nowhere)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(nowhere))
    with pytest.raises(OSError) as unwritten:
        BloomFilter(10_000_000).save("/dev/full/file")
    assert unwritten.value.errno == errno.ENOTDIR
    (tmp_path / "other").write_bytes(b"no value")
    with pytest.raises(rollcall.CorruptError, match="other: "):
        BloomFilter.load(tmp_path / "other")
