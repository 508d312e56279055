"""Tests the metadata and the files of the installed package."""

import importlib.metadata
import sys
from pathlib import Path

import numpy as np
import pytest

import rollcall_redis
from rollcall_redis import BloomFilter

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_the_wheel() -> None:
    assert rollcall_redis.__version__ == importlib.metadata.version("rollcall-redis")


def test_licences_come_whole() -> None:
    files = importlib.metadata.files("rollcall-redis") or []
    texts = {file.name: file.read_text() for file in files if "licenses" in file.parts}
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert texts[name] == (ROOT / name).read_text()
    assert "\npyo3 0." in texts["THIRD-PARTY"]


def test_answers_about_an_array_need_no_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([b"ann", b"ben"])
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert isinstance(BloomFilter(10).add_many(rows), memoryview)
