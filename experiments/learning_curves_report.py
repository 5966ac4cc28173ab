"""What the learning curves say: the three parts of figure 3 in tables and sentences, and where they differ from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from experiments.commands import Figures
from experiments.masked_pairs import MAX_LENGTH
from experiments.seeds import Estimate, difference, estimate, rounded_up
from experiments.small_bert import DEVIATION, HIDDEN, LAYERS, Point

UNPACKED = "unpacked"
UNPACKED_SCALED = "unpacked, learning rate × p"
SAME = "packed, the same sequences in each step"
EFFECTIVE = "packed, effective batch kept"
COMPUTE = "packed, compute batch kept, β^p"
BETAS_STAY = "packed, compute batch kept, β as it was"
RATE_SCALED = "packed, compute batch kept, β^p, learning rate × p"
LEVELS = (0.5, 0.75, 0.9)
"""After which shares of its steps the loss without packing is the one to reach."""

Curves: TypeAlias = Mapping[str, Sequence[Sequence[Point]]]
"""The points of each training, by seed."""


def section(figures: Figures) -> list[str]:
    """Markdown of docs/learning_curves.json."""
    curves, plan, size = curves_of(figures), figures["plan"], figures["size"]
    return [
        "## Learning curves (figure 3)",
        "",
        "![Loss on held-out words over sequences and over seconds, with and without packing](learning_curves.svg)",
        "",
        f"BERT's pre-training, hidden words and next sentence, of a model with {LAYERS} layers that is {HIDDEN} wide and "
        f"begins with weights of deviation {DEVIATION}, on {plan['sequences']:,} sentence pairs from "
        f"{', '.join(figures['sources'])}. So that scores of words do not outweigh so small an encoder, it knows the "
        f"{figures['vocabulary']:,} most frequent tokens; all others, {figures['beyond_vocabulary']:.1%}, are [UNK]. A pair, a row and a pack have up to "
        f"{MAX_LENGTH} tokens; the plan has a packing factor of {plan['packing_factor']:.3f} and an efficiency of "
        f"{plan['efficiency']:.2%}. LAMB without weight decay, no dropout, {size['seeds']} seeds. Figures are of "
        f"{size['held_out']} held-out pairs, each alone in its row, after the last step. Differences are taken seed by "
        "seed; ± is the 95 % interval of their mean (Student's t), so what is smaller would not be seen here. It knows of "
        "seeds alone, not of other held-out pairs.",
        "",
        *_table(figures, curves),
        "",
        *_effective_batch(curves),
        "",
        *_compute_batch(curves),
        "",
        *_time(curves, plan["packing_factor"]),
        "",
        f"Measured with one thread for each training, as many at a time as there are cores; {figures['machine']}.",
    ]


def curves_of(figures: Figures, key: str = "training") -> dict[str, list[list[Point]]]:
    """The curves of each training by seed, in the order of the runs."""
    curves: dict[str, list[list[Point]]] = {}
    for run in figures["runs"]:
        curves.setdefault(run[key], []).append(run["curve"])
    return curves


def last(curves: Sequence[Sequence[Point]], figure: str) -> list[float]:
    """A figure after the last step, by seed."""
    return [curve[-1][figure] for curve in curves]


def excess(curves: Curves, name: str, than: str = UNPACKED) -> Estimate:
    """By how much the last loss of one training is above that of another."""
    return difference(last(curves[name], "word_loss"), last(curves[than], "word_loss"))


def _table(figures: Figures, curves: Curves) -> Iterator[str]:
    yield (
        "| training | rows or packs a step | sequences a step | steps | β₁, β₂ | learning rate | loss of words "
        "| above unpacked | pairs told right |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for name, settings in figures["settings"].items():
        sequences = curves[name][0][-1]["sequences"] / settings["total_steps"]
        rows = f"about {sequences / figures['plan']['packing_factor']:.0f}" if name == SAME else settings["batch_size"]
        above = "" if name == UNPACKED else excess(curves, name).text(4, "+")
        yield (
            f"| {name} | {rows} | {sequences:.1f} | {settings['total_steps']:,} "
            f"| {', '.join(f'{beta:.4g}' for beta in settings['betas'])} | {settings['learning_rate']:.4g} "
            f"| {estimate(last(curves[name], 'word_loss')).mean:.4f} | {above} "
            f"| {estimate(last(curves[name], 'pair_accuracy')).mean:.1%} |"
        )


def apart(curves: Curves) -> float:
    """The largest distance of the curves with the same sequences in each step, over all seeds and points."""
    return max(
        abs(one["word_loss"] - other["word_loss"])
        for pair in zip(curves[UNPACKED], curves[SAME], strict=True)
        for one, other in zip(*pair, strict=True)
    )


def _effective_batch(curves: Curves) -> Iterator[str]:
    kept, seeds = excess(curves, EFFECTIVE), estimate(last(curves[UNPACKED], "word_loss")).deviation
    furthest = apart(curves)
    reason = "float32 rounds differently, and each step goes on from the last" if furthest < 1e-3 else "too far"
    yield (
        "**Same effective batch.** With the same sequences in each step, the curves with and without packing are never "
        f"further apart than {rounded_up(furthest)}: {reason}. Seeds are {seeds:.1g} apart (standard deviation). Packs "
        "from one plan for all sequences, as one would train, bring other sequences into a step, and about as many: the "
        f"last loss differs by {kept.text(4, '+')}, {kept.verdict}. In the paper the curves almost coincide (section 4.2)."
    )


def _compute_batch(curves: Curves) -> Iterator[str]:
    pairs = ((COMPUTE, UNPACKED), (COMPUTE, BETAS_STAY), (RATE_SCALED, COMPUTE), (UNPACKED_SCALED, UNPACKED))
    above, betas, rate, control = (
        f"{each.text(4, '+')} ({each.verdict})" for each in (excess(curves, *pair) for pair in pairs)
    )
    yield (
        f"**Same compute batch.** Fewer steps, each on more sequences: in the last loss, β^p less no packing is {above}, "
        f"β^p less β as it was {betas}, and a learning rate times p on top makes {rate}. The same learning rate without "
        f"packing makes {control}. In the paper β^p begins behind and catches up, and a scaled learning rate slows "
        "convergence. That is BERT-large with tuned hyperparameters, in the second phase of its pre-training; here no "
        "learning rate was tuned, weights are random at first, and hundreds of steps are all."
    )


def _time(curves: Curves, factor: float) -> Iterator[str]:
    yield (
        "**Time to the same loss.** How many times as fast as without packing, in sequences a second, and to the loss that "
        "training without packing has after a share of its steps (– where a seed did not get there). Seconds are time of "
        "one processor, not of the clock, and of training alone: batches, forward, backward, optimizer."
    )
    yield ""
    yield "| training | sequences a second | " + " | ".join(f"loss after {level:.0%}" for level in LEVELS) + " |"
    yield "|---|---:|" + "---:|" * len(LEVELS)
    for name in (SAME, EFFECTIVE, COMPUTE):
        reached = [speedup(curves, name, level) for level in LEVELS]
        cells = " | ".join(each.text(2) if each else "–" for each in reached)
        yield f"| {name} | {faster(curves, name).text(2)} | {cells} |"
    realized = faster(curves, EFFECTIVE).mean
    yield ""
    yield (
        f"So of the packing factor {factor:.2f} there is {realized:.2f} left with the effective batch kept, an overhead of "
        f"{factor / realized - 1:.0%}. What is done for each hidden word and each step does not become less by packing "
        "(the scores of the vocabulary, LAMB, making batches), and weighs the more the smaller the encoder; it was not "
        "measured apart. The paper's overhead is below 5 %, and its runs were more than twice as fast, as accelerators "
        "were also spared the transfer of padding."
    )


def faster(curves: Curves, name: str) -> Estimate:
    """Sequences a second, as a multiple of those without packing."""
    rates = [[curve[-1]["sequences"] / curve[-1]["seconds"] for curve in curves[each]] for each in (name, UNPACKED)]
    return estimate([one / other for one, other in zip(*rates, strict=True)])


def speedup(curves: Curves, name: str, share: float) -> Estimate | None:
    """How many times sooner the loss is reached that is there without packing after a share of its steps."""
    ratios = []
    for unpacked, packed in zip(curves[UNPACKED], curves[name], strict=True):
        loss = min(unpacked, key=lambda point: abs(point["step"] - share * unpacked[-1]["step"]))["word_loss"]
        slow, quick = seconds_to(unpacked, loss), seconds_to(packed, loss)
        if slow is None or quick is None:
            return None
        ratios.append(slow / quick)
    return estimate(ratios)


def seconds_to(curve: Sequence[Point], loss: float) -> float | None:
    """When a curve first comes down to a loss, on straight lines between its points; None if it never does.

    Example:
        >>> curve = [{"seconds": 1.0, "word_loss": 6.0}, {"seconds": 3.0, "word_loss": 5.0}]
        >>> seconds_to(curve, 5.5), seconds_to(curve, 4.0)
        (2.0, None)
    """
    before = curve[0]
    for point in curve:
        if point["word_loss"] <= loss:
            fallen = before["word_loss"] - point["word_loss"]
            share = (before["word_loss"] - loss) / fallen if fallen else 1.0
            return before["seconds"] + share * (point["seconds"] - before["seconds"])
        before = point
    return None
