"""pad_collate: sequences to a batch of equal rows, for training without packing; and the rule for varlen attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from brimful.errors import DataError, SettingError, shown
from brimful.torch.checks import IGNORED
from brimful.torch.collate import PackedCollator
from brimful.torch.rows import Row, as_array, int64_of, require_everywhere, require_mappings
from brimful.validation import validate_capacity, whole_number

_ANY_LENGTH = 2**31 - 1


def pad_collate(
    rows: Sequence[Row], pad_token_id: int = 0, *, pad_to: str | int = "longest", use_varlen_attn: bool = False
) -> dict[str, Any]:
    """A batch of single sequences, each padded at the end; a `collate_fn` for a DataLoader (with functools.partial).

        input_ids 5 6 7        input_ids 5 6 7        attention_mask 1 1 1        labels 5 6 7
                  8       ->             8 0 0                       1 0 0               8 · ·        · is -100

    Args:
        rows: mappings with `input_ids`, lists, arrays or tensors on the CPU. A column with a value for each token is
            padded as well; single numbers, and arrays of one shape such as images, are stacked.
        pad_token_id: what stands in input_ids on padding, ≥ 0. It is never looked for: padding follows from
            the lengths.
        pad_to: "longest" of the batch, or the next multiple of a number ≥ 1.
        use_varlen_attn: the batch is one packed row with `seq_lengths` (see `require_packed_row`), and becomes what
            `PackedCollator` makes of it with attention "varlen" for a causal model: no padding and no attention_mask,
            but cu_seq_lens and positions.

    Returns:
        `input_ids` (batch, seq); `attention_mask`, 1 on tokens and 0 on padding (times that of the rows, if they have
        one); `labels`, -100 on padding, if the rows have any; other columns, 0 on padding. Whole numbers are int64,
        others float32. No rows at all, the empty batch of a sampler, become one token with the label -100, so that
        nothing counts in the loss, while all ranks make the step.

    Raises:
        DataError: a row without tokens, or a column that is missing in one, has another length or is no numbers; token
            ids that are not whole; what is no list of rows. (Ids below 0, such as those that stand for images, pass.)
        SettingError: a pad_to that there is not, a pad_token_id below 0; varlen with a pad_to, with more than one row,
            or with one that is not packed.

    Example:
        >>> batch = pad_collate([{"input_ids": [5, 6, 7]}, {"input_ids": [8]}])
        >>> batch["input_ids"].tolist(), batch["attention_mask"].tolist()
        ([[5, 6, 7], [8, 0, 0]], [[1, 1, 1], [1, 0, 0]])

    Cost: a copy of the tokens.
    """
    if isinstance(rows, Mapping) or not isinstance(rows, Sequence):
        raise DataError(f"a batch is a list of rows, each a mapping of columns, not {shown(rows)}")
    require_mappings(rows)
    pad_token_id = whole_number(pad_token_id, "pad_token_id")
    if use_varlen_attn:
        if pad_to != "longest":
            raise SettingError(f"use_varlen_attn pads nothing; leave pad_to out, not {shown(pad_to)}")
        return _packed_row(rows, pad_token_id)
    if not rows:
        rows = [{"input_ids": [pad_token_id], "labels": [IGNORED]}]
    columns = _columns(rows)
    lengths = [len(values) for values in columns["input_ids"]]
    row_length = _row_length(max(lengths), pad_to)
    batch = {}
    for name, column in columns.items():
        if column[0].ndim == 1:
            fill = {"input_ids": pad_token_id, "labels": IGNORED}.get(name, 0)
            column = [np.pad(values, (0, row_length - len(values)), constant_values=fill) for values in column]
        batch[name] = _tensor(np.stack(column))
    batch.setdefault("attention_mask", (torch.arange(row_length) < torch.tensor(lengths)[:, None]).long())
    return batch


def require_packed_row(pack_to_max_length: bool, per_device_batch_size: int) -> None:
    """Nothing, if varlen attention is possible with these settings; otherwise a SettingError with the rule.

    A varlen kernel takes one ragged row and the boundaries in it. So sequences are packed (pack_to_max_length), and a
    device takes one row at a time; there is nothing to pad then, and nothing to group by length.

    Raises:
        SettingError: no packing, or more than one row.

    Example:
        >>> require_packed_row(pack_to_max_length=True, per_device_batch_size=4)
        Traceback (most recent call last):
        brimful.errors.SettingError: use_varlen_attn needs packed rows (pack_to_max_length=True) and a batch size of 1 \
per device, not 4; pack the dataset and set the batch size to 1, or leave use_varlen_attn out and pad

    Source: the published description of XTuner's default_collate_fn.
    """
    if pack_to_max_length and per_device_batch_size == 1:
        return
    found = (
        shown(per_device_batch_size)
        if pack_to_max_length
        else f"single sequences, {shown(per_device_batch_size)} at once"
    )
    raise SettingError(
        "use_varlen_attn needs packed rows (pack_to_max_length=True) and a batch size of 1 per device, "
        f"not {found}; pack the dataset and set the batch size to 1, or leave use_varlen_attn out and pad"
    )


def _packed_row(rows: Sequence[Row], pad_token_id: int) -> dict[str, Any]:
    require_packed_row(all("seq_lengths" in row for row in rows), len(rows))
    return PackedCollator(_ANY_LENGTH, pad_token_id, attention="varlen", causal=True, pad_to="longest")(rows)


def _row_length(longest: int, pad_to: str | int) -> int:
    if pad_to == "longest":
        return longest
    if isinstance(pad_to, str):
        raise SettingError(f"pad_to is 'longest' or a multiple, not {shown(pad_to)}")
    multiple = validate_capacity(pad_to, "pad_to")
    return -(-longest // multiple) * multiple


def _columns(rows: Sequence[Row]) -> dict[str, list[npt.NDArray[Any]]]:
    """Each column as arrays: flat ones with a value per token, all others of one shape."""
    columns = {}
    for name in sorted({"input_ids", *(name for row in rows for name in row)}, key=lambda name: name != "input_ids"):
        require_everywhere(name, rows)
        columns[name] = [_numbers(row, number, name) for number, row in enumerate(rows)]
        shapes = [values.shape for values in columns[name]]
        per_token = [values.shape for values in columns["input_ids"]]
        expected = per_token if len(shapes[0]) == 1 else shapes[:1] * len(rows)
        for number, (shape, right) in enumerate(zip(shapes, expected, strict=True)):
            if shape != right:
                wanted = f"{right[0]} values, one per token" if len(right) == 1 else f"the shape {right}, as in row 0"
                raise DataError(f"row {number} (the first is 0): {name} has {wanted}, not the shape {shape}")
    return columns


def _numbers(row: Row, number: int, name: str) -> npt.NDArray[Any]:
    where = f"row {number} (the first is 0)"
    values = as_array(row[name])
    if values.size and values.dtype.kind not in "iufb":
        raise DataError(f"{where}: {name} is a number or an array of them, not {shown(row[name])}; drop other columns")
    if name == "input_ids" and (values.ndim != 1 or not values.size):
        raise DataError(f"{where}: input_ids are token ids, at least one, not {shown(row[name])}")
    return int64_of(name, values, row[name], where) if values.ndim == 1 else values


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(array.astype(np.float32 if array.dtype.kind == "f" else np.int64))
