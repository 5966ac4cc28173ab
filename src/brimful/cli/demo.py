"""brimful demo: the whole path on a corpus that every Python has."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console

from brimful.cli import options, printing
from brimful.cli.corpus import Corpus, standard_library_docstrings
from brimful.cli.pack import loading_line
from brimful.errors import OutputError
from brimful.report.figures import figures_table, ledger_table
from brimful.report.picture import RowsPicture
from brimful.tables.batches import Source
from brimful.tables.check import Check, check_packed
from brimful.tables.columns import SEQ_LENGTHS
from brimful.tables.manifest import Manifest
from brimful.tables.output import MANIFEST, complete_or_nothing, pack_to_folder
from brimful.tables.pack import PackReport
from brimful.tables.same_sequences import same_sequences
from brimful.tables.sources import open_source, table_source
from brimful.tables.tokenize import load_tokenizer, tokenized
from brimful.tables.windows import PackSettings

TOKENS_FILE = "tokens.parquet"
PACKED_FOLDER = "packed"

_DOCUMENT = "document"
_DRAWN_ROWS = 6

Output = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="DIR", help="The folder to write; an earlier demo in it is replaced."),
]
DemoMaxLength = Annotated[
    int, typer.Option("--max-length", metavar="N", parser=options.capacity("max_length"), help="Token slots in a pack.")
]
DemoTokenizer = Annotated[
    str, typer.Option("--tokenizer", metavar="FILE|bytes", help="A tokenizer.json, or 'bytes' for the bytes in UTF-8.")
]


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo did, ready to be printed."""

    corpus: Corpus
    report: PackReport
    checks: list[Check]
    lengths: list[int]  # of the documents, in order
    packs: list[list[int]]  # seq_lengths of the first rows
    seconds: float


def command(
    output: Output = Path("brimful-demo"),
    max_length: DemoMaxLength = 2048,
    tokenizer: DemoTokenizer = "bytes",
    json: options.Json = False,
) -> Callable[[], int]:
    """The whole path on a corpus that every Python has: the docstrings of its standard library."""

    def run() -> int:
        with printing.status("demo") as now:
            demo = run_demo(output, max_length, tokenizer, now)
        if json:
            printing.print_json(_to_json(demo, output))
        else:
            _print(printing.output(), demo, output, tokenizer)
        return 0 if all(check.passed for check in demo.checks) else 1

    return run


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
    lengths = [len(ids) for batch in source.read(["input_ids"]) for ids in batch.column("input_ids")]
    packed = open_source([folder / PACKED_FOLDER])
    packs = next(packed.read([SEQ_LENGTHS])).column(SEQ_LENGTHS).slice(0, _DRAWN_ROWS).to_pylist()
    return Demo(corpus, report, checks, lengths, packs, time.perf_counter() - started)


def require_replaceable(folder: Path) -> None:
    """Nothing, if the folder does not exist or holds an earlier demo and nothing else; otherwise an OutputError."""
    if not folder.exists() and not folder.is_symlink():
        return
    stay = f"{folder}: exists already, and is not the output of an earlier demo alone"
    if folder.is_symlink() or not folder.is_dir():
        raise OutputError(f"{stay}; choose another folder with -o, or remove this one")
    try:
        manifest = Manifest.load(folder / PACKED_FOLDER)
    except (OSError, ValueError, TypeError, KeyError):
        raise OutputError(f"{stay}; choose another folder with -o, or remove this one") from None
    own = {Path(TOKENS_FILE), Path(PACKED_FOLDER, MANIFEST)}
    own |= {Path(PACKED_FOLDER, path) for path, _, _ in manifest.shards}
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


def _to_json(demo: Demo, output: Path) -> dict[str, Any]:
    plan = demo.report.plan
    return {
        **plan.figures(),
        "lower_bound_kind": plan.bound.kind,
        "padding_fraction": plan.histogram.padding_fraction(plan.max_length),
        "ledger": asdict(demo.report.ledger),
        "documents": len(demo.corpus.texts),
        "checks": [asdict(check) for check in demo.checks],
        "tokens_file": str(output / TOKENS_FILE),
        "output": str(output / PACKED_FOLDER),
        "demo_seconds": demo.seconds,
    }


def _print(console: Console, demo: Demo, output: Path, tokenizer: str) -> None:
    plan = demo.report.plan
    max_length = plan.max_length
    what = "one a byte" if tokenizer == "bytes" else f"by {tokenizer}"
    console.print("The docstrings of this Python's standard library", style="bold")
    console.print(
        f"  {len(demo.corpus.texts):,} documents from {demo.corpus.files - demo.corpus.skipped:,} files, "
        f"{demo.report.ledger.tokens_read:,} tokens, {what}"
    )
    console.print(f"\nBefore: one to a row of {max_length:,}, the rest is padding", style="bold")
    before = [[min(length, max_length)] for length in demo.lengths[:_DRAWN_ROWS]]
    console.print(RowsPicture(before, max_length))
    padding = plan.histogram.padding_fraction(max_length)
    console.print(f"  {plan.histogram.n_sequences:,} rows, of which {padding:.1%} is padding")
    console.print("\nAfter: several whole sequences to a row", style="bold")
    console.print(RowsPicture(demo.packs, max_length))
    console.print(f"  {plan.packs:,} rows, of which {1 - plan.efficiency:.1%} is padding\n")
    console.print(figures_table(plan.figures(), plan.bound.kind))
    console.print(ledger_table(demo.report.ledger))
    if demo.report.ledger.rows_split:
        console.print(f"  Documents longer than {max_length:,} tokens were split (--overflow split).", style="dim")
    console.print("\nRead back and checked", style="bold")
    for check in demo.checks:
        good, bad = ("ok", "FAILED") if console.options.ascii_only else ("✓", "✗ FAILED")
        mark, style = (good, "green") if check.passed else (bad, "bold red")
        console.print(f"  {mark} ", style=style, end="")
        console.print(f"{check.name}: {check.detail}", soft_wrap=True)
    console.print(f"\nDone in {demo.seconds:.1f} s. The tokens are in {output / TOKENS_FILE}.", soft_wrap=True)
    packed = output / PACKED_FOLDER
    printing.print_command(console, "Packed into", str(packed))
    printing.print_command(console, "To load it:", f"import datasets; {loading_line(packed, 'parquet')}")
    command = f"brimful analyze {output / TOKENS_FILE} --max-length {max_length} --overflow split"
    printing.print_command(console, "Next:", command)
