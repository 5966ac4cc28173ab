"""Packing a Hugging Face dataset: where it lies, with its features."""

from __future__ import annotations

import contextlib
import json
import uuid
from pathlib import Path

import datasets
import pyarrow as pa

from brimful.errors import OutputError
from brimful.tables.background import BackgroundWriter
from brimful.tables.pack import DESCRIPTION
from brimful.tables.report import ReportBuilder
from brimful.tables.settings import PackSettings
from brimful.tables.sources import dataset_source
from brimful.tables.windows import packed_windows


def pack(dataset: datasets.Dataset, settings: PackSettings) -> datasets.Dataset:
    """Pack in memory what is in memory, and beside its other cache files what lies on disk.

    Raises:
        OutputError: the file cannot be written; none is left behind.
        BrimfulError: what `packed_windows` raises.
    """
    schema, windows = packed_windows(dataset_source(dataset), settings)
    builder = ReportBuilder(settings)
    batches = builder.batches(windows)
    if dataset.cache_files:
        path = Path(dataset.cache_files[0]["filename"]).with_name(f"cache-{uuid.uuid4().hex}.arrow")
        try:
            with BackgroundWriter(pa.ipc.new_stream(path, schema)) as writer:
                for batch in batches:
                    writer.write(batch)
        except BaseException as fault:
            with contextlib.suppress(OSError):  # the first fault is the one to report
                path.unlink()
            if isinstance(fault, OSError):
                raise OutputError(f"{path}: cannot be written ({fault.strerror or fault})") from fault
            raise
        packed = datasets.Dataset.from_file(str(path)).data
    else:
        packed = datasets.table.InMemoryTable(pa.Table.from_batches(batches, schema))
    info = datasets.DatasetInfo(
        description=DESCRIPTION + json.dumps(builder.report().to_json()),
        features=_features(dataset.features, schema, settings),
    )
    # Given no fingerprint, it would hash every token.
    return datasets.Dataset(packed, info=info, fingerprint=uuid.uuid4().hex[:16])


def _features(before: datasets.Features, schema: pa.Schema, settings: PackSettings) -> datasets.Features:
    """Lists of what there was before, so that the names of class labels and the like stay known."""
    as_list = getattr(datasets, "List", datasets.Sequence)  # List from datasets 4 on
    features = datasets.Features.from_arrow_schema(schema)
    for name, feature in before.items():
        inner = feature if name in settings.keep_columns else getattr(feature, "feature", None)
        if name in features and inner is not None and not pa.types.is_large_list(schema.field(name).type):
            features[name] = as_list(inner)
    return features
