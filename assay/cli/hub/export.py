"""``assay export``: a run's model as a folder that other programs load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from assay.cli.common import AsJson, say


def export(
    run: Annotated[Path, Positional],
    folder: Annotated[Path, Positional],
    checkpoint: str | None = None,
    as_json: AsJson = False,
) -> int:
    """Write a run's model as a folder that transformers and vLLM load, with what adapters learned in its weights.

    Example: assay export runs/gsm8k models/gsm8k-qwen

    Args:
        run: its folder.
        folder: to write, which is not there yet.
        checkpoint: its name, e.g. rl-000050, or best, what run.best kept; the last one if left out.
        as_json: print the folder as JSON.
    """
    from assay.report.export import export as written

    found = written(run, folder, checkpoint)
    print(json.dumps({"folder": str(found)})) if as_json else say(str(found))
    return 0
