"""Commands that can be sent: the words of a command, and the function that reads its reply."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from rollcall_redis._types import ParameterError

T = TypeVar("T")

Key: TypeAlias = str | bytes | memoryview
Item: TypeAlias = str | bytes | bytearray | memoryview | int
Word: TypeAlias = str | bytes | memoryview | int | float

Seconds: TypeAlias = int | timedelta
"""A time span in seconds. A `timedelta` is rounded up to whole seconds."""
Spans: TypeAlias = Seconds | Sequence[Seconds | None] | None
"""A time span for all keys, or a list with one for each key. None selects all live members of a counter."""
Moment: TypeAlias = int | datetime
"""A point in time: a number since the Unix epoch, or a `datetime`."""


@dataclass(frozen=True, slots=True)
class Command(Generic[T]):
    """A command for any client: blocking, asyncio, or pipeline."""

    name: str
    words: list[Word]
    parse: Callable[[Any], T]
    content: Literal["text", "members", "binary"] = "text"
    """The content of the reply: text of the server, members (decoded if the application asks for it), or bytes."""
    rest: list[list[Word]] | None = None
    """For a column, the words of further calls with the same name. `parse` then reads the list of all replies."""

    def calls(self) -> list[list[Word]]:
        """The words of each call."""
        return [self.words, *(self.rest or ())]

    def read(self, replies: list[Any]) -> T:
        """Reads the replies, one for each call."""
        return self.parse(replies[0] if self.rest is None else replies)


def options(*pairs: tuple[str, Word | bool | None]) -> list[Word]:
    """The words of the given options. `True` gives the token alone; `None` and `False` leave the option out."""
    words: list[Word] = []
    for token, value in pairs:
        if value is True:
            words.append(token)
        elif value is not None and value is not False:
            words += (token, value)
    return words


def encoded(item: Item) -> bytes:
    """The bytes of an item: those that the classes of `rollcall_redis` store, and for an int its digits.

    Clients would send the `repr` of a number of NumPy or of an enum.
    """
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes):
        return item
    if isinstance(item, bytearray | memoryview):
        return bytes(item)
    # True is an int too, but nobody expects it to be sent as 1.
    if isinstance(item, int) and not isinstance(item, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        return int.__repr__(item).encode()
    given = type(item).__name__
    advice = "leave missing values out" if given == "NoneType" else "decide on its text, and pass that"
    raise TypeError(f"an item is str, bytes, bytearray, memoryview or int, got {given}: {advice}")


def listed(items: Iterable[Item]) -> list[Word]:
    """The word ITEMS and the items. A single str or bytes is rejected, because its characters would become items."""
    if isinstance(items, str | bytes | bytearray | memoryview):
        raise TypeError(f"items must be a list or another iterable of items, got one {type(items).__name__}")
    words: list[Word] = ["ITEMS", *map(encoded, items)]
    reject_none(len(words) - 1)
    return words


def reject_none(num_items: int) -> None:
    """Rejects a list without items, of which servers say that the number of arguments is wrong."""
    if num_items == 0:
        raise ParameterError("expected one item or more, got none")


def in_seconds(span: Seconds) -> int:
    return math.ceil(span.total_seconds()) if isinstance(span, timedelta) else span


def span(token: str, value: Seconds | None) -> list[Word]:
    return [] if value is None else [token, in_seconds(value)]


def numbered(keys: Sequence[Key], since: Spans) -> list[Word]:
    if since is None:
        return [len(keys), *keys]
    # A single str would be split into its characters.
    if isinstance(since, str | bytes | bytearray | memoryview):
        raise TypeError(f"since must be seconds, a timedelta or a list of them, got {type(since).__name__}")
    spans = [since] if isinstance(since, int | timedelta) else since
    return [len(keys), *keys, "SINCE", *("-" if span is None else in_seconds(span) for span in spans)]


def expiry(ex: Seconds | None, px: Seconds | None, exat: Moment | None, pxat: Moment | None) -> list[Word]:
    milliseconds = math.ceil(px / timedelta(milliseconds=1)) if isinstance(px, timedelta) else px
    unix_seconds = math.ceil(exat.timestamp()) if isinstance(exat, datetime) else exat
    unix_milliseconds = math.ceil(pxat.timestamp() * 1000) if isinstance(pxat, datetime) else pxat
    return [*span("EX", ex), *options(("PX", milliseconds), ("EXAT", unix_seconds), ("PXAT", unix_milliseconds))]
