"""S028: a judge scores every turn of an agent by principles, and the outcome decides the sign of what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.gae import GAE
from assay.engines.base import Engine
from assay.method import Method
from assay.rewards.judges.principles import PrincipleJudge, Unread
from assay.rewards.process.step_scores import StepScores
from assay.rewards.process.summed import step_ends, sum_by_step
from assay.rewards.shaping.weighted import WeightedSum
from assay.signals.steps import By, Decode, Steps
from assay.types import Episode, Span, Task


@dataclass(frozen=True, slots=True)
class Turns(Steps):
    """Signal ``steps`` as in :class:`assay.signals.steps.Steps`, a step being a turn.

    Where an episode notes its turns, one begins where the one before ends, so that what a tool says
    belongs to the turn that reads it, and the last one goes to the end of the response. Else its text is cut: after
    each ``</search>`` by default.
    """

    by: By = "tag"
    tag: str = "search"

    def of(self, episode: Episode, decode: Decode) -> tuple[Span, ...]:
        """Return the turns of an episode, as spans of kind ``step``."""
        ends = [turn.end for turn in episode.turns if turn.end > turn.start]
        if not ends:
            return Steps.of(self, episode, decode)
        return tuple(Span("step", a, b) for a, b in pairwise([0, *ends[:-1], len(episode.tokens)]))


@paper(
    "S028",
    "PPR",
    arxiv="2509.25598",
    seams=["rollout", "reward", "credit", "policies"],
    essentials={
        "a model judges each turn by principles of its choice: SCORE of MAX_SCORE": (
            "test_the_judge_reads_question_past_and_turn_but_not_the_answer"
        ),
        "ReNorm: r_t = p_t + o - 1, so the outcome decides the sign": "test_the_outcome_decides_the_sign_of_every_turn",
        "rewards on the last token of each turn, the outcome on the last turn's": (
            "test_the_last_turn_answers_and_has_the_outcome_alone"
        ),
        "returns by GAE with discount and decay 1, and a divergence in the reward": "test_rewards_and_returns_by_hand",
        "what a tool says is read with the next turn and not learned from": (
            "test_a_tools_words_belong_to_the_turn_that_reads_them_and_are_not_learned"
        ),
        "a small judge is taught by a large one's analyses": "test_a_teacher_labels_turns_that_it_can_score",
        "right answers are learned with it": "test_it_acts_in_training",
        "the policy searches between its turns, and every turn it took has its reward": "test_it_trains_by_searching",
    },
    choices=(
        "the wording of the judge's question",
        "an unread turn leaves the response without a reward; the authors' counts 0 (unread)",
    ),
)
def ppr(
    judge: Any = None,
    turns: Turns = Turns(),
    renorm: bool = True,
    shift: float = 1.0,
    judge_last: bool = False,
    unread: Unread = "abstain",
    kl_weight: float = 1e-3,
    critic: Any = "critic",
) -> Method:
    """PPO with a critic where each turn has a judge's reward, shifted by the outcome so that their signs agree.

        r_t = p_t + o - shift  for every turn but the last (ReNorm),    r_T = o        on the last token of each turn
        A by GAE with discount 1 and decay 1, whitened; clipped surrogate; -kl_weight k1 on every token

    p_t in [0, 1] is the judge's score of turn t, o in [0, 1] the score of the answer. With shift 1 a turn of a right
    response earns p_t >= 0 and one of a wrong response p_t - 1 <= 0: no wrong response is worth more than nothing,
    however well its turns are judged, while added as they are (``renorm`` false: r_t = p_t) their scores outweigh the
    outcome in long responses. A wrong response earns the more the shorter it is. As turns differ in number, the shift
    does not cancel in a group's mean. One response per prompt will do.

    Args:
        judge: who scores turns: an engine, or a table that specifies one, see
            :class:`assay.rewards.judges.principles.PrincipleJudge`; or any scorer of
            :class:`assay.rewards.process.step_scores.StepScores`. Without it every turn scores 1/2.
        turns: what a turn is.
        renorm, shift: see above.
        judge_last: the last turn, which answers, is judged like the others: r_T = p_T + o - shift.
        unread: a turn whose score cannot be read leaves the response without a reward, or counts as p_t = 0 (``zero``,
            the authors').
        kl_weight: of the divergence from the reference policy.
        critic: see :class:`assay.signals.critic.Critic`.

    The paper's agent searches, in the form that environment ``search`` reads with ``protocol = "tags"``::

        [method.rollout]
        name = "multi_turn"
        environment = {name = "search", protocol = "tags"}

    The paper's judge is a model of 8B parameters fine-tuned on 2000 judged trajectories, see
    :func:`assay.rewards.judges.principles.distillation`; its outcome is exact match.

    Source: "Hybrid Reward Normalization for Process-supervised Non-verifiable Agentic Tasks" (arXiv 2509.25598) and its
    authors' code; the wording of the question is a choice.
    """
    scorer = judge
    if judge is None:
        scorer = Undecided()
    elif isinstance(judge, Engine | Mapping):
        scorer = PrincipleJudge(judge, judge_last, unread)
    reward = ReNorm(scorer, turns, renorm, shift, judge_last)
    return Method(
        reward=WeightedSum({"turns": reward, "kl": "kl"}, {"kl": kl_weight}) if kl_weight else reward,
        credit=GAE(discount=1.0, decay=1.0, critic=critic),
    )


class ReNorm:
    """r_t = p_t + o - shift on the last learnable token of each turn but the last, R_i = o, see :func:`ppr`.

    p_t = (1 + s_t) / 2, s_t the signal ``step_scores``. No reward where the scorer could not score the response, or the
    verifier abstained. Terms: ``outcome``; ``process``, the mean of p_t over the judged turns (0 where there are none);
    ``count``, the number of turns.

    Args:
        scorer: see :class:`assay.rewards.process.step_scores.StepScores`.
        turns, renorm, shift, judge_last: see :func:`ppr`.
    """

    def __init__(
        self, scorer: Any, turns: Steps, renorm: bool = True, shift: float = 1.0, judge_last: bool = False
    ) -> None:
        self.scores, self.turns = StepScores(scorer, turns), turns
        self.renorm, self.shift, self.judge_last = renorm, shift, judge_last

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.scores, self.turns})

    def __call__(self, batch: Batch) -> Reward:
        scores, turns, dtype = batch.signals["step_scores"], batch.signals["steps"], batch.rewards.dtype
        scored = ~scores.isnan().any(-1)
        outcome = torch.tensor([v.score for v in batch.verdicts], dtype=dtype)
        passed = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        ends = step_ends(turns, batch.mask)
        # By turn, since a turn may end on a token that is not learned from, where its score then is.
        by_turn = (1 + sum_by_step(torch.where(scored[:, None], scores, 0), turns)) / 2
        process = by_turn.gather(1, turns.clamp(min=0)).to(dtype)
        after = ends.flip(1).cumsum(1).flip(1)
        paid = ends if self.judge_last else ends & (after > 1)
        worth = process + outcome[:, None] - self.shift if self.renorm else process
        tokens = torch.where(paid & scored[:, None], worth, 0)
        mean = torch.where(paid, process, 0).sum(-1) / paid.sum(-1).clamp(min=1)
        values = torch.zeros_like(outcome) if self.renorm and self.judge_last else outcome
        terms = {"outcome": outcome, "process": mean, "count": ends.sum(-1).to(dtype)}
        return Reward(values, tokens, passed & scored, terms)


class Undecided:
    """A scorer that finds every turn neither good nor bad."""

    def scores(self, responses: Sequence[tuple[Task, list[str]]]) -> list[list[float]]:
        return [[0.0] * len(steps) for _, steps in responses]


ONE = {"by": "fixed", "size": 1}
CREDIT = {"name": "gae", "decay": 1.0, "critic": {"name": "critic", "lr": 0.1}}


def _reward(renorm: bool) -> dict[str, Any]:
    return {"name": "S028", "judge": "verdict", "turns": ONE, "renorm": renorm, "kl_weight": 0.0}


claims(
    Claim(
        paper="S028",
        text="Where a judge of turns prefers those that lead nowhere, its scores renormalised by the outcome lead to "
        "right answers more often than its scores as they are beside the outcome.",
        setting="steps",
        evidence="construction",
        arms={
            "renorm": {"name": "S028", "reward": _reward(True), "credit": CREDIT},
            "sum": {"name": "S028", "reward": _reward(False), "credit": CREDIT},
            "outcome": {"name": "S028", "reward": "verdict", "credit": CREDIT},
        },
        better="renorm",
        baseline="sum",
        measure="area",
        options={"useful": 0.4, "useless": 0.8, "steps": 60, "prompts": 1, "group": 4},
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    )
)
