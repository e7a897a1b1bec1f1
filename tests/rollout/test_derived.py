"""Tasks made from judged responses: where their groups stand, who judges them, who sees them and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import assert_same, metrics, recipe, run, tables

import assay
from assay.batch import Batch
from assay.config import OverlapConfig
from assay.curriculum.uniform import Uniform
from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.learning.step import sample
from assay.method import make_method
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.checkpoints import last_checkpoint
from assay.records.rollout_table import rollout_columns
from assay.rollout.derived import Derived
from assay.rollout.single_turn import SingleTurn
from assay.signals.base import Models
from assay.training.ahead.off_policy import check_overlap
from assay.training.watching.metrics import rollout_metrics
from assay.types import Ask, Group, Task, Verdict
from assay.verify.base import Verifier
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")
TREE = Tree.of([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])


@dataclass(slots=True)
class Again(Derived):
    """Of every right response a task of kind ``own``, and of every wrong one a task of the kind of its parent."""

    def derive(self, groups: Sequence[Group], engine: Any, rng: np.random.Generator) -> list[Ask]:
        return [
            Ask(replace(g.task, id=f"{g.task.id}+{i}", kind="own" if v.passed else g.task.kind, parent=g.task.id), 3)
            for g in groups
            for i, v in enumerate(g.verdicts)
        ]

    def verifier(self, kind: str) -> Verifier | None:
        return (lambda task, text: Verdict(0.25, False, {}, "own")) if kind == "own" else None


class Watching(Uniform):
    """A curriculum that keeps the ids of what it observed."""

    seen: tuple[str, ...] = ()

    def observe(self, groups: Sequence[Group]) -> None:
        self.seen = (*self.seen, *(g.task.id for g in groups))

    def state_dict(self) -> dict[str, Any]:
        return {"seen": list(self.seen)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = tuple(state["seen"])


class Recording(TabularEngine):
    def __init__(self, policy: TabularPolicy):
        super().__init__(policy)
        self.calls: list[list[Request]] = []

    def generate(self, requests: Sequence[Request]) -> Any:
        self.calls.append(list(requests))
        return super().generate(requests)


def rollout(kind: Any = Again, **options: Any) -> Any:
    return kind(sampling=Sampling(4), judge=partial(judge_groups, TabularVerifier(TREE)), **options)


def collected(made: Any, seed: int = 0) -> tuple[list[Group], Recording]:
    engine = Recording(TabularPolicy(TREE))
    asks = [Ask(Task(str(i), str(i), kind="tabular"), 4) for i in range(3)]
    return made.collect(asks, engine, np.random.default_rng(seed)), engine


def test_what_was_asked_stands_first_and_is_what_it_would_be_alone() -> None:
    made = rollout()
    groups, engine = collected(made)
    alone, plain = collected(rollout(type("Nothing", (Again,), {"derive": lambda self, *_: []})))
    assert [g.derived for g in groups] == [False] * 3 + [True] * 12
    assert [[e.text for e in g.episodes] for g in groups[:3]] == [[e.text for e in g.episodes] for g in alone]
    assert len(plain.calls) == 1 and len(engine.calls) == 2 and engine.calls[0] == plain.calls[0]
    # They cost what is sampled for them: 12 tasks, 3 responses of one token each.
    assert sum(r.n for r in engine.calls[1]) == 36
    assert made.metrics() == {"derived/asked": 12, "derived/left_out": 0, "derived/tokens": 36}


def test_each_kind_has_its_own_verifier_and_each_task_names_its_parent() -> None:
    groups, _ = collected(rollout())
    for group in groups[3:]:
        own = {v.feedback for v in group.verdicts} == {"own"}
        assert own == (group.task.kind == "own") and len(group.verdicts) == 3
        assert group.task.parent == group.task.id.partition("+")[0]
    assert {g.task.kind for g in groups[3:]} == {"own", "tabular"}
    batch = Batch.from_groups(groups)
    assert batch.group.tolist() == [i for i in range(3) for _ in range(4)] + [i for i in range(3, 15) for _ in range(3)]
    assert rollout_columns(1, batch)["parent"] == [g.task.parent for g in groups for _ in g.episodes]
    assert "parent" not in rollout_columns(1, Batch.from_groups(groups[:3]))


def test_derived_tasks_are_not_derived_from() -> None:
    groups, _ = collected(rollout(inner=rollout()))
    ids = [g.task.id for g in groups if g.derived]
    assert len(ids) == 24 and not any(id.count("+") > 1 for id in ids)


def test_prompts_without_room_are_left_out_and_counted() -> None:
    made = rollout(max_tokens=2)
    engine = Recording(TabularPolicy(TREE))
    engine.policy.context = 2  # type: ignore[attr-defined]
    groups = made.collect([Ask(Task("0", "0", kind="tabular"), 4)], engine, np.random.default_rng(0))
    # A prompt of one token and two for a response: three.
    assert len(groups) == 1 and made.metrics()["derived/left_out"] == 4 and len(engine.calls) == 1
    engine.policy.context = 3  # type: ignore[attr-defined]
    groups = made.collect([Ask(Task("0", "0", kind="tabular"), 4)], engine, np.random.default_rng(0))
    assert len(groups) == 5 and engine.calls[-1][0].sampling.max_tokens == 2


def test_metrics_are_of_what_was_asked() -> None:
    groups, _ = collected(rollout())
    asked = [v.passed for g in groups[:3] for v in g.verdicts]
    derived = [v.passed for g in groups[3:] for v in g.verdicts]
    method, batch = make_method("grpo"), Batch.from_groups(groups)
    found = rollout_metrics(method.value(batch))
    alone = rollout_metrics(method.value(Batch.from_groups(groups[:3])))
    assert {k: v for k, v in found.items() if not k.startswith("derived/")} == pytest.approx(alone, nan_ok=True)
    assert found["pass_rate"] == pytest.approx(np.mean(asked))
    assert found["derived/pass_rate"] == pytest.approx(np.mean(derived))
    assert found["derived/reward"] == pytest.approx(float(batch.rewards[12:].mean()))


def test_they_fill_no_place_of_an_ask_where_a_selection_replaces_prompts() -> None:
    """Of the first three asks one is kept with its derived groups; two more rounds bring the others."""
    policy, asks = TabularPolicy(TREE), [Ask(Task(str(i), str(i), kind="tabular"), 4) for i in range(3)]
    rounds: list[int] = []

    class Firsts:
        rounds, needs = 3, frozenset[str]()

        def keep(self, batch: Batch) -> Any:
            rounds.append(len(batch))
            first = batch.tasks[0].id
            return torch.tensor([t.id == first or t.parent == first for t in batch.tasks])

        def __call__(self, batch: Batch) -> Any:
            return torch.ones(len(batch))

    method = replace(make_method("grpo"), select=Firsts())
    groups, batch = sample(
        asks,
        rollout(),
        TabularEngine(policy),
        TabularVerifier(TREE),
        method,
        Models(policy),
        np.random.default_rng(0),
        more=lambda: asks,
    )
    assert len(rounds) == 3 and len(groups) == 45
    kept = [t.parent for t in batch.tasks]
    assert kept.count(None) == 12 and len(kept) == 12 + 3 * 4 * 3
    assert kept.index("0") == 12


def test_asking_ahead_is_refused() -> None:
    with pytest.raises(UsageError, match="Again asks on by its verdicts; use staleness 0"):
        check_overlap(OverlapConfig(staleness=1), make_method("grpo"), rollout())
    check_overlap(OverlapConfig(staleness=1), make_method("grpo"), SingleTurn(Sampling(4)))
    with pytest.raises(UsageError, match="verify_chunks"):
        check_overlap(OverlapConfig(verify_chunks=2), make_method("grpo"), rollout())
    for bad in ({"n": 0}, {"max_tokens": 0}):
        with pytest.raises(UsageError, match="must be at least 1"):
            rollout(**bad)


@pytest.mark.slow
def test_a_run_learns_from_both_its_curriculum_sees_the_asked_and_a_resumed_one_repeats_it(tmp_path: Path) -> None:
    method = recipe(tmp_path)["method"] | {
        "rollout": f"{__file__}:Again",
        "curriculum": f"{__file__}:Watching",
    }
    sections: dict[str, Any] = {"method": method, "warmup": {"steps": 0}, "evaluate": {"every": 0}}
    whole = run(tmp_path / "whole", **sections, train={"steps": 3}, run={"rollouts_every": 1})
    short = run(tmp_path / "short", **sections, train={"steps": 2}, run={"rollouts_every": 1})
    assay.train(resume=short, overrides=["train.steps=3"], quiet=True)
    assert_same(whole, short)
    rows = [row for row in metrics(whole) if row["stage"] == "rl"]
    assert all(row["derived/asked"] == 12 and 0 < row["derived/tokens"] <= 12 * 3 * 4 for row in rows)
    state = torch.load(last_checkpoint(whole)[2] / "trainer.pt", weights_only=True)
    assert len(state["curriculum"]["seen"]) == 3 * 4 and not any("+" in id for id in state["curriculum"]["seen"])
    stored = tables(whole, "rollouts")
    for table in stored.values():
        assert [row["parent"] is None for row in table] == [True] * 12 + [False] * 36
        assert all(row["parent"] == row["task_id"].partition("+")[0] for row in table[12:])
        assert any(row["advantage"] != 0 for row in table[12:])
