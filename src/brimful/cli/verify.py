"""brimful verify: is packed training the same training on this model, or which part leaks?"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from brimful.cli import options, printing
from brimful.errors import SettingError
from brimful.models.rules import ATTENTION

if TYPE_CHECKING:
    from brimful.verify import VerifyReport

Model = Annotated[str, typer.Argument(metavar="MODEL", hidden=True)]
Attention = Annotated[
    str | None,
    typer.Option(
        "--attention",
        metavar="A",
        help=f"How sequences are kept apart: {', '.join(ATTENTION)}; if left out, by the rule of its architecture.",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option("--tolerance", metavar="X", help="Largest difference; 1e-5 in float32, 1e-12 in float64 if left out."),
]
Dtype = Annotated[
    list[str] | None,
    typer.Option(
        "--dtype", metavar="D", help="float32, float64, bfloat16 or float16; repeatable; the first two if none."
    ),
]
Causal = Annotated[
    bool | None,
    typer.Option("--causal/--both-ways", help="Whether tokens see only what is before them, for a module of your own."),
]
AllowPickle = Annotated[bool, typer.Option("--allow-pickle", help="Load pickled weights as well; they may run code.")]

MODEL_HELP = (
    "MODEL: a folder with config.json and model.safetensors; a CONFIG.json, for random weights; or module:factory, a "
    "function that returns a torch module, imported from the current folder: that runs its code."
)


def command(
    model: Model,
    attention: Attention = None,
    tolerance: Tolerance = None,
    dtype: Dtype = None,
    causal: Causal = None,
    allow_pickle: AllowPickle = False,
    json: options.Json = False,
) -> Callable[[], int]:
    """Is what MODEL does to packed rows the same as what it does to the sequences one by one?

    Outputs, loss and gradients are compared, and every sequence is changed to see that no other changes with it.
    Exit status 1 if not, with the part where it starts, the likely cause and the remedy.
    """

    def run() -> int:
        try:
            from brimful.verify import verify
        except ImportError as fault:
            raise SettingError(str(fault)) from None
        from brimful.cli.model_inputs import one_line, open_model

        with printing.status("verifying") as now:
            now("loading the model")
            opened = open_model(model, attention, allow_pickle)
            for note in opened.notes:
                print(note, file=sys.stderr)
            now("running it")
            with one_line(f"{model}: cannot be verified"):
                report = verify(
                    opened.model,
                    attention=attention,
                    tolerance=tolerance,
                    collate=opened.collate if attention is None else None,
                    causal=causal,
                    dtypes=dtype or ("float32", "float64"),
                )
        if json:
            printing.print_json({"input": model, **report.to_json()})
        else:
            _print(printing.output(), model, report)
        return 0 if report.passed else 1

    return run


def _print(console: Console, name: str, report: VerifyReport) -> None:
    console.print(name, style="bold", soft_wrap=True)
    console.print(f"  {report.verdict()}", style="green" if report.passed else "bold red", soft_wrap=True)
    printing.print_checks(console, report.checks)
    for line in (*report.examples(), *report.explained()):
        console.print(f"  {line}", soft_wrap=True)
    for note in report.notes:
        console.print(f"  {note}", style="dim", soft_wrap=True)
