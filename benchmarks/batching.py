"""Order of a length-grouped epoch, beside transformers' sampler and plain Python; and how little is padded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from benchmarks.lengths import from_histogram, log_normal
from benchmarks.measure import Timing, take_turns
from brimful.batching import Batches, length_grouped_order, token_budget_batches

BATCH_SIZE = 16
MAX_TOKENS = 32_768
TURNS = 3
HISTOGRAMS = {
    "azure_llm2023_conv_total": "Azure LLM conversations",
    "chitchat_conversations_bert": "chit-chat conversations",
    "gsm8k_train_bert": "GSM8K",
}


def sections() -> Iterator[list[str]]:
    """Speed on a million lengths, and padding on real ones."""
    yield speed("10⁶ log-normal lengths, mean 886, one epoch's indices", log_normal(10**6, 545, 1.0, 8192))
    for name, title in HISTOGRAMS.items():
        lengths = from_histogram(name)
        if lengths is not None:
            yield padding(f"{title}: {len(lengths):,} sequences, padding efficiency", lengths)


def speed(title: str, lengths: npt.NDArray[np.int64]) -> list[str]:
    """An epoch's indices as a list of Python numbers, as a DataLoader takes them, each from torch's generator."""
    import torch

    from brimful.torch.samplers import LengthGroupedSampler

    as_list = lengths.tolist()
    samplers = {
        order: LengthGroupedSampler(None, BATCH_SIZE, seed=0, lengths=lengths, order=order)
        for order in ("shuffled", "xtuner")
    }
    calls: dict[str, Callable[[], int | None]] = {
        "brimful LengthGroupedSampler": lambda: len(list(samplers["shuffled"])),
        "brimful LengthGroupedSampler, order as described": lambda: len(list(samplers["xtuner"])),
        "transformers LengthGroupedSampler": lambda: len(transformers_order(as_list, torch.Generator().manual_seed(0))),
        "plain Python, as described": lambda: len(described(as_list)),
    }
    return _speed_table(title, take_turns(calls, TURNS), "brimful LengthGroupedSampler", len(lengths))


def padding(title: str, lengths: npt.NDArray[np.int64]) -> list[str]:
    """Real tokens per token that the device computes, mean of five epochs; budgets make batches of varied size."""
    import torch

    def grouped(order: str, seed: int) -> Batches:
        generator = torch.Generator().manual_seed(seed)

        def draw(n: int) -> npt.NDArray[np.int64]:
            return torch.randperm(n, generator=generator).numpy()

        return Batches.cut(length_grouped_order(lengths, draw, BATCH_SIZE, order=order, round_up=False), BATCH_SIZE)

    def budget(partition: str, seed: int) -> Batches:
        random = np.random.default_rng(seed)
        return token_budget_batches(lengths, MAX_TOKENS, bucket=8192, random=random, partition=partition)

    as_list = lengths.tolist()
    kinds: dict[str, Callable[[int], Batches]] = {
        f"random, batches of {BATCH_SIZE}": lambda seed: Batches.cut(
            np.random.default_rng(seed).permutation(len(lengths)), BATCH_SIZE
        ),
        "transformers LengthGroupedSampler": lambda seed: Batches.cut(
            transformers_order(as_list, torch.Generator().manual_seed(seed)), BATCH_SIZE
        ),
        "plain Python, as described": lambda seed: Batches.cut(described(as_list, seed), BATCH_SIZE),
        "brimful LengthGroupedSampler, order as described": lambda seed: grouped("xtuner", seed),
        "brimful LengthGroupedSampler": lambda seed: grouped("shuffled", seed),
        f"brimful token budget of {MAX_TOKENS:,}, greedy": lambda seed: budget("greedy", seed),
        f"brimful token budget of {MAX_TOKENS:,}, optimal": lambda seed: budget("optimal", seed),
    }
    lines = [f"### {title}", "", "| what | efficiency | batches |", "|---|---:|---:|"]
    for name, batches_of in kinds.items():
        epochs = [batches_of(seed) for seed in range(5)]
        efficiency = np.mean([batches.efficiency(lengths) for batches in epochs])
        lines.append(f"| {name} | {efficiency:.2%} | {np.mean([len(batches) for batches in epochs]):,.0f} |")
    return [*lines, ""]


def transformers_order(lengths: list[int], generator: object) -> list[int]:
    """What transformers' sampler gives for one epoch."""
    from transformers.trainer_pt_utils import LengthGroupedSampler

    return list(LengthGroupedSampler(BATCH_SIZE, lengths=lengths, generator=generator))


def described(lengths: list[int], seed: int = 0) -> list[int]:
    """The description of XTuner's sampler in plain Python, with torch's permutations."""
    import torch

    from tests.reference.batching import described_rank

    generator = torch.Generator().manual_seed(seed)

    def draw(n: int) -> list[int]:
        permutation: list[int] = torch.randperm(n, generator=generator).tolist()
        return permutation

    indices: list[int] = described_rank(lengths, BATCH_SIZE, 0, 1, None, False, draw)
    return indices


def _speed_table(title: str, timings: Mapping[str, Timing], ours: str, n_sequences: int) -> list[str]:
    lines = [f"### {title}", "", "| what | seconds | sequences/s | times as long as brimful |", "|---|---:|---:|---:|"]
    for name, timing in timings.items():
        ratio = timing.seconds / timings[ours].seconds
        lines.append(f"| {name} | {timing.seconds:.3f} | {n_sequences / timing.seconds:,.0f} | {ratio:.2f} |")
    return [*lines, ""]
