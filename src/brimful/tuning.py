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

from brimful.errors import SettingError, shown
from brimful.plans import PackPlan
from brimful.validation import is_number, validate_capacity, whole_number

OPTIMIZERS = {"lamb": "pytorch_optimizer.Lamb", "adam": "torch.optim.Adam", "adamw": "torch.optim.AdamW"}
"""The optimizers that the recipes are for, and the class of each, which takes lr and betas."""


_FAR_OFF = Fraction(1, 4)
"""By how much sequences in a step may differ and still be about as many."""


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
    optimizer: str = "lamb"

    def __post_init__(self) -> None:
        for name in ("batch_size", "accumulation_steps", "total_steps"):
            object.__setattr__(self, name, validate_capacity(getattr(self, name), name))
        if not is_number(self.learning_rate) or self.learning_rate <= 0:
            raise SettingError(f"learning_rate is a number above 0, such as 0.001, not {shown(self.learning_rate)}")
        object.__setattr__(self, "learning_rate", float(self.learning_rate))
        pair = tuple(self.betas) if isinstance(self.betas, tuple | list) else ()
        if len(pair) != 2 or not all(is_number(beta) and 0 <= beta < 1 for beta in pair):
            raise SettingError(f"betas are two numbers from 0 to below 1, as in (0.9, 0.999), not {shown(self.betas)}")
        object.__setattr__(self, "betas", (float(pair[0]), float(pair[1])))
        object.__setattr__(self, "warmup_steps", whole_number(self.warmup_steps, "warmup_steps"))
        if self.warmup_steps > self.total_steps:
            raise SettingError(f"warmup_steps are at most total_steps, {self.total_steps}, not {self.warmup_steps}")
        if self.optimizer not in OPTIMIZERS:
            raise SettingError(f"optimizer is one of {', '.join(OPTIMIZERS)}, not {shown(self.optimizer)}")

    @property
    def rows_per_step(self) -> int:
        """Rows in an optimizer step."""
        return self.batch_size * self.accumulation_steps

    def code(self) -> str:
        """The line of Python that makes this optimizer.

        Example:
            >>> TrainingSettings(32, 0.001, 7000, optimizer="adamw").code()
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


def keep_effective_batch(settings: TrainingSettings, packing_factor: float | PackPlan) -> Recipe:
    """As many sequences in a step as before, on fewer packs: divide accumulation or batch by the packing factor.

        32 rows × 4 passes, factor 2    ->    32 packs × 2 passes: 128 sequences in a step, before and after

    Learning curves over steps stay those without packing, and nothing needs tuning. The paper's choice where there is
    accumulation to divide; a small batch may leave the device idle.

    Args:
        settings: of the training without packing.
        packing_factor: sequences per pack, the mean, ≥ 1; or the plan, which knows it exactly.

    Returns:
        Settings with whichever of accumulation_steps and batch_size, divided by the factor and rounded, comes nearer to
        the effective batch (accumulation if both do); the notes say where neither divides. Steps are recomputed, and
        rounded up, where the effective batch is another.

    Raises:
        SettingError: a packing_factor below 1, or no finite number.

    Example:
        >>> recipe = keep_effective_batch(TrainingSettings(32, 0.001, 7000, 700, accumulation_steps=4), 2)
        >>> recipe.settings.batch_size, recipe.settings.accumulation_steps, recipe.settings.total_steps
        (32, 2, 7000)
        >>> keep_effective_batch(TrainingSettings(10, 0.001, 7000), 4).notes[0]
        'Neither batch_size 10 nor accumulation_steps 1 divides by 4: a step sees 12 sequences instead of 10 (+20.00%).'

    Source: arXiv 2107.02027, section 3.3, first remedy.
    """
    factor = _factor(packing_factor)
    wanted = settings.rows_per_step
    choices = (
        replace(settings, accumulation_steps=_divided(settings.accumulation_steps, factor)),
        replace(settings, batch_size=_divided(settings.batch_size, factor)),
    )
    best = min(choices, key=lambda choice: abs(choice.rows_per_step * factor - wanted))
    sequences = best.rows_per_step * factor
    off = sequences / wanted - 1
    notes = []
    if off:
        notes.append(
            f"Neither batch_size {settings.batch_size:,} nor accumulation_steps {settings.accumulation_steps:,} "
            f"divides by {float(factor):.6g}: a step sees {float(sequences):,.6g} sequences instead of {wanted:,} "
            f"({float(off):+.2%})."
        )
    if abs(off) > _FAR_OFF:
        notes.append(
            "That is not the effective batch any more: better keep the compute batch, or begin with more rows."
        )
    else:
        notes.append("Betas and learning rate stay: a step is on as many sequences as without packing, or about so.")
    return _recipe("keep the effective batch", settings, best, factor, notes)


def keep_compute_batch(settings: TrainingSettings, packing_factor: float | PackPlan) -> Recipe:
    """As many packs in a step as there were rows, so packing_factor times the sequences; betas become β^factor.

        betas 0.9, 0.999, factor 2, 7000 steps    ->    betas 0.81, 0.998001, 3500 steps

    The hardware stays as busy as it was. A heuristic: see the theorem above and its limits.

    Args:
        settings: of the training without packing.
        packing_factor: sequences per pack, the mean, ≥ 1; or the plan, which knows it exactly.

    Returns:
        Settings with other betas, and as few steps as see all sequences (rounded up). The learning rate stays: to scale
        it with the batch slowed convergence in the paper's experiments (section 4.2). In this project's own, on a
        small BERT from random weights, a scaled one did better, and β^factor no better than β (docs/experiments.md).

    Raises:
        SettingError: a packing_factor below 1, or no finite number.

    Example:
        >>> recipe = keep_compute_batch(TrainingSettings(32, 0.001, 7000, 700, betas=(0.5, 0.75)), 2)
        >>> recipe.settings.betas, recipe.settings.total_steps, recipe.settings.warmup_steps
        ((0.25, 0.5625), 3500, 350)

    Source: arXiv 2107.02027, section 3.3, second remedy, and appendix D.
    """
    factor = _factor(packing_factor)
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


def recipes(settings: TrainingSettings, packing_factor: float | PackPlan) -> tuple[Recipe, Recipe]:
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


def _divided(number: int, factor: Fraction) -> int:
    """The nearest whole number ≥ 1; of two, the greater."""
    return max(1, math.floor(number / factor + Fraction(1, 2)))


def _factor(packing_factor: float | PackPlan) -> Fraction:
    """Exactly what the plan has, or what a decimal number says as it is written: 1.1 is 11/10."""
    if isinstance(packing_factor, PackPlan):
        if not packing_factor.packs:
            raise SettingError("a plan without sequences has no packing factor; give it as a number")
        return Fraction(packing_factor.histogram.n_sequences, packing_factor.packs)
    if not is_number(packing_factor) or packing_factor < 1:
        raise SettingError(
            f"packing_factor is a number from 1 up, the sequences per pack, or a plan; not {shown(packing_factor)}"
        )
    return Fraction(str(packing_factor))
