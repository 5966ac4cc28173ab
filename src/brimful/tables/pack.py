"""pack_dataset: a table or a Hugging Face dataset in, the same kind of thing out, packed."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from brimful.errors import DataError, SettingError, shown
from brimful.overflow import Overflow
from brimful.tables.report import ReportBuilder
from brimful.tables.settings import PackSettings
from brimful.tables.sources import table_source
from brimful.tables.windows import packed_windows

if TYPE_CHECKING:
    import datasets

Data = TypeVar("Data", pa.Table, "datasets.Dataset")

DESCRIPTION = "Packed by brimful: "
"""What stands before the report in the description of a packed Dataset."""

_METADATA_KEY = b"brimful"


def pack_dataset(
    data: Data,
    max_length: int,
    max_sequences: int | None = None,
    algorithm: str = "auto",
    *,
    align: int = 1,
    time_limit: float | None = None,
    seed: int = 0,
    overflow: Overflow = "error",
    min_fragment: int = 1,
    token_column: str = "input_ids",
    keep_columns: Collection[str] = (),
    drop_columns: Collection[str] = (),
    group_column: str | None = None,
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
        align: every sequence gets token slots up to a multiple of this, of which max_length is one, ≥ 1. The padding is
            planned for, not written: rows hold real tokens, and what makes batches of them puts it in.
        time_limit: seconds for the plan of each window, after which "optimal" gives the best so far (packs may then
            differ from run to run); None for no limit.
        seed: ≥ 0; decides which of several equally long sequences goes where, and the order of the packs.
        overflow: what to do with rows longer than max_length: "error" names the first and counts them, "drop" leaves
            them out, "truncate" cuts them, "split" makes several sequences of them.
        min_fragment: shortest remainder that "split" keeps, in tokens.
        token_column: the column that holds the sequences.
        keep_columns: columns to collect into lists, one value per sequence (of a split row: per fragment).
        drop_columns: columns to leave out.
        group_column: consecutive rows with the same value in this column (whole numbers or text) stay in one pack, in
            their order, such as the two rows of a preference pair; the column is kept. A value that comes again after
            others is refused where it meets itself in a window. max_sequences, "truncate" and "split" do not go with
            it, and "drop" leaves out groups that need more than max_length.
        window_tokens: how many tokens are planned and packed together, at most as many as weigh 64 MiB; None for those.
            Windows of few packs cost packs.

    Returns:
        The packed rows, of the kind that came in. `packing_report` reads how it went from them.

    Raises:
        DataError: a column with no part to play, nulls, lists that differ in length, or data that is packed already.
        CapacityError: a row is longer than max_length, and overflow is "error".
        LengthError, SettingError: a setting that is out of range or unknown.
        OutputError: the file for a Dataset that lies on disk cannot be written.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"input_ids": [[1, 2, 3], [4, 5], [6, 7, 8, 9]]})
        >>> packed = pack_dataset(table, max_length=5)
        >>> sorted(packed["seq_lengths"].to_pylist())
        [[3, 2], [4]]
        >>> packing_report(packed)["figures"]["efficiency"]
        0.9

    Cost: each token is copied once or twice; memory for three windows beside the result. A Dataset that lies on disk
    is packed to disk, into a new file beside its other cache files, and memory-mapped; `cleanup_cache_files` of the
    Dataset removes it.
    Source: arXiv 2107.02027, section 3.1.
    """
    settings = PackSettings(
        max_length,
        max_sequences=max_sequences,
        align=align,
        algorithm=algorithm,
        time_limit=time_limit,
        seed=seed,
        overflow=overflow,
        min_fragment=min_fragment,
        token_column=token_column,
        keep_columns=_names(keep_columns, "keep_columns"),
        drop_columns=_names(drop_columns, "drop_columns"),
        group_column=group_column,
        window_tokens=window_tokens,
    )
    if isinstance(data, pa.Table):
        return _pack_table(data, settings)
    if type(data).__module__.partition(".")[0] == "datasets":
        from brimful.tables import hugging_face

        packed: Data = hugging_face.pack(data, settings)
        return packed
    raise DataError(f"pack_dataset packs a pyarrow.Table or a datasets.Dataset, not {type(data).__name__}")


def packing_report(packed: pa.Table | datasets.Dataset) -> dict[str, Any]:
    """How packing went, read from what `pack_dataset` returned.

    A table carries it in its schema's metadata, a Dataset in its description.

    Returns:
        figures (algorithm, seconds and those of `brimful.plans.packing_figures`), ledger (see
        `brimful.overflow.Ledger`), lower_bound_kind, windows.

    Raises:
        DataError: the data carries no report: it was not packed by brimful, or lost it to a later change. (Some
            changes, like select, keep the report of what they started from.)
    """
    if isinstance(packed, pa.Table):
        text = (packed.schema.metadata or {}).get(_METADATA_KEY, b"").decode()
    else:
        description = getattr(getattr(packed, "info", None), "description", None) or ""
        text = description.removeprefix(DESCRIPTION)
    try:
        report: dict[str, Any] = json.loads(text)
    except ValueError:
        raise DataError(
            "this data carries no packing report; pack_dataset adds one, and later changes may lose it"
        ) from None
    return report


def _names(names: Collection[str], what: str) -> tuple[str, ...]:
    if not isinstance(names, Collection):
        raise SettingError(f"{what} is a list of column names, not {shown(names)}")
    return (names,) if isinstance(names, str) else tuple(names)


def _pack_table(table: pa.Table, settings: PackSettings) -> pa.Table:
    schema, windows = packed_windows(table_source(table), settings)
    builder = ReportBuilder(settings)
    packed = pa.Table.from_batches(builder.batches(windows), schema)
    return packed.replace_schema_metadata({_METADATA_KEY: json.dumps(builder.report().to_json())})
