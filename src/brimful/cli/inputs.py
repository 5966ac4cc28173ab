"""From what was named on the command line to the lengths that planning needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from brimful.errors import DataError
from brimful.lengths import LengthHistogram, require_fit
from brimful.overflow import Ledger, OverflowPolicy, overflow_error
from brimful.planning import DATA_ORDER
from brimful.tables.batches import Source
from brimful.tables.columns import choose_columns
from brimful.tables.rows import read_rows
from brimful.tables.sources import open_source
from brimful.tables.tokenize import load_tokenizer, tokenized
from brimful.tables.types import is_list
from brimful.validation import IntArray

DEFAULT_COLUMN = "input_ids"

_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The sequences of an input after the overflow policy: how many of each length, and what became of the rest.

    Args:
        name: what to call the input in messages.
        histogram: the sequences to pack.
        ledger: the account of all rows and tokens.
        lengths: (sequences,) tokens in data order; None when a histogram was given.
    """

    name: str
    histogram: LengthHistogram
    ledger: Ledger
    lengths: npt.NDArray[np.integer[Any]] | None

    def to_plan(self, algorithm: str) -> LengthHistogram | npt.NDArray[np.integer[Any]]:
        """What an algorithm plans: lengths in data order if it packs in that and they are known, or the histogram."""
        return self.lengths if algorithm in DATA_ORDER and self.lengths is not None else self.histogram


@dataclass(frozen=True, slots=True)
class InputOptions:
    """What the command line says of the input: files, or a histogram; a column of ids, or of text to tokenize."""

    inputs: tuple[Path, ...]
    histogram: Path | None = None
    token_column: str | None = None
    text_column: str | None = None
    tokenizer: str | None = None

    def words(self) -> list[str]:
        """The same again, as words of a command line; a file named -x is ./-x there, so as not to be an option."""
        named = {
            "--histogram": self.histogram,
            "--token-column": self.token_column,
            "--text-column": self.text_column,
            "--tokenizer": self.tokenizer,
        }
        words = [f"./{path}" if str(path).startswith("-") else str(path) for path in self.inputs]
        return words + [word for name, value in named.items() if value is not None for word in (name, str(value))]


def measure(options: InputOptions, policy: OverflowPolicy, progress: Callable[[int], None]) -> Measured:
    """The lengths of the inputs, or of a histogram file; exactly one of the two is given.

    Raises:
        DataError: neither or both, or an input that cannot be read.
        CapacityError: a sequence is too long, and the policy is "error".
        LengthError: a histogram file that is none.
    """
    if options.histogram is None:
        if not options.inputs:
            raise DataError("nothing to read: name input files, or a histogram with --histogram FILE.csv")
        source, tokens = open_tokens(options)
        return measure_source(source, tokens, policy, progress)
    if options.inputs:
        raise DataError("either input files or --histogram, not both")
    if options.token_column or options.text_column or options.tokenizer:
        raise DataError("--token-column, --text-column and --tokenizer are for input files; a histogram has no columns")
    packed, ledger = cut_histogram(LengthHistogram.from_csv(options.histogram), policy)
    return Measured(str(options.histogram), packed, ledger, None)


def open_tokens(options: InputOptions) -> tuple[Source, str]:
    """The rows of the inputs, and the name of the column with the token ids."""
    if options.text_column is not None and options.token_column is not None:
        raise DataError("either --token-column for token ids or --text-column for text, not both")
    source = open_rows(options)
    tokens = options.token_column or DEFAULT_COLUMN
    if options.token_column is None and tokens not in source.schema.names:
        there = ", ".join(repr(name) for name in source.schema.names) or "none"
        raise DataError(
            f"{source.name}: there is no column {tokens!r}; its columns are: {there}; name the token ids with "
            "--token-column NAME, or tokenize text with --text-column NAME --tokenizer FILE|bytes"
        )
    source.require(tokens)
    return source, tokens


def open_rows(options: InputOptions) -> Source:
    """The rows of the inputs; text is tokenized, into a column named DEFAULT_COLUMN."""
    text_column, tokenizer = options.text_column, options.tokenizer
    if (text_column is None) != (tokenizer is None):
        raise DataError("--text-column NAME and --tokenizer FILE|bytes go together; give both or neither")
    source = open_source(options.inputs)
    if text_column is None or tokenizer is None:
        return source
    return tokenized(source, text_column, load_tokenizer(tokenizer))


def measure_source(source: Source, tokens: str, policy: OverflowPolicy, progress: Callable[[int], None]) -> Measured:
    """The lengths of a source; only the one column is read.

    Cost: one pass; four bytes a row and four a sequence are kept.
    """
    choose_columns(source, tokens, keep=_no_lists(source, tokens), drop=())  # refuses what cannot be packed
    rows = _compact(_row_lengths(source, tokens, progress))
    too_long = rows > policy.max_length
    if policy.kind == "error" and too_long.any():
        row = int(np.argmax(too_long))
        raise overflow_error(row, int(rows[row]), policy.max_length, int(too_long.sum()), len(rows), source.name)
    ledger = Ledger()
    parts = []
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        fragments, account = policy.cut(rows[start : start + _ROWS_AT_ONCE].astype(np.int64), start)
        parts.append(fragments.lengths.astype(np.uint32))  # at most max_length, below 2^31
        ledger += account
    lengths = np.concatenate([np.zeros(0, np.uint32), *parts])
    return Measured(source.name, LengthHistogram.from_lengths(lengths), ledger, lengths)


def columns_beside(options: InputOptions) -> list[str]:
    """The columns that packing can only keep as one value per sequence, or drop, as far as the first rows tell.

    Returns:
        Those that are no lists, and those that do not have an item for each token in the first batch of rows; nothing
        for a histogram.

    Cost: reads that batch.
    """
    if options.histogram is not None:
        return []
    source, tokens = open_tokens(options)
    no_lists = _no_lists(source, tokens)
    lists = [name for name in source.schema.names if name not in {tokens, *no_lists}]
    if not lists:
        return no_lists
    try:
        first = next(source.read([tokens, *lists]), None)
    except DataError:  # packing will say what is wrong
        return no_lists
    return no_lists + [name for name in lists if first and not _packs_with(tokens, name, first)]


def cut_histogram(histogram: LengthHistogram, policy: OverflowPolicy) -> tuple[LengthHistogram, Ledger]:
    """What an overflow policy makes of a histogram, as `OverflowPolicy.cut` does of rows.

    Raises:
        CapacityError: the policy is "error" and a sequence is too long; says how many.

    Example:
        >>> packed, ledger = cut_histogram(LengthHistogram.from_lengths([12, 12, 3]), OverflowPolicy("split", 5))
        >>> packed, ledger.rows_split
        (LengthHistogram(7 sequences, 27 tokens, lengths 2 to 5), 2)
    """
    if policy.kind == "error":
        require_fit(histogram, policy.max_length)
    lengths, counts = histogram.lengths, histogram.counts
    fragments, _ = policy.cut(lengths)
    packed = LengthHistogram.from_counts(fragments.lengths, counts[fragments.rows])
    n_long = int(counts[lengths > policy.max_length].sum())
    lost = histogram.n_tokens - packed.n_tokens
    n_chunks = int((-(-lengths // policy.max_length) * counts).sum())
    return packed, Ledger(
        rows_read=histogram.n_sequences,
        rows_dropped=n_long if policy.kind == "drop" else 0,
        rows_truncated=n_long if policy.kind == "truncate" else 0,
        rows_split=n_long if policy.kind == "split" else 0,
        fragments_dropped=n_chunks - packed.n_sequences if policy.kind == "split" else 0,
        sequences_packed=packed.n_sequences,
        tokens_read=histogram.n_tokens,
        tokens_packed=packed.n_tokens,
        tokens_truncated=lost if policy.kind == "truncate" else 0,
        tokens_dropped=lost if policy.kind != "truncate" else 0,
    )


def _no_lists(source: Source, tokens: str) -> list[str]:
    return [field.name for field in source.schema if not is_list(field.type) and field.name != tokens]


def _packs_with(tokens: str, name: str, batch: pa.RecordBatch) -> bool:
    try:
        read_rows("", batch, [tokens, name], [], 0)
    except DataError:
        return False
    return True


def _row_lengths(source: Source, tokens: str, progress: Callable[[int], None]) -> Iterator[IntArray]:
    n_rows = 0
    for batch in source.read([tokens]):
        yield read_rows(source.name, batch, [tokens], [], n_rows).lengths
        n_rows += batch.num_rows
        progress(batch.num_rows)


def _compact(parts: Iterator[IntArray]) -> npt.NDArray[np.integer[Any]]:
    """All lengths in one array, in four bytes each as long as they fit."""
    narrow = [part.astype(np.uint32) if part.max(initial=0) < 2**32 else part for part in parts]
    return np.concatenate(narrow) if narrow else np.zeros(0, np.uint32)
