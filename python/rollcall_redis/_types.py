"""Errors, and what answers are made of. The compiled module raises and returns these."""

from enum import IntEnum
from typing import NamedTuple


class Error(Exception):
    """What a filter or a counter rejects. Nothing was changed, unless the method says otherwise."""


class ParameterError(Error, ValueError):
    """A parameter is out of its range, or does not go with another one."""


class SizeError(Error, MemoryError):
    """The value would take more bytes than `max_bytes` allows, or than there are."""


class CorruptError(Error, ValueError):
    """Bytes are no such value, or were damaged."""


class IncompatibleError(Error, ValueError):
    """Two values do not go together: they differ in a parameter."""


class FullError(Error):
    """A filter that does not grow is full, or a union would err more often than was asked for."""


class NotExactError(Error):
    """Members were asked of a counter that holds an estimate, or would by then."""


class KeyMissingError(Error, KeyError):
    """A server has no such key."""

    def __str__(self) -> str:
        # That of KeyError shows the quotes of its argument.
        return Error.__str__(self)


class KeyExistsError(Error):
    """A server has the key already, and it was not to be replaced."""


class Estimate(NamedTuple):
    """A number of members, and by how many it may be wrong."""

    # Tuples have a method of this name, which nobody looks for in a pair of numbers.
    count: int  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]
    """The number, rounded."""
    standard_error: float
    """The standard error of that, in members; 0 of an exact number, else half a member at least."""


class Admission(IntEnum):
    """What became of an item, as BF.ADMIT and LC.ADMIT reply it."""

    ADMITTED = 1
    """It was new, and is in now."""
    KNOWN = 0
    """It was known already."""
    REJECTED = -1
    """It is new, and was not let in."""
