"""PackedCollator: rows of a packed data set to a batch of tensors that keeps their sequences apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from brimful.assignment import PackAssignment, assign
from brimful.errors import CapacityError, SettingError, shown
from brimful.planning import plan
from brimful.torch.checks import IGNORED
from brimful.torch.masks import Causal, SegmentMask, SlidingWindow
from brimful.torch.rows import Numbers, Row, join_sequences, read_rows, sequence_lengths
from brimful.torch.segments import cu_seqlens_padded, position_ids, segment_ids
from brimful.validation import IntArray, aligned, validate_align, validate_capacity, whole_number

Attention: TypeAlias = Literal["sdpa", "eager", "flex", "varlen", "positions"]

LOSS_MASKS = ("loss_mask", "completion_mask", "assistant_masks")
"""Columns of 0 and 1 per token: where there is a 0, the label is -100."""


@dataclass(frozen=True, slots=True)
class PackedCollator:
    """Makes a batch from rows of a packed data set; a `collate_fn` for a DataLoader.

        input_ids    [5 6 7 8 9]              input_ids     5 6 7 8 9 0         attention_mask, for "sdpa":
        seq_lengths  [3 2]            ->      position_ids  0 1 2 0 1 0           # . . . . .
                                              segment_ids   1 1 1 2 2 0           # # . . . .
        max_length 6, causal=True             labels        · 6 7 · 9 ·           # # # . . .
                                              seq_lengths   3 2                   . . . # . .
                                                            · is -100             . . . # # .
                                                                                  . . . . . #

    A batch holds `input_ids`, `position_ids`, `segment_ids`, `seq_lengths` and, if there are any, `labels`, always;
    every other column of the rows, filled up with 0 (a value per token) or -100 (a value per sequence), in int64 or, if
    not of whole numbers, float32; by attention

    | attention | for | adds |
    |---|---|---|
    | "sdpa" | `scaled_dot_product_attention` | `attention_mask`, boolean, (batch, 1, seq, seq) |
    | "eager" | attention by arithmetic | `attention_mask`, 0 or the least number of dtype, of the same shape |
    | "flex" | FlexAttention | `attention_mask`, a BlockMask |
    | "varlen" | kernels for ragged batches | `cu_seq_lens_q`, `cu_seq_lens_k`, `seq_idx` (int32), `max_length_q`, \
`max_length_k` (int) |
    | "positions" | models that look for restarts in position_ids | nothing |

    For "varlen" the whole batch is one row, [1, total]: the sequences of all rows one after another, and padding, if
    pad_to asks for it, as one more segment at the end. Its attention costs the square of its length, so "longest" (no
    padding) or a small multiple is best there.

    Labels are not shifted: label i is the token at place i, and the model (all of transformers' do) predicts it from
    the tokens before. They are kept as they are given; or, if causal and there are none, are the tokens. They are -100
    on padding, where a loss mask (`loss_mask`, `completion_mask`, `assistant_masks`) is 0, and if causal on the first
    token of each sequence, which nothing in its sequence comes before. Tokens are never compared with anything.

    Args:
        max_length: token slots of a row, ≥ 1; no row has more.
        pad_token_id: what stands in input_ids on padding, ≥ 0. No token ever sees it.
        attention: one of the above.
        causal: may a token see only what is before it? Decides the mask, and the labels of first tokens.
        max_sequences: most sequences in a row, ≥ 1. For fixed shapes: seq_lengths has that many columns, and
            cu_seq_lens room for as many, its end repeated. None for as many as the batch has.
        pad_to: how long rows become: "max_length", always; "longest", as the longest of the batch; or the next multiple
            of a number that divides max_length. For "varlen", where all rows are one: as many times max_length as there
            are rows; not at all; or the next multiple.
        align: slots, ≥ 1, a divisor of max_length; every sequence starts at a multiple of it.
        sliding_window: how many tokens may be seen, as `SlidingWindow` counts them; None for no limit.
        mask_mapping: for models whose layers differ, the names under which attention_mask is a mapping of masks; all
            but "full_attention" have the sliding window. None for one mask, which has it.
        position_offset: what the first position is called, ≥ 0; in RoBERTa's family padding_idx + 1.
        dtype: of the mask for "eager": that of the scores.
        sequence_columns: the columns that have one value per sequence, such as a class; all others have one per token.
        keys: what of a batch `model_inputs` gives; None for all.
        forward_arguments: what `model_inputs` adds.

    Raises:
        SettingError: an unknown attention or pad_to, settings that exclude each other, or one of another kind.
        LengthError: a number that is out of range, or an align of which max_length is no multiple.

    Example:
        >>> collator = PackedCollator(max_length=6, pad_token_id=0, attention="sdpa", causal=True)
        >>> batch = collator([{"input_ids": [5, 6, 7, 8, 9], "seq_lengths": [3, 2]}])
        >>> batch["labels"].tolist(), batch["position_ids"].tolist()
        ([[-100, 6, 7, -100, 9, -100]], [[0, 1, 2, 0, 1, 0]])
        >>> flat = PackedCollator(max_length=6, pad_token_id=0, attention="varlen", pad_to="longest")
        >>> flat([{"input_ids": [5, 6, 7], "seq_lengths": [2, 1]}] * 2)["cu_seq_lens_q"].tolist()
        [0, 2, 3, 5, 6]

    Cost: from lists, on one core, 1 ms for 8 rows of 512 tokens and 16 ms for 64 rows of 2048 ("flex" 1 ms more). The
    masks of "sdpa" and "eager" have batch × seq² cells: 3 and 5 ms, 0.5 and 1.4 s. For scale, BERT-base needs 47 s of
    that core for a step on the 8 rows.
    Source: arXiv 2107.02027, section 3.2; the keys of "varlen" are those of transformers' DataCollatorWithFlattening.
    """

    max_length: int
    pad_token_id: int
    _: KW_ONLY
    attention: Attention = "sdpa"
    causal: bool = False
    max_sequences: int | None = None
    pad_to: Literal["max_length", "longest"] | int = "max_length"
    align: int = 1
    sliding_window: int | None = None
    mask_mapping: tuple[str, ...] | None = None
    position_offset: int = 0
    dtype: torch.dtype = torch.float32
    sequence_columns: Collection[str] = ()
    keys: tuple[str, ...] | None = None
    forward_arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_kinds()
        if not isinstance(self.attention, str) or self.attention not in get_args(Attention):
            raise SettingError(
                f"there is no attention {shown(self.attention)}; there are {', '.join(get_args(Attention))}"
            )
        for name in ("max_length", "max_sequences", "sliding_window"):
            if name == "max_length" or getattr(self, name) is not None:
                object.__setattr__(self, name, validate_capacity(getattr(self, name), name))
        for name in ("pad_token_id", "position_offset"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
        if self.pad_to not in ("max_length", "longest"):
            if isinstance(self.pad_to, str):
                raise SettingError(f"pad_to is 'max_length', 'longest' or a number, not {shown(self.pad_to)}")
            object.__setattr__(self, "pad_to", validate_capacity(self.pad_to, "pad_to"))
            if self.max_length % self.pad_to:
                raise SettingError(
                    f"pad_to divides max_length, so that rows never become longer, but {self.max_length} is no "
                    f"multiple of {self.pad_to}"
                )
        object.__setattr__(self, "align", validate_align(self.align, self.max_length))
        if self.attention == "positions" and not self.causal:
            raise SettingError(
                "attention 'positions' needs causal=True: models that attend both ways do not look for restarts in "
                "position_ids, and would see across sequences; use 'sdpa'"
            )
        if self.attention == "varlen" and self.align > 1 and not self.causal:
            raise SettingError(
                "attention 'varlen' with align above 1 needs causal=True: looking both ways, a sequence would see the "
                "padding that follows it; use 'sdpa', 'flex' or align 1"
            )

    def _check_kinds(self) -> None:
        if not isinstance(self.causal, bool):
            raise SettingError(f"causal is True or False, not {shown(self.causal)}")
        if not isinstance(self.dtype, torch.dtype) or not self.dtype.is_floating_point:
            raise SettingError(f"dtype is a floating one of torch, such as torch.float32, not {shown(self.dtype)}")
        if not isinstance(self.forward_arguments, Mapping):
            raise SettingError(
                f"forward_arguments are a mapping of names to values, not {shown(self.forward_arguments)}"
            )
        object.__setattr__(self, "forward_arguments", dict(self.forward_arguments))
        columns = self.sequence_columns
        object.__setattr__(
            self, "sequence_columns", _names((columns,) if isinstance(columns, str) else columns, "sequence_columns")
        )
        for name in ("input_ids", *LOSS_MASKS):
            if name in self.sequence_columns:
                raise SettingError(f"{name} has one value per token; leave it out of sequence_columns")
        for name in ("keys", "mask_mapping"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _names(getattr(self, name), name))
        if self.mask_mapping == ():
            raise SettingError("mask_mapping has at least one name; use None for one mask")

    @classmethod
    def for_model(
        cls, model: Any, max_length: int, pad_token_id: int | None = None, attention: str | None = None, **settings: Any
    ) -> Self:
        """The collator that a model of transformers needs, from the registry of architectures.

        Args:
            model: a model, or its configuration.
            max_length: token slots of a row.
            pad_token_id: None for that of the configuration, or 0 if it has none.
            attention: None for the way that suits the model.
            settings: max_sequences, pad_to, align, sequence_columns.

        Raises:
            SettingError: there is no rule for this model, its sequences cannot be kept apart, or not in this way.
        """
        from brimful.models.rules import rule_for

        rule = rule_for(model, attention)
        if pad_token_id is None:
            pad_token_id = max(0, getattr(getattr(model, "config", model), "pad_token_id", None) or 0)
        if isinstance(dtype := getattr(model, "dtype", None), torch.dtype):
            settings = {"dtype": dtype, **settings}
        return cls(
            max_length,
            pad_token_id,
            attention=rule.attention,  # type: ignore[arg-type]
            causal=rule.causal,
            sliding_window=rule.sliding_window,
            mask_mapping=rule.mask_mapping,
            position_offset=rule.position_offset,
            keys=rule.keys,
            forward_arguments=rule.forward_arguments,
            **settings,
        )

    def __call__(self, rows: Sequence[Row]) -> dict[str, Any]:
        """A batch from packed rows.

        Args:
            rows: mappings with `input_ids` (tokens) and `seq_lengths` (the lengths of the row's sequences), and other
                columns of numbers; lists, arrays, or tensors on the CPU.

        Raises:
            DataError: seq_lengths that do not sum to the row, a column of another length, or one that is no numbers.
            CapacityError: a row longer than max_length, or of more than max_sequences sequences.
        """
        packed = read_rows(rows, self.sequence_columns)
        for number, lengths in enumerate(packed.lengths):
            self._require_room(number, lengths)
        seq_lengths, row_length = self._layout(packed.lengths)
        segments = segment_ids(seq_lengths, row_length, self.align)
        batch: dict[str, Any] = {}
        for name, values in packed.tokens.items():
            batch[name] = _spread(values, segments, self.pad_token_id if name == "input_ids" else 0)
        positions = position_ids(seq_lengths, row_length, self.align)
        batch["position_ids"] = positions % self.max_length + self.position_offset
        batch["segment_ids"] = segments
        batch["seq_lengths"] = seq_lengths
        for name, values in packed.sequences.items():
            batch[name] = _spread(values, seq_lengths, IGNORED)
        if "labels" in packed.tokens or (self.causal and "labels" not in packed.sequences):
            batch["labels"] = self._labels(batch, positions)
        if self.attention == "varlen":
            batch.update(self._boundaries(seq_lengths, positions, len(rows)))
        elif self.attention != "positions":
            batch["attention_mask"] = self.attention_mask(batch["segment_ids"])
        return batch

    def from_sequences(self, sequences: Sequence[Row], assignment: PackAssignment | None = None) -> dict[str, Any]:
        """A batch from single sequences, which are packed on the fly; a `collate_fn` as well.

        Args:
            sequences: mappings with `input_ids`; columns of sequence_columns have one value, others one per token.
            assignment: which sequences share a row, from `brimful.assign`; None to plan it here, best fit first.

        Raises:
            CapacityError: a sequence is longer than max_length.
            DataError: as calling the collator; or the assignment is for another number of sequences.
            SettingError: the assignment is none.

        Example:
            >>> collator = PackedCollator(max_length=4, pad_token_id=0)
            >>> collator.from_sequences([{"input_ids": [1]}, {"input_ids": [2, 3, 4]}])["input_ids"].tolist()
            [[2, 3, 4, 1]]
        """
        lengths = sequence_lengths(sequences)
        too_long = np.flatnonzero(lengths > self.max_length)
        if len(too_long):
            raise CapacityError(
                f"{len(too_long):,} of {len(lengths):,} sequences are longer than max_length {self.max_length} (the "
                f"first is sequence {too_long[0]}, of {lengths[too_long[0]]:,} tokens); raise max_length, or cut "
                "sequences before they come here"
            )
        if assignment is None:
            slots = aligned(lengths, self.align)
            assignment = assign(plan(slots, self.max_length, self.max_sequences, "lpfhp"), slots)
        return self(join_sequences(sequences, assignment, self.sequence_columns))

    def attention_mask(self, segment_ids: Int[Tensor, "batch seq"]) -> Any:
        """The mask that the model's attention takes, or a mapping of them, on the device of segment_ids."""
        segments = SegmentMask(segment_ids)
        whole = segments & Causal() if self.causal else segments
        near = segments & SlidingWindow(self.sliding_window, self.causal) if self.sliding_window else whole
        if self.mask_mapping is None:
            return self._form(near)
        return {name: self._form(whole if name == "full_attention" else near) for name in self.mask_mapping}

    def model_inputs(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What of a batch goes into the model: `model(**collator.model_inputs(batch))`.

        Example:
            >>> collator = PackedCollator(4, 0, keys=("input_ids",), forward_arguments={"use_cache": False})
            >>> collator.model_inputs({"input_ids": 1, "segment_ids": 2})
            {'input_ids': 1, 'use_cache': False}
        """
        chosen = {name: value for name, value in batch.items() if self.keys is None or name in self.keys}
        return {**chosen, **self.forward_arguments}

    def to_device(self, batch: Mapping[str, Any], device: torch.device | str) -> dict[str, Any]:
        """The batch on another device; its mask is made there anew, which is quicker than sending it."""
        moved = {
            name: value.to(device) if isinstance(value, Tensor) and name != "attention_mask" else value
            for name, value in batch.items()
        }
        if "attention_mask" in batch:
            moved["attention_mask"] = self.attention_mask(moved["segment_ids"])
        return moved

    def _form(self, mask: SegmentMask) -> Any:
        match self.attention:
            case "sdpa":
                return mask.for_sdpa()
            case "eager":
                return mask.for_eager(self.dtype)
            case "flex":
                return mask.for_flex()
        raise SettingError(f"attention {self.attention!r} takes no mask")

    def _labels(self, batch: Mapping[str, Any], positions: Int[Tensor, "batch seq"]) -> Tensor:
        labels: Tensor = batch["labels"] if "labels" in batch else batch["input_ids"]
        ignored = batch["segment_ids"] == 0
        if self.causal:
            ignored = ignored | (positions == 0)
        for name in LOSS_MASKS:
            if name in batch:
                ignored = ignored | (batch[name] == 0)
        return labels.masked_fill(ignored, IGNORED)

    def _layout(self, rows: list[IntArray]) -> tuple[Int[Tensor, "batch segments"], int]:
        """The lengths in each row of the batch, which for "varlen" has one, and how many slots a row has."""
        segments, row_length = self.max_sequences, self.max_length
        if self.attention == "varlen":
            row_length *= len(rows)
            segments = segments and segments * len(rows)
            rows = [np.concatenate(rows)]
        seq_lengths = np.zeros((len(rows), segments or max(map(len, rows))), np.int64)
        for row, lengths in enumerate(rows):
            seq_lengths[row, : len(lengths)] = lengths
        if self.pad_to != "max_length":
            longest = int(aligned(seq_lengths, self.align).sum(1).max())
            multiple = self.pad_to if isinstance(self.pad_to, int) else 1
            row_length = -(-longest // multiple) * multiple
        return torch.from_numpy(seq_lengths), row_length

    def _boundaries(
        self, seq_lengths: Int[Tensor, "1 segments"], positions: Int[Tensor, "1 seq"], n_rows: int
    ) -> dict[str, Any]:
        """What kernels for ragged batches take; padding within a sequence's slots counts as of the sequence."""
        most = None if self.max_sequences is None else n_rows * self.max_sequences
        bounds = cu_seqlens_padded(seq_lengths, positions.shape[1], self.align, most)
        longest = int(bounds.diff().max())
        if self.max_sequences is not None:  # fixed shapes: the same number for as long as padding is less than a row
            longest = -(-longest // self.max_length) * self.max_length
        starts = (positions == 0).cumsum(1, dtype=torch.int32)
        names = {"cu_seq_lens_q": bounds, "cu_seq_lens_k": bounds, "max_length_q": longest, "max_length_k": longest}
        return {**names, "seq_idx": starts - 1}

    def _require_room(self, row: int, lengths: IntArray) -> None:
        where = f"row {row} (the first is 0)"
        if (tokens := int(lengths.sum())) > self.max_length:
            raise CapacityError(
                f"{where} has {tokens:,} tokens, more than max_length {self.max_length}; "
                "pack with this max_length, or raise it here"
            )
        if (slots := int(aligned(lengths, self.align).sum())) > self.max_length:
            raise CapacityError(
                f"{where} takes {slots:,} slots with align {self.align}, more than max_length {self.max_length}; "
                "pack with lengths rounded up to multiples of align, or use from_sequences"
            )
        if self.max_sequences is not None and len(lengths) > self.max_sequences:
            raise CapacityError(
                f"{where} has {len(lengths)} sequences, more than max_sequences {self.max_sequences}; "
                "pack with this max_sequences, or raise it here"
            )


def _spread(values: Numbers, where: Int[Tensor, "batch slots"], fill: int) -> Tensor:
    """The values, one after another, in the slots that hold a token or sequence; fill in all others."""
    spread = np.full(where.shape, fill, values.dtype)
    spread[where.numpy() > 0] = values
    return torch.from_numpy(spread)


def _names(value: Any, name: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(each, str) for each in value):
        raise SettingError(f"{name} are names, in a tuple, not {shown(value)}")
    return tuple(value)
