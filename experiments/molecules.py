"""Molecules as graphs: atoms and bonds read from SMILES, for 1.58 million real ones of the MOSES data.

| package | file | licence |
|---|---|---|
| PyPI molsets 0.3.1 | moses/dataset/data/train.csv.gz: molecules selected from ZINC Clean Leads | MIT |

The package is fetched and kept as those of `experiments.corpora` are; nothing of it is installed or run.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass

from brimful.errors import DataError, shown
from experiments.corpora.archives import member
from experiments.corpora.packages import Package, fetch

MOLSETS = Package(
    "PyPI",
    "molsets",
    "0.3.1",
    "molsets-0.3.1-py3-none-any.whl",
    "7f4450e3ebecebe79c3a2a55950c93daddee071120daf64a163d03481e811d34",
)
_FILE = "moses/dataset/data/train.csv.gz"
_SIGNS = "-=#$:/\\%"
_NONE = -1

_TOKEN = re.compile(
    r"""(?P<atom>\[\d*(?P<symbol>[A-Z][a-z]?|[a-z][a-z]?|\*)@{0,2}(?:H\d*)?(?:\++|-+|[+-]\d+)?(?::\d+)?\]
                |Br|Cl|[BCNOPSFI*bcnops])
      | (?P<ring>[-=\#$:/\\]?(?:\d|%\d\d))
      | (?P<bond>[-=\#$:/\\])
      | (?P<open>\() | (?P<close>\)) | (?P<dot>\.)""",
    re.VERBOSE,
)
_WHOLE = {"atom", "ring", "close"}  # what a molecule can end with
_BEFORE = {
    "atom": _WHOLE | {"bond", "open", "dot", "start"},
    "ring": _WHOLE,
    "bond": _WHOLE | {"open"},
    "open": _WHOLE,
    "close": _WHOLE,
    "dot": _WHOLE | {"open"},
}
"""What each sign may follow."""


@dataclass(frozen=True, slots=True)
class Molecule:
    """A molecule without its implicit hydrogens.

    Args:
        atoms: the symbol of each atom that is written, in order; in lower case if aromatic.
        bonds: the two atoms of each bond, counted from 0, of whatever order the bond is.
    """

    atoms: tuple[str, ...]
    bonds: tuple[tuple[int, int], ...]


def read_smiles(smiles: str) -> Molecule:
    """The graph that a SMILES string spells.

        C 1 C C 1 (=O) N        cyclopropane with a branch: an atom is bonded to the one before it, after a branch to
        └───┴───┘               the one before the branch, after a dot to none; two equal digits close a ring

    Args:
        smiles: in the organic subset or with atoms in brackets, as in OpenSMILES; without @TH, @AL and the like.

    Raises:
        DataError: it is no SMILES: an unknown sign, or a bond, branch or ring with an end missing; names the place.

    Example:
        >>> read_smiles("C1CC1=O")
        Molecule(atoms=('C', 'C', 'C', 'O'), bonds=((0, 1), (1, 2), (0, 2), (2, 3)))
        >>> len(read_smiles("CC(=O)Oc1ccccc1C(=O)O").bonds)                # aspirin: 13 atoms, one ring
        13

    Cost: one pass; about 20 µs for a drug-like molecule.
    Source: OpenSMILES specification, sections 2 and 3; chirality, order and isotopes are read over.
    """
    atoms: list[str] = []
    bonds: list[tuple[int, int]] = []
    branches: list[int] = []
    rings: dict[int, int] = {}
    last = _NONE  # the atom that the next one is bonded to
    for kind, text in _tokens(smiles):
        if kind == "atom":
            if last != _NONE:
                bonds.append((last, len(atoms)))
            last = len(atoms)
            atoms.append(text)
        elif kind == "ring":
            number = int(text.lstrip(_SIGNS))
            if number in rings:
                bonds.append((rings.pop(number), last))
            else:
                rings[number] = last
        elif kind == "open":
            branches.append(last)
        elif kind == "close":
            last = branches.pop()
        elif kind == "dot":
            last = _NONE
    if rings:
        raise DataError(f"{shown(smiles)} is no SMILES: it opens ring {min(rings)} and never closes it")
    _require_simple(smiles, bonds)
    return Molecule(tuple(atoms), tuple(bonds))


def _tokens(smiles: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each sign, of an atom its symbol; or an error for one that may not stand there."""
    before, at, depth = "start", 0, 0
    while at < len(smiles):
        token = _TOKEN.match(smiles, at)
        kind = str(token.lastgroup) if token else ""
        depth += (kind == "open") - (kind == "close")
        if token is None or before not in _BEFORE[kind] or depth < 0:
            raise DataError(f"{shown(smiles)} is no SMILES: {smiles[at]!r} cannot stand at place {at}, after {before}")
        yield kind, token["symbol"] or token[0]
        before, at = kind, token.end()
    if before not in _WHOLE or depth:
        raise DataError(f"{shown(smiles)} is no SMILES: it ends after {before}, {depth} branches open")


def _require_simple(smiles: str, bonds: list[tuple[int, int]]) -> None:
    if len(set(bonds)) < len(bonds) or any(first == second for first, second in bonds):
        raise DataError(f"{shown(smiles)} is no SMILES: it bonds an atom with itself, or twice with another")


def molecules(most: int | None = None) -> Iterator[Molecule]:
    """The molecules to train on of MOSES, in the order in which they lie there.

    Args:
        most: how many at most; None for all 1,584,663.

    Raises:
        UnreachableError: the package is not at hand and cannot be fetched.
        DataError: its bytes are not those that the experiment was made with.

    Cost: about 40 s for all.
    """
    lines = gzip.decompress(member(fetch(MOLSETS), _FILE)).decode().splitlines()[1:]
    yield from map(read_smiles, lines[:most])
