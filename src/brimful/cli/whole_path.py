"""The whole path of the demo: collect, tokenize, write, pack, read back and check; it removes nothing but its own."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from brimful.checks import Check
from brimful.cli.corpus import Corpus, standard_library_docstrings
from brimful.errors import DataError, OutputError
from brimful.tables.batches import Source
from brimful.tables.check import check_packed
from brimful.tables.columns import SEQ_LENGTHS
from brimful.tables.manifest import MANIFEST, Manifest
from brimful.tables.output import complete_or_nothing, pack_to_folder
from brimful.tables.report import PackReport
from brimful.tables.same_sequences import same_sequences
from brimful.tables.settings import PackSettings
from brimful.tables.sources import open_source, table_source
from brimful.tables.tokenize import load_tokenizer, tokenized

TOKENS_FILE = "tokens.parquet"
PACKED_FOLDER = "packed"

_DOCUMENT = "document"
_DRAWN = 6  # documents, and packs


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo did, ready to be printed."""

    corpus: Corpus
    report: PackReport
    checks: list[Check]
    first_lengths: list[int]  # of the first documents, in tokens
    first_packs: list[list[int]]  # seq_lengths of the first packs
    tokens_file: Path
    packed_folder: Path
    seconds: float

    @property
    def padding_fraction(self) -> float:
        """The share of token slots that would be padding without packing."""
        return 1 - 1 / float(self.report.figures["speedup_limit"])


def run_demo(
    folder: Path, max_length: int, tokenizer: str = "bytes", now: Callable[[str], None] = lambda _: None
) -> Demo:
    """Collect, tokenize, write, pack, read back and check.

    Args:
        folder: gets tokens.parquet and packed/; it must not exist, or hold an earlier demo and nothing else.
        max_length: token slots in a pack; longer documents are split.
        tokenizer: "bytes" or a tokenizer.json.
        now: called with what is being done.

    Raises:
        OutputError: the folder holds something else, which stays as it is.
        DataError: no corpus, or no such tokenizer.
    """
    started = time.perf_counter()
    settings = PackSettings(max_length, overflow="split", keep_columns=(_DOCUMENT,))
    encode = load_tokenizer(tokenizer)
    require_replaceable(folder)
    now("reading docstrings")
    corpus = standard_library_docstrings()
    texts = pa.table({_DOCUMENT: corpus.names, "text": corpus.texts})
    with _replacing(folder), complete_or_nothing(folder) as partial:
        now("tokenizing")
        rows = tokenized(table_source(texts), "text", encode)
        with pq.ParquetWriter(partial / TOKENS_FILE, rows.schema) as writer:
            for batch in rows.read(None):
                writer.write_batch(batch)
        now("packing")
        report = pack_to_folder(_tokens(partial, folder), settings, partial / PACKED_FOLDER)
    now("checking")
    source = _tokens(folder, folder)
    checks = [*check_packed(folder / PACKED_FOLDER), same_sequences(source, folder / PACKED_FOLDER)]
    return Demo(
        corpus,
        report,
        checks,
        [len(ids) for ids in _first(source, settings.token_column)],
        _first(open_source([folder / PACKED_FOLDER]), SEQ_LENGTHS),
        folder / TOKENS_FILE,
        folder / PACKED_FOLDER,
        time.perf_counter() - started,
    )


def require_replaceable(folder: Path) -> None:
    """Nothing, if the folder does not exist or holds an earlier demo and nothing else; otherwise an OutputError."""
    if not folder.exists() and not folder.is_symlink():
        return
    stay = f"{folder}: exists already, and is not the output of an earlier demo alone"
    if folder.is_symlink() or not folder.is_dir():
        raise OutputError(f"{stay}; choose another folder with -o, or remove this one")
    try:
        manifest = Manifest.load(folder / PACKED_FOLDER)
    except DataError:
        raise OutputError(f"{stay}; choose another folder with -o, or remove this one") from None
    own = {Path(TOKENS_FILE), Path(PACKED_FOLDER, MANIFEST)}
    own |= {Path(PACKED_FOLDER, shard.path) for shard in manifest.shards}
    own |= {parent for path in own for parent in path.parents}
    for path in sorted(folder.rglob("*")):
        if path.relative_to(folder) not in own:
            raise OutputError(f"{stay}: it holds {path}; choose another folder with -o, or remove it")


@contextmanager
def _replacing(folder: Path) -> Iterator[None]:
    """Out of the way while the block runs; gone when it ends well, back again when it does not."""
    if not folder.exists():
        yield
        return
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-before-", dir=folder.parent))
        earlier = folder.rename(aside / folder.name)
    except OSError as fault:
        raise OutputError(f"{folder}: cannot be replaced ({fault.strerror})") from None
    try:
        yield
    except BaseException:
        earlier.rename(folder)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _tokens(where: Path, named: Path) -> Source:
    return replace(open_source([where / TOKENS_FILE]), name=str(named / TOKENS_FILE))


def _first(source: Source, column: str) -> list[list[int]]:
    """The first lists of a column; no more batches are read than hold them."""
    lists: list[list[int]] = []
    for batch in source.read([column]):
        lists += batch.column(column).slice(0, _DRAWN - len(lists)).to_pylist()
        if len(lists) == _DRAWN:
            break
    return lists
