"""Implicit process rewards: worked numbers, the soft value on a tree, and a run whose folder is a scorer."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, recipe

import assay
from assay.batch import Batch
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.inference.named import make_strategy
from assay.inference.scoring.implicit import ByImplicitReward
from assay.inference.scoring.scorers import as_scorer
from assay.lab.settings import load
from assay.learning.signals import compute_signals
from assay.learning.update import update
from assay.method import make_method
from assay.objectives.outcome_classifier import OutcomeClassifier
from assay.objectives.preference import DPO, KTO, NCA
from assay.ops.outcome_losses import outcome_loss
from assay.papers.process.s197_implicit_prm import implicit_prm
from assay.policies.base import PolicyOutput
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.process.implicit_prm import ImplicitPRM, first_below
from assay.rewards.process.step_scores import make_scorer
from assay.signals.base import Models
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group, Span, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
NONE = np.zeros(0, dtype=np.int64)
Q = [0.2, -0.1, 0.4, -0.5, -0.6]


class Said(TabularPolicy):
    """A policy whose log-probabilities are given."""

    def __init__(self, *rows: Sequence[float]):
        super().__init__(Tree.uniform(2, 1))
        self.rows = rows

    def micro_batches(self, batch: Batch, budget: int) -> list[torch.Tensor]:
        return [torch.arange(len(batch))]

    def forward(self, batch: Batch, live: Any = (), temperature: float = 1.0) -> PolicyOutput:
        out = torch.zeros(batch.tokens.shape, dtype=torch.float64)
        for row, values in zip(out, self.rows, strict=True):
            row[: len(values)] = torch.tensor(values, dtype=torch.float64)
        return PolicyOutput(out)


def episode(length: int, *ends: int) -> Episode:
    spans = tuple(Span("step", a, b) for a, b in zip((0, *ends), ends, strict=False))
    tokens = np.arange(length)
    return Episode(NONE, tokens, tokens >= 0, None, "", "eos", spans=spans)


def test_the_worked_example() -> None:
    prm = ImplicitPRM(Said([q - 1 for q in Q]), Said([-1.0] * 5), of="reward")
    [rewards] = prm.token_rewards([(Task("t", ""), episode(5))])
    assert np.cumsum(rewards) == pytest.approx([0.01, 0.005, 0.025, 0.0, -0.03])
    assert prm.scored(rewards, [2, 3, 5]) == pytest.approx([0.005, 0.02, -0.055])
    prm.of = "value"
    sigmoids = [1 / (1 + math.exp(-x)) for x in (0.005, 0.025, -0.03)]
    assert prm.scored(rewards, [2, 3, 5]) == pytest.approx([2 * s - 1 for s in sigmoids])
    # As a scorer of responses: the least, the sum, the last, each under a sigmoid.
    pair = (Task("t", ""), episode(5, 2, 3, 5))
    engine: Any = TabularEngine(TabularPolicy(Tree.uniform(2, 1)))
    prm.of = "reward"
    for reduce, value in (("min", -0.055), ("sum", -0.03), ("mean", -0.01), ("max", 0.02)):
        [found] = ByImplicitReward(prm, reduce=reduce).score([pair], engine, RNG)  # type: ignore[arg-type]
        assert found.value == pytest.approx(1 / (1 + math.exp(-value))) and found.tokens == 10
    assert ByImplicitReward(prm).most(*pair, engine) == ByImplicitReward(prm).most(pair[0], 5, engine) == 10
    # A long response that is most unlikely is worth nothing, and no error.
    unlikely = ImplicitPRM(prm.policy, prm.reference, beta=1e6)
    [found] = ByImplicitReward(unlikely, reduce="sum").score([pair], engine, RNG)  # type: ignore[arg-type]
    assert found.value == 0
    nothing = (Task("t", ""), episode(0))
    assert [s.value for s in ByImplicitReward(prm).score([nothing], engine, RNG)] == [None]
    with pytest.raises(UsageError, match="beta"):
        ImplicitPRM(Said(), None, beta=0.0)


def test_the_losses_of_the_worked_example() -> None:
    """Cross entropy of h = -.6, beta .05; ln 2 where nothing is learned."""
    h, one = torch.tensor([sum(Q)], dtype=torch.float64), torch.ones(1, dtype=torch.bool)
    found = [outcome_loss(h, torch.tensor([x]), torch.zeros(1).long(), one, 0.05).item() for x in (True, False)]
    assert found == pytest.approx([0.7082597, 0.6782597], abs=1e-7)
    assert outcome_loss(0 * h, one, torch.zeros(1).long(), one, 0.05).item() == pytest.approx(math.log(2))
    policy = TabularPolicy.random(TREE, 0)
    batch = whole(policy, policy)
    loss = OutcomeClassifier()(batch.signals["reference_logprobs"].clone(), batch)
    assert loss.value.item() == pytest.approx(math.log(2))


def test_right_and_wrong_weigh_the_same() -> None:
    """h = .6 and -.4 of right responses, 0 of a wrong one: 3/4 of either right one, 3/2 of the wrong one."""
    ids = np.zeros(1, dtype=np.int64)
    episodes = tuple(Episode(NONE, ids, ids == 0, None, "", "eos") for _ in range(3))
    verdicts = [Verdict.right(), Verdict.right(), Verdict.wrong()]
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 3), episodes).judged(verdicts)], torch.float64)
    batch.signals["reference_logprobs"] = torch.full((3, 1), -1.0, dtype=torch.float64)
    batch.weights = torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64)
    logprobs = torch.tensor([[-0.4], [-1.4], [-1.0]], dtype=torch.float64)
    found = OutcomeClassifier(0.5, balanced=True)(logprobs, batch)
    each = [math.log1p(math.exp(-0.3)), math.log1p(math.exp(0.2)), math.log(2)]
    assert found.value.item() == pytest.approx((0.75 * each[0] + 2 * 0.75 * each[1] + 1.5 * each[2]) / 3)
    # An h of 0 calls nothing right.
    assert found.metrics == {"outcome/accuracy": pytest.approx(2 / 3)}
    del batch.signals["outcome_classifier_balance"]
    plain = OutcomeClassifier(0.5)(logprobs, batch).value.item()
    assert plain == pytest.approx((each[0] + 2 * each[1] + each[2]) / 3)
    batch.weights[:] = 0
    assert OutcomeClassifier()(logprobs, batch).metrics == {} and OutcomeClassifier()(logprobs, batch).value == 0
    with pytest.raises(UsageError, match="above 0"):
        OutcomeClassifier(0.0)


def test_the_four_losses_are_objectives_by_verdict() -> None:
    assert implicit_prm().objective == OutcomeClassifier(0.05, "verdict", balanced=True)
    assert implicit_prm("dpo", 0.1).objective == DPO(0.1, "verdict")
    assert implicit_prm("kto").objective == KTO(0.05, by="verdict")
    assert implicit_prm("nca").objective == NCA(0.05, "verdict")
    assert implicit_prm(balanced=False).objective == OutcomeClassifier(0.05, "verdict")
    assert implicit_prm().rollout == "recorded"
    assert OutcomeClassifier() == OutcomeClassifier(0.05, "verdict", 0.5, False)


TREE = Tree.uniform(3, 3, rewards=[float(all(t != 2 for t in (i // 9, i // 3 % 3, i % 3))) for i in range(27)])
"""Right is what has no token 2."""


def whole(policy: TabularPolicy, reference: TabularPolicy) -> Batch:
    """Every leaf once, judged."""
    tree = policy.tree
    episodes = tuple(policy.leaf_episodes(torch.arange(len(tree))))
    verdicts = [Verdict(float(r), bool(r > 0.5)) for r in tree.rewards.tolist()]
    batch = Batch.from_groups([Group(Ask(Task("t", ""), len(tree)), episodes).judged(verdicts)], torch.float64)
    method = make_method("S197")
    compute_signals(batch, method.needs, Models(policy, reference))
    return method.value(batch)


def values(prm: ImplicitPRM, policy: TabularPolicy) -> tuple[list[np.ndarray], np.ndarray]:
    """Q_t of every token of every path, and log-probabilities of the paths under the reference."""
    episodes = policy.leaf_episodes(torch.arange(len(policy.tree)))
    rewards = prm.token_rewards([(Task("t", ""), e) for e in episodes])
    reference: Any = prm.reference
    return [np.cumsum(r) for r in rewards], reference.leaf_logprobs().detach().numpy()


def soft_value(paths: Sequence[tuple[int, ...]], logp: np.ndarray, r: np.ndarray, beta: float, at: Any) -> float:
    """beta log E_ref[exp(r / beta) | prefix], by adding up the paths that begin so."""
    inside = [i for i, path in enumerate(paths) if path[: len(at)] == tuple(at)]
    weights = np.exp(logp[inside] - np.logaddexp.reduce(logp[inside]))
    return float(beta * np.log(np.sum(weights * np.exp(r[inside] / beta))))


def test_the_value_of_a_prefix_is_exact() -> None:
    """phi = ref exp(r / beta) / Z on a tree of unequal depth: Q_t = beta log E exp(r / beta) - beta log Z, to 1e-9."""
    beta = 0.3
    tree = Tree.of([[0.4, [-0.2, 0.9]], [[0.1, 0.7, -0.5], 0.3], -0.8])
    reference = TabularPolicy.random(tree, 3)
    r, logp = tree.rewards.numpy(), reference.leaf_logprobs().detach().numpy()
    log_ref = reference.log_policy().detach()
    phi = TabularPolicy(tree)
    everything = soft_value(tree.paths, logp, r, beta, ())
    with torch.no_grad():
        for path in tree.paths:
            for t in range(len(path)):
                node = tree.node(path[:t])
                value = soft_value(tree.paths, logp, r, beta, path[: t + 1])
                phi.logits[node, path[t]] = log_ref[node, path[t]] + value / beta
    found, _ = values(ImplicitPRM(phi, reference, beta), phi)
    for path, row in zip(tree.paths, found, strict=True):
        for t in range(len(path)):
            expected = soft_value(tree.paths, logp, r, beta, path[: t + 1]) - everything
            assert row[t] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("loss", ["ce", "dpo", "kto", "nca"])
def test_the_wrong_step_has_the_least_reward(loss: Any) -> None:
    """Taught by outcomes alone, the step to token 2 has the least reward; Q is the soft value of Q_T.

    The latter holds at any weights, with Q_T in place of r, because phi's and ref's probabilities add up to 1.
    """
    reference = TabularPolicy(TREE)
    phi, method = reference.twin(), make_method("S197", options={"loss": loss, "beta": 0.5})
    batch = whole(phi, reference)
    compute_signals(batch, method.needs, Models(phi, reference))
    optimizer = torch.optim.Adam(phi.module.parameters(), lr=0.1)
    losses = [update(phi, method.objective, batch, optimizer, max_grad_norm=math.inf)[0]["loss"] for _ in range(60)]
    assert losses[-1] < losses[0]
    prm = ImplicitPRM(phi, reference, 0.5)
    found, logp = values(prm, phi)
    for path, row in zip(TREE.paths, found, strict=True):
        if 2 in path:
            first = path.index(2)
            rewards = np.diff(row, prepend=0.0)
            assert rewards[first] < -0.3 and rewards[first] == min(rewards[: first + 1])
            assert all(rewards[:first] > -0.05)
        else:
            assert row[-1] > 0
    last = np.array([row[-1] for row in found])
    for at in ((0,), (1, 0), (2, 2)):
        row = found[TREE.paths.index((*at, *(0,) * (3 - len(at))))]
        assert row[len(at) - 1] == pytest.approx(soft_value(TREE.paths, logp, last, 0.5, at), abs=1e-9)


def test_the_rule_of_the_first_error() -> None:
    assert first_below([0.9, 0.4, 0.2], 0.5) == 1
    assert first_below([0.9, 0.5], 0.5) == -1 and first_below([], 0.5) == -1


def test_the_reference_may_be_left_out() -> None:
    prm = ImplicitPRM(Said([-1.0, -2.0]), None, beta=0.1)
    [rewards] = prm.token_rewards([(Task("t", ""), episode(2))])
    assert rewards.tolist() == pytest.approx([-0.1, -0.2])
    engine: Any = TabularEngine(TabularPolicy(Tree.uniform(2, 1)))
    assert ByImplicitReward(prm).most(Task("t", ""), 5, engine) == 5


@pytest.mark.slow
def test_the_setting_runs(tmp_path: Path) -> None:
    setting = load("guided", {"repeats": 100, "problems": 2, "solutions": 300})
    found = setting.run(
        {"name": "best_of_n", "implicit": {"epochs": 100, "lr": 0.3, "method": {"name": "S197"}}}, 0, tmp_path
    )
    assert found["tokens"] == 16 + 2 * 4 * (1 + 4) and found["accuracy"] > 2 * found["single"]


SOLUTIONS = ("1\n23", "1\n73", "4\n5", "7\n5")


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 12 steps on the recorded responses to four questions, of which those with a 7 are wrong."""
    folder = tmp_path_factory.mktemp("prm")
    rows = [
        {
            "id": str(i),
            "prompt": f"{i}+1=",
            "answer": str(i + 1),
            "responses": [
                {"text": text, "reward": float("7" not in text)} for text in ("1\n23", "1\n73", "4\n5", "7\n5")
            ],
        }
        for i in range(12)
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"name": "file", "path": str(folder / "tasks.jsonl"), "meta": ["responses"]}
    made = recipe(
        folder / "run",
        method={"name": "S197", "options": {"beta": 0.5}, "reward": None},
        tasks={"source": source, "eval_size": 1, "eval_share": 0.25},
        train={"steps": 12, "lr": 3e-3, "mini_batches": 1, "epochs": 1},
        rollout={"prompts": 3, "group": 4, "max_tokens": 8},
        warmup={"steps": 0},
        evaluate={"every": 0, "samples": 1},
        run={"checkpoint_every": 12},
    )
    made["model"]["nano"]["alphabet"] = "0123456789+=\n"
    assay.train(made, quiet=True)
    return folder / "run"


def test_it_is_trained_from_records_and_chooses_among_samples(taught: Path) -> None:
    steps = [row for row in metrics(taught) if row["stage"] == "rl"]
    assert steps[0]["loss"] == pytest.approx(math.log(2), abs=1e-4) and steps[-1]["loss"] < 0.5
    scorer = make_scorer(str(taught))
    assert isinstance(scorer, ImplicitPRM) and (scorer.beta, scorer.of) == (0.05, "reward")
    task = Task("t", "3+1=")
    [good, bad, late] = scorer.scores([(task, ["1\n", "23"]), (task, ["1\n", "73"]), (task, ["7", "5"])])
    # The step that has the 7 is the worst, by its own tokens.
    assert bad[1] < min(good) and late[0] < min(good) and late[0] < late[1]
    whole = scorer.token_rewards([(task, scorer.episode(task, "1\n23"))])[0]
    assert sum(good) == pytest.approx(whole.sum()) and len(whole) == 5
    assert good[0] == pytest.approx(whole[:2].sum())
    # What stands between steps is put there where they do not end in white space; no steps, no scores.
    apart = ImplicitPRM(scorer.policy, scorer.reference, separator="\n")
    assert apart.scores([(task, ["1", "23"]), (task, [])]) == [pytest.approx(good), []]
    by_name = as_scorer({"name": "implicit", "prm": str(taught), "reduce": "sum", "by": {"by": "newline"}})
    engine = HFEngine(scorer.policy)
    e = Episode(engine.encode(task.prompt), engine.encode_response("1\n73"), NONE, None, "1\n73", "eos")
    [found] = by_name.score([(task, e)], engine, RNG)
    assert found.value == pytest.approx(1 / (1 + math.exp(-sum(bad)))) and found.tokens == 2 * (len(e.prompt) + 5)
    strategy = make_strategy({"name": "best_of_n", "scorer": by_name})
    [answer] = strategy([task], engine, 4, np.random.default_rng(1))
    scores = [s.value for s in by_name.score([(task, e) for e in answer.episodes], engine, RNG)]
    assert answer.text == answer.episodes[int(np.argmax(scores))].text and len(set(scores)) > 1


def test_the_folder_of_a_run_says_what_it_lacks(taught: Path, tmp_path: Path) -> None:
    alone = ImplicitPRM.of_run(taught, "none", beta=0.2)
    assert alone.reference is None and alone.beta == 0.2
    named = ImplicitPRM.of_run(taught, str(taught))
    task = Task("t", "3+1=")
    assert named.scores([(task, ["12"])]) == [[0.0]]
    (tmp_path / "config.toml").write_text((taught / "config.toml").read_text())
    shutil.copytree(taught / "checkpoints", tmp_path / "checkpoints")
    with pytest.raises(UsageError, match="keeps no reference policy"):
        ImplicitPRM.of_run(tmp_path)
    assert Steps("fixed", 1) == ByImplicitReward(alone, by=Steps("fixed", 1)).by
