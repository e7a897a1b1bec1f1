"""S130: values of beginnings, first errors by binary search, which comes next, and a scorer made and used."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from assay import api, catalogue, cli
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.election import totals
from assay.inference.scoring.scorers import BySteps, reduced
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.completing import Completer
from assay.inference.supervision.prefixes import Beginning, Completion, PrefixTree
from assay.inference.supervision.searches import FirstErrors
from assay.inference.supervision.train import PRMMethod, make_method
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.process.step_scores import FunctionScorer
from assay.rewards.step_models.examples import StepExample, StepPair
from assay.signals.steps import Steps
from assay.types import Episode, Task

ONE = Steps("fixed", 1)


def path(tokens: list[int]) -> Episode:
    row = np.array(tokens, dtype=np.int64)
    return Episode(row[:0], row, row >= 0, None, "/".join(map(str, tokens)), "eos")


class Letters:
    """Decodes tokens of trees; generates nothing."""

    def encode(self, prompt):
        raise NotImplementedError

    encode_response = generate = encode

    def decode(self, tokens):
        return "/".join(str(int(t)) for t in tokens)


def located(steps: int, error: int, scan: str = "binary") -> tuple[int, set[int]]:
    """Search a response of so many steps that goes wrong at ``error``, completed by one who is right until then.

    Returns how many beginnings were tested, and the lengths of neighbours with a right completion and without.
    """
    tree = PrefixTree(Task("t", ""), Letters(), ONE)
    rollout = Completion(path(list(range(steps))), True, False)
    search, tested = FirstErrors(k=2, scan=scan).locate(tree, tree.root, rollout), 0
    try:
        [wanted] = next(search)
        while True:
            tested += 1
            head = wanted.head
            assert head is not None and wanted.n == 2
            good = len(head.tokens) <= error
            [wanted] = search.send([[Completion(rollout.episode, True, good)] * 2])
    except StopIteration:
        pass
    zero = {n.length for n in tree if n.value == 0}
    return tested, {min(zero)}


def test_the_first_error_is_found_in_about_log2_of_the_steps() -> None:
    for steps in (1, 2, 5, 8, 16):
        for error in range(steps):
            tested, first = located(steps, error)
            assert first == {error + 1}
            assert tested <= math.ceil(math.log2(steps))
            # One after the other it takes as many as there are right steps, and one more.
            tested, first = located(steps, error, "linear")
            assert first == {error + 1} and tested == min(error + 1, steps - 1)
    assert max(located(8, e)[0] for e in range(8)) == 3 and max(located(16, e)[0] for e in range(16)) == 4


def test_which_search_comes_next() -> None:
    search = FirstErrors()
    half, most = Beginning(None, right=4, tried=8), Beginning(None, right=6, tried=8)
    short, long = (Completion(path([0] * n), True, False) for n in (100, 300))
    assert search.q(half, short) == pytest.approx(0.692362, abs=1e-6)
    assert search.q(most, long) == pytest.approx(0.789383, abs=1e-6)
    half.visits = 1
    assert search.u(half, 8) == pytest.approx(0.176777, abs=1e-6)
    assert search.q(half, short) + search.u(half, 8) == pytest.approx(0.869139, abs=1e-6)
    # What was visited often loses to what was not, where all else is alike.
    assert search.u(half, 8) < search.u(most, 8)
    for wrong in ({"k": 0}, {"a": 0.0}, {"c": -1}, {"rollouts": 0}):
        with pytest.raises(UsageError):
            FirstErrors(**wrong)


def grown(policy: TabularPolicy, depth: int, search: FirstErrors, n: int = 1, seed: int = 0) -> list[PrefixTree]:
    verifier = TabularVerifier(policy.tree)
    made = Completer(TabularEngine(policy), verifier, Sampling(depth), ONE, Stepping((), 1))
    return list(made.grow([Task(str(i), "") for i in range(n)], search, seed))


def test_the_pool_and_what_is_left_out() -> None:
    search = FirstErrors(k=4)
    right, wrong = Completion(path([0]), True, True), Completion(path([1]), True, False)
    unknown = Completion(path([1]), True, None)
    for node, open_ in ((Beginning(None, right=2, tried=4), True), (Beginning(None, right=4, tried=4), False)):
        assert search.open(node, wrong) is open_ and not search.open(node, right) and not search.open(node, unknown)
    assert not search.open(Beginning(None, right=0, tried=4), wrong) and not search.open(Beginning(None), wrong)
    # All right or all wrong at the root: nothing is searched.
    for reward in (0.0, 1.0):
        [tree] = grown(TabularPolicy(Tree.uniform(2, 3, [reward] * 8)), 3, search)
        assert tree.rollouts == 4 and all(n.visits == 0 for n in tree)
    policy = TabularPolicy(Tree.uniform(2, 5, [1.0] * 10 + [0.0] * 22))
    [tree] = grown(policy, 5, FirstErrors(k=4, searches=50))
    chosen = [n for n in tree if n.visits]
    # Wrong completions of beginnings that were tested are searched in turn, each once.
    assert any(n is not tree.root for n in chosen) and tree.root.visits
    assert sum(n.visits for n in tree) <= sum(c.passed is False for n in tree for c in n.completions)
    [few] = grown(policy, 5, FirstErrors(k=4, searches=50, rollouts=12))
    assert 12 <= few.rollouts < tree.rollouts and few.rollouts <= 12 + 4 * 3
    assert sum(n.visits for n in grown(policy, 5, FirstErrors(k=4, searches=2))[0]) == 2


def test_values_of_beginnings_come_near_those_of_the_tree() -> None:
    rng = np.random.default_rng(0)
    policy = TabularPolicy.random(Tree.uniform(3, 5, (rng.random(243) < 0.3).astype(float).tolist()), seed=1)
    [tree] = grown(policy, 5, FirstErrors(k=400, searches=12))
    leaves = policy.leaf_logprobs().exp().detach().numpy()
    checked = 0
    for node in tree:
        if node.episode is None or node.done or node.value is None:
            continue
        head = tuple(node.episode.tokens.tolist())
        below = [i for i, p in enumerate(policy.tree.paths) if p[: len(head)] == head]
        exact = (leaves[below] * policy.tree.rewards.numpy()[below]).sum() / leaves[below].sum()
        assert node.value == pytest.approx(exact, abs=4 * math.sqrt(0.25 / 400))
        checked += 1
    assert checked >= 3


def test_soft_hard_and_pairwise_labels_of_one_tree() -> None:
    policy = TabularPolicy(Tree.uniform(2, 5, [1.0] * 10 + [0.0] * 22))
    [tree] = grown(policy, 5, FirstErrors(k=8, searches=30))
    soft, hard, pairs = (catalogue.make("S130", labels=labels) for labels in ("soft", "hard", "pairs"))
    rows = soft.data(tree)
    assert rows and all(isinstance(r, StepExample) for r in rows) and hard.data(tree)[0].labels == rows[0].labels
    known = [p for r in rows for p in r.labels if p is not None]
    assert any(0 < p < 1 for p in known) and 0 in known and all(8 * p == int(8 * p) for p in known)
    # Every node that was judged has its label once.
    assert len(known) == sum(n.tried > 0 for n in tree if n.episode is not None)
    assert (soft.training.loss, hard.training.loss, pairs.training.compared) == ("soft", "hard", "fork")
    assert soft.search == FirstErrors(8, 100, None, 0.5, 0.9, 500.0, 0.125, "binary") == FirstErrors()
    assert (soft.pairs, pairs.pairs) == (None, 0.125), "siblings one of eight completions apart"
    made = pairs.data(tree)
    assert made and all(isinstance(r, StepPair) for r in made)
    for pair in made:
        assert pair.better.steps[: pair.fork] == pair.worse.steps[: pair.fork]
        assert pair.better.steps[pair.fork] != pair.worse.steps[pair.fork]


def test_the_product_of_steps_chooses_and_votes() -> None:
    assert reduced([0.9, 0.8, 0.95], "product") == pytest.approx(0.684)
    assert reduced([0.99, 0.5, 0.99], "product") == pytest.approx(0.49005)
    policy = TabularPolicy(Tree.uniform(2, 3))
    table = {"0/0/0": [0.9, 0.8, 0.95], "1/1/1": [0.99, 0.5, 0.99]}
    scorer = BySteps(FunctionScorer(lambda task, steps: [2 * p - 1 for p in table["/".join(steps)]]), ONE, "product")
    found = scorer.score(
        [(Task("t", ""), path([int(t)] * 3)) for t in "01"], TabularEngine(policy), np.random.default_rng()
    )
    assert [s.value for s in found] == pytest.approx([0.684, 0.49005])
    # Two of the lesser answer outvote one of the better.
    assert totals([0, 1, 1], [0.684, 0.49005, 0.49005]) == pytest.approx({0: 0.684, 1: 0.9801})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("s130") / "run"
    recipe = {
        "model": {"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 32, "alphabet": "0123456789+-*%=\n"}},
        "tasks": {"eval_size": 8, "source": {"name": "chain", "length": 2, "ops": "+", "modulus": 5}},
        "warmup": {"steps": 40, "batch": 32, "lr": 5e-3},
        "rollout": {"prompts": 4, "group": 2, "max_tokens": 16},
        "train": {"steps": 0},
        "evaluate": {"samples": 1},
        "run": {"report": False, "dir": str(folder)},
    }
    api.train(recipe, quiet=True)
    return folder


def called(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(list(arguments))
    out, err = capfd.readouterr()
    return int(str(end.value.code)), out, err


@pytest.mark.slow
def test_made_and_used_from_the_command_line(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    prm, rows = tmp_path / "prm", tmp_path / "rows.jsonl"
    size = ("--tasks", "12", "--method", "S130(k=4,searches=4)", "--keep", str(rows))
    code, out, err = called(capfd, "train-prm", str(run), *size, "--out", str(prm), "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["completions"] >= 12 * 4 and found["loss"][-1] < found["loss"][0] and found["quality"]["steps"] > 0
    # What was learned from is there, and is gone on with: nothing but the last tree is made again.
    before = rows.read_text(encoding="utf-8")
    again = tmp_path / "again"
    code, out, err = called(
        capfd, "train-prm", str(run), *size, "--out", str(again), "--kind", "probe", "--epochs", "1"
    )
    assert code == 0, err
    assert rows.read_text(encoding="utf-8") == before and f"scorer.scorer={again}" in out
    strategy = f"sample,best_of_n(scorer.name=steps,scorer.scorer={prm},scorer.reduce=product)"
    code, out, err = called(capfd, "eval", str(run), "--strategy", strategy, "--budgets", "4", "--json")
    assert code == 0, err
    assert [len(p["outcomes"]) for p in json.loads(out)["points"]] == [8, 8]
    code, out, err = called(capfd, "eval", str(prm), "--steps", str(rows), "--json")
    assert code == 0, err
    assert 0 < json.loads(out)["pr_auc"]["value"] <= 1
    code, _, err = called(capfd, "eval", str(prm), "--steps", str(rows), "--samples", "4")
    assert code == 2 and "--samples" in err
    code, _, err = called(capfd, "train-prm", str(run), "--out", str(prm))
    assert code == 2 and "is there already" in err
    code, _, err = called(capfd, "train-prm", str(run), "--method", "S014", "--out", str(tmp_path / "x"))
    assert code == 2 and "no scorer of steps" in err


def test_methods_by_name() -> None:
    assert make_method("first_errors(k=3)") == PRMMethod(FirstErrors(k=3))
    assert make_method("S130(k=3)").search == FirstErrors(k=3)
    with pytest.raises(UsageError, match="first_errors"):
        make_method("nothing")
