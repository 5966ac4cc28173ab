"""Batches of whole sequences or packs for many ranks, as index arithmetic: NumPy only, no PyTorch.

| file | what it decides |
|---|---|
| length_grouped.py | the order of an epoch in which near-equal lengths share a batch |
| token_budget.py, contiguous.py | batches of up to so many tokens, padding counted; the fewest, or with least padding |
| balance.py, exchange.py | groups of nearly equal cost |
| sharding.py | which rank takes which batch, equally many for all |
| steps.py | packs in steps that take all ranks about as long |
| batches.py | the batches themselves, and how much of them is padding |

What depends on an epoch is arithmetic on (seed, epoch, index); `brimful.torch.samplers` makes PyTorch samplers of it.
"""

from brimful.batching.balance import attention_cost, balance
from brimful.batching.batches import Batches
from brimful.batching.contiguous import fewest_batches, least_padding
from brimful.batching.length_grouped import length_grouped_order
from brimful.batching.sharding import Shard, shard
from brimful.batching.steps import EvenSteps, even_steps, pack_costs
from brimful.batching.token_budget import token_budget_batches

__all__ = [
    "Batches",
    "EvenSteps",
    "Shard",
    "attention_cost",
    "balance",
    "even_steps",
    "fewest_batches",
    "least_padding",
    "length_grouped_order",
    "pack_costs",
    "shard",
    "token_budget_batches",
]
