"""Which parts of a method fit each other: what would silently undo or ignore another part is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from assay.credit.brpo import BRPO
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method.base import Method
from assay.rewards.outcome.noise import NoiseCorrected
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.process.turns import TurnRewards
from assay.select.everything import All
from assay.select.verdicts import OfVerdict


def check_parts(method: Method, before: Method, asked: Collection[str]) -> None:
    """Raise UsageError if parts of ``method`` would do nothing beside each other.

    Beside what the seams' contracts say (``reads``, ``level``), a part may set ``relabels = True`` (a reward: one
    number for right and one for wrong, for all samples alike), ``one_sided = True`` (a select: what it keeps of a group
    has one verdict), ``reads = "verdict"`` (a credit that reads no reward) and ``beside`` (a credit: the name of a
    signal that the objective has to need).

    Args:
        method: with the seams ``asked`` for.
        before: the method without them: what was wrong there, its author meant.
        asked: seams that were replaced.
    """
    if {"credit", "objective"} & set(asked):
        _advantages_are_read(method, "credit" in asked)
    for reason in CHECKS:
        said = reason(method)
        if said is not None and reason(before) is None:
            raise UsageError(said)


def _advantages_are_read(method: Method, asked: bool) -> None:
    credit, objective = method.credit, method.objective
    reads, names = getattr(objective, "reads", "tokens"), (_name(credit), _name(objective))
    if reads == "nothing" and (asked or not isinstance(credit, GRPO)):
        raise UsageError(
            f"objective {names[1]} reads no advantages, so credit {names[0]} would do nothing; leave out the credit, "
            "or take a policy-gradient objective such as 'clip'"
        )
    if reads == "response" and getattr(credit, "level", "response") == "token":
        raise UsageError(
            f"credit {names[0]} gives each token its own advantage and objective {names[1]} reads one for the whole "
            "response; take 'gspo_token' or another objective of tokens"
        )


def _untrained(method: Method) -> str | None:
    """A credit that mixes in what another objective trains."""
    beside = getattr(method.credit, "beside", None)
    if beside is None or beside in {getattr(n, "name", n) for n in getattr(method.objective, "needs", ())}:
        return None
    own = type(method.credit).__module__.rpartition(".")[2][:4].upper()
    return (
        f"credit {_name(method.credit)} would do nothing: it mixes in what objective {own!r} trains, and "
        f"{_name(method.objective)} trains no {beside}; take both (method = {own!r}), or credit 'grpo'"
    )


def _uncut(method: Method) -> str | None:
    """Budget-relative advantages of responses that no budget cuts."""
    if not isinstance(method.credit, BRPO) or method.rollout != "single_turn":
        return None
    return (
        "credit BRPO would do nothing but subtract the group's mean: it values thoughts that are cut at budgets, and "
        "rollout 'single_turn' cuts none; take rollout 'anytime' (method = 'S002' has both), or for the mean alone "
        'credit {name = "grpo", normalise = false}'
    )


def _undone(method: Method) -> str | None:
    """Relabelled verdicts under a credit that does not see which numbers stand for right and wrong."""
    scale = scaled_by(method.credit)
    if scale is None or not relabels(method.reward, within_groups=scale == "group std"):
        return None
    return (
        f"reward {_name(method.reward)} would do nothing: it gives right and wrong responses one number each, and "
        f"credit {_name(method.credit)} subtracts the mean and divides by the {scale}, whatever they are; take credit "
        "'reinforce', 'rloo' or {name = \"grpo\", normalise = false}, or reward 'verdict'"
    )


def _equal(method: Method) -> str | None:
    """Responses of one verdict, compared with each other by their verdicts."""
    kept = [method.select, *getattr(method.select, "members", ())]
    one_sided = [s for s in kept if isinstance(s, OfVerdict) or getattr(s, "one_sided", False)]
    by_verdict = type(method.reward) is VerdictReward or relabels(method.reward, within_groups=True)
    if not one_sided or not by_verdict or not compares_rewards(method.credit) or _rollout(method) == "recorded":
        return None
    if getattr(method.objective, "reads", "tokens") == "nothing" or method.live - {"entropy"}:
        return None
    return (
        f"credit {_name(method.credit)} would do nothing: the responses that select {_name(one_sided[0])} keeps of a "
        "group have equal rewards, so that every advantage is 0; take credit 'S074' (1 for right, -1 for wrong) or "
        "'reinforce', objective 'sft', or, if the verifier gives partial credit, reward = [\"verdict\"]"
    )


def _unread(method: Method) -> str | None:
    """A reward beside a credit that reads verdicts."""
    everything = isinstance(method.select, All | OfVerdict)
    if getattr(method.credit, "reads", "reward") != "verdict" or not everything:
        return None
    if isinstance(method.reward, VerdictReward) or getattr(method.objective, "reads", "tokens") == "nothing":
        return None
    return (
        f"reward {_name(method.reward)} would do nothing: credit {_name(method.credit)} reads verdicts and no rewards; "
        "take reward 'verdict', or credit 'reinforce', whose advantage is the reward"
    )


def _unjudged(method: Method) -> str | None:
    """A reward for what an oracle says of turns that no oracle is asked about."""
    if _rollout(method) != "multi_turn" or (isinstance(method.rollout, dict) and method.rollout.get("oracle")):
        return None
    parts = [method.reward, *getattr(method.reward, "members", ())]
    if not any(isinstance(part, TurnRewards) and part.of == "verdict" for part in parts):
        return None
    return "reward 'turns' would do nothing: it pays what an oracle says of each turn; set rollout oracle = true"


CHECKS: tuple[Callable[[Method], str | None], ...] = (_untrained, _uncut, _undone, _equal, _unread, _unjudged)


def relabels(reward: Any, within_groups: bool) -> bool:
    """Whether a reward is one number for right and one for wrong, alike for all samples of a batch (or of a group)."""
    if isinstance(reward, NoiseCorrected):
        return not reward.by and reward.record is None and (within_groups or reward.appeals is None)
    return bool(getattr(reward, "relabels", False))


def scaled_by(credit: Any) -> str | None:
    """The deviation that a credit divides by which subtracts a mean too and knows rewards only; ``None`` without one.

    Its advantages stay as they are when all rewards are multiplied by a positive number and shifted.
    """
    if not getattr(credit, "group_relative", False) or bool(getattr(credit, "needs", ())):
        return None
    scale = str(getattr(credit, "summary", {}).get("normalisation", ""))
    return scale if scale.endswith(("group std", "batch std", "batch std over tokens")) else None


def compares_rewards(credit: Any) -> bool:
    """Whether advantages are 0 where all rewards of a group are equal: nothing else is read."""
    more = bool(getattr(credit, "needs", ())) or getattr(credit, "beside", None) or getattr(credit, "rollout", None)
    whole = getattr(credit, "level", "response") == "response"
    return bool(getattr(credit, "group_relative", False)) and whole and not more


def _rollout(method: Method) -> str:
    return str(method.rollout.get("name", "") if isinstance(method.rollout, dict) else method.rollout)


def _name(part: Any) -> str:
    return type(part).__name__
