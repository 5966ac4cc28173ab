"""PackSettings: how to pack a table, checked when they are made."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from brimful.errors import SettingError, shown
from brimful.overflow import Overflow, OverflowPolicy
from brimful.planning import require_algorithm, validate_time_limit
from brimful.validation import validate_align, validate_capacity, whole_number


@dataclass(frozen=True, slots=True)
class PackSettings:
    """How to pack a table.

    Args:
        max_length: token slots in a pack, ≥ 1.
        max_sequences: most sequences in a pack, ≥ 1; None for no limit.
        align: every sequence takes token slots up to a multiple of this, of which max_length is one, ≥ 1.
        algorithm: a name from `brimful.planning.ALGORITHMS`, or "auto".
        time_limit: seconds, above 0, for the plan of each window, after which "optimal" gives the best so far (packs
            may then differ from run to run); None for no limit.
        seed: ≥ 0; decides which of several equally long sequences goes where, and the order of the packs.
        overflow: what to do with longer sequences: "error", "drop", "truncate" or "split"; with groups, what to do
            with groups that need more than a pack: "error" or "drop".
        min_fragment: shortest remainder that "split" keeps, in tokens.
        token_column: the column that holds the sequences.
        keep_columns: columns to collect into lists, one value per sequence.
        drop_columns: columns to leave out.
        group_column: consecutive rows with the same value in this column are a group and stay in one pack; the column
            is kept. None for no groups.
        window_tokens: how many tokens are planned and packed together, ≥ 1, at most as many as weigh 64 MiB; None for
            those. Windows of few packs cost packs.

    Raises:
        LengthError, SettingError: a setting that is out of range, unknown, or at odds with another.
    """

    max_length: int
    _: KW_ONLY
    max_sequences: int | None = None
    align: int = 1
    algorithm: str = "auto"
    time_limit: float | None = None
    seed: int = 0
    overflow: Overflow = "error"
    min_fragment: int = 1
    token_column: str = "input_ids"
    keep_columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()
    group_column: str | None = None
    window_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in (self.token_column, *self.keep_columns, *self.drop_columns):
            if not isinstance(name, str):
                raise SettingError(f"the name of a column is text, not {shown(name)}")
        if not isinstance(self.group_column, str | None):
            raise SettingError(f"group_column is the name of a column, or None, not {shown(self.group_column)}")
        for name in ("max_sequences", "window_tokens"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, validate_capacity(getattr(self, name), name))
        object.__setattr__(self, "seed", whole_number(self.seed, "seed"))
        object.__setattr__(self, "time_limit", validate_time_limit(self.time_limit))
        require_algorithm(self.algorithm)
        policy = self.policy
        object.__setattr__(self, "max_length", policy.max_length)
        object.__setattr__(self, "min_fragment", policy.min_fragment)
        object.__setattr__(self, "align", validate_align(self.align, policy.max_length))
        if self.group_column is not None:
            self._check_groups()

    def _check_groups(self) -> None:
        if self.max_sequences is not None:
            raise SettingError(
                "max_sequences does not go with groups of sequences, which stay whole; leave one of them out, or plan "
                "with two capacities, tokens and sequences"
            )
        if self.overflow not in {"error", "drop"}:
            raise SettingError(f"overflow {self.overflow!r} would cut groups, which stay whole; choose error or drop")
        if self.group_column not in self.keep_columns:
            object.__setattr__(self, "keep_columns", (*self.keep_columns, self.group_column))

    @property
    def policy(self) -> OverflowPolicy:
        """The overflow policy."""
        return OverflowPolicy(self.overflow, self.max_length, self.min_fragment)
