"""Hyperparameters under packing: the theorem, the arithmetic of both recipes, and real optimizers that obey them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import pytorch_optimizer
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import brimful
from brimful.errors import LengthError, SettingError
from brimful.tuning import OPTIMIZERS, TrainingSettings, keep_compute_batch, keep_effective_batch, recipes
from tests.reference.tuning import averages, steps_that_see

betas = st.tuples(*[st.fractions(0, Fraction(9999, 10000), max_denominator=10000)] * 2)
gradients = st.lists(st.fractions(-3, 3, max_denominator=16), min_size=1, max_size=4)
settings_ = st.builds(
    TrainingSettings,
    batch_size=st.integers(1, 200),
    learning_rate=st.just(0.001),
    total_steps=st.integers(50, 300),
    warmup_steps=st.integers(0, 50),
    accumulation_steps=st.integers(1, 20),
)
factors = st.integers(1, 12) | st.decimals(1, 12, places=2).map(float)


@given(gradients, betas, st.integers(1, 9))
def test_theorem_steps_with_equal_gradients_are_one_step_with_the_power_of_beta(gradients, betas, p):
    """Each gradient p times over, at β; each once, at β^p: momentum and velocity are the same fractions."""
    slow = averages([gradient for gradient in gradients for _ in range(p)], betas)
    fast = averages(gradients, (betas[0] ** p, betas[1] ** p))
    assert slow == fast


@given(gradients, betas, st.integers(1, 9))
def test_theorem_holds_with_the_betas_of_the_recipe_and_after_bias_correction(gradients, betas, p):
    before = TrainingSettings(32, 0.001, 1000, betas=(float(betas[0]), float(betas[1])))
    after = keep_compute_batch(before, p).settings
    exact = averages([gradient for gradient in gradients for _ in range(p)], fractions_of(before.betas))
    packed = averages(gradients, fractions_of(after.betas))
    for one, other, slow, fast in zip(exact, packed, before.betas, after.betas, strict=True):
        assert float(other) == pytest.approx(float(one), rel=1e-9, abs=1e-12)
        corrected = float(one) / (1 - slow ** (p * len(gradients))), float(other) / (1 - fast ** len(gradients))
        assert corrected[1] == pytest.approx(corrected[0], rel=1e-9, abs=1e-12)


def fractions_of(betas):
    return Fraction(betas[0]), Fraction(betas[1])


def test_theorem_needs_equal_gradients():
    """With opposite gradients the packed step sees their mean, 0, and its velocity vanishes."""
    half = (Fraction(1, 2), Fraction(1, 2))
    assert averages([Fraction(1), Fraction(-1)], half)[1] == Fraction(3, 4)
    assert averages([Fraction(0)], (half[0] ** 2, half[1] ** 2))[1] == 0


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("p", [2, 3])
def test_real_optimizers_arrive_at_the_same_averages(optimizer, p):
    """The printed lines, run: 4 gradients, each p times without packing, and each once with it."""
    before = TrainingSettings(32, 0.01, 1000, betas=(0.81, 0.9), optimizer=optimizer)
    after = keep_compute_batch(before, p).settings
    random = torch.Generator().manual_seed(0)
    gradients = [torch.randn(5, generator=random, dtype=torch.float64) for _ in range(4)]
    unpacked = state_after(before.code(), [gradient for gradient in gradients for _ in range(p)])
    packed = state_after(after.code(), gradients)
    wrong = state_after(before.code(), gradients)
    for name in ("exp_avg", "exp_avg_sq"):
        torch.testing.assert_close(packed[name], unpacked[name], rtol=1e-8, atol=1e-12)
        assert not torch.allclose(wrong[name], unpacked[name], rtol=1e-2), "betas left as they were fall behind"


def state_after(code, gradients):
    """What the optimizer that a line of code makes remembers after a step with each gradient."""
    model = torch.nn.ParameterList([torch.ones(5, dtype=torch.float64)])
    optimizer = eval(code, {"torch": torch, "pytorch_optimizer": pytorch_optimizer, "model": model})  # noqa: S307
    for gradient in gradients:
        model[0].grad = gradient.clone()
        optimizer.step()
    return optimizer.state[model[0]]


@given(settings_, factors)
def test_as_many_sequences_are_seen_and_not_a_step_more_than_needed(settings, factor):
    for recipe in recipes(settings, factor):
        after = recipe.settings
        per_step = after.rows_per_step * Fraction(str(factor))
        assert recipe.sequences_per_step == pytest.approx(float(per_step))
        assert recipe.sequences_per_step_unpacked == settings.batch_size * settings.accumulation_steps
        assert recipe.total_steps_unpacked == settings.total_steps
        assert after.total_steps == steps_that_see(settings.total_steps * settings.rows_per_step, per_step)
        assert after.warmup_steps == steps_that_see(settings.warmup_steps * settings.rows_per_step, per_step)
        assert (after.learning_rate, after.optimizer) == (settings.learning_rate, settings.optimizer)


small = st.integers(1, 14)
ratios = st.integers(1, 12) | st.fractions(1, 14, max_denominator=20)


@given(small, small, ratios)
@example(4, 4, 8)
@example(8, 3, 6)
@example(2, 2, 16)
@example(1, 2, Fraction(4, 3))
def test_effective_batch_is_what_trying_every_choice_finds(batch, accumulation, factor):
    """Accumulation alone, batch alone, both: the first that comes within 1%, or the nearest of all."""
    wanted = batch * accumulation
    alone = [(batch, n) for n in range(1, accumulation + 1)], [(n, accumulation) for n in range(1, batch + 1)]
    every = [(one, other) for one in range(1, batch + 1) for other in range(1, accumulation + 1)]

    def off(choice):
        return abs(choice[0] * choice[1] * factor - wanted)

    nearest = min(map(off, every))
    largest = max(choice for choice in every if off(choice) == nearest)
    near = [max(c for c in choices if off(c) == min(map(off, choices))) for choices in alone]
    expected = next((choice for choice in near if off(choice) * 100 <= wanted), largest)

    recipe = keep_effective_batch(TrainingSettings(batch, 0.001, 100, accumulation_steps=accumulation), factor)
    assert (recipe.settings.batch_size, recipe.settings.accumulation_steps) == expected
    assert recipe.settings.betas == (0.9, 0.999)
    assert recipe.notes[0].startswith("A step sees") == (off(expected) != 0)
    assert ("come no nearer" in recipe.notes[0]) == (off(expected) == nearest != 0)


@given(st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1), st.floats(1, 2**31 - 1) | factors)
@example(2**31 - 1, 2**31 - 1, 1.37)
@example(2**31 - 1, 2**31 - 1, 2**31 - 1)
@example(1, 2**31 - 1, 7.7)
@example(40_000, 2**31 - 1, 2**31 - 2)
def test_effective_batch_of_huge_numbers_is_near(batch, accumulation, factor):
    """No worse than one of the two divided; where both could take more than 32,768 values, within 0.01%."""
    after = keep_effective_batch(TrainingSettings(batch, 0.001, 100, accumulation_steps=accumulation), factor).settings
    assert after.batch_size <= batch
    assert after.accumulation_steps <= accumulation
    wanted, exact = batch * accumulation, Fraction(str(factor))
    rows = wanted / exact
    alone = batch * max(1, round(accumulation / exact)), accumulation * max(1, round(batch / exact))
    off = abs(after.rows_per_step - rows)
    assert off * 100 <= rows or off <= min(abs(one - rows) for one in alone)
    if min(batch, accumulation, rows) > 2**20:
        assert off * 100 <= rows


@pytest.mark.parametrize(
    ("batch", "accumulation", "factor", "made", "note"),
    [
        (32, 1, Fraction(32005, 16000), (16, 1), "A step sees 32.005 sequences instead of 32 (+0.02%): whole"),
        (32, 1, Fraction(32001, 16000), (16, 1), "A step sees 32 sequences to within 0.01%."),
        (7, 126, 2.5, (7, 50), "A step sees 875 sequences instead of 882 (-0.79%): near enough, and batch_size stays."),
        (400, 3, 2.51, (159, 3), "A step sees 1,197.27 sequences instead of 1,200 (-0.23%): near enough, and accumul"),
        (2000, 1000, 3.003, (2000, 333), "A step sees 2,000,000 sequences to within 0.01%."),
        (2000, 1001, 3, (2000, 334), "A step sees 2,004,000 sequences instead of 2,002,000 (+0.10%): near enough"),
    ],
)
def test_effective_batch_that_is_not_exact_is_told_as_it_is(batch, accumulation, factor, made, note):
    recipe = keep_effective_batch(TrainingSettings(batch, 0.001, 700, accumulation_steps=accumulation), factor)
    assert (recipe.settings.batch_size, recipe.settings.accumulation_steps) == made
    assert recipe.notes[0].startswith(note)


def test_effective_batch_by_hand():
    """The paper's way: a factor of 2 halves the accumulation."""
    made = keep_effective_batch(TrainingSettings(32, 0.001, 7000, 700, accumulation_steps=4), 2)
    assert made.settings == TrainingSettings(32, 0.001, 7000, 700, accumulation_steps=2)
    assert keep_effective_batch(TrainingSettings(32, 0.001, 7000), 2).settings.batch_size == 16
    assert keep_effective_batch(TrainingSettings(32, 0.001, 7000, accumulation_steps=3), 2).settings.batch_size == 16
    made = keep_effective_batch(TrainingSettings(2, 0.001, 800, accumulation_steps=8), 1.5)
    assert (made.settings.batch_size, made.settings.accumulation_steps, made.settings.total_steps) == (2, 5, 854)
    assert made.notes[0] == "A step sees 15 sequences instead of 16 (-6.25%): whole numbers come no nearer."
    assert made.notes[1].startswith("Betas and learning rate stay")
    assert any("rounded up" in note for note in made.notes)


@pytest.mark.parametrize(
    ("batch_size", "factor", "kept"), [(4, 5, True), (5, 4, True), (1, 10, False), (4, 16.6, False)]
)
def test_a_batch_that_cannot_be_divided_is_not_called_kept(batch_size, factor, kept):
    """At most a quarter off is about as many: 5 for 4, 4 for 5; 10 for 1 is not."""
    notes = keep_effective_batch(TrainingSettings(batch_size, 0.001, 700), factor).notes
    assert any("learning rate stay" in note for note in notes) == kept
    assert any("not the effective batch any more" in note for note in notes) != kept


def test_compute_batch_by_hand():
    before = TrainingSettings(32, 0.001, 7001, 701, accumulation_steps=4, betas=(0.81, 0.9))
    made = keep_compute_batch(before, 2)
    assert made.settings.rows_per_step == 128
    assert made.sequences_per_step == 256
    assert made.settings.betas == pytest.approx((0.6561, 0.81))
    assert (made.settings.total_steps, made.settings.warmup_steps) == (3501, 351)
    assert any("rounded up" in note for note in made.notes)
    assert not any("rounded up" in note for note in keep_compute_batch(TrainingSettings(32, 0.001, 7000), 2).notes)
    assert any("learning rate is not scaled" in note for note in made.notes)


def test_each_optimizer_is_told_what_concerns_it():
    def notes(optimizer):
        return " ".join(keep_compute_batch(TrainingSettings(32, 0.001, 100, optimizer=optimizer), 2).notes)

    assert "measured this with LAMB" not in notes("lamb")
    assert "measured this with LAMB" in notes("adamw")
    assert "Weight decay" in notes("adamw")
    assert "Weight decay" not in notes("adam")


def test_decimal_factors_are_what_they_are_written_as():
    """1.1 as a float is a little more than 11/10; steps are not rounded by that."""
    assert keep_compute_batch(TrainingSettings(1, 0.001, 1100), 1.1).settings.total_steps == 1000
    assert keep_compute_batch(TrainingSettings(1, 0.001, 2100), 2.1).settings.total_steps == 1000


def test_a_plan_knows_its_factor_exactly():
    plan = brimful.plan([5, 5, 4, 4, 4, 1, 1], max_length=10)
    assert (plan.histogram.n_sequences, plan.packs) == (7, 3)
    settings = TrainingSettings(1, 0.001, 7000)
    assert keep_compute_batch(settings, plan).settings.total_steps == 3000
    assert keep_compute_batch(settings, plan).sequences_per_step == pytest.approx(7 / 3)


def test_figures_are_plain_values():
    figures = keep_compute_batch(TrainingSettings(32, 0.001, 7000, optimizer="lamb"), 2).figures()
    assert figures["settings"]["betas"] == [pytest.approx(0.81), pytest.approx(0.998001)]
    line = "pytorch_optimizer.Lamb(model.parameters(), lr=0.001, betas=(0.81, 0.998001))"
    assert figures["code"] == f"{line}  # pip install pytorch-optimizer"


def test_a_fraction_is_taken_exactly():
    assert keep_compute_batch(TrainingSettings(1, 0.001, 7000), Fraction(7, 3)).settings.total_steps == 3000
    assert keep_compute_batch(TrainingSettings(1, 0.001, 7000), np.float64(1.75)).settings.total_steps == 4000
    long = Fraction(2 * 10**5000 + 1, 10**5000)
    assert keep_compute_batch(TrainingSettings(1, 0.001, 100), long).settings.total_steps == 50


@pytest.mark.parametrize(
    "bad", [0, 0.99, -1, True, "2", None, float("nan"), float("inf"), 2**31, 1e18, 1e308, 10**400, [2]]
)
def test_factors_are_checked(bad):
    for recipe in (keep_effective_batch, keep_compute_batch):
        with pytest.raises(SettingError, match=r"^packing_factor is a number from 1 to 2147483647, .* or a plan; not "):
            recipe(TrainingSettings(1, 0.001, 10), bad)


@pytest.mark.parametrize("bad", [{"batch_size": 32}, None, 32])
def test_settings_of_another_type_are_refused(bad):
    for recipe in (keep_effective_batch, keep_compute_batch):
        with pytest.raises(SettingError, match=r"^settings are TrainingSettings, such as .*, not "):
            recipe(bad, 2)


def test_adamw_is_what_most_train_with():
    assert TrainingSettings(1, 0.001, 10).optimizer == "adamw"


def test_betas_may_be_an_array():
    array: Any = np.array([0.5, 0.75])
    betas = TrainingSettings(1, 0.001, 10, betas=array).betas
    assert betas == (0.5, 0.75)
    assert [type(beta) for beta in betas] == [float, float]


def test_a_plan_of_nothing_has_no_factor():
    with pytest.raises(SettingError, match="a plan without sequences has no packing factor"):
        keep_compute_batch(TrainingSettings(1, 0.001, 10), brimful.plan([], 8))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"learning_rate": 0}, r"^learning_rate is a number above 0, such as 0\.001, not 0$"),
        ({"learning_rate": float("inf")}, "learning_rate is a number above 0"),
        ({"betas": (0.9, 1)}, r"^betas are two numbers from 0 to below 1, as in \(0\.9, 0\.999\), not \(0\.9, 1\)$"),
        ({"betas": (0.9,)}, "betas are two numbers"),
        ({"betas": 0.9}, "betas are two numbers"),
        ({"betas": (float("nan"), 0.9)}, "betas are two numbers"),
        ({"betas": np.array(0.9)}, "betas are two numbers"),
        ({"betas": np.array([[0.9, 0.999]])}, "betas are two numbers"),
        ({"betas": np.array(["0.9", "0.999"])}, "betas are two numbers"),
        ({"betas": {0.9, 0.999}}, "betas are two numbers"),
        ({"warmup_steps": 11}, r"^warmup_steps is a whole number from 0 to 10, not 11$"),
        ({"warmup_steps": -1}, r"^warmup_steps is a whole number from 0 to 10, not -1$"),
        ({"warmup_steps": 1.0}, "warmup_steps is a whole number"),
        ({"warmup_steps": True}, "warmup_steps is a whole number"),
        ({"optimizer": "sgd"}, r"^optimizer is one of lamb, adam, adamw, not 'sgd'$"),
        ({"optimizer": ["adam"]}, r"^optimizer is one of lamb, adam, adamw, not \['adam'\]$"),
    ],
)
def test_settings_are_checked(changed, error):
    with pytest.raises(SettingError, match=error):
        TrainingSettings(**{"batch_size": 1, "learning_rate": 0.001, "total_steps": 10, **changed})


@pytest.mark.parametrize("name", ["batch_size", "accumulation_steps", "total_steps"])
@pytest.mark.parametrize("bad", [0, 1.5, True])
def test_numbers_of_rows_and_steps_are_checked(name, bad):
    with pytest.raises(LengthError, match=f"^{name} is a whole number from 1 to 2147483647, not "):
        TrainingSettings(**{"batch_size": 1, "learning_rate": 0.001, "total_steps": 10, name: bad})
