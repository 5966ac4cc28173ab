"""Leaks that train without an error: each is caught when it is forced, named, and avoided by `for_model`."""

from __future__ import annotations

import re

import pytest
import torch

from brimful.torch import PackedCollator
from brimful.verify import verify
from tests.models.tiny import tiny
from tests.verify.reports import detail, diagnosis


def only(collator, *names, **more):
    """Inputs as many write them by hand: some of what a collator makes."""

    def collate(rows):
        batch = collator(rows)
        return {**{name: batch[name] for name in names}, **{name: make(batch) for name, make in more.items()}}

    return collate


def careful(model):
    """The inputs that the registry gives."""
    collator = PackedCollator.for_model(model, 24)
    return lambda rows: collator.model_inputs(collator(rows))


CAUSAL = PackedCollator(24, 0, causal=True)
BOTH_WAYS = PackedCollator(24, 0)
ROBERTA = PackedCollator(24, 1)

LEAKS = {
    "a boolean mask in eager attention": (
        ("bert", "eager"),
        only(BOTH_WAYS, "input_ids", "position_ids", "attention_mask", "labels"),
        "bert.encoder.layer.0.attention.self",
        "the mask is boolean or 0 and 1, and the model adds it to the scores as numbers",
    ),
    "a mask of 0 and 1 in eager attention": (
        ("bert", "eager"),
        only(BOTH_WAYS, "input_ids", "labels", attention_mask=lambda batch: batch["attention_mask"].long()),
        "bert.embeddings.position_embeddings",
        "the mask is boolean or 0 and 1, .*; and positions do not restart",
    ),
    "use_cache left on": (
        ("llama", "sdpa"),
        only(CAUSAL, "input_ids", "position_ids", "labels"),
        "model.layers.0.self_attn",
        "^use_cache is left on: with a cache, the model does not look for restarts in position_ids$",
    ),
    "a mask of ones beside positions": (
        ("llama", "sdpa"),
        only(
            CAUSAL,
            "input_ids",
            "position_ids",
            "labels",
            attention_mask=lambda batch: torch.ones_like(batch["input_ids"]),
            use_cache=lambda _: False,
        ),
        "model.layers.0.self_attn",
        "^attention_mask has one value per token: with it, the model does not look for restarts in position_ids$",
    ),
    "a mask of ones, and use_cache left on": (
        ("llama", "sdpa"),
        only(
            CAUSAL,
            "input_ids",
            "position_ids",
            "labels",
            attention_mask=lambda batch: torch.ones_like(batch["input_ids"]),
        ),
        "model.layers.0.self_attn",
        "^use_cache is left on: .*; and attention_mask has one value per token",
    ),
    "sequences simply joined": (
        ("llama", "sdpa"),
        only(CAUSAL, "input_ids", "labels"),
        "model.rotary_emb",
        "^use_cache is left on: .*; and positions do not restart at the start of each sequence$",
    ),
    "positions alone for an encoder": (
        ("bert", "sdpa"),
        only(BOTH_WAYS, "input_ids", "position_ids", "labels"),
        "bert.encoder.layer.0.attention.self",
        "^no mask keeps the sequences apart",
    ),
    "a mask for padding only": (
        ("bert", "sdpa"),
        only(BOTH_WAYS, "input_ids", "labels", attention_mask=lambda batch: (batch["segment_ids"] > 0).long()),
        "bert.embeddings.position_embeddings",
        "positions do not restart .*; and no mask keeps the sequences apart",
    ),
    "positions that run on": (
        ("gpt2", "sdpa"),
        only(CAUSAL, "input_ids", "attention_mask", "labels"),
        "transformer.wpe",
        "^positions do not restart at the start of each sequence$",
    ),
    "positions from 0 in RoBERTa": (
        ("roberta", "sdpa"),
        only(ROBERTA, "input_ids", "position_ids", "attention_mask", "labels"),
        "roberta.embeddings.position_embeddings",
        "^positions do not restart at the start of each sequence, at 2 as this model counts$",
    ),
    "no window": (
        ("mistral", "sdpa"),
        only(CAUSAL, "input_ids", "position_ids", "attention_mask", "labels"),
        "model.layers.0.self_attn",
        "^the mask lets tokens see farther than the model's sliding window of 4, or less far$",
    ),
    "padding is seen": (
        ("bert", "sdpa"),
        only(
            BOTH_WAYS,
            "input_ids",
            "position_ids",
            "labels",
            attention_mask=lambda batch: batch["attention_mask"] | (batch["segment_ids"] == 0)[:, None, None, :],
        ),
        "bert.encoder.layer.0.attention.self",
        "^no mask keeps the sequences apart, or it lets other tokens through than it should$",
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_it_is_caught_and_explained(leak):
    (name, implementation), collate, part, cause = LEAKS[leak]
    report = verify(tiny(name, implementation), collate=collate, dtypes=["float32"])
    assert not report.passed
    assert report.attention == "collate"
    assert diagnosis(report).part == part
    assert diagnosis(report).amount > 1e-3
    assert diagnosis(report).tried
    assert re.search(cause, diagnosis(report).cause)
    if leak == "padding is seen":
        assert {each.changed for each in report.leaks} == {"padding"}


@pytest.mark.parametrize("model", sorted({model for model, *_ in LEAKS.values()}))
def test_for_model_avoids_it(model):
    model = tiny(*model)
    report = verify(model, collate=careful(model), dtypes=["float32"])
    assert report.passed, str(report)


def test_mamba_is_caught_whatever_it_is_given_and_refused_by_for_model():
    for names in (("input_ids", "labels"), ("input_ids", "position_ids", "labels")):
        report = verify(tiny("mamba"), collate=only(CAUSAL, *names), dtypes=["float32"])
        assert report.leaks
        assert diagnosis(report).part == "backbone.layers.0.mixer"
        assert "do not pack for this model" in diagnosis(report).remedy
    with pytest.raises(ValueError, match="'mamba' cannot be packed"):
        careful(tiny("mamba"))


def test_a_leak_shows_in_the_direction_in_which_it_runs():
    """A causal model that is given joined sequences leaks from earlier ones to later ones, never back."""
    report = verify(tiny("llama"), collate=LEAKS["sequences simply joined"][1], dtypes=["float32"])
    pairs = {(leak.changed, leak.reached) for leak in report.leaks if leak.case == "[3 1 2] in rows of 6"}
    assert pairs == {
        ("sequence 1 of row 1", "sequence 2 of row 1"),
        ("sequence 1 of row 1", "sequence 3 of row 1"),
        ("sequence 2 of row 1", "sequence 3 of row 1"),
    }
    assert not any(leak.changed == "padding" for leak in report.leaks)


def test_positions_that_run_on_do_no_harm_where_only_distances_count():
    """Rotary positions are relative: with a mask they need no restart, and verify does not claim they do."""
    collate = only(CAUSAL, "input_ids", "attention_mask", "labels")
    assert verify(tiny("llama"), collate=collate, dtypes=["float32"]).passed


def test_the_first_label_of_a_sequence():
    def collate(rows):
        batch = CAUSAL(rows)
        return {**batch, "labels": batch["input_ids"].masked_fill(batch["segment_ids"] == 0, -100)}

    report = verify(tiny("llama"), collate=collate, dtypes=["float32"])
    assert not report.passed
    assert not report.leaks
    assert {each.what for each in report.differences} == {"loss", "gradient"}
    assert "a sequence's first token is a target" in diagnosis(report).cause
    assert diagnosis(report).tried


def test_one_output_per_row_is_not_one_per_sequence():
    for head, name in (("ForSequenceClassification", "logits"), ("ForPreTraining", "seq_relationship_logits")):
        report = verify(tiny("bert", head=head), dtypes=["float32"])
        assert not report.passed
        assert {each.name for each in report.differences} == {name}
        assert f"{name} has one value per row, of its first sequence" in diagnosis(report).cause
        assert "PackedEncoder" in diagnosis(report).remedy
        assert not next(check for check in report.checks if check.name == "outputs").passed
    report = verify(tiny("bert", head="ForSequenceClassification"), [[11, 12], [13]], dtypes=["float32"])
    assert [(check.name, check.passed) for check in report.checks] == [("outputs", False)]
    assert "one value per row, not one per sequence" in detail(report, "outputs")
    assert "isolation: not tested, for the model gives no output per token or per sequence" in report.notes
    assert verify(tiny("bert", head="Model"), dtypes=["float32"]).passed  # whose pooler_output is no head
