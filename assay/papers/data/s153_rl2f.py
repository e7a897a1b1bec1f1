"""S153: learn to learn from feedback: dialogues with a teacher who knows the answer, rewarded if one is solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.origins import written_by
from assay.ops import IMPOSSIBLE, masked_mean
from assay.ops.turns import own_turns
from assay.types import Episode, Origin, Verdict


@paper(
    "S153",
    "RL2F",
    arxiv="2602.16066",
    seams=["reward", "objective", "envs", "inference"],
    essentials={
        "feedback comes after a wrong turn and not after a right one": "test_feedback_comes_after_a_wrong_turn_alone",
        "the teacher sees the answer, which the student does not": "test_the_teacher_alone_sees_the_answer",
        "what gives the answer away is said anew or left out": "test_a_leak_is_said_anew_or_left_out",
        "1 if solved within the turns, whichever turn it was": "test_returns_by_hand",
        "only the student's tokens carry the policy gradient": "test_each_token_carries_its_own_loss",
        "the student predicts the feedback from what is public": "test_each_token_carries_its_own_loss",
        "accuracy by turn, and how often an answer changes after feedback": "test_accuracy_by_turn",
        "without a teacher the model takes both parts: attempts, says what is wrong, attempts again": (
            "test_the_model_says_itself_what_is_wrong"
        ),
        "it trains a language model in dialogues": "test_it_trains_in_dialogues",
    },
    choices=(
        "GRPO over the dialogues of a problem",
        "the teacher's words and template",
        "lambda 0.1 where feedback is predicted",
        "the prediction loss is a mean over the tokens that were said to the student",
    ),
)
def rl2f(gamma: float = 1.0, prediction: float = 0.0, most: int = 8) -> Method:
    """RL over whole dialogues in the environment ``attempts`` with a ``teacher``, by rollout ``multi_turn``.

        R = gamma^(k - 1) if turn k is the first that is right, 0 if none is
        L = L_GRPO(tokens of the student) + prediction * mean_{tokens said to the student} -log pi(f_t | public history)

    There is no gradient within a dialogue: what is learned is to adapt in context. With ``prediction`` above 0 the
    student learns to say what the teacher would, without seeing the answer: strategy ``self_critique`` is the dialogue
    in which it takes both parts.

    Args:
        gamma: in (0, 1]; 1 as in the paper.
        prediction: lambda, at least 0.
        most: turns of the logged accuracy by turn.

    Source: "Improving interactive in-context learning from natural language feedback" (arXiv 2602.16066).
    """
    return Method(reward=SolvedByTurn(gamma, most), objective=FeedbackPrediction(prediction=prediction))


def solved_at(episode: Episode, verdict: Verdict) -> int | None:
    """Return the number, from 1, of the first turn that was right; of an episode without verdicts of turns the last."""
    turns = own_turns(episode)
    for k, turn in enumerate(turns, 1):
        if turn.verdict is not None and turn.verdict.passed:
            return k
    return len(turns) if verdict.passed else None


def accuracy_by_turn(solved: Sequence[int | None], most: int) -> list[float]:
    """Return the share of dialogues that are solved within 1, 2, ..., ``most`` turns."""
    return [sum(k is not None and k <= n for k in solved) / max(1, len(solved)) for n in range(1, most + 1)]


def plasticity(episodes: Sequence[Episode]) -> float | None:
    """Return the share of turns after feedback whose text is another than the turn's before; ``None`` without any."""
    pairs = [(a.text, b.text) for e in episodes for a, b in zip(e.turns, e.turns[1:], strict=False)]
    known = [(a.strip(), b.strip()) for a, b in pairs if a or b]
    return sum(a != b for a, b in known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class SolvedByTurn:
    """R of :func:`rl2f`; terms ``solved/k`` say whether a dialogue was solved within k turns, their mean how often.

    Raises:
        UsageError: gamma outside (0, 1], or ``most`` below 1.
    """

    gamma: float = 1.0
    most: int = 8

    of_turns = True

    def __post_init__(self) -> None:
        if not 0 < self.gamma <= 1 or self.most < 1:
            raise UsageError(f"reward 'S153': gamma {self.gamma:g} must be in (0, 1], and most {self.most} at least 1")

    def __call__(self, batch: Batch) -> Reward:
        found = [solved_at(e, v) for e, v in zip(batch.episodes, batch.verdicts, strict=True)]
        values = torch.tensor([0.0 if k is None else self.gamma ** (k - 1) for k in found]).to(batch.rewards)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        longest = min(self.most, max((len(own_turns(e)) for e in batch.episodes), default=1))
        terms = {
            f"solved/{n}": torch.tensor([float(k is not None and k <= n) for k in found]).to(batch.rewards)
            for n in range(1, longest + 1)
        }
        return Reward(values, valid=valid, terms=terms)


@dataclass(frozen=True, slots=True)
class FeedbackPrediction(ClippedSurrogate):
    """The clipped surrogate, and the log-loss of what was said to the student between his turns, by weight.

    Args:
        prediction: lambda of :func:`rl2f`, at least 0.
        others: as of :class:`assay.objectives.clip.ClippedSurrogate`.

    Raises:
        UsageError: ``prediction`` below 0.
    """

    prediction: float = 0.0

    def __post_init__(self) -> None:
        ClippedSurrogate.__post_init__(self)
        if self.prediction < 0:
            raise UsageError(f"objective 'S153': prediction {self.prediction:g} must be at least 0")

    @property
    def zero_advantage_is_idle(self) -> bool:
        return not self.prediction and not self.kl_weight and not self.entropy_weight

    def prepare(self, batch: Batch) -> None:
        """Note which tokens were said, and each one's share of all that were in the mini-batch."""
        if self.prediction:
            said = written_by(batch, Origin.TOOL) & batch.active[:, None]
            batch.signals["said"] = said.to(batch.rewards) / max(1, int(said.sum()))

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        loss = ClippedSurrogate.__call__(self, logprobs, batch)
        if not self.prediction:
            return loss
        share = batch.signals["said"].to(logprobs)
        missed = -(share * torch.where(share > 0, logprobs.clamp(min=IMPOSSIBLE), 0)).sum()
        found = float(masked_mean(-logprobs.detach().clamp(min=IMPOSSIBLE), share > 0))
        return Loss(loss.value + self.prediction * missed, {**loss.metrics, "feedback/loss": found})


claims(
    Claim(
        paper="S153",
        text="A policy that is trained in dialogues solves more problems within as many turns than one that is trained "
        "on single turns, because it comes to use what it is told.",
        setting="dialogues",
        arms={
            "dialogues": {"name": "S153"},
            "single turn": {"name": "S153", "rollout": {"turns": 1}},
        },
        better="dialogues",
        baseline="single turn",
        measure="final",
        sweep={"lr": (3.0, 10.0, 30.0, 100.0, 300.0)},
    ),
)
