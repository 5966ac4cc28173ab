"""Assignments: every sequence in exactly one slot of its length, by fair chance, and back from a file unchanged."""

from __future__ import annotations

import copy
import dataclasses
import io
import itertools
import pickle
import re
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import LengthError, LengthHistogram, PackAssignment, PackPlan, PlanError, SettingError
from tests.planning.strategies import LIMITS, QUICK, problems
from tests.reference.assignments import check_assignment, packs_of, unevenness

FEW = [3] * 40 + [2] * 40
"""Few sequences of each length."""

MANY = [3] * 65 + [2] * 65
"""At least 64 sequences of each length, which are shuffled length by length."""

both_paths = pytest.mark.parametrize("lengths", [FEW, MANY], ids=["few per length", "many per length"])


def each_pack(assignment: Any) -> list[list[int]]:
    """The ids of each pack, as a loop over the assignment meets them."""
    return [ids.tolist() for ids in assignment]


# Filling


@pytest.mark.parametrize("algorithm", QUICK)
@pytest.mark.parametrize("max_sequences", LIMITS)
@settings(max_examples=50)
@given(problem=problems(), seed=st.integers(0, 2**63 - 1), epoch=st.integers(0, 1000))
def test_every_sequence_fills_one_slot_of_its_length(algorithm, max_sequences, problem, seed, epoch):
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    assignment = brimful.assign(plan, lengths, seed, epoch)
    packs = packs_of(assignment.sequence_ids.tolist(), assignment.pack_offsets.tolist())
    check_assignment(packs, lengths, plan.patterns)
    assert assignment.packs == len(assignment) == plan.packs
    assert each_pack(assignment) == packs


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([(1, 4), (60_000, 131_072), (2**31 - 9, 2**31 - 1)]))
def test_many_sequences_of_each_length_fill_their_slots(seed, span):
    """Groups of at least 64 equal lengths, also of lengths beyond 16 bits, whose halves are sorted apart."""
    random = np.random.default_rng(seed)
    few = random.integers(span[0], span[1], size=4, endpoint=True)
    lengths = np.concatenate([few, random.choice(few, size=400)]).tolist()
    plan = brimful.plan(lengths, 2**31 - 1, 3)
    assignment = brimful.assign(plan, lengths, seed)
    packs = packs_of(assignment.sequence_ids.tolist(), assignment.pack_offsets.tolist())
    check_assignment(packs, lengths, plan.patterns)


@pytest.mark.parametrize("size", [300, 20_000])
def test_real_shapes_are_filled_right(size):
    random = np.random.default_rng(size)
    lengths = np.minimum(512, 5 + random.exponential(100, size).astype(int))
    plan = brimful.plan(lengths, 512)
    assignment = brimful.assign(plan, lengths)
    packs = packs_of(assignment.sequence_ids.tolist(), assignment.pack_offsets.tolist())
    check_assignment(packs, lengths.tolist(), plan.patterns)


def test_nothing_to_assign():
    assignment = brimful.assign(brimful.plan([], 8), [])
    assert (assignment.packs, each_pack(assignment), assignment.pack_offsets.tolist()) == (0, [], [0])


@both_paths
def test_an_assignment_depends_on_seed_and_epoch_alone(lengths):
    plan = brimful.plan(lengths, 5)
    first = brimful.assign(plan, lengths, seed=3, epoch=7)
    for data in (lengths, tuple(lengths), np.array(lengths, np.uint8), np.array(lengths, np.int64)):
        again = brimful.assign(plan, data, seed=3, epoch=7)
        assert again == first
        assert hash(again) == hash(first)
    numpy_seed: Any = np.int64(3)
    assert brimful.assign(plan, lengths, numpy_seed, 7) == first


@both_paths
def test_every_seed_and_epoch_gives_other_company_in_the_same_number_of_packs(lengths):
    plan = brimful.plan(lengths, 5)
    assignments = [brimful.assign(plan, lengths, seed, epoch) for seed in range(8) for epoch in range(8)]
    assert len(set(assignments)) == 64
    assert {assignment.packs for assignment in assignments} == {plan.packs}
    companies = {frozenset(map(frozenset, each_pack(assignment))) for assignment in assignments}
    assert len(companies) == 64


@pytest.mark.parametrize("by", ["seed", "epoch"])
@both_paths
def test_each_sequence_is_equally_likely_in_each_pack_with_each_companion(lengths, by):
    """Packs of one 3 and one 2: which 3 stands in which pack, which 2, and which 3 meets which 2, are pure chance."""
    plan = brimful.plan(lengths, 5)
    n = len(lengths) // 2
    assert list(plan.patterns) == [((3, 2), n)]
    tables = np.zeros((3, n, n))
    for draw in range(1200):
        assignment = brimful.assign(plan, lengths, **{by: draw})
        threes, twos = assignment.sequence_ids.reshape(n, 2).T
        packs = np.arange(n)
        for table, rows, columns in zip(tables, (threes, twos - n, threes), (packs, packs, twos - n), strict=True):
            table[rows, columns] += 1
    for table in tables:
        assert table.sum() == 1200 * n
        assert 0.7 < unevenness(table.tolist()) < 1.3


@both_paths
def test_packs_come_in_random_order(lengths):
    """Every sequence alone: at each place of the epoch each pack is equally likely."""
    lengths = lengths[::4]
    plan = brimful.plan(lengths, 5, algorithm="none")
    n = len(lengths)
    longs = np.zeros(n)
    for epoch in range(1500):
        longs += np.array(lengths)[brimful.assign(plan, lengths, epoch=epoch).sequence_ids] == 3
    # Binomial: 1500 draws with the share of threes; six standard deviations either way.
    share = lengths.count(3) / n
    assert np.abs(longs - 1500 * share).max() < 6 * np.sqrt(1500 * share * (1 - share))
    assert longs.std() > 0.5 * np.sqrt(1500 * share * (1 - share))


def test_the_order_of_many_patterns_is_pure_chance():
    lengths = list(range(1, 31))
    plan = brimful.plan(lengths, 30, algorithm="none")
    table = np.zeros((30, 30))
    for epoch in range(1500):
        table[brimful.assign(plan, lengths, epoch=epoch).sequence_ids, np.arange(30)] += 1
    assert 0.7 < unevenness(table.tolist()) < 1.3


def test_what_takes_turns_is_not_taken_for_chance():
    """The measure itself can fail: rotation is too even, a fixed order much too uneven."""
    rotated, fixed = np.zeros((30, 30)), np.zeros((30, 30))
    for draw in range(1500):
        rotated[np.roll(np.arange(30), draw), np.arange(30)] += 1
        fixed[np.arange(30), np.arange(30)] += 1
    assert unevenness(rotated.tolist()) < 0.1
    assert unevenness(fixed.tolist()) > 100


# Refusals


def test_a_plan_for_other_lengths_is_refused():
    plan = brimful.plan([3, 2, 2], 5)
    text = "the plan is for other lengths (of length 2 there are 2 in the one and 3 in the other); plan anew"
    with pytest.raises(PlanError, match=f"^{re.escape(text)}$"):
        brimful.assign(plan, [3, 2, 2, 2])
    for other in ([3, 3, 2], [3, 2], [], [4, 2, 1]):
        with pytest.raises(PlanError, match=r"^the plan is for other lengths "):
            brimful.assign(plan, other)


@pytest.mark.parametrize("bad", [-1, True, 1.0, "0", None, [1], np.True_])
@pytest.mark.parametrize("name", ["seed", "epoch"])
def test_seed_and_epoch_are_whole_numbers(name, bad):
    text = f"{name} is a whole number from 0 to 2^63 − 1, not {bad!r}"
    with pytest.raises(SettingError, match=f"^{re.escape(text)}$"):
        brimful.assign(brimful.plan([3], 5), [3], **{name: bad})


def test_no_seed_runs_into_another_seeds_epochs():
    """(2^32, 5) and (0, 1 + 5 · 2^32) are the same numbers when written as 32-bit words one after the other."""
    lengths = [3] * 200
    plan = brimful.plan(lengths, 9)
    assert brimful.assign(plan, lengths, 2**32, 5) != brimful.assign(plan, lengths, 0, 1 + 5 * 2**32)


@pytest.mark.parametrize("copy", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy])  # noqa: S301
def test_copies_in_another_process_are_equal_and_read_only(copy):
    plan = brimful.plan([3, 2, 2], 5)
    for value in (plan, plan.histogram, plan.patterns, brimful.assign(plan, [3, 2, 2])):
        again = copy(value)
        assert again == value
    assert not again.sequence_ids.flags.writeable
    assert not copy(plan).patterns.counts.flags.writeable
    assert not copy(plan).histogram.counts.flags.writeable


def test_bad_lengths_are_refused_before_anything_else():
    with pytest.raises(LengthError, match=r"^a length is at least 1, but item 1 is 0"):
        brimful.assign(brimful.plan([3], 5), [3, 0])


@pytest.mark.parametrize(
    ("ids", "offsets", "text"),
    [
        ([0, 1], [0, 1], "pack_offsets rise from 0 to the number of sequence_ids"),
        ([0, 1], [1, 2], "pack_offsets rise from 0 to the number of sequence_ids"),
        ([0, 1], [], "pack_offsets rise from 0 to the number of sequence_ids"),
        ([[0, 1]], [0, 1], "not an assignment: sequence_ids are a flat list of whole numbers, but item 0 is [0, 1]"),
        ([0, 1], [[0, 2]], "not an assignment: pack_offsets are a flat list of whole numbers, but item 0 is [0, 2]"),
        ([0, 1], [0, 0, 2], "every pack of an assignment holds at least one sequence"),
        ([0, 1, 2], [0, 2, 1, 3], "every pack of an assignment holds at least one sequence"),
        ([0, 0], [0, 2], "an assignment holds each of its 2 sequences once; some are missing or twice"),
        ([1, 2], [0, 2], "an assignment holds each of its 2 sequences once; some are missing or twice"),
        ([-1, 0], [0, 2], "an assignment holds each of its 2 sequences once; some are missing or twice"),
        ([0, 2**62], [0, 2], "an assignment holds each of its 2 sequences once; some are missing or twice"),
    ],
)
def test_arrays_that_are_no_assignment_are_refused(ids, offsets, text):
    with pytest.raises(PlanError, match=f"^{re.escape(text)}$"):
        PackAssignment(ids, offsets)


@pytest.mark.parametrize(
    ("ids", "offsets"),
    [([0.5, 1.9], [0, 2]), ([False, True], [0, 2]), ([0, 1], [0, 1.5, 2]), (["0", "1"], [0, 2])],
    ids=["fractional ids", "boolean ids", "fractional offsets", "text"],
)
def test_ids_and_offsets_that_are_no_whole_numbers_are_refused_not_rounded(ids, offsets):
    with pytest.raises(PlanError):
        PackAssignment(np.array(ids), np.array(offsets))


# Values


def test_packs_are_reached_by_index():
    assignment = PackAssignment(np.array([2, 0, 3, 1, 4]), np.array([0, 2, 3, 5]))
    assert each_pack(assignment) == [[2, 0], [3], [1, 4]]
    assert assignment[-1].tolist() == [1, 4]
    for outside in (3, -4):
        with pytest.raises(IndexError, match=f"^pack {outside} of 3$"):
            assignment[outside]
    assert repr(assignment) == "PackAssignment(5 sequences in 3 packs)"
    assert assignment != 3
    assert assignment != PackAssignment(np.array([2, 0, 3, 1, 4]), np.array([0, 2, 4, 5]))
    assert assignment != PackAssignment(np.array([2, 0, 1, 3, 4]), np.array([0, 2, 3, 5]))


def test_assignments_are_read_only():
    lengths = [3, 2, 2]
    for assignment in (
        brimful.assign(brimful.plan(lengths, 5), lengths),
        PackAssignment(np.arange(2), np.array([0, 2])),
    ):
        for array in (assignment.sequence_ids, assignment.pack_offsets, assignment[0]):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        with pytest.raises(AttributeError):
            assignment.sequence_ids = np.arange(2)  # type: ignore[misc]


def test_the_arrays_of_the_caller_stay_writeable_and_apart():
    """A value that was checked once must not change afterwards because an array elsewhere does."""
    ids, offsets = np.array([1, 0]), np.array([0, 1, 2])
    assignment = PackAssignment(ids, offsets)
    ids[0] = 0
    offsets[1] = 2
    assert each_pack(assignment) == [[1], [0]]


# Files


LENGTHS = [7, 2, 3, 7, 5, 5, 1]


@pytest.fixture
def plan():
    return brimful.plan(LENGTHS, 10)


@pytest.fixture
def saved(tmp_path, plan):
    path = tmp_path / "epoch-0.npz"
    brimful.assign(plan, LENGTHS).save(path, plan, LENGTHS)
    return path


def refused(path: Path, plan: PackPlan, lengths: list[int] = LENGTHS) -> str:
    """The text of the PlanError, which names the file and is one line."""
    with pytest.raises(PlanError, match=f"^{re.escape(str(path))}: ") as caught:
        PackAssignment.load(path, plan, lengths)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


def npy(array: npt.NDArray[Any], **changes: Any) -> bytes:
    """The bytes of an .npy file, with a header that may say something else than the array."""
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | changes
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def rewrite(path: Path, members: dict[str, bytes | None], compression: int = zipfile.ZIP_STORED) -> None:
    """The file again with these members instead; None leaves one out."""
    with zipfile.ZipFile(path) as archive:
        contents: dict[str, bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    contents |= {f"{name}.npy": content for name, content in members.items()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(name, content)


@settings(max_examples=40)
@given(problem=problems(), seed=st.integers(0, 99))
def test_an_assignment_file_is_read_back_equal(tmp_path_factory, problem, seed):
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length)
    assignment = brimful.assign(plan, lengths, seed)
    path = tmp_path_factory.mktemp("npz") / "epoch"
    assignment.save(str(path), plan, lengths)
    again = PackAssignment.load(path, plan, np.array(lengths, int))
    assert again == assignment
    with pytest.raises(ValueError, match="read-only"):
        again.pack_offsets[0] = 1


def test_the_seconds_that_planning_took_do_not_matter(saved, plan):
    again = brimful.plan(LENGTHS, 10)
    assert PackAssignment.load(saved, again, LENGTHS) == PackAssignment.load(saved, plan, LENGTHS)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path, plan):
    with pytest.raises(FileNotFoundError):
        PackAssignment.load(tmp_path / "none.npz", plan, LENGTHS)


@pytest.mark.parametrize("changes", [{"max_length": 11}, {"max_sequences": 5}, {"algorithm": "spfhp"}])
def test_a_file_of_another_plan_is_refused(saved, plan, changes):
    """Even if the patterns, and so the sizes of all arrays, are the same."""
    other = dataclasses.replace(plan, **changes)
    assert refused(saved, other) == "made for another plan or for other lengths; assign anew"


def test_a_file_of_other_lengths_is_refused(saved, plan):
    text = "made for another plan or for other lengths; assign anew"
    assert refused(saved, plan, LENGTHS[::-1]) == text
    assert refused(saved, plan, [7, 2, 3, 7, 5, 5, 2]) == text
    swapped = [2, 7, *LENGTHS[2:]]
    assert refused(saved, brimful.plan(swapped, 10), swapped) == text


def test_a_file_for_fewer_sequences_is_refused(saved):
    lengths = [1] * 3000
    assert refused(saved, brimful.plan(lengths, 10), lengths) == "sequence_ids does not have 3,000 items"


def test_lengths_that_are_none_are_not_blamed_on_the_file(saved, plan):
    with pytest.raises(LengthError, match=r"^a length is at least 1, but item 0 is 0"):
        PackAssignment.load(saved, plan, [0, *LENGTHS[1:]])


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"PK", b"\x93NUMPY\x01\x00", b"PK\x05\x06" + b"\0" * 17, b"\x80\x04]."]
)
def test_what_is_no_archive_is_refused(tmp_path, plan, content):
    path = tmp_path / "epoch.npz"
    path.write_bytes(content)
    assert refused(path, plan).startswith(("not an .npz file that can be read (", "holds other arrays"))


def test_an_archive_of_something_else_is_refused(tmp_path, plan):
    path = tmp_path / "epoch.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no assignment")
    assert refused(path, plan) == "holds other arrays than sequence_ids, pack_offsets, fingerprint"


def test_a_file_cut_anywhere_is_refused(saved, plan):
    whole = saved.read_bytes()
    for end in range(0, len(whole), 7):
        saved.write_bytes(whole[:end])
        refused(saved, plan)


@pytest.mark.parametrize("name", ["sequence_ids", "pack_offsets", "fingerprint"])
def test_every_member_is_needed(saved, plan, name):
    rewrite(saved, {name: None})
    assert refused(saved, plan) == "holds other arrays than sequence_ids, pack_offsets, fingerprint"


@pytest.mark.parametrize("name", ["sequence_ids", "pack_offsets", "fingerprint"])
def test_a_member_without_an_array_in_it_is_refused(saved, plan, name):
    rewrite(saved, {name: b"no array, but as many bytes as one would have" * 4})
    refused(saved, plan)


def ids_and_offsets(saved: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    with np.load(saved) as arrays:
        return arrays["sequence_ids"], arrays["pack_offsets"]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda ids: np.zeros_like(ids),
        lambda ids: ids + 1,
        lambda ids: ids - 1,
        lambda ids: np.full_like(ids, 2**62),
        lambda ids: ids.astype(">i8"),
        lambda ids: ids.astype("i4"),
        lambda ids: ids.astype("f8"),
        lambda ids: ids.astype("u8"),
        lambda ids: ids.reshape(-1, 1),
        lambda ids: ids.view("M8[s]"),
        lambda ids: ids[:-1],
        lambda ids: np.append(ids, 0),
    ],
)
def test_ids_that_are_no_permutation_are_refused(saved, plan, tamper):
    ids, _ = ids_and_offsets(saved)
    rewrite(saved, {"sequence_ids": npy(tamper(ids))})
    refused(saved, plan)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda offsets: offsets[::-1],
        lambda offsets: offsets + 1,
        lambda offsets: np.array([0, 0, *offsets[2:]]),
        lambda offsets: np.array([0, 2**62, *offsets[2:]]),
        lambda offsets: offsets.astype("f8"),
    ],
)
def test_offsets_that_do_not_rise_are_refused(saved, plan, tamper):
    _, offsets = ids_and_offsets(saved)
    rewrite(saved, {"pack_offsets": npy(np.ascontiguousarray(tamper(offsets)))})
    refused(saved, plan)


def test_a_permutation_that_breaks_the_plan_is_refused(saved, plan):
    """Two sequences of different lengths exchanged: each still stands once, but packs overflow."""
    ids, offsets = ids_and_offsets(saved)
    for one, other in itertools.combinations(range(len(ids)), 2):
        if LENGTHS[ids[one]] != LENGTHS[ids[other]]:
            changed = ids.copy()
            changed[[one, other]] = ids[[other, one]]
            packs = packs_of(changed.tolist(), offsets.tolist())
            filled = Counter(tuple(LENGTHS[sequence] for sequence in pack) for pack in packs)
            if filled != Counter(dict(plan.patterns)):
                rewrite(saved, {"sequence_ids": npy(changed)})
                refused(saved, plan)


def test_offsets_that_break_the_plan_are_refused(tmp_path):
    """Packs of 7 3 | 9 cut elsewhere: 7 | 3 9 has more tokens than slots."""
    lengths = [7, 3, 9]
    plan = brimful.plan(lengths, 10)
    path = tmp_path / "epoch.npz"
    PackAssignment(np.array([0, 1, 2]), np.array([0, 2, 3])).save(path, plan, lengths)
    assert PackAssignment.load(path, plan, lengths).packs == 2
    rewrite(path, {"pack_offsets": npy(np.array([0, 1, 3]))})
    refused(path, plan, lengths)


@pytest.mark.filterwarnings("error")
def test_no_object_in_the_file_is_ever_unpickled(saved, plan, tmp_path):
    class Payload:
        def __reduce__(self):
            return (tmp_path.joinpath("executed").touch, ())

    file = io.BytesIO()
    np.save(file, np.array([Payload()] * len(LENGTHS), object), allow_pickle=True)
    rewrite(saved, {"sequence_ids": file.getvalue()})
    refused(saved, plan)
    rewrite(saved, {"sequence_ids": file.getvalue()[-100:]})
    refused(saved, plan)
    assert not tmp_path.joinpath("executed").exists()


def peak_bytes(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_more_is_unpacked_than_the_plan_allows(saved, plan):
    """A member of 64 MiB of zeros, which the archive holds in 64 KiB, is not unpacked to find out that it is wrong."""
    bomb = npy(np.zeros(2**23, np.int64))
    for name in ("sequence_ids", "pack_offsets", "fingerprint"):
        content = saved.read_bytes()
        rewrite(saved, {name: bomb}, zipfile.ZIP_DEFLATED)
        assert saved.stat().st_size < 2**17
        assert peak_bytes(lambda: refused(saved, plan)) < 2**22
        saved.write_bytes(content)


def test_a_bomb_beside_a_member_that_looks_right_is_not_unpacked(saved, plan):
    """Two members of nearly one name: the one that is measured is the one that is read."""
    with zipfile.ZipFile(saved) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    for order in (1, -1):
        members = [("sequence_ids", npy(np.zeros(2**23, np.int64))), *contents.items()][::order]
        with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
        assert peak_bytes(lambda: refused(saved, plan)) < 2**22


@pytest.mark.parametrize("shape", [(10**15,), (2**62,), (2**63,), (10**30,), (-1,), (2**20, 2**20), ()])
def test_a_header_that_promises_more_than_there_is_is_refused(saved, plan, shape):
    ids, _ = ids_and_offsets(saved)
    rewrite(saved, {"sequence_ids": npy(ids, shape=shape)})
    refused(saved, plan)


def test_a_file_with_one_byte_changed_is_refused_or_the_same(saved, plan):
    """Whatever zip, its compression methods, encryption and versions make of it."""
    whole = saved.read_bytes()
    expected = PackAssignment.load(saved, plan, LENGTHS)
    for place in range(len(whole)):
        for value in (whole[place] ^ 1, whole[place] ^ 9):
            saved.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                assert PackAssignment.load(saved, plan, LENGTHS) == expected
            except PlanError as fault:
                text = str(fault)
                assert text.startswith(f"{saved}: ")
                assert "\n" not in text


def test_a_compressed_file_with_one_byte_changed_is_refused_or_the_same(saved, plan):
    expected = PackAssignment.load(saved, plan, LENGTHS)
    rewrite(saved, {}, zipfile.ZIP_DEFLATED)
    whole = saved.read_bytes()
    for place in range(len(whole)):
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 5]) + whole[place + 1 :])
        try:
            assert PackAssignment.load(saved, plan, LENGTHS) == expected
        except PlanError as fault:
            text = str(fault)
            assert text.startswith(f"{saved}: ")


def test_an_assignment_is_not_saved_for_a_plan_that_it_does_not_fill(tmp_path, plan):
    """`save` promises a file that `load` accepts."""
    path = tmp_path / "epoch.npz"
    with pytest.raises(PlanError):
        PackAssignment(np.arange(3), np.array([0, 3])).save(path, plan, LENGTHS)
    assert not path.exists()


def test_a_save_that_fails_leaves_what_was_there(saved, plan):
    before = saved.read_bytes()
    with pytest.raises(LengthError):
        PackAssignment.load(saved, plan, LENGTHS).save(saved, plan, [0, *LENGTHS[1:]])
    assert saved.read_bytes() == before


def test_the_histogram_of_the_lengths_is_the_one_that_counts():
    """A plan made from a histogram alone is filled with the lengths, in whatever order they stand."""
    plan = brimful.plan(LengthHistogram.from_lengths(LENGTHS), 10)
    for order in itertools.islice(itertools.permutations(LENGTHS), 0, 5040, 500):
        assignment = brimful.assign(plan, order)
        packs = packs_of(assignment.sequence_ids.tolist(), assignment.pack_offsets.tolist())
        check_assignment(packs, order, plan.patterns)
