"""Packs with several capacities at once: tokens and images, nodes and edges of graphs (vector bin packing).

    sizes of sequences ──► ResourceHistogram ──► plan_resources ──► ResourcePlan ──► assign_resources

What one capacity is to `brimful.plan`, several are here: a pack keeps them all. Nothing is said of what a resource is.
"""

from brimful.resources.assignment import assign_resources
from brimful.resources.fit import ALGORITHMS, PRIORITIES
from brimful.resources.histogram import ResourceHistogram
from brimful.resources.plan import ResourcePlan
from brimful.resources.planning import plan_resources

__all__ = ["ALGORITHMS", "PRIORITIES", "ResourceHistogram", "ResourcePlan", "assign_resources", "plan_resources"]
