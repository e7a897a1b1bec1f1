"""PROPA: trees by hand, what siblings are worth, what is left out, solutions where all fails, and a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.config import dump_config, load_config
from assay.engines.base import Request, Sampling
from assay.errors import RunError, UsageError
from assay.inference.supervision.searches import BestFirst
from assay.inference.supervision.train import PRMMethod, make_method
from assay.method import Method
from assay.objectives.off_policy.shown import Shown
from assay.papers.multimodal_eval.s175_propa import labelled, propa
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.records.files import write_folder
from assay.rewards.step_models.examples import StepExample
from assay.rewards.step_models.saved import PRMSettings
from assay.rollout.trees.step_tree import Node, StepTree, back, boosted, ucb
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group, Origin, Span, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

LINES = Steps(by="newline")


def judge(groups: Any) -> list[Group]:
    """Right is what ends in 1; what ends in ? is not judged; 5 is half right."""
    worth = {"1": Verdict.right(), "?": Verdict.abstain("down"), "5": Verdict(0.5, False)}
    return [
        g if g.verdicts else g.judged([worth.get(e.text[-1:], Verdict.wrong()) for e in g.episodes]) for g in groups
    ]


class Steppers:
    """Goes on from the steps so far as a table says: children's texts; a greedy ending is one of temperature 0."""

    def __init__(self, steps: dict[str, list[str]], endings: dict[str, str]):
        self.steps, self.endings, self.asked = steps, endings, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.array([ord(c) for c in prompt], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: Any) -> str:
        return "".join(map(chr, tokens))

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            self.asked.append(request)
            before, greedy = self.decode(request.prefix), request.sampling.temperature == 0
            row = []
            for text in [self.endings[before]] if greedy else self.steps[before]:
                tokens, prompt = self.encode(text), self.encode(f"{request.prompt}{before}")
                stop: Any = "eos" if greedy or not text.endswith("\n") else "stop"
                known = np.full(len(tokens), -0.5, dtype=np.float32)
                row.append(Episode(prompt, tokens, tokens > 0, known, text, stop))
            out.append(row)
        return out


def grown(steps: dict[str, list[str]], endings: dict[str, str], **options: Any) -> tuple[Group, Steppers, StepTree]:
    made = StepTree(Sampling(40), judge, LINES, **{"children": 2, "iterations": 2, **options})
    engine = Steppers(steps, endings)
    [group] = made.collect([Ask(Task("t", "Q", "1", solution="so 1"), 8)], engine, np.random.default_rng(0))
    return group, engine, made


def test_a_response_ends_at_the_runs_own_stop_string_wherever_a_step_ends() -> None:
    texts: list[str] = []

    def noted(groups: Any) -> list[Group]:
        texts.extend(e.text for g in groups if not g.verdicts for e in g.episodes)
        return judge(groups)

    engine = Steppers({"": ["a\n", "b\n"], "b\n": ["Q: 1\n", "c\n"]}, {"a\n": "Q: 1", "b\nc\n": "1"})
    made = StepTree(Sampling(40, stop=("\nQ:",)), noted, LINES, children=2, iterations=2)
    made.collect([Ask(Task("t", "Q", "1", solution="so 1"), 8)], engine, np.random.default_rng(0))
    assert texts[:3] == ["a\nQ:", "b\nQ:", "b\nc\n1"]
    assert {r.sampling.stop for r in engine.asked} == {("\nQ:", "\n"), ("\nQ:",)}


def node(total: float, visits: int) -> Node:
    return Node(None, None, (), 0, total=total, visits=visits)


def test_ucb_by_hand() -> None:
    """N = 4: .5 of 1 comes to 2.165109, 1.5 of 3 to 1.461351; what was never tried comes first."""
    assert ucb(node(0.5, 1), 4, 1.0) == pytest.approx(2.165109, abs=1e-6)
    assert ucb(node(1.5, 3), 4, 1.0) == pytest.approx(1.461351, abs=1e-6)
    assert ucb(node(1.5, 3), 4, 0.0) == 0.5 and ucb(node(0.0, 0), 4, 1.0) == math.inf
    assert node(0.0, 0).value == 0 and node(1.5, 3).value == 0.5


def test_ucb_with_a_reward_model() -> None:
    """.6 of W / n = .5 and .4 of its .9 are .66, beside .961351 of exploration; where it said nothing, W / n alone."""
    told = node(1.5, 3)
    assert ucb(told, 4, 1.0, 0.4) == pytest.approx(1.461351, abs=1e-6)
    told.opinion = 0.9
    assert ucb(told, 4, 1.0, 0.4) == pytest.approx(1.621351, abs=1e-6)
    assert ucb(told, 4, 1.0) == pytest.approx(1.461351, abs=1e-6) and ucb(told, 4, 0.0, 1.0) == 0.9


class Prefers:
    """A reward model that is sure of steps with one letter in them, and of no others; it knows nothing of z."""

    def __init__(self, letter: str):
        self.letter, self.asked = letter, list[list[str]]()

    def __call__(self, pairs: Sequence[tuple[Task, Episode]], engine: Any) -> list[list[float] | None]:
        assert all(task.id == "t" and engine.decode(e.prompt) == "Q" for task, e in pairs)
        steps = [[engine.decode(e.tokens[s.start : s.end]) for s in e.spans] for _, e in pairs]
        self.asked += steps
        return [None if "z" in s[-1] else [1.0 if self.letter in x else -1.0 for x in s] for s in steps]


def test_a_reward_model_guides_the_search() -> None:
    """After a and b have come to nothing once each, iteration 3 goes where it says: from the second epoch on."""
    steps = {
        "": ["a\n", "b\n"],
        "a\n": ["c\n", "d\n"],
        "b\n": ["e\n", "f\n"],
        "a\nd\n": ["1", "z"],
        "b\nf\n": ["1", "z"],
    }
    endings = {"a\n": "0", "b\n": "0", "a\nc\n": "0", "b\ne\n": "0"}

    def went(letter: str, step: int, **options: Any) -> tuple[str, Group, Prefers, StepTree]:
        prm = Prefers(letter)
        how = {"iterations": 3, "scorer": prm, "progress": lambda: (step, 1000), **options}
        group, engine, made = grown(steps, endings, **how)
        return next(engine.decode(r.prefix) for r in engine.asked[::-1] if r.n == 2), group, prm, made

    where, group, prm, made = went("b", 25)
    # The second iteration tries b, which was never tried, and the third goes on from its second child, never tried.
    assert where == "b\nf\n" and made.metrics()["tree/trust"] == pytest.approx(0.2)
    assert prm.asked[:2] == [["a\n"], ["b\n"]] and ["b\n", "f\n", "z"] in prm.asked
    assert went("a", 25)[0] == "a\n", "as without one: a comes first of equals"
    where, _, prm, made = went("b", 24)
    assert where == "a\n" and prm.asked == [] and made.metrics()["tree/trust"] == 0
    assert [went("b", n)[3].trusted for n in (50, 125, 900)] == pytest.approx([0.4, 1, 1])
    assert went("b", 6, epoch=3, trust=0.1)[3].trusted == pytest.approx(0.2)
    # What children are worth is of verdicts alone: 1 of the 3 tries of b came out right.
    assert {e.text: v.score for e, v in zip(group.episodes, group.verdicts, strict=True)}["b\n"] == pytest.approx(
        boosted(1 / 3)
    )
    assert "tree/trust" not in grown(STEPS, ENDINGS)[2].metrics()
    assert grown(STEPS, ENDINGS, progress=lambda: (900, 1000))[2].trusted == 0


def test_a_reward_model_that_is_none() -> None:
    later = {"progress": lambda: (25, 100)}
    for rows, words in (
        ([[0.5]], "scored 1 of 2 beginnings"),
        ([[0.5], [math.nan]], "returned .nan. for the 1 steps of a response to task t"),
        ([[0.5], [0.5, 0.5]], "for the 1 steps"),
    ):
        with pytest.raises(RunError, match=words):
            grown(STEPS, ENDINGS, scorer=lambda pairs, engine, rows=rows: rows, **later)
    with pytest.raises(UsageError, match="the scorer is a function of beginnings and an engine"):
        StepTree(Sampling(4), judge, LINES, scorer="prm")
    for bad in ({"trust": -0.1}, {"trust": 1.1}, {"epoch": 0}):
        with pytest.raises(UsageError, match=r"trust .* must lie in \[0, 1\], and epoch"):
            StepTree(Sampling(4), judge, LINES, **bad)  # type: ignore[arg-type]
    made = propa(prm=lambda task, steps: [0.0] * len(steps), trust=0.5, epoch=2)
    assert isinstance(made, Method) and (made.rollout["trust"], made.rollout["epoch"]) == (0.5, 2)
    engine, span = Steppers({}, {}), (Span("step", 0, 1), Span("step", 1, 3))
    whole = Episode(engine.encode("Q"), engine.encode("abc"), np.ones(3, dtype=bool), None, "abc", "stop", spans=span)
    assert made.rollout["scorer"]([(Task("t", "q"), whole)], engine) == [[0, 0]]


def test_labels_are_boosted() -> None:
    found = [boosted(q) for q in (0, 0.1, 0.25, 0.5, 0.9, 1)]
    assert found == pytest.approx([0, 0.289065, 0.522443, 0.747222, 0.960253, 1], abs=1e-6)


STEPS = {"": ["a\n", "b\n"], "b\n": ["c1", "d0"], "a\n": ["e0", "f0"]}
ENDINGS = {"a\n": "x0", "b\n": "y1"}


def test_a_tree_by_hand() -> None:
    """First a goes on to a 0. Then b, never tried, is gone on from, and both of its children end: 1 and 0."""
    group, engine, made = grown(STEPS, ENDINGS)
    asked = [(engine.decode(r.prefix), r.n, r.sampling.temperature, r.sampling.stop) for r in engine.asked]
    assert asked == [("", 2, 1.0, ("\n",)), ("a\n", 1, 0.0, ()), ("b\n", 2, 1.0, ("\n",))]
    assert [e.text for e in group.episodes] == ["a\n", "b\n", "c1", "d0"]
    assert [v.score for v in group.verdicts] == pytest.approx([0, boosted(0.5), 1, 0])
    assert group.before is not None and [e.text for e in group.before.episodes] == ["a\nx0", "b\nc1", "b\nd0"]
    assert [v.passed for v in group.before.verdicts] == [False, True, False]
    found = made.metrics()
    assert (found["tree/solved"], found["tree/nodes"], found["tree/kept"]) == (1.0, 2.0, 1.0)


def test_a_node_that_has_ended_is_tried_again_by_its_score() -> None:
    """Both children of the root end; whichever is chosen in the third iteration, nothing is asked any more."""
    group, engine, _ = grown({"": ["x1", "y0"]}, {}, iterations=3)
    assert len(engine.asked) == 1 and [v.score for v in group.verdicts] == [1, 0]
    assert group.before is not None and len(group.before.episodes) == 2


def test_nothing_is_lost_on_the_way_up() -> None:
    """W of the root is the sum of all rewards, n their number; what was not judged adds nothing."""
    root = node(0, 0)
    child = Node(root, None, (), 1)
    for reward in (1.0, 0.5, None, 0.0):
        back(child, reward)
    assert (root.total, root.visits, child.total, child.visits) == (1.5, 3, 1.5, 3)
    assert child.value == 0.5


def test_siblings_are_groups() -> None:
    """Each node's children are compared with each other, after a prompt with the steps before them."""
    group, engine, _ = grown(STEPS, ENDINGS)
    method = propa()
    assert isinstance(method, Method)
    batch = Batch.from_groups([group], torch.float64)
    method.value(batch)
    assert batch.group.tolist() == [0, 0, 1, 1]
    half = math.sqrt(0.5)
    assert batch.advantages[:, 0].tolist() == pytest.approx([-half, half, half, -half], abs=1e-4)
    assert [engine.decode(e.prompt) for e in group.episodes] == ["Q", "Q", "Qb\n", "Qb\n"]
    assert all(e.logprobs is not None and set(e.logprobs.tolist()) == {-0.5} for e in group.episodes)
    assert all(e.origins is None for e in group.episodes)


def test_what_tells_nothing_is_left_out() -> None:
    made = StepTree(Sampling(4), judge, LINES)

    def tells(*values: float, least: float = 0.1) -> bool:
        parent = node(0, 0)
        parent.children = [node(v, 1) for v in values]
        made.least = least
        return made.tells(parent)

    assert not tells(0, 0, 0, 0) and not tells(1, 1) and not tells(0.5, 0.5, 0.5, 0.5)
    assert tells(1, 0) and tells(0.5, 0.6, least=0.05) and not tells(0.5, 0.6)  # b of .5 and .6 are .06 apart
    assert not tells(0.5, 0.5, least=0.0) and tells(0.5, 0.6, least=0.0) and tells(0, 1, least=1.0)
    group, _, made = grown({"": ["x1", "y1"]}, {}, iterations=1)
    assert group.episodes == () and made.metrics()["tree/kept"] == 0 and group.before is not None


def test_unsolved_questions_are_shown_a_solution() -> None:
    """The worked solution, to be learned whatever the advantage; without it nothing, and half right is not solved."""
    group, engine, made = grown({"": ["x0", "y5"]}, {}, iterations=1)
    [episode] = group.episodes
    assert episode.text == "so 1" and engine.decode(episode.prompt) == "Q" and episode.logprobs is None
    assert episode.origins is not None and episode.origins.tolist() == [Origin.HINT] * 4
    assert made.metrics()["tree/solved"] == 0 and group.verdicts == (Verdict.right(),)
    assert grown({"": ["x0", "y5"]}, {}, iterations=1, solutions=False)[0].episodes == ()
    bare = StepTree(Sampling(4), judge, LINES)
    with pytest.raises(UsageError, match="task u has none; set solutions = false"):
        bare.check_tasks([Task("u", "Q", "1")])
    bare.check_tasks([Task("u", "Q", "1"), Task("v", "Q", "1", solution="1")])
    StepTree(Sampling(4), judge, LINES, solutions=False).check_tasks([Task("u", "Q", "1")])


def test_what_is_too_long_or_not_judged() -> None:
    """An ending beyond two steps earns nothing, right or not; a verdict that failed adds nothing."""
    deep = {"": ["a\n", "b0"]}
    for ending, depth, value in (("x\n1", 3, 1.0), ("x\n1", 2, 0.0), ("1", 2, 1.0)):
        group, _, _ = grown(deep, {"a\n": ending}, iterations=1, depth=depth)
        scores = [v.score for v in group.verdicts] if group.episodes and group.episodes[0].text == "a\n" else [0.0, 0.0]
        assert scores == [value, 0.0]
    # What is right too late does not solve a question: its worked solution is learned.
    group, _, made = grown({"": ["a\n", "b0"]}, {"a\n": "x\n1"}, iterations=1, depth=2)
    assert [e.text for e in group.episodes] == ["so 1"] and made.metrics()["tree/solved"] == 0
    assert group.before is not None and "3 steps, of 2 at most" in group.before.verdicts[0].feedback
    group, _, _ = grown({"": ["a\n", "b1"]}, {"a\n": "?"}, iterations=1)
    assert [v.score for v in group.verdicts] == [0, 1], "a was never tried"
    counted = StepTree(Sampling(4), judge, Steps(by="fixed", size=2))
    assert [counted.count("", n) for n in (1, 2, 3, 4)] == [1, 1, 2, 2]
    assert StepTree(Sampling(4), judge, LINES).count("a\nb\n", 9) == 2


def test_the_defaults() -> None:
    made = propa()
    assert isinstance(made, Method)
    options = {"children": 4, "iterations": 10, "depth": 8, "c": 1.0, "least": 0.1, "solutions": True}
    assert made.rollout == {"name": "step_tree", **options, "steps": LINES}
    guided = propa(prm=lambda task, steps: [0.0] * len(steps))
    assert isinstance(guided, Method) and (guided.rollout["trust"], guided.rollout["epoch"]) == (0.2, 25)
    for ends in ({"c": 0.0, "least": 0.0, "trust": 0.0}, {"least": 1.0, "trust": 1.0, "epoch": 1}):
        StepTree(Sampling(4), judge, LINES, **ends)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="step_tree"):
        StepTree(Sampling(4), judge, LINES, least=-0.5)
    assert made.objective == Shown(weight=1.0, kl_weight=0.001)
    plain = StepTree(Sampling(4), judge)
    assert {name: getattr(plain, name) for name in options} == options
    for bad in ({"children": 1}, {"iterations": 0}, {"depth": 0}, {"c": -1.0}, {"least": 1.1}, {"least": -0.1}):
        with pytest.raises(UsageError, match="step_tree"):
            StepTree(Sampling(4), judge, LINES, **bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="steps by sentence"):
        StepTree(Sampling(4), judge, Steps(by="sentence"))


def test_a_process_reward_model_learns_boosted_labels() -> None:
    made = make_method("S175(stage=prm)")
    assert isinstance(made, PRMMethod) and made.search == BestFirst(branch=4, expansions=10)
    assert made.training.loss == "regression" and made.examples is labelled
    assert catalogue.make("S175", stage="prm", training={"epochs": 3}).training.epochs == 3

    class Grown:
        def examples(self) -> list[StepExample]:
            return [StepExample(Task("t", "q"), ("a", "b", "c"), (0.5, None, 1.0))]

    tree: Any = Grown()
    [row] = labelled(tree)
    assert row.labels == (pytest.approx(0.747222, abs=1e-6), None, 1.0)


def test_what_has_ended_is_tried_until_another_is_due() -> None:
    """x is half right at once, a came to 0. By UCB x, x, and then, .5 + .961 against 1.665, a, which goes on."""
    steps, endings = {"": ["x5", "a\n"], "a\n": ["1", "0"]}, {"a\n": "0"}
    for iterations, gone in ((3, 1), (4, 2)):
        group, engine, _ = grown(steps, endings, iterations=iterations)
        assert sum(r.n == 2 for r in engine.asked) == gone
    # x: W = 1.5 of 3; a: 0, 1 and 0 of 3.
    assert [v.score for v in group.verdicts] == pytest.approx([boosted(0.5), boosted(1 / 3), 1, 0])
    assert [v.passed for v in group.verdicts] == [False, False, True, False]


def test_what_is_asked_for() -> None:
    """What is left of the response's tokens, seeds that differ, none for what is greedy, one response to a verdict."""
    sizes = list[int]()

    def one(groups: Any) -> list[Group]:
        sizes.extend(g.ask.n for g in groups)
        return judge(groups)

    engine = Steppers(STEPS, ENDINGS)
    made = StepTree(Sampling(40), one, LINES, 2, 2)
    groups = made.collect([Ask(Task(t, "Q", "1"), 8) for t in "uv"], engine, np.random.default_rng(0))
    assert {(engine.decode(r.prefix), r.sampling.max_tokens) for r in engine.asked} == {
        ("", 40),
        ("a\n", 38),
        ("b\n", 38),
    }
    seeds = {r.seed for r in engine.asked if r.n == 2}
    assert len(seeds) == 4 and max(seeds) > 2**40 and {r.seed for r in engine.asked if r.n == 1} == {0}
    assert set(sizes) == {1} and len(groups) == 2
    found = made.metrics()
    assert (found["tree/solved"], found["tree/nodes"], found["tree/kept"]) == (1.0, 2.0, 1.0)
    made.collect([], engine, np.random.default_rng(0))
    assert (made.metrics()["tree/solved"], made.metrics()["tree/nodes"], made.metrics()["tree/kept"]) == (0, 0, 0)
    assert grown({"": ["x1", "y0"]}, {}, iterations=1)[2].metrics()["tree/kept"] == 1


def test_replies_that_are_none_are_no_children() -> None:
    class Failing(Steppers):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            made = super().generate(requests)
            return [[replace(e, stop="error") if "!" in e.text else e for e in row] for row in made]

    engine = Failing({"": ["", "!1", "x1", "y0"]}, {})
    made = StepTree(Sampling(40), judge, LINES, 4, 1)
    [group] = made.collect([Ask(Task("t", "Q", "1"), 8)], engine, np.random.default_rng(0))
    assert [e.text for e in group.episodes] == ["x1", "y0"]


def test_steps_of_a_fixed_size() -> None:
    """After 2 tokens an ending of 3 makes 3 steps of 2 tokens: too late for 2, and so worth nothing."""
    for depth, scores in ((3, [1.0, 0.0]), (2, [])):
        made = StepTree(Sampling(40), judge, Steps(by="fixed", size=2), 2, 1, depth, solutions=False)
        engine = Steppers({"": ["a\n", "b0"]}, {"a\n": "cd1"})
        [group] = made.collect([Ask(Task("t", "Q", "1"), 8)], engine, np.random.default_rng(0))
        assert [v.score for v in group.verdicts] == scores or depth == 2
        assert group.before is not None
        assert [v.score for v in group.verdicts if v.score] == scores[:1]


def test_where_a_response_is_full() -> None:
    made, root = StepTree(Sampling(4), judge, LINES, depth=8), node(0, 0)

    def child(text: str, depth: int, stop: Any = "stop") -> bool:
        tokens = np.array([ord(c) for c in text], dtype=np.int64)
        parent = Node(root, None, (), depth)
        return made._child(parent, Episode(tokens[:0], tokens, tokens > 0, None, text, stop), Steppers({}, {})).ended

    assert child("abcd", 0) and not child("abc", 0) and child("abc", 0, "eos")
    assert child("a", 7) and not child("a", 6)


def test_opinions_by_hand() -> None:
    """Scores in [-1, 1] are made chances; what is not told is none, and the next one is."""
    text = np.array([1])
    made = StepTree(Sampling(4), judge, LINES, scorer=lambda pairs, engine: [None, [0.5]], progress=lambda: (25, 99))
    root = node(0, 0)
    nodes = [Node(root, Episode(text, text, text > 0, None, "", "stop"), (1,), 1) for _ in range(2)]
    made._opine([(Task("t", "Q"), n) for n in nodes], Steppers({}, {}))
    assert [n.opinion for n in nodes] == [None, 0.75]


def test_the_lab_learns_by_trees() -> None:
    trees, whole = (learned("S175", arm, steps=2, depth=3, right=2) for arm in ("propa", "grpo"))
    assert trees["start"] == whole["start"] and trees["final"] != whole["final"] and whole["rollouts"] == 32


def test_it_trains(tmp_path: Path) -> None:
    """Two steps of a nano model; sums that no tree solves have no solution, so they are left out."""
    folder = run(
        tmp_path / "run",
        method={
            "name": "S175",
            "reward": None,
            "options": {"steps": {"by": "fixed", "size": 1}, "iterations": 4, "solutions": False, "kl_weight": 0.0},
        },
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 40, "batch": 16, "lr": 0.01},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and all(row["tree/nodes"] > 1 for row in rows)
    assert any(row["tree/solved"] > 0 and row["grad_norm"] > 0 for row in rows)


def test_a_run_is_guided_by_a_reward_model(tmp_path: Path) -> None:
    """What ``assay train-prm`` writes, here with a head drawn at random, is asked from the second step on."""
    model = {"source": "nano", "nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}}
    settings = PRMSettings()
    made = settings.made(CausalLM.load(ModelConfig(**model)))
    torch.nn.init.normal_(made.reader.linear.weight)
    nothing = StepExample(Task("t", "1+1="), ("",))
    assert len(made.score_examples([nothing])[0]) == 1, "a response that ends at once has its end to be read off"

    def write(folder: Path) -> None:
        (folder / "config.toml").write_text(dump_config(load_config({"model": model})), encoding="utf-8")
        settings.save(made, folder)

    write_folder(tmp_path / "prm", write)
    options = {"steps": {"by": "fixed", "size": 1}, "iterations": 4, "solutions": False, "trust": 1.0, "epoch": 1}
    method = {"name": "S175", "reward": None, "options": options | {"prm": str(tmp_path / "prm")}}
    train = {"steps": 2, "mini_batches": 1, "epochs": 1}
    folder = run(tmp_path / "run", method=method, train=train, evaluate={"every": 0})
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert [row["tree/trust"] for row in rows] == [0, 1]


def test_it_trains_a_model_that_sees(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    letters = "".join(sorted(set("By how many degrees was this picture turned counter-clockwise: 0, 90, 180, 270?\n")))
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 96, "alphabet": letters}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1, "pixels": 32}}},
        tasks={"source": {"name": "self_puzzles", "puzzles": ["rotation"], "pixels": 12, "form": ""}, "eval_size": 2},
        method={"name": "S175", "reward": None, "options": {"steps": {"by": "fixed", "size": 1}, "iterations": 3}},
        warmup={"steps": 25, "batch": 8, "lr": 1e-2},
        rollout={"prompts": 2, "group": 4, "max_tokens": 4},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and any(row["tree/solved"] > 0 and row["grad_norm"] > 0 for row in rows)
