"""Bloom filters and counters of distinct members, in this process and on servers with the module Rollcall.

`BloomFilter` and `Counter` work without a server, with the code of the module. `upload` and `download` transfer them
to and from servers. `rollcall_redis.redis` has a typed method for every command of the module.
"""

from typing import TYPE_CHECKING

from rollcall_redis._types import (
    Admission,
    Admissions,
    CorruptError,
    Error,
    Estimate,
    FullError,
    IncompatibleError,
    KeyExistsError,
    KeyMissingError,
    NotExactError,
    ParameterError,
    SizeError,
)

if TYPE_CHECKING:
    from rollcall_redis._rollcall import (
        BloomFilter,
        Counter,
        __version__,
        diff,
        diff_card,
        inter,
        inter_card,
        union,
        union_card,
    )

__all__ = [
    "Admission",
    "Admissions",
    "BloomFilter",
    "CorruptError",
    "Counter",
    "Error",
    "Estimate",
    "FullError",
    "IncompatibleError",
    "KeyExistsError",
    "KeyMissingError",
    "NotExactError",
    "ParameterError",
    "SizeError",
    "__version__",
    "diff",
    "diff_card",
    "inter",
    "inter_card",
    "union",
    "union_card",
]

_COMPILED = frozenset(
    ("BloomFilter", "Counter", "__version__", "diff", "diff_card", "inter", "inter_card", "union", "union_card"),
)


def __getattr__(name: str) -> object:
    # The compiled module is loaded on first use, because `rollcall_redis.redis` works without
    # it.
    if name in _COMPILED:
        from rollcall_redis import _rollcall

        found: object = getattr(_rollcall, name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
