"""Padding follows from lengths, never from token ids; and varlen attention takes one packed row."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from brimful import DataError, LengthError, SettingError
from brimful.torch.padding import pad_collate, require_packed_row

PAD = 7  # also a token: what is padding must not be guessed from it


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, list[int]]]:
    token = st.sampled_from((PAD, 1, 2))
    tokens = draw(st.lists(st.lists(token, min_size=1, max_size=9), min_size=1, max_size=5))
    return [
        {"input_ids": ids, "labels": [-100 if t == 2 else t for t in ids], "kind": [1] * len(ids)} for ids in tokens
    ]


def padded(values, row_length, fill):
    """One row, cell by cell."""
    return [values[place] if place < len(values) else fill for place in range(row_length)]


@given(rows(), st.sampled_from(("longest", 1, 4, 16)), st.sampled_from((list, np.array, torch.tensor)))
def test_rows_are_padded_at_the_end_and_masked_by_their_lengths(rows, pad_to, form):
    longest = max(len(row["input_ids"]) for row in rows)
    multiple = 1 if pad_to == "longest" else pad_to
    row_length = -(-longest // multiple) * multiple
    batch = pad_collate([{name: form(values) for name, values in row.items()} for row in rows], PAD, pad_to=pad_to)
    assert sorted(batch) == ["attention_mask", "input_ids", "kind", "labels"]
    for name, fill in (("input_ids", PAD), ("labels", -100), ("kind", 0)):
        assert batch[name].tolist() == [padded(row[name], row_length, fill) for row in rows]
    assert batch["attention_mask"].tolist() == [padded([1] * len(row["input_ids"]), row_length, 0) for row in rows]
    assert {tensor.dtype for tensor in batch.values()} == {torch.int64}


def test_a_mask_that_the_rows_have_is_kept():
    batch = pad_collate([{"input_ids": [5, 6], "attention_mask": [1, 0]}, {"input_ids": [5], "attention_mask": [1]}])
    assert batch["attention_mask"].tolist() == [[1, 0], [1, 0]]


def test_numbers_and_images_are_stacked():
    row = {"input_ids": [5], "label": 3, "weight": 0.5, "pixels": np.ones((2, 2), np.float32)}
    batch = pad_collate([row, {**row, "input_ids": [5, 6], "label": 4}])
    assert batch["label"].tolist() == [3, 4]
    assert batch["weight"].dtype == torch.float32
    assert batch["pixels"].shape == (2, 2, 2)


def test_an_empty_batch_counts_nothing_in_the_loss():
    batch = functools.partial(pad_collate, pad_token_id=PAD)([])
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {
        "input_ids": [[PAD]],
        "labels": [[-100]],
        "attention_mask": [[1]],
    }
    logits = torch.zeros(1, 9, requires_grad=True)
    loss = cross_entropy(logits, batch["labels"][0], reduction="sum")
    loss.backward()
    assert loss == 0
    assert torch.equal(logits.grad, torch.zeros(1, 9))  # type: ignore[arg-type]


def test_varlen_takes_one_packed_row():
    row = {"input_ids": [1, 2, 3, 4, 5], "labels": [1, 2, 3, 4, 5], "seq_lengths": [3, 2]}
    batch = pad_collate([row], use_varlen_attn=True)
    assert batch["input_ids"].tolist() == [[1, 2, 3, 4, 5]]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 0, 1]]
    assert batch["labels"].tolist() == [[-100, 2, 3, -100, 5]]
    assert batch["cu_seq_lens_q"].tolist() == [0, 3, 5]
    assert "attention_mask" not in batch


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([{"input_ids": [1]}], "single sequences, 1 at once"),
        ([{"input_ids": [1]}, {"input_ids": [2]}], "single sequences, 2 at once"),
        ([{"input_ids": [1], "seq_lengths": [1]}] * 2, "2"),
        ([], "0"),
    ],
)
def test_varlen_with_anything_else_is_refused(rows, found):
    text = (
        r"^use_varlen_attn needs packed rows \(pack_to_max_length=True\) and a batch size of 1 per device, "
        f"not {found}; pack the dataset and set the batch size to 1, or leave use_varlen_attn out and pad$"
    )
    with pytest.raises(SettingError, match=text):
        pad_collate(rows, use_varlen_attn=True)


def test_the_rule_of_varlen_can_be_asked_for_before():
    require_packed_row(pack_to_max_length=True, per_device_batch_size=1)
    for packed, batch_size in ((False, 1), (True, 2)):
        with pytest.raises(
            SettingError, match=r"^use_varlen_attn needs packed rows \(pack_to_max_length=True\) and a "
        ):
            require_packed_row(packed, batch_size)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            [{"input_ids": [1]}, {"labels": [1]}],
            r"^row 1 \(the first is 0\) has no input_ids; all rows of a batch have the",
        ),
        ([{"input_ids": [1], "labels": [1]}, {"input_ids": [1]}], r"^row 1 \(the first is 0\) has no labels; all rows"),
        ([{"input_ids": []}], r"^row 0 \(the first is 0\): input_ids are token ids, at least one, not \[\]$"),
        ([{"input_ids": [0.5]}], r"^row 0 .*: input_ids are whole numbers, but item 0 is 0\.5 \(float\)$"),
        ([{"input_ids": [1, 2**63]}], r"^row 0 .*: input_ids are below 2\^63, but item 1 is 9223372036854775808$"),
        ([{"input_ids": np.array([2**63], np.uint64)}], r"^row 0 .*: input_ids are below 2\^63, but item 0 is 92"),
        ([{"input_ids": [[1]]}], r"^row 0 .*: input_ids are token ids, at least one, not \[\[1\]\]$"),
        (
            [{"input_ids": [1, 2], "labels": [1]}],
            r"^row 0 \(the first is 0\): labels has 2 values, one per token, not the shape \(1,\)$",
        ),
        (
            [{"input_ids": [1], "label": 1}, {"input_ids": [1], "label": [1]}],
            r"^row 1 \(the first is 0\): label has the shape \(\), as in row 0, not the shape \(1,\)$",
        ),
        (
            [{"input_ids": [1], "text": "a"}],
            r"^row 0 \(the first is 0\): text is a number or an array of them, not 'a'; drop other columns$",
        ),
        ([{"input_ids": [1], "bad": [[1], [2, 3]]}], r"^row 0 \(the first is 0\): bad "),
        ([[1, 2]], r"^row 0 \(the first is 0\) is a mapping of columns, not \[1, 2\]$"),
    ],
)
def test_rows_that_cannot_be_padded_are_named(rows, text):
    with pytest.raises(DataError, match=text):
        pad_collate(rows)


@pytest.mark.parametrize("rows", [None, {}, {"input_ids": [1]}, 5])
@pytest.mark.parametrize("varlen", [False, True])
def test_a_batch_is_a_list(rows, varlen):
    with pytest.raises(DataError, match=r"^a batch is a list of rows, each a mapping of columns, not "):
        pad_collate(rows, use_varlen_attn=varlen)


def test_padding_is_a_token():
    nothing: list[Any] = [-1, None, 0.5]
    for none in nothing:
        with pytest.raises(SettingError, match=rf"^pad_token_id is a whole number from 0 to .*, not {none}$"):
            pad_collate([{"input_ids": [1]}], none)


def test_a_pad_to_that_there_is_not_is_refused():
    with pytest.raises(SettingError, match=r"^pad_to is 'longest' or a multiple, not 'max_length'$"):
        pad_collate([{"input_ids": [1]}], pad_to="max_length")
    with pytest.raises(LengthError, match=r"^pad_to is a whole number from 1 to 2147483647, not 0$"):
        pad_collate([{"input_ids": [1]}], pad_to=0)


def test_ids_that_stand_for_images_pass():
    assert pad_collate([{"input_ids": [1, -200, 2]}, {"input_ids": [3]}])["input_ids"].tolist() == [
        [1, -200, 2],
        [3, 0, 0],
    ]
