"""What can go wrong."""


class Error(Exception):
    """An error of Lacuna's, with the library's text: what was expected, what was got, and what to do."""


class InputError(Error, ValueError):
    """An error that other arguments would not give. It is an :class:`Error` and a :class:`ValueError`."""
