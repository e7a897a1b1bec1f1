"""Fleming-R1: questions from a graph, advantages without a deviation, mining, and its stages in one small run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, tables

import assay
from assay.batch import Batch
from assay.curriculum.mined import Mined
from assay.curriculum.pass_rates import PassRates
from assay.errors import UsageError
from assay.method import make_method
from assay.registry import build
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify import KindVerifier

VERIFIER = KindVerifier()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten drugs and six diseases; drug d0 is in many facts, the others in few."""
    file = tmp_path_factory.mktemp("graph") / "graph.jsonl"
    facts = [("d0", "treats", f"i{k}") for k in range(6)] + [(f"d{k}", "treats", f"i{k % 6}") for k in range(1, 10)]
    facts += [(f"d{k}", "worsens", f"i{(k + 2) % 6}") for k in range(10)]
    rows = [{"head": h, "relation": r, "tail": t, "head_type": "drug", "tail_type": "disease"} for h, r, t in facts]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def questions(graph: Path, **options: Any) -> Any:
    return build("tasks", {"name": "graph_questions", "path": str(graph), **options})


def test_a_question_has_one_answer_and_does_not_name_it(graph: Path) -> None:
    source = questions(graph, facts=3, choices=4)
    known = {(h, r, t) for h, r, t in source.facts}
    for task in (source[i] for i in range(200)):
        masked, options = task.meta["entity"], task.reference["options"]
        facts = [line[2:].split(" ") for line in task.prompt.splitlines() if line.startswith("- ")]
        assert all(masked not in fact for fact in facts) and any("[?]" in fact for fact in facts)
        assert len(facts) == task.meta["difficulty"] <= 3 and len(set(options)) == len(options) >= 2
        assert {source.types[option] for option in options} == {source.types[masked]}
        fits = [o for o in options if all(tuple(o if w == "[?]" else w for w in fact) in known for fact in facts)]
        assert fits == [masked], "one option fits all facts"
        assert VERIFIER(task, task.solution).passed
        assert VERIFIER(task, "\\boxed{Z}").passed is not True
    assert questions(graph)[7] == questions(graph)[7]


def test_the_facts_are_connected(graph: Path) -> None:
    source = questions(graph, facts=4)
    for task in (source[i] for i in range(60)):
        facts = [set(line[2:].split(" ")[::2]) for line in task.prompt.splitlines() if line.startswith("- ")]
        together, rest = facts[0], facts[1:]
        while touching := [fact for fact in rest if fact & together]:
            together = together | set().union(*touching)
            rest = [fact for fact in rest if fact not in touching]
        assert not rest


def test_rare_entities_are_asked_of_more_often(graph: Path) -> None:
    """d0 is in seven facts, d1 in two: the weight of d1 is 3.5 times that of d0."""
    rare, even = questions(graph, rare=1.0), questions(graph, rare=0.0)
    degrees = np.array([len(rare.about[e]) for e in rare.entities])
    assert rare.weights == pytest.approx((1 / degrees) / (1 / degrees).sum())
    assert len(rare.about["d0"]) == 7 and rare.weights[rare.entities.index("d1")] / rare.weights[
        rare.entities.index("d0")
    ] == pytest.approx(3.5)
    seen = [Counter(source[i].meta["entity"] for i in range(600)) for source in (rare, even)]
    assert seen[0]["d0"] < seen[1]["d0"]
    assert sum(seen[0][f"d{k}"] for k in range(1, 10)) > sum(seen[1][f"d{k}"] for k in range(1, 10))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"facts": 0}, "facts >= 1"), ({"choices": 1}, "choices from 2 to 26"), ({"path": "nowhere"}, "cannot be read")],
)
def test_what_is_no_source_of_questions(graph: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        questions(graph, **options)


def test_files_that_are_no_graph(tmp_path: Path) -> None:
    file = tmp_path / "g.jsonl"
    for text, words in (("", "has no facts"), ('{"head": "a"}\n', "line 1 is no fact"), ("[1]\n", "line 1 is no fact")):
        file.write_text(text)
        with pytest.raises(UsageError, match=words):
            questions(file)
    file.write_text('{"head": "a", "relation": "r", "tail": "b", "head_type": "x", "tail_type": "y"}\n')
    with pytest.raises(UsageError, match="no two entities of one type"):
        questions(file)


def batch(texts: tuple[str, ...]) -> Batch:
    task = Task("t", "q", {"answer": "A", "options": ["x", "y"]}, "choice")
    mask, tokens = np.ones(2, bool), np.arange(2)
    episodes = tuple(Episode(tokens, tokens, mask, np.zeros(2, np.float32), text, "eos") for text in texts)
    verdicts = tuple(VERIFIER(task, text) for text in texts)
    return Batch.from_groups([Group(Ask(task, len(texts)), episodes, verdicts)])


def test_the_worked_example() -> None:
    """Rewards (1, 0, 0, 1)."""
    made = make_method("S100", reward="verdict")
    found = made.value(batch(("\\boxed{A}", "\\boxed{B}", "\\boxed{B}", "\\boxed{A}")))
    assert found.rewards.tolist() == [1, 0, 0, 1]
    assert found.advantages[:, 0].tolist() == [0.5, -0.5, -0.5, 0.5]


def test_correctness_and_form_are_rewarded() -> None:
    found = make_method("S100").reward(batch(("\\boxed{A}", "\\boxed{B}", "The answer is A", "nothing")))
    assert found.values.tolist() == pytest.approx([1.1, 0.1, 1.0, 0.0])


class World:
    """A mined pool of four tasks, whose rates are known."""

    def __init__(self, rates: dict[str, float], **options: Any):
        stream = TrainStream(Listed([Task(f"t{i}", str(i)) for i in range(6)]))
        self.history, self.rates, self.step = PassRates(), rates, 0
        self.curriculum = Mined(stream, 4, 2, pool=4, history=self.history, **options)

    def take(self) -> list[Ask]:
        asks = self.curriculum.next(self.step)
        groups = []
        for ask in asks:
            right = self.rates.get(ask.task.id, 1.0) > 0
            groups.append(Group(ask, (), (Verdict(float(right), right),) * ask.n))
        self.history.note(self.step, groups)
        self.curriculum.observe(groups)
        self.step += 1
        return asks


def test_what_is_failed_repeatedly_is_mined() -> None:
    first = sorted(ask.task.id for ask in World({}).take())
    low = first[0]
    world = World({low: 0.0}, steps=2, looks=3, threshold=2, hard=0.5)
    assert all(ask.task.meta["probe"] and ask.n == 1 for ask in world.take())
    assert world.curriculum.failed == [], "one failure is not repeated failure"
    asks = world.take()
    assert {ask.task.meta["mined"] for ask in asks} == {"other"} and {ask.n for ask in asks} == {2}
    assert world.curriculum.failed == [low]
    mixed = world.take()
    assert [ask.task.meta["mined"] for ask in mixed] == ["hard", "hard", "other", "other"]
    assert {ask.task.id for ask in mixed[:2]} == {low}
    assert all(ask.task.meta.get("probe") for ask in world.take()), "the next iteration tries the pool again"
    world.rates = {}
    for _ in range(8):
        world.take()
    assert world.curriculum.failed == [], "what is solved by now is no longer hard"
    again = World({}, steps=2, hard=0.5)
    again.curriculum.load_state_dict(world.curriculum.state_dict())
    again.history.load_state_dict(world.history.state_dict())
    again.step = world.step
    assert [world.take() for _ in range(4)] == [again.take() for _ in range(4)]


def test_thresholds() -> None:
    """Failures 3 of 3 and 2 of 3 are mined, 1 of 3 is not."""
    world = World({})
    ids = sorted(ask.task.id for ask in world.take())
    for step, failed in enumerate((ids[:1], ids[:2], ids[:3]), 1):
        groups = [Group(Ask(Task(t, t), 1), (), (Verdict.wrong() if t in failed else Verdict.right(),)) for t in ids]
        world.history.note(step, groups)
    assert sorted(world.curriculum.failed) == ids[:2]
    for wrong in ({"looks": 1}, {"threshold": 0}, {"hard": 0.0}, {"looks": 99}):
        with pytest.raises(UsageError, match="curriculum 'mined'"):
            World({}, **wrong)


def test_the_recipe_goes_through_its_stages(graph: Path, tmp_path: Path) -> None:
    letters = "".join(sorted(set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,?-:[]{}\\\n")))
    changes = [
        "model.source=nano",
        "model.dtype=float32",
        "model.gradient_checkpointing=false",
        f"model.nano={{hidden = 16, layers = 1, heads = 2, context = 320, alphabet = {json.dumps(letters)}}}",
        f"tasks.source.path={graph}",
        "tasks.eval_size=4",
        "stages.cold.steps=1",
        "stages.cold.rollout={max_tokens = 120}",
        "stages.all.until={metric = 'reward/mean', window = 1, plateau = 9.0}",
        "stages.mined.steps=2",
        "stages.mined.rollout.group=4",
        "method.options={pool = 2, steps = 5}",
        "rollout={prompts = 2, group = 2, max_tokens = 4}",
        "evaluate.samples=0",
        "run.report=false",
        f"run.dir={tmp_path / 'run'}",
    ]
    assay.train("fleming", overrides=changes, quiet=True)
    rows = [row for row in metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert [row["stage_number"] for row in rows] == [1, 2, 2, 3, 3], "two steps show that there is a plateau"
    steps = list(tables(tmp_path / "run", "rollouts").values())
    assert all(row["passed"] for row in steps[0])
    assert [len(step) for step in steps] == [2, 4, 4, 2, 8] and rows[3]["unselected"] == 1
