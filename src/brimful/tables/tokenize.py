"""Text to token ids, batch by batch: as UTF-8 bytes, or with a tokenizer of the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimful.errors import DataError
from brimful.tables.batches import Source, make_source
from brimful.tables.types import is_text

Ragged = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""Ids of all texts end to end, (tokens,), and where each text's ids begin and end, (texts + 1,)."""

Tokenizer = Callable[[pa.LargeStringArray], Ragged]
"""Texts without nulls -> ids and offsets."""

_ENCODE_BYTES = 1 << 20  # of text at a time: the library keeps far more than an id for each token


def load_tokenizer(spec: str) -> Tokenizer:
    """The tokenizer that a spec names.

        "bytes"                     ids 0 … 255 are the bytes of the text in UTF-8
        "path/to/tokenizer.json"    a file of the `tokenizers` library, or the folder that holds one

    Args:
        spec: one of the two.

    Returns:
        A function from texts to ids and offsets. Nothing is cut off and nothing is padded, whatever the file says of
        truncation and padding. Special tokens are added as its post-processor says.

    Raises:
        DataError: no such file, not a tokenizer, or the `tokenizers` library is missing.

    Example:
        >>> ids, offsets = load_tokenizer("bytes")(pa.array(["ab", "", "é"], pa.large_string()))
        >>> ids.tolist(), offsets.tolist()
        ([97, 98, 195, 169], [0, 2, 2, 4])

    Cost: "bytes" is one pass over the text; a file costs what its tokenizer costs.
    """
    if spec == "bytes":
        return _bytes
    path = Path(spec)
    if path.is_dir():
        path /= "tokenizer.json"
    if not path.is_file():
        raise DataError(
            f"{spec}: a tokenizer must be 'bytes' or the path of a tokenizer.json, but there is no such file; "
            "download it first"
        )
    try:
        import tokenizers
    except ImportError as error:
        raise DataError(
            f"{spec}: reading a tokenizer.json needs the tokenizers library: pip install 'brimful[text]'"
        ) from error
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more special
        raise DataError(f"{path}: is not a tokenizer that can be read: {' '.join(str(error).split())}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts: pa.LargeStringArray) -> Ragged:
        ids, lengths = [], [np.zeros(1, np.int64)]
        for part in _parts(texts):
            encoded = [encoding.ids for encoding in tokenizer.encode_batch_fast(part.to_pylist())]
            lengths.append(np.fromiter(map(len, encoded), np.int64, len(encoded)))
            ids.append(np.fromiter(chain.from_iterable(encoded), np.int32, int(lengths[-1].sum())))
        return np.concatenate(ids) if ids else np.zeros(0, np.int32), np.cumsum(np.concatenate(lengths))

    return encode


def tokenized(source: Source, text_column: str, tokenizer: Tokenizer) -> Source:
    """The same rows with `input_ids` in the place of the text.

    Args:
        source: rows with a column of text.
        text_column: its name; it must be text without nulls.
        tokenizer: from `load_tokenizer`.

    Returns:
        A source whose `input_ids` is list<int32>. Reading only other columns does not tokenize.

    Raises:
        DataError: no such column, not text, or `input_ids` is there already. When read: a text is null.

    Example:
        >>> from brimful.tables.sources import table_source
        >>> source = tokenized(table_source(pa.table({"id": [7], "text": ["hi"]})), "text", load_tokenizer("bytes"))
        >>> next(source.read(None)).to_pydict()
        {'id': [7], 'input_ids': [[104, 105]]}

    Cost: that of the tokenizer, again at each read; memory for one batch.
    """
    source.require(text_column)
    kind = source.schema.field(text_column).type
    if not is_text(kind):
        raise DataError(
            f"{source.name}: a column to tokenize must be text, but {text_column!r} is {kind}; name another"
        )
    if "input_ids" in source.schema.names:
        raise DataError(
            f"{source.name}: tokenizing writes the column 'input_ids', but there is one already; "
            "use it without tokenizing, or rename it"
        )
    place = source.schema.get_field_index(text_column)
    schema = source.schema.set(place, pa.field("input_ids", pa.list_(pa.int32())))

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        row = 0
        for batch in source.read([text_column if column == "input_ids" else column for column in columns]):
            if "input_ids" in columns:
                texts = batch.column(text_column)
                _check_no_null(texts, row, source.name, text_column)
                index = columns.index("input_ids")
                batch = batch.set_column(index, schema.field("input_ids"), _id_lists(texts, tokenizer, source.name))
            row += batch.num_rows
            yield batch

    return make_source(source.name, schema, source.n_rows, batches)


def _bytes(texts: pa.LargeStringArray) -> Ragged:
    _, starts, data = texts.buffers()
    if not len(texts):
        return np.zeros(0, np.int32), np.zeros(1, np.int64)
    offsets = np.frombuffer(starts, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    return text.astype(np.int32), offsets - offsets[0]


def _parts(texts: pa.LargeStringArray) -> Iterator[pa.LargeStringArray]:
    """The texts in runs of about _ENCODE_BYTES."""
    step = max(1, int(len(texts) * _ENCODE_BYTES / max(1, texts.nbytes)))
    for start in range(0, len(texts), step):
        yield texts.slice(start, step)


def _id_lists(texts: pa.Array, tokenizer: Tokenizer, name: str) -> pa.ListArray:
    ids, offsets = tokenizer(texts.cast(pa.large_string()))
    if len(ids) > np.iinfo(np.int32).max:
        raise DataError(f"{name}: a text must have fewer than 2**31 tokens, but one batch has {len(ids)}; cut it up")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ids))


def _check_no_null(texts: pa.Array, first_row: int, name: str, column: str) -> None:
    if texts.null_count:
        row = first_row + int(np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(
            f"{name}: a text must not be null, but {column!r} is in row {row} (the first is row 0); drop that row"
        )
