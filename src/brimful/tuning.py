"""Hyperparameters under packing: two recipes, with the numbers.

A pack holds several sequences, so a step on as many packs as there were rows sees packing_factor times as many
sequences, and there are so many times fewer steps. What packing is blamed for is often only that. Either keep the
effective batch (fewer packs a step, nothing else changes), or keep the compute batch (as many packs a step, and the
optimizer's averages are made as much shorter).

Theorem D.1 of the source: with equal gradients, p steps of an exponential average with β are one step with β^p, for any
whole p ≥ 1 and from any start. So after one step on p times the sequences, momentum and velocity (of LAMB, Adam, AdamW)
are what p steps would have made them:

    >>> def steps(average, gradient, beta, n):
    ...     for _ in range(n):
    ...         average = beta * average + (1 - beta) * gradient
    ...     return average
    >>> steps(8.0, 4.0, beta=0.5, n=3), steps(8.0, 4.0, beta=0.5**3, n=1)
    (4.5, 4.5)

It also holds after Adam's bias correction, since (β^p)^t = β^(p·t). Its limits:

- gradients differ from batch to batch, and with the weights, which move in between. With noise, velocity differs even
  in expectation: the mean of p gradients has a smaller square than they have on average;
- it says nothing of the weights: p steps of the learning rate have become one, in which also weight decay acts once,
  warm-up and decay are sampled more coarsely, and LAMB's trust ratio and Adam's ε enter differently;
- a packing factor is seldom whole: between whole numbers β^p only interpolates. A pack more or less in a batch makes
  p vary from step to step; it is the mean.

Source: arXiv 2107.02027, section 3.3 and appendix D.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from brimful.errors import SettingError, shown
from brimful.plans import PackPlan
from brimful.validation import is_number, validate_capacity, whole_number

OPTIMIZERS = {"lamb": "pytorch_optimizer.Lamb", "adam": "torch.optim.Adam", "adamw": "torch.optim.AdamW"}
"""The optimizers that the recipes are for, and the class of each, which takes lr and betas."""

_FAR_OFF = Fraction(1, 4)
"""By how much sequences in a step may differ and still be about as many."""

_NEAR = Fraction(1, 100)
"""By how much they may differ for the sake of changing only one of accumulation and batch."""

_UNSEEN = Fraction(1, 20_000)
"""Below this a difference reads as 0.00%."""

_MOST_TRIED = 2**15
_MOST_FACTOR = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """What a training is set to, with or without packing.

    Args:
        batch_size: rows in a forward pass, ≥ 1: sequences before packing, packs after; of one device, or of all.
        learning_rate: > 0.
        total_steps: optimizer steps, ≥ 1.
        warmup_steps: those of them in which the learning rate rises, from 0 to total_steps.
        accumulation_steps: forward passes in an optimizer step, ≥ 1.
        betas: decay of momentum and of velocity in a step, each from 0 to 1, below 1.
        optimizer: a name from OPTIMIZERS.

    Raises:
        LengthError: batch_size, accumulation_steps or total_steps is no whole number ≥ 1.
        SettingError: anything else out of range.
    """

    batch_size: int
    learning_rate: float
    total_steps: int
    warmup_steps: int = 0
    accumulation_steps: int = 1
    betas: tuple[float, float] = (0.9, 0.999)
    optimizer: str = "adamw"

    def __post_init__(self) -> None:
        for name in ("batch_size", "accumulation_steps", "total_steps"):
            object.__setattr__(self, name, validate_capacity(getattr(self, name), name))
        if not is_number(self.learning_rate) or self.learning_rate <= 0:
            raise SettingError(f"learning_rate is a number above 0, such as 0.001, not {shown(self.learning_rate)}")
        object.__setattr__(self, "learning_rate", float(self.learning_rate))
        flat = isinstance(self.betas, tuple | list) or (isinstance(self.betas, np.ndarray) and self.betas.ndim == 1)
        pair = tuple(self.betas) if flat else ()
        if len(pair) != 2 or not all(is_number(beta) and 0 <= beta < 1 for beta in pair):
            raise SettingError(f"betas are two numbers from 0 to below 1, as in (0.9, 0.999), not {shown(self.betas)}")
        object.__setattr__(self, "betas", (float(pair[0]), float(pair[1])))
        warmup_steps = whole_number(self.warmup_steps, "warmup_steps", most=self.total_steps)
        object.__setattr__(self, "warmup_steps", warmup_steps)
        if not isinstance(self.optimizer, str) or self.optimizer not in OPTIMIZERS:
            raise SettingError(f"optimizer is one of {', '.join(OPTIMIZERS)}, not {shown(self.optimizer)}")

    @property
    def rows_per_step(self) -> int:
        """Rows in an optimizer step."""
        return self.batch_size * self.accumulation_steps

    def code(self) -> str:
        """The line of Python that makes this optimizer.

        Example:
            >>> TrainingSettings(32, 0.001, 7000).code()
            'torch.optim.AdamW(model.parameters(), lr=0.001, betas=(0.9, 0.999))'
        """
        betas = ", ".join(f"{beta:.10g}" for beta in self.betas)
        made = f"{OPTIMIZERS[self.optimizer]}(model.parameters(), lr={self.learning_rate!r}, betas=({betas}))"
        return f"{made}  # pip install pytorch-optimizer" if self.optimizer == "lamb" else made


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings for packed training, and what they mean beside those without packing.

    Args:
        name: "keep the effective batch" or "keep the compute batch".
        settings: what to train with; batch_size counts packs.
        sequences_per_step: in an optimizer step on packs, the mean.
        sequences_per_step_unpacked: in an optimizer step without packing.
        total_steps_unpacked: optimizer steps without packing, for as many sequences.
        notes: what to know about them, a sentence or two each.
    """

    name: str
    settings: TrainingSettings
    sequences_per_step: float
    sequences_per_step_unpacked: int
    total_steps_unpacked: int
    notes: tuple[str, ...]

    def figures(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON."""
        figures = asdict(self)
        return figures | {
            "settings": {**figures["settings"], "betas": list(self.settings.betas)},
            "code": self.settings.code(),
            "notes": list(self.notes),
        }


def keep_effective_batch(settings: TrainingSettings, packing_factor: float | Fraction | PackPlan) -> Recipe:
    """As many sequences in a step as before, on fewer packs: divide accumulation, batch or both.

        32 rows × 4 passes, factor 2    ->    32 packs × 2 passes: 128 sequences in a step, before and after
         8 rows × 3 passes, factor 6    ->     4 packs × 1 pass:    24 sequences in a step, before and after

    Learning curves over steps stay those without packing, and nothing needs tuning. The paper's choice where there is
    accumulation to divide; a small batch may leave the device idle.

    Args:
        settings: of the training without packing.
        packing_factor: sequences per pack, the mean, from 1 to 2^31 − 1; or the plan, which knows it exactly.

    Returns:
        Settings with less accumulation_steps, if that alone comes within 1% of the effective batch; otherwise with a
        smaller batch_size, if that alone does; otherwise with what comes nearest to it of all, and of equally near
        choices with the largest batch. The notes say how far off it is. Steps are recomputed, and rounded up, where the
        effective batch is another.

    Raises:
        SettingError: settings of another type, or a packing_factor that is no number or out of range.

    Example:
        >>> recipe = keep_effective_batch(TrainingSettings(32, 0.001, 7000, 700, accumulation_steps=4), 2)
        >>> recipe.settings.batch_size, recipe.settings.accumulation_steps, recipe.settings.total_steps
        (32, 2, 7000)
        >>> keep_effective_batch(TrainingSettings(10, 0.001, 7000), 4).notes[0]
        'A step sees 12 sequences instead of 10 (+20.00%): whole numbers come no nearer.'

    Cost: a look at each number of passes, or of packs if these are fewer. Where both are more than 32,768 only so many
    numbers of passes are tried, from the least; what is then nearest is within 0.01%.

    Source: arXiv 2107.02027, section 3.3, first remedy; the choice of what to divide is this project's.
    """
    factor = _factor(settings, packing_factor)
    after, reason = _divided(settings, factor)
    wanted, sequences = settings.rows_per_step, after.rows_per_step * factor
    off = sequences / wanted - 1
    notes = []
    if abs(off) >= _UNSEEN:
        seen = f"{float(sequences):,.6g}" if sequences < 10**6 else f"{float(sequences):,.0f}"
        notes.append(f"A step sees {seen} sequences instead of {wanted:,} ({float(off):+.2%}): {reason}.")
    elif off:
        notes.append(f"A step sees {wanted:,} sequences to within 0.01%.")
    if abs(off) > _FAR_OFF:
        notes.append(
            "That is not the effective batch any more: better keep the compute batch, or begin with more rows."
        )
    else:
        about = "about as many" if abs(off) >= _UNSEEN else "as many"
        notes.append(f"Betas and learning rate stay: a step is on {about} sequences as without packing.")
    return _recipe("keep the effective batch", settings, after, factor, notes)


def keep_compute_batch(settings: TrainingSettings, packing_factor: float | Fraction | PackPlan) -> Recipe:
    """As many packs in a step as there were rows, so packing_factor times the sequences; betas become β^factor.

        betas 0.9, 0.999, factor 2, 7000 steps    ->    betas 0.81, 0.998001, 3500 steps

    The hardware stays as busy as it was. A heuristic: see the theorem above and its limits.

    Args:
        settings: of the training without packing.
        packing_factor: sequences per pack, the mean, from 1 to 2^31 − 1; or the plan, which knows it exactly.

    Returns:
        Settings with other betas, and as few steps as see all sequences (rounded up). The learning rate stays: to scale
        it with the batch slowed convergence in the paper's experiments (section 4.2). In this project's own, on a
        small BERT from random weights, a scaled one did better, and β^factor no better than β (docs/experiments.md).

    Raises:
        SettingError: settings of another type, or a packing_factor that is no number or out of range.

    Example:
        >>> recipe = keep_compute_batch(TrainingSettings(32, 0.001, 7000, 700, betas=(0.5, 0.75)), 2)
        >>> recipe.settings.betas, recipe.settings.total_steps, recipe.settings.warmup_steps
        ((0.25, 0.5625), 3500, 350)

    Source: arXiv 2107.02027, section 3.3, second remedy, and appendix D.
    """
    factor = _factor(settings, packing_factor)
    beta1, beta2 = (beta ** float(factor) for beta in settings.betas)
    notes = [
        f"Betas are raised to the power of {float(factor):.6g}: averages over as many sequences as before. "
        "Exact for equal gradients and a whole factor only (theorem D.1); a heuristic otherwise.",
        "The learning rate is not scaled with the batch: that slowed convergence in the paper's experiments. On a "
        "small BERT from random weights a scaled one did better (docs/experiments.md); where you can, try both.",
    ]
    if settings.optimizer != "lamb":
        notes.append("The paper measured this with LAMB; the averages of Adam are the same, its step is not.")
    if settings.optimizer != "adam":
        notes.append("Weight decay acts once a step, so less often; where it matters, tune it.")
    notes.append("Compare runs by sequences seen, not by steps: each step sees more of them, and there are fewer.")
    return _recipe("keep the compute batch", settings, replace(settings, betas=(beta1, beta2)), factor, notes)


def recipes(settings: TrainingSettings, packing_factor: float | Fraction | PackPlan) -> tuple[Recipe, Recipe]:
    """Both recipes: keep the effective batch, keep the compute batch."""
    return keep_effective_batch(settings, packing_factor), keep_compute_batch(settings, packing_factor)


def _recipe(name: str, before: TrainingSettings, after: TrainingSettings, factor: Fraction, notes: list[str]) -> Recipe:
    """The recipe with as many steps as see what was seen before; rounded up, which the notes then say."""
    sequences = after.rows_per_step * factor
    exact = [steps * before.rows_per_step / sequences for steps in (before.warmup_steps, before.total_steps)]
    warmup, total = map(math.ceil, exact)
    if [warmup, total] != exact:
        notes.append("Steps are rounded up to whole ones, so up to one step of sequences more is seen.")
    settings = replace(after, warmup_steps=warmup, total_steps=total)
    return Recipe(name, settings, float(sequences), before.rows_per_step, before.total_steps, tuple(notes))


def _divided(settings: TrainingSettings, factor: Fraction) -> tuple[TrainingSettings, str]:
    """With fewer rows in a step, as near to so many times fewer as the rule wants; and why not nearer."""
    batch, accumulation, rows = settings.batch_size, settings.accumulation_steps, settings.rows_per_step / factor

    def off(choice: tuple[int, int]) -> Fraction:
        return abs(choice[0] * choice[1] - rows)

    nearest = _nearest_product(rows, batch, accumulation)
    chosen, reason = nearest, ""
    for choice, kept in (
        ((batch, _nearest(accumulation / factor)), "batch_size"),
        ((_nearest(batch / factor), accumulation), "accumulation_steps"),
    ):
        if off(choice) <= rows * _NEAR:
            chosen, reason = choice, f"near enough, and {kept} stays"
            break
    if off(chosen) <= off(nearest):
        reason = "whole numbers come no nearer"
    return replace(settings, batch_size=chosen[0], accumulation_steps=chosen[1]), reason


def _nearest(number: Fraction) -> int:
    """The nearest whole number ≥ 1; of two, the greater."""
    return max(1, math.floor(number + Fraction(1, 2)))


def _nearest_product(rows: Fraction, batch: int, accumulation: int) -> tuple[int, int]:
    """A batch and an accumulation, at most these, whose product is nearest to rows; of such, the largest batch.

    Of all with one accumulation a only the two batches around rows / a can be nearest. Fewer passes than the least here
    stay further below rows even with the full batch, and more than the most are further above. Batches likewise.
    """
    floor, top = math.floor(rows), math.ceil(rows)
    passes = range(max(1, floor // batch), min(accumulation, top) + 1)
    packs = range(max(1, floor // accumulation), min(batch, top) + 1)
    if len(passes) <= len(packs) or len(packs) > _MOST_TRIED:
        choices = [(b, a) for a in passes[:_MOST_TRIED] for b in _around(floor // a, batch)]
    else:
        choices = [(b, a) for b in packs for a in _around(floor // b, accumulation)]
    wanted, parts = rows.as_integer_ratio()
    return min(choices, key=lambda choice: (abs(choice[0] * choice[1] * parts - wanted), -choice[0], -choice[1]))


def _around(below: int, most: int) -> tuple[int, int]:
    """This number and the next, or what is nearest to them from 1 to `most`."""
    return min(max(below, 1), most), min(below + 1, most)


def _factor(settings: TrainingSettings, packing_factor: float | Fraction | PackPlan) -> Fraction:
    """Exactly what the plan has, or what a decimal number says as it is written: 1.1 is 11/10."""
    if not isinstance(settings, TrainingSettings):
        raise SettingError(
            f"settings are TrainingSettings, such as TrainingSettings(32, 0.001, 7000), not {shown(settings)}"
        )
    if isinstance(packing_factor, PackPlan):
        if not packing_factor.packs:
            raise SettingError("a plan without sequences has no packing factor; give it as a number")
        return Fraction(packing_factor.histogram.n_sequences, packing_factor.packs)
    if not is_number(packing_factor) or not 1 <= packing_factor <= _MOST_FACTOR:
        raise SettingError(
            f"packing_factor is a number from 1 to {_MOST_FACTOR}, the sequences per pack, or a plan; "
            f"not {shown(packing_factor)}"
        )
    return packing_factor if isinstance(packing_factor, Fraction) else Fraction(str(packing_factor))
