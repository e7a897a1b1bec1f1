"""How well a head predicts on tasks that it was not trained on, against what knows nothing of the response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from assay.errors import RunError
from assay.inference.heads.joint import Bins, JointHead, start_states
from assay.inference.heads.value_head import ValueHead
from assay.policies.base import Policy
from assay.rewards.step_models.states import states
from assay.statistics.calibration import auroc, expected_calibration_error
from assay.statistics.intervals import Interval, paired_interval
from assay.types import Episode, Group

Kind = Literal["joint", "value"]
Head = JointHead | ValueHead
Row = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gain:
    """A loss of a head beside that of a constant, both means over tasks.

    Attributes:
        head, constant: the losses; the constant is the best one for the responses that the head was trained on.
        difference: head - constant with its 95% interval over tasks; below 0 the head knows something.
    """

    head: float
    constant: float
    difference: Interval


@dataclass(frozen=True, slots=True)
class Fit:
    """What a head is worth on tasks kept back. Within a task responses, and in these positions, weigh alike.

    Attributes:
        tasks, responses: kept back, with a known outcome.
        right: their mean reward.
        predicted: mean reward predicted at their ends.
        reward: squared error of the predicted reward, over all positions.
        length: cross entropy of the range that the remaining length is in, in nats over all positions; of joint heads.
        auroc: of the reward predicted at the end, right against wrong; ``None`` where all are alike.
        ece: of the same, its calibration error.
    """

    tasks: int
    responses: int
    right: float
    predicted: float
    reward: Gain
    length: Gain | None
    auroc: float | None
    ece: float

    @property
    def helps(self) -> bool:
        """Whether it is certain that the predicted reward is better than a constant's."""
        return self.reward.difference.high < 0


def known(group: Group, kind: Kind) -> list[tuple[Episode, float, bool]]:
    """Return the responses that a head learns from, with reward and verdict.

    Those that could not be judged or are empty are left out; for a joint head, whose outcomes have a length, also those
    that were cut off.
    """
    return [
        (e, v.score if kind == "joint" else float(v.passed), v.passed)
        for e, v in zip(group.episodes, group.verdicts, strict=True)
        if v.passed is not None and len(e.tokens) and not (kind == "joint" and e.truncated)
    ]


@torch.no_grad()
def measure(head: Head, policy: Policy, fitted: Sequence[Group], kept: Sequence[Group]) -> Fit:
    """Measure a head.

    Args:
        head: see above.
        policy: whose states it reads.
        fitted: judged responses that it was trained on; the constants are theirs.
        kept: judged responses to other tasks.

    Raises:
        RunError: no response that was kept back has a known outcome.
    """
    kind: Kind = "joint" if isinstance(head, JointHead) else "value"
    bins = head.bins if isinstance(head, JointHead) else None
    learnt = [row for g in fitted for row in known(g, kind)]
    usual = float(np.mean([reward for _, reward, _ in learnt]))
    share = None if bins is None else np.mean([_ranges(e, bins) for e, _, _ in learnt], axis=0)
    errors: list[tuple[float, float]] = []
    lengths: list[tuple[float, float]] = []
    ends: list[tuple[float, float, bool]] = []
    for group in kept:
        rows = known(group, kind)
        if not rows:
            continue
        found = _predicted(head, policy, [e for e, _, _ in rows])
        rewards = [r for _, r, _ in rows]
        ends += [(float(p[-1]), r, right) for (p, _), (_, r, right) in zip(found, rows, strict=True)]
        squared = [float(((p - r) ** 2).mean()) for (p, _), r in zip(found, rewards, strict=True)]
        errors.append((float(np.mean(squared)), float(np.mean([(usual - r) ** 2 for r in rewards]))))
        if bins is not None and share is not None:
            mine = [_surprise(table, e, bins) for (_, table), (e, _, _) in zip(found, rows, strict=True)]
            # A range that no response was seen in is not impossible.
            smooth = (share * len(learnt) + 1) / (len(learnt) + len(share))
            others = [float(-_ranges(e, bins) @ np.log(smooth)) for e, _, _ in rows]
            lengths.append((float(np.mean(mine)), float(np.mean(others))))
    if not ends:
        raise RunError("no response to the tasks kept back was judged, so nothing says what the head is worth")
    predicted, outcome, rights = (np.array(x, dtype=np.float64) for x in zip(*ends, strict=True))
    clear = auroc(predicted, rights)
    return Fit(
        tasks=len(errors),
        responses=len(ends),
        right=float(outcome.mean()),
        predicted=float(predicted.mean()),
        reward=_gain(errors),
        length=_gain(lengths) if lengths else None,
        auroc=None if np.isnan(clear) else clear,
        ece=expected_calibration_error(predicted.clip(0, 1), rights),
    )


def _predicted(head: Head, policy: Policy, episodes: Sequence[Episode]) -> list[tuple[Row, Row]]:
    """Reward predicted at every position of each response, and for a joint head P(range of length) there."""
    after = states(policy, episodes)
    weight = head.linear.weight
    if isinstance(head, ValueHead):
        return [(head(h.to(weight)).double().cpu().numpy(), np.zeros((len(h), 0))) for h in after]
    out: list[tuple[Row, Row]] = []
    for start, h in zip(start_states(policy, episodes), after, strict=True):
        table = head(torch.cat([start[None].to(h), h]).to(weight)).double().cpu().numpy()
        out.append((table.sum(2) @ head.bins.values, table.sum(1)))
    return out


def _places(episode: Episode, bins: Bins) -> list[int]:
    """The range that the remaining length is in, from before the first token to after the last."""
    return [bins.of(len(episode.tokens) - t, 0.0) for t in range(len(episode.tokens) + 1)]


def _ranges(episode: Episode, bins: Bins) -> Row:
    """Share of the positions of a response that each range of remaining length has."""
    return np.bincount(_places(episode, bins), minlength=bins.lengths) / (len(episode.tokens) + 1)


def _surprise(table: Row, episode: Episode, bins: Bins) -> float:
    """Mean of -log P(range) over the positions."""
    chances = table[np.arange(len(table)), _places(episode, bins)]
    return float(-np.log(np.maximum(chances, 1e-30)).mean())


def _gain(pairs: Sequence[tuple[float, float]]) -> Gain:
    mine, constant = (np.array(x) for x in zip(*pairs, strict=True))
    return Gain(float(mine.mean()), float(constant.mean()), paired_interval(constant, mine))
