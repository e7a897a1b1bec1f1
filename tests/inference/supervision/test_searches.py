"""Trees of beginnings: how they grow by hand, what they are read off as, and that they go on where they stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from assay.engines.base import Request, Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.completing import Completer
from assay.inference.supervision.prefixes import Completion, PrefixTree
from assay.inference.supervision.searches import Along, BestFirst, FirstErrors
from assay.inference.supervision.train import kept_rows, stepping_of
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.step_models.examples import StepExample, StepPair, write_examples
from assay.signals.steps import Steps
from assay.types import Episode, Task, Verdict

ONE = Steps("fixed", 1)


def completer(policy: TabularPolicy, depth: int, **more: object) -> Completer:
    engine, verifier = TabularEngine(policy), TabularVerifier(policy.tree)
    return Completer(engine, verifier, Sampling(depth), ONE, Stepping((), 1), **more)


def planted(depth: int = 4) -> TabularPolicy:
    """Right where no 1 is drawn."""
    return TabularPolicy(Tree.uniform(2, depth, [1.0] + [0.0] * (2**depth - 1)))


def path(*tokens: int) -> Episode:
    row = np.array(tokens, dtype=np.int64)
    return Episode(row[:0], row, row >= 0, None, "/".join(map(str, tokens)), "eos")


def tree_of(**values: tuple[int, int]) -> PrefixTree:
    """A tree whose beginnings, such as ``p01`` for 0/1, have these numbers of right and of judged completions."""
    tree = PrefixTree(Task("t", ""), TabularEngine(planted()), ONE)
    for name, (right, tried) in values.items():
        node = tree.at(path(*map(int, name[1:])))
        node.right, node.tried = right, tried
    return tree


def test_a_tree_as_labelled_paths() -> None:
    tree = tree_of(p0=(3, 4), p00=(2, 4), p01=(0, 4), p0100=(0, 1), p1=(0, 0))
    found = {row.steps: row.labels for row in tree.examples()}
    # Each value once, in the first of the longest paths through it; a beginning that nobody judged says nothing.
    assert found == {("0", "1", "0", "0"): (0.75, 0.0, None, 0.0), ("0", "0"): (None, 0.5)}
    row = tree.examples()[0]
    assert row.episode is not None and [(s.start, s.end) for s in row.episode.spans] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [n.length for n in tree.path(tree.at(path(0, 1, 0, 0)))] == [0, 1, 2, 4]


def test_a_tree_as_pairs_of_siblings() -> None:
    tree = tree_of(p0=(7, 8), p1=(4, 8), p00=(4, 8), p01=(2, 8))
    tree.at(path(0)).completions = [Completion(path(0, 1, 1), True, False), Completion(path(0, 0, 0), True, True)]
    tree.at(path(1)).completions = [Completion(path(1, 0), True, True), Completion(path(1, 1, 1), True, False)]
    [pair] = tree.pairs(0.375)  # 7/8 - 4/8 is enough, 4/8 - 2/8 is not
    # The better one goes on to a right response, the worse one to a wrong one.
    assert (pair.better.steps, pair.worse.steps, pair.fork) == (("0", "0", "0"), ("1", "1", "1"), 0)
    assert len(tree.pairs(0.25)) == 2 and tree.pairs(0.4) == []
    second = tree.pairs(0.25)[1]
    assert (second.better.steps, second.worse.steps, second.fork) == (("0", "0"), ("0", "1"), 1)


def test_best_first_goes_where_the_value_is_highest() -> None:
    policy = planted(3)
    policy.logits.data[0, 1] = -20.0  # hardly ever wrong at first
    asked: list[tuple[int, ...]] = []

    class Watched(TabularEngine):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            asked.extend(r.prefix for r in requests if r.sampling.max_tokens == 1 and len(r.prefix) < 2)
            return super().generate(requests)

    made = Completer(Watched(policy), TabularVerifier(policy.tree), Sampling(3), ONE, Stepping((), 1))
    [tree] = made.grow([Task("t", "")], BestFirst(completions=64, branch=6, expansions=3), 0)
    assert asked[:2] == [(), (0,)]
    values = {tuple(n.episode.tokens.tolist()): n.value for n in tree if n.episode is not None}
    assert values[0, 1] == 0 and values[0, 0] is not None and 0.2 < values[0, 0] < 0.8
    # Whole responses are what they are, and not completed; wrong beginnings come last.
    assert values[0, 0, 0] == 1 and values[0, 0, 1] == 0 and (0, 1, 0) not in values
    with pytest.raises(UsageError):
        BestFirst(branch=0)


def test_along_responses_every_step_is_valued_by_the_prover() -> None:
    policy, prover = planted(3), planted(3)
    prover.logits.data[:, 1] = -20.0  # always right, as long as it can be
    [tree] = completer(policy, 3, prover=TabularEngine(prover)).grow([Task("t", "")], Along(responses=6, n=2), 0)
    labels = [row for row in tree.examples() if len(row.steps) == 3]
    assert len(labels) >= 3
    for node in tree:
        tokens = () if node.episode is None else tuple(node.episode.tokens.tolist())
        assert node.value == float(1 not in tokens)
    # Near the first error alone: of a response wrong at once nothing after the second step.
    [near] = completer(policy, 3, prover=TabularEngine(prover)).grow([Task("t", "")], Along(6, 2, near=0), 0)
    assert {n.length for n in near} <= {n.length for n in tree} and len(list(near)) <= len(list(tree))
    with pytest.raises(UsageError):
        Along(near=-1)


def test_what_cannot_be_judged_is_no_evidence() -> None:
    policy = planted(2)
    made = Completer(TabularEngine(policy), lambda task, text: Verdict.abstain("down"), Sampling(2), ONE)
    for search in (FirstErrors(k=2), BestFirst(2, 2, 2), Along(2, 2)):
        [tree] = made.grow([Task("t", "")], search, 0)
        assert tree.root.value is None and tree.examples() == [] and tree.pairs() == []


def test_a_tree_does_not_depend_on_what_else_grows_and_all_is_counted() -> None:
    policy = planted(4)
    tasks = [Task(str(i), "") for i in range(5)]

    def grown(tasks: list[Task], together: int) -> dict[str, list[StepExample]]:
        made = completer(policy, 4, together=together)
        trees = list(made.grow(tasks, FirstErrors(k=4, searches=3), 7))
        assert made.calls == sum(tree.rollouts for tree in trees) and made.tokens <= 4 * made.calls
        return {t.task.id: [(r.steps, r.labels) for r in t.examples()] for t in trees}  # type: ignore[misc]

    whole = grown(tasks, 2)
    assert whole == grown(tasks, 16) and whole["3"] == grown(tasks[3:4], 1)["3"]
    assert len({str(rows) for rows in whole.values()}) > 1


def test_a_file_is_gone_on_with_after_its_last_whole_tree(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    assert list(kept_rows(file)) == []
    rows = [StepExample(Task(name, "p"), ("a", "b"), (1.0, None)) for name in ("x", "x", "y", "y")]
    pair = StepPair(StepExample(rows[0].task, ("a",)), StepExample(rows[0].task, ("b",)), 0)
    write_examples(file, [*rows[:2], pair, *rows[2:]])
    with file.open("a", encoding="utf-8") as text:
        text.write('{"id": "y", "prom')
    # The last tree may not be all there; the others are, and the file is cut to them.
    assert list(kept_rows(file)) == [*rows[:2], pair]
    assert len(file.read_text(encoding="utf-8").splitlines()) == 3


def test_how_single_steps_are_sampled() -> None:
    assert stepping_of(Steps("newline"), 40) == Stepping(("\n",), 40)
    assert stepping_of(Steps("tag", tag="s"), 40) == Stepping(("</s>",), 40)
    assert stepping_of(Steps("fixed", 3), 40) == Stepping((), 3)
    with pytest.raises(UsageError, match="one by one"):
        stepping_of(Steps("sentence"), 40)
