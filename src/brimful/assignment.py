"""PackAssignment: which sequence fills which slot of which pack, afresh for every epoch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.errors import LengthError, PlanError
from brimful.lengths import LengthHistogram
from brimful.npz import read_arrays
from brimful.patterns import Patterns
from brimful.plans import PackPlan
from brimful.validation import (
    IntArray,
    Lengths,
    aligned,
    read_only,
    require_countable,
    validate_capacity,
    validate_lengths,
    whole_number,
    whole_numbers,
)

_FEW_PER_KIND = 64
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, eq=False)
class PackAssignment:
    """Sequences by pack, as compressed sparse rows.

        sequence_ids  2 0 | 3 | 1 4        pack_offsets  0 2 3 5        pack 0 holds sequences 2 and 0

    Args:
        sequence_ids: (sequences,) int64, each index from 0 to sequences − 1 exactly once; read-only once inside.
        pack_offsets: (packs + 1,) int64, pack i holds sequence_ids[pack_offsets[i]:pack_offsets[i + 1]]; read-only.

    Raises:
        PlanError: the offsets do not rise from 0 to the number of sequences, or a sequence stands not exactly once.
    """

    sequence_ids: IntArray
    pack_offsets: IntArray

    def __post_init__(self) -> None:
        try:
            ids, offsets = (whole_numbers(getattr(self, part.name), part.name) for part in fields(self))
        except LengthError as fault:
            raise PlanError(f"not an assignment: {fault}") from None
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(ids):
            raise PlanError("pack_offsets rise from 0 to the number of sequence_ids")
        if len(offsets) > 1 and np.diff(offsets.astype(np.int64)).min() < 1:
            raise PlanError("every pack of an assignment holds at least one sequence")
        seen = np.zeros(len(ids), bool)
        if len(ids) and ids.min() >= 0 and ids.max() < len(ids):
            seen[ids] = True
        if not seen.all():
            raise PlanError(f"an assignment holds each of its {len(ids)} sequences once; some are missing or twice")
        for part, array in zip(fields(self), (ids, offsets), strict=True):
            object.__setattr__(self, part.name, read_only(array))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.sequence_ids, self.pack_offsets)

    @property
    def packs(self) -> int:
        """How many packs there are."""
        return len(self.pack_offsets) - 1

    def __getitem__(self, pack: int) -> IntArray:
        """The ids of the sequences in a pack, longest first."""
        if not -self.packs <= pack < self.packs:
            raise IndexError(f"pack {pack} of {self.packs}")
        pack %= self.packs
        return self.sequence_ids[self.pack_offsets[pack] : self.pack_offsets[pack + 1]]

    def __len__(self) -> int:
        return self.packs

    def __iter__(self) -> Iterator[IntArray]:
        """The ids of the sequences of each pack."""
        return (self[pack] for pack in range(self.packs))

    def token_offsets(self, lengths: Lengths, align: int = 1) -> tuple[IntArray, IntArray]:
        """Where each sequence starts when the packs lie one after the other: in real tokens, and in token slots.

            pack [# # # . # . . .]     lengths 3 and 1, align 4     real 0 3 4     aligned 0 4 8

        Args:
            lengths: (sequences,) tokens; the sequence with index i has length lengths[i].
            align: every sequence takes slots up to a multiple of this, ≥ 1.

        Returns:
            real, aligned: (sequences + 1,) int64 each, in the order of sequence_ids. Those of pack i are at
            pack_offsets[i] to pack_offsets[i + 1], the end included; padding at the end of packs is not counted.

        Raises:
            LengthError: not one length ≥ 1 for each sequence, or align out of range.

        Example:
            >>> packs = PackAssignment(np.array([1, 0]), np.array([0, 2]))
            >>> packs.token_offsets([1, 3], align=4)
            (array([0, 3, 4]), array([0, 4, 8]))
        """
        array, align = validate_lengths(lengths), validate_capacity(align, "align")
        if len(array) != len(self.sequence_ids):
            raise LengthError(
                f"there are {len(self.sequence_ids):,} sequences, but {len(array):,} lengths; give one each"
            )
        require_countable(array, align)
        ordered = array[self.sequence_ids].astype(np.int64)
        real, padded = (np.concatenate([[0], np.cumsum(each)]) for each in (ordered, aligned(ordered, align)))
        return real, padded

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackAssignment):
            return NotImplemented
        return np.array_equal(self.pack_offsets, other.pack_offsets) and np.array_equal(
            self.sequence_ids, other.sequence_ids
        )

    def __hash__(self) -> int:
        return hash((self.sequence_ids.tobytes(), self.pack_offsets.tobytes()))

    def __repr__(self) -> str:
        return f"PackAssignment({len(self.sequence_ids):,} sequences in {self.packs:,} packs)"

    def save(self, path: str | Path, plan: PackPlan, lengths: Lengths) -> None:
        """Write an .npz file that `load` accepts for the same plan and lengths only.

        Raises:
            PlanError: this assignment does not fill this plan with sequences of these lengths.
            OSError: the file cannot be written.
        """
        array = validate_lengths(lengths)
        self._require_plan(plan, array)
        fingerprint = np.frombuffer(_fingerprint(plan, array), np.uint8)
        with Path(path).open("wb") as file:
            np.savez(file, sequence_ids=self.sequence_ids, pack_offsets=self.pack_offsets, fingerprint=fingerprint)

    @classmethod
    def load(cls, path: str | Path, plan: PackPlan, lengths: Lengths) -> PackAssignment:
        """Read an assignment back and check that it fills this plan with sequences of these lengths.

        The file is untrusted input: nothing in it is executed, and no more is read than the plan allows.

        Raises:
            PlanError: the file is no assignment, or belongs to another plan or other lengths; names the file.
            LengthError: the lengths given are not lengths.
            OSError: the file cannot be read.
        """
        path, array = Path(path), validate_lengths(lengths)
        sizes = {"sequence_ids": ("<i8", plan.histogram.n_sequences), "pack_offsets": ("<i8", plan.packs + 1)}
        arrays = read_arrays(path, {**sizes, "fingerprint": ("u1", _DIGEST_BYTES)})
        if arrays["fingerprint"].tobytes() != _fingerprint(plan, array):
            raise PlanError(f"{path}: made for another plan or for other lengths; assign anew")
        try:
            assignment = cls(arrays["sequence_ids"], arrays["pack_offsets"])
            assignment._require_plan(plan, array)
        except PlanError as fault:
            raise PlanError(f"{path}: {fault}") from None
        return assignment

    def _require_plan(self, plan: PackPlan, lengths: npt.NDArray[np.integer[Any]]) -> None:
        """Nothing, if the packs look as the plan says, longest first; otherwise a PlanError."""
        fits = len(lengths) == len(self.sequence_ids)
        if fits:
            slots = aligned(lengths[self.sequence_ids], plan.align).astype(np.int64)
            rises = np.flatnonzero(np.diff(slots) > 0) + 1
            fits = bool(np.isin(rises, self.pack_offsets).all())
            fits = fits and Patterns.from_packs(slots, self.pack_offsets) == plan.patterns.merged_equal()
        if not fits:
            raise PlanError("the packs of this assignment are not those of the plan; assign anew")


def assign(plan: PackPlan, lengths: Lengths, seed: int = 0, epoch: int = 0) -> PackAssignment:
    """Fill the packs of a plan with sequences, at random wherever the plan leaves a choice.

    Sequences of equal length (with align, of equal aligned length) are exchanged and packs come in an order that
    depends on (seed, epoch) alone, so every epoch meets new company in exactly the same number of packs; within a pack
    the longest comes first.

    Args:
        plan: covers exactly these lengths.
        lengths: (sequences,) tokens; the sequence with index i has length lengths[i].
        seed: ≥ 0; the same seed, epoch, plan and lengths give the same assignment (with the same NumPy).
        epoch: ≥ 0.

    Returns:
        Every sequence exactly once, in plan.packs packs.

    Raises:
        PlanError: the plan is for other lengths.
        LengthError: a length is no whole number ≥ 1.
        SettingError: the seed or the epoch is no whole number from 0 to 2^63 − 1.

    Example:
        >>> import brimful
        >>> lengths = [7, 2, 3, 7]
        >>> packs = brimful.assign(brimful.plan(lengths, max_length=10), lengths, seed=0, epoch=0)
        >>> packs.packs, sorted(packs.sequence_ids.tolist())
        (2, [0, 1, 2, 3])

    Cost: one random permutation and two radix sorts; about 0.1 s per million sequences.
    """
    array = validate_lengths(lengths)
    histogram = LengthHistogram.from_lengths(array)
    if histogram != plan.histogram:
        raise PlanError(f"the plan is for other lengths ({plan.histogram.difference(histogram)}); plan anew")
    return fill(plan.patterns, aligned(array, plan.align), seed, epoch)


def fill(patterns: Patterns, kinds: npt.NDArray[np.integer[Any]], seed: int, epoch: int) -> PackAssignment:
    """Fill the packs of these patterns with sequences of as many kinds as the patterns ask for.

    Args:
        patterns: what they call lengths are kinds, ≥ 1: sequences of one kind may take each other's place.
        kinds: (sequences,) the kind of each sequence; as many of each as the patterns hold.
        seed, epoch: as for `assign`.
    """
    for_sequences, for_packs = _random(seed, epoch)
    # Sequences by kind, slots by kind: the k-th of one goes into the k-th of the other. NumPy sorts and shuffles
    # without holding the interpreter, so each has a thread.
    with ThreadPoolExecutor(max_workers=1) as thread:
        by_kind = thread.submit(_shuffled_by_kind, kinds, patterns.histogram().counts, for_sequences)
        pack_offsets, slot_kinds = _slots(patterns, for_packs)
        slots_by_kind = _stable_argsort(slot_kinds)
        sequence_ids = np.empty(len(kinds), np.int64)
        sequence_ids[slots_by_kind] = by_kind.result()
    return PackAssignment(sequence_ids, pack_offsets)


def _random(seed: int, epoch: int) -> list[np.random.Generator]:
    """Two independent streams of chance that no other seed or epoch gives."""
    words = [
        word
        for number, name in ((seed, "seed"), (epoch, "epoch"))
        for word in divmod(whole_number(number, name), 2**32)
    ]
    return np.random.default_rng(words).spawn(2)


def _slots(patterns: Patterns, random: np.random.Generator) -> tuple[IntArray, npt.NDArray[np.integer[Any]]]:
    """Packs in random order: (packs + 1,) where the slots of each start; (sequences,) what kind each slot takes."""
    pattern_of_pack = np.repeat(np.arange(len(patterns)), patterns.counts)
    random.shuffle(pattern_of_pack)
    narrow = np.min_scalar_type(int(patterns.lengths.max(initial=0)))
    of_patterns = np.repeat(patterns.lengths.astype(narrow), patterns.copies)
    sizes = patterns.sequences()
    starts = np.cumsum(sizes) - sizes
    pack_sizes = sizes[pattern_of_pack]
    pack_offsets = np.concatenate([[0], np.cumsum(pack_sizes)])
    slots = np.repeat(starts[pattern_of_pack] - pack_offsets[:-1], pack_sizes)
    slots += np.arange(len(slots))
    return pack_offsets, of_patterns[slots]


def _shuffled_by_kind(kinds: npt.NDArray[np.integer[Any]], counts: IntArray, random: np.random.Generator) -> IntArray:
    """(sequences,) the ids in order of kind, those of one kind in random order."""
    if len(counts) * _FEW_PER_KIND > len(kinds):
        ids = np.arange(len(kinds))
        random.shuffle(ids)
        return ids[_stable_argsort(kinds[ids])]
    # Many sequences of each kind: shuffling kind by kind stays within the processor's cache.
    ids = _stable_argsort(kinds)
    start = 0
    for end in np.cumsum(counts).tolist():
        random.shuffle(ids[start:end])
        start = end
    return ids


def _stable_argsort(kinds: npt.NDArray[np.integer[Any]]) -> IntArray:
    """The order that sorts kinds, equal ones in place: NumPy's stable sort of 16-bit numbers is a radix sort."""
    order = np.argsort(kinds.astype(np.uint16), kind="stable")
    high = kinds >> 16
    return order[np.argsort(high[order].astype(np.uint16), kind="stable")] if high.any() else order


def _fingerprint(plan: PackPlan, lengths: npt.NDArray[np.integer[Any]]) -> bytes:
    """Bytes that differ for another plan, other lengths, or the same lengths in another order."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    value = plan.to_json()
    del value["seconds"]
    digest.update(json.dumps(value, sort_keys=True).encode())
    digest.update(lengths.astype("<i8").tobytes())
    return digest.digest()
