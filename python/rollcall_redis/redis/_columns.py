"""Items in one argument: columns whose items all have the same number of bytes, sent with WIDTH."""

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from rollcall_redis._types import Admissions, FullError, ParameterError

from ._command import Command, Item, Word, listed, reject_none
from ._reply import (
    UnexpectedReply,
    binary,
    booleans,
    integer,
    outcomes,
    replies_before,
    room,
    with_replies_before,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer as Buffer

    class Rows(Protocol):
        """An array of NumPy whose elements or rows are bytes."""

        @property
        def dtype(self) -> np.dtype[np.bytes_ | np.void | np.uint8]: ...
        def __array__(self, *args: Any, **options: Any) -> Any: ...

    Answers: TypeAlias = NDArray[np.bool_]
    AnswersView: TypeAlias = memoryview[bool]
else:
    # Neither NumPy nor typing_extensions is required, and a memoryview takes no type before Python 3.14.
    Buffer = Rows = Answers = AnswersView = Any

T = TypeVar("T")

WithItems: TypeAlias = "tuple[list[Word], Iterable[Item] | Rows | Buffer, int | None]"
"""The arguments of a command, the items that follow them, and the width of items in a buffer."""

MAX_WIDTH = 65_536
MAX_ITEMS = 1 << 20
"""The largest number of items that a command takes in runs."""
MAX_BYTES = 512 << 20
"""The largest argument that servers take (proto-max-bulk-len)."""

FULL = "non scaling filter is full"


class Column(NamedTuple):
    """Items of the same number of bytes."""

    data: bytes
    width: int
    num_items: int
    is_padded: bool
    """Whether zeros at the end of an item are padding."""
    wants_numpy: bool
    """Whether the answers are an array of NumPy, or a memoryview."""

    def needs_list(self) -> bool:
        """Whether padded items have to be sent one by one: some are shorter than the column, or it is too wide."""
        fits = 1 <= self.width <= MAX_WIDTH
        return self.is_padded and (not fits or b"\0" in self.data[self.width - 1 :: self.width])

    def without_padding(self) -> Iterable[bytes]:
        starts = (number * self.width for number in range(self.num_items))
        return (self.data[start : start + self.width].rstrip(b"\0") for start in starts)

    def max_items(self) -> int:
        """The largest number of items of one call."""
        return min(MAX_ITEMS, MAX_BYTES // self.width)

    def runs(self) -> list[Word]:
        """The argument behind ITEMS in each call."""
        if self.num_items <= self.max_items():
            return [self.data]
        size = self.max_items() * self.width
        return [memoryview(self.data)[start : start + size] for start in range(0, len(self.data), size)]

    def array(self, values: bytes, format: str) -> Any:
        """The answers about the items, each a byte of this format."""
        if len(values) != self.num_items:
            raise UnexpectedReply(values, f"{self.num_items} replies")
        view = cast(Any, memoryview(bytearray(values))).cast(format)
        return importlib.import_module("numpy").asarray(view) if self.wants_numpy else view


def with_items(name: str, arguments: WithItems, read: Callable[[Any], T]) -> Command[T]:
    """A command with items, in one argument if they have the same width. `read` reads the reply to a list."""
    words, items, width = arguments
    column = column_of(items, width)
    if column is None:
        # An array of pyarrow hands out scalars of pyarrow.
        values = cast(Any, items).to_pylist() if hasattr(items, "to_pylist") else items
        return Command(name, [*words, *listed(cast(Iterable[Item], values))], read)
    reject_none(column.num_items)
    of_column, is_one_decision = _OF_COLUMN[read]
    if column.needs_list():
        calls = [[*words, *listed(column.without_padding())]]
    else:
        if not 1 <= column.width <= MAX_WIDTH:
            raise ParameterError(f"items of a column must have 1 to {MAX_WIDTH} bytes, got {column.width}")
        if is_one_decision and column.num_items > column.max_items():
            raise ParameterError(
                f"the column is too long: {name} decides about all items in one call, of at most "
                f"{column.max_items()} items, got {column.num_items}"
            )
        calls = [[*words, "WIDTH", column.width, "ITEMS", run] for run in column.runs()]
    return Command(name, calls[0], lambda replies: of_column(column, replies), rest=calls[1:])


def column_of(items: Any, width: int | None) -> Column | None:
    """The items as a column, or None if they are to be sent one by one."""
    arrow = sys.modules.get("pyarrow")
    if width is None and arrow and isinstance(items, (arrow.Array, arrow.ChunkedArray)):
        return _column_of_arrow(items) if arrow.types.is_fixed_size_binary(items.type) else None
    try:
        view = memoryview(items)
    except (TypeError, ValueError):
        if width is None:
            return None
        raise TypeError(f"width= is for the bytes of a buffer, got {type(items).__name__}") from None
    # Only the types of fields in the format of a structure, which is `T{<i8:name:...}`.
    kinds = "".join(view.format.split(":")[::2])
    wants_numpy = hasattr(items, "__array__")
    shape = view.shape or ()
    if width is None:
        if len(shape) == 1 and kinds[-1:] in ("x", "s") and "{" not in kinds:
            width = view.itemsize
        elif len(shape) == 2 and kinds == "B":
            width = shape[1]
        else:
            return None
        _reject_masked(items)
        return Column(view.tobytes(), width, shape[0], kinds.endswith("s"), wants_numpy)
    _reject_masked(items)
    if set(kinds) & set("Owuefdg"):
        raise TypeError(f"an array of objects, texts or floats has no bytes for items: its format is {view.format!r}")
    if width < 1 or view.nbytes % width:
        raise ParameterError(f"width must be at least 1 and divide the {view.nbytes} bytes of the buffer, got {width}")
    return Column(view.tobytes(), width, view.nbytes // width, is_padded=False, wants_numpy=wants_numpy)


def _column_of_arrow(items: Any) -> Column:
    if items.null_count:
        raise TypeError("a missing value is no item: pass column.drop_null()")
    width: int = items.type.byte_width
    parts = [
        memoryview(chunk.buffers()[1])[chunk.offset * width : (chunk.offset + len(chunk)) * width]
        for chunk in getattr(items, "chunks", [items])
        if len(chunk)
    ]
    return Column(b"".join(parts), width, len(items), is_padded=False, wants_numpy="numpy" in sys.modules)


def _reject_masked(items: Any) -> None:
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(items, numpy.ma.MaskedArray):
        raise TypeError("what is masked in an array is no item: pass array.compressed(), which leaves it out")


def _run_of(reply: Any) -> bytes:
    """The reply as a byte for each item, also if the items were sent one by one."""
    if isinstance(reply, str | bytes):
        return binary(reply)
    try:
        return b"".join(_BYTES[value] for value in outcomes(reply))
    except Exception as error:
        if str(error) != FULL:
            raise
        before = [bool(value) for value in replies_before(error)]
        raise with_replies_before(FullError(FULL), before) from error


_BYTES = {1: b"1", 0: b"0", -1: b"-"}
_VALUES = bytes.maketrans(b"10-", b"\1\0\xff")


def _values(column: Column, runs: list[bytes], expected: bytes, format: str) -> Any:
    values = b"".join(runs)
    if unknown := values.translate(None, expected):
        raise UnexpectedReply(unknown[:20], f"the bytes {expected.decode()}")
    return column.array(values.translate(_VALUES), format)


def _booleans(column: Column, replies: list[Any]) -> Any:
    added, full, _ = b"".join(map(_run_of, replies)).partition(b"!")
    if full:
        raise with_replies_before(FullError(FULL), [value == ord("1") for value in added])
    return _values(column, [added], b"01", "?")


def _outcomes(column: Column, replies: list[Any]) -> Any:
    return _values(column, [_run_of(reply) for reply in replies], b"01-", "b")


def _sum(_: Column, replies: list[Any]) -> int:
    return sum(map(integer, replies))


def _room(column: Column, replies: list[Any]) -> Admissions:
    return room(replies[0], lambda outcomes: _outcomes(column, [outcomes]))


_OF_COLUMN: dict[Callable[[Any], Any], tuple[Callable[[Column, list[Any]], Any], bool]] = {
    booleans: (_booleans, False),
    integer: (_sum, False),
    outcomes: (_outcomes, True),
    room: (_room, True),
}
"""By the function that reads the reply to a list: the one that reads the replies to a column, one for each call, and
whether one call has to decide about all items."""
