"""S205: REINFORCE++ made stable, for reward models that reason before they judge."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate, clip_fraction, clipped
from assay.objectives.policy_loss import Ratios
from assay.ops import masked_mean
from assay.returns import placed_rewards, returns_to_go
from assay.rewards.base import RewardPart
from assay.rewards.shaping.weighted import WeightedSum
from assay.types import Task
from assay.verify.text.format import Format

LIMIT = 1e-3, 1e3


@paper(
    "S205",
    "StableReinforce",
    arxiv="2505.02835",
    seams=["reward", "credit", "objective", "inference"],
    essentials={
        "pre-clip: the log-ratio is bounded before its exponential, and the surrogate clips after": (
            "test_ratios_are_bounded_before_the_surrogate"
        ),
        "advantage filter: standardised returns beyond three deviations are dropped": "test_outliers_are_dropped",
        "beside these two it is REINFORCE++": "test_without_outliers_it_is_reinforce_plus_plus",
        "reward of format, of the right choice, and of a judge's finding that reasoning and answer agree": (
            "test_rewards"
        ),
        "consistency never pays for a wrong choice": (
            "test_the_judge_is_asked_about_right_answers_only_and_thrice_at_most"
        ),
        "the reward model's verdict may be a vote of many judgements": "test_the_verdict_of_fifteen_judgements",
        "in training judgements that are right and argued consistently win": (
            "test_in_training_consistent_right_judgements_win"
        ),
    },
    choices=(
        "z is compared with 3; the authors' code compares it with the mean of the raw returns plus and minus 3",
        "which pairs are hard enough to be trained on is the user's choice of tasks",
        "kl_weight 0.001 as in the released script; the paper trains with 0",
        "the wording of the judge's prompt, which has the last three lines of the reasoning and the answer",
        "a reply with both numbers is asked for again; white space may stand between the tags of a response",
    ),
)
def stable_reinforce(
    judge: Any = None,
    kl_weight: float = 1e-3,
    outlier: float = 3.0,
    clip: float = 0.2,
    ratio_limits: tuple[float, float] = LIMIT,
) -> Method:
    """REINFORCE++ with bounded log-ratios, without outlying advantages, and paid for arguing what it answers.

        rho = exp(clip(log pi - log pi_old, ln 0.001, ln 1000)), then the clipped surrogate, the mean of response means
        A_it = z_it if |z_it| <= outlier else 0,  z the returns standardised over all tokens of the batch
        R = 0.5 format + accuracy (1 + 0.5 consistency),  and -kl_weight (log pi_old - log pi_ref) on every token

    format: the response is ``<think>...</think><answer>...</answer>`` and nothing else. consistency: 1, -1 or 0 where
    the judge finds that the end of the reasoning and the answer agree, disagree, or does not say; as a factor of the
    accuracy it never pays for a wrong answer. One response per prompt will do.

    The trained reward model's verdict on a pair is that of most of 15 judgements, strategy
    :class:`~assay.inference.voting.judgements.Voting`:

        assay eval runs/reward-model --strategy "sample,voting" --budgets 1,15

    Args:
        judge: an engine, or the specification of one; without it consistency is 0.
        kl_weight: of the divergence from the policy that RL began with.
        outlier: greatest |z| that is kept.
        clip: half-width of the clip range.
        ratio_limits: of rho before the surrogate's own clip.

    Source: R1-Reward (arXiv 2505.02835) and its authors' code (which compares z with the mean of the raw returns plus
    and minus 3; read as a slip).
    """
    reward: RewardPart = ConsistencyReward(judge)
    return Method(
        reward=WeightedSum({"judgement": reward, "kl": "kl"}, {"kl": kl_weight}) if kl_weight else reward,
        credit=InlierReturns(outlier),
        objective=BoundedRatio(
            aggregation="sequence_mean", clip_low=clip, clip_high=clip, least=ratio_limits[0], greatest=ratio_limits[1]
        ),
    )


@dataclass(frozen=True, slots=True)
class BoundedRatio(ClippedSurrogate):
    """``clip`` with rho kept in [least, greatest] before the surrogate; no gradient beyond, whatever the advantage.

    The plain surrogate lets rho grow without bound where A < 0, until exp overflows.

    Args:
        least, greatest: 0 < least <= 1 <= greatest.

    Raises:
        UsageError: limits out of range.
    """

    least: float = LIMIT[0]
    greatest: float = LIMIT[1]

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        if not 0 < self.least <= 1 <= self.greatest:
            raise UsageError(
                f"objective 'S205': needs 0 < least <= 1 <= greatest, not {self.least:g} and {self.greatest:g}"
            )

    def surrogate(self, r: Ratios) -> tuple[Float[Tensor, "N T"], dict[str, Any]]:
        gap = r.log_ratio.clamp(math.log(self.least), math.log(self.greatest))
        ratio, bounds = gap.exp(), (self.clip_low, self.clip_high, self.dual_clip)
        beyond = (gap != r.log_ratio).to(gap.dtype)
        return clipped(ratio, r.advantages, *bounds), {
            "clip_fraction": clip_fraction(ratio.detach(), r.advantages, r.mask, *bounds),
            "bounded_fraction": masked_mean(beyond, r.mask),
        }


@dataclass(frozen=True, slots=True)
class InlierReturns:
    """A_it = z_it where |z_it| <= outlier, else 0; z_it = (g_it - mean g) / std g over the batch's learnable tokens.

    g_it is the sum of the rewards from token t on, as in ``reinforce++``, which this is where no token is an outlier
    and ``ddof`` is 1.

    Args:
        outlier: above 0.
        ddof: 0 for the population's standard deviation, 1 for the unbiased one.
        epsilon: added to the variance.

    Raises:
        UsageError: ``outlier`` not above 0.
    """

    outlier: float = 3.0
    ddof: int = 0
    epsilon: float = 1e-8

    level = "token"

    def __post_init__(self) -> None:
        if self.outlier <= 0:
            raise UsageError(f"credit 'S205': outlier {self.outlier:g} must be above 0")

    @property
    def summary(self) -> dict[str, str]:
        return {"baseline": "batch mean over tokens", "normalisation": "batch std over tokens, outliers dropped"}

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        mask = batch.mask & batch.active[:, None]
        returns = returns_to_go(placed_rewards(batch), batch.mask)
        flat = returns[mask]
        if flat.numel() == 0:
            return torch.zeros_like(returns)
        # Measured from the least value: else equal returns differ from their mean by a rounding error.
        centred = flat - flat.min()
        centred = centred - centred.mean()
        variance = centred.square().sum() / max(flat.numel() - self.ddof, 1)
        z = centred * torch.rsqrt(variance + self.epsilon)
        return torch.zeros_like(returns).masked_scatter(mask, torch.where(z.abs() <= self.outlier, z, 0))


class ConsistencyReward:
    """R_i = format_weight format + accuracy (1 + consistency_weight consistency), see :func:`stable_reinforce`.

    accuracy is 1 if the verdict passed; a sample whose verifier abstained has no reward. The judge is asked about right
    responses with an ``<answer>`` only, the others earn nothing by it: at most ``tries`` times, until its text holds
    exactly one of the numbers 1 (agree) and 0 (disagree).

    Args:
        judge: an engine, or the specification of one; ``None``: consistency is 0.
        format_weight, consistency_weight: see above.
        tries: at least 1.
        max_tokens, temperature: of the judge's response.

    Raises:
        UsageError: ``tries`` below 1.
    """

    def __init__(
        self,
        judge: Any = None,
        format_weight: float = 0.5,
        consistency_weight: float = 0.5,
        tries: int = 3,
        max_tokens: int = 64,
        temperature: float = 0.1,
    ):
        from assay.registry import build

        if tries < 1:
            raise UsageError(f"reward 'S205': tries {tries} must be at least 1")
        self.judge = None if judge is None else build("engine", judge)
        self.format_weight, self.consistency_weight, self.tries = format_weight, consistency_weight, tries
        self.sampling = Sampling(max_tokens, temperature)
        self.format = Format(tags=("think", "answer"))

    def __call__(self, batch: Batch) -> Reward:
        dtype = batch.rewards.dtype
        texts = [e.text for e in batch.episodes]
        # The form is the method's, whatever form the task asks its verifier to see to.
        anything = Task("format", "")
        formed = torch.tensor([float(bool(self.format(anything, t).passed)) for t in texts], dtype=dtype)
        right = torch.tensor([float(bool(v.passed)) for v in batch.verdicts], dtype=dtype)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        asked = [i for i, v in enumerate(batch.verdicts) if v.passed and answer_of(texts[i]) is not None]
        consistent, said = torch.zeros_like(right), self._ask([texts[i] for i in asked])
        for i, value in zip(asked, said, strict=True):
            consistent[i] = value
        values = self.format_weight * formed + right * (1 + self.consistency_weight * consistent)
        terms = {"format": formed, "accuracy": right, "consistency": consistent}
        return Reward(values, valid=valid, terms=terms)

    def _ask(self, texts: list[str]) -> list[float]:
        """Whether reasoning and answer agree (1), disagree (-1), or the judge does not say (0)."""
        out = [0.0] * len(texts)
        if self.judge is None:
            return out
        open_, prompts = list(range(len(texts))), [question(t) for t in texts]
        for attempt in range(self.tries):
            if not open_:
                break
            requests = [Request(prompts[i], 1, self.sampling, seed_of(texts[i], attempt)) for i in open_]
            replies = [found[0].text for found in self.judge.generate(requests)]
            for i, reply in zip(open_, replies, strict=True):
                digits = set(re.findall(r"(?<![\d.])[01](?!\.?\d)", reply))
                out[i] = {"1": 1.0, "0": -1.0}[digits.pop()] if len(digits) == 1 else 0.0
            open_ = [i for i in open_ if out[i] == 0]
        return out


def answer_of(text: str) -> str | None:
    """What stands in the first ``<answer>``, or ``None``."""
    found = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return found[1].strip() if found else None


def question(text: str, lines: int = 3) -> str:
    """What the judge is asked of a response: the last lines of its reasoning against its answer.

    1 and 2, which name the better of two responses, are said in words, as the authors' code does.
    """
    before = re.sub(r"</?think>", "", text.split("<answer>")[0]).strip().splitlines()
    end = "\n".join([line for line in before if line.strip()][-lines:])
    answer = answer_of(text)
    said = f"Response {answer} is better." if answer in ("1", "2") else answer
    return (
        "Does the conclusion of the reasoning mean the same as the answer? A conclusion that leaves the choice open, "
        "takes both for equally good or chooses something else does not.\n\n"
        f"End of the reasoning:\n{end}\n\nAnswer:\n{said}\n\n"
        "Reply with 1 if they mean the same and 0 if not, and nothing else."
    )


def seed_of(text: str, attempt: int) -> int:
    """A seed of the text alone, so that the reward does not depend on what else is in the batch."""
    return int.from_bytes(hashlib.blake2b(f"{attempt}:{text}".encode(), digest_size=7).digest())


claims(
    (
        CLAIM := Claim(
            paper="S205",
            text="With one response per prompt and several updates per batch, bounded ratios and advantages without "
            "outliers learn faster than REINFORCE++.",
            setting="tree",
            arms={
                "stable": {"name": "S205", "reward": "verdict"},
                "reinforce++": {
                    "name": "grpo",
                    "credit": "reinforce++",
                    "objective": {"name": "clip", "aggregation": "sequence_mean"},
                },
            },
            better="stable",
            baseline="reinforce++",
            measure="area",
            options={"tasks": 8, "depth": 3, "right": 32, "prompts": 64, "group": 1, "steps": 60, "epochs": 4},
            sweep={"lr": (10.0, 30.0, 100.0, 300.0, 1000.0)},
        )
    ),
    replace(
        CLAIM,
        setting="unseen",
        options={"prompts": 64, "group": 1, "epochs": 4, "steps": 60},
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
    ),
)
