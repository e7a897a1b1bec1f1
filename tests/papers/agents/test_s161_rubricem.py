"""RubricEM: stages on tokens, returns of stages by hand, rubrics that evolve under a scripted judge, and training."""

from __future__ import annotations

import copy
import re
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run, tables

import assay
from assay.batch import Batch
from assay.credit.turns.stages import DOWNSTREAM, StageCredit
from assay.curriculum.bank import Bank
from assay.curriculum.reflection import Reflective
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.inference.banked import Banked, bank_of
from assay.inference.named import make_strategy
from assay.lab.settings.stage_returns import Setting as Returns
from assay.method import make_method
from assay.papers.agents.s161_rubricem import rubricem
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rewards.judges.stage_rubrics import StageRubrics
from assay.rollout.reflection import Reflections
from assay.signals.base import Models
from assay.signals.rubrics import Rubrics, is_flaw, read_scores, text_of, weight_of
from assay.signals.stages import Stages, own_runs
from assay.tasks.listed import Listed
from assay.tasks.split import split
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
        self.proposes, self.stop, self.asked, self.heat = proposes or {}, stop, list[str](), set[float]()

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> Any:
        raise NotImplementedError

    def decode(self, tokens: Any) -> str:
        raise NotImplementedError

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        self.asked += [r.prompt for r in requests]
        self.heat |= {r.sampling.temperature for r in requests}
        none = np.zeros(0, dtype=np.int64)
        return [[Episode(none, none, none > 0, None, self.reply(r.prompt), self.stop)] for r in requests]

    def reply(self, prompt: str) -> str:
        stage = re.search(r"part(?: of an attempt at a task, the part)? called (\w+)", prompt)[1]  # type: ignore[index]
        if prompt.startswith("Several"):
            return "".join(f"<item>has {w}</item>" for w in self.proposes.get(stage, ()))
        part = prompt.partition("The part:\n")[2].partition("\n\nCriteria:\n")[0]
        items = prompt.partition("Criteria:\n")[2].partition("\n\nReply")[0].splitlines()
        return f"<scores>{', '.join(str(2 * (text_of(item).split()[-1] in part)) for item in items)}</scores>"


class Critic(Judge):
    """Judges lessons by the numbers they hold, and everything else as the judge does."""

    def reply(self, prompt: str) -> str:
        if not prompt.startswith("A lesson"):
            return super().reply(prompt)
        return f"so <scores>{prompt.partition('The lesson:')[2].partition('Diagnosis:')[0].strip()}</scores>"


class Letter(Critic):
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


def test_stage_returns_of_the_lab(tmp_path: Path) -> None:
    own = {"name": "stages", "weights": [[float(j == k) for j in range(4)] for k in range(4)]}
    exact = Returns(groups=40, noise=0.0, items=(9, 1, 1, 9), carries=1.0)
    found = exact.run({"credit": own}, 0, tmp_path)
    # A judge of nine criteria that never errs: what is left are ties.
    assert found["ranking"] == found["last"] and 0.9 < found["ranking"] < 1
    blind = Returns(groups=400, noise=1e9)
    assert abs(blind.run({"credit": "stages"}, 0, tmp_path)["ranking"]) < 0.05
    alone = Returns(groups=400, carries=0.0)
    mixed, apart = (alone.run({"credit": credit}, 0, tmp_path) for credit in ("stages", own))
    assert mixed["ranking"] < apart["ranking"] - 0.1, "where later stages tell nothing of it, they are noise"
    assert mixed["last"] == apart["last"]


def test_the_ablations() -> None:
    unit = tuple(tuple(float(j == k) for j in range(4)) for k in range(4))
    one, _ = credited(R, StageCredit(unit))
    assert one == pytest.approx([-0.7071, 0.7071, 0, 0.7071], abs=1e-4), "by itself the second plan is better"
    last = tuple((0.0, 0.0, 0.0, 1.0) for _ in range(4))
    one, two = credited([(0.0, 1.0, 0.0, 0.7), (1.0, 0.0, 1.0, 0.3)], StageCredit(last))
    assert one == pytest.approx([0.7071] * 4, abs=1e-4) and two == pytest.approx([-0.7071] * 4, abs=1e-4)


def test_what_is_placed_on_a_stage_is_added_up() -> None:
    """.25 twice in the first's plan and .4 in the second's: .5 is the larger, though .25 is not."""
    credit = StageCredit()
    batch = batch_of([whole("p", "c", "r", "a"), whole("q", "c", "r", "a")])
    batch.signals["stages"] = credit.stages(batch, MODELS)
    batch.token_rewards = torch.zeros(batch.mask.shape, dtype=torch.float64)
    batch.token_rewards[0, 1:3], batch.token_rewards[1, 0] = 0.25, 0.4
    assert credit(batch)[:, 0].tolist() == pytest.approx([0.7071, -0.7071], abs=1e-4)


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
    assert "at most 3 criteria" in asked and "Task: task 0" in asked and judge.heat == {0.0}
    # Scored are parts that have items: three plans, and answers q and a.
    scoring = [p for p in judge.asked if p.startswith("Judge")]
    assert len(scoring) == 5 and "Criteria:\n1. has x\n2. has y\n3. has z\n" in scoring[0]
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


def test_items_are_proposed_once_and_dropped_where_they_deviate_no_more_than_is_said() -> None:
    judge = Judge({"plan": ("x", "x", "y"), "research": ("x",)})
    rubrics = Rubrics(judge, given=(["has y"], [], [], []), spread=0.0)
    assert rubrics.learn(batch_of(), MODELS) == {"rubrics/items": 0, "rubrics/proposed": 0, "rubrics/dropped": 0}
    batch = batch_of([whole("x", "x", "r", "a"), whole("z", "x", "r", "a")])
    assert rubrics(batch, MODELS)[:, :2].tolist() == [[0.5, 0], [0, 0]]
    assert rubrics.active["t0"][:2] == [["has x"], []]
    assert rubrics.learn(batch, MODELS) == {"rubrics/items": 0.25, "rubrics/proposed": 2, "rubrics/dropped": 1}
    apart = Rubrics(Judge({"plan": ("x",)}), spread=0.5)
    apart(batch, MODELS)
    assert apart.active["t0"][0] == [], "1 and 0 deviate by .5, which is not more"


def test_items_weigh_and_may_be_flaws() -> None:
    """Of weights 3, 1 and 2: the flaw y is avoided, x is there in part, z is wholly there; and the other way round."""
    assert [(text_of(i), weight_of(i), is_flaw(i)) for i in ("has x", "has x [3]", "flaw: has y[2]", "see [4]")] == [
        ("has x", 1, False),
        ("has x", 3, False),
        ("has y", 2, True),
        ("see [4]", 1, False),
    ]

    class Marks(Judge):
        def reply(self, prompt: str) -> str:
            if prompt.startswith("Several"):
                return "<item>z [2]</item><item>z [1]</item><item>x</item>" if "called plan" in prompt else ""
            assert "1. flaw: y [3]\n2. x\n3. z [2]\n" in prompt
            return f"<scores>{'0, 1, 2' if 'good' in prompt else '2, 0, 1'}</scores>"

    rubrics = Rubrics(Marks(), given=(["flaw: y [3]", "x"], [], [], []))
    scores = rubrics(batch_of([whole("good", "c", "r", "a"), whole("bad", "c", "r", "a")]), MODELS)
    assert rubrics.active["t0"][0] == ["z [2]"], "each is proposed once, with whatever weight"
    assert scores[:, 0].tolist() == pytest.approx([(3 * 1 + 1 * 0.5 + 2 * 1) / 6, (3 * 0 + 1 * 0 + 2 * 0.5) / 6])
    cut = rubrics(batch_of([episode(), whole("good", "c", "r", "a")]), MODELS)
    assert cut[0, 0] == 0, "what is not there avoids no flaw"


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
        ("<scores>.25, 1.0</scores>", 2, [0.25, 1]),
        ("<scores>1</scores>", 2, None),
        ("<scores>2</scores>", 1, None),
        ("<scores>1, 2</scores>", 2, None),
        ("<scores>-1</scores>", 1, None),
        ("1", 1, None),
    ):
        assert read_scores(reply, count) == read
    assert read_scores("<scores>2, 0</scores>", 2, 2.0) == [2, 0] and read_scores("<scores>3</scores>", 1, 2.0) is None


def test_options() -> None:
    method = rubricem(Judge())
    assert method.credit.weights == DOWNSTREAM and method.objective.kl_weight == 1e-3
    rubrics = method.reward.rubrics
    assert method.credit.group_relative, "so that a run has to have groups"
    assert rubrics.most == Rubrics().most == [3, 2, 2, 3] and rubrics.stages == method.credit.stages == Stages()
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
    rollout, curriculum_ = method.rollout, method.curriculum
    assert isinstance(rollout, dict) and isinstance(curriculum_, dict)
    assert (rollout["name"], rollout["inner"], rollout["accept"]) == ("reflection", "single_turn", 0.0)
    assert rollout["assessor"] is rubrics.judge and curriculum_ == {
        "name": "reflection",
        "reflections": 8,
        "window": 3,
        "k": 2,
        "embeddings": "",
        "rubrics": rubrics,
    }
    played = {"name": "multi_turn", "environment": "search", "turns": 12}
    assert rubricem(Judge(), environment="search").rollout["inner"] == played  # type: ignore[index]
    alone = rubricem(Judge(), environment="search", turns=3, reflections=0)
    assert alone.rollout == {**played, "turns": 3} and alone.curriculum == make_method("grpo").curriculum
    plain = Reflective(curriculum(["x"]).stream, 1, 1)
    assert (plain.reflections, plain.window, plain.k, plain.characters, plain.longest) == (8, 3, 2, 8000, 1000)
    assert two.credit.stages.tags == (("think",), ("answer",)) and two.reward.rubrics.called(0) == "think"
    with pytest.raises(UsageError, match="stages need a judge"):
        rubricem().reward.rubrics.check(MODELS.policy)
    with pytest.raises(UsageError, match="stages need a judge"):
        Rubrics()(batch_of([whole("p", "c", "r", "a")]), MODELS)
    rubrics.check(MODELS.policy)
    unit = [[float(j == k) for j in range(4)] for k in range(4)]
    below = [*unit[:2], [0.0, 0.5, 1.0, 0.0], unit[3]]
    for bad in ([[1.0]], [[1.0] * 4] * 4, [[1.0, 0, 0]] * 4, unit[:3], [*unit[:3], [0.0] * 3], below):
        with pytest.raises(UsageError, match="upper triangular"):
            rubricem(Judge(), weights=bad)
    for tags in ([], [["a"], []], [["a"], ["a"]]):
        with pytest.raises(UsageError, match="signal 'stages'"):
            Stages(tags)
    with pytest.raises(UsageError, match="4 stages need as many"):
        Rubrics(Judge(), most=(1, 2))


class Says(Judge):
    """An engine that says what it is told, a character a token; ``context`` is its policy's."""

    def __init__(self, texts: Sequence[str], context: int = 10_000):
        super().__init__()
        self.texts = iter(texts)
        self.policy = type("Policy", (), {"context": context})()

    def encode(self, prompt: Any) -> Any:
        return np.array([ord(c) for c in prompt], dtype=np.int64)

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        self.asked += [r.prompt for r in requests]
        return [[episode((next(self.texts), True)) for _ in range(r.n)] for r in requests]


def tasks(*questions: str) -> list[Task]:
    return [Task(f"t{i}", question) for i, question in enumerate(questions)]


def curriculum(questions: Sequence[str], **options: Any) -> Reflective:
    stream, _ = split(Listed(tasks(*questions)), 0.0, 0, 0)
    return Reflective(stream, **{"prompts": 2, "group": 3, "reflections": 2, "window": 2, **options})


def test_what_they_have_seen_is_no_option() -> None:
    for name in ("bank", "_rng", "_at", "_tasks", "_where", "_attempts"):
        with pytest.raises(TypeError):
            curriculum(["x"], **{name: 0})
    assert "Generator" not in repr(curriculum(["x"])) and "bank" not in repr(curriculum(["x"]))
    with pytest.raises(TypeError):
        Reflections(Sampling(8), _seen={})  # type: ignore[call-arg]


def reflected(of: str, question: str, *lessons: tuple[str, float, bool]) -> Group:
    """A group of reflections as the rollout returns it."""
    task = Task(f"{of}@reflection", "look back", kind="reflection", meta={"of": of, "question": question})
    made = [replace(episode((text, True)), meta={"role": "reflection", "lesson": text}) for text, _, _ in lessons]
    return Group(Ask(task, len(made)), tuple(made), tuple(Verdict(score, ok) for _, score, ok in lessons))


def test_reflections_are_trained_a_step_later() -> None:
    judge = Critic({"plan": ("x",)})
    rubrics = Rubrics(judge, given=(["has p"], [], [], []))
    asked = curriculum(["first red", "second blue", "third", "fourth"], rubrics=rubrics, characters=90, window=5)
    first = asked.next(0)
    assert [a.n for a in first] == [3, 3] and all(a.hint is None for a in first)
    made = [Group(a, tuple(whole(f"x{i}{k}", "c", "r", "a") for k in range(3))) for i, a in enumerate(first)]
    lost = replace(made[1].episodes[0], stop="error")
    made[1] = replace(made[1], episodes=(lost, made[1].episodes[1], lost))
    judged = [g.judged([Verdict.wrong()] * 3) for g in made]
    rubrics(Batch.from_groups(judged, torch.float64), MODELS)
    asked.observe(judged)
    second = asked.next(1)
    assert [a.n for a in second] == [3, 3, 2, 2], "two new tasks, and a reflection on an episode of each before"
    looked = second[2:]
    assert [a.task.id for a in looked] == [f"{a.task.id}@reflection" for a in first]
    assert [a.task.meta["of"] for a in looked] == [a.task.id for a in first] and looked[0].task.kind == "reflection"
    prompt = looked[1].task.question
    assert first[1].task.question in prompt and lost.text not in prompt and "<answer>a</answer>" in prompt
    assert made[1].episodes[1].text[-90:] in prompt and made[1].episodes[1].text not in prompt
    assert "judged" not in prompt and "1.00" not in prompt, "who reflects knows nothing of the judge's marks"
    judged_ = looked[1].task.meta["judged"]
    assert "plan: 1.00, research: 0.00" in judged_ and "criteria:\n- " not in judged_, "x tells none apart"
    assert [a.n for a in asked.next(2)] == [3, 3], "each is reflected upon once"
    rubrics.active[first[0].task.id][1] = ["has c"]
    asked.observe(judged[:1])
    told = asked.next(3)[-1].task.meta["judged"]
    assert told.endswith("review: 0.00, answer: 0.00.\nBy these criteria:\n- has c")
    # More attempts than were judged: nothing is told of those.
    rubrics.judged[first[0].task.id] = []
    asked.observe([replace(judged[0], episodes=judged[0].episodes[:1], verdicts=judged[0].verdicts[:1])])
    assert asked.next(4)[-1].task.meta["judged"] == ""
    # Beside its like: an advantage of its own, the same for all its tokens whatever tags it has.
    episodes = [whole("x", "c", "r", "a"), whole("y", "c", "r", "a")]
    group = reflected("t0", "q", ("<reflection>.9, .7</reflection>", 0.8, True), ("<answer>none</answer>", 0.2, False))
    usual = Group(Ask(Task("t9", "q"), 2), tuple(episodes), (Verdict(0.0, False),) * 2)
    away = reflected("t1", "q", ("a", 0.0, True), ("b", 1.0, True), ("c", 0.5, True))
    away = replace(away, verdicts=(*away.verdicts[:2], Verdict.abstain("away")))
    batch = Batch.from_groups([usual, group, away], torch.float64)
    judge.asked.clear()
    rubrics.given[0], judge.proposes = ["has y"], {}
    scores = rubrics(batch, MODELS)
    assert scores[2:6].tolist() == [[0.8, 0, 0, 0], [0.2, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    assert bool(scores[6].isnan().all()) and not any(
        "none" in p.partition("Task:")[2] and "<answer>n" in p for p in judge.asked
    )
    assert list(rubrics.judged) == ["t9"]
    credit = StageCredit()
    batch.signals = {"rubric_scores": scores, "stages": rubrics.stages(batch, MODELS)}
    found = StageRubrics(rubrics)(batch)
    batch.rewards, batch.token_rewards, batch.valid = found.values, found.tokens, found.valid  # type: ignore[assignment]
    advantages = credit(batch)
    for row, want in ((0, -0.7071), (1, 0.7071), (2, 0.7071), (3, -0.7071), (4, -0.7071), (5, 0.7071)):
        own = batch.mask[row] & (batch.signals["stages"][row] == 0)
        assert advantages[row][own].unique().tolist() == [pytest.approx(want, abs=1e-4)]
        assert row < 2 or bool((own == batch.mask[row]).all())
    assert not advantages[6].any()


def test_reflections_are_judged() -> None:
    look = Task("t@reflection", "LOOK", kind="reflection", meta={"judged": "MARKS"})
    said = [
        "<reflection>1, .8, .6</reflection>",
        "no lesson",
        "<reflection>x</reflection><reflection> .9, .4, 0 </reflection>",
    ]
    engine, judge = Says(["a", "b", *said, "<reflection>what</reflection>"]), Critic()
    rollout = build("rollout", {"name": "reflection", "assessor": judge}, sampling=Sampling(8))
    asks = [Ask(look, 4), Ask(Task("t", "Q"), 2)]
    usual, group = rollout.collect(asks, engine, np.random.default_rng(0))
    assert engine.asked == ["Q", "LOOK"] and [e.text for e in usual.episodes] == ["a", "b"] and not usual.verdicts
    # .4 + .3 (.8) + .3 (.6), and .4 (.9) + .3 (.4)
    assert [(v.score, v.passed) for v in group.verdicts] == [
        (pytest.approx(0.82), True),
        (0, False),
        (pytest.approx(0.48), True),
        (0, None),
    ]
    assert dict(group.verdicts[0].parts) == {"diagnosis": 1, "specific": 0.8, "scope": 0.6}
    assert [e.meta["lesson"] for e in group.episodes] == ["1, .8, .6", "", ".9, .4, 0", "what"]
    assert all(e.meta["role"] == "reflection" and e.mask.all() for e in group.episodes), "its own tokens, and no others"
    assert len(judge.asked) == 3 and "LOOK\nMARKS\n" in judge.asked[0] and "The lesson:\n1, .8, .6\n" in judge.asked[0]
    assert rollout.metrics() == {
        "reflection/left_out": 0,
        "reflection/score": pytest.approx(1.3 / 3),
        "reflection/accepted": pytest.approx(2 / 3),
    }
    # One that the context has no room for is not asked.
    small = Says(["a", "b"], context=11)
    assert len(rollout.collect(asks, small, np.random.default_rng(0))) == 1 and small.asked == ["Q"]
    assert rollout.metrics() == {"reflection/left_out": 1}
    exact = Says([*said, "-"], context=12)
    assert len(rollout.collect(asks[:1], exact, np.random.default_rng(0))) == 1
    just = Reflections(Sampling(8), assessor=(judge := Critic()), accept=0.82)
    [group] = just.collect([Ask(look, 1)], Says(said), np.random.default_rng(0))
    assert group.verdicts[0].passed and judge.heat == {0.0}
    assert just == replace(just) and "accepted" not in repr(just), "what it has seen is no part of it"
    assert [Reflections(Sampling(8), accept=a).accept for a in (0.0, 1.0)] == [0.0, 1.0]
    strict = Reflections(Sampling(8), assessor=Critic(), accept=0.83)
    [group] = strict.collect([Ask(look, 1)], Says(said), np.random.default_rng(0))
    assert group.verdicts[0].passed is False and group.verdicts[0].score == pytest.approx(0.82)
    broken = Reflections(Sampling(8), assessor=Critic(stop="error"))
    [group] = broken.collect([Ask(look, 1)], Says(said), np.random.default_rng(0))
    assert group.verdicts[0].passed is None and group.verdicts[0].fault == "infrastructure"
    with pytest.raises(UsageError, match="give an engine"):
        Reflections(Sampling(8)).collect([Ask(look, 1)], Says(said), np.random.default_rng(0))
    with pytest.raises(UsageError, match="accept 2"):
        Reflections(Sampling(8), accept=2.0)
    inner = {"name": "multi_turn", "environment": {"name": "corridor", "rooms": 2}}
    around = Reflections(Sampling(4), inner=inner)
    assert around.plays and hasattr(around, "demonstrate") and around.inner.worlds.name == "corridor"
    assert not rollout.plays and not hasattr(rollout, "demonstrate")


def test_several_processes_judge_reflections_together() -> None:
    class Divided(Says):
        def divided(self, items: Sequence[Any], work: Any) -> list[Any]:
            return [found for item in items for found in work([item], self)]

    rollout = Reflections(Sampling(8), assessor=Critic())
    said = ["<reflection>.9, .7, .7</reflection>", "no", "<reflection>.1, .3, .3</reflection>"]
    [group] = rollout.collect([Ask(Task("t", "LOOK", kind="reflection"), 3)], Divided(said), np.random.default_rng(0))
    assert [v.score for v in group.verdicts] == [pytest.approx(0.78), 0, pytest.approx(0.22)]


def test_the_bank() -> None:
    bank = Bank(3)
    assert bank.similar("t", "a red fox", 2) == [] and bank.hint("t", "a red fox", 2, True) is None
    for name, question in (("a", "the red fox"), ("b", "a red red car"), ("c", "blue sky")):
        bank.add(name, question, f"lesson {name}")
    assert bank.similar("t", "red", 2) == ["lesson b", "lesson a"] and bank.similar("t", "red", 1) == ["lesson b"]
    assert bank.similar("b", "red fox", 5) == ["lesson a"], "not its own, nor what shares no word"
    bank.add("a", "the red fox", "better")
    assert bank.hint("a", "", 2, True) == "A lesson from earlier attempts at this task:\nbetter\n" and len(bank) == 3
    bank.add("d", "green", "lesson d")
    assert bank.hint("b", "", 2, True) is None and list(bank.lessons) == ["c", "a", "d"], "the oldest lesson goes"
    other = Bank(3)
    other.add("z", "red", "gone")
    assert other.similar("t", "red", 1) == ["gone"]
    other.load_state_dict(bank.state_dict())
    assert other.lessons == bank.lessons and other.similar("t", "red", 2) == ["better"]
    with pytest.raises(UsageError, match="capacity 0"):
        Bank(0)
    asked = curriculum(["x"], longest=3)
    asked.observe([reflected("t0", "red", ("worse", 0.6, True), ("best of", 0.7, True), ("more", 0.9, False))])
    assert asked.bank.lessons == {"t0": ("red", "bes")}, "the best of those accepted, cut"
    asked.observe([reflected("t1", "red", ("worse", 0.6, False))])
    assert len(asked.bank) == 1


def test_a_bank_by_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions at 0, 90, 40 and 174 degrees, of other lengths, and one at 30: nearest to the third, then the first."""
    at = {"a": (2.0, 0.0), "b": (0.0, 3.0), "c": (0.766, 0.643), "d": (-1.0, 0.1), "q": (0.866, 0.5)}
    monkeypatch.setattr("assay.curriculum.bank.embedding", lambda name: lambda texts: [at[t] for t in texts])
    bank = Bank(9, "some")
    for name in "abcd":
        bank.add(name, name, f"lesson {name}")
    assert bank.similar("q", "q", 9) == ["lesson c", "lesson a", "lesson b"], "what points away is none"
    assert bank.similar("c", "q", 1) == ["lesson a"]
    bank.add("e", "q", "lesson e")
    assert bank.similar("q", "q", 1) == ["lesson e"] and bank.state_dict()["embeddings"] == "some"
    assert curriculum(["x"], embeddings="some").bank.embeddings == "some" and Bank().embeddings == ""


def test_lessons_are_shown_at_test_time(tmp_path: Path) -> None:
    bank = Bank()
    bank.add("t0", "the red fox", "look")
    asked = Says(["a", "b"])
    strategy = make_strategy({"name": "banked", "bank": bank}, sampling=Sampling(4))
    found = strategy(tasks("the red fox", "red"), asked, 1, np.random.default_rng(0))  # type: ignore[arg-type]
    assert [a.text for a in found] == ["a", "b"] and asked.asked == [
        "A lesson from earlier attempts at this task:\nlook\n\nthe red fox",
        "Lessons from other tasks:\n- look\n\nred",
    ]
    assert strategy.k == 2 and strategy.inner.sampling == Sampling(4)  # type: ignore[attr-defined]
    assert not hasattr(Banked(bank, "greedy").inner, "n")
    with pytest.raises(UsageError, match="k 0"):
        Banked(bank, k=0)
    folder = run(tmp_path / "run", train={"steps": 1}, warmup={"steps": 0})
    with pytest.raises(UsageError, match="no bank of lessons"):
        bank_of(folder)


def test_queries_are_met_twice() -> None:
    questions = [
        f"count the {thing}" for thing in ("foxes", "cars", "birds", "trees", "lamps", "roads", "boats", "keys")
    ]
    asked = curriculum(questions)
    once = curriculum(questions)
    for step, reflections_ in enumerate((0, 2, 2, 0, 0, 2)):
        found = once.next(step)
        assert len([a for a in found if a.task.kind == "reflection"]) == reflections_, "on new tasks alone"
        once.observe([Group(a, (episode(("a", True)),) * 3) for a in found if a.task.kind != "reflection"])
    steps = []
    for step in range(5):
        asks = [a for a in asked.next(step) if a.task.kind != "reflection"]
        steps.append([(a.task.id, a.hint) for a in asks])
        for ask in asks[:1]:
            asked.observe([reflected(ask.task.id, ask.task.question, (f"look at {ask.task.id} in {step}", 0.9, True))])
    names = [[name for name, _ in row] for row in steps]
    assert names[:2] == names[2:4] and not set(names[4]) & {*names[0], *names[1]}
    a, c = names[0][0], names[1][0]
    assert [hint for _, hint in steps[0]] == [None, None]
    lesson = f"Lessons from other tasks:\n- look at {a} in 0\n"
    assert [hint for _, hint in steps[1]] == [lesson, lesson]
    assert steps[2][0][1] == f"A lesson from earlier attempts at this task:\nlook at {a} in 0\n"
    both = {f"- look at {a} in 0", f"- look at {c} in 1"}
    assert set((steps[2][1][1] or "").splitlines()[1:]) == both, "without one of its own, those of others"
    assert steps[3][0][1] == f"A lesson from earlier attempts at this task:\nlook at {c} in 1\n"
    assert "in 2" in (steps[4][0][1] or "") or "in 3" in (steps[4][0][1] or "")
    none = curriculum(questions, k=0, reflections=0)
    none.bank.add("x", "count", "lesson")
    first = none.next(0)
    assert all(a.hint is None for a in first)
    none.observe([Group(a, (episode(("a", True)),) * 3, (Verdict.right(),) * 3) for a in first])
    assert len(none.next(1)) == 2
    for wrong in ({"reflections": 1}, {"reflections": -1}, {"window": 0}, {"k": -1}, {"longest": 0}, {"characters": 0}):
        with pytest.raises(UsageError, match="curriculum 'reflection'"):
            curriculum(questions, **wrong)


def test_the_curriculum_comes_back() -> None:
    questions = [f"count {i}" for i in range(9)]

    def went_on(asked: Reflective, steps: Sequence[int]) -> list[Any]:
        out = []
        for step in steps:
            asks = asked.next(step)
            out.append([(a.task.id, a.task.question, a.hint, a.n) for a in asks])
            usual = [a for a in asks if a.task.kind != "reflection"]
            asked.observe([Group(a, tuple(episode((f"{step} {k}", True)) for k in range(3))) for a in usual])
            asked.observe([reflected(a.task.id, a.task.question, (f"lesson {step}", 1.0, True)) for a in usual[1:]])
        return out

    whole_run, cut, other = curriculum(questions), curriculum(questions), curriculum(questions, seed=1)
    found = went_on(whole_run, range(9))
    went_on(cut, range(3))
    other.stream.load_state_dict(cut.stream.state_dict())  # type: ignore[attr-defined]
    other.load_state_dict(copy.deepcopy(cut.state_dict()))
    assert went_on(other, range(3, 9)) == found[3:]


def trained(folder: Path, steps: int) -> Path:
    judge = {"name": f"{Path(__file__)}:Letter"}
    return run(
        folder,
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 700, "alphabet": string.printable}},
        method={
            "name": "S161",
            "options": {"judge": judge, "reflections": 2, "window": 1},
            "reward": {"name": "stage_rubrics", "rubrics": {"judge": judge}},
        },
        rollout={"prompts": 2, "group": 6, "max_tokens": 8},
        warmup={"steps": 0},
        train={"steps": steps, "epochs": 1, "mini_batches": 1},
    )


def test_it_trains(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run", 3)
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert any(m["grad_norm"] > 0 for m in rows) and any(m["rubrics/proposed"] > 0 for m in rows)
    assert any(m["reward/plan"] > 0 for m in rows)
    # Who writes at random has no lesson: it earns 0, and nothing is banked.
    assert ["reflection/score" in m for m in rows] == [False, True, False] and rows[1]["reflection/score"] == 0
    asked = [row["task_id"].endswith("@reflection") for table in tables(folder, "rollouts").values() for row in table]
    # Two of new tasks in the first step; the second asks these again.
    assert sum(asked) == 4 and len(asked) == 3 * 12 + 4
    assert len(bank_of(folder)) == 0
    half = trained(tmp_path / "half", 2)
    assay.train(resume=half, overrides=["train.steps=3"], quiet=True)
    assert [m for m in metrics(half) if m["stage"] == "rl"] == rows
