"""S132: fusion by hand, a tool and a model that reads it, which paths are kept, and a scorer made from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from assay import catalogue
from assay.config import load_config
from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.completing import Completer
from assay.inference.supervision.grounded import Grounded, Node, consistent, first_run, fused
from assay.inference.supervision.prefixes import Beginning, PrefixTree
from assay.inference.supervision.step_tools import Checked, Equations, Reads
from assay.inference.supervision.train import fit_prm, sampled_rows
from assay.lab.settings import load
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.step_models.examples import StepExample, read_examples, write_examples
from assay.signals.steps import Steps
from assay.types import Episode, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

ONE = Steps("fixed", 1)
NONE = np.zeros(0, dtype=np.int64)
T = Task("t", "1+2=")


def test_fusion_by_hand() -> None:
    assert fused([1, -1], 1) == pytest.approx(0.75)
    assert fused([1, 1], -1) == pytest.approx(0.25)
    assert fused([], 1) == 1 and fused([], -1) == -1
    # Earlier marks weigh more: three of four steps of the same marks, in either order.
    assert fused([1, 1, -1], 1) == pytest.approx(17 / 27 + 4 / 27)
    assert fused([-1, 1, 1], 1) == pytest.approx((-1 + 2 / 3 + 1 / 3) / 3 + 1 / 3)


def test_values_on_the_way_up() -> None:
    """u = .75 where it was expanded, .675 at its parent, .6075 above that."""
    root = Node(Beginning(None), Checked(0))
    first = Node(Beginning(None), Checked(1), root)
    expanded = Node(Beginning(None), Checked(1), first)
    second = Node(Beginning(None), Checked(-1), expanded)
    last = Node(Beginning(None), Checked(-1), second, final=1)
    Grounded(tool=Tool()).back([expanded, second, last], 1)
    assert [n.value for n in (expanded, first, root)] == pytest.approx([0.75, 0.675, 0.6075])
    # Steps below have the value of what follows them, the last one that of the answer.
    assert (second.value, last.value) == (fused([-1], 1), 1.0)
    assert [n.visits for n in (root, first, expanded, second, last)] == [1] * 5
    assert [len(n.path) for n in (root, first, last)] == [0, 1, 4]


class Tool:
    """Says that step 0 is right and others are wrong, but cannot tell of step 2; notes what it is asked."""

    def __init__(self):
        self.asked: list[tuple[tuple[str, ...], str]] = []

    def check(self, steps):
        self.asked += [(tuple(before), step) for _, before, step in steps]
        return [Checked({"0": 1, "2": 0}.get(step, -1), f"on {step}") for *_, step in steps]


def grown(policy: TabularPolicy, search: Grounded, seed: int = 0, verifier=None) -> PrefixTree:
    judge = verifier or TabularVerifier(policy.tree)
    made = Completer(TabularEngine(policy), judge, Sampling(policy.tree.depth), ONE, Stepping((), 1))
    [tree] = made.grow([T], search, seed)
    return tree


def nodes(tree: PrefixTree) -> list[Node]:
    out, todo = [], list(tree.marked.children)
    while todo:
        out.append(todo.pop())
        todo += out[-1].children
    return out


def test_every_step_is_checked_by_the_tool() -> None:
    tool = Tool()
    policy = TabularPolicy(Tree.uniform(3, 4, [1.0] + [0.0] * 80))
    tree = grown(policy, Grounded(tool, rounds=6, depth=4))
    every = nodes(tree)
    assert len(every) > 12 and len(tool.asked) == len(every) == len({id(n) for n in every})
    for node in every:
        assert node.at.episode is not None
        steps = tuple(map(str, node.at.episode.tokens.tolist()))
        assert (steps[:-1], steps[-1]) in tool.asked
        assert node.mark.mark == {"0": 1, "2": 0}.get(steps[-1], -1)
        assert (node.final is not None) is (len(steps) == 4)
    # A short depth ends rounds before the answer, which then counts as wrong.
    short = grown(policy, Grounded(Tool(), rounds=4, depth=2))
    assert all(n.final is None for n in nodes(short)) and max(n.at.length for n in nodes(short)) == 2
    # Rounds end when there are enough right and wrong responses.
    right = TabularPolicy(Tree.uniform(2, 1, [1.0, 0.0]))
    assert grown(right, Grounded(Tool(), rounds=50, wanted=1)).marked.visits <= 50
    # What nobody can judge is no answer at all.
    unjudged = grown(policy, Grounded(Tool(), rounds=3), verifier=lambda task, text: Verdict.abstain("down"))
    assert unjudged.marked.visits == 0 and consistent(unjudged) == []
    for wrong in ({"branch": 0}, {"decay": 2.0}, {"wanted": 0}):
        with pytest.raises(UsageError):
            Grounded(**wrong)


def test_paths_that_disagree_are_left_out() -> None:
    tree = PrefixTree(T, TabularEngine(TabularPolicy(Tree.uniform(3, 3))), ONE)
    root = tree.marked = Node(tree.root, Checked(0))

    def path(*steps: tuple[int, int, float], final: int) -> None:
        node, tokens = root, []
        for place, (token, mark, value) in enumerate(steps):
            tokens.append(token)
            row = np.array(tokens, dtype=np.int64)
            at = tree.at(Episode(NONE, row, row >= 0, None, "", "eos"))
            end = final if place == len(steps) - 1 else None
            node.children.append(Node(at, Checked(mark), node, value, 1, end))
            node = node.children[-1]

    path((0, 1, 0.5), (0, 1, 0.7), (0, 1, 1.0), final=1)  # agrees
    path((1, -1, 0.5), (0, 1, 0.7), (0, 1, 1.0), final=1)  # a step called wrong has a value above 0
    path((2, 0, 0.5), (1, -1, -0.5), (1, -1, -1.0), final=-1)  # of a step that is not known any value will do
    path((0, 1, 0.5), (2, -1, -0.2), (1, 1, 0.3), final=-1)  # cut after the wrong step
    found = {row.steps: row.labels for row in consistent(tree)}
    assert found == {
        ("0", "0", "0"): (1.0, 1.0, 1.0),
        ("2", "1", "1"): (1.0, 0.0, 0.0),
        ("0", "2"): (1.0, 0.0),
    }
    assert first_run([1.0, 0.0, 0.0, 1.0, 0.0]) == 3 and first_run([1.0, 1.0]) == 2 and first_run([0.0, None]) == 1


def test_luck_does_not_make_a_step_right() -> None:
    """A response goes on from a wrong step to a right answer: completions alone call the step right."""
    policy = TabularPolicy(Tree.uniform(2, 2, [1.0, 1.0, 1.0, 1.0]))
    tree = grown(policy, Grounded(Tool(), rounds=8, depth=2))
    wrong = [n for n in nodes(tree) if n.at.episode is not None and n.at.episode.tokens.tolist() == [1]]
    assert wrong and all(n.value >= 0 for n in wrong)
    # Its value is that of its lucky end, and so the path is left out.
    assert all(row.steps[0] == "0" for row in consistent(tree))
    setting = load("lucky", {"problems": 20})
    found = {
        name: setting.run(arm, 0, Path())
        for name, arm in (
            ("tool", {"method": "S132", "options": {"depth": 6}}),
            ("completions", {"method": "along", "options": {"responses": 3, "n": 4}}),
        )
    }
    assert found["tool"]["agreement"] > found["completions"]["agreement"]


def test_equations_are_checked() -> None:
    texts = ["2+3=6\n", "2+3=5\n", "so x = 3", "(x+1)^2 = x^2+2x+1", "nothing", "3+9=12\n1+1=3", "2+2=4=1+3"]
    found = Equations().check([(T, [], text) for text in texts])
    assert [c.mark for c in found] == [-1, 1, 0, 1, 0, -1, 1]
    assert found[0].rationale == "2+3 is not 6" and found[1].rationale == "2+3 = 5"


class Engine:
    """Replies in turn; keeps what it was asked."""

    def __init__(self, *replies: str):
        self.replies, self.asked = list(replies), list[str]()

    def encode(self, prompt):
        raise NotImplementedError

    encode_response = decode = encode

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += [str(r.prompt) for r in requests]
        return [[Episode(NONE, NONE, NONE > 0, None, self.replies.pop(0), "eos")] for _ in requests]


def test_a_model_reads_the_tool() -> None:
    engine = Engine("\\boxed{right}", "hm", "it is \\boxed{Wrong}")
    found = Reads(engine, tries=3).check([(T, [], "2+3=5\n"), (T, ["2+3=5\n"], "2+3=6\n")])
    assert [c.mark for c in found] == [1, -1] and found[1].rationale == "it is \\boxed{Wrong}"
    assert len(engine.asked) == 3 and "2+3 is not 6" in engine.asked[1] and "2+3=5" in engine.asked[1]
    # Five replies that say nothing are no mark.
    silent = Engine(*["?"] * 5)
    assert Reads(silent).check([(T, [], "x")]) == [Checked(0, "no verdict could be read")] and len(silent.asked) == 5
    with pytest.raises(UsageError, match="step"):
        Reads(engine, template="nothing")
    made = catalogue.make("S132", judge=Engine("\\boxed{right}"))
    assert isinstance(made.search.tool, Reads) and isinstance(catalogue.make("S132").search.tool, Equations)


def test_a_scorer_from_checked_steps(tmp_path: Path) -> None:
    """Sums in columns, by a model that was never trained: whatever it writes is checked, marked and learned."""
    config = load_config(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24, "alphabet": "01+=\n"}},
            "tasks": {"source": {"name": "arithmetic", "digits": 1, "operation": "addition"}, "eval_size": 1},
            "rollout": {"max_tokens": 6},
        }
    )
    policy = CausalLM.load(config.model)

    class Target:
        pass

    target = Target()
    target.config = config
    method = catalogue.make("S132", depth=6, rounds=3, training={"epochs": 3})
    rows, calls, _ = sampled_rows(target, policy, method, 8, Steps("fixed", 1))
    assert calls >= 8 * 3 and all(isinstance(row, StepExample) and row.known for row in rows)
    labels = [x for row in rows for x in row.labels]
    assert 0.0 in labels  # an answer that is wrong, at least
    made = fit_prm(method, method.settings.made(policy), rows)
    assert made.rows + 1 <= len(rows) and made.quality is not None and made.history[-1] < made.history[0]
    write_examples(tmp_path / "rows.jsonl", rows)
    assert len(read_examples(tmp_path / "rows.jsonl")) == len(rows)
    assert json.loads((tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()[0])["labels"]
