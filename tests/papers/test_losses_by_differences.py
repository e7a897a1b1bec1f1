"""Every loss that a paper brings, and two of the field's: its gradient on a policy's logits by central differences.

What is differentiated is not our code but each loss written anew in NumPy, from the paper's formula, over a softmax of
the test's own. What a loss holds constant (weights, targets, gates, draws) is taken from the policy as it stands and
stays there while the logits move; everything is float64.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from anything import METHODS, method_of

from assay import catalogue
from assay.batch import Batch
from assay.objectives.covariance import ClipCov
from assay.objectives.whole_response import WholeResponse
from assay.papers.objectives.s082_recap import ADVANTAGES, WEIGHT, SumOfObjectives
from assay.policies.base import PolicyOutput
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Ask, Episode, Group, Origin, Stop, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

TREE = Tree.uniform(3, 4)
# Paths cut before their end, so that another decision follows each of them.
PATHS = [(0, 1, 2), (2,), (1, 1, 0), (1, 1), (0, 0, 2), (2, 0), (0, 1, 1), (2, 2), (1, 0, 2)]
GROUPS = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
RIGHT = np.array([True, False, False, True, False, True, True, True, True])
WEIGHTS = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])  # one response counts twice, one not at all
MASK = np.array([[t < len(p) for t in range(3)] for p in PATHS])
MASK[4, 1] = False  # written by a tool
THEIRS = np.zeros_like(MASK)
THEIRS[2] = MASK[2]  # written by a teacher
TRUNCATED = 6
USED = MASK & (WEIGHTS > 0)[:, None]
LENGTHS = MASK.sum(1)
TOKENS, SEQUENCES = USED.sum(), (WEIGHTS > 0).sum()
CANDIDATES = 3


class Deciding(TabularPolicy):
    """A tabular policy that also says how probable a token would be right after a response."""

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        after = [name for name in live if name.startswith("next_logprob@")]
        out = super().forward(batch, set(live) - {*after}, temperature)
        nodes = [self.tree.node(e.tokens.tolist()) for e in batch.episodes]
        for name in after:
            out.live[name] = self.log_policy()[nodes, int(name.split("@")[1])]
        return out


@dataclass
class Seen:
    """What a policy says of the batch, computed here: ``(N, T)`` but for the candidates and the token after the end."""

    logp: np.ndarray
    entropy: np.ndarray
    mean: np.ndarray
    candidates: np.ndarray
    after: np.ndarray


@dataclass
class World:
    """The constants of one batch; ``old`` sampled, ``start`` is the policy before the step's first update."""

    logits: np.ndarray
    old: Seen
    start: Seen
    reference: Seen
    advantages: np.ndarray
    chosen: np.ndarray
    shown: np.ndarray
    lambdas: dict[str, np.ndarray]
    parts: dict[str, np.ndarray]

    @classmethod
    def of(cls, seed: int) -> World:
        rng = np.random.default_rng(seed)
        logits = rng.normal(size=TREE.children.shape)
        chosen = rng.integers(0, 3, (*MASK.shape, CANDIDATES))
        old, start, reference = (seen(logits + s * rng.normal(size=logits.shape), chosen) for s in (0.4, 0.2, 0.5))
        fed = {"one": GROUPS == 0, "other": (GROUPS > 0) & (np.arange(9) != 8), "imitation": np.arange(9) == 8}
        share = {"one": 0.5, "other": 0.3, "imitation": 0.2}
        return cls(
            logits,
            old,
            start,
            reference,
            advantages=np.where(MASK, rng.normal(size=MASK.shape), 0),
            chosen=chosen,
            shown=rng.uniform(0, 3, chosen.shape) * (RIGHT[:, None] & MASK)[..., None],
            lambdas={k: share[k] * rows * (WEIGHTS > 0) for k, rows in fed.items()},
            parts={k: np.where(MASK, rng.normal(size=MASK.shape), 0) for k in fed},
        )


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def seen(logits: np.ndarray, chosen: np.ndarray) -> Seen:
    table, children = log_softmax(logits), TREE.children.numpy()
    nodes = np.zeros((len(PATHS), 4), dtype=int)
    for i, path in enumerate(PATHS):
        for t, token in enumerate(path):
            nodes[i, t + 1] = children[nodes[i, t], token]
    here = table[nodes[:, :3]]
    tokens = np.array([[*p, 0, 0][:3] for p in PATHS])
    after = table[[nodes[i, len(p)] for i, p in enumerate(PATHS)], 0]
    return Seen(
        np.take_along_axis(here, tokens[..., None], -1)[..., 0],
        -(np.exp(here) * here).sum(-1),
        here.mean(-1),
        np.take_along_axis(here, chosen, -1),
        after,
    )


def batch_of(w: World) -> Batch:
    groups = []
    for group in range(3):
        episodes, verdicts = [], []
        for i in np.flatnonzero(group == GROUPS):
            n = len(PATHS[i])
            logprobs = np.where(THEIRS[i], np.nan, w.old.logp[i])[:n]
            origins = np.where(THEIRS[i], Origin.TEACHER, np.where(MASK[i], Origin.OWN, Origin.TOOL))[:n]
            stop: Stop = "length" if i == TRUNCATED else "eos"
            tokens = np.array(PATHS[i], dtype=np.int64)
            episode = Episode(np.zeros(0, dtype=np.int64), tokens, MASK[i, :n], logprobs, "", stop)
            episodes.append(replace(episode, origins=origins.astype(np.uint8)))
            verdicts.append(Verdict(float(RIGHT[i]), bool(RIGHT[i])))
        groups.append(Group(Ask(Task(f"t{group}", ""), len(episodes)), tuple(episodes), tuple(verdicts)))
    batch = Batch.from_groups(groups, torch.float64)
    batch.rewards, batch.weights = torch.from_numpy(RIGHT.astype(float)), torch.from_numpy(WEIGHTS)
    batch.advantages = torch.from_numpy(w.advantages)
    constant = {"last_token_phase": 1.0, "last_token_scale": 0.3, "last_token_reference": -2.0}
    batch.signals = {
        "policy_logprobs": torch.from_numpy(w.start.logp),
        "policy_mean_logprob": torch.from_numpy(w.start.mean),
        "entropy": torch.from_numpy(w.start.entropy),
        "reference_logprobs": torch.from_numpy(w.reference.logp),
        "candidates": torch.from_numpy(w.chosen),
        "answer_weights": torch.from_numpy(w.shown),
        **{name: torch.full((len(PATHS),), value, dtype=torch.float64) for name, value in constant.items()},
    }
    return batch


# How token losses become one number: the weights of responses multiply, the denominators count


def token_mean(loss: np.ndarray) -> float:
    return (WEIGHTS[:, None] * loss)[USED].sum() / TOKENS


def sequence_sum(loss: np.ndarray) -> float:
    return (WEIGHTS * np.where(USED, loss, 0).sum(1)).sum() / SEQUENCES


def sequence_mean(loss: np.ndarray) -> float:
    return sequence_sum(loss / LENGTHS[:, None])


def ratio(now: Seen, old: Seen) -> np.ndarray:
    return np.exp(now.logp - old.logp)


def clipped(rho: np.ndarray, advantages: np.ndarray, low: float = 0.2, high: float = 0.2) -> np.ndarray:
    return -np.minimum(rho * advantages, rho.clip(1 - low, 1 + high) * advantages)


def own_ratio(now: Seen, fixed: Seen, w: World) -> np.ndarray:
    """pi / pi_old; a teacher's pi_old is not known, the policy as it stands takes its place."""
    return np.where(THEIRS, np.exp(now.logp - fixed.logp), ratio(now, w.old))


Oracle = Callable[[Seen, Seen, World], float]
"""The loss of a policy as it is now, ``fixed`` being the one that what is constant was taken from."""


def dispo(now: Seen, fixed: Seen, w: World) -> float:
    rho = own_ratio(fixed, fixed, w)
    weight = np.where(w.advantages > 0, rho.clip(0.8, 1.5), rho.clip(0.0, 2.0))
    return token_mean(-weight * w.advantages * now.logp)


def scores(now: Seen, fixed: Seen, w: World) -> np.ndarray:
    return np.where(USED, np.log(own_ratio(now, fixed, w)), 0).sum(1)


def real(now: Seen, fixed: Seen, w: World) -> float:
    s, total = scores(now, fixed, w) / LENGTHS / 0.5, 0.0
    for group in range(3):
        right, wrong = ((group == GROUPS) & (WEIGHTS > 0) & x for x in (RIGHT, ~RIGHT))
        if right.any() and wrong.any():
            total += np.log(1 + (WEIGHTS * np.exp(-s))[right].sum()) + np.log(1 + (WEIGHTS * np.exp(s))[wrong].sum())
    return total / 3


def pointwise(now: Seen, fixed: Seen, w: World) -> float:
    s = scores(now, fixed, w) / LENGTHS / 0.5
    kinds = [set(RIGHT[(g == GROUPS) & (WEIGHTS > 0)].tolist()) for g in GROUPS]
    weights = WEIGHTS * [len(k) == 2 for k in kinds]
    return (weights * np.log(1 + np.exp(np.where(RIGHT, -s, s)))).sum() / weights.sum()


def pacs(baseline: str, score: str = "log_ratio", balanced: bool = True) -> Oracle:
    def loss(now: Seen, fixed: Seen, w: World) -> float:
        psi = 1.5 * scores(now, fixed, w)
        if score == "mean_logprob":
            psi = 1.5 * np.where(USED, now.logp, 0).sum(1) / LENGTHS
        total = 0.0
        for i in np.flatnonzero(WEIGHTS > 0):
            group = (GROUPS[i] == GROUPS) & (WEIGHTS > 0)
            others = group & (np.arange(9) != i)
            a = psi[i] - {"siblings": psi[others].mean(), "group": psi[group].mean(), "none": 0.0}[baseline]
            same = (RIGHT[group] == RIGHT[i]).sum()
            weight = group.sum() / (2 * same) if balanced and same < group.sum() else 1.0
            total += WEIGHTS[i] * weight * np.log(1 + np.exp(-a if RIGHT[i] else a))
        return total / SEQUENCES

    return loss


def laser(now: Seen, fixed: Seen, w: World) -> float:
    ended = (WEIGHTS > 0) & (np.arange(9) != TRUNCATED)
    n_c = np.where(RIGHT, (ended & RIGHT).sum(), (ended & ~RIGHT).sum())
    error = (ended.sum() / (2 * n_c) * WEIGHTS * (0.3 * (now.after + 2) - RIGHT) ** 2)[ended].sum() / SEQUENCES
    return token_mean(clipped(own_ratio(now, fixed, w), w.advantages)) + 0.7 * error


def recap(now: Seen, fixed: Seen, w: World) -> float:
    total = 0.0
    for name, share in w.lambdas.items():
        fed = share > 0
        loss = -now.logp if name == "imitation" else clipped(own_ratio(now, fixed, w), w.parts[name])
        total += (share * WEIGHTS * np.where(USED, loss, 0).sum(1)).sum() / LENGTHS[fed].sum()
    return total


def spurious(clips: bool) -> Oracle:
    def loss(now: Seen, fixed: Seen, w: World) -> float:
        rho = own_ratio(now, fixed, w)
        return token_mean(clipped(rho, w.advantages) if clips else -rho * w.advantages)

    return loss


def rover(now: Seen, fixed: Seen, w: World) -> float:
    value, total = 0.8 * (fixed.mean - w.start.mean), 0.0
    for i in np.flatnonzero(WEIGHTS > 0):
        places = np.flatnonzero(MASK[i])
        for t, after in zip(places, [*places[1:], None], strict=True):
            target = w.advantages[i, t] + (0 if after is None else value[i, after])
            total += WEIGHTS[i] * (0.8 * (now.logp - w.start.logp)[i, t] - target) ** 2
    return total / TOKENS


def rl_plus(now: Seen, fixed: Seen, w: World) -> float:
    pi, old = np.exp(now.logp), np.exp(w.start.logp)
    theirs = 2 * pi / (old + (old + 1) / 2) * (1 - np.exp(fixed.logp)) ** 0.5
    loss = -np.where(THEIRS, theirs, own_ratio(now, fixed, w)) * w.advantages - 0.2 * now.entropy
    return sequence_sum(loss) / 5


def earl(own_count: bool) -> Oracle:
    def loss(now: Seen, fixed: Seen, w: World) -> float:
        rows = zip(w.start.entropy, USED, strict=True)
        gate = USED & np.array([h >= (np.quantile(h[m], 0.5) if m.any() else np.inf) for h, m in rows])
        d = w.reference.logp - now.logp
        gated = gate * clipped(own_ratio(now, fixed, w), w.advantages) * (TOKENS / gate.sum() if own_count else 1)
        return token_mean(gated + 0.3 * (np.exp(d) - d - 1))

    return loss


def intro(now: Seen, fixed: Seen, w: World) -> float:
    return sequence_mean(-(w.shown * now.candidates).sum(-1) / CANDIDATES)


def stable(now: Seen, fixed: Seen, w: World) -> float:
    return sequence_mean(clipped(own_ratio(now, fixed, w).clip(0.7, 1.6), w.advantages))


def leftovers(form: str) -> Oracle:
    def loss(now: Seen, fixed: Seen, w: World) -> float:
        gap = np.where(USED, fixed.logp - w.reference.logp, 0)
        weight = {
            "sequence": np.exp(gap.sum(1, keepdims=True)).clip(0.6, 1.4),
            "token": np.exp(gap).clip(0.6, 1.4),
            "free": 1.0,
            "gold": np.exp(fixed.logp).clip(0.1),
        }[form]
        return sequence_sum(-w.advantages * weight * now.logp + 0.3 * (now.logp - w.reference.logp))

    return loss


def clip_cov(now: Seen, fixed: Seen, w: World) -> float:
    x, a = w.start.logp, w.advantages
    covariance = (x - x[USED].mean()) * (a - a[USED].mean())
    rho = own_ratio(fixed, fixed, w)
    held = (covariance > 0.1) & (covariance < 0.9) & (clipped(rho, a, 0.1, 0.3) == -rho * a)
    return token_mean(~held * clipped(own_ratio(now, fixed, w), a, 0.1, 0.3))


def response(now: Seen, fixed: Seen, w: World) -> float:
    whole = np.exp(scores(now, fixed, w))[:, None]
    return sequence_mean(clipped(whole, w.advantages, 0.3, 0.4))


def of(key: str, **options: Any) -> Any:
    return catalogue.make(key, **options).objective


CASES: dict[str, tuple[Any, Oracle]] = {
    "S014": (of("S014", wrong_high=1.0), dispo),
    "S024": (of("S024"), real),
    "S024 pointwise": (of("S024", form="pointwise"), pointwise),
    "S053": (of("S053", beta=1.5), pacs("siblings")),
    "S053 group": (of("S053", beta=1.5, baseline="group", balanced=False), pacs("group", balanced=False)),
    "S053 none": (
        of("S053", beta=1.5, baseline="none", score="mean_logprob"),
        pacs("none", "mean_logprob"),
    ),
    "S081": (of("S081", alpha=0.7), laser),
    "S082": (SumOfObjectives(), recap),
    "S094": (of("S094"), spurious(True)),
    "S094 unclipped": (of("S094", clipping=False), spurious(False)),
    "S095": (of("S095", scale=0.8), rover),
    "S097": (of("S097", entropy_weight=0.2, max_length=5), rl_plus),
    "S105": (of("S105", quantile=0.5, kl_weight=0.3), earl(False)),
    "S105 gated": (of("S105", quantile=0.5, kl_weight=0.3, denominator="gated"), earl(True)),
    "S163": (of("S163", n=CANDIDATES), intro),
    "S205": (of("S205", ratio_limits=(0.7, 1.6)), stable),
    **{
        f"S206 {f}": (of("S206", form=f, clip=0.4, kl=0.3), leftovers(f)) for f in ("sequence", "token", "free", "gold")
    },
    "clip_cov": (ClipCov(clip_low=0.1, clip_high=0.3, ratio_of_tokens=1.0, low=0.1, high=0.9), clip_cov),
    "response": (WholeResponse(clip_low=0.3, clip_high=0.4), response),
}


def ours(objective: Any, w: World) -> tuple[float, np.ndarray]:
    policy, batch = Deciding(TREE, torch.from_numpy(w.logits)), batch_of(w)
    if isinstance(objective, SumOfObjectives):
        for name in w.lambdas:
            batch.signals[WEIGHT + name] = torch.from_numpy(w.lambdas[name])
            batch.signals[ADVANTAGES + name] = torch.from_numpy(w.parts[name])
    batch.totals = batch.count()
    getattr(objective, "prepare", lambda _: None)(batch)
    out = policy.forward(batch, getattr(objective, "live", ()))
    batch.live = out.live
    loss = objective(out.logprobs, batch).value
    loss.backward()
    assert policy.logits.grad is not None
    return loss.item(), policy.logits.grad.numpy()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_value_and_gradient_are_those_of_the_formula(case: str, seed: int) -> None:
    """Points within 1e-5 of a kink would disagree; none of these seeds has one."""
    objective, oracle = CASES[case]
    w = World.of(seed)
    fixed = seen(w.logits, w.chosen)
    value, gradient = ours(objective, w)
    assert value == pytest.approx(oracle(fixed, fixed, w), abs=1e-12)
    step, slopes = 1e-5, np.zeros_like(w.logits)
    for cell in np.ndindex(*w.logits.shape):
        sides = []
        for way in (step, -step):
            moved = w.logits.copy()
            moved[cell] += way
            sides.append(oracle(seen(moved, w.chosen), fixed, w))
        slopes[cell] = (sides[0] - sides[1]) / (2 * step)
    np.testing.assert_allclose(gradient, slopes, atol=1e-8)
    assert np.abs(gradient).max() > 1e-3


def test_no_paper_with_a_loss_of_its_own_is_left_out() -> None:
    """One that is not here says in its own test file that it does the differences there.

    S098 confines another objective's updates to some of the weights; its loss is that objective's.
    """
    own = {key for key in METHODS if type(method_of(key).objective).__module__.startswith("assay.papers")}
    here = {name.split()[0] for name in CASES if name.startswith("S")}
    assert here <= own
    for key in own - here:
        files = [*Path(__file__).parent.rglob(f"test_{key.lower()}_*.py")]
        assert any("differences" in file.read_text() for file in files), key
