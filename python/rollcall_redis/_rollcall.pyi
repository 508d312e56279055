"""Filters and counters."""

from collections.abc import Awaitable, Iterable, Mapping
from datetime import timedelta
from os import PathLike
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from rollcall_redis._types import Admission, Admissions, Estimate

_Item: TypeAlias = str | bytes | bytearray | memoryview
"""An item or a member. A str is encoded as UTF-8."""

_Key: TypeAlias = str | bytes | memoryview
"""A key of a server, as redis-py accepts it."""

__all__ = [
    "BloomFilter",
    "Counter",
    "_CounterLoader",
    "_FilterLoader",
    "__version__",
    "diff",
    "diff_card",
    "inter",
    "inter_card",
    "union",
    "union_card",
]

__version__: str

class _Array(Protocol):
    """A NumPy array, or a column of pandas or Polars."""

    def __array__(self, *args: Any, **options: Any) -> Any: ...

_Rows: TypeAlias = Buffer | _Array
"""An object with rows of bytes in memory."""

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

_Column: TypeAlias = _ArrowArray | _ArrowStream
"""A column that Arrow's C data interface hands out."""

_Nulls: TypeAlias = Literal["error", "skip"]
"""What is done about missing values of a column."""

_Answers: TypeAlias = NDArray[np.bool_]
"""The answers about the items of an `_Array`."""

class _Client(Protocol):
    """A blocking client."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...

class _AsyncClient(Protocol):
    """An asyncio client."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...
    def aclose(self) -> Awaitable[None]: ...

@final
class BloomFilter:
    """A Bloom filter: a set that answers whether an item may be in it, with one or two bytes per item."""

    def __new__(
        cls,
        capacity: int,
        error_rate: float = 0.01,
        *,
        expansion: int | None = None,
        seed: int = 0,
        layout: Literal["lines", "classic"] = "lines",
        window: int | timedelta | None = None,
        slices: int | None = None,
        refresh: bool = False,
        manual: bool = False,
        max_bytes: int | None = None,
        now: int | None = None,
    ) -> Self: ...
    def add(self, item: _Item, now: int | None = None) -> bool: ...
    @overload
    def update(
        self, items: _Rows | _Column, *, width: int | None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> None: ...
    @overload
    def update(
        self, items: Iterable[_Item], *, width: None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> None: ...
    @staticmethod
    def update_groups(  # pairs rows by position, not by the index of a pandas Series
        filters: Mapping[Any, BloomFilter],
        groups: _Column,
        items: _Column,
        *,
        nulls: _Nulls = "error",
        now: int | None = None,
    ) -> None: ...
    @overload
    def add_many(
        self, items: _Array, *, width: int | None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> _Answers: ...
    @overload
    def add_many(
        self, items: Buffer | _Column, *, width: int | None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> memoryview[bool]: ...
    @overload
    def add_many(
        self, items: Iterable[_Item], *, width: None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> list[bool]: ...
    def contains(self, item: _Item, *, since: int | timedelta | None = None, now: int | None = None) -> bool: ...
    def __contains__(self, item: _Item, /) -> bool: ...
    @overload
    def contains_many(
        self,
        items: _Array,
        *,
        width: int | None = None,
        nulls: _Nulls = "error",
        since: int | timedelta | None = None,
        now: int | None = None,
    ) -> _Answers: ...
    @overload
    def contains_many(
        self,
        items: Buffer | _Column,
        *,
        width: int | None = None,
        nulls: _Nulls = "error",
        since: int | timedelta | None = None,
        now: int | None = None,
    ) -> memoryview[bool]: ...
    @overload
    def contains_many(
        self,
        items: Iterable[_Item],
        *,
        width: None = None,
        nulls: _Nulls = "error",
        since: int | timedelta | None = None,
        now: int | None = None,
    ) -> list[bool]: ...
    @overload
    def admit(
        self,
        items: Iterable[_Item] | _Rows | _Column,
        limit: int,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: Literal[False] = False,
        width: int | None = None,
        now: int | None = None,
    ) -> list[Admission]: ...
    @overload
    def admit(
        self,
        items: Iterable[_Item] | _Rows | _Column,
        limit: int,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: Literal[True],
        width: int | None = None,
        now: int | None = None,
    ) -> Admissions: ...
    def merge(self, *others: BloomFilter, now: int | None = None) -> bool: ...
    def __or__(self, other: BloomFilter, /) -> BloomFilter: ...
    def __ror__(self, other: BloomFilter, /) -> BloomFilter: ...
    def __ior__(self, other: BloomFilter, /) -> Self: ...
    def __len__(self) -> int: ...
    def num_items(self, now: int | None = None) -> int: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def clear(self) -> None: ...
    def copy(self) -> BloomFilter: ...
    def __copy__(self) -> BloomFilter: ...
    def __deepcopy__(self, memo: Any) -> BloomFilter: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes, int | None]]: ...
    def advance(self, slice: int) -> None: ...
    @property
    def newest_slice(self) -> int | None: ...
    @property
    def capacity(self) -> int: ...
    @property
    def error_rate(self) -> float: ...
    @property
    def expansion(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def layout(self) -> Literal["lines", "classic"]: ...
    @property
    def window(self) -> int | None: ...
    @property
    def slices(self) -> int | None: ...
    @property
    def refresh(self) -> bool: ...
    @property
    def manual(self) -> bool: ...
    @property
    def max_bytes(self) -> int | None: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def fill_ratio(self) -> float: ...
    @property
    def false_positive_rate(self) -> float: ...
    def to_bytes(self) -> bytes: ...
    @classmethod
    def from_bytes(cls, data: Buffer, max_bytes: int | None = None) -> BloomFilter: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @classmethod
    def load(cls, path: str | PathLike[str], max_bytes: int | None = None) -> BloomFilter: ...
    # Type checkers take the first overload that fits, and an asyncio client also fits
    # the other one.
    @overload
    @classmethod
    def download(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        cls, client: _AsyncClient, key: _Key, *, max_bytes: int | None = None
    ) -> Awaitable[BloomFilter]: ...
    @overload
    @classmethod
    def download(cls, client: _Client, key: _Key, *, max_bytes: int | None = None) -> BloomFilter: ...
    @overload
    def upload(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, client: _AsyncClient, key: _Key, *, ttl: float | timedelta | None = None, replace: bool = False
    ) -> Awaitable[None]: ...
    @overload
    def upload(
        self, client: _Client, key: _Key, *, ttl: float | timedelta | None = None, replace: bool = False
    ) -> None: ...
    def _prefix(self) -> str: ...
    def _scandump(self, iterator: int) -> tuple[int, bytes]: ...

@final
class Counter:
    """A counter of distinct members. While they are few, it is exact and lists them; then it estimates their number."""

    def __new__(
        cls,
        error_rate: float = 0.01,
        *,
        exact_limit: int = 250,
        exact_bytes: int = 16384,
        window: int | timedelta | None = None,
        slices: int | None = None,
        manual: bool = False,
        seed: int = 0,
        max_bytes: int | None = None,
        now: int | None = None,
    ) -> Self: ...
    def add(self, member: _Item, now: int | None = None) -> bool: ...
    @overload
    def update(
        self, members: _Rows | _Column, *, width: int | None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> None: ...
    @overload
    def update(
        self, members: Iterable[_Item], *, width: None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> None: ...
    @staticmethod
    def update_groups(  # pairs rows by position, not by the index of a pandas Series
        counters: Mapping[Any, Counter],
        groups: _Column,
        members: _Column,
        *,
        nulls: _Nulls = "error",
        now: int | None = None,
    ) -> None: ...
    @overload
    def add_many(
        self, members: _Array, *, width: int | None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> _Answers: ...
    @overload
    def add_many(
        self, members: Buffer | _Column, *, width: int | None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> memoryview[bool]: ...
    @overload
    def add_many(
        self, members: Iterable[_Item], *, width: None = None, nulls: _Nulls = "error", now: int | None = None
    ) -> list[bool]: ...
    def contains(self, member: _Item, *, since: int | timedelta | None = None, now: int | None = None) -> bool: ...
    def __contains__(self, member: _Item, /) -> bool: ...
    @overload
    def contains_many(
        self,
        members: _Array,
        *,
        width: int | None = None,
        nulls: _Nulls = "error",
        since: int | timedelta | None = None,
        now: int | None = None,
    ) -> _Answers: ...
    @overload
    def contains_many(
        self,
        members: Buffer | _Column,
        *,
        width: int | None = None,
        nulls: _Nulls = "error",
        since: int | timedelta | None = None,
        now: int | None = None,
    ) -> memoryview[bool]: ...
    @overload
    def contains_many(
        self,
        members: Iterable[_Item],
        *,
        width: None = None,
        nulls: _Nulls = "error",
        since: int | timedelta | None = None,
        now: int | None = None,
    ) -> list[bool]: ...
    def count(self, *, since: int | timedelta | None = None, now: int | None = None) -> int: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def estimate(self, *, since: int | timedelta | None = None, now: int | None = None) -> Estimate: ...
    @property
    def standard_error(self) -> float: ...  # of the count, relative to it; that of an Estimate is in members
    @property
    def is_exact(self) -> bool: ...
    @overload
    def members(
        self, *, since: int | timedelta | None = None, withages: Literal[False] = False, now: int | None = None
    ) -> list[bytes]: ...
    @overload
    def members(
        self, *, since: int | timedelta | None = None, withages: Literal[True], now: int | None = None
    ) -> list[tuple[bytes, int]]: ...
    def history(self, now: int | None = None) -> list[tuple[int, Estimate]]: ...
    @overload
    def admit(
        self,
        members: Iterable[_Item] | _Rows | _Column,
        limit: int,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: Literal[False] = False,
        width: int | None = None,
        now: int | None = None,
    ) -> list[Admission]: ...
    @overload
    def admit(
        self,
        members: Iterable[_Item] | _Rows | _Column,
        limit: int,
        *,
        all: bool = False,
        dryrun: bool = False,
        withroom: Literal[True],
        width: int | None = None,
        now: int | None = None,
    ) -> Admissions: ...
    def remove(
        self, members: Iterable[_Item] | _Rows | _Column, *, width: int | None = None, now: int | None = None
    ) -> list[bool]: ...
    def merge(self, *others: Counter, now: int | None = None) -> bool: ...
    def __or__(self, other: Counter, /) -> Counter: ...
    def __ror__(self, other: Counter, /) -> Counter: ...
    def __ior__(self, other: Counter, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def clear(self) -> None: ...
    def copy(self) -> Counter: ...
    def __copy__(self) -> Counter: ...
    def __deepcopy__(self, memo: Any) -> Counter: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes, int | None]]: ...
    def advance(self, slice: int) -> None: ...
    @property
    def newest_slice(self) -> int | None: ...
    @property
    def error_rate(self) -> float: ...
    @property
    def exact_limit(self) -> int: ...
    @property
    def exact_bytes(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def window(self) -> int | None: ...
    @property
    def slices(self) -> int | None: ...
    @property
    def manual(self) -> bool: ...
    @property
    def max_bytes(self) -> int | None: ...
    @property
    def size_bytes(self) -> int: ...
    def to_bytes(self) -> bytes: ...
    @classmethod
    def from_bytes(cls, data: Buffer, max_bytes: int | None = None) -> Counter: ...
    @classmethod
    def merge_all(
        cls,
        counters: Iterable[Buffer | None] | _Column,
        *,
        nulls: _Nulls = "error",
        max_bytes: int | None = None,
        now: int | None = None,
    ) -> Counter: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @classmethod
    def load(cls, path: str | PathLike[str], max_bytes: int | None = None) -> Counter: ...
    # Type checkers take the first overload that fits, and an asyncio client also fits
    # the other one.
    @overload
    @classmethod
    def download(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        cls, client: _AsyncClient, key: _Key, *, max_bytes: int | None = None
    ) -> Awaitable[Counter]: ...
    @overload
    @classmethod
    def download(cls, client: _Client, key: _Key, *, max_bytes: int | None = None) -> Counter: ...
    @overload
    def upload(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, client: _AsyncClient, key: _Key, *, ttl: float | timedelta | None = None, replace: bool = False
    ) -> Awaitable[None]: ...
    @overload
    def upload(
        self, client: _Client, key: _Key, *, ttl: float | timedelta | None = None, replace: bool = False
    ) -> None: ...
    def _prefix(self) -> str: ...
    def _scandump(self, iterator: int) -> tuple[int, bytes]: ...

@final
class _FilterLoader:
    PREFIXES: ClassVar[list[tuple[str, str]]]
    def __new__(cls, max_bytes: int | None = None) -> Self: ...
    def push(self, next: int, chunk: Buffer) -> None: ...
    def finish(self) -> BloomFilter: ...

@final
class _CounterLoader:
    PREFIXES: ClassVar[list[tuple[str, str]]]
    def __new__(cls, max_bytes: int | None = None) -> Self: ...
    def push(self, next: int, chunk: Buffer) -> None: ...
    def finish(self) -> Counter: ...

_Operand: TypeAlias = Counter | tuple[Counter, int | timedelta | None]

def union_card(*operands: _Operand, now: int | None = None) -> Estimate: ...
def inter_card(*operands: _Operand, now: int | None = None) -> Estimate: ...
def diff_card(*operands: _Operand, now: int | None = None) -> Estimate: ...
def union(*operands: _Operand, now: int | None = None) -> list[bytes]: ...
def inter(*operands: _Operand, now: int | None = None) -> list[bytes]: ...
def diff(*operands: _Operand, now: int | None = None) -> list[bytes]: ...
