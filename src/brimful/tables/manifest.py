"""brimful.json of a packed folder, read back without trust."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brimful.tables.output import MANIFEST
from brimful.tables.windows import PackSettings


@dataclass(frozen=True, slots=True)
class Manifest:
    """What brimful.json says, as far as the checks need it."""

    settings: PackSettings
    figures: dict[str, Any]
    ledger: dict[str, Any]
    shards: list[tuple[str, int, int]]  # path, rows, tokens
    plan: Any

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """Read it, or raise OSError, ValueError, TypeError or KeyError."""
        value = json.loads((folder / MANIFEST).read_bytes())
        if value["format"] != "brimful-packed" or value["version"] != 1:
            raise ValueError(f"format {value['format']!r}, version {value['version']!r}")
        settings: dict[str, Any] = dict(value["settings"])
        settings |= {name: tuple(settings[name]) for name in ("keep_columns", "drop_columns")}
        shards = [(str(shard["path"]), int(shard["rows"]), int(shard["tokens"])) for shard in value["shards"]]
        return cls(PackSettings(**settings), dict(value["figures"]), dict(value["ledger"]), shards, value["plan"])
