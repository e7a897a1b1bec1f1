"""Critique-RL: what a critique earns in either stage, worked by hand, and a run over both on stored solutions."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, recipe

import assay
from assay.batch import Batch
from assay.credit.rloo import RLOO
from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings import load
from assay.method import make_method
from assay.papers.process.s193_critique_rl import critique_rl
from assay.rewards.judges.critique_refined import CritiqueRefined, refined_value
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.critique import LINE_TEMPLATE, CritiqueVerdict, said

NONE = np.zeros(0, dtype=np.int64)


class Actor:
    """A frozen actor that answers as it is told to, by what stands in the critique; ``fails`` where it breaks."""

    policy = None

    def __init__(self) -> None:
        self.asked = list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return NONE

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return NONE

    def decode(self, tokens: Any) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        return [[self.one(str(r.prompt))] for r in requests]

    def one(self, prompt: str) -> Episode:
        text = prompt.partition("say ")[2][:1]
        return Episode(NONE, NONE, NONE > 0, None, f"\\boxed{{{text}}}", "error" if "fails" in prompt else "eos")


def batch_of(rows: Sequence[tuple[bool, bool | None, str]], **meta: Any) -> Batch:
    """Critiques of one solution each: whether the solution is right, whether the critique judges rightly, its text."""
    groups = []
    for k, (label, passed, text) in enumerate(rows):
        shown = {"question": f"q{k}", "response": f"r{k}", "answer": "7", **meta}
        task = Task(str(k), "", str(label), "critique", meta=shown)
        verdict = Verdict.abstain("x") if passed is None else Verdict(float(passed), passed)
        tokens = np.arange(2)
        e = Episode(NONE, tokens, tokens >= 0, np.zeros(2), text, "eos")
        groups.append(Group(Ask(task, 1), (e,)).judged([verdict]))
    return Batch.from_groups(groups, torch.float64)


KEPT, SPOILED = (True, True, "say 7"), (True, True, "say 3")
MENDED, LEFT = (False, True, "say 7"), (False, True, "say 3")
MISJUDGED = (False, False, "say 7")
ROWS = [KEPT, SPOILED, MENDED, LEFT, MISJUDGED]


def test_the_line_that_is_read() -> None:
    assert said("fine.\nCorrectness of the final answer: Correct") is True
    assert said("**Correctness of the final answer: Wrong**.") is False
    assert said("Correctness of the final answer: Correct\nno:\nCorrectness of the final answer: wrong") is False
    assert said("Correctness of the final answer: Wrongly") is None and said("the final answer: Correct") is None
    assert said("\\boxed{True}") is True
    assert LINE_TEMPLATE.format(question="q", response="r").endswith("answer: Wrong")
    task = Task("t", "", "False", "critique")
    assert CritiqueVerdict()(task, "Correctness of the final answer: Wrong").passed is True
    assert CritiqueVerdict()(task, "Correctness of the final answer: Correct").passed is False
    assert CritiqueVerdict()(task, "hm").passed is False


def test_stage_one_pays_the_judgement() -> None:
    reward = CritiqueRefined(first=2)
    batch = batch_of([*ROWS, (True, None, "")])
    for _ in range(2):
        found = reward(batch)
        assert found.values[:5].tolist() == [1, 1, 1, 1, -1]
        assert found.valid is not None and found.valid.tolist() == [True] * 5 + [False]
        assert found.terms.keys() == {"discrimination"}
    reward.planned(2)
    with pytest.raises(UsageError, match="name an actor"):
        reward.planned(3)


def test_the_worked_example() -> None:
    """Kept, spoiled, mended, left as it was, misjudged: 1.2, .2, 1.2, .2, -1; the actor is asked but for the last."""
    actor = Actor()
    reward = CritiqueRefined(actor, first=0)
    reward.planned(10)
    found = reward(batch_of(ROWS))
    assert found.values.tolist() == pytest.approx([1.2, 0.2, 1.2, 0.2, -1])
    assert [str(r.prompt).count(f"q{k}") for k, r in enumerate(actor.asked)] == [1, 1, 1, 1]
    assert "r2" in str(actor.asked[2].prompt) and "say 7" in str(actor.asked[2].prompt)
    assert {(r.n, r.sampling.temperature, r.sampling.max_tokens) for r in actor.asked} == {(1, 0.0, 1024)}
    terms = {name: values.tolist() for name, values in found.terms.items()}
    assert terms == {
        "discrimination": [1, 1, 1, 1, 0],
        "refined": [1, 0, 1, 0, 0],
        "repaired": [0, 0, 1, 0, 0],
        "spoiled": [0, 1, 0, 0, 0],
    }
    delta = CritiqueRefined(Actor(), first=0, mode="delta")(batch_of(ROWS))
    assert delta.values.tolist() == pytest.approx([0.2, -0.8, 1.2, 0.2, -1])
    correct = CritiqueRefined(Actor(), first=0, mode="correct", bonus=0.5)(batch_of(ROWS))
    assert correct.values.tolist() == pytest.approx([0.7, 0.5, 1.5, 0.5, -1])


def test_the_three_modes() -> None:
    cases = [(True, True), (True, False), (False, True), (False, False)]
    table = {m: [refined_value(b, a, m) for b, a in cases] for m in ("refine", "delta", "correct")}  # type: ignore[arg-type]
    assert table == {"refine": [1, 0, 1, 0], "delta": [0, -1, 1, 0], "correct": [0.2, 0, 1, 0]}


def test_a_wrong_judgement_is_not_refined() -> None:
    actor = Actor()
    found = CritiqueRefined(actor, first=0)(batch_of([MISJUDGED, MISJUDGED]))
    assert found.values.tolist() == [-1, -1] and actor.asked == []


def test_what_fails_has_no_reward() -> None:
    """An actor that broke down, a task that does not bring its solution: no reward, and not a wrong answer's."""
    reward = CritiqueRefined(Actor(), first=0)
    found = reward(batch_of([(True, True, "fails say 7"), KEPT]))
    assert found.valid is not None and found.valid.tolist() == [False, True]
    assert found.values[1].item() == pytest.approx(1.2), "what comes after one that failed is refined all the same"
    lacking = reward(batch_of([KEPT, MISJUDGED], response=None))
    assert lacking.valid is not None and lacking.valid.tolist() == [False, True]
    with pytest.raises(UsageError, match=r"shows \{critique\}"):
        CritiqueRefined(template="{question}")
    with pytest.raises(UsageError, match="at least 0"):
        CritiqueRefined(first=-1)


def test_the_stages_are_remembered() -> None:
    reward, other = CritiqueRefined(Actor(), first=1), CritiqueRefined(Actor(), first=1)
    reward(batch_of([KEPT]))
    # A part is known by its options, not by how far it has come.
    other.actor = reward.actor
    assert reward == other and repr(reward) == repr(other) and "verifier" not in repr(reward)
    for name in ("_verifier", "_done"):
        with pytest.raises(TypeError):
            CritiqueRefined(**{name: 0})
    assert reward.state_dict() == {"done": 1}
    other.load_state_dict(reward.state_dict())
    assert other(batch_of([KEPT])).values.tolist() == pytest.approx([1.2])


def test_leave_one_out() -> None:
    """RLOO of 1.2, .2, -1, .2, and a divergence of the weight in the reward."""
    episodes = tuple(Episode(NONE, np.arange(1), np.ones(1, dtype=bool), np.zeros(1), "", "eos") for _ in range(4))
    group = Group(Ask(Task("t", ""), 4), episodes).judged([Verdict.right()] * 4)
    batch = Batch.from_groups([group], torch.float64)
    batch.rewards = torch.tensor([1.2, 0.2, -1.0, 0.2], dtype=torch.float64)
    assert RLOO()(batch)[:, 0].tolist() == pytest.approx([1.4, 0.0667, -1.5333, 0.0667], abs=1e-4)
    method = critique_rl(first=3, mode="delta", bonus=0.1, max_tokens=9, verify="exact")
    assert isinstance(method.credit, RLOO)
    reward: Any = method.reward
    assert reward.weights["kl"] == 0.01
    [inner] = [r for r in reward.inner.values() if isinstance(r, CritiqueRefined)]
    assert (inner.first, inner.mode, inner.bonus, inner.max_tokens, inner.verify) == (3, "delta", 0.1, 9, "exact")
    plain: Any = make_method("S193", options={"kl_weight": 0.0}).reward
    assert isinstance(plain, CritiqueRefined) and (plain.first, plain.mode, plain.bonus) == (500, "refine", 0.2)
    assert plain == CritiqueRefined() and (plain.max_tokens, plain.verify) == (1024, "math")


def even(task: Task, response: str) -> bool:
    return sum(map(ord, response)) % 2 == 0


def test_it_trains_on_stored_solutions(tmp_path: Path) -> None:
    """One step of either stage on critiques of a file's solutions; the actor is a saved model, and does not change."""
    from assay.config import load_config
    from assay.policies.causal_lm import CausalLM

    rows = [
        {"prompt": f"{k}+1=", "reference": str(k + 1), "response": f"\\boxed{{{k + right}}}", "passed": bool(right)}
        for k in range(16)
        for right in (0, 1)
    ]
    file = tmp_path / "solutions.jsonl"
    file.write_text("".join(json.dumps({"task_id": r["prompt"], **r}) + "\n" for r in rows))
    made = recipe(
        tmp_path / "run",
        tasks={
            "source": {
                "name": "critiques",
                "path": str(tmp_path / "solutions.jsonl"),
                "template": "{question}{response}",
            },
            "eval_size": 2,
            "verify": f"{Path(__file__)}:even",
        },
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        rollout={"prompts": 8, "group": 4, "max_tokens": 4},
        warmup={"steps": 0},
        evaluate={"every": 0, "samples": 1},
    )
    made["model"]["nano"] |= {"alphabet": "0123456789+=\\{}boxed", "context": 64}
    CausalLM.load(load_config(made).model, 3).save(tmp_path / "actor")
    actor = {"name": "hf", "model": str(tmp_path / "actor")}
    options = {"actor": actor, "first": 1, "max_tokens": 4, "template": "{question}{response}{critique}"}
    made["method"] = {"name": "S193", "options": options}
    assay.train(made, quiet=True)
    first, second = [row for row in metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert first["reward/mean"] == pytest.approx(2 * first["pass_rate"] - 1, abs=1e-5)
    assert not any("refined" in name for name in first) and any("refined" in name for name in second)
    assert all(math.isfinite(row["loss"]) for row in (first, second))


def test_the_setting_runs(tmp_path: Path) -> None:
    setting = load("critic", {"steps": 8})
    found = setting.run({"name": "S193", "options": {"first": 4}}, 0, tmp_path)
    assert found["rollouts"] == 8 * 16 * 4 and 0.4 < found["balanced"] < 1
    assert found["balanced"] == pytest.approx((found["sensitivity"] + found["specificity"]) / 2)
    alone = setting.run({"name": "S193", "options": {"first": 0}, "judged": False}, 0, tmp_path)
    assert alone["rollouts"] == found["rollouts"]
    with pytest.raises(UsageError, match="is method S193"):
        setting.run({"name": "grpo"}, 0, tmp_path)
