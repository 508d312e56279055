"""Errors and reply types, which the compiled module raises and returns."""

from enum import IntEnum
from typing import NamedTuple


class Error(Exception):
    """The base class of all errors. A call that fails changes nothing, unless its method says otherwise."""


class ParameterError(Error, ValueError):
    """A parameter is out of its range, or cannot be combined with another one."""


class SizeError(Error, MemoryError):
    """The value would take more bytes than `max_bytes` allows, or than there is memory for."""


class CorruptError(Error, ValueError):
    """The bytes are not a value of this kind, or they are damaged."""


class IncompatibleError(Error, ValueError):
    """Two values cannot be combined, because a parameter differs."""


class FullError(Error):
    """A filter that does not grow is full, or a union of filters would exceed the error rate."""


class NotExactError(Error):
    """The counter estimates, or would estimate after this call, but the call needs a list of its members."""


class KeyMissingError(Error, KeyError):
    """The server does not have the key."""

    def __str__(self) -> str:
        # KeyError's own method would put the message in quotes.
        return Error.__str__(self)


class KeyExistsError(Error):
    """The server already has the key, and it was not to be replaced."""


class Estimate(NamedTuple):
    """A number of members, and its standard error."""

    # Tuples have a method `count`, which nobody needs for a pair of numbers.
    count: int  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]
    """The number of members, rounded."""
    standard_error: float
    """The standard error of `count`, in members: 0 if the count is exact, and otherwise at least 0.5."""


class Admission(IntEnum):
    """The outcome of an item in `admit`, as BF.ADMIT and LC.ADMIT reply it."""

    ADMITTED = 1
    """The item was new and has been added."""
    KNOWN = 0
    """The item was known already."""
    REJECTED = -1
    """The item is new and was rejected."""


class Admissions(NamedTuple):
    """The outcomes of `admit`, and the room that it leaves; in a dry run, the room that it would leave."""

    outcomes: list[Admission]
    """The outcome of each item."""
    room: int
    """How many more new items the next call with the same limit would admit."""
    retry_after: int | None
    """The seconds until a new item is admitted; with `all`, as many new items as the call had. None means never."""
