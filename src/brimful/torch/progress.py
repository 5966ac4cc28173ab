"""Where a sampler stands in its epoch, so that training goes on as if it had never stopped."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from brimful.errors import SettingError, shown
from brimful.validation import validate_capacity, whole_number

T = TypeVar("T")

_NUMBERS = ("epoch", "seed", "taken", "size", "size_of_rank_0", "world_size", "per_step", "of_step")


@dataclass(slots=True)
class Progress:
    """The epoch, and how many items of it this rank has taken.

    An order is arithmetic on (seed, epoch, index), so that this is all there is to remember.

    Args:
        sampler: the name of its class.
        world_size: ranks.
        per_step: items (indices or batches) that a rank takes in a step of all ranks.
        of_step: what all ranks together go forward by in a step, in units that the number of ranks does not change.
        epoch: set by `set_epoch`.

    Example:
        >>> progress = Progress("Sampler", world_size=1, per_step=1, of_step=1)
        >>> a_pass = progress.run(lambda first: ["a", "b", "c"][first:])
        >>> next(a_pass), progress.taken
        ('a', 1)
        >>> state = progress.state(seed=0, size=3, size_of_rank_0=3, settings={})
        >>> later = Progress("Sampler", world_size=1, per_step=1, of_step=1)
        >>> later.load(later.read(state), size=3, settings={})
        >>> list(later.run(lambda first: ["a", "b", "c"][first:]))
        ['b', 'c']
    """

    sampler: str
    world_size: int
    per_step: int
    of_step: int
    epoch: int = 0
    _first: int = 0  # where the next pass starts
    _end: int = 0
    _left: Iterator[Any] | None = field(default=None, repr=False)

    @property
    def taken(self) -> int:
        """Items taken in this epoch: in the pass under way, or before it was interrupted."""
        return self._first if self._left is None else self._end - operator.length_hint(self._left)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; if it is the one under way, stay where it is."""
        epoch = whole_number(epoch, "epoch")
        if epoch != self.epoch:
            self.epoch, self._first, self._left = epoch, 0, None

    def run(self, rest: Callable[[int], list[T]]) -> Iterator[T]:
        """A pass over the items that `rest` gives for the place to start from: 0, but once after `load`."""
        first, self._first = self._first, 0
        items = rest(first)
        self._left, self._end = iter(items), first + len(items)
        return self._left

    def state(
        self, seed: int, size: int, size_of_rank_0: int, settings: Mapping[str, object], taken: int | None = None
    ) -> dict[str, Any]:
        """What `load` needs: plain numbers and texts.

        Args:
            seed: ≥ 0.
            size: items of this rank in the epoch.
            size_of_rank_0: items of the first rank, which no other has more than.
            settings: what must be as it is, by its name in messages.
            taken: items that were used, if not all that were taken.

        Raises:
            SettingError: taken is no whole number from 0 to size.
        """
        return {
            "sampler": self.sampler,
            "epoch": self.epoch,
            "seed": seed,
            "taken": self.taken if taken is None else _within(taken, size),
            "size": size,
            "size_of_rank_0": size_of_rank_0,
            "world_size": self.world_size,
            "per_step": self.per_step,
            "of_step": self.of_step,
            "settings": dict(settings),
        }

    def read(self, state: Any) -> dict[str, Any]:
        """The state, if it is one of such a sampler.

        Raises:
            SettingError: it is something else.
        """
        if not isinstance(state, Mapping) or state.get("sampler") != self.sampler:
            raise SettingError(f"a state of {self.sampler} is what its state_dict() gave, not {shown(state)}")
        numbers = {name: whole_number(state.get(name), f"the {name} of the state") for name in _NUMBERS}
        if not isinstance(state.get("settings"), Mapping):
            raise SettingError("the state has no settings; it is not what state_dict() gave")
        for name in ("world_size", "per_step", "of_step"):
            validate_capacity(numbers[name], f"the {name} of the state")
        _within(numbers["taken"], numbers["size"])
        return {**state, **numbers}

    def load(self, state: Mapping[str, Any], size: int, settings: Mapping[str, object]) -> None:
        """Go to where the state was saved.

        A state from the end of an epoch leaves a sampler alone that was meanwhile set to a later one: some loaders load
        their state only when that one begins.

        Args:
            state: from `read`.
            size: items of this rank in that epoch.
            settings: what must be as it was, by its name in messages.

        Raises:
            SettingError: the settings are not those of the state, or there are other ranks now, for which there is no
                such place.
        """
        for name in {**state["settings"], **settings}:
            was, now = state["settings"].get(name), settings.get(name)
            if was != now:
                raise SettingError(
                    f"{name} was {shown(was)} when the state was saved and is {shown(now)} here, so that other batches "
                    "would follow; resume with what it was, or start anew"
                )
        taken = self._place(state, size)
        if taken == size and self.epoch > state["epoch"] and not self.taken:
            return
        self.epoch, self._first, self._left = state["epoch"], taken, None

    def _place(self, state: Mapping[str, Any], size: int) -> int:
        """Items that this rank has taken at the global step where the state was saved, perhaps with other ranks."""
        world_size, taken, per_step = (int(state[name]) for name in ("world_size", "taken", "per_step"))
        if world_size == self.world_size:
            return min(taken, size)
        if taken == state["size"] < state["size_of_rank_0"]:
            raise SettingError(
                f"the state is of a rank that had taken all its {taken} items, but rank 0 has "
                f"{state['size_of_rank_0']}, so that it does not tell whether the last step was made; "
                "load the state of rank 0"
            )
        if taken == state["size"]:
            return size
        steps, in_step = divmod(taken, per_step)
        if in_step:
            raise SettingError(
                f"the state was saved in the middle of a step, after {in_step} of {per_step} items; only with "
                f"{world_size} ranks, as then, can it be resumed from there"
            )
        batches = steps * int(state["of_step"])
        steps, in_step = divmod(batches, self.of_step)
        if in_step:
            raise SettingError(
                f"the state was saved after {batches} batches of all ranks, in the middle of a step of {self.of_step}; "
                f"resume with a number of ranks that divides it, such as the {world_size} of then"
            )
        return min(steps * self.per_step, size)


def digest(*arrays: npt.NDArray[np.integer[Any]]) -> str:
    """A short text that differs for other numbers: what a state keeps of lengths and assignments."""
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        found.update(array.astype("<i8").tobytes())
    return found.hexdigest()


def _within(taken: Any, size: int) -> int:
    number = whole_number(taken, "the number of items taken")
    if number > size:
        raise SettingError(f"of {size} items, {number} cannot have been taken")
    return number
