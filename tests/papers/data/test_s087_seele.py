"""SEELE: the curve and its fit, the rounds of a group, and what is learned of what was shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from scripted import Told, judge, operated

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.off_policy.shown import Shown
from assay.papers.data.s087_seele import seele
from assay.registry import build
from assay.rollout.surgery.item_response import Curve, fit
from assay.rollout.surgery.paced import Paced
from assay.tasks.listed import Listed
from assay.tasks.split import split
from assay.training.preflight import before
from assay.types import Ask, Group, Origin, Task
from assay.verify.kind import KindVerifier

pytestmark = pytest.mark.usefixtures("one_thread")
TASK = Task("t", "Q", "1", solution="abcdefghij")


def paced(says: Any, goes_on: Any, task: Task = TASK, n: int = 8, **options: Any) -> tuple[Group, Told, Any]:
    engine = Told(says, goes_on)
    sampling = {"sampling": Sampling(options.pop("max_tokens", 40))}
    group, made = operated(seele(**options).rollout, engine, task, n, **sampling)
    return group, engine, made


def test_the_next_share() -> None:
    """a = 8, b = 1/2, c = 0.1: f is one half at 0.472107, nine tenths at 0.760005."""
    curve = Curve(8, 0.5, 0.1)
    assert curve.share_for(0.5) == pytest.approx(0.472107, abs=1e-6) and curve(0.472107) == pytest.approx(0.5, abs=1e-6)
    assert curve.share_for(0.9) == pytest.approx(0.759930, abs=1e-6) and curve(0.759930) == pytest.approx(0.9, abs=1e-6)
    assert curve.share_for(0.1) == curve.share_for(0.05) == 0, "less than what chance gives"
    assert Curve(8, -0.5, 0.1).share_for(0.5) == 0 and Curve(8, 1.5, 0.1).share_for(0.5) == 1
    assert curve(0) == pytest.approx(0.1 + 0.9 / (1 + np.exp(4))) and curve(0.5) == pytest.approx(0.55)


def test_the_curve() -> None:
    """Equation 13: least squares, over different shares, with (0, 0) and (1, 1) where these were not tried."""
    true, shares = Curve(10, 0.3, 0.2), np.linspace(0, 1, 21)
    found = fit(shares, [true(p) for p in shares])  # type: ignore[arg-type]
    assert (found.a, found.b, found.c) == pytest.approx((10, 0.3, 0.2), rel=0.01)
    p, y = np.array([0.9, 0.4, 0.6, 0.0, 1.0]), np.array([0.75, 0.125, 0.25, 0.0, 1.0])
    found = fit([0.9, 0.4, 0.6], [0.75, 0.125, 0.25])

    def away(curve: Curve) -> float:
        return sum((curve(share) - right) ** 2 for share, right in zip(p, y, strict=True))

    grid = [Curve(a, b, c) for a in range(1, 51) for b in np.linspace(0, 1, 41) for c in np.linspace(0, 0.3, 7)]
    assert away(found) <= min(map(away, grid)) + 1e-4
    assert fit([0.5, 0.5], [0.25, 0.75]) == fit([0.5], [0.5]), "of rounds with one share the mean counts"
    assert fit([0.0], [0.3])(0) == pytest.approx(0.3, abs=1e-3), "what was tried is not taken for nothing right"
    assert fit([0.0], [1.0]).share_for(0.5) == 0 and fit([1.0], [0.0]).share_for(0.5) == pytest.approx(1, abs=1e-6)
    low, high = fit([0.5], [0.0]), fit([0.5], [1.0])
    assert low.b > 0.5 > high.b and low.share_for(0.5) > 0.5 > high.share_for(0.5)
    assert fit([0.99, 0.98], [0.0, 0.0]).a == pytest.approx(50, abs=1e-3), "no steeper than that"


@pytest.mark.slow
def test_nearer_one_half() -> None:
    """60 problems, b in (0.1, 0.9), a in (6, 14), 8 tries a round, at first with a half shown: the fourth round is less
    than half as far away, and the chances of rounds 2 to 4 come nearer and nearer."""
    rng, gaps = np.random.default_rng(0), np.zeros((60, 4))
    for row in gaps:
        true, shares, right = Curve(rng.uniform(6, 14), rng.uniform(0.1, 0.9), 0.0), [0.5], list[float]()
        for k in range(4):
            row[k] = abs(true(shares[-1]) - 0.5)
            right.append(rng.binomial(8, true(shares[-1])) / 8)
            shares.append(fit(shares, right).share_for(0.5))
    first, second, third, last = gaps.mean(0).tolist()
    assert 0.3 < first < 0.37 and last < 0.13 < first / 2 and first > second > third > last
    ours, theirs = (
        load["balance"]
        for load in (learned("S087", arm, problems=4, rollouts=128, lr=1.0) for arm in ("seele", "half"))
    )
    assert ours > theirs + 0.1


def test_rounds() -> None:
    """Right where six of ten are shown: (5, then more) ends above and below; each round one request, 2 of 8."""
    group, engine, made = paced(lambda p, i: "0", lambda shown: "1" if len(shown) >= 6 else "0", start=0.5)
    shown = [len(request.prefix) for request in engine.asked]
    assert [r.n for r in engine.asked] == [2] * 4 and shown[0] == 5 and shown[1] > 5 and min(shown[2:]) >= 5
    assert {r.prompt for r in engine.asked} == {"Q"} and all(
        r.sampling.max_tokens == 40 - len(r.prefix) for r in engine.asked
    )
    assert len(group.episodes) == len(group.verdicts) == 8
    assert [v.passed for v in group.verdicts] == [n >= 6 for n in shown for _ in range(2)]
    found = made.metrics()
    assert found["pace/accuracy"] == sum(v.passed for v in group.verdicts) / 8 and found["pace/gap"] == 0.5  # type: ignore[misc]
    assert abs(found["pace/share"] * 10 - shown[-1]) <= 0.5
    # Of two responses in four rounds the second is the last.
    assert paced(lambda p, i: "0", lambda shown: "1", n=2)[2].metrics()["pace/gap"] == 0.5
    _, engine, _ = paced(lambda p, i: "0", lambda shown: "1", n=6, start=0.5)
    assert [r.n for r in engine.asked] == [2, 2, 1, 1] and [len(r.prefix) for r in engine.asked][1] < 5


def test_where_a_prompt_begins() -> None:
    """All but the last token at first; when it comes again, with what its latest round showed."""
    group, engine, _ = paced(lambda p, i: "0", lambda shown: "1" if len(shown) >= 6 else "0")
    shown = [len(request.prefix) for request in engine.asked]
    assert shown[0] == 9 and shown[-1] < 9
    asked = build("curriculum", "paced", stream=split(Listed([TASK]), 0.0, 0, 0)[0], prompts=1, group=8)
    assert asked.next(0) == [Ask(TASK, 8)] and asked.shown_shares == {}
    asked.observe([group, Group(Ask(Task("other", "Q"), 1), (), ())])
    last = group.episodes[-1].meta["share"]
    assert asked.shown_shares == {"t": last} and round(10 * last) == shown[-1]
    again = build("curriculum", "paced", stream=split(Listed([TASK]), 0.0, 0, 0)[0], prompts=1, group=8)
    again.load_state_dict(asked.state_dict())
    engine = Told(lambda p, i: "0", lambda shown: "1")
    operated(seele().rollout, engine, TASK, 8, curriculum=again)
    assert len(engine.asked[0].prefix) == shown[-1]
    assert make_method("S087").curriculum == "paced"
    # Of a round of one response too; and what was shown is no option of a recipe's.
    shares = [replace(group.episodes[0], meta={"share": share}) for share in (0.2, 0.7)]
    again.observe([Group(Ask(TASK, 2), tuple(shares), group.verdicts[:2])])
    assert again.shown_shares == {"t": 0.7}
    with pytest.raises(UsageError, match="shown_shares"):
        build("curriculum", {"name": "paced", "shown_shares": {}}, stream=again.stream, prompts=1, group=8)


def test_all_right_with_nothing_shown_stays_there() -> None:
    _, engine, made = paced(lambda p, i: "1", lambda shown: "1", start=0.0)
    assert [r.prefix for r in engine.asked] == [()] * 4 and made.metrics()["pace/share"] == 0


def test_responses_begin_with_the_solution() -> None:
    group, _, _ = paced(lambda p, i: "0", lambda shown: "x1", n=1, rounds=1, start=0.5)
    [e] = group.episodes
    assert e.text == "abcdex1" and "".join(map(chr, e.prompt)) == "Q" and e.meta["shown"] == 5
    assert e.origins is not None and e.origins.tolist() == [Origin.HINT] * 5 + [Origin.OWN] * 2
    assert e.logprobs is not None and np.isnan(e.logprobs[:5]).all() and np.isfinite(e.logprobs[5:]).all()
    assert e.mask.all() and len(e.mask) == len(e.tokens) == 7
    whole, engine, _ = paced(lambda p, i: "0", lambda shown: "1", n=1, rounds=1, start=1.0, max_tokens=8)
    assert len(engine.asked[0].prefix) == 7 and engine.asked[0].sampling.max_tokens == 1, (
        "room for a token of one's own"
    )
    assert whole.episodes[0].text == "abcdefg1"


def test_without_a_solution_the_task_is_asked_plainly() -> None:
    group, engine, _ = paced(lambda p, i: "0", lambda shown: "1", Task("t", "Q", "1"))
    assert all(r.prefix == () for r in engine.asked) and all(e.origins is None for e in group.episodes)
    with pytest.raises(UsageError, match="task t has none; give its tasks solutions"):
        before(make_method("grpo"), [Task("t", "Q", "1")], KindVerifier(), Paced(Sampling(4), judge))
    before(make_method("grpo"), [TASK], KindVerifier(), Paced(Sampling(4), judge))


def test_abstentions_say_nothing() -> None:
    _, engine, made = paced(lambda p, i: "0", lambda shown: "?")
    assert [len(r.prefix) for r in engine.asked] == [9] * 4
    assert made.metrics()["pace/gap"] == made.metrics()["pace/accuracy"] == 0


def test_one_group() -> None:
    """Half of eight right, over all rounds: 1/2 and -1/2, not divided by anything, as in Dr. GRPO."""
    group, _, _ = paced(lambda p, i: "0", lambda shown: "1" if len(shown) > 5 else "0", n=8, rounds=2, start=0.5)
    assert [v.passed for v in group.verdicts] == [False] * 4 + [True] * 4
    batch = Batch.from_groups([group], torch.float64)
    assert seele().value(batch).advantages[:, 0].tolist() == [-0.5] * 4 + [0.5] * 4


def test_shown_tokens() -> None:
    """A wrong response after two shown tokens: of these only the likelihood has a gradient, with its weight."""
    group, _, _ = paced(lambda p, i: "0", lambda shown: "no", n=1, rounds=1, start=0.2)
    batch = Batch.from_groups([group], torch.float64)
    batch.advantages = torch.full_like(batch.logprobs, -1.0)
    now = torch.log(torch.tensor([[0.5, 0.25, 1.0, 0.9]], dtype=torch.float64)).requires_grad_()
    loss = Shown(weight=0.1)(now, batch)
    loss.value.backward()
    assert loss.value.item() == pytest.approx((0.1 * (0.693147 + 1.386294) + 1 + 0.9) / 4, abs=1e-6)
    assert now.grad is not None and (4 * now.grad[0]).tolist() == pytest.approx([-0.1, -0.1, 1.0, 0.9])
    assert loss.metrics["shown/tokens"] == 0.5
    assert Shown(weight=0.0)(now, batch).value.item() == pytest.approx(1.9 / 4)
    batch.episodes = [replace(group.episodes[0], origins=None)]
    assert Shown()(now, batch).value == ClippedSurrogate()(now, batch).value


def test_what_it_starts_with() -> None:
    method = make_method("S087")
    assert (method.rollout["rounds"], method.rollout["start"], method.rollout["target"]) == (4, None, 0.5)
    assert method.objective == Shown(weight=0.001, kl_weight=0.001) and Shown() == Shown(weight=0.001)
    assert not method.objective.zero_advantage_is_idle and Shown(weight=0.0).zero_advantage_is_idle
    assert not Shown(weight=0.0, kl_weight=0.1).zero_advantage_is_idle
    for bad in ({"rounds": 0}, {"start": 1.5}, {"target": 1.0}):
        with pytest.raises(UsageError, match="paced"):
            Paced(Sampling(4), judge, **bad)
    with pytest.raises(UsageError, match="weight"):
        Shown(weight=-0.1)


def test_a_run_is_paced(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        method={"name": "S087", "options": {"rounds": 2}, "reward": "verdict"},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert all(0 < row["shown/tokens"] < 1 and 0 <= row["pace/gap"] <= 0.5 for row in rows) and len(rows) == 2
