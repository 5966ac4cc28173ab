"""PackAssignment: which sequence fills which slot of which pack, afresh for every epoch."""

from __future__ import annotations

import hashlib
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.errors import LengthError, PlanError
from brimful.lengths import IntArray, LengthHistogram, Lengths, validate_lengths
from brimful.plans import PackPlan

_FEW_PER_LENGTH = 64
_NPZ_OVERHEAD = 2**12  # bytes of header that NumPy may put before an array


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
        ids = np.asarray(self.sequence_ids, np.int64).view()
        offsets = np.asarray(self.pack_offsets, np.int64).view()
        if ids.ndim != 1 or offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or offsets[-1] != len(ids):
            raise PlanError("pack_offsets rise from 0 to the number of sequence_ids")
        if len(offsets) > 1 and np.diff(offsets).min() < 1:
            raise PlanError("every pack of an assignment holds at least one sequence")
        seen = np.zeros(len(ids), bool)
        if len(ids) and ids.min() >= 0 and ids.max() < len(ids):
            seen[ids] = True
        if not seen.all():
            raise PlanError(f"an assignment holds each of its {len(ids)} sequences once; some are missing or twice")
        for name, array in (("sequence_ids", ids), ("pack_offsets", offsets)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

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
        """Write an .npz file that `load` accepts for the same plan and lengths only."""
        with Path(path).open("wb") as file:
            np.savez(
                file,
                sequence_ids=self.sequence_ids,
                pack_offsets=self.pack_offsets,
                fingerprint=np.frombuffer(_fingerprint(plan, lengths), np.uint8),
            )

    @classmethod
    def load(cls, path: str | Path, plan: PackPlan, lengths: Lengths) -> PackAssignment:
        """Read an assignment back and check that it belongs to this plan and these lengths.

        The file is untrusted input: nothing in it is executed, and no more is read than the plan allows.

        Raises:
            PlanError: the file is no assignment, or belongs to another plan or other lengths; names the file.
            OSError: the file cannot be read.
        """
        path = Path(path)
        sizes = {"sequence_ids": plan.histogram.n_sequences, "pack_offsets": plan.packs + 1, "fingerprint": 4}
        try:
            with zipfile.ZipFile(path) as archive:
                found = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
            for name, size in sizes.items():
                if not 0 <= found.get(name, -1) - 8 * size <= _NPZ_OVERHEAD:
                    raise PlanError(f"{path}: holds no {name} of the size that this plan has; assign anew")
            with np.load(path, allow_pickle=False) as arrays:
                ids, offsets, fingerprint = (arrays[name] for name in sizes)
            if fingerprint.tobytes() != _fingerprint(plan, lengths):
                raise PlanError(f"{path}: made for another plan or for other lengths; assign anew")
            if ids.dtype != np.int64 or offsets.dtype != np.int64:
                raise PlanError(f"{path}: its arrays are not int64; assign anew")
            return cls(ids, offsets)
        except (ValueError, zipfile.BadZipFile, EOFError, KeyError) as fault:
            if isinstance(fault, PlanError):
                raise
            raise PlanError(f"{path}: not an assignment file ({fault})") from None


def assign(plan: PackPlan, lengths: Lengths, seed: int = 0, epoch: int = 0) -> PackAssignment:
    """Fill the packs of a plan with sequences, at random wherever the plan leaves a choice.

    Sequences of equal length are exchanged and packs come in an order that depends on (seed, epoch) alone, so every
    epoch meets new company in exactly the same number of packs; within a pack the longest comes first.

    Args:
        plan: covers exactly these lengths.
        lengths: (sequences,) tokens; the sequence with index i has length lengths[i].
        seed: ≥ 0; the same seed, epoch, plan and lengths give the same assignment (with the same NumPy).
        epoch: ≥ 0.

    Returns:
        Every sequence exactly once, in plan.packs packs.

    Raises:
        PlanError: the plan is for other lengths.
        LengthError: a length, the seed or the epoch is no whole number in range.

    Example:
        >>> import brimful
        >>> lengths = [7, 2, 3, 7]
        >>> packs = brimful.assign(brimful.plan(lengths, max_length=10), lengths, seed=0, epoch=0)
        >>> packs.packs, sorted(packs.sequence_ids.tolist())
        (2, [0, 1, 2, 3])

    Cost: one random permutation and two radix sorts; less than 0.1 s per million sequences.
    """
    array = validate_lengths(lengths)
    histogram = LengthHistogram.from_lengths(array)
    if histogram != plan.histogram:
        raise PlanError(f"the plan is for {plan.histogram}, but the lengths are {histogram}; plan anew")
    for_sequences, for_packs = np.random.default_rng(
        [validate_seed(seed, "seed"), validate_seed(epoch, "epoch")]
    ).spawn(2)
    # Sequences by length, slots by length: the k-th of one goes into the k-th of the other. NumPy sorts and shuffles
    # without holding the interpreter, so each has a thread.
    with ThreadPoolExecutor(max_workers=1) as thread:
        by_length = thread.submit(_shuffled_by_length, array, histogram, for_sequences)
        pack_offsets, slot_lengths = _slots(plan, for_packs)
        slots_by_length = _stable_argsort(slot_lengths)
        sequence_ids = np.empty(len(array), np.int64)
        sequence_ids[slots_by_length] = by_length.result()
    return PackAssignment(sequence_ids, pack_offsets)


def validate_seed(number: Any, name: str) -> int:
    """A whole number ≥ 0 as a Python int, or a LengthError."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise LengthError(f"the {name} is a whole number from 0 up, not {number!r}")
    return int(number)


def _slots(plan: PackPlan, random: np.random.Generator) -> tuple[IntArray, npt.NDArray[np.integer[Any]]]:
    """Packs in random order: (packs + 1,) where the slots of each start, and (sequences,) what length each slot takes."""
    patterns = plan.patterns
    pattern_of_pack = np.repeat(np.arange(len(patterns)), patterns.counts)
    random.shuffle(pattern_of_pack)
    of_patterns = np.repeat(patterns.lengths.astype(np.min_scalar_type(plan.max_length)), patterns.copies)
    sizes = patterns.sequences()
    starts = np.cumsum(sizes) - sizes
    pack_sizes = sizes[pattern_of_pack]
    pack_offsets = np.concatenate([[0], np.cumsum(pack_sizes)])
    slots = np.repeat(starts[pattern_of_pack] - pack_offsets[:-1], pack_sizes)
    slots += np.arange(len(slots))
    return pack_offsets, of_patterns[slots]


def _shuffled_by_length(
    lengths: npt.NDArray[np.integer[Any]], histogram: LengthHistogram, random: np.random.Generator
) -> IntArray:
    """(sequences,) the ids in order of length, equal lengths in random order."""
    if len(histogram.counts) * _FEW_PER_LENGTH > len(lengths):
        ids = np.arange(len(lengths))
        random.shuffle(ids)
        return ids[_stable_argsort(lengths[ids])]
    # Many sequences of each length: shuffling group by group stays within the processor's cache.
    ids = _stable_argsort(lengths)
    start = 0
    for end in np.cumsum(histogram.counts).tolist():
        random.shuffle(ids[start:end])
        start = end
    return ids


def _stable_argsort(lengths: npt.NDArray[np.integer[Any]]) -> IntArray:
    """The order that sorts lengths, equal ones in place: NumPy's stable sort of 16-bit numbers is a radix sort."""
    order = np.argsort(lengths.astype(np.uint16), kind="stable")
    high = lengths >> 16
    return order[np.argsort(high[order].astype(np.uint16), kind="stable")] if high.any() else order


def _fingerprint(plan: PackPlan, lengths: Lengths) -> bytes:
    """32 bytes that differ for another plan, other lengths, or the same lengths in another order."""
    digest = hashlib.blake2b(digest_size=32)
    value = plan.to_json()
    del value["seconds"]
    digest.update(json.dumps(value, sort_keys=True).encode())
    digest.update(validate_lengths(lengths).astype("<i8").tobytes())
    return digest.digest()
