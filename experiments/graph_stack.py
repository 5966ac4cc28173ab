"""A small message-passing network on packs of molecules, whose shapes are fixed: so many nodes, and so many edges.

    molecules   C-C-O   N=C      nodes  C C O N C . . .     edges  0-1 1-2 3-4 . . .     capacities 8 and 6

Nothing has to be masked: messages go along bonds, and none joins two molecules. What a pack has room for beyond its
molecules is computed all the same, as it is where shapes must not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from jaxtyping import Float, Int
from torch import Tensor, nn

from brimful import PackAssignment
from brimful.validation import IntArray
from experiments.molecules import Molecule
from experiments.turns import Step

NODES, EDGES = "nodes", "edges"
_SYMBOLS = ("C", "c", "N", "n", "O", "o", "S", "s", "F", "Cl", "Br")  # others, which are rare, count as one


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """What one pass trains on.

    Args:
        atoms: of each molecule (nodes,) the kind of each atom, ≥ 1; 0 is for room that none takes.
        bonds: of each molecule (edges, 2) the atoms of each bond.
        sizes: how many atoms and bonds each molecule has, by resource.
    """

    atoms: list[IntArray]
    bonds: list[IntArray]
    sizes: dict[str, IntArray]

    @classmethod
    def of(cls, molecules: Sequence[Molecule]) -> Graphs:
        """From what SMILES spell; a molecule's number of rings is what is learnt."""
        kinds = {symbol: number for number, symbol in enumerate(_SYMBOLS, 1)}
        atoms = [np.array([kinds.get(atom, len(_SYMBOLS) + 1) for atom in each.atoms], np.int64) for each in molecules]
        bonds = [np.array(each.bonds, np.int64).reshape(-1, 2) for each in molecules]
        sizes = {NODES: np.array([len(each) for each in atoms]), EDGES: np.array([len(each) for each in bonds])}
        return cls(atoms, bonds, sizes)


class MessagePassing(nn.Module):
    """Layers in which every atom adds up what its neighbours say, and a sum over each molecule at the end."""

    def __init__(self, hidden_size: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(_SYMBOLS) + 2, hidden_size, padding_idx=0)
        self.messages = nn.ModuleList(nn.Linear(2 * hidden_size, hidden_size) for _ in range(layers))
        self.updates = nn.ModuleList(nn.Linear(hidden_size, hidden_size) for _ in range(layers))
        self.head = nn.Linear(hidden_size, 1)

    def forward(
        self,
        atoms: Int[Tensor, " nodes"],
        ends: Int[Tensor, "2 edges"],
        real: Float[Tensor, "edges 1"],
        molecule: Int[Tensor, " nodes"],
        n_molecules: int,
    ) -> Float[Tensor, " molecules"]:
        """One number for each molecule.

        Args:
            atoms: kinds, 0 where there is none.
            ends: the two atoms of each bond, in both directions.
            real: 1 for a bond, 0 for room.
            molecule: of which molecule each atom is; n_molecules where there is none.
            n_molecules: how many there are.
        """
        hidden = self.embedding(atoms)
        for message, update in zip(self.messages, self.updates, strict=True):
            said = F.relu(message(torch.cat([hidden[ends[0]], hidden[ends[1]]], dim=1))) * real
            heard = torch.zeros_like(hidden).index_add(0, ends[1], said)
            hidden = hidden + F.relu(update(heard))
        pooled = hidden.new_zeros(n_molecules + 1, hidden.shape[1]).index_add(0, molecule, hidden)
        numbers: Tensor = self.head(pooled[:n_molecules])[:, 0]
        return numbers


def network(hidden_size: int, layers: int) -> MessagePassing:
    """The network, always with the same weights."""
    torch.manual_seed(0)
    return MessagePassing(hidden_size, layers)


def graph_steps(
    stack: MessagePassing, graphs: Graphs, packs: PackAssignment, rows: int, capacities: dict[str, int]
) -> list[Step]:
    """Batches of so many packs, each with room for capacities; a pass adds up the gradient of the mean square error."""
    made = [packs[number] for number in range(packs.packs)]
    batches = [made[at : at + rows] for at in range(0, len(made), rows)]
    return [partial(_step, stack, graphs, batch, capacities) for batch in batches]


def _step(stack: MessagePassing, graphs: Graphs, packs: list[IntArray], capacities: dict[str, int]) -> None:
    batch = _batch(graphs, packs, capacities)
    molecules = np.concatenate(packs)
    rings = graphs.sizes[EDGES][molecules] - graphs.sizes[NODES][molecules] + 1
    numbers = stack(**batch, n_molecules=len(molecules))
    loss: Any = F.mse_loss(numbers, torch.from_numpy(rings).float(), reduction="sum") / len(graphs.atoms)
    loss.backward()


def _batch(graphs: Graphs, packs: list[IntArray], capacities: dict[str, int]) -> dict[str, Tensor]:
    """Packs one after the other, each filled up to its capacities."""
    nodes, edges = capacities[NODES], capacities[EDGES]
    atoms, molecule = np.zeros((len(packs), nodes), np.int64), np.full((len(packs), nodes), sum(map(len, packs)))
    ends, real = np.zeros((len(packs), edges, 2), np.int64), np.zeros((len(packs), edges), np.float32)
    number = 0
    for row, pack in enumerate(packs):
        node = edge = 0
        for each in pack:
            kinds, bonds = graphs.atoms[each], graphs.bonds[each]
            atoms[row, node : node + len(kinds)], molecule[row, node : node + len(kinds)] = kinds, number
            ends[row, edge : edge + len(bonds)], real[row, edge : edge + len(bonds)] = bonds + row * nodes + node, 1
            node, edge, number = node + len(kinds), edge + len(bonds), number + 1
    there = torch.from_numpy(ends.reshape(-1, 2)).T
    both = torch.from_numpy(real.reshape(-1, 1))
    return {
        "atoms": torch.from_numpy(atoms.ravel()),
        "ends": torch.cat([there, there.flip(0)], dim=1),
        "real": torch.cat([both, both]),
        "molecule": torch.from_numpy(molecule.ravel()),
    }
