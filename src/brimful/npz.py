"""Arrays in .npz files that are read without trust: nothing is executed, and no more is read than was expected."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.errors import PlanError

_HEADER_BYTES = 2**12  # more than NumPy puts before an array


def read_arrays(path: Path, expected: Mapping[str, tuple[str, int]]) -> dict[str, npt.NDArray[Any]]:
    """One-dimensional arrays of known names, types and sizes.

    `numpy.load` would first make room for whatever size the file claims; here the claim is compared first.

    Args:
        path: an .npz file, as `numpy.savez` writes it.
        expected: for each name the dtype and the number of items; the file must hold these and nothing else.

    Raises:
        PlanError: the file is damaged, or holds anything but what is expected; names the file.
        OSError: the file cannot be opened.
    """
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _require_members(archive, expected)
                return {name: _read(archive, name, *kind_and_size) for name, kind_and_size in expected.items()}
        except PlanError as fault:
            raise PlanError(f"{path}: {fault}") from None
        except (ValueError, KeyError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as fault:
            raise PlanError(f"{path}: not an .npz file that can be read ({' '.join(str(fault).split())})") from None


def _require_members(archive: zipfile.ZipFile, expected: Iterable[str]) -> None:
    members = sorted(entry.filename for entry in archive.infolist())
    if members != sorted(f"{name}.npy" for name in expected):
        raise PlanError(f"holds other arrays than {', '.join(expected)}")


def _read(archive: zipfile.ZipFile, name: str, kind: str, size: int) -> npt.NDArray[Any]:
    dtype = np.dtype(kind)
    n_bytes = size * dtype.itemsize
    entry = archive.getinfo(f"{name}.npy")
    if not n_bytes < entry.file_size <= n_bytes + _HEADER_BYTES:
        raise PlanError(f"{name} does not have {size:,} items")
    with archive.open(entry) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise PlanError(f"{name} is written in another version of the format")
        shape, _, found = np.lib.format.read_array_header_1_0(member)
        if shape != (size,) or found != dtype:
            raise PlanError(f"{name} is an array of {found} and shape {shape}, not of {dtype} and shape ({size},)")
        content = member.read()
    if len(content) != n_bytes:
        raise PlanError(f"{name} is cut short")
    return np.frombuffer(content, dtype)
