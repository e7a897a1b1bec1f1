"""What a reward model's states tell apart, by linear probes, one for each dimension of preference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from assay.errors import RunError
from assay.rewards.judges.dimensions import LABELS, Clusters, Labelled, balanced, fit_probe
from assay.rewards.judges.preference_model import PreferenceModel
from assay.statistics.intervals import Interval, mean_interval

RATES = (5e-5, 2e-5, 1e-5)


@dataclass(frozen=True, slots=True)
class Probed:
    """Of a dimension: accuracy on responses to prompts that were kept back, with 95 % intervals over responses.

    Attributes:
        easy: whether a label is 0; the other two are one.
        hard: which of three it is.
        learned, tested: responses, of the hard one.
    """

    easy: Interval
    hard: Interval
    learned: int
    tested: int


@dataclass(frozen=True, slots=True)
class Probing:
    """Dimensions by name, the mean accuracy over them, and the clusters of states on prompts that were kept back."""

    dimensions: dict[str, Probed]
    easy: float
    hard: float
    clusters: Clusters


def probing(
    model: PreferenceModel,
    rows: Sequence[Labelled],
    rates: Sequence[float] = RATES,
    epochs: int = 1,
    batch: int = 128,
    quantile: float = 0.9,
    seed: int = 0,
) -> Probing:
    """Probe a reward model, of which nothing is changed.

    A quarter of a dimension's prompts is kept back, or the responses that are said to be. Of the others classes are
    balanced, a quarter says which rate is best, and the probe of that rate is measured. A response that is too long for
    the model is left out.

    Args:
        model: whose last state of each response is read.
        rows: labelled responses.
        rates: of AdamW, tried in turn; the first of equals.
        epochs, batch: of a probe.
        quantile: of the distances of states that were kept back, beyond which one is far.
        seed: of all lots.

    Raises:
        RunError: a dimension has too few prompts, or a label that none of the responses has.

    Source: MRMBench (arXiv 2511.12464).
    """
    read = model.read([(row.prompt, row.response) for row in rows])
    found: dict[str, list[tuple[Labelled, Tensor]]] = {}
    for row, state in zip(rows, read, strict=True):
        if state is not None:
            found.setdefault(row.dimension, []).append((row, state[1]))
    out, kept = {}, {}
    for name, mine in found.items():
        prompts = list(dict.fromkeys(repr(row.prompt) for row, _ in mine))
        back = set(prompts[::4])
        told = [repr(row.prompt) in back if row.held is None else row.held for row, _ in mine]
        sides = [
            [(row.label, h) for (row, h), kept in zip(mine, told, strict=True) if kept is x] for x in (False, True)
        ]
        if not all(len({min(label, 1) for label, _ in side}) == 2 and len(side) > LABELS for side in sides) or (
            len({label for label, _ in sides[0]}) < LABELS
        ):
            raise RunError(
                f"dimension {name!r} has {len(mine)} responses to {len(prompts)} prompts: too few to learn all of its "
                "labels and to measure them on others"
            )
        labels = [torch.tensor([label for label, _ in side]) for side in sides]
        states = [torch.stack([h for _, h in side]) for side in sides]
        easy, hard = (
            _measured([x.clamp(max=most) for x in labels], states, rates, epochs, batch, np.random.default_rng(seed))
            for most in (1, LABELS - 1)
        )
        out[name] = Probed(easy, hard, len(labels[0]), len(labels[1]))
        kept[name] = states[1]
    means = [float(np.mean([getattr(p, level).value for p in out.values()])) for level in ("easy", "hard")]
    return Probing(out, means[0], means[1], Clusters.fit(kept, LABELS, quantile, seed))


def _measured(
    labels: Sequence[Tensor],
    states: Sequence[Tensor],
    rates: Sequence[float],
    epochs: int,
    batch: int,
    rng: np.random.Generator,
) -> Interval:
    """Accuracy on what was kept back, the second, of the probe whose rate does best on a quarter of the first."""
    rows = torch.tensor(balanced(labels[0].tolist(), rng))
    rows = rows[torch.from_numpy(rng.permutation(len(rows)))]
    held, mine = rows[: len(rows) // 4], rows[len(rows) // 4 :]
    probes = [fit_probe(states[0][mine], labels[0][mine], rng, lr, epochs, batch) for lr in rates]
    best = max(probes, key=lambda probe: float(_right(probe, labels[0][held], states[0][held]).sum()))
    return mean_interval(_right(best, labels[1], states[1]).numpy(), bounds=(0, 1))


@torch.no_grad()
def _right(probe: torch.nn.Linear, labels: Tensor, states: Tensor) -> Tensor:
    return (probe(states).argmax(-1) == labels).double()
