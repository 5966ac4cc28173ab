"""pack_dataset: a table or a Hugging Face dataset in, the same kind of thing out, packed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from brimful.errors import DataError
from brimful.overflow import Ledger, Overflow
from brimful.patterns import Patterns
from brimful.planning import resolve_algorithm
from brimful.plans import PackPlan
from brimful.tables.background import BackgroundWriter
from brimful.tables.batches import Source
from brimful.tables.sources import dataset_source, table_source
from brimful.tables.windows import PackedWindow, PackSettings, packed_windows

if TYPE_CHECKING:
    import datasets

Data = TypeVar("Data", pa.Table, "datasets.Dataset")

_METADATA_KEY = b"brimful"
_DESCRIPTION = "Packed by brimful: "


@dataclass(frozen=True, slots=True)
class PackReport:
    """What packing did: the plan of all windows together, with its proof, and the account of every token.

    Args:
        plan: covers exactly the sequences that were packed.
        ledger: rows and tokens read, packed, truncated and dropped.
        windows: how many windows were planned.
    """

    plan: PackPlan
    ledger: Ledger
    windows: int

    def to_json(self) -> dict[str, Any]:
        """Figures and ledger, without the patterns of the plan."""
        return {"figures": self.plan.figures(), "ledger": asdict(self.ledger), "windows": self.windows}


class ReportBuilder:
    """Adds up windows as they pass."""

    def __init__(self, settings: PackSettings) -> None:
        self._settings = settings
        self._patterns: Patterns | None = None
        self._ledger = Ledger()
        self._windows = 0
        self._seconds = 0.0

    def batches(self, windows: Iterable[PackedWindow]) -> Iterator[pa.RecordBatch]:
        """The packed rows of the windows, which are accounted for on the way."""
        for window in windows:
            self._patterns = window.patterns if self._patterns is None else self._patterns + window.patterns
            self._ledger += window.ledger
            self._seconds += window.seconds
            self._windows += 1
            yield from window.batches

    def report(self) -> PackReport:
        """The report of all windows that have passed."""
        patterns = Patterns.empty() if self._patterns is None else self._patterns
        settings = self._settings
        plan = PackPlan(
            patterns.histogram(),
            settings.max_length,
            settings.max_sequences,
            resolve_algorithm(settings.algorithm),
            patterns,
            self._seconds,
        )
        if plan.histogram.n_tokens != self._ledger.tokens_packed:
            raise ValueError(f"packed {plan.histogram.n_tokens} tokens, but the ledger says {self._ledger}")
        return PackReport(plan, self._ledger, self._windows)


def pack_dataset(
    data: Data,
    max_length: int,
    max_sequences: int | None = None,
    algorithm: str = "auto",
    *,
    seed: int = 0,
    overflow: Overflow = "error",
    min_fragment: int = 1,
    tokens: str = "input_ids",
    keep_columns: Collection[str] = (),
    drop_columns: Collection[str] = (),
    window_tokens: int | None = None,
) -> Data:
    """Pack the rows of a table: several whole sequences a row, as full as the lengths allow.

        input_ids  [1 2 3] [4 5] [6 7 8 9]            input_ids    [6 7 8 9] [1 2 3 4 5]
        labels     [1 2 3] [0 5] [0 0 8 9]     ->     labels       [0 0 8 9] [1 2 3 0 5]
                                                      seq_lengths  [4]       [3 2]          max_length 5

    Every list column whose lists are as long as the tokens is packed alike. The column seq_lengths (list<int32>)
    holds the lengths of the sequences of a row, in order; boundaries are never marked within the tokens. Rows are not
    padded. TRL's collator reads seq_lengths as it is.

    Args:
        data: a pyarrow.Table or a datasets.Dataset with a list column of whole numbers.
        max_length: token slots in a pack, ≥ 1.
        max_sequences: most sequences in a pack, ≥ 1; None for no limit.
        algorithm: how to plan, a name from `brimful.planning.ALGORITHMS`; "auto" is a good choice.
        seed: ≥ 0; decides which of several equally long sequences goes where, and the order of the packs.
        overflow: what to do with rows longer than max_length: "error" names the first and counts them, "drop" leaves
            them out, "truncate" cuts them, "split" makes several sequences of them.
        min_fragment: shortest remainder that "split" keeps, in tokens.
        tokens: the column that holds the sequences.
        keep_columns: columns to collect into lists, one value per sequence (of a split row: per fragment).
        drop_columns: columns to leave out.
        window_tokens: how many tokens are planned and packed together; None for as many as weigh 64 MiB.

    Returns:
        The packed rows, of the kind that came in. `packing_report` reads how it went from them.

    Raises:
        DataError: a column with no part to play, nulls, lists that differ in length, or data that is packed already.
        CapacityError: a row is longer than max_length, and overflow is "error".
        LengthError, PlanError: a setting that is out of range or unknown.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"input_ids": [[1, 2, 3], [4, 5], [6, 7, 8, 9]]})
        >>> packed = pack_dataset(table, max_length=5)
        >>> sorted(packed["seq_lengths"].to_pylist())
        [[3, 2], [4]]
        >>> packing_report(packed)["figures"]["efficiency"]
        0.9

    Cost: each token is copied once or twice; memory for three windows beside the result. A Dataset that lies on disk
    is packed to disk, beside its other cache files, and memory-mapped.
    Source: arXiv 2107.02027, section 3.1.
    """
    settings = PackSettings(
        max_length,
        max_sequences,
        algorithm,
        seed,
        overflow,
        min_fragment,
        tokens,
        tuple(keep_columns),
        tuple(drop_columns),
        window_tokens,
    )
    if isinstance(data, pa.Table):
        return _pack_table(table_source(data), settings)
    if type(data).__module__.partition(".")[0] == "datasets":
        return _pack_hugging_face(data, settings)
    raise DataError(f"pack_dataset packs a pyarrow.Table or a datasets.Dataset, not {type(data).__name__}")


def packing_report(packed: pa.Table | datasets.Dataset) -> dict[str, Any]:
    """How packing went, read from what `pack_dataset` returned: figures, ledger, number of windows.

    A table carries it in its schema's metadata, a Dataset in its description.

    Raises:
        DataError: the data carries no report: it was not packed by brimful, or lost it to a later change.
    """
    if isinstance(packed, pa.Table):
        text = (packed.schema.metadata or {}).get(_METADATA_KEY, b"").decode()
    else:
        text = (packed.info.description or "").removeprefix(_DESCRIPTION)
    if not text.startswith("{"):
        raise DataError("this data carries no packing report; pack_dataset adds one, and later changes may lose it")
    report: dict[str, Any] = json.loads(text)
    return report


def _pack_table(source: Source, settings: PackSettings) -> pa.Table:
    schema, windows = packed_windows(source, settings)
    builder = ReportBuilder(settings)
    packed = pa.Table.from_batches(builder.batches(windows), schema)
    return packed.replace_schema_metadata({_METADATA_KEY: json.dumps(builder.report().to_json())})


def _pack_hugging_face(dataset: datasets.Dataset, settings: PackSettings) -> datasets.Dataset:
    from datasets import Dataset, DatasetInfo

    source = dataset_source(dataset)
    if not dataset.cache_files:
        packed = _pack_table(source, settings)
        info = DatasetInfo(description=_DESCRIPTION + json.dumps(packing_report(packed)))
        return Dataset(packed, info=info, fingerprint=uuid.uuid4().hex[:16])  # else it hashes every token
    schema, windows = packed_windows(source, settings)
    builder = ReportBuilder(settings)
    path = Path(dataset.cache_files[0]["filename"]).with_name(f"cache-{uuid.uuid4().hex}.arrow")
    try:
        with BackgroundWriter(pa.ipc.new_stream(path, schema)) as writer:
            for batch in builder.batches(windows):
                writer.write(batch)
    except BaseException:
        path.unlink()
        raise
    description = _DESCRIPTION + json.dumps(builder.report().to_json())
    return Dataset.from_file(str(path), info=DatasetInfo(description=description))
