"""Expected speed-ups: by hand, over every possible draw, against random draws, and the paper's figure 5."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import brimful
from brimful.errors import LengthError, SettingError
from brimful.simulate import DEVICES, METHODS, CostModel, simulate
from brimful.simulate.waiting import batch_cost, expected_groups, slowest_of
from tests.reference import simulation as by_steps

MAX_LENGTH = 12
LINEAR, QUADRATIC = CostModel(), CostModel(quadratic_share=0.4)

few_lengths = st.lists(st.integers(1, MAX_LENGTH), min_size=1, max_size=4)


def plan_of(lengths, copies=1, max_length=MAX_LENGTH):
    """A plan of so many sequences of each length; as many as it takes to make an epoch much longer than a step."""
    return brimful.plan(brimful.LengthHistogram.from_lengths(list(lengths) * copies), max_length)


def cost_of(costs, max_length=MAX_LENGTH):
    """What a sequence costs, written out."""
    q = costs.quadratic_share
    return lambda length: (1 - q) * (length / max_length) + q * (length / max_length) ** 2


def times(result, method, costs=LINEAR):
    """What a sequence takes, in rows of padding."""
    return [(1 + costs.step_overhead) / speedup for speedup in result.speedups[method]]


def test_two_lengths_and_two_devices_by_hand():
    """Lengths 1 and 3, equally likely, in batches of 2, where padding computes 6 tokens on each device.

    Without padding a device needs 2, 4, 4 or 6. The slower of two needs 2 in 1 of 16 cases, 4 in 8, 6 in 7: 4.75.
    Padded to the longest of a step, all four sequences are short in 1 of 16 cases.
    """
    result = simulate(plan_of([1, 3], 3000, max_length=3), [1, 2], batch_size=2, mega_batch_mult=1)
    expected = {
        "packing": [1.5, 1.5],  # 3000 packs of a 3, 1000 of three 1s
        "packing_varlen": [1.5, 1.5],
        "unpadding": [6 / 4, 6 / 4.75],
        "sorting": [1.5, 1.5],  # half of the steps cost a third
        "length_grouping": [1 / (3 / 4 + 1 / 4 / 3), 1 / (15 / 16 + 1 / 16 / 3)],
        "token_budget": [1.5, 1.5],  # two 3s or six 1s fill every batch
    }
    assert set(expected) == set(METHODS)
    for method, speedups in expected.items():
        assert result.speedups[method] == pytest.approx(speedups, rel=1e-12), method
    assert result.error < 1e-12


def test_attention_by_hand():
    """All of the cost quadratic: a 1 costs a ninth of a 3, and three 1s in a pack, attended apart, three ninths."""
    costs = CostModel(quadratic_share=1)
    result = simulate(plan_of([1, 3], 3000, max_length=3), [1, 2], 1, costs, mega_batch_mult=1)
    assert result.speedups["packing"] == (1.5, 1.5)
    on_one, on_two = 3 / 4 * 1 + 1 / 4 / 3, 15 / 16 * 1 + 1 / 16 / 3  # one pack in four is of 1s
    assert times(result, "packing_varlen") == pytest.approx([on_one / 1.5, on_two / 1.5], rel=1e-4)
    assert times(result, "unpadding") == pytest.approx([5 / 9, 3 / 4 + 1 / 4 / 9], rel=1e-4)
    assert times(result, "sorting") == pytest.approx([5 / 9, 5 / 9])
    # A budget of 3 tokens takes one 3, which costs 1, or three 1s, which cost a third together.
    assert times(result, "token_budget") == pytest.approx([(3 / 4 + 1 / 12) / 1.5, (15 / 16 + 1 / 48) / 1.5])
    assert 0 < result.error < 1e-3


def test_overheads_by_hand():
    costs = CostModel(step_overhead=0.5, packing_overhead=0.25, unpadding_overhead=0.2, recompilation=10)
    result = simulate(plan_of([1, 3], 3000, max_length=3), [2], 2, costs, mega_batch_mult=1)
    per_step = 10 * 4 / 6000  # 1500 steps of 4 sequences; one shape beyond the first
    assert times(result, "packing", costs) == pytest.approx([(1.25 + 0.5) / 1.5])
    assert times(result, "packing_varlen", costs) == pytest.approx([(1.25 + 0.5) / 1.5])
    assert times(result, "unpadding", costs) == pytest.approx([4.75 / 6 * 1.2 + 0.5])
    assert times(result, "sorting", costs) == pytest.approx([2 / 3 + 0.5 + per_step])
    assert times(result, "length_grouping", costs) == pytest.approx([15 / 16 + 1 / 48 + 0.5 + per_step])
    assert times(result, "token_budget", costs) == pytest.approx([(1 + 0.5) * 2 / 3 + per_step])


@pytest.mark.parametrize("costs", [LINEAR, QUADRATIC])
@settings(max_examples=25)
@given(lengths=few_lengths, batch_size=st.integers(1, 3), devices=st.integers(1, 2))
def test_waiting_is_the_mean_over_every_draw(costs, lengths, batch_size, devices):
    result = simulate(plan_of(lengths, 200), [devices], batch_size, costs)
    step = by_steps.expected_unpadded_step(lengths, cost_of(costs), batch_size, devices)
    (time,) = times(result, "unpadding")
    assert time == pytest.approx(step / batch_size, rel=result.error + 1e-9)


@pytest.mark.parametrize("costs", [LINEAR, QUADRATIC])
@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(1, MAX_LENGTH), min_size=1, max_size=3),
    sizes=st.sampled_from([(1, 1, 1), (2, 1, 3), (1, 2, 3), (3, 1, 2), (2, 2, 1), (2, 2, 2), (1, 1, 7)]),
)
def test_grouping_is_the_mean_over_every_draw(costs, lengths, sizes):
    batch_size, devices, steps = sizes
    result = simulate(plan_of(lengths, 200), [devices], batch_size, costs, mega_batch_mult=steps)
    row = by_steps.expected_grouped_row(lengths, cost_of(costs), batch_size * devices, steps)
    assert times(result, "length_grouping") == pytest.approx([row], rel=1e-9)


@settings(max_examples=40)
@given(lengths=st.lists(st.integers(1, MAX_LENGTH), min_size=1, max_size=60), size=st.integers(1, 7))
def test_sorting_is_what_sorting_does(lengths, size):
    costs = CostModel(quadratic_share=0.4, recompilation=3)
    result = simulate(plan_of(lengths), [size], 2, costs)
    row, shapes = by_steps.sorted_rows(lengths, cost_of(costs), 2 * size)
    assert times(result, "sorting") == pytest.approx([row + 3 * (shapes - 1) * 2 * size / len(lengths)])


@settings(max_examples=20)
@example(lengths=[4, 4, 4, 4], batch_size=1)  # the last batch is of another shape, though not of another length
@given(lengths=st.lists(st.integers(1, MAX_LENGTH), min_size=1, max_size=12), batch_size=st.integers(1, 4))
def test_token_budget_is_what_cutting_one_by_one_does(lengths, batch_size):
    costs = CostModel(quadratic_share=0.4, recompilation=3)
    batches = by_steps.budget_batches(lengths, batch_size * MAX_LENGTH)
    each = [len(batch) * cost_of(costs)(batch[0]) for batch in batches]
    shapes = len({(len(batch), batch[0]) for batch in batches})
    for devices in (1, 2, 3):
        (time,) = times(simulate(plan_of(lengths), [devices], batch_size, costs), "token_budget")
        waiting = by_steps.expected_maximum(each, devices) * len(batches) / len(lengths)
        compiled = max(0, min(shapes, len(batches) / devices) - 1)  # at most once a step
        assert time == pytest.approx(waiting + 3 * compiled * batch_size * devices / len(lengths))


@pytest.mark.parametrize("costs", [LINEAR, CostModel(quadratic_share=0.08)])
@pytest.mark.parametrize(("batch_size", "devices"), [(1, 8), (7, 64), (21, 100)])
def test_random_steps_agree(histograms, costs, batch_size, devices):
    histogram = brimful.LengthHistogram.from_csv(histograms / "wikipedia_bert_512.csv")
    plan = brimful.plan(histogram, 512)
    result = simulate(plan, [devices], batch_size, costs)
    each = [cost_of(costs, 512)(length) for length in histogram.lengths.tolist()]
    mean, error = by_steps.sampled_steps(
        each, (histogram.counts / histogram.n_sequences).tolist(), batch_size, devices, n=2000, seed=1
    )
    assert times(result, "unpadding")[0] * batch_size == pytest.approx(mean, abs=5 * error + result.error * mean)
    q = costs.quadratic_share
    packs = [1 - q + q * sum((length / 512) ** 2 for length in lengths) for lengths, _ in plan.patterns]
    shares = [count / plan.packs for _, count in plan.patterns]
    mean, error = by_steps.sampled_steps(packs, shares, batch_size, devices, n=2000, seed=2)
    packed = times(result, "packing_varlen")[0] * plan.packing_factor * batch_size
    assert packed == pytest.approx(mean, abs=5 * error + result.error * mean + 1e-9)


def test_shapes_of_grouping_are_estimated_well():
    """20 megabatches of 4 steps: their steps have some 20 to 30 of 40 lengths for their longest."""
    plan = plan_of(range(1, 41), 8, max_length=40)
    free, compiled = (simulate(plan, [1], 4, each, mega_batch_mult=4) for each in (LINEAR, CostModel(recompilation=1)))
    extra = times(compiled, "length_grouping")[0] - times(free, "length_grouping")[0]
    shapes = 1 + extra * 320 / 4
    sampled = by_steps.sampled_shapes(range(1, 41), 4, steps=4, megabatches=20, n=500, seed=3)
    assert 20 < sampled < 35, "not all shapes occur"
    assert shapes == pytest.approx(sampled, rel=0.03)


@pytest.mark.parametrize(("steps", "most"), [(400, 50), (40, 10), (39, 9), (7, 1), (3, 1)])
def test_an_epoch_is_four_megabatches_or_more(steps, most):
    """As samplers have it: of an epoch of 40 steps, at most 10 are sorted together."""
    plan = plan_of(range(1, 12), steps)
    grouped = {
        mult: simulate(plan, [11], 1, mega_batch_mult=mult).speedups["length_grouping"]
        for mult in (50, most, most - 1 or 1)
    }
    assert grouped[50] == grouped[most]
    assert most == 1 or grouped[most] > grouped[most - 1]


def test_figure_5_of_the_paper(histograms):
    """From about 2 on one device to about 1.3 on 2048, while packing stays: batches of 21 do that, 16 and 32 do not."""
    plan = brimful.plan(brimful.LengthHistogram.from_csv(histograms / "wikipedia_bert_512.csv"), 512)
    result = simulate(plan, batch_size=21, mega_batch_mult=1)
    unpadding = result.speedups["unpadding"]
    assert result.devices == DEVICES
    assert (DEVICES[0], DEVICES[-1]) == (1, 2048)
    assert unpadding[0] == pytest.approx(2.0, abs=0.005)
    assert unpadding[-1] == pytest.approx(1.3, abs=0.005)
    assert all(more < fewer for fewer, more in pairwise(unpadding))
    assert set(result.speedups["packing"]) == {plan.packing_factor}
    assert plan.packing_factor == pytest.approx(2.0, abs=0.001)
    others = {size: simulate(plan, [2048], size, mega_batch_mult=1) for size in (16, 20, 22, 32)}
    last = {size: other.speedups["unpadding"][0] for size, other in others.items()}
    assert last[16] == pytest.approx(1.24, abs=0.005)
    assert last[32] == pytest.approx(1.39, abs=0.005)
    assert last[20] < 1.295 < 1.305 < last[22]


@pytest.mark.parametrize("name", ["squad_1_1_bert_384", "azure_llm2023_conv_total"])
def test_curves_of_other_data_have_the_shape_that_waiting_gives_them(histograms, name):
    """More devices wait longer, larger batches less; nothing is slower than padding where nothing is compiled."""
    histogram = brimful.LengthHistogram.from_csv(histograms / f"{name}.csv")
    plan = brimful.plan(histogram, 384 if name.startswith("squad") else 16_384)
    small, large = (simulate(plan, [1, 8, 64, 2**20], size) for size in (4, 16))
    for result in (small, large):
        for method, speedups in result.speedups.items():
            assert min(speedups) >= 1 - 1e-9, method
        unpadding = result.speedups["unpadding"]
        assert list(unpadding) == sorted(unpadding, reverse=True)
        assert unpadding[0] == pytest.approx(histogram.speedup_limit(plan.max_length), rel=1e-9)
    assert all(a < b for a, b in zip(small.speedups["unpadding"][1:], large.speedups["unpadding"][1:], strict=True))


def test_where_all_are_of_one_length_nobody_waits():
    full = simulate(plan_of([MAX_LENGTH], 500), [1, 64], 4, QUADRATIC)
    half = simulate(plan_of([MAX_LENGTH // 2], 512), [1, 64], 4, LINEAR)
    for method in METHODS:
        assert full.speedups[method] == pytest.approx((1, 1)), method
        assert half.speedups[method] == pytest.approx((2, 2)), method


@given(
    costs=st.lists(st.floats(0.01, 1), min_size=1, max_size=4),
    batch_size=st.integers(1, 5),
    cells=st.integers(1, 40),
    devices=st.integers(1, 300),
)
def test_a_grid_adds_nothing_on_average_and_at_most_its_bound(costs, batch_size, cells, devices):
    """Beside the sums of all batches; the k-th of n is the greatest with (k / n)^devices − ((k − 1) / n)^devices."""
    cost = batch_cost(np.array(costs), np.full(len(costs), 1 / len(costs)), batch_size, cells)
    sums = sorted(sum(batch) for batch in product(costs, repeat=batch_size))
    below = [(k / len(sums)) ** devices for k in range(len(sums) + 1)]
    exact = sum(each * (below[k + 1] - below[k]) for k, each in enumerate(sums))
    assert -1e-9 <= cost.slowest_of(devices) - exact <= cost.error(devices) + 1e-9
    assert cost.slowest_of(1) == pytest.approx(batch_size * sum(costs) / len(costs))


@pytest.mark.parametrize(
    ("lengths", "max_length", "batch_size", "devices", "slowest"),
    [
        ([5, 8], 4096, 8192, 1, 6.5),
        ([5, 8], 131_072, 512, 1, 6.5),
        ([5, 5], 131_072, 16, 2**20, 5),
        ([1, 2], 131_072, 16, 2**20, 2),
        ([1, 100_000], 131_072, 8192, 1, 50_000.5),
    ],
)
def test_short_sequences_of_huge_batches_and_rows_keep_their_cost(lengths, max_length, batch_size, devices, slowest):
    """A million devices: one has the worst of all batches, of 16 twos, once in 2^16 draws."""
    result = simulate(plan_of(lengths, 3000, max_length), [devices], batch_size)
    assert result.speedups["unpadding"][0] == pytest.approx(max_length / slowest, rel=1e-6)
    assert result.error < 1e-3


def test_a_rare_length_is_not_lost_among_a_million_devices():
    """One in a million is long: a step on n devices has one with 1 − (1 − 1e-6)^n."""
    histogram = brimful.LengthHistogram(np.array([1, 4]), np.array([999_999, 1]))
    result = simulate(brimful.plan(histogram, 4), [1, 1000, 2**20], batch_size=1, mega_batch_mult=1)
    chances = [-np.expm1(n * np.log1p(-1e-6)) for n in (1, 1000, 2**20)]
    expected = [chance + (1 - chance) / 4 for chance in chances]
    assert times(result, "unpadding") == pytest.approx(expected, rel=1e-9)
    assert times(result, "length_grouping") == pytest.approx(expected, rel=1e-9)


def test_groups_that_sequences_reach_into_are_those_of_a_binomial():
    exact = brute_groups(12, 5, 0.3)
    assert expected_groups(12, 5, 0.3) == pytest.approx(exact, rel=1e-12)
    assert expected_groups(10**6, 1, 0.25) == pytest.approx(250_000, rel=1e-12)
    assert expected_groups(10**6, 10**6, 1e-12) == pytest.approx(1e-6, rel=1e-5)
    assert (expected_groups(7, 2, 0.0), expected_groups(7, 2, 1.0)) == (0.0, 4.0)


def brute_groups(n, size, chance):
    """Coin by coin: how likely each number of heads is."""
    heads = np.array([1.0])
    for _ in range(n):
        heads = np.convolve(heads, [1 - chance, chance])
    return float(sum(p * -(-k // size) for k, p in enumerate(heads)))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.integers(1, 4))
def test_slowest_of_is_the_mean_over_every_draw(values, devices):
    shares = np.full(len(values), 1 / len(values))
    expected = by_steps.expected_maximum(values, devices)
    assert slowest_of(np.array(values, float), shares, devices) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_figures_are_plain_values():
    figures = simulate(plan_of([1, 2, 3], 10), [1, 4], 2, CostModel(step_overhead=1)).figures()
    assert list(figures["speedups"]) == list(METHODS)
    assert all(type(each) is float for speedups in figures["speedups"].values() for each in speedups)
    assert figures["devices"] == [1, 4]
    assert figures["costs"]["step_overhead"] == 1.0
    assert figures["speedup_limit"] == 6.0
    assert figures["plan"]["sequences"] == 30


@pytest.mark.parametrize("name", ["step_overhead", "packing_overhead", "unpadding_overhead", "recompilation"])
@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf"), "1", True, None])
def test_costs_are_checked(name, bad):
    with pytest.raises(SettingError, match=rf"^{name} is a number from 0 to 1,000,000,000, such as 0\.05, not "):
        CostModel(**{name: bad})


def test_a_share_is_no_more_than_all():
    with pytest.raises(SettingError, match=r"^quadratic_share is a number from 0 to 1, such as 0\.05, not 1\.5$"):
        CostModel(quadratic_share=1.5)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"devices": [0]}, "^the number of devices is a whole number from 1 to 1048576, not 0$"),
        ({"devices": [2**20 + 1]}, "^the number of devices is a whole number from 1 to 1048576, not 1048577$"),
        ({"batch_size": 0}, "^batch_size is a whole number"),
        ({"batch_size": 8193}, "^batch_size is a whole number from 1 to 8192, not 8193$"),
        ({"mega_batch_mult": 0}, "^mega_batch_mult is a whole number"),
        ({"plan": plan_of([])}, "^there are no sequences, so there is nothing to train on$"),
    ],
)
def test_numbers_are_checked(changed, error):
    with pytest.raises(LengthError, match=error):
        simulate(**{"plan": plan_of([1]), "devices": [1], **changed})


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"devices": []}, r"^devices are one number or more, such as \[1, 8, 64\], not \(\)$"),
        ({"devices": 8}, r"^devices are one number or more, such as \[1, 8, 64\], not 8$"),
        ({"costs": 0.3}, r"^costs are a CostModel, such as CostModel\(quadratic_share=0\.1\), not 0\.3$"),
        ({"plan": brimful.LengthHistogram.from_lengths([1])}, r"^a plan is what brimful\.plan gives, not LengthHist"),
    ],
)
def test_what_is_something_else_is_refused(changed, error):
    with pytest.raises(SettingError, match=error):
        simulate(**{"plan": plan_of([1]), **changed})
