"""What holds for every paper's method, whatever it does: it survives what a run can throw at it, and it trains."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run, weights

from assay import papers
from assay.batch import Batch
from assay.errors import UsageError
from assay.method import Method, make_method
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.signals.base import Models
from assay.training.signals import compute_signals, wants_reference
from assay.training.update import update
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS = [row for row in papers.rows() if row.factory is not None]
SHORT = {"train": {"steps": 2, "mini_batches": 1, "epochs": 2}, "warmup": {"steps": 0}, "evaluate": {"every": 0}}
NANO = {"source": "nano", "nano": {"hidden": 16, "layers": 2, "heads": 2, "context": 64}}


def made(row: papers.PaperRow) -> Method | None:
    """The paper's method, or nothing if it is no training method or wants to be told something."""
    assert row.factory is not None
    try:
        found = row.factory()
    except TypeError:
        return None
    return found if isinstance(found, Method) else None


METHODS = [row.id for row in ROWS if made(row) is not None]


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    torch.manual_seed(0)
    policy = CausalLM.load(ModelConfig(**NANO), 0)
    policy.module.double()
    return policy


def group(policy: CausalLM, name: str, lengths: list[int], right: list[bool | None], seed: int = 0) -> Group:
    """Random responses of given lengths and verdicts; sampled by a policy near this one."""
    rng = np.random.default_rng([seed, len(name), sum(lengths)])
    prompt = policy.encode(f"{len(name)}+2=")
    episodes, verdicts = [], []
    for length, passed in zip(lengths, right, strict=True):
        tokens = rng.integers(4, 14, length)
        logprobs = (-2.5 + 0.2 * rng.standard_normal(length)).astype(np.float32)
        entropies = (2 + 0.1 * rng.standard_normal(length)).astype(np.float32)
        text = policy.decode(tokens)
        stop = "eos" if length % 2 else "length"
        mask = np.ones(length, dtype=bool)
        episodes.append(Episode(prompt, tokens, mask, logprobs, text, stop, entropies))
        score = {True: 1.0, False: 0.0, None: 0.0}[passed]
        verdicts.append(Verdict(score, passed, {"a": score}, "" if passed is not None else "timed out"))
    task = Task(name, f"{len(name)}+2=", reference="3", solution="3")
    return Group(Ask(task, len(lengths)), tuple(episodes), tuple(verdicts))


CASES: dict[str, list[tuple[list[int], list[bool | None]]]] = {
    "mixed": [([3, 5, 2, 4], [True, False, False, True]), ([4, 1, 6, 2], [False, False, True, False])],
    "all right": [([3, 5, 2], [True, True, True]), ([2, 2, 2], [True, True, True])],
    "all wrong": [([3, 5, 2], [False, False, False])],
    "one token, none": [([1, 0, 1, 0], [True, False, False, True])],
    "abstentions": [([3, 5, 2, 4], [True, None, False, None]), ([3, 2], [None, None])],
    "one response": [([4], [True])],
    "one right in many": [([3] * 8, [True] + [False] * 7)],
}


def batch_of(policy: CausalLM, case: str) -> Batch:
    groups = [group(policy, "t" * (i + 1), *shape, seed=i) for i, shape in enumerate(CASES[case])]
    return Batch.from_groups(groups, torch.float64)


def valued(method: Method, policy: CausalLM, batch: Batch) -> tuple[Batch, Models]:
    reference = policy.twin() if wants_reference(method.needs) else None
    models = Models(policy, reference, encode=policy.encode)
    torch.manual_seed(0)
    for learner in method.learners:
        learner.start(models)
    compute_signals(batch, method.needs, models)
    method.value(batch)
    return batch, models


def gradient(policy: CausalLM, method: Method, batch: Batch, budget: int = 8192) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradient of a mini-batch, the weights left alone."""
    parameters = list(policy.module.parameters())
    found: list[torch.Tensor] = []

    class Keep(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            found.extend(torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters)

    result, _ = update(
        policy,
        method.objective,
        batch,
        Keep(parameters, {}),
        live=method.live,
        token_budget=budget,
        max_grad_norm=math.inf,
        skip_idle=getattr(method.objective, "zero_advantage_is_idle", False),
    )
    return result["loss"], found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("key", METHODS)
def test_nothing_a_run_can_bring_makes_a_nan(key: str, case: str, policy: CausalLM) -> None:
    """Equal rewards, empty responses, abstentions, groups of one: finite rewards, advantages, loss and gradient."""
    method = papers.make(key)
    batch, _ = valued(method, policy, batch_of(policy, case))
    assert bool(batch.advantages.isfinite().all()) and bool(batch.weights.isfinite().all())
    assert batch.advantages.shape == batch.mask.shape
    assert not bool(batch.advantages[~(batch.mask & batch.active[:, None])].any())
    loss, gradients = gradient(policy, method, batch)
    assert math.isfinite(loss) and all(bool(g.isfinite().all()) for g in gradients)
    abstained = torch.tensor([v.passed is None for v in batch.verdicts])
    assert not bool(batch.active[abstained].any()), "a sample without a verdict is learned from"


@pytest.mark.parametrize("key", METHODS)
def test_micro_batches_add_up_and_order_does_not_matter(key: str, policy: CausalLM) -> None:
    """The same loss and gradient from one pass, from one pass a group, and with the rows shuffled."""
    method = papers.make(key)
    batch, _ = valued(method, policy, batch_of(policy, "mixed"))
    loss, whole = gradient(policy, method, batch)
    split = gradient(policy, method, batch, budget=1)
    order = torch.tensor([5, 0, 7, 2, 1, 6, 3, 4])
    shuffled = gradient(policy, method, batch.rows(order))
    for other, gradients in (split, shuffled):
        assert other == pytest.approx(loss, abs=1e-9)
        assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(whole, gradients, strict=True))


@pytest.mark.parametrize("key", METHODS)
def test_it_trains(key: str, tmp_path: Path) -> None:
    """Two steps through the real loop, with finite metrics and weights."""
    sections: dict[str, Any] = {"method": {"name": key}, **SHORT}
    folder = run(tmp_path / "run", **sections)
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2
    assert all(math.isfinite(v) for row in steps for v in row.values() if isinstance(v, float))
    assert all(bool(w.isfinite().all()) for w in weights(folder).values() if w.is_floating_point())


@pytest.mark.parametrize("key", METHODS)
def test_a_paper_stands_for_what_it_brings(key: str) -> None:
    """``method.credit=S017`` takes what S017 puts at the seam, unless GRPO's other half would ignore it."""
    for seam in {"reward", "credit", "select", "objective"} & {*papers.find(key).seams}:
        own = getattr(papers.make(key), seam)
        try:
            found = getattr(make_method("grpo", **{seam: key}), seam)
        except UsageError as error:
            if "would do nothing" not in str(error):
                raise
        else:
            assert type(found) is type(own)
