"""Guide: who is guided, what counts, and how a response under a hint trains the policy without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from scripted import Told, judge

from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.off_policy.guided import Guided, elsewhere, row_quantile
from assay.papers.data.s058_guide import guide
from assay.registry import build
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
TASK = Task("t", "Q", "1", hints=("a plan", "all of it"))
P = np.array([0.2, 0.5, 0.05])
Q = np.array([0.4, 0.5, 0.5])


def collected(says: Any, tasks: list[Task], more: list[list[Task]] = [], n: int = 4, **options: Any) -> Any:  # noqa: B006
    engine, left = Told(says), iter(more)
    asks = [Ask(task, n) for task in tasks]
    rollout = build(
        "rollout",
        guide(template="{question}|{hint}", **options).rollout,
        sampling=Sampling(40),
        judge=judge,
        more=lambda: [Ask(task, n) for task in next(left)],
    )
    return rollout.collect(asks, engine, np.random.default_rng(0)), engine, rollout


def half(prompt: str, i: int) -> str:
    return "1" if "|" in prompt and i % 2 == 0 else "0"


def test_failed_groups_are_asked_anew() -> None:
    [group], engine, rollout = collected(half, [TASK])
    assert engine.prompts == ["Q", "Q|a plan"] and [v.passed for v in group.verdicts] == [True, False] * 2
    for e in group.episodes:
        assert "".join(map(chr, e.prompt)) == "Q" and "".join(map(chr, e.sampled_prompt)) == "Q|a plan"
        assert np.isfinite(e.logprobs).all()
    assert rollout.metrics()["surgery/sampled"] == 4 and rollout.metrics()["dynamic/rounds"] == 1
    [group], engine, _ = collected(lambda prompt, i: "01"[i % 2], [TASK])
    assert engine.prompts == ["Q"] and group.episodes[0].sampled_prompt is None
    _, engine, _ = collected(lambda prompt, i: str(int("all" in prompt and i < 2)), [TASK], hints=2)
    assert engine.prompts == ["Q", "Q|a plan", "Q|all of it"]


def test_groups_that_say_nothing_go() -> None:
    """All right, plain or guided, and all wrong under the hint: no group; with one round the step goes on with none."""
    for says in (lambda p, i: "1", lambda p, i: "1" if "|" in p else "0", lambda p, i: "0"):
        assert collected(says, [TASK], rounds=1)[0] == []


def test_the_batch_is_filled() -> None:
    """A plain group, and in the second round a guided one; the third prompt's is beyond the two that were asked."""
    tasks = [replace(TASK, id=str(i), prompt=f"Q{i}") for i in range(4)]

    def says(prompt: str, i: int) -> str:
        if prompt.startswith("Q0"):
            return "1"
        return "01"[i % 2] if prompt.startswith("Q1") or "|" in prompt else "0"

    groups, engine, rollout = collected(says, tasks[:2], [tasks[2:]])
    assert [g.task.id for g in groups] == ["1", "2"] and len(engine.asked) == 6
    assert rollout.metrics()["dynamic/rounds"] == 2 and rollout.metrics()["surgery/sampled"] == 4


def test_guided_advantages() -> None:
    """(1, 0, 1, 0): 0.866024 and -0.866024; the four plain failures are in no statistic."""
    [group], _, _ = collected(half, [TASK])
    batch = Batch.from_groups([group], torch.float64)
    found = guide().value(batch).advantages[:, 0].tolist()
    assert found == pytest.approx([0.866024, -0.866024] * 2, abs=1e-6)
    assert isinstance(guide().credit, GRPO)
    both = Batch.from_groups([Group(group.ask, group.episodes * 2, (Verdict.wrong(),) * 4 + group.verdicts)])
    kept = guide().value(both).advantages[:, 0].tolist()
    assert kept == pytest.approx([-0.540061] * 4 + [1.620182, -0.540061] * 2, abs=1e-5)


def sampled(hinted: Any, plain: Any = (0.5, 0.5)) -> Batch:
    """A response to the prompt with a hint, and one without, by their samplers' chances."""
    tokens, mask = np.arange(len(hinted)), np.ones(len(hinted), dtype=bool)
    own, other = np.array([1]), np.array([1, 2])
    first = Episode(own, tokens, mask, np.log(hinted).astype(np.float64), "", "eos", sampled_prompt=other)
    second = Episode(own, np.arange(len(plain)), mask[: len(plain)], np.log(plain), "", "eos", sampled_prompt=own)
    batch = Batch.from_groups([Group(Ask(TASK, 2), (first, second), (Verdict.right(),) * 2)], torch.float64)
    batch.advantages = torch.where(batch.mask, 1.0, 0.0).to(torch.float64)
    return batch


def test_the_worked_weights() -> None:
    """p = (.2, .5, .05) over q = (.4, .5, .5): w = (.5, 1, .1), P90 .9, g = (.357143, .526316, .1), and its slopes."""
    batch = sampled(Q)
    now = torch.log(torch.tensor(np.stack([P, [0.8, 0.5, 1.0]])))
    now.requires_grad_()
    loss = Guided(aggregation="sequence_sum")(now, batch)
    loss.value.backward()
    # The plain response's ratios are 1.6, beyond the clip, and 1.
    assert loss.value.item() == pytest.approx(-(0.357143 + 0.526316 + 0.1 + 1.2 + 1) / 2, abs=1e-6)
    assert (-2 * now.grad[0]).tolist() == pytest.approx([0.229592, 0.249307, 0.09], abs=1e-6)
    assert (-2 * now.grad[1]).tolist() == pytest.approx([0, 1, 0])
    assert loss.metrics["guided/tokens"] == pytest.approx(3 / 5)
    assert loss.metrics["guided/ratio"] == pytest.approx(1.6 / 3)


def test_who_was_sampled_elsewhere() -> None:
    """A prompt of the same length that differs in one token is another; one that is not noted is the same."""
    batch = sampled(Q)
    own = batch.episodes[1]
    rows = [np.array(p) for p in ([1, 2], [1, 3], [1])]
    batch.episodes = [replace(own, prompt=rows[0], sampled_prompt=p) for p in (*rows, None)]
    assert elsewhere(batch).tolist() == [False, True, True, False]


def test_the_other_forms() -> None:
    w, mask = torch.tensor([[0.5, 1.0, 0.1]], dtype=torch.float64), torch.ones(1, 3, dtype=torch.bool)

    def g(**options: Any) -> list[float]:
        return Guided(**options).weight(w, mask)[0].tolist()

    assert g(form="constant") == pytest.approx([0.833333, 0.909091, 0.5], abs=1e-6)
    assert g(form="power", gamma=2.0) == pytest.approx([0.25, 1, 0.01]) and g(form="plain") == [0.5, 1, 0.1]
    assert g(quantile=0.5) == pytest.approx([0.5, 2 / 3, 1 / 6]), "q is the median, 0.5"
    assert row_quantile(w, mask & (w < 1), 1.0).tolist() == [0.5]
    assert row_quantile(w, mask & False, 0.9).tolist() == [0] and len(row_quantile(w[:0], mask[:0], 0.9)) == 0


def test_a_clip_may_be_asked_for() -> None:
    batch = sampled(Q)
    now = torch.log(torch.tensor(np.stack([[0.6, 0.1, 0.5], [0.5, 0.5, 1.0]])))
    found = Guided(form="clipped")(now, batch)
    assert found.value == ClippedSurrogate()(now, batch).value and found.metrics["guided/tokens"] == pytest.approx(0.6)
    assert found.value.item() == pytest.approx(-(1.2 + 0.2 + 1 + 1 + 1) / 5)


def test_nothing_is_divided_by_zero() -> None:
    """Where every ratio vanishes q is 1e-4, and the gradient with it: w is exp(-20) at the least."""
    now = torch.full((2, 3), -100.0, dtype=torch.float64, requires_grad=True)
    loss = Guided(aggregation="sequence_sum")(now, sampled((1.0, 1.0, 1.0)))
    loss.value.backward()
    assert torch.isfinite(loss.value) and torch.isfinite(now.grad).all()


def test_the_ratio() -> None:
    """The response keeps the chances it was sampled with; the policy reads it after the plain prompt."""
    batch = sampled((0.4, 0.5, 0.5))
    now = torch.log(torch.tensor(np.stack([P, [0.5, 0.5, 1.0]])))
    assert Guided(form="plain", aggregation="sequence_sum")(now, batch).value.item() == pytest.approx(-(1.6 + 2) / 2)


def test_without_a_hint_a_guided_token_counts_half() -> None:
    batch = sampled((0.2, 0.5, 0.05))
    now = torch.log(torch.tensor(np.stack([P, [0.5, 0.5, 1.0]])))
    loss = Guided(aggregation="sequence_sum")(now, batch)
    assert loss.value.item() == pytest.approx(-(3 * 0.5 + 2) / 2)


def test_what_it_starts_with() -> None:
    method = make_method("S058")
    inner, objective = method.rollout["inner"], method.objective
    assert method.rollout["rounds"] == 10 and inner["most"] == 1 and inner["source"] == "task"
    assert (objective.form, objective.quantile, objective.clip_low, objective.kl_weight) == ("smoothed", 0.9, 0.2, 0)
    assert objective == Guided() == Guided(form="smoothed", quantile=0.9, gamma=0.1)
    assert inner["shares"] == (0.5,) and [Guided(quantile=q).quantile for q in (0.0, 1.0)] == [0, 1]
    for bad in ({"quantile": 1.5}, {"quantile": -0.5}, {"gamma": 0.0}):
        with pytest.raises(UsageError, match="guided"):
            Guided(**bad)


def test_a_run_is_guided(tmp_path: Path) -> None:
    """A source whose tasks have solutions; a recipe with hints that no task has is refused before the first step."""
    sections: dict[str, Any] = {
        "tasks": {"source": {"name": "arithmetic", "operation": "addition", "digits": 1}},
        "train": {"steps": 2, "mini_batches": 1, "epochs": 1},
        "evaluate": {"every": 0},
    }
    options = {"source": "solution", "shares": [1.0], "template": "{hint}={question}", "rounds": 1}
    method: dict[str, Any] = {"name": "S058", "options": options, "reward": "verdict"}
    rows = [row for row in metrics(run(tmp_path / "run", method=method, **sections)) if row["stage"] == "rl"]
    assert len(rows) == 2 and any(row["surgery/sampled"] > 0 for row in rows)
    with pytest.raises(UsageError, match="has no hints"):
        run(tmp_path / "none", method={**method, "options": {"template": "{hint}={question}"}}, **sections)


@pytest.mark.slow
def test_solved_without_hints() -> None:
    ours, theirs = (learned("S058", arm, rollouts=400, lr=25.0) for arm in ("guide", "plain"))
    assert ours["start"] < 2e-6 and ours["solved"] > 0.9 and theirs["solved"] == theirs["start"]
    assert 0 < ours["helped"] < ours["steps"] / 3, "guidance ends by itself"
