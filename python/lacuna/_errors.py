"""What can go wrong."""

import operator
from typing import Any


class Error(Exception):
    """An error of Lacuna's, with the library's text: what was expected, what was got, and what to do."""


class InputError(Error, ValueError):
    """An error that other arguments would not give. It is an :class:`Error` and a :class:`ValueError`."""


def whole(what: str, number: Any) -> int:
    """The number, if it is a count: whole, and not negative."""
    try:
        found = operator.index(number)
    except TypeError:
        found = -1
    if not 0 <= found < 2**63:
        raise InputError(f"{what} is {number!r}, but a whole number from 0 on is expected")
    return found
