"""Every exception that brimful raises: one line each, stating the rule, the offending item, its value and the remedy.

All of them are `BrimfulError`, so that a program can catch what a user can mend and let real faults through;
the command line prints them as one line and exits with 2.
"""


class BrimfulError(ValueError):
    """Something that the caller can mend: the message says how."""


class LengthError(BrimfulError):
    """Lengths, counts or capacities that are not positive whole numbers within range."""


class CapacityError(BrimfulError):
    """A sequence is longer than a pack (an overflow), and no policy says what to do with it."""


class PlanError(BrimfulError):
    """A plan or an assignment that does not hold what it promises, or does not belong to these lengths."""


class DataError(BrimfulError):
    """A file, a table or a column that cannot be packed as it is."""


class OutputError(BrimfulError):
    """The output cannot be written where it was asked for."""
