"""Other domains: what packing promises, and what a small stack reaches, for chat, audio, and molecules in two ways.

| domain | sizes |
|---|---|
| chat | tokens of conversations with a language model, a published trace, 16 tokens taken for one |
| audio | drawn: most recordings are nearly as long as the longest, in the manner of LibriSpeech |
| molecules as text | characters of SMILES, in rows of one, two, four and eight times the longest |
| molecules as graphs | two resources, nodes and edges; room for so many molecules of the greatest size |

`python -m experiments.other_domains` prints the table in some minutes, with --quick in less than one. With --write it
goes into docs/experiments.md, the figures into docs/other_domains.json and their picture into other_domains.svg.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import brimful
from brimful import LengthHistogram, PackAssignment
from brimful.resources import ResourceHistogram, ResourcePlan, assign_resources, plan_resources
from brimful.validation import IntArray
from experiments.commands import command
from experiments.corpora.packages import UnreachableError
from experiments.data import load
from experiments.graph_stack import EDGES, NODES, Graphs, graph_steps, network
from experiments.layer_stack import bert, draw, even_sample, packed_steps, padded_steps
from experiments.molecules import Molecule, molecules
from experiments.page import machine
from experiments.turns import Step, in_turns, times_as_fast

NAME = "other_domains"
_CHAT_SCALE = 16
_GRAPHS = "molecules as graphs"
_DRAWN = 100_000


@dataclass(frozen=True, slots=True)
class Domain:
    """Sequences of one kind.

    Args:
        name: as the table calls it.
        histogram: all lengths.
        padded_to: the length of padded rows.
        pack_lengths: max_length of the packs that are tried.
        sample: sequences of a pass, as a multiple of those of the settings.
    """

    name: str
    histogram: LengthHistogram
    padded_to: int
    pack_lengths: tuple[int, ...]
    sample: float = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is measured.

    Args:
        sequences: of a pass.
        hidden_size, layers: of the stacks.
        turns: passes of each way.
        molecules: whose sizes are counted; None for all.
        slots: token slots, or nodes, of a batch.
        graphs: molecules of the greatest size that a pack of graphs has room for.
    """

    sequences: int
    hidden_size: int
    layers: int
    turns: int
    molecules: int | None = None
    slots: int = 4096
    graphs: int = 8


FULL = Settings(sequences=256, hidden_size=256, layers=4, turns=3)
QUICK = Settings(sequences=64, hidden_size=128, layers=1, turns=2, molecules=4000)


def domains() -> list[Domain]:
    """Those whose sequences have one length each."""
    chat, text = load("azure_llm2023_conv_total"), load("moses_zinc_train_smiles_chars")
    scaled = LengthHistogram.from_counts(-(-chat.lengths // _CHAT_SCALE), chat.counts)
    return [
        Domain("chat", scaled, 1024, (1024,), sample=0.75),
        Domain("audio", LengthHistogram.from_lengths(audio_lengths(_DRAWN, 512)), 512, (512,)),
        Domain("molecules as text", text, text.longest, tuple(text.longest * k for k in (1, 2, 4, 8)), sample=4),
    ]


def audio_lengths(n: int, longest: int) -> IntArray:
    """(n,) lengths: 65 % normal around 3/4 of the longest, with deviation 0.08; the others even from 1/20 to 3/4.

    Chosen by hand so that no padding at all would be 1.6 times as fast, and packing comes to 1.3 times: what the paper
    tells of LibriSpeech's recordings, whose lengths are not at hand.
    """
    random = np.random.default_rng(0)
    near = random.random(n) < 0.65
    shares = np.where(near, random.normal(0.75, 0.08, n), random.uniform(0.05, 0.75, n))
    lengths: IntArray = np.clip(np.rint(shares * longest), 1, longest).astype(np.int64)
    return lengths


def sequence_rows(domain: Domain, settings: Settings) -> Iterator[dict[str, Any]]:
    """A row for each length of packs: BERT on one sequence a row, padded, and on packs, the same sequences in both."""
    sequences = draw(even_sample(domain.histogram, round(settings.sequences * domain.sample)))
    lengths, padded_to = sequences.lengths, domain.padded_to
    stack = bert(settings.hidden_size, settings.layers, max(padded_to, *domain.pack_lengths))
    steps: dict[str, list[Step]] = {"padded": padded_steps(stack, sequences, settings.slots // padded_to, padded_to)}
    factors = {}
    for max_length in domain.pack_lengths:
        rows, scale = max(1, settings.slots // max_length), padded_to / max_length
        plan = brimful.plan(lengths, max_length)
        steps[str(max_length)] = packed_steps(stack, sequences, brimful.assign(plan, lengths), rows, max_length)
        factors[max_length] = (
            brimful.plan(domain.histogram, max_length).packing_factor * scale,
            plan.packing_factor * scale,
        )
    seconds = in_turns(steps, settings.turns)
    several = len(domain.pack_lengths) > 1
    for max_length, (factor, sample_factor) in factors.items():
        reached = times_as_fast(seconds["padded"], seconds[str(max_length)])
        yield {
            "name": f"{domain.name}, packs of {max_length}" if several else domain.name,
            "sequences": domain.histogram.n_sequences,
            "measured": len(lengths),
            "padded_to": f"{padded_to}",
            "pack": f"{max_length}",
            "limit": domain.histogram.speedup_limit(padded_to),
            "factor": factor,
            "sample_limit": LengthHistogram.from_lengths(lengths).speedup_limit(padded_to),
            "sample_factor": sample_factor,
            **asdict(reached),
            "overhead": sample_factor / reached.median - 1,
        }


def graph_row(found: list[Molecule], settings: Settings) -> dict[str, Any]:
    """Message passing on as many molecules as always fit into a pack, and on packs of the two resources."""
    every = Graphs.of(found)
    greatest = {name: int(sizes.max()) for name, sizes in every.sizes.items()}
    capacities = {name: settings.graphs * size for name, size in greatest.items()}
    n = min(len(found), 8 * settings.sequences)
    chosen = np.random.default_rng(0).choice(len(found), n, replace=False)
    sample = Graphs.of([found[number] for number in chosen])
    plan = plan_resources(sample.sizes, capacities)
    padded = PackAssignment(np.arange(n), np.append(np.arange(0, n, settings.graphs), n))
    rows, stack = settings.slots // capacities[NODES], network(settings.hidden_size, settings.layers)
    seconds = in_turns(
        {
            "padded": graph_steps(stack, sample, padded, rows, capacities),
            "packed": graph_steps(stack, sample, assign_resources(plan, sample.sizes), rows, capacities),
        },
        settings.turns,
    )
    reached = times_as_fast(seconds["padded"], seconds["packed"])
    limit, factor = promises(plan_resources(ResourceHistogram.from_sizes(every.sizes), capacities), settings.graphs)
    sample_limit, _ = promises(plan, settings.graphs)
    sample_factor = padded.packs / plan.packs
    return {
        "name": _GRAPHS,
        "sequences": len(found),
        "measured": n,
        "padded_to": f"{greatest[NODES]} nodes, {greatest[EDGES]} edges",
        "pack": f"{capacities[NODES]} nodes, {capacities[EDGES]} edges",
        "limit": limit,
        "factor": factor,
        "sample_limit": sample_limit,
        "sample_factor": sample_factor,
        **asdict(reached),
        "overhead": sample_factor / reached.median - 1,
    }


def promises(plan: ResourcePlan, graphs: int) -> tuple[float, float]:
    """How many times fewer packs there would be if one resource were used up, and there are, than of `graphs` each."""
    return plan.figures()["speedup_limit"] / graphs, plan.packing_factor / graphs


def measure(settings: Settings) -> dict[str, Any]:
    """All figures; without molecules as graphs, and why, where their package is not to be had."""
    rows = [row for domain in domains() for row in sequence_rows(domain, settings)]
    missing = ""
    try:
        rows.append(graph_row(list(molecules(settings.molecules)), settings))
    except UnreachableError as reason:
        missing = str(reason)
    return {
        "settings": asdict(settings),
        "machine": f"{machine('torch', 'transformers')}, {torch.get_num_threads()} threads of torch",
        "rows": rows,
        "missing": missing,
    }


def section(results: dict[str, Any]) -> list[str]:
    """Markdown: what was measured and how, and a row for each domain."""
    settings = results["settings"]
    stack = f"{settings['layers']} × {settings['hidden_size']} (layers × hidden size)"
    lines = [
        "## Other domains",
        "",
        f"![What packing promises in other domains, and what it reaches]({NAME}.svg)",
        "",
        f"One pass over the measured sequences, the same for padding and for packing, forward and backward: through a "
        f"BERT of {stack}, and for graphs through message passing of {stack}; batches of {settings['slots']:,} token "
        f"slots or nodes, in turns, {settings['turns']} times through. {results['machine']}.",
        "",
        "- limit: how many times as fast no padding at all would be. Factor: how many times fewer slots packs have "
        "than padded rows, planned by `auto` (graphs: `plan_resources`). Both on all sequences; then the factor of "
        "those measured, and what they reached: the median, with the least and most. Overhead: factor / reached − 1.",
        f"- chat: a trace of conversations, request and answer; rows of 16,384, of which {_CHAT_SCALE} tokens are one "
        "here, so that a CPU can do it. Its longest has 14,089: with rows of that, limit and factor are 14 % less.",
        "- audio: lengths drawn so that limit and factor are what the paper tells of LibriSpeech (`audio_lengths`), so "
        "only what is reached is a finding. Few are short enough to fill what the many long ones leave, so packing "
        "cannot come near the limit, whatever the algorithm.",
        "- molecules as text: characters of SMILES. Longer packs leave less room empty, but attention computes all "
        "pairs of a row and masks most of them, which costs more the longer the row.",
        f"- molecules as graphs: padding has room for {settings['graphs']} molecules of the greatest size, and holds "
        f"{settings['graphs']} of any; packs hold as many as fit. Messages go along bonds, so nothing is masked.",
        "",
        "| domain | sequences | padded to | packs of | limit | factor | measured | their factor | reached | overhead |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['name'].partition(',')[0]} | {row['sequences']:,} | {row['padded_to']} | {row['pack']} "
        f"| {row['limit']:.2f} | {row['factor']:.2f} | {row['measured']:,} | {row['sample_factor']:.2f} "
        f"| {row['median']:.2f} ({row['least']:.2f} to {row['most']:.2f}) | {row['overhead']:.1%} |"
        for row in results["rows"]
    ]
    if results["missing"]:
        lines += ["", f"{_GRAPHS} were not measured: {results['missing']}."]
    return lines


def headline(results: dict[str, Any]) -> str:
    """What the picture shows."""
    best: dict[str, float] = {}
    for row in results["rows"]:
        name = row["name"].replace(",", " ").split()[0]
        best[name] = max(best.get(name, 0), row["median"])
    said = [f"{speedup:.1f} on {name}" for name, speedup in best.items()]
    return f"Packing trains up to so many times as fast as padding:\n{', '.join(said)}"


def draw_picture(results: dict[str, Any], path: Path) -> None:
    """Write the picture of the domains."""
    from experiments import speed_picture

    settings = results["settings"]
    stacks = f"BERT and message passing of {settings['layers']} × {settings['hidden_size']}"
    subtitle = f"{stacks} (layers × hidden size); {results['machine'].partition(';')[0]}"
    speed_picture.draw(results["rows"], headline(results), subtitle, path)


def main() -> None:
    """The command: see `experiments.commands`."""
    command(NAME, lambda quick: measure(QUICK if quick else FULL), section, draw_picture)


if __name__ == "__main__":
    main()
