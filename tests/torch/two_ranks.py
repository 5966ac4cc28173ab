"""One of two processes that sample together; run as `python -m tests.torch.two_ranks RANK MEETING_POINT`.

Prints, for every kind of sampler made without a seed, the seed that was agreed on and what this rank takes.
"""

from __future__ import annotations

import json
import sys

import torch
import torch.distributed as dist

from brimful.torch.samplers import LengthGroupedSampler
from tests.torch.sampler_kinds import KINDS, some_lengths


def main() -> None:
    rank, meeting_point = int(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=2)
    torch.manual_seed(rank)  # the ranks would draw different seeds
    found = {}
    for name, kind in KINDS.items():
        sampler = kind.make(some_lengths(), None, None, None)  # type: ignore[arg-type]
        found[name] = [sampler.state_dict()["seed"], len(sampler), list(sampler)]
    sampler = LengthGroupedSampler(None, 2, lengths=some_lengths(), seed=5)
    found["with a seed"] = [sampler.rank, sampler.world_size, list(sampler)]
    dist.destroy_process_group()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
