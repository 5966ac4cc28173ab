"""Which files a folder stands for, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brimful.errors import DataError
from brimful.tables.batches import reading
from brimful.tables.manifest import MANIFEST


def files_of(folder: Path, kind_of: Callable[[Path], str | None]) -> list[Path]:
    """The data files of a folder, in order.

        state.json          a dataset saved by Hugging Face datasets: the files it lists
        brimful.json        a packed dataset: the shards in data/
        anything else       every file of a known kind in it and below, sorted by path; all of one kind, none of it
                            in a packed dataset below. Names that start with "." or "_" are passed over: unfinished
                            or private.

    Args:
        folder: an existing folder.
        kind_of: the kind of a file by its name, None when it is no data file (a README, say).

    Returns:
        At least one path.

    Raises:
        DataError: a saved DatasetDict; a saved dataset with an indices mapping; a packed dataset below; several kinds;
            no data file.

    Cost: lists the folder.
    """
    with reading(str(folder)):
        if (folder / "dataset_dict.json").exists():
            raise _several_splits(folder)
        if (folder / "state.json").exists():
            return _saved_dataset(folder)
        if (folder / MANIFEST).exists():
            return _plain_folder(folder / "data", kind_of)
        return _plain_folder(folder, kind_of)


def _plain_folder(folder: Path, kind_of: Callable[[Path], str | None]) -> list[Path]:
    first_of_kind: dict[str, Path] = {}
    files, packed = [], []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if any(part.startswith((".", "_")) for part in inside.parts) or not path.is_file():
            continue
        if path.name == MANIFEST:
            packed.append(path.parent)
        if (kind := kind_of(path)) is not None:
            first_of_kind.setdefault(kind, inside)
            files.append(path)
    if packed:
        raise _packed_below(folder, packed, files)
    if not files:
        raise DataError(f"{folder}: holds no Parquet, Arrow or JSONL file; name a folder with data, or the files")
    if len(first_of_kind) > 1:
        examples = ", ".join(f"{kind} ({path})" for kind, path in first_of_kind.items())
        raise DataError(
            f"{folder}: a folder must hold files of one kind, but there are {examples}; name the files instead"
        )
    return files


def _packed_below(folder: Path, packed: list[Path], files: list[Path]) -> DataError:
    """The error that tells packed data and other data apart, and names one of each to give instead."""
    others = [file for file in files if not any(file.is_relative_to(below) for below in packed)]
    if not others:
        return DataError(
            f"{folder}: holds packed datasets below it; give one of them, as {packed[0]}, or unpacked data"
        )
    more = ", …" if others[1:] else ""
    return DataError(
        f"{folder}: holds unpacked data ({others[0].relative_to(folder)}{more}) and packed data "
        f"({packed[0].relative_to(folder)}), which are not one dataset; give {others[0]}{more} or {packed[0]}"
    )


def _saved_dataset(folder: Path) -> list[Path]:
    state = _json_object(folder / "state.json")
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise DataError(
            f"{folder}: a saved dataset must hold its rows in their final order, but this one has an indices mapping; "
            "call dataset.flatten_indices() and save it again"
        )
    listed = state.get("_data_files")
    if not isinstance(listed, list) or not listed:
        raise DataError(f"{folder}: state.json must list its _data_files, but it does not; save the dataset again")
    try:
        return [folder / entry["filename"] for entry in listed]
    except (TypeError, KeyError) as error:
        raise DataError(f"{folder}: state.json lists a data file without filename; save the dataset again") from error


def _several_splits(folder: Path) -> DataError:
    splits = _json_object(folder / "dataset_dict.json").get("splits")
    names = [str(split) for split in splits] if isinstance(splits, list) else []
    paths = " or ".join(str(folder / name) for name in names) or "the folder of one split"
    return DataError(
        f"{folder}: is a saved DatasetDict with the splits {', '.join(names) or '(none listed)'}; "
        f"give one of them: {paths}"
    )


def _json_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: is not JSON: {error}; save the dataset again") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: must be a JSON object, but it is a {type(content).__name__}; save the dataset again")
    return content
