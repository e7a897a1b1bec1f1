"""RubricEM: stages on tokens, returns of stages by hand, rubrics that evolve under a scripted judge, and training."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay.batch import Batch
from assay.credit.turns.stages import DOWNSTREAM, StageCredit
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.agents.s161_rubricem import rubricem
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.judges.stage_rubrics import StageRubrics
from assay.signals.base import Models
from assay.signals.rubrics import Rubrics, read_scores
from assay.signals.stages import Stages, own_runs
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def decode(tokens: Sequence[int]) -> str:
    return "".join(chr(int(t)) for t in tokens)


class Letters(TabularPolicy):
    decode = staticmethod(decode)


MODELS = Models(Letters(Tree.bandit(2)))


class Judge:
    """Proposes what it was told to, by stage, and scores whether the part has the item's last word; keeps questions.

    ``stop`` is how its replies end.
    """

    def __init__(self, proposes: dict[str, Sequence[str]] | None = None, stop: str = "eos"):
        self.proposes, self.stop, self.asked = proposes or {}, stop, list[str]()

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> Any:
        raise NotImplementedError

    def decode(self, tokens: Any) -> str:
        raise NotImplementedError

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        self.asked += [r.prompt for r in requests]
        none = np.zeros(0, dtype=np.int64)
        return [[Episode(none, none, none > 0, None, self.reply(r.prompt), self.stop)] for r in requests]

    def reply(self, prompt: str) -> str:
        stage = re.search(r"part(?: of an attempt at a task, the part)? called (\w+)", prompt)[1]  # type: ignore[index]
        if prompt.startswith("Several"):
            return "".join(f"<item>has {w}</item>" for w in self.proposes.get(stage, ()))
        part = prompt.partition("The part:\n")[2].partition("\n\nCriteria:\n")[0]
        items = prompt.partition("Criteria:\n")[2].partition("\n\nReply")[0].splitlines()
        return f"<scores>{', '.join(str(int(item.split()[-1] in part)) for item in items)}</scores>"


class Letter(Judge):
    """Named in a recipe: proposes two letters for every stage."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(("plan", "research", "review", "answer"), ("e", "1")))


def episode(*texts: tuple[str, bool]) -> Episode:
    tokens = np.array([ord(c) for text, _ in texts for c in text], dtype=np.int64)
    mask = np.array([own for text, own in texts for _ in text], dtype=bool)
    return Episode(tokens[:0], tokens, mask, None, "".join(t for t, _ in texts), "eos")


def whole(plan: str, research: str, review: str, answer: str) -> Episode:
    said = f"<structured_plan>{plan}</structured_plan><call_tool>{research}</call_tool>"
    return episode((said, True), ("found", False), (f"<review>{review}</review><answer>{answer}</answer>", True))


def batch_of(*groups: Sequence[Episode], verdict: Verdict = Verdict(0.0, False)) -> Batch:  # noqa: B008
    made = [Group(Ask(Task(f"t{i}", f"task {i}"), len(g)), tuple(g), (verdict,) * len(g)) for i, g in enumerate(groups)]
    return Batch.from_groups(made, torch.float64)


def test_stages_on_tokens_over_turns() -> None:
    made = episode(
        ("so <structured_plan>p</structured_plan> well <call_tool>c</call_tool>", True),
        ("<answer>", False),
        ("on <state_evaluation>s</state_evaluation><structured_plan>new</structured_plan>", True),
        ("<review>r</review><answer>a</answer>", True),
    )
    stages = Stages().of(made, decode)
    said = ["".join(chr(t) for t in made.tokens[stages == k]) for k in range(4)]
    assert said == [
        "so <structured_plan>p</structured_plan> well <structured_plan>new</structured_plan>",
        "<call_tool>c</call_tool>on <state_evaluation>s</state_evaluation>",
        "<review>r</review>",
        "<answer>a</answer>",
    ]
    assert Stages().texts(made, decode) == said and (stages[~made.mask] == -1).all()
    # A token that holds the end of one stage and the beginning of the next is of the next.
    pieces = {0: "<structured_plan>", 1: "p<ans", 2: "wer>", 3: "a"}
    read = Episode(*(np.array(x) for x in ([], [0, 1, 2, 3], [True] * 4)), None, "", "eos")  # type: ignore[arg-type]
    assert Stages().of(read, lambda ts: "".join(pieces[t] for t in ts)).tolist() == [0, 3, 3, 3]
    assert Stages().of(episode(), decode).tolist() == [] and own_runs(np.array([True, False, True, True])) == [
        (0, 1),
        (2, 4),
    ]
    table = Stages()(batch_of([made, episode(("x", True))]), MODELS)
    assert table[0].tolist() == stages.tolist() and table[1].tolist() == [0] + [-1] * (len(stages) - 1)


def credited(scores: Sequence[Sequence[float]], credit: StageCredit, episodes: Sequence[Episode] = ()) -> list[Any]:
    """The advantage of each stage of responses whose stages have given scores."""
    batch = batch_of(episodes or [whole("p", "c", "r", "a") for _ in scores])
    batch.signals["stages"] = credit.stages(batch, MODELS)
    batch.signals["rubric_scores"] = torch.tensor(scores, dtype=torch.float64)
    found = StageRubrics(Rubrics(Judge(), credit.stages))(batch)
    batch.rewards, batch.token_rewards = found.values, found.tokens
    advantages = credit(batch)
    stages = batch.signals["stages"]
    assert not bool(advantages[stages < 0].any())
    out = []
    for row, at in zip(advantages, stages, strict=True):
        values = [row[at == k].unique().tolist() for k in range(len(scores[0]))]
        assert all(len(v) <= 1 for v in values), "all tokens of a stage have one advantage"
        out.append([v[0] if v else None for v in values])
    return out


R = [(0.5, 0.6, 0.4, 0.7), (0.8, 0.2, 0.4, 0.3)]


def test_the_worked_example() -> None:
    """Returns (1.54, 1.32, .96, .7) and (1.36, .6, .64, .3): the first is better in every stage, its plan too."""
    returns = (torch.tensor(R, dtype=torch.float64) @ torch.tensor(DOWNSTREAM, dtype=torch.float64).T).tolist()
    assert returns[0] == pytest.approx([1.54, 1.32, 0.96, 0.7])
    assert returns[1] == pytest.approx([1.36, 0.6, 0.64, 0.3])
    one, two = credited(R, StageCredit())
    assert one == pytest.approx([0.7071] * 4, abs=1e-4) and two == pytest.approx([-0.7071] * 4, abs=1e-4)
    one, two = credited(R, StageCredit(ddof=0))
    assert one == pytest.approx([1.0] * 4, abs=1e-4) and two == pytest.approx([-1.0] * 4, abs=1e-4)
    three = credited([*R, (0.5, 0.5, 0.5, 0.5)], StageCredit(ddof=0))
    g = np.array([1.54, 1.36, 0.5 * 2.8])
    assert [row[0] for row in three] == pytest.approx(((g - g.mean()) / g.std()).tolist(), abs=1e-4)


def test_the_ablations() -> None:
    unit = tuple(tuple(float(j == k) for j in range(4)) for k in range(4))
    one, _ = credited(R, StageCredit(unit))
    assert one == pytest.approx([-0.7071, 0.7071, 0, 0.7071], abs=1e-4), "by itself the second plan is better"
    last = tuple((0.0, 0.0, 0.0, 1.0) for _ in range(4))
    one, two = credited([(0.0, 1.0, 0.0, 0.7), (1.0, 0.0, 1.0, 0.3)], StageCredit(last))
    assert one == pytest.approx([0.7071] * 4, abs=1e-4) and two == pytest.approx([-0.7071] * 4, abs=1e-4)


def test_a_missing_stage_earns_nothing() -> None:
    cut = episode(("<structured_plan>p</structured_plan><answer>a</answer>", True))
    scores = [R[0], (0.8, 0.0, 0.0, 0.3)]
    one, two = credited(scores, StageCredit(), [whole("p", "c", "r", "a"), cut])
    assert two[1] is None and two[2] is None and one[1] == pytest.approx(0.7071, abs=1e-4)
    assert two[0] == pytest.approx(-0.7071, abs=1e-4)  # .8 + .8 * .3 < 1.54
    batch = batch_of([whole("p", "c", "r", "a"), cut, episode()])
    rubrics = Rubrics(Judge(), given=(["has p"], ["has c"], ["has r"], ["has a"]))
    assert rubrics(batch, MODELS).tolist() == [[1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0]]


def test_items_that_tell_nothing_apart_are_dropped() -> None:
    judge = Judge({"plan": ("x", "y", "z", "more"), "answer": ("q", "q")})
    rubrics = Rubrics(judge, most=(3, 2, 2, 3))
    batch = batch_of([whole("x y", "c", "r", "q"), whole("x", "c", "r", "a"), whole("x z", "c", "r", "q")])
    scores = rubrics(batch, MODELS)
    # All have x; "more" would have been a fourth.
    assert rubrics.active["t0"] == [["has y", "has z"], [], [], ["has q"]]
    assert scores.tolist() == [[0.5, 0, 0, 1], [0, 0, 0, 0], [0.5, 0, 0, 1]]
    assert rubrics.learn(batch, MODELS) == {"rubrics/items": 0.75, "rubrics/proposed": 4, "rubrics/dropped": 1}
    # The judge of proposals saw the attempts beside each other, and what was known.
    asked = next(p for p in judge.asked if p.startswith("Several") and "called plan" in p)
    assert "Attempt 1:\n<structured_plan>x y" in asked and "Attempt 3:" in asked and "Known criteria:\nnone" in asked
    assert "at most 3 criteria" in asked and "Task: task 0" in asked
    judge.asked.clear()
    again = rubrics(batch_of([whole("x", "c", "r", "q"), whole("x", "c", "r", "q")]), MODELS)
    assert rubrics.active["t0"] == [[], [], [], []] and again.tolist() == [[0, 0, 0, 0]] * 2
    assert any("Known criteria:\nhas y\nhas z" in p for p in judge.asked)


def test_of_many_items_those_that_part_most_stay() -> None:
    judge = Judge({"plan": ("9", "8")})
    rubrics = Rubrics(judge, most=(2, 2, 2, 3))
    rubrics.active["t0"] = [["has 7"], [], [], []]
    # 1 of 4 has 7, 2 have 8, 1 has 9: 8 stays, and 7, which is older than 9.
    texts = ("7 8", "8 9", "-", "-")
    scores = rubrics(batch_of([whole(t, "c", "r", "a") for t in texts]), MODELS)
    assert rubrics.active["t0"][0] == ["has 7", "has 8"]
    assert scores[:, 0].tolist() == [1, 0.5, 0, 0]


def test_rubrics_stay_with_their_task() -> None:
    rubrics = Rubrics(Judge({"plan": ("x",)}), given=(["has p"], [], [], []))
    first, other = [whole("x", "", "", ""), whole("y", "", "", "")], [whole("y", "", "", ""), whole("y", "", "", "")]
    scores = rubrics(batch_of(first, other), MODELS)
    assert rubrics.active == {"t0": [["has x"], [], [], []], "t1": [[], [], [], []]}
    assert scores[:, 0].tolist() == [1, 0.5, 1, 1], "the given item, which is in the tag's name, and the proposed one"
    kept = Rubrics(Judge())
    kept.load_state_dict(rubrics.state_dict())
    assert kept.active == rubrics.active and kept.active["t0"] is not rubrics.active["t0"]
    alone = Rubrics(Judge({"plan": ("x", "y", "z", "w")}))
    alone(batch_of([whole("x", "", "", "")]), MODELS)
    assert alone.active["t0"][0] == ["has x", "has y", "has z"], "one attempt tells nothing of an item"


def test_a_judge_that_fails() -> None:
    """What it did not say is no zero: the response has no reward; proposals that failed leave rubrics as they are."""
    rubrics = Rubrics(Judge({"plan": ("x",)}, stop="error"), given=(["has p"], [], [], []))
    batch = batch_of([whole("x", "c", "r", "a"), whole("y", "c", "r", "a")])
    scores = rubrics(batch, MODELS)
    assert bool(scores[:, 0].isnan().all()) and rubrics.active["t0"][0] == []
    batch.signals = {"rubric_scores": scores, "stages": rubrics.stages(batch, MODELS)}
    found = StageRubrics(rubrics)(batch)
    assert not bool(found.valid.any()) and not bool(found.tokens.any())  # type: ignore[union-attr]
    batch.signals["rubric_scores"] = torch.tensor([[0.5, 0.0, 1.0, 0.25]] * 2, dtype=torch.float64)
    found = StageRubrics(rubrics)(batch)
    assert bool(found.valid.all()) and {k: v[0].item() for k, v in found.terms.items()} == {  # type: ignore[union-attr]
        "plan": 0.5,
        "research": 0,
        "review": 1,
        "answer": 0.25,
    }
    placed = found.tokens[0].nonzero()[:, 0].tolist()  # type: ignore[index]
    ends = [decode(batch.episodes[0].tokens[: i + 1]).rpartition("<")[2] for i in placed]
    assert ends == ["/structured_plan>", "/review>", "/answer>"]
    for reply, count, read in (
        ("<scores>1, 0.5</scores>", 2, [1, 0.5]),
        ("<scores>0</scores> or <scores>1</scores>", 1, [1]),
        ("<scores>1</scores>", 2, None),
        ("<scores>2</scores>", 1, None),
        ("<scores>-1</scores>", 1, None),
        ("1", 1, None),
    ):
        assert read_scores(reply, count) == read


def test_options() -> None:
    method = rubricem(Judge())
    assert method.credit.weights == DOWNSTREAM and method.objective.kl_weight == 1e-3
    rubrics = method.reward.rubrics
    assert rubrics.most == [3, 2, 2, 3] and rubrics.stages == method.credit.stages == Stages()
    assert {getattr(n, "name", n) for n in method.needs} >= {"stages", "rubric_scores"} and rubrics in method.learners
    two = make_method(
        "S161",
        options={
            "judge": Judge(),
            "weights": [[1, 0.5], [0, 1]],
            "tags": [["think"], ["answer"]],
            "given": [[], ["short"]],
            "most": [1, 1],
        },
    )
    assert two.credit.stages.tags == (("think",), ("answer",)) and two.reward.rubrics.called(0) == "think"
    with pytest.raises(UsageError, match="stages need a judge"):
        rubricem().reward.rubrics.check(MODELS.policy)
    with pytest.raises(UsageError, match="stages need a judge"):
        Rubrics()(batch_of([whole("p", "c", "r", "a")]), MODELS)
    rubrics.check(MODELS.policy)
    for bad in ([[1.0]], [[1.0] * 4] * 4, [[1.0, 0, 0]] * 4):
        with pytest.raises(UsageError, match="upper triangular"):
            rubricem(Judge(), weights=bad)
    for tags in ([], [["a"], []], [["a"], ["a"]]):
        with pytest.raises(UsageError, match="signal 'stages'"):
            Stages(tags)
    with pytest.raises(UsageError, match="4 stages need as many"):
        Rubrics(Judge(), most=(1, 2))


def test_it_trains(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        method={
            "name": "S161",
            "options": {"judge": {"name": f"{Path(__file__)}:Letter"}},
            "reward": {"name": "stage_rubrics", "rubrics": {"judge": {"name": f"{Path(__file__)}:Letter"}}},
        },
        rollout={"prompts": 2, "group": 6, "max_tokens": 8},
        warmup={"steps": 0},
        train={"steps": 3, "epochs": 1, "mini_batches": 1},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert any(m["grad_norm"] > 0 for m in rows) and any(m["rubrics/proposed"] > 0 for m in rows)
    assert any(m["reward/plan"] > 0 for m in rows)
