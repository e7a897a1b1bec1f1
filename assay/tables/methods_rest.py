"""The rest of the table of methods: losses without a ratio, and what all objectives and REINFORCE bring besides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import torch

from assay.objectives.correction import Correction, mismatch_weights
from assay.ops import Estimator, kl_estimate
from assay.registry import build
from assay.tables.cells import RATIOS, batch_of, numbers, spec_of, table

REST = """
## Without a ratio

Over the responses of a group, or pairs of a right and a wrong one, and without advantages. For a group of one right and
one wrong response of a token each: how strongly either is raised or lowered, where log(pi / pi_ref) of the right one is
above that of the wrong one by a margin.
"""

OFFLINE: dict[str, tuple[Mapping[str, Any], str]] = {
    "supervised fine-tuning": ({"name": "sft"}, "all"),
    "rejection fine-tuning": ({"name": "sft"}, "verdict"),
    "DPO": ({"name": "dpo"}, "all"),
    "conservative DPO": ({"name": "dpo", "label_smoothing": 0.1}, "all"),
    "IPO": ({"name": "ipo"}, "all"),
    "KTO": ({"name": "kto"}, "all"),
}
"""Name -> objective and select."""

SHARED = """
## What objectives share

`kl_weight`, `kl_estimator`: a divergence from the reference policy in the loss, estimated from the sampled token. Its
value, and how strongly a weight of 1 lowers (below zero) or raises the token, by pi / pi_ref; in expectation over the
policy's own samples that is the gradient of what stands at the right.
"""

ENTROPY = """
`entropy_weight`: the entropy of the distribution a token was drawn from, as a bonus. Between two tokens, a weight of 1
raises the logit of one of probability {p} by {pull}.

`correction`: weights of tokens where the engine that sampled them (mu) is not numerically the trainer (pi_old), with
`correction_cap = 2`; `recompute` takes ratios to pi_old and weighs nothing, `none` takes them to mu.
"""

EXPECTED = {"k1": "nothing", "k2": "KL(pi, ref)", "k3": "KL(ref, pi)", "k3+": "KL(pi, ref), with k3's value"}

CORRECTIONS: dict[Correction, str] = {
    "token_truncate": "TIS",
    "token_mask": "MIS, IcePop",
    "sequence_truncate": "TIS of sequences",
    "sequence_mask": "MIS of sequences",
    "geometric_mask": "by the geometric mean",
}

BASELINES = """
`reinforce` subtracts one of four baselines. Advantages in a first batch of rewards 1, 0, 0, 0 and a second of 1, 1, 0,
0:
"""

MARGINS, PROBABILITIES = (-10.0, 0.0, 10.0), (0.1, 0.5, 0.9)


def preferred(objective: Any, select: str, margin: float) -> list[float]:
    """Gradient on log pi, times -1, of a right and of a wrong response of one token each, see :data:`REST`."""
    batch = batch_of([1, 0], [1, 1])
    batch.weights = build("select", select)(batch)
    logprobs = torch.tensor([[margin / 2], [-margin / 2]], dtype=torch.float64, requires_grad=True)
    batch.signals = {"reference_logprobs": torch.zeros(2, 1, dtype=torch.float64)}
    batch.signals["policy_logprobs"] = logprobs.detach()
    (found,) = torch.autograd.grad(objective(logprobs, batch).value, logprobs)
    return (-found[:, 0]).tolist()


def divergence(estimator: Estimator) -> tuple[list[float], list[float]]:
    """Value of an estimate at each of :data:`RATIOS` to the reference, and its gradient on log pi, times -1."""
    here = torch.tensor([RATIOS], dtype=torch.float64).log().requires_grad_()
    value = kl_estimate(here, torch.zeros_like(here), estimator)
    (found,) = torch.autograd.grad(value.sum(), here)
    return value[0].tolist(), (-found[0]).tolist()


def bonus(probability: float) -> float:
    """Gradient of the entropy of a choice between two on the logit of one of this probability."""
    logit = torch.tensor(math.log(probability / (1 - probability)), dtype=torch.float64, requires_grad=True)
    p = logit.sigmoid()
    (found,) = torch.autograd.grad(-(p * p.log() + (1 - p) * (1 - p).log()), logit)
    return float(found)


def corrected(mode: Correction, ratios: Sequence[float]) -> list[float]:
    """Weights of the tokens of a response whose pi_old / mu are ``ratios``."""
    old = torch.tensor([ratios], dtype=torch.float64).log()
    return mismatch_weights(old, torch.zeros_like(old), torch.ones_like(old, dtype=torch.bool), mode)[0].tolist()


def subtracted(baseline: str) -> list[list[float]]:
    """Advantages of ``reinforce`` in the two batches of :data:`BASELINES`."""
    credit = build("credit", {"name": "reinforce", "baseline": baseline, "constant": 0.5})
    return [credit(batch_of(rewards, [1] * 4))[:, 0].tolist() for rewards in ([1, 0, 0, 0], [1, 1, 0, 0])]


def rest() -> list[str]:
    """Return the last sections of the page."""
    return [REST, without_ratio(), *shared()]


def without_ratio() -> str:
    rows = [
        [
            name,
            spec_of(spec),
            f"`{select}`",
            *(numbers(preferred(build("objective", dict(spec)), select, m), 3) for m in MARGINS),
        ]
        for name, (spec, select) in OFFLINE.items()
    ]
    return table(["method", "objective", "select", *(f"margin {m:+g}: right, wrong" for m in MARGINS)], rows)


def shared() -> list[str]:
    """What the classes of losses and of REINFORCE bring besides: divergences, entropy, corrections, baselines."""
    ratios = ", ".join(f"{r:g}" for r in RATIOS)
    found = {name: divergence(name) for name in get_args(Estimator)}
    estimates = [[f"`{n}`", numbers(value), numbers(pulled), EXPECTED[n]] for n, (value, pulled) in found.items()]
    chances = ", ".join(f"{p:g}" for p in PROBABILITIES)
    pulled = numbers([bonus(p) for p in PROBABILITIES])
    tokens = (0.5, 1.0, 3.0), (1.5, 2.0, 9.0)
    weights = [[f"`{m}`", known, *(numbers(corrected(m, t)) for t in tokens)] for m, known in CORRECTIONS.items()]
    names = ["none", "constant", "batch", "moving"]
    baselines = [[f"`{b}`" + " 0.5" * (b == "constant"), *map(numbers, subtracted(b))] for b in names]
    return [
        SHARED,
        table(["estimator", f"value at {ratios}", "pull", "gradient of"], estimates),
        ENTROPY.format(p=chances, pull=pulled),
        table(
            ["correction", "known as", *(f"pi_old / mu = {', '.join(f'{x:g}' for x in t)}" for t in tokens)], weights
        ),
        BASELINES,
        table(["baseline", "first batch", "second batch"], baselines),
    ]
