"""``assay diagnose``: what training did to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, Overrides, Unprotected, protect, say
from assay.errors import RunError, UsageError


def diagnose(
    before: Annotated[str, Positional, tyro.conf.arg(metavar="BEFORE")],
    after: Annotated[str, Positional, tyro.conf.arg(metavar="AFTER")],
    overrides: Overrides = (),
    tasks: str | None = None,
    samples: int = 16,
    aid_samples: int = 4,
    weights: bool = True,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    as_json: AsJson = False,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Compare a model before and after training: pass@k and where it crosses, support, entropy, aids, weights.

    Example: assay diagnose runs/gsm8k/checkpoints/rl-000000 runs/gsm8k --out diag

    Args:
        before: a run folder, a checkpoint, a model folder or a hub id; or an evaluation that assay eval stored.
        after: what it became; of two evaluations, what samples alone can tell is compared.
        overrides: changes to the configuration, e.g. tasks.eval_size=200 evaluate.temperature=0.6.
        tasks: a recipe or a task source to ask; the held-out tasks of the run that AFTER is from unless given.
        samples: responses to each task from each model; pass@k is known up to as many.
        aid_samples: responses to each task with each aid (a plan, knowledge, the beginning of a solution); 0 for none.
        weights: compare the weights too, which takes a singular value decomposition of each matrix.
        out: folder for diagnosis.json, diagnosis.html and, of models, the samples.
        as_json: print the record as JSON.
    """
    from assay.diagnose.checkpoints import diagnose_names
    from assay.report.diagnosis import table
    from assay.report.diagnosis_page import write

    protect(unsafe_no_sandbox)
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out is a folder for diagnosis.json and diagnosis.html; {out} is a file")
    found, pair = diagnose_names(
        before,
        after,
        tasks=tasks,
        overrides=overrides,
        samples=samples,
        aid_samples=aid_samples,
        weights=weights,
        quiet=as_json,
    )
    paths = []
    if out is not None:
        try:
            paths = write(found, out, pair if found.readings is not None else None)
        except OSError as error:
            raise RunError(f"could not write into {out}: {error.strerror or error}") from None
    if as_json:
        print(found.to_json())
        return 0
    say(*table(found), *map(str, paths))
    return 0
