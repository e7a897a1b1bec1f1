"""TensorBoard, with rollouts as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.loggers.base import About
from assay.records.tensorboard import EventFile
from assay.registry import part


@part("logger", "tensorboard")
class TensorBoard:
    """TensorBoard: scalars, and rollouts as tables of text; ``run.tensorboard`` writes scalars without it.

    Args:
        folder: that holds a folder a run, for `tensorboard --logdir`; tensorboard beside the run's if left out.
        rows: responses of a step in its table; 0 for no tables.
    """

    def __init__(self, folder: str | None = None, rows: int = 16):
        self.folder, self.rows = folder, rows

    def start(self, about: About) -> None:
        beside = Path(self.folder) if self.folder is not None else about.folder.parent / "tensorboard"
        self._file = EventFile(beside / f"{about.name}-{about.id[:8]}")

    def metrics(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        self._file.add({f"{stage}/{k}": v for k, v in values.items()}, step)

    def table(self, name: str, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        columns = list(rows[0])
        lines = [columns, ["---"] * len(columns), *([_cell(row[c]) for c in columns] for row in rows)]
        self._file.add_text(f"rl/{name}", "\n".join(f"| {' | '.join(line)} |" for line in lines), step)

    def close(self) -> None:
        self._file.close()


def _cell(value: Any) -> str:
    """Return a value as a cell of a Markdown table, in which nothing is markup."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("\n", "<br>")):
        text = text.replace(sign, name)
    return text
