"""How likely a policy finds the reference answers of held-out tasks after its own reasoning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.errors import UsageError
from assay.statistics.intervals import Interval, mean_interval
from assay.types import Ask, Group, Task

if TYPE_CHECKING:
    from assay.engines.base import Engine, Sampling
    from assay.signals.base import Models
    from assay.signals.likelihood import ReferenceLikelihood


@dataclass(frozen=True, slots=True)
class ReferenceFit:
    """What :func:`reference_fit` found.

    Attributes:
        perplexity: exp(-mean l) over all tokens of all samples' references, l their log-probabilities.
        log_mean_prob: mean over tasks of log (1/k) sum_i exp(sum_j l_ij), with its 95% interval: the log-likelihood of
            the reference with the reasoning summed out, estimated from k samples, from below.
        tasks, samples: how many had a likelihood.
    """

    perplexity: float
    log_mean_prob: Interval
    tasks: int
    samples: int


def reference_fit(
    tasks: Sequence[Task],
    engine: Engine,
    models: Models,
    *,
    samples: int,
    sampling: Sampling,
    rng: np.random.Generator,
    likelihood: ReferenceLikelihood,
    chunk: int = 64,
) -> ReferenceFit:
    """Let a policy reason about every task ``samples`` times and measure the likelihood of its reference.

    Args:
        tasks: with references that are texts or numbers.
        engine: reasons.
        models: what the likelihood is of.
        samples: k; the reference's likelihood is commonly estimated with 32.
        sampling: of the reasoning; greedily, one sample says it all.
        rng: source of a seed per task.
        likelihood: where the reference stands.
        chunk: tasks at a time.

    Raises:
        UsageError: no task, ``samples`` or ``chunk`` below 1, or no reference with a likelihood.
    """
    from assay.batch import Batch
    from assay.engines.base import Request
    from assay.signals.likelihood_value import first

    if not tasks or samples < 1 or chunk < 1:
        raise UsageError(
            f"reference_fit: {len(tasks)} tasks, {samples} samples, chunk {chunk}; each must be at least 1"
        )
    requests = [Request(t.prompt, samples, sampling, int(rng.integers(0, 2**63 - 1))) for t in tasks]
    found: list[list[NDArray[np.float64]]] = []
    for start in range(0, len(tasks), chunk):
        part = tasks[start : start + chunk]
        answers = engine.generate(requests[start : start + chunk])
        batch = Batch.from_groups(
            [Group(Ask(task, samples), tuple(episodes)) for task, episodes in zip(part, answers, strict=True)]
        )
        rows = first(likelihood(batch, models)).double().numpy()
        groups = batch.prompt_group.numpy()
        found += [[row[~np.isnan(row)] for row in rows[groups == i]] for i in range(len(part))]
    return summary(found)


def summary(found: Sequence[Sequence[NDArray[np.float64]]]) -> ReferenceFit:
    """Return what the log-probabilities ``(L,)`` of each sample of each task say; empty where there are none."""
    known = [[row for row in rows if len(row)] for rows in found]
    known = [rows for rows in known if rows]
    if not known:
        raise UsageError("reference_fit: no task's reference has a likelihood; they must be texts that fit the context")
    each = np.concatenate([row for rows in known for row in rows])
    logs = [np.array([row.sum() for row in rows]) for rows in known]
    means = [float(np.logaddexp.reduce(totals) - math.log(len(totals))) for totals in logs]
    return ReferenceFit(math.exp(-each.mean()), mean_interval(means), len(known), sum(map(len, known)))
