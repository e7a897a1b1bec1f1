"""Lanser: rewards from facts, records of the same bytes."""

from __future__ import annotations

import itertools
import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run, tables
from sandbox.support import needs_sandbox

from assay.batch import Batch
from assay.credit.turns.turn_group import TurnGroup
from assay.papers.agents.s110_lanser import lanser
from assay.types import Ask, Episode, Group, Task, Turn, Verdict
from assay.verify.diagnostics.bundle import Weights, bundle, canonical, digest, process_reward, replayed
from assay.verify.diagnostics.check import Diagnostic
from assay.verify.diagnostics.places import Candidate, Range

pytest.importorskip("pyflakes")


def test_the_worked_rewards() -> None:
    assert process_reward(5, 2, True, 0.94) == pytest.approx(1.894)
    assert process_reward(7, 7, False, 0.62) == pytest.approx(-0.038)
    assert process_reward(4, 6, True, 1.0) == pytest.approx(-0.6)
    assert process_reward(1, 0, True, 0.72, Weights(1.0, 1.0, 1.0)) - 1 == pytest.approx(0.72)
    assert process_reward(1, 0, True, 0.72) == pytest.approx(0.5 + 0.4 - 0.028) == pytest.approx(0.872)


@given(
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_it_is_monotone(d: int, one: int, other: int, s: bool, t: bool, a: float, b: float) -> None:
    worse = process_reward(d, max(one, other), s and t, min(a, b))
    assert process_reward(d, min(one, other), s or t, max(a, b)) >= worse


FACTS = [Diagnostic("b.py", 1, 2, "error", "pyflakes", "x"), Diagnostic("a.py", 3, 1, "warning", "pyflakes", "é")]
PLACE = Candidate(Range("a.py", 1, 1, 1, 2), 0.5, {"ast": 1.0, "module": 0.0})


def made(**other: Any) -> dict[str, Any]:
    parts = {"before": 3, "after": 1, "safe": True, "sure": 0.5, "r": process_reward(3, 1, True, 0.5)}
    given = {"request": {"b": 1, "a": [2]}, "resolution": [PLACE], "facts": FACTS, "edits": [], "reward": parts}
    return bundle(**{**given, "checker": "pyflakes", **other})


def test_bundles_are_canonical() -> None:
    first = made()
    for facts in itertools.permutations(FACTS):
        assert made(facts=facts, request={"a": [2], "b": 1}) == first
    edits = [{"path": "a", "before": None}, {"path": "b", "before": "1"}]
    assert made(edits=edits) == made(edits=edits[::-1]) != first
    assert [one["path"] for one in first["facts"]] == ["a.py", "b.py"]
    assert first["resolution"][0]["path"] == "a.py" and first["resolution"][0]["evidence"] == {
        "ast": 1.0,
        "module": 0.0,
    }
    assert first["bundleId"] == digest({k: v for k, v in first.items() if k != "bundleId"})
    assert len(first["bundleId"]) == 64 and made(request={})["bundleId"] != first["bundleId"]
    assert canonical({"b": [1, 0.1], "a": "é"}) == '{"a":"é","b":[1,0.1]}'
    assert set(first["environment"]) == {"checker", "version", "encoding", "python", "config"}
    with pytest.raises(ValueError, match="Out of range"):
        canonical(float("nan"))


def test_replay() -> None:
    trace = [made(), made(reward={"before": 7, "after": 7, "safe": False, "sure": 0.62, "r": 0.0})]
    assert replayed(trace) == [process_reward(3, 1, True, 0.5), process_reward(7, 7, False, 0.62)]
    assert replayed(trace)[0] == trace[0]["processReward"]["r"]
    assert replayed(trace, Weights(1.0, 0.0, 0.0)) == [2.0, 0.0] and replayed([]) == []
    with pytest.raises(ValueError, match="is not what its id says"):
        replayed([{**trace[0], "request": {}}])


def test_options() -> None:
    assert isinstance(lanser().credit, TurnGroup)
    assert replace(Weights(), safe=1.0) == Weights(0.5, 1.0, 0.1)


def test_facts_are_paid_beside_the_verdict() -> None:
    """Two turns of two tokens, paid 1.894 and -0.038 by what a checker found; a right answer in the end."""
    tokens = np.zeros(5, int)
    mask, turns = np.array([1, 1, 0, 1, 1]) > 0, (Turn(0, 0, 2, reward=1.894), Turn(1, 3, 5, reward=-0.038))
    episode = Episode(tokens[:1], tokens, mask, np.zeros(5, np.float32), "", "eos", turns=turns)
    batch = Batch.from_groups([Group(Ask(Task("a", ""), 1), (episode,), (Verdict.right(),))], torch.float64)
    for method, share in ((lanser(), 1.0), (lanser(0.25), 0.25)):
        found = method.reward(batch)
        assert found.values.tolist() == [1] and found.tokens is not None
        assert found.tokens[0].tolist() == pytest.approx([0, share * 1.894, 0, 0, share * -0.038])


WORLD = """
from assay.environments.repository.diagnosed import Diagnosed
from assay.environments.tools import tool
from assay.tasks.listed import Listed
from dataclasses import replace


class Short(Diagnosed):
    "Tools in a letter: w writes what is right, e what is wrong, u hands in."

    def tasks(self):
        made = super().tasks()
        said = ["[w()]", "[e()]", "[u()]"] * 4
        return Listed([replace(made[i % 2], id=str(i), prompt=f"{i}?", solution=s) for i, s in enumerate(said)])

    def begin(self, task, seed):
        super().begin(task, seed)
        return task.question

    def available(self):
        return tuple(t for t in self.tools() if len(t.name) == 1)

    @tool
    def w(self) -> str:
        "Mend."
        for action in super().gold()[:-1]:
            super().write(**action.calls[0].arguments)
        return "w"

    @tool
    def e(self) -> str:
        "Break."
        super().write("x.py", "print(y)")
        return "e"

    @tool
    def u(self) -> str:
        "Hand in."
        return super().submit()[:1]
"""


@needs_sandbox
@pytest.mark.slow
def test_it_acts_in_training(tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text(WORLD)
    environment = f"{tmp_path / 'world.py'}:Short"
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 64, "alphabet": string.printable}},
        warmup={"steps": 60, "lr": 1e-2, "batch": 6},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.2, "eval_size": 1},
        method={
            "name": "S110",
            "reward": ["verdict", "turns"],
            "rollout": {"name": "multi_turn", "environment": environment, "turns": 2, "calls": "python"},
        },
        rollout={"prompts": 2, "group": 6, "max_tokens": 6},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert any(m["grad_norm"] > 0 for m in rows) and all(m["environment/lost"] == 0 for m in rows)
    kept = [row["turns"] for step in tables(folder, "rollouts").values() for row in step]
    assert any('"after": 0' in turns for turns in kept) and len(kept) == 24
