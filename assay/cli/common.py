"""What several commands share: argument types and plain printing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any

import tyro

from assay.errors import UsageError
from assay.printable import printable

Overrides = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="a.b.c=value")]
AsJson = Annotated[bool, tyro.conf.arg(name="json")]
Unprotected = Annotated[
    bool,
    tyro.conf.FlagCreatePairsOff,
    tyro.conf.arg(
        help="run programs from responses without a sandbox: they can do what you can. Only for programs you trust, "
        "on machines without bubblewrap."
    ),
]
"""``unsafe_no_sandbox`` of commands that run code, to be handed to :func:`protect`."""


LOOPBACK = ("127.0.0.1", "::1", "localhost")


def options_of(environment: str, words: Iterable[str]) -> dict[str, Any]:
    """Return an environment's options from ``option=value``.

    Raises:
        UsageError: a word is none.
    """
    from assay.config import apply_override

    options: dict[str, Any] = {}
    for word in words:
        if not word.partition("=")[0].isidentifier() or "=" not in word:
            raise UsageError(f"environment {environment}: {word!r} is no option=value")
        apply_override(options, word)
    return options


def mentions(texts: Iterable[str], words: str) -> bool:
    """Whether every one of ``words`` stands in some of the texts, in any case."""
    text = "\n".join(texts).lower()
    return all(word in text for word in words.lower().split())


def interrupted(*_: Any) -> None:
    """Be a signal's handler that ends what runs, as Ctrl-C does."""
    raise KeyboardInterrupt


def protect(unsafe_no_sandbox: bool) -> None:
    """Leave programs to the sandbox, unless the command was told not to; then a warning says so."""
    if unsafe_no_sandbox:
        from assay.sandbox import run_unprotected

        run_unprotected()


def say(*lines: str) -> None:
    """Print lines for people; what others wrote in them is text, and no orders to the terminal."""
    print(*map(printable, lines), sep="\n")


def plain(row: Any) -> dict[str, Any]:
    """A record as a dictionary that JSON can hold."""
    if is_dataclass(row) and not isinstance(row, type):
        row = asdict(row)
    return {k: v for k, v in row.items() if k != "factory"}


def print_table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    # What a row is called stands on one line, unless it takes half of it; nothing is cut.
    whole = max((len(row[0]) for row in rows), default=0) <= console.width // 2
    heads = [Column(name, no_wrap=whole and place == 0, overflow="fold") for place, name in enumerate(columns)]
    table = Table(*heads, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(printable, row))
    with console.capture() as shown:  # rich itself would end the process where a reader went away
        # Piped output keeps its lines whole, whatever the width.
        console.print(table, soft_wrap=not console.is_terminal, crop=console.is_terminal)
    print(shown.get(), end="")
