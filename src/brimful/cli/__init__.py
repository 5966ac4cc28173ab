"""The command `brimful`: parse, call, print. One file a command; `main` decides how each run ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TextIO

import typer

import brimful
from brimful.cli import analyze, check, demo, options, pack, plan, simulate, tune, verify
from brimful.errors import BrimfulError

__all__ = ["app", "main"]

BAD_INPUT = 2
BROKEN_PIPE = 128 + 13  # SIGPIPE

app = typer.Typer(
    name="brimful",
    help="Pack variable-length token sequences into full rows, and prove how near to the optimum that is.",
    epilog="`brimful demo` shows the whole path. Every command takes --json and --help.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for name, command, in_short in (
    ("analyze", analyze.command, "How much is padding, and what packing would give."),
    ("plan", plan.command, "Decide which lengths share a pack."),
    ("pack", pack.command, "Pack files into a folder of full rows."),
    ("check", check.command, "Check a packed folder, and that it holds what its input held."),
    ("simulate", simulate.command, "Speed-up over padding, from one device to thousands."),
):
    app.command(name, short_help=in_short, epilog=options.INPUT_HELP)(command)
app.command("verify", short_help="Is packed the same as separate on your model?", epilog=verify.MODEL_HELP)(
    verify.command
)
app.command("tune", short_help="Batch, steps and betas under packing.")(tune.command)
app.command("demo", short_help="The whole path, on a corpus that every Python has.")(demo.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"brimful {brimful.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    del version


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and say how it ended.

    Args:
        arguments: what follows the command's name; None for those of this process. Without any, help is printed.

    Returns:
        The exit status: 0 done, 1 a check that was asked for failed, 2 bad input, with one line on standard error;
        130 interrupted, 143 told to end (nothing half-written stays behind), 141 the reader of the output went away.

    Example:
        >>> main(["--version"])
        brimful 0.1.0
        0
    """
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a sign that cannot be shown is no error
    _end_like_an_interrupt()
    try:
        status = _run(given)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
        return BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort) as end:
        by = next((number for number in end.args if isinstance(number, int)), signal.SIGINT)
        return _fail("interrupted" if by == signal.SIGINT else "told to end", 128 + by)
    except BrimfulError as fault:
        return _fail(str(fault))
    except OSError as fault:
        _discard(sys.stdout)
        place = f"{fault.filename}: " if fault.filename is not None else ""
        return _fail(f"{place}{fault.strerror or fault}")
    return status


def _end_like_an_interrupt() -> None:
    """Let the signals by which batch systems end a job clean up as Ctrl-C does."""

    def end(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    for name in ("SIGTERM", "SIGHUP"):
        with contextlib.suppress(AttributeError, ValueError):  # not on this system, or not in the main thread
            signal.signal(getattr(signal, name), end)


def _run(arguments: list[str]) -> int:
    """Parse with typer, which gives a function; call it outside of typer, so that its errors arrive as they are."""
    try:
        parsed: Any = typer.main.get_command(app).main(arguments, prog_name="brimful", standalone_mode=False)
    except SystemExit as end:  # typer's own answer to a broken pipe while it prints help
        raise BrokenPipeError from end
    except Exception as fault:
        # Usage errors have these two, in every version of typer and of the library below it.
        describe: Callable[[], str] | None = getattr(fault, "format_message", None)
        if describe is None or not hasattr(fault, "exit_code"):
            raise
        context = getattr(fault, "ctx", None)
        path = getattr(context, "command_path", None) or "brimful"
        return _fail(f"{describe().rstrip('.')}; see {path} --help")
    if callable(parsed):
        return int(parsed())
    return int(parsed or 0)


def _fail(message: str, status: int = BAD_INPUT) -> int:
    with contextlib.suppress(OSError):
        print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return status


def _discard(stream: TextIO) -> None:
    """What is left in the buffer goes nowhere, instead of failing once more when Python ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
