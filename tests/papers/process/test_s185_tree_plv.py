"""S185: pairs of siblings a margin apart, the loss from the fork on, and scorers made by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from assay import catalogue
from assay.config import load_config
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.inference.sampling.best_of_n import BestOfN
from assay.inference.scoring.scorers import BySteps
from assay.inference.search.stepping import Stepping
from assay.inference.supervision.completing import Completer
from assay.inference.supervision.searches import BestFirst
from assay.inference.supervision.train import fit_prm, sampled_rows
from assay.lab.settings import load
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.step_models.examples import StepExample, StepPair
from assay.rewards.step_models.losses import pair_loss
from assay.rewards.step_models.training import StepTraining
from assay.signals.steps import Steps
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")

ONE = Steps("fixed", 1)


def test_the_loss_from_the_fork_on() -> None:
    better, worse = (torch.tensor(x, dtype=torch.float64) for x in ([3.0, 0.5, 1.0], [3.0, 0.0, 0.0]))
    assert float(pair_loss(better, worse, 1)) == pytest.approx(0.7873387, abs=1e-6)
    # Before the fork nothing is compared: both are the same there.
    assert float(pair_loss(better + torch.tensor([9.0, 0, 0]), worse, 1)) == pytest.approx(0.7873387, abs=1e-6)
    assert float(pair_loss(better, worse, 1, "last")) == pytest.approx(0.3132617, abs=1e-6)
    assert float(pair_loss(better, worse, 1, "fork")) == pytest.approx(0.4740770, abs=1e-6)


def test_pairs_are_a_margin_apart() -> None:
    """All siblings of a tree whose values are known: .875, .5 and .25 after the question."""
    policy = TabularPolicy(Tree.uniform(3, 2, [1.0] * 9))
    made = Completer(TabularEngine(policy), TabularVerifier(policy.tree), Sampling(2), ONE, Stepping((), 1))
    [tree] = made.grow([Task("t", "")], BestFirst(8, 9, 1), 0)
    for node in tree:
        if node.episode is not None and node.length == 1:
            node.right, node.tried = {0: 7, 1: 4, 2: 2}[int(node.episode.tokens[0])], 8
    method = catalogue.make("S185")
    pairs = method.data(tree)
    firsts = {(p.better.steps[0], p.worse.steps[0]) for p in pairs}
    # .875 - .5 is .375 and kept, .5 - .25 is dropped.
    assert firsts == {("0", "1"), ("0", "2")} and all(isinstance(p, StepPair) and p.fork == 0 for p in pairs)
    assert all(len(p.better.steps) == len(p.worse.steps) == 2 for p in pairs)
    assert len(catalogue.make("S185", margin=0.25).data(tree)) == 3
    assert (method.pairs, method.search, method.training.compared) == (0.375, BestFirst(8, 4, 16), "steps")


@pytest.mark.slow
def test_what_it_is_compared_with() -> None:
    """One setting, one tree: pairs of steps, of whole responses, and labels of single steps."""
    setting = load("step_features", {"problems": 3, "asked": 8, "expansions": 4, "samples": 4})
    arms: dict[str, dict[str, Any]] = {
        "pairs": {"method": "S185"},
        "last": {"method": "S185", "options": {"compared": "last"}},
        "labels": {"method": "S185", "loss": "hard"},
    }
    found = {name: setting.run(arm, 0, Path()) for name, arm in arms.items()}
    assert found["pairs"]["calls"] == found["labels"]["calls"] and found["pairs"]["rows"] == found["last"]["rows"]
    assert found["pairs"]["rows"] != found["labels"]["rows"]
    assert found["pairs"]["single"] <= found["pairs"]["accuracy"] <= found["pairs"]["oracle"]
    assert len({tuple(f.values()) for f in found.values()}) == 3


class Planes:
    """Scores that are linear in features of steps."""

    def __init__(self, features: dict[str, np.ndarray]):
        self.features = {k: torch.from_numpy(v).float() for k, v in features.items()}
        self.weights = torch.zeros(len(next(iter(features.values()))), requires_grad=True)

    def read(self, rows):
        found = [torch.stack([self.features[s] for s in row.steps]) for row in rows]
        return [(x @ self.weights, x) for x in found]

    def views(self, rows):
        return [[z for z, _ in self.read(rows)]]

    def train(self, learning):
        pass

    def groups(self, lr, trunk_lr):
        return [{"params": [self.weights], "lr": lr}]

    def parts(self, rows):
        return [list(range(len(rows)))] if rows else []

    def save(self, folder):
        raise NotImplementedError


@pytest.mark.slow
def test_pairs_rank_better_than_noisy_labels() -> None:
    """Steps of known worth; one in five of the responses that are labelled right is not."""
    taus = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        features = {str(i): rng.standard_normal(8) for i in range(120)}
        truth = rng.standard_normal(8)
        worth = {k: float(v @ truth) for k, v in features.items()}
        names = list(features)
        pairs, labelled, task = [], [], Task("t", "")
        for _ in range(100):
            a, b = rng.choice(names, 2, replace=False)
            better, worse = (a, b) if worth[a] > worth[b] else (b, a)
            pairs.append(StepPair(StepExample(task, (better,)), StepExample(task, (worse,)), 0))
            for name in (a, b):
                right = worth[name] > 0
                labelled.append(StepExample(task, (name,), (float(right or rng.random() < 0.2),)))
        found = []
        for data in (pairs, labelled):
            model = Planes(features)
            StepTraining("hard", epochs=12, batch=50, lr=0.2).fit(model, data, np.random.default_rng(0))
            scores = [float(model.features[n] @ model.weights.detach()) for n in names]
            found.append(float(stats.kendalltau(scores, [worth[n] for n in names]).statistic))
        taus.append(found)
    by_pairs, by_labels = np.array(taus).T
    assert by_pairs.mean() > by_labels.mean() + 0.02 and by_pairs.mean() > 0.8


def test_made_and_used(tmp_path: Path) -> None:
    """A language model's own tree, a scorer learned from its pairs, and the best of its responses."""
    config = load_config(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24, "alphabet": "01234+=%5\n"}},
            "tasks": {"source": {"name": "chain", "length": 1, "ops": "+", "modulus": 5}, "eval_size": 1},
            "rollout": {"max_tokens": 6},
        }
    )
    policy = CausalLM.load(config.model)

    class Named:
        pass

    target: Any = Named()
    target.config = config
    method = catalogue.make("S185", completions=4, branch=6, expansions=4, margin=0.01, training={"epochs": 3})
    # Whether it is right is a matter of chance, but some step is better than its sibling.
    rows, calls, tokens = sampled_rows(target, policy, method, 4, Steps("fixed", 1))
    assert calls > 0 and tokens >= calls and all(isinstance(row, StepPair) for row in rows)
    if len({r.better.task.id for r in rows}) >= 4:
        fit_prm(method, method.settings.made(policy), rows)
    model = method.settings.made(policy)
    best = BestOfN(BySteps(model, Steps("fixed", 1), "last"), Sampling(6))
    [answer] = best([Task("t", "1+1%5=")], HFEngine(policy), 3, np.random.default_rng(0))
    assert len(answer.episodes) == 3 and answer.meta["unscored"] == 0
