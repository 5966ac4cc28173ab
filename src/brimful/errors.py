"""Every exception that brimful raises: one line each, stating the rule, the offending item, its value and the remedy.

All of them are `BrimfulError`, so that a program can catch what a user can mend and let real faults through;
the command line prints them as one line and exits with 2.
"""

from __future__ import annotations


class BrimfulError(ValueError):
    """Something that the caller can mend: the message says how."""


class LengthError(BrimfulError):
    """Lengths, counts or capacities that are not positive whole numbers within range."""


class SettingError(BrimfulError):
    """A choice that there is not: an unknown algorithm, overflow policy or format, a seed below 0."""


class CapacityError(BrimfulError):
    """A sequence is longer than a pack (an overflow), and no policy says what to do with it."""


class PlanError(BrimfulError):
    """A plan or an assignment that does not hold what it promises, or does not belong to these lengths."""


class DataError(BrimfulError):
    """A file, a table or a column that cannot be packed as it is."""


class OutputError(BrimfulError):
    """The output cannot be written where it was asked for."""


def shown(value: object, most: int = 80) -> str:
    """A value as it stands in a message: its repr on one line, cut off where it would fill the screen.

    Example:
        >>> shown("x" * 1000, most=8), shown(10**5000)
        ("'xxxxxxx…", 'an int too long to show')
    """
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write out a number of thousands of digits
        return f"an {type(value).__name__} too long to show"
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most] + "…"
