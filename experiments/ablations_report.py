"""What each part of packed training is worth: the figures without it beside those with all (figure 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.commands import Figures
from experiments.learning_curves_report import Curves, curves_of, last
from experiments.seeds import Estimate, difference, estimate
from experiments.small_bert import LONGEST_PACK

NOTHING = "nothing"
MASK = "the block mask"
POSITIONS = "the reset of positions"
SEQUENCE_LOSS = "the loss by sequence"
NEXT_SENTENCE = "next-sentence prediction"
PARTS = (NOTHING, MASK, POSITIONS, SEQUENCE_LOSS, NEXT_SENTENCE)
"""What may be left out."""


@dataclass(frozen=True, slots=True)
class Cost:
    """By how much figures are worse where a part is left out: loss of words, and share of pairs told right."""

    words: Estimate
    pairs: Estimate


def costs(curves: Curves, part: str) -> Cost:
    """What it costs, after the last step, to leave out a part."""
    words, pairs = "word_loss", "pair_accuracy"
    return Cost(
        difference(last(curves[part], words), last(curves[NOTHING], words)),
        difference(last(curves[NOTHING], pairs), last(curves[part], pairs)),
    )


def differences(curves: Curves) -> Curves:
    """The curves without each part, less those with all, point by point and seed by seed."""
    figures = ("word_loss", "pair_accuracy")
    return {
        part: [
            [
                one | {figure: one[figure] - other[figure] for figure in figures}
                for one, other in zip(*pair, strict=True)
            ]
            for pair in zip(curves[part], curves[NOTHING], strict=True)
        ]
        for part in PARTS
        if part != NOTHING
    }


def headline(curves: Curves) -> str:
    """What the picture shows, in its figures."""
    mask, positions = (costs(curves, part) for part in (MASK, POSITIONS))
    return (
        f"Without the block mask: {mask.words.mean:+.3f} loss on words, {-mask.pairs.mean:+.1%} pairs told right; "
        f"without the reset of positions: {positions.words.mean:+.3f}, {-positions.pairs.mean:+.1%}"
    )


def section(figures: Figures) -> list[str]:
    """Markdown of docs/ablations.json."""
    curves, plan, size = curves_of(figures, "without"), figures["plan"], figures["size"]
    return [
        "## Ablations (figure 4)",
        "",
        "![By how much loss on held-out words and pairs told right differ without each part](ablations.svg)",
        "",
        f"The model and the {plan['sequences']:,} pairs of the learning curves, packs of {LONGEST_PACK} tokens, packing "
        f"factor {plan['packing_factor']:.3f}, {figures['settings']['batch_size']} packs a step, "
        f"{figures['settings']['total_steps']:,} steps, {size['seeds']} seeds. Each time one part is left out of training; "
        f"figures are always of {size['held_out']} held-out pairs that stand alone in their rows. Costs are taken seed by "
        "seed; ± is the 95 % interval of their mean (Student's t), so what is smaller would not be seen here. It knows of "
        "seeds alone, not of other held-out pairs.",
        "",
        *_table(curves),
        "",
        *_sentences(curves),
        "",
        f"Measured on {figures['machine']}.",
    ]


def _table(curves: Curves) -> Iterator[str]:
    yield "| left out | loss of words | it costs | words told right | loss of pairs | pairs told right | it costs, in points |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for part in PARTS:
        words, right, pairs, told = (
            estimate(last(curves[part], figure)).mean
            for figure in ("word_loss", "word_accuracy", "pair_loss", "pair_accuracy")
        )
        cost = costs(curves, part)
        of_words, of_pairs = ("", "") if part == NOTHING else (cost.words.text(4, "+"), _points(cost.pairs))
        yield f"| {part} | {words:.4f} | {of_words} | {right:.2%} | {pairs:.4f} | {told:.1%} | {of_pairs} |"


def _points(share: Estimate) -> str:
    return f"{100 * share.mean:+.1f} ± {100 * share.half_width:.1f}"


def _sentences(curves: Curves) -> Iterator[str]:
    def judged(part: str) -> str:
        cost = costs(curves, part)
        return (
            f"{cost.words.text(4, '+')} in the loss of words ({cost.words.verdict}) and {_points(cost.pairs)} points of "
            f"pairs told right ({cost.pairs.verdict})"
        )

    yield (
        f"- **Block mask.** Without it sequences see the company that they have in a pack: {judged(MASK)}. In the paper "
        "loss and accuracy get much worse at once."
    )
    yield (
        f"- **Positions.** Counted on through the pack: {judged(POSITIONS)}. In the paper accuracy stays at 71.8 % instead "
        "of 72.1 %."
    )
    yield (
        "- **Loss by sequence.** Averaged over each pack, and then over packs, so that a sequence counts for less the more "
        f"company it has: {judged(SEQUENCE_LOSS)}. The paper gives no figure."
    )
    yield (
        f"- **Next sentence.** Without it: {judged(NEXT_SENTENCE)}; of pairs, nothing has been learned then. The paper "
        "finds its use in what follows, 1.31 points of F1 on SQuAD; that was not measured here."
    )
