"""S134: what single turns of an agent earn is learned online, from which of a task's episodes succeeded."""

from __future__ import annotations

from typing import Any, Literal

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.turns.turn_group import TurnGroup
from assay.environments.corridor import ACTIONS, OPEN
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.gspo import TurnRatio
from assay.ops.turns import Kind, own_turns
from assay.registry import part
from assay.rewards.judged import judged
from assay.signals.implicit_reward import ImplicitReward


@paper(
    "S134",
    "OPRL",
    arxiv="2509.19199",
    seams=["policies", "reward", "credit", "objective", "rollout"],
    essentials={
        "a second model learns by a trajectory DPO loss over all pairs of a success and a failure": (
            "test_the_loss_of_trajectories_by_hand"
        ),
        "its reference is the rolling old policy: what episodes were sampled with": (
            "test_the_reference_is_the_old_policy"
        ),
        "what the environment says is masked": "test_observations_are_masked",
        "a turn's reward is the sum over its tokens": "test_advantages_by_hand",
        "normalised over all turns of the group, and added to the advantage of the episode": "test_advantages_by_hand",
        "without it, or with nothing learned, it is GRPO of episodes": "test_it_comes_down_to_grpo_of_episodes",
        "one ratio for each turn, a mean over turns, no KL term": "test_the_loss_of_turns_by_hand",
        "control: rewards added first, then normalised": "test_the_merged_control",
        "scores above a threshold count as successes where nothing verifies": "test_a_threshold_on_scores",
        "actions that could not be taken cost 0.1": "test_invalid_actions_cost",
        "the turn that takes what is needed earns most": "test_the_door_earns_more_than_the_wall",
        "it trains over turns, end to end": "test_a_whole_run",
    },
    choices=(
        "the model's learning rate is twice the policy's, as in the paper",
        "phi learns after its rewards were read, as in the released code",
        "the pairs of a task weigh one in all, where in the released code every pair weighs the same",
        "an action that could not be taken costs its episode, where the released code takes it from that turn alone",
    ),
)
def oprl(
    alpha: float = 1.0,
    beta: float = 0.05,
    lr: float | None = None,
    update: Literal["after", "before"] = "after",
    per_turn: bool = False,
    threshold: float | None = None,
    kind: Kind = "center_std",
    form: Literal["added", "merged"] = "added",
    invalid: float = 0.1,
    clip: float = 0.2,
) -> Method:
    """Advantages of turns beside those of episodes, from a model that prefers what succeeded.

        r(a_t) = beta sum_{tokens of a_t} (log phi - log pi_old);   S = sum_t r(a_t)
        L(phi) = mean over pairs of a task of -log sigmoid(S(success) - S(failure))
        A(a_t) = N(R) + alpha N(r(a_t)),    N(r) over all turns of the group
        policy: clipped surrogate with s_t = exp(sum_{tokens of a_t} (log pi - log pi_old)), a mean over turns

    phi starts as a copy of the policy and its reference is what episodes were sampled with, so that no third model is
    kept. It goes with rollout ``multi_turn``.

    Args:
        alpha: weight of turns, at least 0; 0 is GRPO of episodes.
        beta, lr, update, per_turn, threshold: of the model, see
            :class:`~assay.signals.implicit_reward.ImplicitReward`; ``per_turn`` is the released code's mean over turns.
        kind: the comparison N: ``center_std``, ``leave_one_out`` or ``center``.
        form: ``merged`` normalises R + alpha r(a_t) over all turns: the paper's control.
        invalid: what an action that could not be taken takes from R.
        clip: half-width of the clip range.

    Source: iStar (arXiv 2509.19199). The released code's baseline sees only the first turn of each episode; this one,
    as the paper, sees all.
    """
    implicit = ImplicitReward("dpo", beta, lr, update, "behaviour", per_turn=per_turn, threshold=threshold)
    merged = form == "merged"
    if merged:
        credit = TurnGroup("task", "none", kind=kind)
    else:
        credit = TurnGroup("task", "none", kind=kind, of="turns", weight=alpha, episode=1.0)
    return Method(
        reward=TurnPreference(implicit, invalid, alpha if merged else None),
        credit=credit,
        objective=TurnRatio(clip_low=clip, clip_high=clip),
    )


@part("reward", "turn_preference")
class TurnPreference:
    """R_i = score - ``invalid`` for each action that could not be taken; beta q_t on each token of a turn.

    Args:
        implicit: signal ``implicit_reward``; made by default.
        invalid: see above, at least 0.
        merged: alpha, to put R_i + alpha r(a_t) on every turn in place of either; ``None`` to keep them apart.

    Raises:
        UsageError: ``invalid`` or ``merged`` negative.
    """

    def __init__(self, implicit: Any = None, invalid: float = 0.1, merged: float | None = None):
        self.implicit = ImplicitReward("dpo", reference="behaviour") if implicit is None else implicit
        if min(invalid, merged or 0.0) < 0:
            raise UsageError("reward 'turn_preference': invalid and merged must be at least 0")
        self.invalid, self.merged = invalid, merged
        self.needs = frozenset({self.implicit})

    def __call__(self, batch: Batch) -> Reward:
        told = judged(batch)
        scores = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        wrong = torch.tensor([sum(not t.valid for t in own_turns(e)) for e in batch.episodes]).to(scores)
        values = torch.where(told, scores - self.invalid * wrong, 0)
        tokens = torch.where(batch.mask, self.implicit.beta * batch.signals["implicit_reward"], 0).to(scores)
        terms = {"episode": values, "turns": tokens.sum(-1)}
        if self.merged is None:
            return Reward(values, tokens, told, terms)
        tokens = self.merged * tokens
        for i, episode in enumerate(batch.episodes):
            for turn in own_turns(episode):
                own = batch.mask[i, turn.start : turn.end].nonzero()
                if len(own):
                    tokens[i, turn.start + int(own[-1, 0])] += values[i]
        return Reward(torch.zeros_like(values), tokens, told, terms)


claims(
    Claim(
        paper="S134",
        text="Where a door has to be opened on the way, advantages of turns learned from successes and failures lead "
        "to success sooner than the advantage of the episode alone.",
        setting="environment",
        evidence="mechanism",
        arms={
            "oprl": {"name": "S134", "options": {"lr": 0.3}},
            "episodes": {"name": "S134", "options": {"lr": 0.3, "alpha": 0.0}},
        },
        better="oprl",
        baseline="episodes",
        measure="area",
        options={
            "environment": {"name": "corridor", "rooms": 3, "doors": 1, "moves": 5},
            "words": [[*ACTIONS, OPEN]],
            "turns": 5,
            "steps": 40,
        },
        sweep={"lr": (3.0, 10.0, 30.0)},
    )
)
