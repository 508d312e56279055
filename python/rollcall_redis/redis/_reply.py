"""Converts replies to Python values, which are the same over RESP2 and RESP3, whether or not the client decodes.

Each kind of reply in scripts/replies.toml has a function of its name here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard, TypeVar, cast

from rollcall_redis._types import Admission, Admissions, Estimate

T = TypeVar("T")
Member = TypeVar("Member")
"""The type of members: `bytes` or `str`."""


class Slice(NamedTuple):
    """A slice of a window: its begin in Unix seconds, the number of distinct members added since then, and its standard
    error."""

    begin: int
    count: int  # type: ignore[assignment]
    standard_error: float


class Chunk(NamedTuple):
    """A part of a dump. The last part has the iterator 0 and no data."""

    iterator: int
    data: bytes


@dataclass(frozen=True, slots=True)
class FilterInfo:
    """The rows of BF.INFO. `others` has rows that this version of the package does not know, by their labels."""

    capacity: int
    size: int
    number_of_filters: int
    number_of_items_inserted: int
    expansion_rate: int | None
    others: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class CounterInfo:
    """The rows of LC.INFO. `others` has rows that this version of the package does not know, by their labels."""

    error_rate: float
    exact_limit: int
    exact_bytes: int
    mode: str
    size: int
    count: int
    standard_error: float
    window: int | None
    slices: int | None
    slice: int | None
    clock: str | None
    volatile: bool | None
    others: Mapping[str, object]


class UnexpectedReply(TypeError):
    """The reply of the server does not have the form that the command requires."""

    def __init__(self, reply: object, expected: str):
        super().__init__(f"unexpected reply: expected {expected}, got {reply!r}")


def text(reply: Any) -> str:
    if isinstance(reply, bytes):
        return reply.decode()
    if isinstance(reply, str):
        return reply
    raise UnexpectedReply(reply, "a text")


def binary(reply: Any) -> bytes:
    if isinstance(reply, str):
        return reply.encode()
    if isinstance(reply, bytes):
        return reply
    raise UnexpectedReply(reply, "bytes")


def integer(reply: Any) -> int:
    if isinstance(reply, int):
        return int(reply)
    raise UnexpectedReply(reply, "an integer")


def boolean(reply: Any) -> bool:
    if isinstance(reply, int) and reply in (0, 1):
        return bool(reply)
    raise UnexpectedReply(reply, "0 or 1")


def admission(reply: Any) -> Admission:
    if isinstance(reply, int) and -1 <= reply <= 1:
        return Admission(reply)
    raise UnexpectedReply(reply, "1, 0 or -1")


def room(reply: Any, parse: Callable[[Any], Any] | None = None) -> Admissions:
    """Reads the reply with WITHROOM, and its outcomes by `parse`."""
    decided, left, retry_after = _elements(reply)
    seconds = integer(retry_after)
    return Admissions((parse or outcomes)(decided), integer(left), None if seconds == -1 else seconds)


def double(reply: Any) -> float:
    if isinstance(reply, int | float):
        return float(reply)
    try:
        return float(text(reply))
    except ValueError:
        raise UnexpectedReply(reply, "a number") from None


def ok(reply: Any) -> bool:
    if reply in ("OK", b"OK"):
        return True
    raise UnexpectedReply(reply, "OK")


def anything(reply: Any) -> object:
    """Reads a value of a kind that this version of the package does not know."""
    return text(reply) if isinstance(reply, bytes) else reply


def or_none(parse: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda reply: None if reply is None else parse(reply)


def list_of(parse: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    """Reads a list. An error in the list is raised; `replies_before` returns the elements before it."""

    def parse_list(reply: Any) -> list[T]:
        values: list[T] = []
        # Some clients return the members in a set, because RESP3 has sets.
        for element in _elements(reply):
            if isinstance(element, Exception):
                raise with_replies_before(element, values)
            values.append(parse(element))
        return values

    return parse_list


booleans = added = list_of(boolean)
outcomes = list_of(admission)
texts = list_of(text)

_REPLIES_BEFORE = "rollcall_replies_before"


def with_replies_before(error: Exception, replies: list[Any]) -> Exception:
    """The error, for which `replies_before` returns these replies."""
    setattr(error, _REPLIES_BEFORE, replies)
    return error


def replies_before(error: BaseException) -> list[bool]:
    """The replies of BF.MADD or BF.INSERT for the items before the one that caused `error`. These items have been
    added."""
    replies: list[bool] = getattr(error, _REPLIES_BEFORE, [])
    return replies


def estimate(reply: Any) -> Estimate:
    count, standard_error = _pair(reply)
    return Estimate(integer(count), double(standard_error))


def history_slice(reply: Any) -> Slice:
    begin, count, error = reply
    return Slice(integer(begin), integer(count), double(error))


slices = list_of(history_slice)


def members(member: Callable[[Any], Member]) -> Callable[[Any], list[Member]]:
    return list_of(member)


def ages(member: Callable[[Any], Member]) -> Callable[[Any], list[tuple[Member, int]]]:
    """Reads members with their ages: a list of pairs in RESP3, a flat list in RESP2."""

    def parse_ages(reply: Any) -> list[tuple[Member, int]]:
        elements = _elements(reply)
        if elements and not isinstance(elements[0], list | tuple):
            elements = [elements[start : start + 2] for start in range(0, len(elements), 2)]
        return [(member(name), integer(age)) for name, age in map(_pair, elements)]

    return parse_ages


def chunk(reply: Any) -> Chunk:
    iterator, data = _pair(reply)
    return Chunk(integer(iterator), binary(data))


FIELDS: dict[str, Callable[[Any], object]] = {
    "CAPACITY": integer,
    "SIZE": integer,
    "FILTERS": integer,
    "ITEMS": integer,
    "EXACT": integer,
    "BYTES": integer,
    "COUNT": integer,
    "ERROR": double,
    "FPR": double,
    "FILL": double,
    "STDERR": double,
    "LAYOUT": text,
    "MODE": text,
    "EXPANSION": or_none(integer),
    "WINDOW": or_none(integer),
    "SLICES": or_none(integer),
    "SLICE": or_none(integer),
    "CLOCK": or_none(text),
    "VOLATILE": or_none(boolean),
    "REFRESH": or_none(boolean),
}
"""How each field of BF.INFO and LC.INFO is read."""


def field(name: str) -> Callable[[Any], object]:
    """Reads a reply with one field: a map of one pair in RESP3, an array of one value in RESP2."""
    parse = FIELDS.get(name.upper(), anything)

    def parse_field(reply: Any) -> object:
        values = _values(reply)
        if len(values) != 1:
            raise UnexpectedReply(reply, "one field")
        return parse(values[0])

    return parse_field


def filter(reply: Any) -> FilterInfo:
    rows = _Rows(reply)
    return FilterInfo(
        capacity=rows.take("Capacity", integer),
        size=rows.take("Size", integer),
        number_of_filters=rows.take("Number of filters", integer),
        number_of_items_inserted=rows.take("Number of items inserted", integer),
        expansion_rate=rows.take("Expansion rate", or_none(integer)),
        others=rows.rest(),
    )


def counter(reply: Any) -> CounterInfo:
    rows = _Rows(reply)
    return CounterInfo(
        error_rate=rows.take("Error rate", double),
        exact_limit=rows.take("Exact limit", integer),
        exact_bytes=rows.take("Exact bytes", integer),
        mode=rows.take("Mode", text),
        size=rows.take("Size", integer),
        count=rows.take("Count", integer),
        standard_error=rows.take("Standard error", double),
        window=rows.take("Window", or_none(integer)),
        slices=rows.take("Slices", or_none(integer)),
        slice=rows.take("Slice", or_none(integer)),
        clock=rows.take("Clock", or_none(text)),
        volatile=rows.take("Volatile", or_none(boolean)),
        others=rows.rest(),
    )


class _Rows:
    """The rows of a reply with labels, which is a map in RESP3 and a flat list in RESP2."""

    def __init__(self, reply: Any):
        self._reply = reply
        if _is_map(reply):
            pairs = list(reply.items())
        else:
            elements = _elements(reply)
            pairs = list(zip(elements[::2], elements[1::2], strict=False))
        self._rows: dict[str, Any] = {text(label): value for label, value in pairs}

    def take(self, label: str, parse: Callable[[Any], T]) -> T:
        if label not in self._rows:
            raise UnexpectedReply(self._reply, f"a row {label!r}")
        return parse(self._rows.pop(label))

    def rest(self) -> Mapping[str, object]:
        return {label: anything(value) for label, value in self._rows.items()}


def _elements(reply: Any) -> list[Any]:
    if isinstance(reply, list | tuple | set | frozenset):
        return list(cast(Iterable[Any], reply))
    raise UnexpectedReply(reply, "a list")


def _is_map(reply: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(reply, Mapping)


def _values(reply: Any) -> list[Any]:
    """The values of a reply without its labels. Only RESP3 sends labels here."""
    return list(reply.values()) if _is_map(reply) else _elements(reply)


def _pair(reply: Any) -> tuple[Any, Any]:
    elements = _elements(reply)
    if len(elements) != 2:
        raise UnexpectedReply(reply, "two values")
    return elements[0], elements[1]
