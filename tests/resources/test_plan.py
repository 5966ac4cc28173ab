"""Plans for several resources: what exists is valid, what is written is read back equal, what is hostile is refused."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import BrimfulError, LengthError, PackPlan, PlanError
from brimful.patterns import Patterns
from brimful.resources import ResourceHistogram, ResourcePlan, plan_resources
from tests.resources.strategies import LIMITS, WAYS, columns, limits, problems

SIZES = {"tokens": [9, 2, 3, 7, 3], "images": [0, 2, 1, 0, 1]}


@pytest.fixture
def plan() -> ResourcePlan:
    return plan_resources(SIZES, {"tokens": 10, "images": 2}, 3)


@pytest.fixture
def load(tmp_path):
    """Write this text or these bytes as a plan file and load it; every refusal is one short line naming the file."""

    def load(content):
        path = tmp_path / "plan.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            return ResourcePlan.load(path)
        except PlanError as fault:
            text = str(fault)
            assert text.startswith(f"{path}: ")
            assert "\n" not in text
            assert len(text) < len(str(path)) + 400
            raise

    return load


# Values


def test_figures_are_their_definitions():
    plan = plan_resources({"tokens": [9, 2, 3, 7], "images": [0, 2, 1, 0]}, {"tokens": 10, "images": 2}, 3)
    figures = plan.figures()
    assert figures.pop("seconds") == plan.seconds >= 0
    assert figures == {
        "algorithm": "best_fit",
        "priority": "sum",
        "capacities": {"tokens": 10, "images": 2},
        "max_sequences": 3,
        "sequences": 4,
        "totals": {"tokens": 21, "images": 3},
        "packs": 3,
        "efficiency": {"tokens": 21 / 30, "images": 3 / 6},
        "packing_factor": 4 / 3,
        "speedup_limit": 40 / 21,
        "lower_bounds": {"tokens": 3, "images": 2},
        "lower_bound": 3,
        "gap": 0.0,
    }
    json.dumps(figures)


@pytest.mark.parametrize(
    ("sizes", "max_sequences", "packs", "kind"),
    [
        ({"tokens": [5, 5, 5, 5, 5], "images": [0, 1, 0, 0, 0]}, None, 3, "total for tokens"),
        ({"tokens": [1, 1, 1, 1, 1], "images": [9, 9, 9, 9, 9]}, None, 5, "total for images"),
        ({"tokens": [6, 6, 6, 1], "images": [0, 0, 0, 0]}, None, 3, "martello-toth for tokens"),
        ({"tokens": [1] * 9, "images": [0] * 9}, 2, 5, "max_sequences"),
        ({"tokens": [9, 9, 2, 2], "images": [2, 2, 9, 9]}, None, 4, "martello-toth for all resources"),
    ],
)
def test_the_bound_says_what_proves_it(sizes, max_sequences, packs, kind):
    plan = plan_resources(sizes, {"tokens": 10, "images": 9}, max_sequences)
    assert (plan.bound.packs, plan.bound.kind, plan.lower_bound) == (packs, kind, packs)


def test_a_bound_for_all_resources_needs_no_capacity_below_its_weights():
    """Capacities near 2^31 beside counts of 10^15: the weights become 0, and the bound gives way to the others."""
    sizes = np.array([[1, 2**31 - 1], [2, 1]])
    histogram = ResourceHistogram(("tokens", "bytes"), sizes, np.array([10**9, 10**15]))
    plan = plan_resources(histogram, {"tokens": 2, "bytes": 2**31 - 1})
    assert plan.packs == 10**15 + 10**9
    assert (plan.bound.packs, plan.bound.kind) == (10**15 + 10**9 // 2, "total for tokens")


def test_how_long_planning_took_is_no_part_of_the_plan(plan):
    fields = {"algorithm": "best_fit", "priority": "sum", "patterns": plan.patterns}
    slow = ResourcePlan(plan.histogram, (10, 2), 3, **fields, seconds=99.0)
    assert slow == plan
    assert hash(slow) == hash(plan)
    assert plan != ResourcePlan(plan.histogram, (11, 2), 3, **fields)
    assert plan != ResourcePlan(plan.histogram, (10, 2), None, **fields)
    assert plan != ResourcePlan(plan.histogram, (10, 2), 3, **{**fields, "priority": "max"})
    assert pickle.loads(pickle.dumps(plan)) == copy.deepcopy(plan) == plan  # noqa: S301


def test_plans_cannot_be_changed(plan):
    with pytest.raises(AttributeError):
        plan.capacities = (11, 2)
    with pytest.raises(ValueError, match="read-only"):
        plan.patterns.counts[0] = 2


def test_a_plan_says_what_it_is(plan):
    assert repr(plan) == (
        "ResourcePlan(best_fit, 5 sequences in 3 packs, efficiency 80.00% of tokens, 66.67% of images, "
        "at most 0.00% above the optimum)"
    )


@pytest.mark.parametrize(
    ("packs", "capacities", "max_sequences", "text"),
    [
        ([[5], [4], [2, 3], [1]], (10, 2), None, "a pattern names size 5 of a histogram that has 4"),
        ([[4], [3], [2], [1]], (10, 2), None, "patterns and histogram of the plan hold different sequences: of size 3"),
        ([[4], [3], [2, 2], [1, 1]], (10, 2), None, "patterns and histogram of the plan hold different sequences: of"),
        ([[4], [3], [2, 2], [1]], (8, 2), None, "pattern 2 holds 9 tokens, more than the capacity 8"),
        ([[4], [3], [1, 2, 2]], (10, 3), None, "pattern 2 holds 4 images, more than the capacity 3"),
        ([[4], [3], [1, 2, 2]], (10, 4), 2, "pattern 2 holds 3 sequences, more than max_sequences 2"),
        ([[4], [3], [2, 2], [1]], (10,), None, "a plan has a capacity for each of tokens, images, not (10,)"),
        ([[4], [3], [2, 2], [1]], [10, 2], None, "a plan has a capacity for each of tokens, images, not [10, 2]"),
    ],
)
def test_patterns_that_break_a_promise_make_no_plan(packs, capacities, max_sequences, text):
    rows = np.array([row for pack in packs for row in pack], int)
    patterns = Patterns.from_packs(rows, np.cumsum([0, *map(len, packs)]))
    histogram = ResourceHistogram.from_sizes(SIZES)
    assert histogram.sizes.tolist() == [[2, 2], [3, 1], [7, 0], [9, 0]]
    with pytest.raises(PlanError, match=f"^{re.escape(text)}"):
        ResourcePlan(histogram, capacities, max_sequences, "best_fit", "sum", patterns)


@pytest.mark.parametrize("bad", [0, -1, True, 10.5, "10", None, 2**31])
def test_a_plan_that_exists_has_capacities_that_are_some(plan, bad):
    with pytest.raises(LengthError, match=r"^the capacity of images is a whole number from 1 to"):
        ResourcePlan(plan.histogram, (10, bad), 3, "best_fit", "sum", plan.patterns)
    if bad is not None:
        with pytest.raises(LengthError, match=r"^max_sequences is a whole number from 1 to"):
            ResourcePlan(plan.histogram, (10, 2), bad, "best_fit", "sum", plan.patterns)


@pytest.mark.parametrize("bad", ["", "x" * 101, "best fit", 7, None])
def test_names_in_a_plan_are_plain(plan, bad):
    for names in ((bad, "sum"), ("best_fit", bad)):
        with pytest.raises(PlanError, match=r"^the (algorithm|priority) of a plan is a plain name, not "):
            ResourcePlan(plan.histogram, (10, 2), 3, names[0], names[1], plan.patterns)


# Files


@settings(max_examples=60)
@given(problem=problems(), max_sequences=st.sampled_from(LIMITS), way=st.sampled_from(WAYS))
def test_a_plan_file_is_read_back_equal(tmp_path_factory, problem, max_sequences, way):
    sizes, capacities = problem
    plan = plan_resources(columns(sizes, len(capacities)), limits(capacities), max_sequences, *way)
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan.save(path)
    again = ResourcePlan.load(str(path))
    assert again == plan
    assert again.figures() == plan.figures()
    assert ResourcePlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_patterns_in_a_file_point_into_its_sizes(plan):
    value = plan.to_json()
    sizes = np.array(value["histogram"]["sizes"]).reshape(-1, 2).tolist()
    patterns = value["patterns"]
    packs = [
        [size for row in range(*span) for size in [sizes[patterns["rows"][row]]] * patterns["copies"][row]]
        for span in zip(patterns["offsets"][:-1], patterns["offsets"][1:], strict=True)
    ]
    assert [tuple(map(tuple, pack)) for pack in packs] == [pattern for pattern, _ in plan.contents()]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "not a JSON file (Expecting value: line 1 column 1 (char 0))"),
        (b"\xff\xff", "not a JSON file ("),
        (b"[" * 100_000, "not a JSON file (maximum recursion depth exceeded"),
        (b"[]", 'a plan for resources is a JSON object with "format": "brimful-resource-plan"; this is something else'),
        (b'{"format": "brimful-plan"}', 'a plan for resources is a JSON object with "format": "brimful-resource-plan"'),
        (b'{"format": "brimful-resource-plan"}', "plan version None is not known here (only 1); plan again"),
    ],
)
def test_what_is_no_plan_file_is_refused(load, content, text):
    with pytest.raises(PlanError, match=f": {re.escape(text)}"):
        load(content)


def test_the_two_kinds_of_plan_are_not_mistaken_for_each_other(plan):
    with pytest.raises(PlanError, match='a plan is a JSON object with "format": "brimful-plan"; this is something'):
        PackPlan.from_json(plan.to_json())


def test_a_plan_file_cut_anywhere_is_refused(load, plan):
    whole = json.dumps(plan.to_json())
    for end in range(len(whole)):
        with pytest.raises(PlanError):
            load(whole[:end])
    assert load(whole) == plan


def test_a_file_too_large_for_a_plan_is_not_read(tmp_path, monkeypatch, plan):
    path = tmp_path / "plan.json"
    plan.save(path)
    monkeypatch.setattr("brimful.untrusted._MAX_PLAN_BYTES", 2**20)
    assert ResourcePlan.load(path) == plan
    path.write_text(path.read_text() + " " * 2**20)
    with pytest.raises(PlanError, match=f"^{re.escape(str(path))}: larger than 1 MiB; is this a plan\\?$"):
        ResourcePlan.load(path)


KEYS: list[tuple[str, ...]] = [
    ("format",),
    ("version",),
    ("algorithm",),
    ("priority",),
    ("capacities",),
    ("max_sequences",),
    ("seconds",),
    ("histogram",),
    ("histogram", "names"),
    ("histogram", "sizes"),
    ("histogram", "counts"),
    ("patterns",),
    ("patterns", "rows"),
    ("patterns", "copies"),
    ("patterns", "offsets"),
    ("patterns", "counts"),
]


def test_the_keys_under_test_are_those_of_the_file(plan):
    value = plan.to_json()
    inner: list[tuple[str, ...]] = [(group, name) for group in ("histogram", "patterns") for name in value[group]]
    assert sorted(KEYS) == sorted([(name,) for name in value] + inner)


@pytest.mark.parametrize("keys", KEYS, ids=".".join)
def test_every_key_is_needed(load, plan, keys):
    value = plan.to_json()
    *outer, last = keys
    del (value[outer[0]] if outer else value)[last]
    with pytest.raises(PlanError):
        load(json.dumps(value))


@pytest.mark.parametrize(
    "wrong", ["te xt", "{}", {}, [], [[1]], ["1"], [1.0], [True], [None], -1.5, True, [2**62], [-(2**62)]]
)
@pytest.mark.parametrize("keys", KEYS, ids=".".join)
def test_values_of_a_wrong_type_are_refused(load, plan, keys, wrong):
    value = plan.to_json()
    *outer, last = keys
    (value[outer[0]] if outer else value)[last] = wrong
    with pytest.raises(PlanError):
        load(json.dumps(value))


@pytest.mark.parametrize(
    ("keys", "wrong", "text"),
    [
        (("version",), 2, "plan version 2 is not known here (only 1); plan again"),
        (("seconds",), float("nan"), "the seconds of a plan are a number from 0 up, not nan"),
        (("capacities",), [10], "a plan has a capacity for each of tokens, images, not (10,)"),
        (("capacities",), [9, 2], "pattern 0 holds 10 tokens, more than the capacity 9"),
        (("capacities",), [10, 0], "not a valid plan: the capacity of images is a whole number from 1 to 2147483647"),
        (("max_sequences",), 1, "pattern 0 holds 2 sequences, more than max_sequences 1"),
        (("max_sequences",), 3.0, "not a valid plan: max_sequences is a whole number from 1 to 2147483647, not 3.0"),
        (("histogram", "names"), [], "histogram.names of a plan is a list of names"),
        (("histogram", "names"), ["a"], "histogram.sizes of a plan has 1 numbers for each count, row after row"),
        (("histogram", "names"), ["a", "a"], "not a valid plan: a resource is named once, but 'a' stands twice"),
        (
            ("histogram", "names"),
            ["a", [1]],
            "not a valid plan: a resource has a plain name, up to 100",
        ),
        (("histogram", "counts"), [1, 1, 1, 1], "patterns and histogram of the plan hold different sequences: of size"),
        (("histogram", "counts"), [1, 2, 1, 0], "not a valid plan: a count is at least 1, but item 3 is 0"),
        (("histogram", "counts"), [1, 2, 1, 2**61], "not a valid plan: a histogram holds fewer than 2^62 tokens"),
        (("patterns", "rows"), [2, 1, 3, 1, -1], "the lengths of patterns are at least 1, not 0"),
        (("patterns", "counts"), [1, 1, 2], "patterns and histogram of the plan hold different sequences: of size"),
        (("patterns", "copies"), [2**61] * 5, "patterns hold fewer than 2^62 tokens"),
        (("patterns", "offsets"), [0, 2, 3, 6], "the offsets of patterns run from 0 to the number of runs"),
    ],
)
def test_each_broken_promise_is_named(load, keys, wrong, text):
    """The plan 7 3 | 9 | 3 2 of tokens, with one value replaced."""
    value = written()
    *outer, last = keys
    (value[outer[0]] if outer else value)[last] = wrong
    with pytest.raises(PlanError, match=f": {re.escape(text)}"):
        load(json.dumps(value))


@pytest.mark.parametrize("equal_to_one", [True, 1.0])
@pytest.mark.parametrize(
    "keys", [key for key in KEYS if key[-1] in {"sizes", "rows", "copies", "counts"}], ids=".".join
)
def test_what_only_python_takes_for_the_number_one_is_refused(load, keys, equal_to_one):
    """`true` and `1.0` equal 1 in Python; another reader of the file would see something else."""
    value = written()
    numbers = value[keys[0]][keys[1]]
    numbers[numbers.index(1)] = equal_to_one
    with pytest.raises(PlanError, match=rf"{'.'.join(keys)} of a plan is a list of whole numbers below 2\^62$"):
        load(json.dumps(value))


def test_what_is_broken_above_is_whole_before(load):
    assert load(json.dumps(written())).packs == 3


def written() -> dict[str, Any]:
    return {
        "format": "brimful-resource-plan",
        "version": 1,
        "algorithm": "by-hand",
        "priority": "none",
        "capacities": [10, 3],
        "max_sequences": 3,
        "seconds": 0,
        "histogram": {"names": ["tokens", "images"], "sizes": [2, 2, 3, 1, 7, 0, 9, 0], "counts": [1, 2, 1, 1]},
        "patterns": {"rows": [2, 1, 3, 1, 0], "copies": [1] * 5, "offsets": [0, 2, 3, 5], "counts": [1, 1, 1]},
    }


def test_every_refusal_is_one_that_a_program_can_catch():
    assert issubclass(PlanError, BrimfulError)
