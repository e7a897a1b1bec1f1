"""DistIL: the two-step problem and first-order changes by hand, the exact gradient by differences, and a run of it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run

from assay.batch import Batch
from assay.errors import UsageError
from assay.learning.update import update
from assay.method import make_method
from assay.ops.divergence import cross_entropy, divergence
from assay.papers.data.s155_distil import VisitedStates, of_siblings, to_come
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.reread.prompts import Answered, Hindsight
from assay.signals.base import Models
from assay.types import Ask, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
SUB = [[0, [0, 0]], [0, 0, 0], 0]
"""Paths of one to three decisions."""
PATHS = [(0, 0), (0, 1, 0), (0, 1, 1), (1, 0), (1, 1), (1, 2), (2,)]


def two_views(seed: int = 0) -> TabularPolicy:
    """The student's tree after the prompt 0 and the expert's after 1, both at random."""
    return TabularPolicy.random(Tree.of([SUB, SUB]), seed)


def asked(policy: TabularPolicy, paths: list[tuple[int, ...]], groups: list[int] | None = None) -> Batch:
    lengths = torch.tensor([len(p) for p in paths])
    tokens = torch.zeros(len(paths), int(lengths.max()), dtype=torch.int64)
    for row, path in zip(tokens, paths, strict=True):
        row[: len(path)] = torch.tensor(path)
    episodes = policy.episodes(tokens, lengths, prompts=[np.array([0])] * len(paths))
    made = []
    for g in sorted(set(groups or [0])):
        mine = tuple(e for e, h in zip(episodes, groups or [0] * len(paths), strict=True) if h == g)
        made.append(Group(Ask(Task(f"t{g}", "0", reference="1"), len(mine)), mine, (Verdict.wrong(),) * len(mine)))
    batch = Batch.from_groups(made, torch.float64)
    batch.totals = batch.count()
    return batch


def seen(policy: TabularPolicy, batch: Batch, **options: Any) -> VisitedStates:
    """The objective, the expert's view in the batch's signals."""
    method = make_method("S155", options={"shown": "answer", "template": "{answer}", "k": 3, **options})
    [view] = method.needs
    here = Models(policy, encode=lambda prompt: np.array([int(prompt)]))
    batch.signals[view.name] = view(batch, here)
    assert isinstance(method.objective, VisitedStates)
    return method.objective


def slope(policy: TabularPolicy, batch: Batch, objective: VisitedStates) -> torch.Tensor:
    output = policy.forward(batch, {"candidate_logprobs"})
    batch.live = output.live
    [found] = torch.autograd.grad(objective(output.logprobs, batch).value, policy.logits)
    return found


def exact(policy: TabularPolicy) -> torch.Tensor:
    """Sum over paths of pi(path) sum_t -sum_a q_t(a) log pi_t(a), q constant: its gradient by central differences."""
    legal, start = (policy.tree.children != 0).numpy(), policy.logits.detach().numpy()

    def table(logits: np.ndarray) -> np.ndarray:
        z = np.where(legal, logits, -np.inf)
        return z - np.log(np.exp(z).sum(-1, keepdims=True))

    q = np.exp(table(start))
    nodes = {p: [[policy.tree.node((view, *p[:t])) for t in range(len(p))] for view in (0, 1)] for p in PATHS}

    def value(logits: np.ndarray) -> float:
        log_p = table(logits)
        total = 0.0
        for path, (mine, theirs) in nodes.items():
            costs = [-(q[b] * np.where(legal[a], log_p[a], 0)).sum() for a, b in zip(mine, theirs, strict=True)]
            total += np.exp(log_p[mine, list(path)].sum()) * sum(costs)
        return total

    out, step = np.zeros_like(start), 1e-5
    for cell in zip(*np.nonzero(legal), strict=True):
        move = np.zeros_like(start)
        move[cell] = step
        out[cell] = (value(start + move) - value(start - move)) / (2 * step)
    return torch.from_numpy(out)


def chances(policy: TabularPolicy) -> list[float]:
    log_p = policy.log_policy().detach()
    return [float(sum(log_p[policy.tree.node((0, *path[:t])), a] for t, a in enumerate(path)).exp()) for path in PATHS]


@pytest.mark.parametrize("options", [{}, {"baseline": "none"}, {"clip": 0.2}])
def test_the_expected_gradient_is_the_exact_one(options: dict[str, Any]) -> None:
    """Over every pair of responses, whose lengths differ; without the future term it is another."""
    policy = two_views()
    p, want = chances(policy), exact(policy)
    assert sum(p) == pytest.approx(1)
    pairs = list(product(range(len(PATHS)), repeat=2))
    batch = asked(policy, [PATHS[i] for pair in pairs for i in pair], [g for g in range(len(pairs)) for _ in "ab"])
    # A pair counts for as much as it is likely; the loss is a mean over all.
    batch.weights = torch.tensor([p[i] * p[j] * len(pairs) for i, j in pairs for _ in "ab"], dtype=torch.float64)
    total = slope(policy, batch, seen(policy, batch, **options))
    local = slope(policy, batch, seen(policy, batch, **{**options, "eta": 0.0}))
    torch.testing.assert_close(total, want, atol=1e-6, rtol=0)
    assert (local - want).abs().max() > 0.05 and want.abs().max() > 0.05


def test_the_expert_may_be_known_by_samples_alone() -> None:
    """Over many draws of one sample a state, the gradient of one pair is that of the whole distribution."""
    policy = two_views(1)
    batch = asked(policy, [(0, 1, 1), (1, 2)])
    want = slope(policy, batch, seen(policy, batch))
    found = slope(policy, batch, seen(policy, batch, expert="samples", k=40_000))
    torch.testing.assert_close(found, want, atol=0.03, rtol=0)
    few = asked(policy, [(0, 1, 1)])
    objective = seen(policy, few, expert="samples", k=2)
    few.live = policy.forward(few, {"candidate_logprobs"}).live
    logp = policy.log_policy().detach()
    drawn = few.signals["candidates"][0]
    mean = [-float(logp[policy.tree.node((0, 0, 1)[: t + 1]), drawn[t]].mean()) for t in range(3)]
    assert objective.costs(few)[0].tolist() == pytest.approx(mean)


def test_costs_by_hand() -> None:
    """-.9 log .9 - .1 log .1, and -.9 log .5 - .1 log .5; a sharp expert's are the student's own log-loss."""
    log = lambda *p: torch.tensor(p, dtype=torch.float64).log()  # noqa: E731
    assert cross_entropy(log(0.9, 0.1), log(0.9, 0.1)).item() == pytest.approx(0.325083, abs=1e-6)
    assert cross_entropy(log(0.5, 0.5), log(0.9, 0.1)).item() == pytest.approx(0.693147, abs=1e-6)
    assert cross_entropy(log(0.25, 0.75), log(1.0, 0.0)).item() == pytest.approx(1.386294, abs=1e-6)


def test_the_two_step_problem_by_hand() -> None:
    """After A expert and student agree, after B they do not: the future term raises A, and nothing else does."""
    policy = TabularPolicy(Tree.of([[[0, 0], [0, 0]]] * 2))
    with torch.no_grad():
        for path in ((0, 0), (1, 0), (1, 1)):
            policy.logits[policy.tree.node(path)] = torch.tensor([0.9, 0.1], dtype=torch.float64).log()
    total, local = torch.zeros_like(policy.logits), torch.zeros_like(policy.logits)
    for path in product((0, 1), repeat=2):
        p = 0.5 * (((0.9, 0.1), (0.5, 0.5))[path[0]][path[1]])
        batch = asked(policy, [path])
        total += p * slope(policy, batch, seen(policy, batch))
        local += p * slope(policy, batch, seen(policy, batch, eta=0.0))
    root = policy.tree.node((0,))
    assert total[root].tolist() == pytest.approx([-0.092016, 0.092016], abs=1e-6)
    assert local[root].tolist() == pytest.approx([0, 0], abs=1e-8)


def test_first_order_changes_by_hand() -> None:
    """Cov_pi(r, -dD/dpi): by the reverse and the Jensen-Shannon divergence the reward falls, although the expert's is
    higher by .048; by cross-entropy it changes by just that. Steps of .1 along them."""
    pi, expert, r = (torch.tensor(v, dtype=torch.float64) for v in ((0.2, 0.2, 0.6), (0.4, 0.01, 0.59), (1, 0.8, 0)))
    assert float(expert @ r - pi @ r) == pytest.approx(0.048)
    wanted = [(-0.17127, 0.34624), (-0.0015, 0.35992), (0.048, 0.36584)]
    kinds = [
        lambda p: divergence(p.log(), expert.log(), 1.0),
        lambda p: divergence(p.log(), expert.log(), 0.5),
        lambda p: cross_entropy(p.log(), expert.log()),
    ]
    for kind, (change, after) in zip(kinds, wanted, strict=True):
        p = pi.clone().requires_grad_()
        [gradient] = torch.autograd.grad(kind(p), p)
        assert float(pi @ (r * -gradient) - (pi @ r) * (pi @ -gradient)) == pytest.approx(change, abs=5e-6)
        stepped = (pi.log() - 0.1 * gradient).softmax(-1)
        assert float(stepped @ r) == pytest.approx(after, abs=1e-4)
    # On the logits even cross-entropy may lower it.
    z = torch.tensor([0.01, 0.9, 0.09], dtype=torch.float64).log().requires_grad_()
    [gradient] = torch.autograd.grad(
        cross_entropy(z.log_softmax(-1), torch.tensor([0.02, 0.98, 1e-300], dtype=torch.float64).log()), z
    )
    assert float((z.detach() - 0.1 * gradient).softmax(-1)[0]) == pytest.approx(0.009946, abs=1e-6)


def test_future_costs_and_siblings_by_hand() -> None:
    costs = torch.tensor([[1.0, 2.0, 4.0], [3.0, 0.0, 0.0], [1.0, 5.0, 0.0]], dtype=torch.float64)
    future = to_come(costs)
    assert future.tolist() == [[6, 4, 0], [0, 0, 0], [5, 0, 0]]
    policy = two_views()
    batch = asked(policy, [(0, 1, 0), (2,), (1, 1)])
    assert of_siblings(future, batch, batch.mask).tolist() == [[2.5, 0, 0], [5.5, 2, 0], [3, 2, 0]]
    apart = asked(policy, [(0, 1, 0), (2,), (1, 1)], [0, 0, 1])
    assert of_siblings(future, apart, apart.mask).tolist() == [[0, 0, 0], [6, 4, 0], [0, 0, 0]]


@pytest.mark.parametrize("baseline", ["siblings", "none"])
def test_a_pair_by_its_definition(baseline: str) -> None:
    """Responses of three and two tokens, and a third that does not count: costs, and visits by what is to come."""
    policy = two_views()
    batch = asked(policy, [(0, 1, 1), (1, 2), (2,)])
    batch.weights = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    batch.totals = batch.count()
    objective = seen(policy, batch, baseline=baseline)
    output = policy.forward(batch, {"candidate_logprobs"})
    batch.live = output.live
    (a, b, c), (d, e, _), _ = objective.costs(batch)
    first, second = [b + c, c, 0 * c], [e, 0 * e]
    if baseline == "siblings":
        first, second = [first[0] - e, first[1] - 0 * e, first[2]], [e - (b + c), 0 * e - c]
    visits = sum(w.detach() * x for w, x in zip([*first, *second], output.logprobs[batch.mask][:5], strict=True))
    costs = a + b + c + d + e
    [want] = torch.autograd.grad((costs + visits) / 2, policy.logits, retain_graph=True)
    loss = objective(output.logprobs, batch)
    [found] = torch.autograd.grad(loss.value, policy.logits)
    torch.testing.assert_close(found, want)
    assert loss.value.item() == pytest.approx(costs.item() / 2)
    assert loss.metrics["distil/cost"] == pytest.approx(costs.item() / 5)
    assert loss.metrics["distil/future"] == pytest.approx((b + 2 * c + e).item() / 5)


def test_groups_are_not_split() -> None:
    """The gradient is the same whatever a micro-batch holds; with lengths divided out it is another."""
    policy = two_views(2)
    found = []
    for budget, options in ((1000, {}), (1, {}), (1000, {"normalise": True})):
        batch = asked(policy, [(0, 1, 0), (2,), (1, 1), (0, 0)], [0, 0, 1, 1])
        objective = seen(policy, batch, **options)
        optimizer = torch.optim.SGD([policy.logits], lr=0.0)
        update(policy, objective, batch, optimizer, live=objective.live, token_budget=budget, max_grad_norm=1e9)
        assert policy.logits.grad is not None
        found.append(policy.logits.grad.clone())
    torch.testing.assert_close(found[0], found[1])
    assert not torch.allclose(found[0], found[2])


def test_the_second_term_is_clipped_against_the_policy_that_sampled() -> None:
    """Ratio 2 of the first token, whose successors cost more than a sibling's: the gradient of its visit is cut."""
    policy = two_views()
    batch = asked(policy, [(0, 1, 1), (2,)])
    free, bound = seen(policy, batch), seen(policy, batch, clip=0.2)
    batch.logprobs = batch.logprobs + np.log(2.0)
    assert (slope(policy, batch, free) - slope(policy, batch, bound)).abs().max() > 0.01


def test_options() -> None:
    method = make_method("S155")
    assert isinstance(method.objective, VisitedStates) and method.objective.view.view == Hindsight()
    assert (method.objective.eta, method.objective.view.k, method.objective.clip) == (1.0, 100, None)
    assert method.objective == VisitedStates(method.objective.view) and not method.objective.normalise
    averaged: Any = make_method("S155", options={"teacher": "averaged"}).objective
    assert averaged.view.rate == 0.05
    blind: Any = make_method("S155", options={"eta": 0.0, "clip": 0.0, "normalise": True}).objective
    assert blind.summary["clip"] == "[1, 1]" and blind.summary["aggregation"] == "sequence mean"
    assert method.objective.summary["clip"] == "none" and method.objective.summary["aggregation"] == "sequence sum"
    assert Answered("{question} {answer}").template == "{question} {answer}"
    batch = asked(two_views(), [(2,), (2,), (2,), (2,)], [0, 1, 2, 3])
    batch.tasks = [Task("t", "Q", reference=r) for r in ("4", 4, {"tests": ["x"]}, None)]
    assert Answered("{question} {answer}").prompts(batch) == ["Q 4", "Q 4", None, None]
    for bad in ({"eta": -1.0}, {"clip": -0.1}):
        with pytest.raises(UsageError, match="S155"):
            make_method("S155", options=bad)
    with pytest.raises(UsageError, match="second view"):
        make_method("S155", options={"shown": "answer", "template": "{question}"})


@pytest.mark.slow
def test_in_the_lab_it_takes_the_side_that_the_expert_knows() -> None:
    far, near = (learned("S155", arm, steps=25, lr=3.0)["known"] for arm in ("distil", "local"))
    assert far > near + 0.1


def test_it_trains_a_language_model(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 64}},
        method={"name": "S155", "reward": "verdict", "options": {"k": 8, "shown": "answer", "template": "{answer}:"}},
        train={"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        tasks={"eval_size": 2},
        evaluate={"samples": 1},
    )
    rows = [row for row in metrics(folder) if "distil/cost" in row]
    assert len(rows) == 2 and all(row["distil/future"] > 0 and row["grad_norm"] > 0 for row in rows)
