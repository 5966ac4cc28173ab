"""What a renderable looks like in a terminal."""

import io

from rich.console import Console


def draw(renderable, width=80, colour=False):
    """The lines, without the blanks that pad them; with colour codes if wanted."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=colour, color_system="standard" if colour else None)
    console.print(renderable)
    return [line.rstrip() for line in stream.getvalue().splitlines()]
