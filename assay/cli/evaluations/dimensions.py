"""``assay eval MODEL --dimensions FILE``: what a reward model's states tell apart."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from assay.cli.common import print_table, say


def eval_dimensions(source: str, path: Path, out: Path | None, as_json: bool) -> int:
    """Probe a reward model on labelled responses; write the clusters of its states to ``out``."""
    from assay.inference.supervision.probing import probing
    from assay.rewards.judges.dimensions import read_labelled
    from assay.rewards.judges.preference_model import PreferenceModel

    rows = read_labelled(path)
    found = probing(PreferenceModel(source), rows)
    if out is not None:
        found.clusters.save(out)
    if as_json:
        dimensions = {name: asdict(probed) for name, probed in found.dimensions.items()}
        print(
            json.dumps(
                {
                    "dimensions": dimensions,
                    "easy": found.easy,
                    "hard": found.hard,
                    "threshold": found.clusters.threshold,
                }
            )
        )
        return 0
    cells = [
        (name, *(f"{x.value:.3f} ({x.low:.3f} to {x.high:.3f})" for x in (p.easy, p.hard)), f"{p.tested}")
        for name, p in found.dimensions.items()
    ]
    mean = ("mean", f"{found.easy:.3f}", f"{found.hard:.3f}", "")
    print_table(("accuracy of a probe (95% interval)", "0 or above", "0, 1 or 2", "responses"), [*cells, mean])
    if out is not None:
        say(f"{out}: clusters of states; far is beyond {found.clusters.threshold:.3g}")
    return 0
