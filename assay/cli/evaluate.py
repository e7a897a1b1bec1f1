"""``assay eval`` and ``assay report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from assay.cli.common import AsJson, Overrides, Unprotected, protect
from assay.errors import RunError, UsageError


def evaluate(
    target: Annotated[str, Positional],
    overrides: Overrides = (),
    samples: int = 4,
    out: Path | None = None,
    as_json: AsJson = False,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Measure a run, a recipe's model, or any model on held-out tasks: pass@k with 95% intervals.

    Args:
        target: a run folder, a recipe, or a model (hub id, folder, GGUF file).
        overrides: changes to its configuration, e.g. tasks.source=countdown tasks.eval_size=200.
        samples: responses per task.
        out: store every response and verdict in this Parquet file.
        as_json: print the metrics as JSON.
    """
    from assay.api import evaluate as run
    from assay.training.console import Reporter

    protect(unsafe_no_sandbox)
    evaluation = run(target, overrides=overrides, samples=samples, quiet=as_json)
    if out is not None:
        try:
            evaluation.to_parquet(out)
        except OSError as error:
            raise RunError(f"could not write {out}: {error.strerror or error}") from None
    metrics = evaluation.metrics()
    if as_json:
        print(json.dumps(metrics))
        return 0
    from rich.table import Table

    table = Table("metric", "value", "95% interval")
    for key, value in metrics.items():
        if not key.endswith(("/low", "/high", "/tasks")):
            low, high = metrics.get(f"{key}/low"), metrics.get(f"{key}/high")
            table.add_row(key, f"{value:.4g}", "" if low is None else f"{low:.3f} to {high:.3f}")
    Reporter().console.print(table)
    return 0


def report(run: Annotated[Path, Positional]) -> int:
    """Write (again) the HTML report of a run folder.

    Args:
        run: the run's folder.
    """
    from assay.report.html import write_report

    if not (run / "config.toml").is_file():
        raise UsageError(f"{run} is no run folder: it holds no config.toml")
    print(write_report(run))
    return 0
