"""Trackio, https://huggingface.co/docs/trackio."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from assay.loggers.base import About, library
from assay.registry import part


@part("logger", "trackio")
class Trackio:
    """Trackio: metrics and tables of rollouts in a local database that `trackio show` draws, or in a Space.

    The database lies where the environment's TRACKIO_DIR says.

    Args:
        project: what runs that belong together share; `trackio show --project` takes it.
        space: Hugging Face Space that it goes to, owner/name; local if left out.
        name: of the run; that of its folder and the run's id if left out.
        rows: responses of a step in its table; 0 for no tables.
    """

    def __init__(self, project: str = "assay", space: str | None = None, name: str | None = None, rows: int = 16):
        self.trackio = library("trackio", "trackio")
        # It prints to standard output, where a command's own output may be read by a program; redirecting that from a
        # logger's thread would take everybody's.
        for module in [m for n, m in sys.modules.items() if n.partition(".")[0] == "trackio"]:
            vars(module)["print"] = lambda *_, **__: None
        self.project, self.space, self.name, self.rows = project, space, name, rows

    def start(self, about: About) -> None:
        self._run = self.trackio.init(
            self.project,
            # Trackio goes on with a run by its name.
            name=self.name or f"{about.name}-{about.id[:8]}",
            space_id=self.space,
            config=about.flat(),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def metrics(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        self._run.log({f"{stage}/{k}": v for k, v in values.items()}, step=step)

    def table(self, name: str, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        columns = list(rows[0])
        table = self.trackio.Table(columns=columns, data=[[row[c] for c in columns] for row in rows])
        self._run.log({f"rl/{name}": table}, step=step)

    def close(self) -> None:
        self._run.finish()
