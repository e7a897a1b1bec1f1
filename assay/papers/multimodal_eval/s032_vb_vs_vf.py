"""S032: clone what succeeded, or learn from rewards: the same samples, a budget that grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.standardised import Standardised
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.policy_gradient import PolicyGradient
from assay.objectives.sft import SFT
from assay.registry import build
from assay.rewards.length.overlong import response_lengths
from assay.select.verdicts import OfVerdict
from assay.select.when_ready import WhenReady
from assay.signals.base import Signal
from assay.tasks.seeded import generator
from assay.types import Task, Verdict

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@paper(
    "S032",
    "VB and VF",
    arxiv="2502.12118",
    seams=["tasks", "reward", "select", "credit", "objective", "evaluate"],
    essentials={
        "bi-level reward: 0 up to the first right answer, 1 for each token of the budget after it": (
            "test_the_key_is_found_once_and_within_the_budget"
        ),
        "VB follows the gradient of rewards; VF maximises the likelihood of traces that were right": (
            "test_what_vb_and_vf_learn_from"
        ),
        "VF ends at what successes of the base policy do, however many are cloned": (
            "test_cloning_reaches_the_maximum_likelihood_of_the_successes"
        ),
        "heterogeneity: the variance of returns, summed over steps": (
            "test_heterogeneity_is_the_variance_of_the_returns"
        ),
        "anti-concentration: the chance of a return above mean + sigma sqrt(eps)": "test_the_start_in_exact_numbers",
        "a verifier is learned from n judged traces of the base policy, and VB goes by it from then on": (
            "test_a_verifier_is_learned_from_judged_traces_and_then_pays"
        ),
        "it stays near the base policy, where what the verifier has learned holds": (
            "test_with_a_learned_verifier_the_policy_stays_near"
        ),
        "from as many samples, the lead of VB over VF grows with the budget": (
            "test_rewards_beat_cloning_from_as_many_samples"
        ),
    },
    choices=(
        "VB standardises returns over the batch; the deviation is that of n - 1",
        "planted key: a wrong symbol begins anew, even where it is the first of the key",
        "VF's traces are sampled from the base policy, not from an expert",
        "the verifier is a head on hidden states of the base policy, fitted by squared error",
        "near the base policy is a penalty on the divergence, in place of a ball around it",
    ),
)
def vb_vs_vf(
    learner: Literal["vb", "vf"] = "vb", horizon: int | None = None, kl_weight: float = 0.0, verifier: Any = None
) -> Method:
    """Two ways to learn from n sampled traces, with a verifier (VB) and without one after filtering (VF).

        VB:  L = -1/n sum_i A_i sum_t log pi(y_it),   A_i = (R_i - mean R) / std R over the whole batch
        VF:  L = -1/n sum over right i of sum_t log pi(y_it)

    VB is policy gradient with rewards; VF clones the traces that were right and never sees how good they were. The
    reward is bi-level, 0 up to the token that completes the first right answer and 1 per token after it, so that
    R_i = H - T_i for a right response of T_i tokens: what is found sooner is worth more. With ``horizon`` it is taken
    from the lengths of right responses (divided by H); without, the verdict's score is the reward.

    VF means one step with many epochs: the traces come from the base policy, not from what is being learned. Repeated
    steps of it are rejection fine-tuning with new samples, and no longer free of the verifier.

    The simple VB algorithm is ``verifier``: the verdicts of the first steps, whose traces are the base policy's as
    nothing is learned from them, teach a verifier r(x, y), and from then on what it says takes the place of verdicts,

        R_i = r(x, y_i) (H - T_i) / H,   L + kl_weight KL(pi || base)

    near the base policy, as the verifier has seen no other traces. Without ``verifier`` VB is given the true rewards.

    Theory: with sigma^2 the variance of the base policy's returns at a prompt (heterogeneity), VF stays about sigma
    behind however many traces it clones, which under wide mixtures is of order H; VB is behind by order H / n, as long
    as returns above mean + sigma sqrt(eps) have probability bounded from below (anti-concentration).
    :mod:`assay.evaluate.returns` measures both, histograms of returns, and gaps against H.

    :func:`planted_tasks` and :class:`Planted` are the controlled task: a hidden key of K symbols has to be written.

    Args:
        learner: ``vb`` or ``vf``.
        horizon: H in tokens, at least the longest response.
        kl_weight: of the divergence from the base policy, for VB; above 0 with a verifier that is learned.
        verifier: the signal ``outcome_verifier``, its name or a table with its options; or true for it as it is.

    Source: "Scaling Test-Time Compute Without Verification or RL is Suboptimal" (arXiv 2502.12118). Search with a
    learned verifier, its other form of VB, is ``best_of_n`` with a scorer.

    Raises:
        UsageError: a horizon below 1, a KL term or a verifier with ``vf``, a learned verifier without a KL term, or
            another learner.
    """
    if verifier:
        return _learned(learner, horizon, kl_weight, "outcome_verifier" if verifier is True else verifier)
    parts: dict[str, Any] = {} if horizon is None else {"reward": Bilevel(horizon)}
    if learner == "vb":
        credit = Standardised(mean="batch", scale="batch")
        return Method(credit=credit, objective=PolicyGradient("sequence_sum", kl_weight=kl_weight), **parts)
    if learner != "vf" or kl_weight:
        raise UsageError(f"S032: learner is 'vb' or 'vf', and only 'vb' has a KL term; not {learner!r}, {kl_weight:g}")
    return Method(select=OfVerdict("right"), objective=SFT("sequence_sum"), **parts)


def _learned(learner: str, horizon: int | None, kl_weight: float, verifier: Any) -> Method:
    """VB with a verifier that is learned first."""
    if learner != "vb" or not kl_weight > 0:
        raise UsageError(
            f"S032: a verifier that is learned is for learner 'vb', and holds near the base policy alone; give "
            f"kl_weight above 0, not {learner!r}, {kl_weight:g}"
        )
    signal = build("signal", verifier)
    return Method(
        reward=Bilevel(horizon, signal) if horizon is not None else Verified(signal),
        select=WhenReady(signal),
        credit=Standardised(mean="batch", scale="batch"),
        objective=PolicyGradient("sequence_sum", kl_weight=kl_weight),
    )


@dataclass(frozen=True, slots=True)
class Verified:
    """R_i = r(x, y_i) as a learned verifier says; while it is not fitted yet, 1 for a right response and 0 for a wrong.

    Once it is, every response has a reward, also where the verdict is an abstention; but not one that failed to come.

    Args:
        verifier: the signal, see :class:`~assay.signals.judges.outcome_verifier.OutcomeVerifier`.
    """

    verifier: Any

    @property
    def needs(self) -> frozenset[Signal]:
        return frozenset({self.verifier})

    def __call__(self, batch: Batch) -> Reward:
        right, told = outcomes(batch)
        if not self.verifier.ready:
            return Reward(right, valid=told, terms={"right": right})
        said = batch.signals[self.verifier.name].to(right.dtype)
        there = torch.tensor([e.stop != "error" for e in batch.episodes], dtype=torch.bool)
        return Reward(said, valid=there, terms={"verified": said, "right": right})


def outcomes(batch: Batch) -> tuple[Float[Tensor, "N"], Bool[Tensor, "N"]]:
    """Return 1 for right responses and 0 for others, and of which there is a verdict."""
    right = torch.tensor([bool(v.passed) for v in batch.verdicts], dtype=batch.rewards.dtype)
    return right, torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)


@dataclass(frozen=True, slots=True)
class Bilevel:
    """R_i = max(H - T_i, 0) / H for a right response of T_i tokens, 0 for a wrong one, none for an abstention.

    The return of a reward that is 0 until the right answer and 1 per token after it, if the response ends with it.

    With a learned verifier, r(x, y_i) (H - T_i) / H once it is fitted.

    Args:
        horizon: H.
        verifier: the signal of a learned verifier, see :class:`Verified`.
    """

    horizon: int
    verifier: Any = None

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise UsageError(f"S032: horizon {self.horizon} must be at least 1 token")

    @property
    def needs(self) -> frozenset[Signal]:
        return frozenset() if self.verifier is None else frozenset({self.verifier})

    def __call__(self, batch: Batch) -> Reward:
        left = (self.horizon - response_lengths(batch)).clamp(min=0) / self.horizon
        if self.verifier is not None:
            said = Verified(self.verifier)(batch)
            values = said.values * left
            return Reward(values, valid=said.valid, terms={**said.terms, "left": values})
        right, valid = outcomes(batch)
        values = torch.where(right > 0, left, 0)
        return Reward(values, valid=valid, terms={"left": values})


@dataclass(frozen=True, slots=True)
class Planted:
    """Judges texts of symbols: the right next symbol of the key advances, a wrong one begins anew.

    The reference of a task is ``{"key": "bacd"}``. Symbols after ``horizon`` do not count. The score is bi-level,
    (H - t) / H for a key complete after t symbols; so a success with the last symbol passes with score 0. White space
    is no symbol.

    Args:
        horizon: H.

    Raises:
        UsageError: a horizon below 1.
    """

    horizon: int

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise UsageError(f"S032: horizon {self.horizon} must be at least 1 symbol")

    def __call__(self, task: Task, response: str) -> Verdict:
        reference = task.reference
        key = reference.get("key") if isinstance(reference, Mapping) else None
        if not isinstance(key, str) or not key:
            return Verdict.abstain(f"task {task.id} has no key in its reference")
        done = best = 0
        for t, symbol in enumerate("".join(response.split())[: self.horizon], 1):
            done = done + 1 if symbol == key[done] else 0
            best = max(best, done)
            if done == len(key):
                return Verdict((self.horizon - t) / self.horizon, True, {}, f"complete after {t} symbols")
        return Verdict(0.0, False, {}, f"{best} of {len(key)} symbols in a row at most")


def planted_tasks(count: int, length: int = 6, symbols: int = 4, seed: int = 0) -> list[Task]:
    """Return tasks with hidden keys of ``length`` symbols among the first ``symbols`` letters, for :class:`Planted`.

    Raises:
        UsageError: no task, or an alphabet or a key out of range.
    """
    if count < 1 or length < 1 or not 2 <= symbols <= len(LETTERS):
        raise UsageError(f"S032: {count} tasks with keys of {length} out of {symbols} letters cannot be made")
    out = []
    for i in range(count):
        key = "".join(LETTERS[int(k)] for k in generator(seed, i).integers(symbols, size=length))
        out.append(Task(f"planted/{seed}/{i}", f"Key {i}:", {"key": key}, "planted", key, meta={"length": length}))
    return out


claims(
    Claim(
        paper="S032",
        text="From as many samples, learning from rewards is the further ahead of cloning what succeeded the longer "
        "the budget.",
        setting="keys",
        arms={
            "vb": {"name": "S032"},
            "vf": {
                "name": "S032",
                "options": {"learner": "vf"},
                "setting": {"steps": 1, "group": 4000, "epochs": 10, "mini_batches": 10},
            },
        },
        better="vb",
        baseline="vf",
        measure="growth",
        sweep={"lr": (0.03, 0.1, 0.3, 1.0)},
    )
)
