"""Other domains: molecules are read as chemists do; packs of graphs teach what single graphs do; packing is faster."""

import gzip
import hashlib
import json
import re
import sys
import time
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brimful
from brimful import LengthHistogram, PackAssignment
from brimful.errors import DataError
from brimful.resources import plan_resources
from experiments import molecules as reading
from experiments import other_domains, page
from experiments.commands import wrapped
from experiments.corpora.packages import Package, UnreachableError
from experiments.graph_stack import Graphs, graph_steps, network
from experiments.molecules import MOLSETS, molecules, read_smiles
from experiments.other_domains import (
    Domain,
    Settings,
    audio_lengths,
    graph_row,
    headline,
    main,
    measure,
    promises,
    section,
    sequence_rows,
)

TINY = Settings(sequences=32, hidden_size=32, layers=1, turns=3)

COUNTED = {  # atoms and bonds, hydrogens left out, counted on paper
    "C": (1, 0),  # methane
    "O=C=O": (3, 2),
    "CCO": (3, 2),  # ethanol
    "CC(C)(C)C": (5, 4),  # neopentane
    "C1CC1": (3, 3),  # cyclopropane
    "c1ccccc1": (6, 6),  # benzene
    "C1=CC=CC=C1": (6, 6),
    "c1ccc2ccccc2c1": (10, 11),  # naphthalene
    "c1ccccc1-c1ccccc1": (12, 13),  # biphenyl: the ring number is used twice
    "C%12CC%12": (3, 3),
    "C=1CCCCC=1": (6, 6),
    "c1cc[nH]c1": (5, 5),  # pyrrole
    "BrC(Cl)(F)I": (5, 4),
    "CC(=O)Oc1ccccc1C(=O)O": (13, 13),  # aspirin
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C": (14, 15),  # caffeine
    "C[C@@H](N)C(=O)O": (6, 5),  # alanine
    "OC[C@H]1OC(O)[C@H](O)[C@@H](O)[C@@H]1O": (12, 12),  # glucose
    "C12C3C4C1C5C2C3C45": (8, 12),  # cubane
    "[Na+].[Cl-]": (2, 0),
    "C1.C1": (2, 1),  # ethane, after all
    "[13CH3:1][CH-]/C=C\\[Cu+2]": (5, 4),
    "[H]C": (2, 1),  # a hydrogen that is written is an atom
    "CCCS(=O)c1ccc2[nH]c(=NC(=O)OC)[nH]c2c1": (19, 20),  # the first of MOSES
}

DRUGS = ["CCO", "CC(=O)Oc1ccccc1C(=O)O", "c1ccccc1", "C", "CC(C)(C)C", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "OCC", "C1CC1"]


@pytest.fixture(scope="module", autouse=True)
def processor_time():
    """Time is that of the processor's clock, which does not run while others have the processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.turns.perf_counter", time.process_time)
        yield


# Molecules


@pytest.mark.parametrize(("smiles", "size"), COUNTED.items())
def test_atoms_and_bonds_are_those_counted_on_paper(smiles, size):
    molecule = read_smiles(smiles)
    assert (len(molecule.atoms), len(molecule.bonds)) == size


def test_symbols_and_ends_of_bonds():
    molecule = read_smiles("Clc1[nH]cc(C)1")
    assert molecule.atoms == ("Cl", "c", "n", "c", "c", "C")
    assert molecule.bonds == ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4))


@st.composite
def spelled(draw):
    """A random graph, as a tree and rings, with its atoms numbered as they are written; and its SMILES."""
    n = draw(st.integers(1, 14))
    parents = [draw(st.integers(0, at - 1)) for at in range(1, n)]
    children = {at: [child for child in range(1, n) if parents[child - 1] == at] for at in range(n)}
    order, waiting = [], [0]
    while waiting:
        order.append(at := waiting.pop())
        waiting += reversed(children[at])
    place = {at: number for number, at in enumerate(order)}
    bonds = {tuple(sorted((place[at], place[child]))) for at in children for child in children[at]}
    pairs = [(first, second) for first in range(n) for second in range(first + 1, n) if (first, second) not in bonds]
    rings = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)) if pairs else []
    signs = st.sampled_from(["", "-", "=", "#", "/"])

    def write(at):
        numbers = [number for number, ring in enumerate(rings, 1) if place[at] in ring]
        closed = "".join(draw(signs) + (str(number) if number < 10 else f"%{number}") for number in numbers)
        parts = [draw(signs) + write(child) for child in children[at]]
        branches = "".join(f"({part})" for part in parts[:-1])
        return draw(st.sampled_from(["C", "Cl", "[nH]", "o", "[C@@H]", "*"])) + closed + branches + "".join(parts[-1:])

    return write(0), n, bonds | set(rings)


@given(spelled())
def test_what_was_written_is_read(graph):
    smiles, n, bonds = graph
    molecule = read_smiles(smiles)
    assert len(molecule.atoms) == n
    assert len(molecule.bonds) == len(bonds)
    assert {tuple(sorted(bond)) for bond in molecule.bonds} == bonds


@pytest.mark.parametrize(
    ("smiles", "fault"),
    [
        ("", "it ends after start, 0 branches open"),
        ("CX", "'X' cannot stand at place 1, after atom"),
        ("[XYZ]C", "'[' cannot stand at place 0, after start"),
        ("C[N", "'[' cannot stand at place 1, after atom"),
        ("=C", "'=' cannot stand at place 0, after start"),
        ("C=", "it ends after bond, 0 branches open"),
        ("C==C", "'=' cannot stand at place 2, after bond"),
        ("C=(C)", "'(' cannot stand at place 2, after bond"),
        ("(C)", "'(' cannot stand at place 0, after start"),
        ("C()C", "')' cannot stand at place 2, after open"),
        ("C)C", "')' cannot stand at place 1, after atom"),
        ("C(C", "it ends after atom, 1 branches open"),
        ("1CC1", "'1' cannot stand at place 0, after start"),
        ("C(1CC1)", "'1' cannot stand at place 2, after open"),
        ("C1CC", "it opens ring 1 and never closes it"),
        ("C11", "it bonds an atom with itself, or twice with another"),
        ("C1C1", "it bonds an atom with itself, or twice with another"),
        ("C.", "it ends after dot, 0 branches open"),
    ],
)
def test_what_is_no_smiles(smiles, fault):
    with pytest.raises(DataError, match=re.escape(f"{smiles!r} is no SMILES: {fault}")):
        read_smiles(smiles)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder, and no registry."""
    monkeypatch.setenv("BRIMFUL_CACHE", str(tmp_path))
    monkeypatch.setenv("BRIMFUL_OFFLINE", "1")
    return tmp_path


def test_molecules_are_those_of_the_package(cache, monkeypatch):
    text = "SMILES\n" + "\n".join(DRUGS) + "\n"
    with zipfile.ZipFile(cache / MOLSETS.file, "w") as wheel:
        wheel.writestr("moses/dataset/data/test.csv.gz", b"")
        wheel.writestr("moses/dataset/data/train.csv.gz", gzip.compress(text.encode()))
    checksum = hashlib.sha256((cache / MOLSETS.file).read_bytes()).hexdigest()
    with pytest.raises(DataError, match=f"has the SHA-256 {checksum}, not {MOLSETS.sha256}"):
        next(molecules())
    monkeypatch.setattr(reading, "MOLSETS", Package("PyPI", "molsets", "0.3.1", MOLSETS.file, checksum))
    assert list(molecules()) == [read_smiles(smiles) for smiles in DRUGS]
    assert list(molecules(3)) == [read_smiles(smiles) for smiles in DRUGS[:3]]


def test_without_the_package_molecules_are_unreachable(cache):
    with pytest.raises(UnreachableError, match=r"PyPI molsets 0\.3\.1 is not in"):
        next(molecules())


# Message passing on packs


def gradients(stack, steps):
    stack.zero_grad()
    for step in steps:
        step()
    return {name: weights.grad.clone() for name, weights in stack.named_parameters()}


def test_packs_of_graphs_teach_what_single_graphs_do():
    """The same gradient: no message goes from one molecule to another, and room teaches nothing."""
    graphs, stack = Graphs.of([read_smiles(smiles) for smiles in DRUGS]), network(16, 2)
    alone = PackAssignment(np.arange(len(DRUGS)), np.arange(len(DRUGS) + 1))
    wanted = gradients(stack, graph_steps(stack, graphs, alone, 3, {"nodes": 14, "edges": 15}))
    capacities = {"nodes": 21, "edges": 20}
    plan = plan_resources(graphs.sizes, capacities)
    assert plan.packs < len(DRUGS)
    packs = brimful.resources.assign_resources(plan, graphs.sizes)
    for weights, gradient in gradients(stack, graph_steps(stack, graphs, packs, 2, capacities)).items():
        torch.testing.assert_close(gradient, wanted[weights], atol=1e-5, rtol=1e-4, msg=weights)
    assert max(float(gradient.abs().max()) for gradient in wanted.values()) > 0.01


def test_messages_go_both_ways_along_bonds():
    """However a molecule is written it teaches the same; another with the same atoms does not."""
    stack = network(8, 2)

    def taught(smiles):
        graphs = Graphs.of([read_smiles(smiles)])
        steps = graph_steps(stack, graphs, PackAssignment(np.arange(1), np.arange(2)), 1, {"nodes": 4, "edges": 3})
        return torch.cat([gradient.flatten() for gradient in gradients(stack, steps).values()])

    for same in ("OC(=C)N", "C=C(N)O", "C(O)(N)=C"):
        torch.testing.assert_close(taught(same), taught("NC(=C)O"))
    assert not torch.allclose(taught("N=CCO"), taught("NC(=C)O"), rtol=1e-3)


def test_sizes_count_atoms_and_bonds():
    graphs = Graphs.of([read_smiles(smiles) for smiles in COUNTED])
    assert list(zip(*graphs.sizes.values(), strict=True)) == list(COUNTED.values())
    assert min(kinds.min() for kinds in graphs.atoms) >= 1


# What is promised


def test_audio_is_as_the_paper_tells_of_librispeech():
    """At best 1.6 times as fast, and 1.3 times by packing; most recordings are longer than half of the longest."""
    lengths = audio_lengths(20_000, 512)
    plan = brimful.plan(lengths, 512, algorithm="optimal")
    assert (lengths.min() >= 1, lengths.max() <= 512, len(lengths)) == (True, True, 20_000)
    assert plan.figures()["speedup_limit"] == pytest.approx(1.6, abs=0.05)
    assert plan.packing_factor == pytest.approx(1.3, abs=0.05)
    assert (lengths > 256).mean() > 0.7


def test_promises_of_graphs_by_hand():
    """Four molecules of 2 nodes and 1 edge; packs have room for two of 3 nodes and 4 edges: three of them fit."""
    plan = plan_resources({"nodes": [2] * 4, "edges": [1] * 4}, {"nodes": 6, "edges": 8})
    assert promises(plan, 2) == (1.5, 1.0)  # four fill two packs, as they do two by two
    plan = plan_resources({"nodes": [2] * 6, "edges": [1] * 6}, {"nodes": 6, "edges": 8})
    assert promises(plan, 2) == (1.5, 1.5)


@pytest.fixture(scope="module")
def rows():
    """A domain whose longest sequence is eight times as long as most."""
    histogram = LengthHistogram.from_counts(np.array([20, 40, 256]), np.array([600, 300, 100]))
    return list(sequence_rows(Domain("made up", histogram, 256, (256, 512), sample=2), TINY))


def test_promises_of_sequences_are_those_of_the_plan(rows):
    histogram = LengthHistogram.from_counts(np.array([20, 40, 256]), np.array([600, 300, 100]))
    assert [row["name"] for row in rows] == ["made up, packs of 256", "made up, packs of 512"]
    for row, max_length in zip(rows, (256, 512), strict=True):
        assert row["limit"] == pytest.approx(1000 * 256 / (600 * 20 + 300 * 40 + 100 * 256))
        assert row["factor"] == pytest.approx(1000 / brimful.plan(histogram, max_length).packs * 256 / max_length)
        assert row["measured"] == 64
        assert row["overhead"] == pytest.approx(row["sample_factor"] / row["median"] - 1)


def test_packing_sequences_is_faster(rows):
    """About five times fewer slots: twice as fast at the least."""
    assert rows[0]["sample_factor"] > 4
    assert rows[0]["median"] > 2
    assert all(row["least"] <= row["median"] <= row["most"] for row in rows)


def test_packing_graphs_is_faster():
    """One in eight is a large molecule, which padding makes room for everywhere: packs are a third as many."""
    found = [read_smiles("C1CC1" if number % 8 else "CC" * 12) for number in range(640)]
    row = graph_row(found, Settings(sequences=80, hidden_size=64, layers=2, turns=3))
    assert row["padded_to"] == "24 nodes, 23 edges"
    assert row["pack"] == "192 nodes, 184 edges"
    assert row["limit"] == pytest.approx(min(640 * 24 / (80 * 24 + 560 * 3), 640 * 23 / (80 * 23 + 560 * 3)))
    assert row["factor"] == pytest.approx(row["limit"], rel=0.1)
    assert row["sample_factor"] > 3
    assert row["median"] > 2


# The page


def test_page_and_picture_are_of_the_figures(rows, tmp_path, monkeypatch):
    named = [row | {"name": f"{kind}, {row['name']}"} for kind, row in zip(("chat", "audio"), rows, strict=True)]
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["other_domains", "--write"])
    monkeypatch.setattr(other_domains, "domains", lambda: named)
    monkeypatch.setattr(other_domains, "sequence_rows", lambda row, _: [row])
    monkeypatch.setenv("BRIMFUL_OFFLINE", "1")
    monkeypatch.setenv("BRIMFUL_CACHE", str(tmp_path / "none"))
    main()
    results = json.loads((tmp_path / "other_domains.json").read_text())
    assert results["rows"] == named
    text = (tmp_path / "experiments.md").read_text()
    assert "\n".join(wrapped(section(results))) in text
    assert "molecules as graphs were not measured: PyPI molsets 0.3.1 is not in" in text
    svg = (tmp_path / "other_domains.svg").read_text()
    assert headline(results).split("\n")[0] in svg
    assert all(f">{row['median']:.2f}<" in svg for row in named)


def test_molecules_as_graphs_are_measured_where_there_are_some(monkeypatch):
    monkeypatch.setattr(other_domains, "domains", list)
    monkeypatch.setattr(other_domains, "molecules", lambda most: [read_smiles(smiles) for smiles in DRUGS * 20][:most])
    results = measure(TINY)
    assert [row["name"] for row in results["rows"]] == ["molecules as graphs"]
    assert results["missing"] == ""
    assert "were not measured" not in "\n".join(section(results))


def test_domains_have_the_published_lengths(histograms):
    chat, audio, text = other_domains.domains()
    assert (chat.histogram.n_sequences, chat.histogram.longest, chat.padded_to) == (19_366, -(-14_089 // 16), 1024)
    assert (audio.padded_to, audio.pack_lengths) == (512, (512,))
    assert (text.histogram.n_sequences, text.padded_to, text.pack_lengths) == (1_584_663, 57, (57, 114, 228, 456))
