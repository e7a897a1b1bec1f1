"""Tasks of writing proofs, of analysing them, and of analysing analyses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.engines.asking import filled
from assay.errors import UsageError
from assay.records.files import write_text
from assay.records.rows import read_rows
from assay.registry import part
from assay.tasks.judging.proof_judge import proof_judge_of
from assay.tasks.seeded import check_index
from assay.types import Task
from assay.verify.proofs.analysis import SCORES
from assay.verify.proofs.prompts import ANALYSE, META, PROVE


@part("tasks", "proofs")
class Proofs:
    """Tasks for the three roles of one model, by what a row of a file has beside ``problem``:

    - nothing: write a proof and analyse it (kind ``none``);
    - ``proof`` and ``score``: analyse the proof (kind ``analysis``);
    - ``proof``, ``analysis`` and ``score``: analyse the analysis; the score is the analysis's own.

    With a ``labeller`` rows with ``proof`` alone are labelled by it, see
    :meth:`~assay.tasks.judging.proof_judge.ProofJudge.label`; what it cannot label is left out. ``meta`` has the row's
    texts.

    Args:
        path: the file.
        labeller: a judge of proofs, or its options: a model that this role has been trained with.
        n, m, k: analyses, votes on each objection, and valid ones at the lowest score that make it the label.
        keep: a JSONL file of what was labelled, made if it is not there and read if it is.

    Raises:
        UsageError: a row of another form, with its line, a proof without a score and a labeller, one without ``keep``,
            or no tasks.
    """

    def __init__(self, path: Path, labeller: Any = None, n: int = 8, m: int = 3, k: int = 2, keep: Path | None = None):
        if min(n, m, k) < 1 or (labeller is None) != (keep is None):
            raise UsageError("tasks 'proofs': n, m and k are 1 or more, and labeller and keep go together")
        rows = [(where, dict(row)) for where, row in read_rows(Path(path)) if isinstance(row, Mapping)]
        bare = [row for _, row in rows if "proof" in row and "analysis" not in row and "score" not in row]
        if labeller is not None and keep is not None:
            if Path(keep).is_file():
                labelled = [(where, dict(row)) for where, row in read_rows(Path(keep))]
            else:
                items = [(str(row.get("problem")), str(row["proof"])) for row in bare]
                labels = proof_judge_of(labeller).label(items, n, m, k)
                told = [{**row, "score": s} for row, s in zip(bare, labels, strict=True) if s is not None]
                write_text(Path(keep), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in told))
                labelled = [(f"{keep}, row {i}", row) for i, row in enumerate(told, 1)]
            rows = [(where, row) for where, row in rows if row not in bare] + labelled
        self.tasks = [_task(where, row) for where, row in rows]
        if not self.tasks:
            raise UsageError(f"{path} has no problems, or none whose proofs could be labelled")

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def _task(where: str, row: Mapping[str, Any]) -> Task:
    shown = {name: row[name] for name in ("problem", "proof", "analysis") if row.get(name) is not None}
    score = row.get("score")
    fits = "problem" in shown and all(isinstance(x, str) and x.strip() for x in shown.values())
    if not fits or ("proof" in shown) != (score in SCORES) or ("analysis" in shown and "proof" not in shown):
        raise UsageError(
            f"{where}: a row has problem; with proof also score, 0, 0.5 or 1, or a labeller, and perhaps analysis"
        )
    if "proof" not in shown:
        return Task(where, filled(PROVE, **shown), kind="none", meta=shown)
    asked = filled(META if "analysis" in shown else ANALYSE, **shown)
    return Task(where, asked, float(str(score)), "analysis", meta=shown)
