"""What goes into a model that is tested: its vocabulary, its labels, and the batch that a rule makes of packed rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import nn

from brimful.errors import BrimfulError, SettingError
from brimful.models.packed_encoder import PackedEncoder
from brimful.models.rules import PackingRule
from brimful.torch.collate import Attention, PackedCollator
from brimful.verify.calls import Batch, Subject
from brimful.verify.cases import AWKWARD, Case, Label, awkward_cases, given_case, long_case

_MOST_TOKENS = 4096  # of a vocabulary, to draw from
_LONGEST = 40  # tokens of the longest sequence of the long case
_LONGEST_WINDOW = 256  # tokens of the widest sliding window that is run; wider ones are left to the user's sequences
_IN_PYTHON = "give sequences, in Python: verify(model, sequences=…)"  # the command line has no option for it
_LONGEST_AWKWARD = max(length for rows, _ in AWKWARD for row in rows for length in row)
_SPECIAL = ("pad", "bos", "eos", "sep", "cls", "mask", "unk", "decoder_start")


def by_rule(rule: PackingRule, model: nn.Module, dtype: torch.dtype) -> Callable[[Case], Batch]:
    """A function that makes the batch of a case as this rule says, also where the rule is known to leak."""
    padding = padding_token(model)
    by_position_alone = rule.attention == "positions" and not rule.causal  # which PackedCollator does not make

    def collate(case: Case) -> Batch:
        collator = PackedCollator(
            case.max_length,
            padding,
            attention="sdpa" if by_position_alone else cast(Attention, rule.attention),
            causal=rule.causal,
            sliding_window=rule.sliding_window,
            mask_mapping=rule.mask_mapping,
            position_offset=rule.position_offset,
            dtype=dtype,
            sequence_columns=case.sequence_columns(),
        )
        batch = collator(case.packed())
        if by_position_alone:
            del batch["attention_mask"]
        return batch

    return collate


def cases_for(
    subject: Subject,
    model: nn.Module,
    sequences: Sequence[Any] | None,
    vocabulary: Sequence[int],
    rule: PackingRule,
    own_collate: bool,
) -> tuple[list[Case], list[str]]:
    """What is run: the user's own sequences, or the awkward lengths and long ones; and notes on what is not.

    Args:
        subject: the model under test.
        model: the one in it that has the configuration.
        sequences: the user's own, or None.
        vocabulary: the tokens to draw from.
        rule: how the model is to be packed.
        own_collate: whether the user's own function makes the rows, which may be made for one length only.

    Raises:
        SettingError: the model has too few positions.
        DataError: sequences that are none.
    """
    label = labels_for(subject, rule, vocabulary)
    parameters = () if own_collate else subject.model.parameters()
    widths = {size for parameter in parameters for size in parameter.shape}
    if sequences is not None:
        return [given_case(sequences, label, widths)], []
    notes: list[str] = []
    positions, name = _positions(model)
    longest = positions - rule.position_offset
    if longest < _LONGEST_AWKWARD:
        raise SettingError(
            f"{type(model).__name__} has {name} {positions}, and verify draws sequences of up to {_LONGEST_AWKWARD} "
            f"tokens; make {name} larger, or {_IN_PYTHON}"
        )
    window = rule.sliding_window
    if window is not None and (window > _LONGEST_WINDOW or 2 * window + 1 > longest):
        notes.append(f"the sliding window of {window} was not reached; longer sequences are needed: {_IN_PYTHON}")
        window = None
    cases = awkward_cases(vocabulary, label, window, widths)
    length = int(min(_LONGEST, (positions - 2) * 4 / 7))  # so that the whole row has no more tokens than positions
    if length > _LONGEST_AWKWARD:
        case = long_case(vocabulary, label, length, widths)
        try:
            with torch.no_grad():
                subject.run_packed(batch := subject.packed(case))
                subject.places(case, batch)
            cases.append(case)
        except BrimfulError as fault:
            notes.append(f"longer sequences, {case}, were not tested: {fault}")
    return cases, notes


def _positions(model: nn.Module) -> tuple[float, str]:
    """How many positions a model knows, and the name of the setting; infinitely many if it does not say."""
    config = _config(model)
    name = "max_position_embeddings"
    if isinstance(size := getattr(config, name, None), int) and size > 0:
        return size, getattr(config, "attribute_map", {}).get(name, name)
    tables = {
        name: each.num_embeddings
        for name, each in model.named_modules()
        if isinstance(each, nn.Embedding) and "pos" in name.rpartition(".")[2].lower()
    }
    name = min(tables, key=lambda each: tables[each], default="")
    return tables.get(name, math.inf), name


def vocabulary_of(model: nn.Module, sequences: Sequence[Any] | None) -> list[int]:
    """Tokens that the model knows, without special ones; at least 2, at most some thousands.

    Raises:
        SettingError: it cannot be told which, and no sequences show it; or they are fewer than 2.
        DataError: sequences that are none.
    """
    config = _config(model)
    size = getattr(config, "vocab_size", None)
    if size is None:
        embedding = next((each for each in model.modules() if isinstance(each, nn.Embedding)), None)
        size = None if embedding is None else embedding.num_embeddings
    if size is None:
        if sequences is None:
            raise SettingError(
                f"{type(model).__name__} has no config.vocab_size and no embedding that tells which tokens it knows; "
                + _IN_PYTHON
            )
        tokens = sorted({token for _, _, each in given_case(sequences).sequences() for token in each["input_ids"]})
        return _at_least_two(tokens, "the sequences have", "give some with different tokens")
    named = [getattr(config, f"{name}_token_id", None) for name in _SPECIAL]  # a number, several, or none
    special = {padding_token(model), *(each for one in named for each in (one if isinstance(one, list) else [one]))}
    step = max(1, size // _MOST_TOKENS)
    tokens = [token for token in range(0, size, step) if token not in special]
    return _at_least_two(tokens, f"beside special tokens {type(model).__name__} has", "make its vocabulary larger")


def _at_least_two(tokens: list[int], where: str, remedy: str) -> list[int]:
    if len(tokens) < 2:
        raise SettingError(
            f"verify changes every token into another, but {where} {len(tokens)} to choose from; {remedy}"
        )
    return tokens


def padding_token(model: nn.Module) -> int:
    """What stands on padding: the configuration's pad_token_id, or 0."""
    token = getattr(_config(model), "pad_token_id", None)
    return token if isinstance(token, int) and token >= 0 else 0


def labels_for(subject: Subject, rule: PackingRule, vocabulary: Sequence[int]) -> Label:
    """What the labels of a sequence are: its tokens, classes that the model's logits tell, or none that are known."""
    if rule.causal or subject.plain is None:
        return lambda tokens, _: {"labels": tokens}
    case = Case((({"input_ids": list(vocabulary[:2])},),), 2)
    with torch.no_grad():
        outputs = subject.run_alone(case, 0, 0).outputs
    logits = outputs.get("logits")
    if logits is not None and logits.ndim == 3 and tuple(logits.shape[:2]) == (1, 2):
        return lambda tokens, rng: {"labels": rng.integers(0, logits.shape[2], len(tokens)).tolist()}
    columns = subject.model.sequence_columns if isinstance(subject.model, PackedEncoder) else ()
    if columns == ("labels",) and logits is not None and logits.ndim == 2 and logits.shape[1] > 1:
        return lambda _, rng: {"labels": int(rng.integers(0, logits.shape[1]))}
    if columns == ("start_positions", "end_positions"):
        return lambda tokens, rng: {name: int(rng.integers(0, len(tokens))) for name in columns}
    return lambda *_: {}


def _config(model: nn.Module) -> Any:
    config = getattr(model, "config", None)
    get_text_config = getattr(config, "get_text_config", None)
    return config if get_text_config is None else get_text_config()
