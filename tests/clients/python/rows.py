"""The commands and replies of commands.json, and how a client's reply is compared with them."""

import json
from pathlib import Path

ROWS = [row for row in json.loads((Path(__file__).parents[1] / "commands.json").read_text()) if len(row) == 2]


def expected(reply, resp: int):
    """A reply in commands.json, converted to the protocol of this run."""
    match reply:
        case bool():
            return reply if resp == 3 else int(reply)
        case list():
            return [expected(element, resp) for element in reply]
        case {"double": text}:
            return float(text) if resp == 3 else text
        case {"map": lines} | {"field": lines} if resp == 3:
            return {label: expected(value, resp) for label, value in lines.items()}
        case {"map": lines}:
            return [part for label, value in lines.items() for part in (label, expected(value, resp))]
        case {"field": lines}:
            return [expected(value, resp) for value in lines.values()]
        case {"sorted": members}:
            return members
        case _:
            return reply


def found(value):
    """The client's reply, with bytes decoded to text."""
    match value:
        case bytes():
            return value.decode("latin-1")
        case list():
            return [found(element) for element in value]
        case dict():
            return {found(label): found(element) for label, element in value.items()}
        case _:
            return value


def is_as(value, pattern) -> bool:
    """Whether a value equals a pattern and has the same types. In Python 1 equals True, so types are compared too. The
    pattern "any" matches every value."""
    match pattern:
        case "any":
            return True
        case list():
            return type(value) is list and len(value) == len(pattern) and all(map(is_as, value, pattern))
        case dict():
            same_keys = type(value) is dict and list(value) == list(pattern)
            return same_keys and is_as([*value.values()], [*pattern.values()])
        case _:
            return repr(value) == repr(pattern)
