"""A batch says of every row what walking along it says, and keeps what it was given."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import CapacityError, DataError, LengthError, PackAssignment, SettingError
from brimful.torch import Causal, PackedCollator, SegmentMask, SlidingWindow
from brimful.torch.collate import Attention
from tests.reference import segments

PAD, MAX_LENGTH = 9, 16
MASKED: tuple[Attention, ...] = ("sdpa", "eager", "flex")


@st.composite
def packed_rows(draw: st.DrawFn, align: int = 1, most: int = 4):
    """Packed rows of at most MAX_LENGTH slots, with labels, token types and a class per sequence."""
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        lengths: list[int] = []
        for length in draw(st.lists(st.integers(1, MAX_LENGTH), min_size=1, max_size=most)):
            if sum(-(-each // align) * align for each in [*lengths, length]) <= MAX_LENGTH:
                lengths.append(length)
        tokens = draw(st.lists(st.integers(0, 12), min_size=sum(lengths), max_size=sum(lengths)))
        rows.append(
            {
                "input_ids": tokens,
                "labels": [token if token % 3 else -100 for token in tokens],
                "token_type_ids": [token % 2 for token in tokens],
                "label": [length % 5 for length in lengths],
                "seq_lengths": lengths,
            }
        )
    return rows


def spread(row, column, row_length, align, fill):
    """The values of a column slot by slot."""
    values = iter(row[column])
    slots = [next(values) if token else fill for _, _, token in segments.slots_of(row["seq_lengths"], align)]
    return slots + [fill] * (row_length - len(slots))


def expected_length(rows, pad_to, align):
    longest = max(sum(1 for _ in segments.slots_of(row["seq_lengths"], align)) for row in rows)
    return {"max_length": MAX_LENGTH, "longest": longest, 8: -(-longest // 8) * 8}[pad_to]


@given(st.data(), st.sampled_from(("max_length", "longest", 8)), st.sampled_from((1, 2, 4)), st.booleans())
def test_every_slot_of_a_batch_is_what_walking_along_its_row_gives(data, pad_to, align, causal):
    rows = data.draw(packed_rows(align))
    collator = PackedCollator(
        MAX_LENGTH, PAD, causal=causal, pad_to=pad_to, align=align, position_offset=2, sequence_columns=("label",)
    )
    batch = collator(rows)
    row_length = expected_length(rows, pad_to, align)
    most = max(len(row["seq_lengths"]) for row in rows)
    for number, row in enumerate(rows):
        ids, positions = segments.ids_and_positions(row["seq_lengths"], row_length, align)
        labels = spread(row, "labels", row_length, align, -100)
        if causal:
            labels = [-100 if position == 0 else label for label, position in zip(labels, positions, strict=True)]
        missing = most - len(row["seq_lengths"])
        expected = {
            "input_ids": spread(row, "input_ids", row_length, align, PAD),
            "token_type_ids": spread(row, "token_type_ids", row_length, align, 0),
            "labels": labels,
            "segment_ids": ids,
            "position_ids": [position + 2 for position in positions],
            "seq_lengths": row["seq_lengths"] + [0] * missing,
            "label": row["label"] + [-100] * missing,
        }
        assert {name: batch[name][number].tolist() for name in expected} == expected
        assert {*expected, "attention_mask"} == {*batch}
    assert {values.dtype for name, values in batch.items() if name != "attention_mask"} == {torch.int64}


@given(st.data(), st.sampled_from(("max_length", "longest", 8)), st.sampled_from((1, 2, 4)))
def test_a_ragged_batch_is_one_row_with_one_tail(data, pad_to, align):
    rows = data.draw(packed_rows(align))
    batch = PackedCollator(MAX_LENGTH, PAD, attention="varlen", causal=True, pad_to=pad_to, align=align)(
        [{name: row[name] for name in ("input_ids", "seq_lengths")} for row in rows]
    )
    joined = {
        "input_ids": [token for row in rows for token in row["input_ids"]],
        "seq_lengths": [length for row in rows for length in row["seq_lengths"]],
    }
    slots = sum(1 for _ in segments.slots_of(joined["seq_lengths"], align))
    total = {"max_length": MAX_LENGTH * len(rows), "longest": slots, 8: -(-slots // 8) * 8}[pad_to]
    ids, positions = segments.ids_and_positions(joined["seq_lengths"], total, align)
    _, bounds = segments.boundaries(joined["seq_lengths"], total, align)
    assert batch["input_ids"].tolist() == [spread(joined, "input_ids", total, align, PAD)]
    assert batch["segment_ids"].tolist() == [ids]
    # A tail longer than a row would leave a table of learned positions.
    assert batch["position_ids"].tolist() == [[position % MAX_LENGTH for position in positions]]
    assert batch["seq_lengths"].tolist() == [joined["seq_lengths"]]
    for name in ("cu_seq_lens_q", "cu_seq_lens_k"):
        assert batch[name].tolist() == bounds
        assert batch[name].dtype == torch.int32
    longest = max(end - start for start, end in itertools.pairwise(bounds))
    assert batch["max_length_q"] == batch["max_length_k"] == longest
    assert type(batch["max_length_q"]) is type(batch["max_length_k"]) is int
    owners = [number for number, (start, end) in enumerate(itertools.pairwise(bounds)) for _ in range(start, end)]
    assert batch["seq_idx"].tolist() == [owners]
    assert batch["seq_idx"].dtype == torch.int32
    assert "attention_mask" not in batch


@given(packed_rows())
def test_a_ragged_batch_is_that_of_transformers(rows):
    """Key by key what DataCollatorWithFlattening makes of the same sequences, where there is no padding."""
    sequences = []
    for row in rows:
        tokens = iter(row["input_ids"])
        sequences += [{"input_ids": list(itertools.islice(tokens, length))} for length in row["seq_lengths"]]
    theirs = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)(sequences)
    plain = [{name: row[name] for name in ("input_ids", "seq_lengths")} for row in rows]
    mine = PackedCollator(MAX_LENGTH, PAD, attention="varlen", causal=True, pad_to="longest")(plain)
    assert {*mine} - {*theirs} == {"segment_ids", "seq_lengths"}
    for name, expected in theirs.items():
        if isinstance(expected, int):
            assert mine[name] == expected
        else:
            assert torch.equal(mine[name], expected)
            assert mine[name].dtype == expected.dtype


@pytest.mark.parametrize("attention", MASKED)
@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 3), (False, 3)])
def test_the_mask_is_of_the_kind_that_the_backend_takes(attention, causal, window):
    rows = [{"input_ids": [1] * 14, "seq_lengths": [9, 5]}, {"input_ids": [1] * 16, "seq_lengths": [16]}]
    settings = {"attention": attention, "causal": causal, "sliding_window": window, "dtype": torch.bfloat16}
    batch = PackedCollator(MAX_LENGTH, PAD, **settings)(rows)
    whole = SegmentMask(batch["segment_ids"])
    whole = whole & Causal() if causal else whole
    near = whole & SlidingWindow(window, causal) if window else whole

    def is_that(found, mask):
        if attention == "sdpa":
            return found.dtype == torch.bool and torch.equal(found, mask.for_sdpa())
        if attention == "eager":
            return found.dtype == torch.bfloat16 and torch.equal(found, mask.for_eager(torch.bfloat16))
        return torch.equal(found.mask_mod.materialize(), mask.materialize())

    assert is_that(batch["attention_mask"], near)
    names = ("full_attention", "sliding_attention")
    both = PackedCollator(MAX_LENGTH, PAD, mask_mapping=names, **settings)(rows)["attention_mask"]
    assert {*both} == {*names}
    assert is_that(both["full_attention"], whole)
    assert is_that(both["sliding_attention"], near)


def test_positions_alone_come_without_a_mask():
    batch = PackedCollator(8, PAD, attention="positions", causal=True)(
        [{"input_ids": [4, 5, 6], "seq_lengths": [1, 2]}]
    )
    assert {*batch} == {"input_ids", "position_ids", "segment_ids", "labels", "seq_lengths"}
    assert batch["position_ids"].tolist() == [[0, 0, 1, 0, 1, 2, 3, 4]]


def test_labels_are_never_made_by_comparing_tokens():
    """Tokens that are those of padding, or of an end, keep their labels; the mask of what to learn decides alone."""
    row = {"input_ids": [PAD, PAD, 2, 5, PAD, 2], "seq_lengths": [4, 2]}
    causal = PackedCollator(8, PAD, causal=True)
    assert causal([row])["labels"].tolist() == [[-100, PAD, 2, 5, -100, 2, -100, -100]]
    given = {**row, "labels": [1, -100, 3, PAD, 4, PAD]}
    assert causal([given])["labels"].tolist() == [[-100, -100, 3, PAD, -100, PAD, -100, -100]]
    both_ways = PackedCollator(8, PAD)
    assert "labels" not in both_ways([row])
    assert both_ways([given])["labels"].tolist() == [[1, -100, 3, PAD, 4, PAD, -100, -100]]


@pytest.mark.parametrize("name", ["loss_mask", "completion_mask", "assistant_masks"])
def test_a_loss_mask_is_kept_and_takes_labels_away(name):
    row = {"input_ids": [1, 2, 3, 4, 5], "seq_lengths": [3, 2], name: [1, 0, 1, 0, 1]}
    batch = PackedCollator(6, PAD, causal=True)([row])
    assert batch["labels"].tolist() == [[-100, -100, 3, -100, 5, -100]]
    assert batch[name].tolist() == [[1, 0, 1, 0, 1, 0]]
    batch = PackedCollator(6, PAD)([{**row, "labels": [7, 7, 7, 7, 7], name: [True, False, True, True, True]}])
    assert batch["labels"].tolist() == [[7, -100, 7, 7, 7, -100]]


def test_labels_of_sequences_stand_beside_those_of_tokens():
    rows = [
        {"input_ids": [1, 2, 3], "seq_lengths": [2, 1], "labels": [1, 0], "score": [0.5, 2.0]},
        {"input_ids": [4], "seq_lengths": [1], "labels": [1], "score": [1.0]},
    ]
    batch = PackedCollator(4, PAD, causal=True, sequence_columns=("labels", "score"))(rows)
    assert batch["labels"].tolist() == [[1, 0], [1, -100]]
    assert batch["score"].tolist() == [[0.5, 2.0], [1.0, -100.0]]
    assert batch["score"].dtype == torch.float32


def test_rows_may_be_arrays_and_tensors_and_carry_a_mask_of_ones():
    lists = {"input_ids": [1, 2, 3], "seq_lengths": [2, 1], "attention_mask": [1, 1, 1]}
    arrays = {name: np.array(values, np.int32) for name, values in lists.items()}
    tensors = {name: torch.tensor(values) for name, values in lists.items()}
    collator = PackedCollator(4, PAD, causal=True)
    expected = collator([lists])
    for row in (arrays, tensors):
        for name, values in collator([row]).items():
            assert torch.equal(values, expected[name])


@settings(max_examples=30)
@given(st.data(), st.sampled_from(("sdpa", "varlen")))
def test_shapes_are_fixed_on_request(data, attention):
    """Two batches of as many rows differ in no shape; what a compiler would see of the boundaries repeats the total."""
    collator = PackedCollator(MAX_LENGTH, PAD, attention=attention, causal=True, max_sequences=4)
    rows = data.draw(packed_rows())
    others = data.draw(packed_rows())
    n_rows = min(len(rows), len(others))
    columns = ("input_ids", "seq_lengths")
    one, other = (collator([{name: row[name] for name in columns} for row in each[:n_rows]]) for each in (rows, others))
    assert {name: getattr(values, "shape", ()) for name, values in one.items()} == {
        name: getattr(values, "shape", ()) for name, values in other.items()
    }
    if attention == "sdpa":
        assert one["seq_lengths"].shape == (n_rows, 4)
        assert one["input_ids"].shape == (n_rows, MAX_LENGTH)
        return
    for batch in (one, other):
        assert batch["seq_lengths"].shape == (1, n_rows * 4)
        assert batch["cu_seq_lens_q"].shape == (n_rows * 4 + 2,)
        assert batch["cu_seq_lens_q"][-1] == n_rows * MAX_LENGTH
        padding = int((batch["segment_ids"] == 0).sum())
        assert batch["max_length_q"] % MAX_LENGTH == 0
        assert batch["max_length_q"] == MAX_LENGTH or padding > MAX_LENGTH
        assert batch["max_length_q"] >= batch["cu_seq_lens_q"].diff().max()


@given(st.lists(st.integers(1, MAX_LENGTH), min_size=1, max_size=12), st.sampled_from((1, 2, 4)), st.booleans())
def test_single_sequences_are_packed_on_the_fly(lengths, align, with_assignment):
    """Every sequence once, whole, with its own values; as many rows as planned."""
    starts = itertools.accumulate(lengths, initial=0)
    sequences = [
        {"input_ids": [*range(start, start + length)], "label": number}
        for number, (start, length) in enumerate(zip(starts, lengths, strict=False))
    ]
    slots = [-(-length // align) * align for length in lengths]
    assignment = brimful.assign(brimful.plan(slots, MAX_LENGTH, 3), slots, seed=1) if with_assignment else None
    collator = PackedCollator(MAX_LENGTH, PAD, max_sequences=3, align=align, sequence_columns=("label",))
    batch = collator.from_sequences(sequences, assignment)
    found = []
    for row in range(len(batch["input_ids"])):
        for number in range(1, int((batch["seq_lengths"][row] > 0).sum()) + 1):
            tokens = batch["input_ids"][row][batch["segment_ids"][row] == number]
            found.append((batch["label"][row, number - 1].item(), tokens.tolist()))
    assert sorted(found) == [(sequence["label"], sequence["input_ids"]) for sequence in sequences]
    if assignment is not None:
        assert len(batch["input_ids"]) == assignment.packs
        assert batch["label"][batch["label"] >= 0].tolist() == assignment.sequence_ids.tolist()


def test_what_goes_into_the_model_is_chosen():
    collator = PackedCollator(
        4, PAD, causal=True, keys=("input_ids", "attention_mask"), forward_arguments={"use_cache": False}
    )
    inputs = collator.model_inputs(collator([{"input_ids": [1, 2], "seq_lengths": [2]}]))
    assert {*inputs} == {"input_ids", "attention_mask", "use_cache"}
    assert inputs["use_cache"] is False


@pytest.mark.parametrize("attention", [*MASKED, "varlen"])
def test_batches_cross_processes_and_devices(attention):
    collator = PackedCollator(4, PAD, attention=attention, causal=True)
    batch = collator([{"input_ids": [1, 2, 3], "seq_lengths": [2, 1]}])
    assert pickle.loads(pickle.dumps(collator)) == collator  # noqa: S301
    copy = pickle.loads(pickle.dumps(batch))  # noqa: S301
    assert {*copy} == {*batch}
    moved = collator.to_device(batch, "meta")
    assert {*moved} == {*batch}
    tensors = [value for value in moved.values() if isinstance(value, torch.Tensor)]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    if attention == "flex":
        assert moved["attention_mask"].kv_indices.device.type == "meta"


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        (
            {"input_ids": [1, 2, 3, 4], "seq_lengths": [2, 1]},
            DataError,
            r"^row 1 \(the first is 0\): seq_lengths \[2, 1\] sum to 3, but input_ids has 4 tokens; they are the "
            r"lengths of its sequences, in order and without padding$",
        ),
        (
            {"input_ids": [1] * 9, "seq_lengths": [5, 4]},
            CapacityError,
            r"^row 1 \(the first is 0\) has 9 tokens, more than max_length 8; pack with this max_length, or raise it",
        ),
        (
            {"input_ids": [1, 2, 3], "seq_lengths": [3], "labels": [1, 2]},
            DataError,
            r"^row 1 \(the first is 0\): labels has 2 values for 3 tokens; give one per token, or name the column in "
            r"sequence_columns if it has one per sequence$",
        ),
        (
            {"input_ids": [1, 2, 3], "seq_lengths": [1, 2], "class": [1]},
            DataError,
            r"^row 1 \(the first is 0\): class has 1 values for 2 sequences; a column of sequence_columns has one for",
        ),
        (
            {"input_ids": [1, 2, 3], "seq_lengths": [1, 1, 1]},
            CapacityError,
            r"^row 1 \(the first is 0\) has 3 sequences, more than max_sequences 2; pack with this max_sequences, or",
        ),
        ({"input_ids": [1, 2], "seq_lengths": []}, DataError, r"^row 1 \(the first is 0\) has no sequences; leave it"),
        ({"input_ids": [1], "seq_lengths": [1, 0]}, DataError, r"^row 1 .*: a length is at least 1, but item 1 is 0"),
        ({"input_ids": [1], "seq_lengths": [1.0]}, DataError, r"^row 1 .*: seq_lengths are whole numbers, but item 0 "),
        (
            {"input_ids": [1]},
            DataError,
            r"^row 1 \(the first is 0\) has no seq_lengths; for single sequences there is ",
        ),
        (
            {"seq_lengths": [1]},
            DataError,
            r"^row 1 \(the first is 0\) has no input_ids; all rows of a batch",
        ),
        (
            {"input_ids": [1.5], "seq_lengths": [1]},
            DataError,
            r"^row 1 \(the first is 0\): input_ids are whole numbers, but item 0 is 1\.5 \(float\)$",
        ),
        (
            {"input_ids": [1, 2**63], "seq_lengths": [2]},
            DataError,
            r"^row 1 .*: input_ids are below 2\^63, but item 1 is 9223372036854775808$",
        ),
        (
            {"input_ids": np.array([1, 2**64 - 1], np.uint64), "seq_lengths": [2]},
            DataError,
            r"^row 1 .*: input_ids are below 2\^63, but item 1 is 18446744073709551615$",
        ),
        (
            {"input_ids": [1, 2], "seq_lengths": [2], "labels": np.array([1, 2**63], np.uint64)},
            DataError,
            r"^row 1 .*: labels are below 2\^63, but item 1 is 9223372036854775808$",
        ),
        (
            {"input_ids": [5, -1], "seq_lengths": [2]},
            DataError,
            r"^row 1 \(the first is 0\): token ids are from 0 up, but item 1 of input_ids is -1$",
        ),
        (
            {"input_ids": ["a"], "seq_lengths": [1]},
            DataError,
            r"input_ids is a flat list of numbers, not \['a'\]; drop",
        ),
        ({"input_ids": [[1, 2], [3]], "seq_lengths": [2]}, DataError, r"input_ids is a flat list of numbers, not \[\["),
        ([1, 2], DataError, r"^row 1 \(the first is 0\) is a mapping of columns, not \[1, 2\]$"),
    ],
)
def test_rows_that_are_none(row, error, message):
    good = {"input_ids": [1, 2], "seq_lengths": [2]}
    if isinstance(row, dict):
        good.update({name: [0, 0] for name in row if name == "labels"})
        good.update({name: [0] for name in row if name == "class"})
    columns = ("class",) if "class" in row else ()
    with pytest.raises(error, match=message):
        PackedCollator(8, PAD, max_sequences=2, sequence_columns=columns)([good, row])


def test_columns_that_contradict_the_lengths():
    row = {"input_ids": [1, 2, 3], "seq_lengths": [2, 1]}
    collator = PackedCollator(8, PAD)
    with pytest.raises(DataError, match=r"^attention_mask has 0s, but packed rows hold no padding; pack without it$"):
        collator([{**row, "attention_mask": [1, 1, 0]}])
    for name in ("position_ids", "segment_ids", "seq_idx"):
        with pytest.raises(DataError, match=rf"^{name} follows from seq_lengths, and is made from them; drop that col"):
            collator([{**row, name: [0, 1, 0]}])
    with pytest.raises(DataError, match=r"^row 1 \(the first is 0\) has no labels; all rows of a batch"):
        collator([{**row, "labels": [0, 1, 0]}, row])
    with pytest.raises(DataError, match=r"^row 0 \(the first is 0\) has no class; all rows"):
        PackedCollator(8, PAD, sequence_columns="class")([row])
    nothing: list[Any] = [[], row, 5]
    for none in nothing:
        with pytest.raises(DataError, match=r"^a batch is a list of at least one row, each a mapping of columns, not "):
            collator(none)


def test_rows_that_fit_only_without_alignment():
    with pytest.raises(
        CapacityError, match=r"^row 0 .* takes 12 slots with align 4, more than max_length 8; pack with"
    ):
        PackedCollator(8, PAD, align=4)([{"input_ids": [1] * 7, "seq_lengths": [5, 2]}])


def test_sequences_of_several_whole_types_share_a_row():
    """NumPy makes fractions of uint64 beside int64."""
    sequences: list[dict[str, Any]] = [
        {"input_ids": np.array([1, 2], np.uint64)},
        {"input_ids": np.array([3], np.int64)},
    ]
    collator = PackedCollator(3, PAD)
    assert collator.from_sequences(sequences)["input_ids"].tolist() == [[1, 2, 3]]
    rows = [{**sequence, "seq_lengths": [len(sequence["input_ids"])]} for sequence in sequences]
    assert collator(rows)["input_ids"].tolist() == [[1, 2, PAD], [3, PAD, PAD]]


TOO_LONG = (
    r"^1 of 2 sequences are longer than max_length 4 \(the first is sequence 1, of 5 tokens\); "
    "raise max_length, or cut sequences before they come here$"
)


def test_sequences_that_are_none():
    collator = PackedCollator(4, PAD, sequence_columns=("label",))
    good = {"input_ids": [1, 2], "label": 0}
    with pytest.raises(CapacityError, match=TOO_LONG):
        collator.from_sequences([good, {"input_ids": [1] * 5, "label": 1}])
    both = PackAssignment(np.array([0, 1]), np.array([0, 1, 2]))
    with pytest.raises(CapacityError, match=TOO_LONG):
        collator.from_sequences([good, {"input_ids": [1] * 5, "label": 1}], both)
    nothing: list[Any] = [5, np.int64(5), torch.tensor(5), "abc", np.ones((2, 2), int)]
    for none in nothing:
        with pytest.raises(
            DataError, match=r"^sequence 1 \(the first is 0\): input_ids is a flat list of token ids, not"
        ):
            collator.from_sequences([good, {"input_ids": none, "label": 1}])
    for form in (list, np.array):
        with pytest.raises(DataError, match=r"^sequence 1 .*: token ids are from 0 up, but item 1 of input_ids is -7$"):
            collator.from_sequences([good, {"input_ids": form([3, -7]), "label": 1}])
    with pytest.raises(
        DataError, match=r"^sequence 0 .*: other has a value of shape \(1, 1\), not 2, one per token; col"
    ):
        collator.from_sequences([{**good, "other": [[1, 2], [3]]}])
    assignment: Any = [[0]]
    with pytest.raises(SettingError, match=r"^an assignment is what brimful\.assign gives, .*, not \[\[0\]\]$"):
        collator.from_sequences([good], assignment)
    with pytest.raises(DataError, match=r"^sequence 1 \(the first is 0\) has no tokens; leave it out$"):
        collator.from_sequences([good, {"input_ids": [], "label": 1}])
    with pytest.raises(DataError, match=r"^sequence 1 \(the first is 0\) has no label; all sequences of a batch"):
        collator.from_sequences([good, {"input_ids": [1]}])
    with pytest.raises(DataError, match=r"^sequence 1 .*: label has a value of shape \(1,\), not one; columns of one"):
        collator.from_sequences([good, {"input_ids": [1], "label": [1]}])
    with pytest.raises(DataError, match=r"^sequence 0 .*: labels has a value of shape \(1,\), not 2, one per token"):
        collator.from_sequences([{**good, "labels": [1]}])
    with pytest.raises(DataError, match=r"^the assignment is for 2 sequences, but there are 1; assign these, or leave"):
        collator.from_sequences([good], PackAssignment(np.array([0, 1]), np.array([0, 2])))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"attention": "flash"},
            SettingError,
            r"^there is no attention 'flash'; there are sdpa, eager, flex, varlen, positions$",
        ),
        ({"attention": None}, SettingError, r"^there is no attention None; there are sdpa, "),
        ({"max_length": 0}, LengthError, r"^max_length is a whole number from 1 to 2147483647, not 0$"),
        ({"max_sequences": 0}, LengthError, r"^max_sequences is a whole number from 1 "),
        ({"align": 0}, LengthError, r"^align is a whole number from 1 "),
        ({"align": 5}, LengthError, r"^max_length 8 is not a multiple of align 5; make it 5 or 10$"),
        ({"sliding_window": 0}, LengthError, r"^sliding_window is a whole number from 1 "),
        ({"pad_token_id": -1}, SettingError, r"^pad_token_id is a whole number from 0 to .*, not -1$"),
        ({"pad_token_id": None}, SettingError, r"^pad_token_id is a whole number from 0 to .*, not None$"),
        ({"position_offset": True}, SettingError, r"^position_offset is a whole number from 0 to .*, not True$"),
        ({"pad_to": "max"}, SettingError, r"^pad_to is 'max_length', 'longest' or a number, not 'max'$"),
        ({"pad_to": 0}, LengthError, r"^pad_to is a whole number from 1 "),
        ({"pad_to": 3}, SettingError, r"^pad_to divides max_length, .* 8 is no multiple of 3$"),
        (
            {"attention": "positions"},
            SettingError,
            r"^attention 'positions' needs causal=True: models that attend both",
        ),
        (
            {"attention": "varlen", "align": 2},
            SettingError,
            r"^attention 'varlen' with align above 1 needs causal=True",
        ),
        (
            {"attention": "eager", "dtype": "float32"},
            SettingError,
            r"^dtype is a floating one of torch, such as torch\.float32, not 'float32'$",
        ),
        ({"dtype": torch.int64}, SettingError, r"^dtype is a floating one of torch, .*, not torch\.int64$"),
        ({"causal": "no"}, SettingError, r"^causal is True or False, not 'no'$"),
        ({"sequence_columns": 5}, SettingError, r"^sequence_columns are names, in a tuple, not 5$"),
        ({"sequence_columns": [5]}, SettingError, r"^sequence_columns are names, in a tuple, not \[5\]$"),
        (
            {"sequence_columns": "loss_mask"},
            SettingError,
            r"^loss_mask has one value per token; leave it out of sequence_columns$",
        ),
        ({"sequence_columns": ("input_ids",)}, SettingError, r"^input_ids has one value per token; leave it out"),
        ({"forward_arguments": [1]}, SettingError, r"^forward_arguments are a mapping of names to values, not \[1\]$"),
        ({"mask_mapping": ()}, SettingError, r"^mask_mapping has at least one name; use None for one mask$"),
        ({"mask_mapping": "full"}, SettingError, r"^mask_mapping are names, in a tuple, not 'full'$"),
        ({"keys": "input_ids"}, SettingError, r"^keys are names, in a tuple, not 'input_ids'$"),
    ],
)
def test_settings_that_are_none(changes, error, message):
    with pytest.raises(error, match=message):
        PackedCollator(**{"max_length": 8, "pad_token_id": 0, **changes})


def test_a_missing_library_is_named_with_its_extra():
    for library in ("torch", "jaxtyping"):
        code = f"import sys; sys.modules[{library!r}] = None; import brimful; import brimful.torch"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
        last = run.stderr.strip().splitlines()[-1]
        assert last == (
            f"ImportError: brimful.torch needs {library}, which is not installed: pip install 'brimful[torch]'"
        )


def test_brimful_itself_does_without_torch():
    code = "import brimful, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
