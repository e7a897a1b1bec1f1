"""The table of how the field's methods differ, made from the parts themselves: ``python -m assay.tables.methods``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from assay.registry import build
from assay.tables.cells import RATIOS, batch_of, numbers, spec_of, table
from assay.tables.methods_rest import rest

METHODS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], str]] = {
    "REINFORCE": ({"name": "reinforce"}, {"name": "reinforce"}, ""),
    "ReMax": ({"name": "remax"}, {"name": "reinforce"}, "a greedy response per prompt"),
    "RLOO": ({"name": "rloo"}, {"name": "reinforce", "aggregation": "sequence_sum"}, ""),
    "REINFORCE++": ({"name": "reinforce++"}, {"name": "clip"}, "reward term `kl`"),
    "REINFORCE++-baseline": (
        {"name": "reinforce++-baseline"},
        {"name": "clip", "kl_weight": 0.001, "kl_estimator": "k2"},
        "",
    ),
    "PPO": ({"name": "gae"}, {"name": "clip"}, "a critic; reward term `kl`"),
    "GRPO": (
        {"name": "grpo"},
        {"name": "clip", "aggregation": "sequence_mean", "kl_weight": 0.04},
        "",
    ),
    "Dr. GRPO": (
        {"name": "grpo", "normalise": False},
        {"name": "clip", "aggregation": "constant", "max_length": 4096},
        "",
    ),
    "DAPO": (
        {"name": "grpo"},
        {"name": "clip", "clip_high": 0.28},
        "select `dapo` or, to ask on in place of equal groups, rollout `dynamic`; reward term `overlong`",
    ),
    "Lite PPO": ({"name": "standardised"}, {"name": "clip"}, ""),
    "OPO": ({"name": "opo"}, {"name": "reinforce"}, ""),
    "GPG": ({"name": "gpg"}, {"name": "gpg"}, ""),
    "Clipped RLOO": ({"name": "rloo"}, {"name": "response"}, ""),
    "GSPO": ({"name": "grpo"}, {"name": "gspo"}, ""),
    "GSPO-token": ({"name": "grpo"}, {"name": "gspo_token"}, ""),
    "GMPO": ({"name": "grpo"}, {"name": "gmpo"}, ""),
    "CISPO": ({"name": "grpo"}, {"name": "cispo"}, ""),
    "SAPO": ({"name": "grpo"}, {"name": "sapo"}, ""),
    "Clip-Cov": ({"name": "grpo"}, {"name": "clip_cov"}, ""),
    "KL-Cov": ({"name": "grpo"}, {"name": "kl_cov"}, ""),
}
"""Name -> credit, objective, and what else the method brings. ``assay`` itself runs GRPO with token means and no KL."""

INTRODUCTION = """
# How the methods differ

Made from the parts by `python -m assay.tables.methods > docs/objectives.md`; do not edit. A method is a *credit*
(rewards to advantages A) and an *objective* (log-probabilities and A to a loss); rho is the ratio of the policy to the
one that sampled. All objectives share aggregation, divergence, entropy bonus and the correction for a sampling engine
that differs from the trainer (`assay/objectives/policy_loss.py`), so these mix freely.

Rows are the papers' methods. What a recipe gets by `method = "grpo"` or another of these names, and in what that
differs from the paper, is what `assay papers show grpo` says.

A bound on ratios acts from a step's second update on: with `train.mini_batches = 1` and `train.epochs = 1`, the
defaults, every ratio is 1 (but for what another engine, or `overlap.staleness`, makes of it), and methods that differ
in bounds alone are the same method.

But for one thing: `gspo`, `gmpo` and `response` have one ratio for a whole response and move all of its tokens by it.
Of advantages that differ within a response only their mean would be left, so credits that give each token its own
(`gae`, `reinforce++`, S017's `tempo` and others with `level = "token"`) are refused there: `objective=gspo credit=S017`
is, and `objective=gspo_token`, which has the same value and moves every token by its own advantage, is what to take.
Parts that would undo each other are refused as well, in one line that says why (`assay/method/fit.py`).
"""

ADVANTAGES = """
## Advantages

Of the first token, for one group of rewards 1, 0, 0, 0 and lengths 1, 2, 3, 4; the greedy response is right, the critic
says one half everywhere.
"""

PULL = """
## Pull on a token

How strongly a token of advantage 1 is raised, and one of advantage -1 lowered, as its ratio moves: the gradient of
minus the loss on log pi, for a response of this one token. Zero is a clipped token.
"""


def advantages(credit: Any) -> list[float]:
    """First-token advantages of R = 1, 0, 0, 0, lengths 1, 2, 3, 4, the greedy response right, all values one half."""
    batch = batch_of([1, 0, 0, 0], [1, 2, 3, 4])
    batch.signals["baseline_rewards"] = torch.ones(4, dtype=torch.float64)
    batch.signals["values"] = torch.full_like(batch.advantages, 0.5)
    return credit(batch)[:, 0].tolist()


def pull(objective: Any, advantage: float) -> list[float]:
    """Gradient on log pi, times -1, of a lone token at each of :data:`RATIOS`; 1 for the plain policy gradient."""
    out = []
    for ratio in RATIOS:
        batch = batch_of([1], [1])
        batch.advantages[:] = advantage
        logprobs = torch.full((1, 1), math.log(ratio), dtype=torch.float64, requires_grad=True)
        batch.signals["reference_logprobs"] = logprobs.detach().clone()
        objective(logprobs, batch).value.backward()
        assert logprobs.grad is not None
        out.append(-logprobs.grad.item() * (objective.max_length or 1))
    return out


def alike(rows: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """One row for each set of numbers, headed by the names of all that have them."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, cells in rows.items():
        names.setdefault(cells, []).append(name)
    return [[", ".join(who), *cells] for cells, who in names.items()]


def page() -> str:
    """Return the page."""
    made = {
        name: (build("credit", dict(credit)), build("objective", dict(objective)), more)
        for name, (credit, objective, more) in METHODS.items()
    }
    words = [
        [
            name,
            credit.summary["baseline"],
            credit.summary["normalisation"],
            *(objective.summary[k] for k in ("ratio", "clip", "aggregation", "KL")),
            more,
        ]
        for name, (credit, objective, more) in made.items()
    ]
    specs = [[name, *(spec_of(spec) for spec in parts)] for name, parts in ((n, m[:2]) for n, m in METHODS.items())]
    credits = alike({name: (numbers(advantages(m[0])),) for name, m in made.items()})
    pulls = alike({name: tuple(numbers(pull(m[1], a)) for a in (1.0, -1.0)) for name, m in made.items()})
    parts = ["method", "baseline", "normalisation", "ratio", "bound", "aggregation", "KL in the loss", "besides"]
    headings = [f"A = {a:+.0f}, rho = {', '.join(f'{r:g}' for r in RATIOS)}" for a in (1.0, -1.0)]
    sections = [
        INTRODUCTION,
        table(parts, words),
        "As recipes:",
        table(["method", "credit", "objective"], specs),
        ADVANTAGES,
        table(["credit of", "A"], credits),
        PULL,
        table(["objective of", *headings], pulls),
        *rest(),
    ]
    return "\n\n".join(section.strip() for section in sections) + "\n"


if __name__ == "__main__":
    print(page(), end="")
