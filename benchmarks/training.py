"""Training a small BERT on a CPU: one sequence a row, padded or grouped by length, and packed; what packing costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.lengths import from_histogram, log_normal
from benchmarks.measure import take_turns

MAX_LENGTH, ROWS, VOCABULARY = 512, 8, 8192
N_SEQUENCES, TURNS = 96, 3


def sections() -> Iterator[list[str]]:
    """Sequences per second of the three, and the seconds of a full step with and without what packing adds."""
    lengths = from_histogram("wikipedia_bert_512")
    source = "lengths of Wikipedia"
    if lengths is None:
        lengths, source = log_normal(10**5, 200, 0.8, MAX_LENGTH), "log-normal lengths, median 200"
    yield speed(lengths[:N_SEQUENCES], source)
    yield overhead(lengths[:N_SEQUENCES])


def speed(lengths: npt.NDArray[np.int64], source: str) -> list[str]:
    """The same sequences once through, in batches of 8 rows: as they come, by length, and in packs."""
    import brimful

    model, step = _trainer()
    ids = [_tokens(length) for length in lengths.tolist()]
    order = np.argsort(-lengths, kind="stable")
    padded = [_padded(ids[at : at + ROWS], MAX_LENGTH) for at in range(0, len(ids), ROWS)]
    grouped = [
        _padded([ids[index] for index in order[at : at + ROWS]], int(lengths[order[at]]))
        for at in range(0, len(ids), ROWS)
    ]
    plan = brimful.plan(lengths, MAX_LENGTH)
    packed = list(_packed_batches(model, ids, brimful.assign(plan, lengths)))

    def through(batches: list[dict[str, Any]]) -> Callable[[], None]:
        def run() -> None:
            for batch in batches:
                step(batch)

        return run

    timings = take_turns(
        {
            f"padded to {MAX_LENGTH}": through(padded),
            "grouped by length, padded to the longest of the batch": through(grouped),
            "packed": through(packed),
        },
        1,
    )
    slowest = next(iter(timings.values())).seconds
    lines = [
        f"### A small BERT, {len(ids)} sequences ({source}), {ROWS} rows of {MAX_LENGTH} a step",
        "",
        "| rows | seconds | sequences/s | tokens/s | speed-up |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, timing in timings.items():
        per_second = 1 / timing.seconds
        lines.append(
            f"| {name} | {timing.seconds:.2f} | {len(ids) * per_second:.1f} | {lengths.sum() * per_second:,.0f} | "
            f"{slowest / timing.seconds:.2f} |"
        )
    realized = slowest / timings["packed"].seconds
    return [
        *lines,
        "",
        f"Packing factor {plan.packing_factor:.3f}, of which {realized / plan.packing_factor:.3f} are realized.",
        "",
    ]


def overhead(lengths: npt.NDArray[np.int64]) -> list[str]:
    """A step on 8 full rows, each one sequence, and on 8 packs: block mask, positions and unpacked loss."""
    import brimful

    model, step = _trainer()
    ids = [_tokens(length) for length in lengths.tolist()]
    batch = next(_packed_batches(model, ids, brimful.assign(brimful.plan(lengths, MAX_LENGTH), lengths)))
    full = _padded([_tokens(MAX_LENGTH)] * ROWS, MAX_LENGTH)
    del full["attention_mask"]
    collate = _collator(model)
    rows = _packs(ids, brimful.assign(brimful.plan(lengths, MAX_LENGTH), lengths))[:ROWS]
    timings = take_turns(
        {"full": lambda: step(full), "packed": lambda: step(batch), "collate": lambda: collate(rows) and None}, TURNS
    )
    full_seconds, packed_seconds, collate_seconds = (timing.seconds for timing in timings.values())
    added, collating = packed_seconds / full_seconds - 1, collate_seconds / packed_seconds
    return [
        f"### What packing adds to a step of {ROWS} rows of {MAX_LENGTH}",
        "",
        "| step | seconds |",
        "|---|---:|",
        f"| full rows of one sequence, no mask | {full_seconds:.3f} |",
        f"| packs: mask, positions, loss by sequence | {packed_seconds:.3f} |",
        f"| making a batch of the packs | {collate_seconds:.4f} |",
        "",
        f"Overhead {added:.1%} of a step; making a batch {collating:.2%}.",
        "",
    ]


def _trainer() -> tuple[Any, Callable[[dict[str, Any]], None]]:
    """A small BERT for masked LM, and one training step of it."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    from brimful.models import PackedEncoder

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    model = PackedEncoder(BertForMaskedLM(config))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(batch: dict[str, Any]) -> None:
        packed = "segment_ids" in batch
        loss = (model if packed else model.model)(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return model.model, step


def _tokens(length: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(length).integers(0, VOCABULARY, length)


def _padded(sequences: list[npt.NDArray[np.int64]], length: int) -> dict[str, Any]:
    import torch

    ids = np.zeros((len(sequences), length), np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    labels = np.where(mask > 0, ids, -100)
    return {
        name: torch.from_numpy(values)
        for name, values in (("input_ids", ids), ("attention_mask", mask), ("labels", labels))
    }


def _collator(model: Any) -> Any:
    from brimful.torch import PackedCollator

    return PackedCollator.for_model(model, MAX_LENGTH)


def _packs(ids: list[npt.NDArray[np.int64]], packs: Any) -> list[dict[str, Any]]:
    rows = []
    for number in range(packs.packs):
        tokens = [ids[index] for index in packs[number]]
        joined = np.concatenate(tokens)
        rows.append({"input_ids": joined, "labels": joined, "seq_lengths": [len(each) for each in tokens]})
    return rows


def _packed_batches(model: Any, ids: list[npt.NDArray[np.int64]], packs: Any) -> Iterator[dict[str, Any]]:
    collate, rows = _collator(model), _packs(ids, packs)
    for at in range(0, len(rows), ROWS):
        yield collate(rows[at : at + ROWS])
