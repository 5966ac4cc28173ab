"""A small BERT: its losses on padded rows and on packs, its pre-training, and its figures on what is held out.

Padded rows go through the mask, the positions and the loss of transformers; packs through those of brimful. In both the
words are scored where one is hidden, and nowhere else, as BERT's first code did: on a model this small the scores of a
vocabulary at every token would be most of the work. The tests hold both against the losses that transformers and
`PackedEncoder` give for the whole model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn
from transformers import BertConfig, BertForPreTraining

from brimful.torch import PackedCollator, first_tokens
from brimful.torch.losses import sequence_loss
from brimful.torch.padding import pad_collate
from brimful.tuning import TrainingSettings
from experiments.masked_pairs import IGNORED, LABEL, MAX_LENGTH, PAD, Batch, PretrainingData, masked

HIDDEN, LAYERS, HEADS = 64, 2, 4
DEVIATION = 0.06
"""Of the first weights, and so larger than BERT's 0.02, which suits the smaller width."""
LONGEST_PACK = 256
Point: TypeAlias = dict[str, float]

_ROWS = 50
_HELD_OUT_SEED = 2**32  # of what is hidden there; no training has it


class Losses(NamedTuple):
    """What BERT's pre-training adds up: the mean over hidden words, and the mean over pairs."""

    words: Tensor
    next_sentence: Tensor


def configuration(vocabulary: int, **settings: Any) -> BertConfig:
    """Two layers, 64 wide, without dropout: with it, no two ways of training could be compared number by number."""
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * HIDDEN,
        max_position_embeddings=LONGEST_PACK,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=DEVIATION,
        pad_token_id=PAD,
        **settings,
    )


def small_bert(vocabulary: int, seed: int) -> Any:
    """A BertForPreTraining with weights that the seed draws."""
    torch.manual_seed(seed)
    return BertForPreTraining(configuration(vocabulary))


def collator(model: Any, max_length: int = MAX_LENGTH, columns: Sequence[str] = (LABEL,)) -> PackedCollator:
    """What makes batches of packs of up to 256 tokens for a model; the columns have one value per sequence."""
    return PackedCollator.for_model(model, max_length, sequence_columns=columns)


def padded_losses(model: Any, batch: Batch) -> Losses:
    """The losses of padded rows, by transformers and torch alone."""
    outputs = _padded(model, batch)
    scores = model.cls.seq_relationship(outputs.pooler_output)
    words = word_losses(model, outputs.last_hidden_state, batch["labels"]).mean()
    return Losses(words, F.cross_entropy(scores, batch[LABEL]))


def packed_losses(model: Any, batch: Batch) -> Losses:
    """The losses of packs: those of their sequences, each for itself."""
    hidden, scores = packed_outputs(model, batch)
    words = word_losses(model, hidden, batch["labels"]).mean()
    return Losses(words, sequence_loss(scores, batch[LABEL], batch["seq_lengths"]))


def packed_outputs(model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """(packs, slots, width) hidden states, and (packs, sequences, 2) scores of what the second segment is."""
    names = ("input_ids", "attention_mask", "position_ids", "token_type_ids")
    hidden = model.bert(**{name: batch[name] for name in names}).last_hidden_state
    first = first_tokens(hidden, batch["seq_lengths"]).flatten(0, 1)
    scores = model.cls.seq_relationship(model.bert.pooler(first[:, None]))
    return hidden, scores.unflatten(0, batch["seq_lengths"].shape)


def word_losses(model: Any, hidden: Tensor, labels: Tensor) -> Tensor:
    """(hidden words,) the cross entropy of each, row by row."""
    return F.cross_entropy(*_word_scores(model, hidden, labels), reduction="none")


def _word_scores(model: Any, hidden: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    targets = labels != IGNORED
    return model.cls.predictions(hidden[targets]), labels[targets]


def _padded(model: Any, batch: Batch) -> Any:
    return model.bert(**{name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")})


def pretrain(
    model: nn.Module,
    batches: Iterator[Batch],
    losses: Callable[[Any, Batch], Losses],
    settings: TrainingSettings,
    held_out: Sequence[Batch] = (),
    points: int = 1,
) -> list[Point]:
    """Train with LAMB; the learning rate rises in the warm-up, and then falls to 0, on straight lines.

    Args:
        model: changed in place.
        batches: one for every step, of as many rows or packs as the settings say.
        losses: of a batch; their sum is what is learned.
        settings: for LAMB, without accumulation.
        held_out: from `held_out_batches`.
        points: how often to measure on it, at equal distances and after the last step.

    Returns:
        For each point: `step`, `sequences` learned from, `seconds` of one processor spent on training (batches,
        forward, backward, optimizer; not the measuring), and the figures of `measure`.
    """
    from pytorch_optimizer import Lamb

    optimizer = Lamb(model.parameters(), lr=settings.learning_rate, betas=settings.betas)
    marks = {round(settings.total_steps * point / points) for point in range(1, points + 1)}
    curve: list[Point] = []
    sequences, seconds = 0, 0.0
    for step in range(1, settings.total_steps + 1):
        started = time.process_time()
        batch = next(batches)
        loss = losses(model, batch)
        optimizer.zero_grad()
        (loss.words + loss.next_sentence).backward()  # type: ignore[no-untyped-call]
        descend(optimizer, step, settings)
        seconds += time.process_time() - started
        sequences += int((batch[LABEL] != IGNORED).sum())
        if step in marks and held_out:
            curve.append({"step": step, "sequences": sequences, "seconds": seconds, **measure(model, held_out)})
    return curve


def descend(optimizer: torch.optim.Optimizer, step: int, settings: TrainingSettings) -> None:
    """One step of the optimizer, the first is 1, with the learning rate that is due."""
    rising = step / max(settings.warmup_steps, 1)
    falling = (settings.total_steps - step + 1) / (settings.total_steps - settings.warmup_steps + 1)
    for group in optimizer.param_groups:
        group["lr"] = settings.learning_rate * min(rising, falling, 1)
    optimizer.step()


def held_out_batches(data: PretrainingData) -> list[Batch]:
    """The held-out pairs, each in a row of its own: whatever was trained with, figures are taken without packing."""
    rows = masked(data.held_out, data.vocabulary, _HELD_OUT_SEED)
    by_length = sorted(rows, key=lambda row: len(row["input_ids"]))
    return [pad_collate(by_length[at : at + _ROWS], PAD) for at in range(0, len(by_length), _ROWS)]


@torch.no_grad()
def measure(model: Any, held_out: Sequence[Batch]) -> Point:
    """The figures of sequences that stand alone in their rows.

    Returns:
        `word_loss` and `word_accuracy`, means over all hidden words; `pair_loss` and `pair_accuracy`, over all pairs.
    """
    sums = torch.zeros(4, dtype=torch.float64)
    words = pairs = 0
    for batch in held_out:
        outputs = _padded(model, batch)
        scores, labels = _word_scores(model, outputs.last_hidden_state, batch["labels"])
        of_pairs = model.cls.seq_relationship(outputs.pooler_output)
        for at, (scored, right) in enumerate(((scores, labels), (of_pairs, batch[LABEL]))):
            sums[2 * at] += F.cross_entropy(scored, right, reduction="sum").double()
            sums[2 * at + 1] += (scored.argmax(-1) == right).sum()
        words += len(labels)
        pairs += len(of_pairs)
    figures = (sums / torch.tensor([words, words, pairs, pairs])).tolist()
    return dict(zip(("word_loss", "word_accuracy", "pair_loss", "pair_accuracy"), figures, strict=True))
