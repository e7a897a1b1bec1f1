"""OpenSWE: tasks of middling difficulty, right trajectories, sound steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run, tables

from assay.batch import Batch
from assay.errors import UsageError
from assay.objectives.sft import SFT
from assay.papers.agents.s172_openswe import openswe
from assay.select.difficulty import Difficulty
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.repositories.agents import Build
from assay.types import Ask, Episode, Group, Task, ToolCall, Turn, Verdict

RIGHT, WRONG = Verdict.right(), Verdict.wrong()


def episode(*valid: bool, said: str = "ls") -> Episode:
    """Turns of two tokens each, with one of the environment's after each."""
    turns = tuple(
        Turn(k, 3 * k, 3 * k + 2, (ToolCall("run", {"command": said}, 0, 0),), valid=ok) for k, ok in enumerate(valid)
    )
    tokens = np.zeros(3 * max(len(valid), 1), int)
    mask = np.arange(len(tokens)) % 3 < 2
    return Episode(tokens[:1], tokens, mask, tokens.astype(np.float32), "", "eos", turns=turns)


def group(id: str, wins: int, n: int = 4, **other: Any) -> Group:
    verdicts = tuple([RIGHT] * wins + [WRONG] * (n - wins))
    return Group(Ask(Task(id, ""), n), tuple(episode(True, **other) for _ in range(n)), verdicts)


def test_what_is_kept() -> None:
    batch = Batch.from_groups([group(str(k), k) for k in range(5)])
    weights = Difficulty()(batch).reshape(5, 4)
    assert weights.tolist() == [[0] * 4, [1, 0, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]
    assert Difficulty(0.25, 0.75)(batch).reshape(5, 4).sum(1).tolist() == [0, 1, 2, 3, 0]
    assert Difficulty(0.3, 1.0)(batch).reshape(5, 4).sum(1).tolist() == [0, 0, 2, 3, 4]
    # An abstention counts for nothing: one of three is solved.
    some = Group(Ask(Task("a", ""), 4), (episode(True),) * 4, (RIGHT, WRONG, WRONG, Verdict.abstain("gone")))
    assert Difficulty(0.3, 0.4)(Batch.from_groups([some])).tolist() == [1, 0, 0, 0]
    # A third is a third, in single precision too.
    assert Difficulty(1 / 3, 1 / 3)(Batch.from_groups([group("a", 1, 3)])).tolist() == [1, 0, 0]


def test_the_variance_of_what_is_kept() -> None:
    for n in (4, 8, 12, 16):
        batch = Batch.from_groups([group(str(k), k, n) for k in range(n + 1)])
        kept = Difficulty()(batch).reshape(n + 1, n).sum(1)
        shares = torch.arange(n + 1)[kept > 0] / n
        assert len(shares) > 0 and bool((shares * (1 - shares) >= 0.1875).all())


def test_bad_steps_are_masked() -> None:
    mixed, sound = episode(True, False, True), episode(True, True, True)
    groups = [Group(Ask(Task("a", ""), 4), (mixed, sound, mixed, mixed), (RIGHT, RIGHT, WRONG, WRONG))]
    batch = Batch.from_groups(groups)
    assert Difficulty()(batch).tolist() == [1, 1, 0, 0]
    own = [1, 1, 0, 1, 1, 0, 1, 1, 0]
    assert batch.mask.int().tolist() == [[1, 1, 0, 0, 0, 0, 1, 1, 0], own, own, own]
    # Still in sight: the tokens are there.
    assert batch.tokens.shape == (4, 9)
    logprobs = torch.full((4, 9), -1.0, requires_grad=True)
    batch.weights = torch.tensor([1.0, 1.0, 0.0, 0.0])
    batch.totals = batch.count()
    assert batch.totals.tokens == 4 + 6
    SFT()(logprobs, batch).value.backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx((-0.1 * batch.mask[0]).tolist())
    batch = Batch.from_groups(groups)
    Difficulty(mask=False)(batch)
    assert batch.mask.int().tolist() == [own] * 4


def test_hacks_are_dropped() -> None:
    def kept(said: str, **options: Any) -> list[float]:
        return Difficulty(**options)(Batch.from_groups([group("a", 2, said=said)])).tolist()

    assert kept("git status && git pull") == kept("GIT   Pull") == [0, 0, 0, 0]
    assert kept("git push") == kept("digit pulley", hacks=["git pull "]) == [1, 1, 0, 0]
    assert kept("curl x", hacks=["curl", "wget"]) == [0, 0, 0, 0]
    assert kept("prüfung löschen", hacks=["löschen"]) == [0, 0, 0, 0]
    assert kept("git pull", hacks=[]) == [1, 1, 0, 0]


def test_options() -> None:
    method = openswe(0.2, 0.6, ["x"], False)
    assert method.select == Difficulty(0.2, 0.6, ("x",), False) and isinstance(method.objective, SFT)
    assert openswe().select == Difficulty(0.25, 0.5, ("git pull",), True)
    assert dict(read_pipeline("S172", {}).steps) == {"build": Build(5, 8)}
    for least, most in ((0.0, 0.5), (0.6, 0.5), (0.5, 1.1)):
        with pytest.raises(UsageError, match="difficulty"):
            Difficulty(least, most)


WORLD = """
from assay.environments.tools import ToolEnvironment, ToolError, tool
from assay.tasks.listed import Listed
from assay.types import Task, Verdict


class Two(ToolEnvironment):
    "Passes for a b after an a; a first b is refused."

    def tasks(self):
        return Listed([Task(str(i), f"{i}?", i, "none", "[" + "ab"[i % 2] + "()]") for i in range(16)])

    def begin(self, task, seed):
        self.seen, self.done = 0, False

    @tool
    def a(self) -> str:
        "First."
        self.seen += 1
        return "a"

    @tool
    def b(self) -> str:
        "Then."
        if not self.seen:
            raise ToolError("b")
        self.done = True
        return "b"

    def said(self, text):
        raise ToolError("?")

    def over(self):
        return self.done

    def verdict(self):
        return Verdict.right() if self.done else Verdict.wrong()
"""


@pytest.mark.slow
def test_it_acts_in_training(tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    environment = f"{tmp_path / 'world.py'}:Two"
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 64, "alphabet": "0123456789?ab[]()\n: eror"}},
        warmup={"steps": 60, "lr": 1e-2, "batch": 8},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.2, "eval_size": 2},
        method={
            "name": "S172",
            "reward": "verdict",
            "options": {"least": 0.1, "most": 0.9},
            "rollout": {"name": "multi_turn", "environment": environment, "turns": 3, "calls": "python"},
        },
        rollout={"prompts": 4, "group": 8, "max_tokens": 6},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    kept = [row for step in tables(folder, "rollouts").values() for row in step]
    assert {row["passed"] for row in kept} == {True, False}
    assert any(m["grad_norm"] > 0 for m in rows) and all(0 < m["unselected"] < 1 for m in rows)
