"""S120: labels by counting prefixes, the value model they make, and search by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import catalogue
from assay.engines.base import Engine, Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.base import Answer, Budget, Strategy
from assay.inference.heads.value_head import ByValueHead, ValueHead
from assay.inference.heads.value_training import ValueTraining, prefix_values, surprise
from assay.inference.scoring.base import Score
from assay.inference.search.beam import Beam
from assay.lab.settings import load
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.step_models.states import states, width
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.episodes import judge_groups


def test_labels_of_four_sequences() -> None:
    """abc right, abd wrong, aef right, ghi wrong."""
    rows = [np.array([ord(c) for c in word]) for word in ("abc", "abd", "aef", "ghi")]
    found = prefix_values(rows, [True, False, True, False])
    assert found[0] == pytest.approx([2 / 3, 1 / 2, 1])
    assert found[1] == pytest.approx([2 / 3, 1 / 2, 0])
    assert found[2] == pytest.approx([2 / 3, 1, 1])
    assert found[3] == pytest.approx([0, 0, 0])
    # One solution: its outcome everywhere.
    assert prefix_values(rows[:1], [True])[0].tolist() == [1, 1, 1]
    assert prefix_values([np.array([], dtype=np.int64)], [True])[0].tolist() == []


@given(st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.booleans()), min_size=1, max_size=12))
@settings(deadline=None)
def test_labels_are_those_of_the_definition_and_means_of_their_continuations(
    rows: list[tuple[list[int], bool]],
) -> None:
    tokens, right = [np.array(t) for t, _ in rows], [r for _, r in rows]
    found = prefix_values(tokens, right)
    for (mine, _), labels in zip(rows, found, strict=True):
        for t in range(1, len(mine) + 1):
            same = [(other, r) for other, r in rows if other[:t] == mine[:t]]
            assert labels[t - 1] == pytest.approx(sum(r for _, r in same) / len(same))
            # Law of total probability, with those that end here.
            ends = [float(r) for other, r in same if len(other) == t]
            later = [found[i][t] for i, (other, _) in enumerate(rows) if other[:t] == mine[:t] and len(other) > t]
            assert labels[t - 1] == pytest.approx(np.mean([*ends, *later]))


def judged(policy: TabularPolicy, n: int, seed: int = 0) -> list[Group]:
    [episodes] = TabularEngine(policy).generate([Request("", n, Sampling(9), seed)])
    return judge_groups(TabularVerifier(policy.tree), [Group(Ask(Task("t", ""), n), tuple(episodes))])


def test_abstentions_are_left_out_and_nothing_to_learn_from_is_said() -> None:
    policy = TabularPolicy(Tree.bandit(2, [1, 0]))
    [group] = judged(policy, 4)
    none = Group(group.ask, group.episodes, tuple(Verdict.abstain("x") for _ in group.episodes))
    with pytest.raises(UsageError, match="nothing to learn"):
        ValueTraining().fit(policy, [none], np.random.default_rng(0))
    with pytest.raises(UsageError):
        ValueTraining(lr=0)


class Digits:
    """An engine whose n-th continuation of a beginning is one token, n - 1; after ``ends``, or three, it has ended."""

    policy = None

    def __init__(self, ends: int = 9):
        self.ends, self.asked = ends, list[tuple[tuple[int, ...], int]]()

    def encode(self, prompt: object) -> np.ndarray:
        return np.zeros(0, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([int(c) for c in text], dtype=np.int64)

    def decode(self, tokens: object) -> str:
        return "".join(str(int(t)) for t in np.asarray(tokens).tolist())

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += [(r.prefix, r.n) for r in requests]
        return [[self._one(r, j) for j in range(r.n)] for r in requests]

    def _one(self, request: Request, j: int) -> Episode:
        ended = j == self.ends or len(request.prefix) == 2 or request.prompt == "short"
        head = np.array(request.prefix, dtype=np.int64)
        tokens = np.array([j], dtype=np.int64)
        return Episode(head, tokens, tokens >= 0, np.zeros(1, dtype=np.float32), str(j), "eos" if ended else "length")


def total(task: Task, text: str) -> float:
    return float(sum(map(int, text)))


def test_a_beam_by_hand() -> None:
    """Scored by the sum of digits, four places, two steps after each kept beginning.

    Of 0, 1, 2, 3 go on 3 and 2; of 30, 31, 20, 21 the best, 31, and of 30 and 21, which are equal, the first.
    """

    def searched(engine: Digits, places: int, **options: object) -> Answer:
        made = Beam(total, Sampling(9), **{"branch": 2, "stop": (), "step": 1, **options})
        [answer] = made([Task("t", "")], engine, places, np.random.default_rng(0))
        return answer

    engine = Digits()
    answer = searched(engine, 4)
    assert engine.asked == [((), 4), ((3,), 2), ((2,), 2), ((3, 1), 2), ((3, 0), 2)]
    assert [e.text for e in answer.episodes] == ["310", "311", "300", "301"] and answer.text == "311"
    assert answer.meta == {"score": 5, "whole": 4, "unscored": 0}
    # Places that do not divide go to the best; a whole response keeps its place.
    engine = Digits()
    searched(engine, 5)
    assert engine.asked[:3] == [((), 5), ((4,), 3), ((3,), 2)]
    engine = Digits(ends=3)
    answer = searched(engine, 4)
    assert engine.asked == [((), 4), ((2,), 3), ((2, 2), 3)]
    assert [e.text for e in answer.episodes] == ["3", "220", "221", "222"] and answer.text == "222"
    # With one step after each nothing is left out: best-of-n.
    engine = Digits()
    assert searched(engine, 3, branch=1).text == "200"
    assert engine.asked == [((), 3), ((2,), 1), ((1,), 1), ((0,), 1), ((2, 0), 1), ((1, 0), 1), ((0, 0), 1)]
    with pytest.raises(UsageError, match="branch"):
        Beam(total, branch=0)


def test_what_has_no_score_comes_last_and_tasks_are_apart() -> None:
    def score(task: Task, text: str) -> float | None:
        return None if text.startswith("3") else -total(task, text) if task.id == "low" else total(task, text)

    engine = Digits()
    tasks = [Task("high", ""), Task("low", "")]
    high, low = Beam(score, Sampling(9), 2, (), 1)(tasks, engine, 4, np.random.default_rng(0))
    assert (high.text, low.text) == ("211", "000") and high.meta["unscored"] == low.meta["unscored"] == 1
    assert engine.asked[:2] == [((), 4), ((), 4)] and engine.asked[2:6] == [((2,), 2), ((1,), 2), ((0,), 2), ((1,), 2)]


class Dear:
    """The sum of digits at two tokens an opinion."""

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        return [Score(total(task, e.text), 2) for task, e in pairs]

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        return 2


@pytest.mark.parametrize(
    ("tokens", "text", "asked", "scoring"),
    [
        # Steps of one token at two for an opinion: two of them, and with three tokens left one more.
        (9, "10", [((), 2), ((1,), 1)], 6),
        # Two tokens pay for no opinion: the best beginning goes on without one.
        (8, "10", [((), 2), ((1,), 1)], 4),
        (6, "1", [((), 2)], 4),
        # The first step is made whatever it costs, and the rest of its response.
        (2, "00", [((), 1), ((0,), 1)], 0),
        (1, "0", [((), 1)], 0),
    ],
)
def test_a_beam_goes_as_far_as_its_tokens(tokens: int, text: str, asked: list[object], scoring: int) -> None:
    engine = Digits()
    [answer] = Beam(Dear(), Sampling(3), 2, (), 1)([Task("t", "")], engine, Budget(2, tokens), np.random.default_rng(0))
    assert (answer.text, answer.scoring, answer.tokens <= tokens) == (text, scoring, True)
    assert engine.asked == asked


def test_a_task_that_is_done_holds_up_no_other() -> None:
    engine = Digits()
    tasks = [Task("a", "short"), Task("b", ""), Task("c", "short")]
    found = Beam(total, Sampling(9), 2, (), 1)(tasks, engine, 2, np.random.default_rng(0))
    assert [a.text for a in found] == ["1", "111", "1"]


def test_what_a_value_costs_and_what_has_none() -> None:
    """On a tree, by a head that knows only the node after token 1; responses of other lengths beside each other."""
    tree = Tree.of([[0.0, [1.0, 0.0]], 0.0])
    policy = TabularPolicy(tree)
    engine, head = TabularEngine(policy), ValueHead(width(policy))
    with torch.no_grad():
        head.linear.weight[0, tree.node([0, 1])] = np.log(3)
    none = np.zeros(0, dtype=np.int64)
    paths = [np.array([0, 1]), np.array([1]), none]
    pairs = [(Task("t", ""), Episode(none, p, p >= 0, None, "", "eos")) for p in paths]
    found = ByValueHead(head).score(pairs, engine, np.random.default_rng(0))
    assert [s.value for s in found] == pytest.approx([0.75, 0.5, None]) and [s.tokens for s in found] == [0, 0, 0]
    assert ByValueHead(head).score([], engine, np.random.default_rng(0)) == []
    assert ByValueHead(head).most(pairs[0][0], 5, engine) == ByValueHead(head).most(*pairs[0], engine) == 0
    with pytest.raises(UsageError, match="does not give"):
        ByValueHead(head).score(pairs, Digits(), np.random.default_rng(0))
    own = ByValueHead(head, policy)
    assert own.most(*pairs[0], engine) == 2 and [s.tokens for s in own.score(pairs, engine, RNG)] == [2, 1, 0]


RNG = np.random.default_rng(0)


def test_the_paper_names_the_search(tmp_path: Path) -> None:
    head = ValueHead(3)
    head.save(tmp_path / "head.safetensors")
    factory = catalogue.find("S120").factory
    assert factory is not None
    made = factory(head)
    assert isinstance(made, Beam) and made.scorer == ByValueHead(head) and made.sampling == Sampling()
    assert (made.branch, made.stop, made.step) == (4, ("\n",), 256) == (Beam().branch, Beam().stop, Beam().step)
    assert isinstance(factory(str(tmp_path / "head.safetensors")).scorer, ByValueHead)
    assert not isinstance(factory("confidence", Sampling(7)).scorer, ByValueHead)
    assert factory("confidence", Sampling(7)).sampling == Sampling(7)


def test_search_by_exact_values_does_what_it_should(tmp_path: Path) -> None:
    """With the exact value of every node and leaf as the head, the beam finds a right leaf wherever it sampled one."""
    tree = Tree.uniform(3, 3, rewards=[float(i == 13) for i in range(27)])
    policy = TabularPolicy(tree)
    head = ValueHead(width(policy))
    with torch.no_grad():
        head.linear.weight.fill_(-5)
        for node in ([1], [1, 1]):
            head.linear.weight[0, tree.node(node)] = 5
        head.linear.weight[0, policy.width + 13] = 5
    head.save(tmp_path / "head.safetensors")
    strategy = catalogue.find("S120").factory(  # type: ignore[misc]
        str(tmp_path / "head.safetensors"), Sampling(3), branch=12, stop=(), step=1
    )
    assert isinstance(strategy, Strategy)
    answers = strategy([Task(str(i), "") for i in range(200)], TabularEngine(policy), 12, np.random.default_rng(0))
    share = np.mean([a.text == "1/1/1" for a in answers])
    assert abs(share - (1 - (2 / 3) ** 12) ** 3) < 0.06
    assert {a.scoring for a in answers} == {0}


def test_a_head_on_a_tree_learns_the_labels_and_outcome_labels_have_the_same_gradient() -> None:
    tree = Tree.uniform(2, 3, rewards=[1, 0, 0, 1, 1, 1, 0, 0])
    policy = TabularPolicy.random(tree, seed=0)
    groups = judged(policy, 60)
    heads = [
        ValueTraining(labels, epochs=400, lr=0.1).fit(policy, groups, np.random.default_rng(0))  # type: ignore[arg-type]
        for labels in ("tokens", "outcome")
    ]
    episodes = groups[0].episodes
    labels = prefix_values([e.tokens for e in episodes], [v.passed is True for v in groups[0].verdicts])
    for h, expected in zip(states(policy, episodes), labels, strict=True):
        assert heads[0](h).detach().numpy() == pytest.approx(expected, abs=0.05)
    for a, b in zip(heads[0].parameters(), heads[1].parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-3)
    bce = ValueTraining(loss="bce", epochs=200, lr=0.1).fit(policy, groups, np.random.default_rng(0))
    first = states(policy, episodes[:1])[0]
    assert bce(first).detach().numpy() == pytest.approx(labels[0], abs=0.05)


@pytest.mark.slow
def test_value_and_language_are_learned_together() -> None:
    """Beside the values of 12 solutions a tree's policy learns how often each token was taken; without a weight, not.

    -log pi is log 3 a token of a uniform tree, and at its least the entropy of the counts.
    """
    tree = Tree.uniform(3, 2, rewards=[float(i in (1, 4)) for i in range(9)])
    groups = judged(TabularPolicy(tree), 12)
    taken = groups[0].episodes
    paths = [tuple(e.tokens.tolist()) for e in taken]
    counts = Counter(path[:n] for path in paths for n in range(3))
    least = -np.mean([np.log(counts[path[: n + 1]] / counts[path[:n]]) for path in paths for n in range(2)])
    right = prefix_values([e.tokens for e in taken], [v.passed is True for v in groups[0].verdicts])
    for weight, surprised in ((0.0, np.log(3)), (0.5, least)):
        policy = TabularPolicy(tree)
        training = ValueTraining(epochs=150, lr=0.1, backbone_lr=0.1, language=weight)
        head = training.fit(policy, groups, np.random.default_rng(0))
        with torch.no_grad():
            assert surprise(policy, taken).item() == pytest.approx(surprised, abs=0.02)
            assert surprise(policy, taken, budget=1).item() == pytest.approx(surprised, abs=0.02), "in many passes"
            for h, expected in zip(states(policy, taken), right, strict=True):
                assert head(h).numpy() == pytest.approx(expected, abs=0.1)
    assert least < np.log(3) - 0.05
    for bad in ({"language": 0.5}, {"language": -1.0, "backbone_lr": 1e-3}):
        with pytest.raises(UsageError, match="language"):
            ValueTraining(**bad)


@pytest.mark.slow
def test_labels_converge_to_the_values_of_the_tree() -> None:
    """The mean error at depth one shrinks about as one over the square root of the number of solutions."""
    tree = Tree.uniform(3, 3, rewards=[float(i % 4 == 0) for i in range(27)])
    policy = TabularPolicy.random(tree, seed=1)
    p = policy.leaf_logprobs().exp().detach().numpy().reshape(3, 9)
    exact = (p * tree.rewards.numpy().reshape(3, 9)).sum(-1) / p.sum(-1)
    engine, verifier = TabularEngine(policy), TabularVerifier(tree)
    errors = []
    for n in (25, 400):
        gaps = []
        for seed in range(30):
            [episodes] = engine.generate([Request("", n, Sampling(3), seed)])
            right = [verifier(Task("t", ""), e.text).passed is True for e in episodes]
            for e, labels in zip(episodes, prefix_values([e.tokens for e in episodes], right), strict=True):
                gaps.append(abs(labels[0] - exact[e.tokens[0]]))
        errors.append(float(np.mean(gaps)))
    assert 2.5 < errors[0] / errors[1] < 6.5


def test_the_setting_runs(tmp_path: Path) -> None:
    setting = load("guided", {"repeats": 10, "problems": 2, "solutions": 30})
    values = {"labels": "tokens", "epochs": 30, "lr": 0.1}
    found = setting.run({"name": "beam", "stop": (), "step": 1, "values": values}, 0, tmp_path)
    plain = setting.run({"name": "majority", "ballot": {"equal": "exact"}}, 0, tmp_path)
    assert found["tokens"] == plain["tokens"] == 16
    assert found["single"] == plain["single"]


def test_a_value_model_of_its_own_learns_below_the_head_and_is_paid_for() -> None:
    torch.manual_seed(0)
    config = ModelConfig(source="nano", nano={"hidden": 16, "layers": 2, "heads": 2, "context": 64})
    policy = CausalLM.load(config, 0)
    engine, value = HFEngine(policy), policy.twin()
    tasks = [Task(str(i), f"{i}+1=") for i in range(4)]
    groups = []
    for task, episodes in zip(
        tasks, engine.generate([Request(t.prompt, 6, Sampling(5), 1) for t in tasks]), strict=True
    ):
        verdicts = tuple(Verdict.right() if len(e.text) % 2 else Verdict.wrong() for e in episodes)
        groups.append(Group(Ask(task, 6), tuple(episodes), verdicts))
    before = [p.clone() for p in value.module.parameters()]
    head = ValueTraining(epochs=4, backbone_lr=1e-3).fit(value, groups, np.random.default_rng(0))
    assert any(not torch.equal(a, b) for a, b in zip(before, value.module.parameters(), strict=True))
    fixed = [p.clone() for p in policy.module.parameters()]
    alone = ValueTraining(epochs=4).fit(policy, groups, np.random.default_rng(0))
    assert all(torch.equal(a, b) for a, b in zip(fixed, policy.module.parameters(), strict=True))
    e = groups[0].episodes[0]
    pairs = [(tasks[0], e)]
    own, other = ByValueHead(alone), ByValueHead(head, value)
    assert own.score(pairs, engine, np.random.default_rng(0))[0].tokens == 0
    assert other.score(pairs, engine, np.random.default_rng(0))[0].tokens == len(e.prompt) + len(e.tokens)
    assert other.most(tasks[0], 5, engine) == len(e.prompt) + 5
