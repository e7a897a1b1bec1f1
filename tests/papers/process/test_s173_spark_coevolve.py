"""SPARK: which verdicts become which tasks, how these are scored, and that judging is learned beside solving."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run, tables, weights
from scripted import Scripted

from assay import catalogue
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.inference.base import Budget
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.process.s173_spark_coevolve import KIND, PAIRWISE, POINTWISE, REFLECT, JudgeAndReflect
from assay.registry import build
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.episodes import judge_groups
from assay.verify.text.exact import Exact

pytestmark = pytest.mark.usefixtures("one_thread")

PLAIN: dict[str, Any] = {
    "pointwise": (("one {response}", "Yes", "No"),),
    "pairwise": (("two {first} {second}", "A", "B"),),
    "reflect": ("again {response}",),
}


def verifier(task: Task, response: str) -> Verdict:
    return Verdict.abstain("?") if "?" in response else Verdict(float("4" in response), "4" in response)


def group(*texts: str, id: str = "t") -> Group:
    one = np.zeros(1, dtype=np.int64)
    asked = Ask(Task(id, "2+2=", "4", "exact", solution="4", meta={"topic": "sums"}), len(texts))
    made = Group(asked, tuple(Episode(one, one, one == 0, None, text, "eos") for text in texts))
    return judge_groups(verifier, [made])[0]


def rollout(**options: Any) -> JudgeAndReflect:
    catalogue.find("S173")
    made: JudgeAndReflect = build(
        "rollout",
        {"name": "judge_and_reflect", **PLAIN, **options},
        sampling=Sampling(64),
        judge=partial(judge_groups, verifier),
    )
    return made


def derived(*groups: Group, seed: int = 0, **options: Any) -> list[Ask]:
    return rollout(**options).derive(groups, Scripted(), np.random.default_rng(seed))


def judgements(*groups: Group, seed: int = 0, **options: Any) -> list[Ask]:
    return derived(*groups, seed=seed, **{"reflected": 0, **options})


def test_unanimous_prompts_give_one_answer_to_judge() -> None:
    [ask] = judgements(group("so\n4", "4"))
    assert (ask.task.prompt, ask.task.reference, ask.task.kind, ask.n) == ("one 4", "Yes", KIND, 2)
    assert ask.task.parent == "t" and ask.task.id != "t" and ask.task.solution is None
    [ask] = judgements(group("so\n5", "so\n5", "?"))
    assert (ask.task.prompt, ask.task.reference, ask.n) == ("one 5", "No", 3)
    assert judgements(group("?", "?")) == []


def test_mixed_prompts_give_pairs_in_either_order() -> None:
    found = [ask.task for seed in range(60) for ask in judgements(group("4", "5"), seed=seed)]
    pairs = [(t.prompt, t.reference) for t in found if "two" in t.question]
    assert set(pairs) == {("two 4 5", "A"), ("two 5 4", "B")}
    assert 0.25 < np.mean([label == "A" for _, label in pairs]) < 0.75
    single = {(t.prompt, t.reference) for t in found if "one" in t.question}
    assert single == {("one 4", "Yes"), ("one 5", "No")}


class Draws(np.random.Generator):
    """Gives these numbers in turn where one in [0, 1) is drawn."""

    def __init__(self, *numbers: float):
        super().__init__(np.random.PCG64(0))
        self.numbers = list(numbers)

    def random(self) -> float:  # type: ignore[override]
        return self.numbers.pop(0)


@pytest.mark.parametrize(
    ("numbers", "prompt", "label"),
    [
        ((0.3, 0.5), "two 4 5", "A"),
        ((0.3, 0.4), "two 5 4", "B"),
        ((0.9, 0.6), "two 4 5", "A"),
        ((0.29, 0.5), "one 5", "No"),
        ((0.29, 0.4), "one 4", "Yes"),
    ],
)
def test_what_a_draw_decides(numbers: tuple[float, ...], prompt: str, label: str) -> None:
    """Below 0.3 it is one answer, a right one below 1/2; else two, the wrong one first below 1/2."""
    made, mixed = rollout(), group("4", "5")
    ask = made.judgement(mixed, made.answers(mixed, True), made.answers(mixed, False), Draws(*numbers))
    assert (ask.task.prompt, ask.task.reference) == (prompt, label)


@pytest.mark.slow
def test_three_in_ten_are_on_one_answer() -> None:
    many = [group("4", "5", id=str(i)) for i in range(4000)]
    asks = judgements(*many, judged=4000)
    single = [a.task.reference for a in asks if "one" in a.task.question]
    assert len(asks) == 4000 and len(single) / 4000 == pytest.approx(0.30, abs=0.02)
    assert np.mean([label == "Yes" for label in single]) == pytest.approx(0.5, abs=0.05)


def test_what_is_judged_is_the_final_answer() -> None:
    [ask] = judgements(group("first 3, then\nthe answer is \\boxed{4}", "\n"))
    # The blank one is wrong, and has no answer that could stand beside the right one.
    assert ask.task.prompt == "one 4" and ask.task.reference == "Yes"
    assert derived(group("\n", "\n")) == []


def test_reflection_shows_reasoning_to_one_half_and_answers_to_the_other() -> None:
    groups = [group("steps\n5", "4", id=str(i)) for i in range(6)]
    asks = derived(*groups, judged=0)
    assert [a.task.prompt for a in asks] == ["again steps\n5"] * 3 + ["again 5"] * 3
    assert all((a.task.reference, a.task.kind, a.task.meta["topic"]) == ("4", "exact", "sums") for a in asks)
    assert [a.task.parent for a in asks] == ["0", "1", "2", "3", "4", "5"]
    assert derived(group("4", "4"), judged=0) == [], "there is nothing wrong to reflect on"


def test_caps_are_kept() -> None:
    groups = [group("5", "4", id=str(i)) for i in range(50)]
    asks = derived(*groups)
    assert [a.task.kind == KIND for a in asks] == [True] * 32 + [False] * 32
    few = derived(*groups, judged=3, reflected=2, seed=1)
    parents = [a.task.parent for a in few]
    assert (
        len(few) == 5 and parents[:3] == sorted(parents[:3], key=lambda p: int(p or 0)) and parents != ["0", "1", "2"]
    )
    assert {a.n for a in derived(*groups, n=7)} == {7}
    spec = make_method("S173").rollout
    assert (spec["judged"], spec["reflected"], spec["n"]) == (32, 32, None)


def test_templates_and_labels_are_drawn_from_a_pool() -> None:
    groups = [group("4", "4", id=str(i)) for i in range(40)]
    asks = judgements(*groups, pointwise=POINTWISE)
    assert {a.task.reference for a in asks} == {"Yes", "A"}
    mixed = [group("4", "5", id=str(i)) for i in range(200)]
    labels = {a.task.reference for a in judgements(*mixed, judged=200, pairwise=PAIRWISE)}
    assert labels == {"Yes", "No", "A", "B", "1", "2"}
    shown = {a.task.question for a in derived(*mixed, judged=0, reflected=200, reflect=REFLECT)}
    assert len(shown) == 2 and all("2+2=" in text and "5" in text for text in shown)


def test_judgements_are_scored_by_label_and_reflections_by_the_answer() -> None:
    """Two prompts, one all right and one all wrong; then what is said of the one, of the other, and instead of it."""
    said = [("\\boxed{Yes}", "no, so \\boxed{No}"), ("\\boxed{Yes}", "\\boxed{No}."), ("so 4", "so 5")]
    responses = ["4", "4", "5", "5", *(text for pair in said for text in pair)]
    engine = Scripted((text, "eos") for text in responses)
    asks = [Ask(Task(id, "2+2=", "4", "exact"), 2) for id in "ab"]
    groups = rollout().collect(asks, engine, np.random.default_rng(0))
    assert [g.task.parent for g in groups] == [None, None, "a", "b", "b"]
    scores = [[v.score for v in g.verdicts] for g in groups[2:]]
    assert scores == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    assert [r.prompt for r in engine.asked[2:]] == ["one 4", "one 5", "again 5"]


def test_at_test_time_it_judges_and_reflects() -> None:
    judge = {"name": "judge", "template": POINTWISE[0][0]}
    task = Task("t", "2+2=", "4")
    engine = Scripted([("5", "eos"), ("\\boxed{No}", "eos"), ("4", "eos"), ("\\boxed{Yes}", "eos")])
    refine = build("inference", {"name": "refine", "scorer": judge})
    [answer] = refine([task], engine, Budget(samples=3), np.random.default_rng(0))
    assert answer.text == "4" and answer.meta["scores"] == [0.0, 1.0]
    assert engine.asked[1].prompt == POINTWISE[0][0].format(question="2+2=", response="5")
    several = Scripted([("5", "eos"), ("4", "eos"), ("\\boxed{No}", "eos"), ("\\boxed{Yes}", "eos")])
    best = build("inference", {"name": "best_of_n", "scorer": judge})
    [answer] = best([task], several, Budget(samples=2), np.random.default_rng(0))
    assert answer.text == "4"


@pytest.mark.parametrize(
    "bad",
    [
        {"judged": -1},
        {"reflect": ()},
        {"pointwise": (("x", "Yes", "No"),)},
        {"pointwise": (("{response}", "A", "A"),)},
        {"pairwise": (("{first}", "A", "B"),)},
        {"reflect": ("{attempt}",)},
    ],
)
def test_options_that_cannot_be(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="judge_and_reflect"):
        rollout(**bad)


def test_least_options() -> None:
    made = rollout(judged=0, reflected=0)
    assert (made.judged, made.reflected) == (0, 0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        JudgeAndReflect(Sampling(4), partial(judge_groups, verifier), _verifier=Exact())  # type: ignore[call-arg]


def test_one_step_learns_from_all_three(tmp_path: Path) -> None:
    """A whole run; with both caps at 0 it is GRPO with the same KL term, bit for bit."""
    objective = make_method("S173").objective
    assert isinstance(objective, ClippedSurrogate)
    assert (objective.kl_weight, objective.kl_estimator) == (0.001, "k3")
    sections: dict[str, Any] = {"warmup": {"steps": 0}, "evaluate": {"every": 0}, "run": {"rollouts_every": 1}}
    sections |= {"train": {"steps": 2, "epochs": 1, "mini_batches": 1}, "tasks": {"eval_size": 2}}
    short = {
        "pointwise": [["{question}{response}", "1", "0"]],
        "pairwise": [["{first}+{second}", "0", "1"]],
        "reflect": ["{response}{question}"],
    }
    ours = {"name": "S173", "options": {**short, "judged": 2, "reflected": 3, "n": 2}}
    arms = {
        "spark": ours,
        "none": {**ours, "options": {**short, "judged": 0, "reflected": 0}},
        "grpo": {"name": "grpo", "objective": {"name": "clip", "kl_weight": 0.001}},
    }
    folders = {name: run(tmp_path / name, method=method, **sections) for name, method in arms.items()}
    assert [row["derived/asked"] for row in metrics(folders["spark"]) if row["stage"] == "rl"] == [5, 5]
    [first, _] = tables(folders["spark"], "rollouts").values()
    assert len(first) == 12 + 5 * 2 and sum(row["parent"] is not None for row in first) == 10
    found = {name: weights(folder) for name, folder in folders.items()}
    same = {name: all(torch.equal(found[name][k], x) for k, x in found["grpo"].items()) for name in arms}
    assert same == {"spark": False, "none": True, "grpo": True}


@pytest.mark.slow
def test_judging_is_learned_beside_solving() -> None:
    found = learned("S173", "spark", rollouts=3000, lr=3.0)
    assert found["judged"] > 0.6 > 0.494 > found["judged/start"]
    assert found["paired"] > 0.65 > 0.488 > found["paired/start"]
    assert found["solved"] > 0.45 > 0.286 > found["solved/start"]
