"""``assay eval MODEL --traces FILE``: solutions measured step by step against reference solutions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from assay.cli.common import print_table
from assay.errors import UsageError, nearest


def eval_traces(target: str, overrides: Sequence[str], path: Path, form: str, judge: str | None, as_json: bool) -> int:
    """Measure the traces in a file by a model; see :mod:`assay.evaluate.traces`."""
    from assay.engines.hf import HFEngine
    from assay.engines.target import resolve
    from assay.evaluate.traces.likeness import Form, Likeness
    from assay.evaluate.traces.score import TraceScore
    from assay.evaluate.traces.trace import read_traces
    from assay.policies.pictures.vision_lm import VisionLM
    from assay.statistics.intervals import mean_interval

    if form not in get_args(Form):
        raise UsageError(
            f"--scorer of --traces is {' or '.join(get_args(Form))}, not {form!r}{nearest(form, get_args(Form))}"
        )
    traces, policy = read_traces(path), resolve(target, overrides).load()
    sees = judge is not None or isinstance(policy, VisionLM)
    measure = TraceScore(Likeness(policy, form), _judge(judge) or HFEngine(policy), sees=sees)  # type: ignore[arg-type]
    found = [measure(trace) for trace in traces]
    columns: dict[str, list[float | None]] = {
        name: [getattr(one.best, name) for one in found] for name in ("text", "image", "local", "overall", "fused")
    }
    columns |= {
        "gap": [one.gap for one in found],
        "right": [None if x.right is None else float(x.right) for x in found],
    }
    known = {name: [x for x in values if x is not None] for name, values in columns.items()}
    means = {name: (mean_interval(values, bounds=(0, 1)), len(values)) for name, values in known.items() if values}
    if as_json:
        print(
            json.dumps({"traces": [asdict(one) for one in found], "means": {k: m.value for k, (m, _) in means.items()}})
        )
        return 0
    cells = [(name, f"{m.value:.3f} ({m.low:.3f} to {m.high:.3f})", str(n)) for name, (m, n) in means.items()]
    print_table(("against the best reference", "mean (95% interval)", "traces"), cells)
    return 0


def _judge(spec: str | None) -> Any:
    if spec is None:
        return None
    from assay.engines.asking import judge_of
    from assay.engines.target import resolve

    return judge_of(resolve(spec, ()).open(), "--judge")
