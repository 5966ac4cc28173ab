"""Plans: what exists is valid, what is written is read back equal, and what is hostile is refused by name."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import BrimfulError, LengthHistogram, PackPlan, PlanError
from brimful.patterns import Patterns
from tests.planning.strategies import LIMITS, QUICK, problems
from tests.reference.packing import multiset

LENGTHS = [9, 2, 3, 7, 3]


@pytest.fixture
def plan():
    return brimful.plan(LENGTHS, 10, 3)


@pytest.fixture
def load(tmp_path):
    """Write this text or these bytes as a plan file and load it; every refusal is one short line naming the file."""

    def load(content):
        path = tmp_path / "plan.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        try:
            return PackPlan.load(path)
        except PlanError as fault:
            text = str(fault)
            assert text.startswith(f"{path}: ")
            assert "\n" not in text
            assert len(text) < len(str(path)) + 400
            raise

    return load


# Values


def test_figures_are_their_definitions():
    plan = brimful.plan([9, 2, 3, 7], max_length=10, max_sequences=3)
    figures = plan.figures()
    assert figures.pop("seconds") == plan.seconds >= 0
    assert figures == {
        "algorithm": "lpfhp",
        "max_length": 10,
        "max_sequences": 3,
        "align": 1,
        "sequences": 4,
        "tokens": 21,
        "aligned_tokens": 21,
        "packs": 3,
        "efficiency": 21 / 30,
        "packing_factor": 4 / 3,
        "speedup_limit": 40 / 21,
        "lower_bound": 3,
        "gap": 0.0,
    }
    json.dumps(figures)


def test_the_gap_is_what_lies_above_the_bound():
    """Ten sequences of 2 in packs of 4, alone: ten packs where five would do."""
    plan = brimful.plan([2] * 10, 4, algorithm="none")
    assert (plan.packs, plan.lower_bound, plan.gap, plan.efficiency) == (10, 5, 1.0, 0.5)
    assert (
        repr(plan)
        == "PackPlan(none, 10 sequences in 10 packs of 4, efficiency 50.00%, at most 100.00% above the optimum)"
    )


def test_the_bound_of_a_plan_knows_max_sequences():
    plan = brimful.plan([1] * 9, 10, 2)
    assert (plan.bound.kind, plan.bound.packs, plan.lower_bound) == ("max_sequences", 5, 5)


def test_how_long_planning_took_is_no_part_of_the_plan(plan):
    slow = PackPlan(plan.histogram, 10, 3, "lpfhp", plan.patterns, seconds=99.0)
    assert slow == plan
    assert hash(slow) == hash(plan)
    assert plan != PackPlan(plan.histogram, 11, 3, "lpfhp", plan.patterns)
    assert plan != PackPlan(plan.histogram, 10, None, "lpfhp", plan.patterns)
    assert plan != PackPlan(plan.histogram, 10, 3, "spfhp", plan.patterns)


def test_plans_cannot_be_changed(plan):
    with pytest.raises(AttributeError):
        plan.max_length = 11
    with pytest.raises(ValueError, match="read-only"):
        plan.patterns.counts[0] = 2
    with pytest.raises(ValueError, match="read-only"):
        plan.histogram.counts[0] = 2


@pytest.mark.parametrize(
    ("packs", "max_length", "max_sequences", "text"),
    [
        ([[9], [7, 3], [3, 2]], 9, None, "pattern 2 holds 10 tokens, more than max_length 9"),
        ([[9], [7, 2], [3, 3, 2]], 10, 2, "pattern 2 holds 3 sequences, more than max_sequences 2"),
        (
            [[9], [7, 3], [3]],
            10,
            None,
            "patterns and histogram of the plan hold different sequences: of length ",
        ),
        (
            [[9], [7, 3], [4, 1]],
            10,
            None,
            "patterns and histogram of the plan hold different sequences: of length ",
        ),
        (
            [[9], [7, 3], [3, 2], [1]],
            10,
            None,
            "patterns and histogram of the plan hold different sequences: of length ",
        ),
        (
            [[9], [7, 2], [2, 3]],
            10,
            None,
            "patterns and histogram of the plan hold different sequences: of length ",
        ),
        (
            [],
            10,
            None,
            "patterns and histogram of the plan hold different sequences: of length ",
        ),
    ],
)
def test_patterns_that_break_a_promise_make_no_plan(packs, max_length, max_sequences, text):
    lengths = np.array([length for pack in packs for length in pack], int)
    patterns = Patterns.from_packs(lengths, np.cumsum([0, *map(len, packs)]))
    histogram = LengthHistogram.from_lengths(LENGTHS)
    with pytest.raises(PlanError, match=f"^{re.escape(text)}"):
        PackPlan(histogram, max_length, max_sequences, "lpfhp", patterns)


@pytest.mark.parametrize("bad", [0, -1, True, 10.5, "10", None])
def test_a_plan_that_exists_has_a_capacity_that_is_one(bad):
    """The promise of the class, however the plan was made: even one of no packs has a max_length of 1 or more."""
    histogram = LengthHistogram.from_lengths([])
    patterns = brimful.plan([], 10).patterns
    with pytest.raises(BrimfulError):
        PackPlan(histogram, bad, None, "lpfhp", patterns)
    if bad is not None:
        with pytest.raises(BrimfulError):
            PackPlan(histogram, 10, bad, "lpfhp", patterns)


def test_two_histograms_that_look_alike_are_not_said_to_be_the_same():
    """Equal sums and ends: the message must still tell them apart."""
    patterns = brimful.plan([1, 3, 3, 5], 10).patterns
    histogram = LengthHistogram.from_lengths([1, 2, 4, 5])
    with pytest.raises(PlanError) as caught:
        PackPlan(histogram, 10, None, "lpfhp", patterns)
    assert str(caught.value).endswith("of length 2 there are 0 in the one and 1 in the other")


# Files


@settings(max_examples=60)
@given(problem=problems(), max_sequences=st.sampled_from(LIMITS), algorithm=st.sampled_from(sorted(QUICK)))
def test_a_plan_file_is_read_back_equal(tmp_path_factory, problem, max_sequences, algorithm):
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan.save(path)
    again = PackPlan.load(str(path))
    assert again == plan
    assert hash(again) == hash(plan)
    assert again.figures() == plan.figures()
    assert PackPlan.from_json(plan.to_json()) == plan
    assert path.read_text().endswith("}\n")


def test_a_plan_without_limit_stays_without_limit():
    plan = brimful.plan([1, 2], 4)
    assert PackPlan.from_json(json.loads(json.dumps(plan.to_json()))).max_sequences is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "not a JSON file (Expecting value: line 1 column 1 (char 0))"),
        (b"length,count\n2,1\n", "not a JSON file ("),
        (b"\x89PNG\r\n\x1a\n\x00", "not a JSON file ("),
        (b"\xff\xff\xff\xff", "not a JSON file ("),
        (b"[" * 100_000, "not a JSON file (maximum recursion depth exceeded"),
        (b'{"a":' * 100_000, "not a JSON file (maximum recursion depth exceeded"),
        (b'{"format": "brimful-plan", "version": ' + b"9" * 5000 + b"}", "not a JSON file (Exceeds the limit"),
        (b"null", 'a plan is a JSON object with "format": "brimful-plan"; this is something else'),
        (b"[]", 'a plan is a JSON object with "format": "brimful-plan"; this is something else'),
        (b'"brimful-plan"', 'a plan is a JSON object with "format": "brimful-plan"; this is something else'),
        (b"{}", 'a plan is a JSON object with "format": "brimful-plan"; this is something else'),
        (b'{"format": "brimful-plan"}', "plan version None is not known here (only 1); plan again"),
    ],
)
def test_what_is_no_plan_file_is_refused(load, content, text):
    with pytest.raises(PlanError, match=f": {re.escape(text)}"):
        load(content)


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
    assert PackPlan.load(path) == plan
    path.write_text(path.read_text() + " " * 2**20)
    with pytest.raises(PlanError, match=f"^{re.escape(str(path))}: larger than 1 MiB; is this a plan\\?$"):
        PackPlan.load(path)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        PackPlan.load(tmp_path / "none.json")


KEYS: list[tuple[str, ...]] = [
    ("format",),
    ("version",),
    ("algorithm",),
    ("max_length",),
    ("max_sequences",),
    ("align",),
    ("seconds",),
    ("prices",),
    ("histogram",),
    ("histogram", "lengths"),
    ("histogram", "counts"),
    ("patterns",),
    ("patterns", "lengths"),
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
    """Also max_sequences: a plan that loses its limit on the way would be believed to have none."""
    value = plan.to_json()
    *outer, last = keys
    del (value[outer[0]] if outer else value)[last]
    with pytest.raises(PlanError):
        load(json.dumps(value))


@pytest.mark.parametrize(
    "wrong", ["text", "{}", {}, [[1]], ["1"], [1.0], [True], [None], 1.5, True, [2**62], [-(2**62)]]
)
@pytest.mark.parametrize("keys", [keys for keys in KEYS if keys != ("algorithm",)], ids=".".join)
def test_values_of_a_wrong_type_are_refused(load, plan, keys, wrong):
    if keys == ("seconds",) and wrong == 1.5:
        wrong = -1.5
    value = plan.to_json()
    *outer, last = keys
    (value[outer[0]] if outer else value)[last] = wrong
    with pytest.raises(PlanError):
        load(json.dumps(value))


@pytest.mark.parametrize(
    ("keys", "wrong", "text"),
    [
        (("version",), 2, "plan version 2 is not known here (only 1); plan again"),
        (("version",), "1", "plan version '1' is not known here (only 1); plan again"),
        (("algorithm",), "", "the algorithm of a plan is a plain name, not ''"),
        (("algorithm",), "x" * 101, "the algorithm of a plan is a plain name, not 'xxx"),
        (("algorithm",), 7, "the algorithm of a plan is a plain name, not 7"),
        (("seconds",), -1, "the seconds of a plan are a number from 0 up, not -1"),
        (("seconds",), float("nan"), "the seconds of a plan are a number from 0 up, not nan"),
        (("seconds",), float("inf"), "the seconds of a plan are a number from 0 up, not inf"),
        (("seconds",), True, "the seconds of a plan are a number from 0 up, not True"),
        (("max_length",), 0, "not a valid plan: max_length is a whole number from 1 to 2147483647, not 0"),
        (("max_length",), 9, "pattern 0 holds 10 tokens, more than max_length 9"),
        (("max_length",), 10.0, "not a valid plan: max_length is a whole number from 1 to 2147483647, not 10.0"),
        (("max_length",), True, "not a valid plan: max_length is a whole number from 1 to 2147483647, not True"),
        (("max_length",), float("inf"), "not a valid plan: max_length is a whole number from 1 to 2147483647, not inf"),
        (("max_sequences",), 1, "pattern 0 holds 2 sequences, more than max_sequences 1"),
        (
            ("max_sequences",),
            False,
            "not a valid plan: max_sequences is a whole number from 1 to 2147483647, not False",
        ),
        (
            ("histogram", "lengths"),
            [2, 3, 9, 7],
            "not a valid plan: the lengths of a histogram increase strictly, but 9",
        ),
        (
            ("histogram", "counts"),
            [1, 2, 1, 2],
            "patterns and histogram of the plan hold different sequences: of length ",
        ),
        (("histogram", "counts"), [1, 2, 1, -1], "not a valid plan: a count is at least 1, but item 3 is -1"),
        (("histogram", "counts"), [1, 2, 1, 2**61], "not a valid plan: a histogram holds fewer than 2^62 tokens"),
        (("histogram", "counts"), [1, 2, 1, 2**62], "histogram.counts of a plan is a list of whole numbers below 2^62"),
        (("histogram", "counts"), [1, 2, 1], "not a valid plan: a histogram has one count per length, not 3 for 4"),
        (("patterns", "counts"), [1, 1, 2], "patterns and histogram of the plan hold different sequences: of length "),
        (("patterns", "counts"), [1, 1, -1], "the counts of patterns are at least 1, not -1"),
        (("patterns", "counts"), [2**61] * 3, "patterns hold fewer than 2^62 tokens"),
        (("patterns", "copies"), [2**61] * 5, "patterns hold fewer than 2^62 tokens"),
        (("patterns", "offsets"), [0, 4, 2, 5], "a pattern holds at least one sequence; leave empty patterns out"),
        (("patterns", "offsets"), [0, 2, 3, 6], "the offsets of patterns run from 0 to the number of runs"),
        (("patterns", "offsets"), [0, -(2**61), 2**61, 5], "a pattern holds at least one sequence; leave empty"),
    ],
)
def test_each_broken_promise_is_named(load, keys, wrong, text):
    """The plan 7 3 | 9 | 3 2 of 10 slots, with one value replaced."""
    value = brimful.plan(LENGTHS, 10, 3).to_json()
    assert value["patterns"]["lengths"] == [7, 3, 9, 3, 2]
    *outer, last = keys
    (value[outer[0]] if outer else value)[last] = wrong
    with pytest.raises(PlanError, match=f": {re.escape(text)}"):
        load(json.dumps(value))


@pytest.mark.parametrize("equal_to_one", [True, 1.0])
@pytest.mark.parametrize(
    "keys", [("patterns", "copies"), ("patterns", "counts"), ("histogram", "counts")], ids=".".join
)
def test_what_only_python_takes_for_the_number_one_is_refused(load, plan, keys, equal_to_one):
    """`true` and `1.0` equal 1 in Python; another reader of the file would see something else."""
    value = plan.to_json()
    numbers = value[keys[0]][keys[1]]
    numbers[numbers.index(1)] = equal_to_one
    with pytest.raises(PlanError, match=rf"{'.'.join(keys)} of a plan is a list of whole numbers below 2\^62$"):
        load(json.dumps(value))


def test_counts_that_would_overflow_are_refused(load):
    """Eight patterns of 2^61 packs: their exact sum is no int64."""
    value = brimful.plan(list(range(1, 9)), 8, algorithm="none").to_json()
    value["histogram"]["counts"] = value["patterns"]["counts"] = [2**61] * 8
    with pytest.raises(PlanError, match=r"fewer than 2\^62 tokens"):
        load(json.dumps(value))
    value["histogram"]["counts"] = [1] * 8
    with pytest.raises(PlanError, match=r"fewer than 2\^62 tokens"):
        load(json.dumps(value))


@pytest.mark.parametrize("key", ["version", "algorithm", "max_length", "max_sequences", "seconds"])
@pytest.mark.parametrize("wrong", [10**4000, -(10**400), ["x" * 50_000], {"x": list(range(10_000))}], ids=type)
def test_huge_values_are_refused_in_one_short_line(load, plan, key, wrong):
    with pytest.raises(PlanError):
        load(json.dumps({**plan.to_json(), key: wrong}))


def test_deep_nesting_below_the_limit_of_the_parser_is_refused_too(load, plan):
    text = json.dumps({**plan.to_json(), "version": "HERE"})
    for depth in (100, 300, 600, 900, 930, 960, 990):
        for key in ('"HERE"', '"lpfhp"'):
            with pytest.raises(PlanError):
                load(text.replace(key, "[" * depth + "]" * depth))


@pytest.mark.parametrize("name", ["lp\nfhp", "\x1b[2Jlpfhp", "\ud800", "lp\u2028fhp"], ids=ascii)
def test_a_name_that_would_break_or_repaint_the_line_is_no_algorithm(load, plan, name):
    """The name is printed in every table and log line; a file from elsewhere must not write into the terminal."""
    with pytest.raises(PlanError):
        load(json.dumps({**plan.to_json(), "algorithm": name}))


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all numbers in a JSON value."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in numbers_in(item, (*path, key))]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in numbers_in(item, (*path, index))]
    return [path] if isinstance(value, int | float) else []


PLANS = [
    brimful.plan([9, 2, 3, 7, 3], 10, 3).to_json(),
    brimful.plan([1] * 30 + [2] * 20 + [5, 6, 7], 16, 8).to_json(),
    brimful.plan([1] * 30 + [2] * 20 + [5, 6, 7], 16, algorithm="spfhp").to_json(),
]
numbers = (
    st.integers(-2, 40)
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([2**61, 2**62 - 1, 2**62, 2**63 - 1, 10**400, -(10**400)])
    | st.floats()
    | st.booleans()
)


@settings(max_examples=500)
@given(data=st.data(), number=numbers)
def test_a_plan_with_one_number_changed_is_refused_or_keeps_every_promise(tmp_path_factory, data, number):
    value = copy.deepcopy(data.draw(st.sampled_from(PLANS)))
    *outer, last = data.draw(st.sampled_from(numbers_in(value)))
    part = value
    for key in outer:
        part = part[key]
    part[last] = number
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_text(json.dumps(value))
    try:
        plan = PackPlan.load(path)
    except PlanError as fault:
        text = str(fault)
        assert text.startswith(f"{path}: ")
        assert "\n" not in text
        return
    packs = Counter(dict(plan.patterns))
    assert all(sum(pack) <= plan.max_length for pack in packs)
    assert plan.max_sequences is None or all(len(pack) <= plan.max_sequences for pack in packs)
    held: Counter[int] = Counter()
    for pack, count in packs.items():
        for length in pack:
            held[length] += count
    assert held == dict(zip(value["histogram"]["lengths"], value["histogram"]["counts"], strict=True))
    assert plan.lower_bound <= plan.packs == packs.total()
    assert packs == multiset(packs.elements())


@pytest.mark.parametrize("change", [lambda prices: prices["values"].pop(), lambda prices: prices.update(grid=2)])
def test_prices_that_are_for_another_histogram_are_refused(change, tmp_path):
    plan = brimful.plan([6, 6, 6, 4, 3, 3, 5], max_length=11, algorithm="optimal")
    value = plan.to_json()
    value["prices"] = value["prices"] or {"grid": 1, "values": [0, 0, 0, 2**40]}
    assert PackPlan.from_json(value).bound.packs <= plan.packs
    change(value["prices"])
    with pytest.raises(PlanError, match="prices are one for each of"):
        PackPlan.from_json(value)


def test_prices_whose_proof_would_take_minutes_are_refused():
    value = brimful.plan([2**22 - 1, 5], max_length=2**23, algorithm="lpfhp").to_json()
    with pytest.raises(PlanError, match="a proof with prices on a grid of 1 takes too long here; use a coarser grid"):
        PackPlan.from_json(value | {"prices": {"grid": 1, "values": [0, 2**39]}})
    assert PackPlan.from_json(value | {"prices": {"grid": 2**12, "values": [0, 2**39]}}).lower_bound == 1
