"""S019: beside the verdict, a small bonus in tiers for how near a response came to the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.rewards.judged import judged
from assay.rewards.shaping.transforms import Tiers
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.verify.geometry.point import gaussian_proximity as by_distance


@paper(
    "S019",
    "SSL",
    arxiv="2601.22491",
    seams=["reward"],
    essentials={
        "R = C + alpha worth of the tier, four tiers of the proximity": "test_tiers_by_hand",
        "the proximity of a trajectory is the mean of its steps'": "test_where_the_proximity_comes_from",
        "clicks: a Gaussian around the target's centre, by axis": "test_clicks_are_worth_more_the_nearer_they_are",
        "grids: the share of blocks that are right": "test_blocks",
        "a verifier that compares grids with their solution by blocks": "test_a_grid_is_compared_block_by_block",
        "a run on grids, whose steps see how much is right": "test_a_run_on_grids",
        "no wrong response outranks a right one": "test_right_outranks_wrong",
        "one tier is the verdict alone, many are the proximity": "test_one_tier_is_the_verdict_and_many_are_continuous",
        "near responses are learned where none is right": "test_it_acts_in_training",
    },
    choices=(
        "alpha 0.5, tiers worth k / (K - 1), and half the box's width and height as deviations",
        "wrong responses get their tier's worth too",
    ),
)
def ssl(proximity: Any = None, tiers: int = 4, alpha: float = 0.5, worth: Sequence[float] | None = None) -> Method:
    """GRPO with the verdict plus a bonus that rises in a few tiers with the proximity to the target.

        R_i = C_i + alpha worth[k_i],   k_i = floor(K s_i) (K - 1 at s_i = 1),   s_i = mean_t s_it in [0, 1]

    C_i = 1[right], s_it the proximity of step t. alpha times the greatest worth is below 1, so that every right
    response outranks every wrong one. With K = 1 it is the verdict alone; the more tiers, the nearer to C + alpha s.
    Wrong responses get their bonus too: that is what tells them apart where none is right.

    Args:
        proximity: a reward part that gives s_i; the steps' proximities by default, see :class:`Proximity`. For what it
            may be measured by see :func:`gaussian_proximity` (clicks, boxes); of verifier ``point`` with ``proximity =
            "gaussian"`` and ``zones = 0`` it is the part ``near``, of ``maze`` the part ``progress``. Verifier ``grid``
            tells the share of blocks that are right as ``proximity``.
        tiers: K, at least 1.
        alpha: weight of the bonus, not negative.
        worth: of each tier, rising; k / (K - 1) by default.

    Source: Sweet Spot Learning (arXiv 2601.22491) for R = C + alpha S and K = 4; the worth of the tiers, alpha and
    the scales of the Gaussian are choices.
    """
    return Method(reward=SweetSpot(proximity, tiers, alpha, worth))


class SweetSpot(Around):
    """R_i = C_i + alpha worth[tier of s_i], see :func:`ssl`; terms ``verdict``, ``tier`` and those of the proximity.

    Args:
        proximity, tiers, alpha, worth: see there.

    Raises:
        UsageError: no tiers, a negative alpha, worths that fall or do not fit, or a bonus of 1 or more.
        RunError: a proximity outside [0, 1]; says of which row.
    """

    def __init__(
        self,
        proximity: Any = None,
        tiers: int = 4,
        alpha: float = 0.5,
        worth: Sequence[float] | None = None,
    ):
        if tiers < 1 or alpha < 0:
            raise UsageError(f"reward 'S019': tiers {tiers} must be at least 1, alpha {alpha:g} not negative")
        edges = [k / tiers for k in range(1, tiers)]
        worth = [k / max(tiers - 1, 1) for k in range(tiers)] if worth is None else [float(w) for w in worth]
        if any(a > b for a, b in pairwise(worth)):
            raise UsageError(f"reward 'S019': worth {worth} falls")
        if alpha * (max(worth) - min(worth)) >= 1:
            raise UsageError(
                f"reward 'S019': a bonus of {alpha * (max(worth) - min(worth)):g} lets a wrong response outrank a "
                "right one; alpha times the worths' range must be below 1"
            )
        super().__init__({"proximity": Proximity() if proximity is None else proximity})
        self.alpha, self.tiers = alpha, Tiers(edges=edges, worth=worth)

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        proximity, valid = found["proximity"].values, valid_in(found, batch)
        for i in (valid & ~((proximity >= 0) & (proximity <= 1))).nonzero()[:, 0].tolist():
            raise RunError(
                f"reward 'S019': the proximity {proximity[i].item():g} of row {i} (task {batch.tasks[i].id}) "
                "is outside [0, 1]"
            )
        right = torch.tensor([float(v.passed is True) for v in batch.verdicts], dtype=batch.rewards.dtype)
        tier = self.tiers.bend(proximity, batch)
        terms = {"verdict": right, "tier": tier, **terms_of(found)}
        told = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        return Reward(right + self.alpha * tier, valid=valid & told, terms=terms)


class Proximity:
    """s_i = mean ``proximity`` of the steps, in the ``info`` of turns and in the ``meta`` of spans of kind ``step``.

    Without these it is the verdict's part ``proximity``, and without that the verdict's score. A part that is
    ``None`` could not be told: no reward.
    """

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        for i, (episode, verdict) in enumerate(zip(batch.episodes, batch.verdicts, strict=True)):
            steps = [s.meta["proximity"] for s in episode.spans if s.kind == "step" and "proximity" in s.meta]
            steps += [float(turn.info["proximity"]) for turn in episode.turns if "proximity" in turn.info]
            told = sum(steps) / len(steps) if steps else verdict.parts.get("proximity", verdict.score)
            valid[i] = bool(valid[i]) and told is not None
            values[i] = 0.0 if told is None else told
        return Reward(values, valid=valid, terms={"proximity": values})


def gaussian_proximity(
    point: tuple[float, float], box: tuple[float, float, float, float], scale: tuple[float, float] = (0.5, 0.5)
) -> float:
    """Return exp(-((dx / sx)^2 + (dy / sy)^2) / 2) of a point from the centre of a target's box.

    Args:
        point: x, y.
        box: left, top, right, bottom.
        scale: sx and sy as shares of the box's width and height.

    Raises:
        UsageError: an empty box, or a scale not above 0.
    """
    sx, sy = scale[0] * (box[2] - box[0]), scale[1] * (box[3] - box[1])
    if sx <= 0 or sy <= 0:
        raise UsageError(f"proximity: box {box} must be left, top, right, bottom, and scale {scale} above 0")
    return by_distance(point[0] - (box[0] + box[2]) / 2, point[1] - (box[1] + box[3]) / 2, sx, sy)


NEAR: list[Mapping[str, float]] = [{"proximity": k / 8} for k in range(9)]

claims(
    Claim(
        paper="S019",
        text="Where right responses are rare and near ones less so, a bonus in tiers for proximity finds the right "
        "ones sooner than the verdict alone.",
        setting="choices",
        evidence="construction",
        arms={"verdict": {"name": "grpo"}, "tiers": {"name": "S019"}},
        better="tiers",
        baseline="verdict",
        measure="area",
        options={
            "choices": [[[1.0, k == 8, NEAR[k]]] for k in range(9)],
            "logits": [-0.75 * k for k in range(9)],
            "steps": 100,
        },
        sweep={"lr": (0.1, 0.3, 1.0, 3.0)},
    )
)
