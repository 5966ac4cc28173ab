"""brimful.json of a packed folder: its name and format, and how it is read back without trust."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from brimful.errors import BrimfulError, DataError, shown
from brimful.overflow import Ledger
from brimful.tables.columns import SEQ_LENGTHS
from brimful.tables.settings import PackSettings

MANIFEST = "brimful.json"
"""The file of a packed folder that says what is in it, and how it was packed."""

FORMAT = "brimful-packed"
VERSION = 1

_MAX_BYTES = 2**29
_SHARD_ENDINGS = (".parquet", ".arrow")


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of packs: its path within the folder, and how much it holds."""

    path: str
    rows: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What brimful.json says, as far as the checks need it. Types and paths are right; whether it is true, they ask.

    Args:
        settings: how the data was packed.
        figures: a text, number or null for each name.
        ledger: a whole number ≥ 0 for each part of a `Ledger`.
        shards: the files of packs, each inside the folder.
        plan: what `PackPlan.from_json` is to read, or None.
    """

    settings: PackSettings
    figures: dict[str, str | int | float | None]
    ledger: dict[str, int]
    shards: list[Shard]
    plan: Any

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """Read the manifest of a packed folder. It is untrusted input: bounded in size, every type and path is checked.

        Raises:
            DataError: there is none, it cannot be read, or a part is missing, of a wrong type or out of range; one
                line that names the file.
        """
        path = folder / MANIFEST
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise DataError(f"larger than {_MAX_BYTES >> 20} MiB; is this a manifest?")
            return cls._from_json(json.loads(path.read_bytes()))
        except OSError as fault:
            raise DataError(f"{path}: cannot be read: {fault.strerror or fault}") from None
        except RecursionError:
            raise DataError(f"{path}: nested too deeply to be a manifest") from None
        except BrimfulError as fault:
            raise DataError(f"{path}: {fault}") from None
        except ValueError as fault:
            raise DataError(f"{path}: not a JSON file ({fault})") from None

    @classmethod
    def _from_json(cls, value: Any) -> Manifest:
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise DataError(f'a manifest is a JSON object with "format": "{FORMAT}"; this is something else')
        if type(version := value.get("version")) is not int or version != VERSION:
            raise DataError(f"manifest version {shown(version)} is not known here (only {VERSION}); pack again")
        figures = _part(value, "figures", _is_object, "an object")
        for name in figures:
            _part(figures, name, _is_plain, "text, a number or null", "figures.")
        ledger = _part(value, "ledger", _is_object, "an object")
        if set(ledger) != (parts := {part.name for part in fields(Ledger)}):
            raise DataError(f"ledger says {', '.join(sorted(parts))}; this one does not, or says more")
        for name in ledger:
            _part(ledger, name, _is_count, "a whole number from 0 up", "ledger.")
        shards = _part(value, "shards", _is_filled_list, "a list of at least one")
        if "plan" not in value:
            raise DataError("a manifest says its plan, or null; this one does not")
        return cls(_settings(value), figures, ledger, [_shard(shard) for shard in shards], value["plan"])


def _settings(value: dict[str, Any]) -> PackSettings:
    given = dict(_part(value, "settings", _is_object, "an object"))
    if set(given) != (names := {part.name for part in fields(PackSettings)}):
        different = sorted(names ^ set(given))
        raise DataError(f"settings says {', '.join(sorted(names))}, each once; {shown(different[0])} does not match")
    _part(given, "token_column", _is_text, "a column name", "settings.")
    for name in ("keep_columns", "drop_columns"):
        given[name] = tuple(_part(given, name, _is_texts, "a list of column names", "settings."))
    if {given["token_column"], SEQ_LENGTHS} & set(given["keep_columns"]) or given["token_column"] == SEQ_LENGTHS:
        raise DataError("settings: a column can only be one of: the tokens, kept, or seq_lengths")
    return PackSettings(**given)  # which checks all others


def _shard(value: Any) -> Shard:
    if not isinstance(value, dict):
        raise DataError(f"a shard is an object, not {shown(value)}")
    path = _part(value, "path", _is_text, "text", "shards.")
    inside = PurePosixPath(path)
    if inside.is_absolute() or ".." in inside.parts or "\\" in path or "\0" in path:
        raise DataError(f"a shard lies in the folder, but {shown(path)} is a path that may lead outside")
    if inside.suffix not in _SHARD_ENDINGS or str(inside) != path:
        raise DataError(f"a shard is a file that ends in {' or '.join(_SHARD_ENDINGS)}, not {shown(path)}")
    rows, tokens = (_part(value, name, _is_count, "a whole number from 0 up", "shards.") for name in ("rows", "tokens"))
    return Shard(path, rows, tokens)


def _part(value: dict[str, Any], name: str, test: Callable[[Any], bool], what: str, within: str = "") -> Any:
    """value[name], or a DataError that says what it must be."""
    if name not in value:
        raise DataError(f"{within}{name} is {what}, but is missing")
    if not test(value[name]):
        raise DataError(
            f"{within}{shown(name) if not name.isidentifier() else name} is {what}, not {shown(value[name])}"
        )
    return value[name]


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
