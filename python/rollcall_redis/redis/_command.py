"""What is sent: the words of a command, and how its reply is read."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Key: TypeAlias = str | bytes | memoryview
Item: TypeAlias = str | bytes | memoryview | int | float
Word: TypeAlias = str | bytes | memoryview | int | float

Seconds: TypeAlias = int | timedelta
"""A time span. A `timedelta` is rounded up to whole units."""
Spans: TypeAlias = Seconds | Sequence[Seconds | None] | None
"""A time span for all keys, or one for each, where None is all that a counter remembers."""
Moment: TypeAlias = int | datetime
"""A point in time: a number since 1970, or a `datetime`."""


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """A command for any client: the same for blocking clients, asyncio and pipelines."""

    name: str
    words: list[Word]
    parse: Callable[[Any], T]
    content: Literal["text", "members", "binary"] = "text"
    """What the reply has: texts of the server, members, which are texts of the application if it says so, or bytes."""


def options(*pairs: tuple[str, Word | bool | None]) -> list[Word]:
    """Words of the options that are given: a token alone for `True`, nothing for `None` and `False`."""
    words: list[Word] = []
    for token, value in pairs:
        if value is True:
            words.append(token)
        elif value is not None and value is not False:
            words += (token, value)
    return words


def listed(items: Iterable[Item]) -> list[Word]:
    """ITEMS and what follows. One text alone would be taken apart into its characters, so it is rejected."""
    if isinstance(items, str | bytes | bytearray | memoryview):
        raise TypeError(f"items must be a list or another iterable of items, got one {type(items).__name__}")
    return ["ITEMS", *items]


def in_seconds(span: Seconds) -> int:
    return math.ceil(span.total_seconds()) if isinstance(span, timedelta) else span


def span(token: str, value: Seconds | None) -> list[Word]:
    return [] if value is None else [token, in_seconds(value)]


def numbered(keys: Sequence[Key], since: Spans) -> list[Word]:
    if since is None:
        return [len(keys), *keys]
    # One text would be taken apart into its characters.
    if isinstance(since, str | bytes | bytearray | memoryview):
        raise TypeError(f"since must be seconds, a timedelta or a list of them, got {type(since).__name__}")
    spans = [since] if isinstance(since, int | timedelta) else since
    return [len(keys), *keys, "SINCE", *("-" if span is None else in_seconds(span) for span in spans)]


def expiry(ex: Seconds | None, px: Seconds | None, exat: Moment | None, pxat: Moment | None) -> list[Word]:
    milliseconds = math.ceil(px / timedelta(milliseconds=1)) if isinstance(px, timedelta) else px
    unix_seconds = math.ceil(exat.timestamp()) if isinstance(exat, datetime) else exat
    unix_milliseconds = math.ceil(pxat.timestamp() * 1000) if isinstance(pxat, datetime) else pxat
    return [*span("EX", ex), *options(("PX", milliseconds), ("EXAT", unix_seconds), ("PXAT", unix_milliseconds))]
