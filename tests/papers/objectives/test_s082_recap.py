"""RECAP: the weights by hand, each objective a mean over its own samples, replayed tasks, and resumption."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run, weights

import assay
from assay import catalogue
from assay.batch import Batch
from assay.curriculum.replay import Replay
from assay.errors import RunError, UsageError
from assay.lab.settings.bandits import retention
from assay.learning.update import update
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.sft import SFT
from assay.papers.objectives.s082_recap import ADVANTAGES, LEAST, WEIGHT, Course, PerObjective, SumOfObjectives
from assay.policies.tabular import TabularPolicy, Tree
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream
from assay.types import Ask, Episode, Group, Origin, Task, Verdict

HISTORIES = {"a": [0.5] * 6, "b": [1, 0.9, 0.8, 0.9, 0.5, 1], "c": [0.4] * 3 + [0.2] * 3}


def course(temperature: float = 5.0, **options: object) -> Course:
    made = Course(3, temperature, **options)  # type: ignore[arg-type]
    for values in zip(*HISTORIES.values(), strict=True):
        made.observe(dict(zip(HISTORIES, values, strict=True)))
    return made


def test_convergence_and_instability():
    found = [course().terms(name) for name in "abc"]
    assert found[0] == (1, 0) and found[2] == pytest.approx((0.5, 0))
    assert found[1] == pytest.approx((0.888889, 0.127073), abs=1e-6)


@pytest.mark.parametrize(
    ("temperature", "weights_"),
    [(5.0, [1.031624, 1.034923, 0.933452]), (0.1, [1.376269, 1.614457, 0.009273]), (1e9, [1, 1, 1])],
)
def test_weights(temperature, weights_):
    found = course(temperature).weights(list("abc"))
    assert list(found.values()) == pytest.approx(weights_, abs=1e-6)
    assert sum(found.values()) == pytest.approx(3)
    assert course(temperature).weights(["a"]) == {"a": pytest.approx(1)}


def test_the_score_may_be_another():
    found = course(1.0, weight_fn=lambda c, i: -c).weights(list("abc"))
    assert max(found, key=found.__getitem__) == "c"


def test_values_of_nothing_and_short_series():
    made = Course(2)
    for _ in range(3):
        made.observe({"solved": 0.0})
        assert made.weights(["solved", "new"]) == {"solved": 1, "new": 1}
    made.observe({"solved": -1.0})
    assert made.terms("solved") == (1, 0)
    assert made.weights(["solved", "new"]) == {"solved": 1, "new": 1}
    assert made.state_dict() == {"solved": [LEAST] * 4}


def batch_of(rows: list[tuple[int, str, list[float]]], taught: tuple[int, ...] = (), seed: int = 0) -> Batch:
    """Groups of (tokens, source, rewards); the responses ``taught`` are another author's."""
    rng, groups, count = np.random.default_rng(seed), [], 0
    for g, (length, source, rewards) in enumerate(rows):
        episodes = []
        for _ in rewards:
            other = count in taught
            origins = np.full(length, Origin.TEACHER, dtype=np.uint8) if other else None
            logprobs = None if other else rng.normal(-1, 0.3, length).astype(np.float32)
            episodes.append(
                Episode(np.zeros(1, dtype=np.int64), np.zeros(length, dtype=np.int64), np.ones(length, dtype=bool),
                        logprobs, "", "eos", origins=origins)
            )  # fmt: skip
            count += 1
        verdicts = tuple(Verdict(r, r == 1) for r in rewards)
        groups.append(Group(Ask(Task(f"t{g}", "q", meta={"source": source}), len(rewards)), tuple(episodes), verdicts))
    return Batch.from_groups(groups, torch.float64)


MIXED = [(3, "math", [1.0, 0, 0]), (1, "vision", [1.0, 1, 0, 0, 1]), (4, "math", [0.0, 1])]


def loss_of(objective, batch, logprobs):
    logprobs = logprobs.clone().requires_grad_()
    getattr(objective, "prepare", lambda _: None)(batch)
    value = objective(logprobs, batch).value
    value.backward()
    return value.item(), logprobs.grad


def test_one_objective_is_grpo():
    rows = [(n, "math", r) for n, _, r in MIXED]
    ours, plain = make_method("S082").value(batch_of(rows)), make_method("grpo").value(batch_of(rows))
    assert torch.equal(ours.advantages, plain.advantages)
    logprobs = ours.logprobs + 0.4 * torch.randn(ours.logprobs.shape, generator=torch.Generator().manual_seed(0))
    a, b = loss_of(SumOfObjectives(), ours, logprobs), loss_of(ClippedSurrogate(), plain, logprobs)
    assert a[0] == pytest.approx(b[0], abs=1e-12) and torch.allclose(a[1], b[1], atol=1e-12)


def test_a_single_objective_is_said_to_be_grpo_once(caplog):
    """After five steps of it (or a window, if that is shorter), and never where others have been seen."""
    alone, mixed = [(3, "math", [1.0, 0, 0])], MIXED
    for window, order, said in ((20, [alone] * 9, 5), (2, [alone] * 9, 2), (20, [mixed, *[alone] * 9], 0)):
        method = make_method("S082", options={"window": window})
        for step, rows in enumerate(order, 1):
            caplog.clear()
            method.value(batch_of(rows))
            told = [r.message for r in caplog.records]
            assert len(told) == (step == said) and all("one objective (math)" in t for t in told)


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean"])
def test_every_objective_is_a_mean_over_its_own_samples(aggregation):
    """Against the loss of each source's samples as a batch by themselves."""
    credit, objective = PerObjective(window=1, temperature=0.5), SumOfObjectives(aggregation=aggregation)
    method = make_method("grpo", credit=credit, objective=objective)
    method.value(batch_of([(3, "math", [1.0, 1, 0]), (1, "vision", [0.0, 0, 1])]))
    batch = method.value(batch_of(MIXED, seed=1))
    lam = credit.course.weights(["math", "vision"])
    assert abs(lam["math"] - lam["vision"]) > 0.1
    noise = 0.4 * torch.randn(batch.logprobs.shape, generator=torch.Generator().manual_seed(0))
    value, gradient = loss_of(objective, batch, batch.logprobs + noise)
    want, slopes = 0.0, torch.zeros_like(gradient)
    for source, rows in (("math", [0, 1, 2, 8, 9]), ("vision", [3, 4, 5, 6, 7])):
        alone = make_method("grpo").value(batch_of(MIXED, seed=1).rows(torch.tensor(rows)))
        alone.totals = alone.count()
        width = alone.tokens.shape[1]
        plain = ClippedSurrogate(aggregation=aggregation)
        found, slope = loss_of(plain, alone, (batch.logprobs + noise)[rows, :width])
        want += lam[source] / 2 * found
        slopes[rows, :width] = lam[source] / 2 * slope
    assert value == pytest.approx(want, abs=1e-6) and torch.allclose(gradient, slopes, atol=1e-6)


def test_clipping_goes_by_the_objectives_not_by_their_sum():
    """Two terms that pull a token both ways: one side is clipped, and the other is not."""
    credit = PerObjective(objectives={"up": {"term": "up"}, "down": {"term": "down"}})
    batch = batch_of([(1, "math", [1.0, 0.0])])
    reward = torch.tensor([1.0, 0.0], dtype=torch.float64)
    batch.reward_terms = {"up": reward, "down": 1 - reward}
    batch.rewards = reward
    batch.advantages = credit(batch)
    assert not bool(batch.advantages.any()), "the sum is zero, and a pass over it would be skipped"
    objective = SumOfObjectives()
    assert not objective.zero_advantage_is_idle
    batch.totals = batch.count()
    _, gradient = loss_of(objective, batch, batch.logprobs + math.log(1.5))
    # First response, rho 1.5: A = 1/sqrt 2 is clipped, A = -1/sqrt 2 pushes down: rho |A| over 2 objectives, 2 tokens.
    assert gradient[0, 0].item() == pytest.approx(1.5 * math.sqrt(0.5) / 4, abs=1e-6)


def test_the_series():
    credit = PerObjective(window=1)
    batch = make_method("grpo", credit=credit).value(batch_of(MIXED))
    assert credit.course.state_dict() == {"math": [pytest.approx(0.4)], "vision": [pytest.approx(0.6)]}
    assert set(batch.signals) == {WEIGHT + "math", WEIGHT + "vision", ADVANTAGES + "math", ADVANTAGES + "vision"}
    assert batch.signals[WEIGHT + "math"].tolist() == [0.5] * 3 + [0] * 5 + [0.5] * 2
    lost = PerObjective(window=1, series="loss")
    make_method("grpo", credit=lost).value(batch_of(MIXED))
    assert lost.course.state_dict() == {"math": [pytest.approx(0.6)], "vision": [pytest.approx(0.4)]}


def test_weight_leaves_what_is_saturated():
    """At format all are right, at accuracy 1 of 4 and then 3 of 4: c is 1 and 3; windows of one step have no i."""
    credit = PerObjective(window=1, temperature=1.0)
    for right in (1, 3):
        rows = [(2, "format", [1.0] * 4), (2, "accuracy", [1.0] * right + [0.0] * (4 - right))]
        make_method("grpo", credit=credit).value(batch_of(rows))
    found, total = credit.course.weights(["format", "accuracy"]), math.exp(1) + math.exp(3)
    assert found == pytest.approx({"format": 2 * math.exp(1) / total, "accuracy": 2 * math.exp(3) / total})


def test_demonstrations_feed_imitation_alone():
    credit = PerObjective(imitation=True)
    batch = batch_of([(2, "math", [1.0, 0, 1])], taught=(2,))
    batch.signals["policy_logprobs"] = torch.full((3, 2), -0.7, dtype=torch.float64)
    method = make_method("grpo", credit=credit, objective=SumOfObjectives())
    assert "policy_logprobs" in method.needs
    method.value(batch)
    assert credit.course.state_dict()["imitation"] == [pytest.approx(math.exp(-0.7))]
    lost = PerObjective(imitation=True, series="loss")
    make_method("grpo", credit=lost).value(batch)
    assert lost.course.state_dict()["imitation"] == [pytest.approx(0.7)]
    assert batch.signals[ADVANTAGES + "math"][:, 0].tolist() == pytest.approx(
        [math.sqrt(0.5), -math.sqrt(0.5), 0], abs=1e-5
    )
    _, gradient = loss_of(method.objective, batch, batch.logprobs.nan_to_num(-0.7))
    alone = batch.rows(torch.tensor([2]))
    alone.totals = alone.count()
    _, slope = loss_of(SFT(), alone, torch.full((1, 2), -0.7, dtype=torch.float64))
    assert torch.allclose(gradient[2], slope[0] / 2)


def test_what_improves_weighs_more_than_what_stagnates_and_what_varies_too():
    """Rewards that stay, halve, double and vary about their mean, at a temperature of 1."""
    made = Course(2, 1.0)
    for values in zip([0.4] * 4, [0.4, 0.4, 0.2, 0.2], [0.2, 0.2, 0.4, 0.4], [0.4, 0.4, 0.1, 0.7], strict=True):
        made.observe(dict(zip(["same", "worse", "better", "varied"], values, strict=True)))
    found = made.weights(["same", "worse", "better", "varied"])
    scores = {"same": 1.0, "worse": 0.5, "better": 2.0, "varied": 1 + 0.3 / 0.8}
    total = sum(map(math.exp, scores.values()))
    assert found == pytest.approx({k: 4 * math.exp(v) / total for k, v in scores.items()})


def test_only_the_last_two_windows_count():
    made, short = Course(2), Course(2)
    for value in (0.9, 0.1, 0.5, 0.3, 0.2, 0.4):
        made.observe({"a": value})
    for value in (0.5, 0.3, 0.2, 0.4):
        short.observe({"a": value})
    assert made.state_dict() == short.state_dict() and made.terms("a") == pytest.approx((0.3 / 0.4, 0.1 / 0.7))
    assert made.state_dict()["a"] is not made._series["a"]


def test_rewards_of_several_terms_are_objectives_on_every_source():
    batch = batch_of(MIXED)
    right = torch.tensor([1.0, 0, 0, 1, 1, 0, 0, 1, 0, 1]).double()
    batch.reward_terms = {"right": right, "form": 1 - right}
    credit = PerObjective(window=1)
    batch.advantages = credit(batch)
    assert set(credit.course.state_dict()) == {"math/right", "math/form", "vision/right", "vision/form"}
    assert credit.course.state_dict()["math/right"] == [pytest.approx(0.4)]
    assert credit.course.state_dict()["math/form"] == [pytest.approx(0.6)]
    assert batch.signals[WEIGHT + "math/form"].tolist() == [0.25] * 3 + [0] * 5 + [0.25] * 2
    given = PerObjective(objectives={"all": {}, "eyes": {"source": "vision", "term": "right"}})
    found = given.fed(batch)
    assert found["all"][1].all() and found["eyes"][1].tolist() == [False] * 3 + [True] * 5 + [False] * 2
    batch.weights = torch.where(found["eyes"][1], 0, 1).double()
    assert set(given.fed(batch)) == {"all"}, "nobody feeds it"


def test_advantages_of_an_objective_are_of_its_own_reward():
    """Terms 1, 0 and 0, 2: standardised each by itself to plus and minus 1/sqrt 2."""
    batch = batch_of([(1, "math", [1.0, 0.0])])
    batch.reward_terms = {"up": torch.tensor([1.0, 0.0]).double(), "down": torch.tensor([0.0, 2.0]).double()}
    PerObjective(window=1)(batch)
    for name, sign in (("math/up", 1), ("math/down", -1)):
        found = batch.signals[ADVANTAGES + name][:, 0].tolist()
        assert found == pytest.approx([sign * math.sqrt(0.5), -sign * math.sqrt(0.5)], abs=1e-5)


def test_what_is_logged_and_that_an_unprepared_batch_is_its_own_mini_batch():
    """lambda of each objective; shares of clipped tokens; at rho 1.5 everything with A > 0 is clipped."""
    credit, objective = PerObjective(window=1, temperature=0.5), SumOfObjectives()
    method = make_method("grpo", credit=credit, objective=objective)
    method.value(batch_of([(3, "math", [1.0, 1, 0]), (1, "vision", [0.0, 0, 1])]))
    batch = method.value(batch_of([(2, "math", [1.0, 0, 0]), (1, "vision", [1.0, 1, 0])]))
    lam = credit.course.weights(["math", "vision"])
    objective.prepare(batch)
    metrics = objective(batch.logprobs + math.log(1.5), batch).metrics
    assert metrics["weight/math"] == pytest.approx(lam["math"]) and metrics["weight/vision"] == pytest.approx(
        lam["vision"]
    )
    assert metrics["clip_fraction"] == pytest.approx(4 / 9), "two tokens of math, two of vision"


def test_options_of_the_parts_inside():
    """What the inner credit says of itself holds; the defaults are a window of 20 and a temperature of 5."""
    made = PerObjective(credit={"name": "grpo"})
    assert made.group_relative and made.level == "response" and not made.needs and len(made.members) == 1
    assert PerObjective(imitation=True).needs == {"policy_logprobs"}
    assert not PerObjective(credit="reinforce").group_relative
    for window, temperature in ((made.window, made.temperature), (made.course.window, made.course.temperature)):
        assert (window, temperature) == (20, 5.0)
    assert (Course().window, Course().temperature) == (20, 5.0)
    method = catalogue.make("S082")
    assert (method.credit.window, method.credit.temperature, method.credit.imitation) == (20, 5.0, False)
    assert method.curriculum == "uniform"
    general = catalogue.make("S082", general="arithmetic").curriculum
    assert general == {"name": "replay", "general": "arithmetic", "share": 0.5}
    assert Course(1, 0.1).window == 1 and (made.series, made.objectives, made.imitation) == ("reward", None, False)
    for name in ("course", "_alone", "_others"):
        with pytest.raises(TypeError):
            PerObjective(**{name: 0})
    with pytest.raises(TypeError):
        Course(_series={})
    assert "_alone" not in repr(made) and "_others" not in repr(made)
    other = PerObjective()
    made.course.observe({"a": 1.0})
    other.load_state_dict(made.state_dict())
    assert other.course.state_dict() == {"a": [1.0]}


def test_micro_batches_and_short_responses():
    """As many objectives as the longest response has tokens, in micro-batches of a token each."""
    tree = Tree.of([[1, 0], [0.0, [1, 0]]])
    losses = []
    for budget in (1, 10**6):
        policy = TabularPolicy.random(tree, 0)
        made = []
        for source, leaves in (("a", [0, 1, 2]), ("b", [3, 2, 0]), ("c", [4, 3])):
            episodes = tuple(policy.leaf_episodes(torch.tensor(leaves)))
            verdicts = tuple(Verdict(float(tree.rewards[leaf]), bool(tree.rewards[leaf])) for leaf in leaves)
            made.append(Group(Ask(Task(source, "", meta={"source": source}), len(leaves)), episodes, verdicts))
        method = make_method("S082")
        batch = method.value(Batch.from_groups(made, torch.float64))
        optimizer = torch.optim.SGD(policy.module.parameters(), lr=1.0)
        result, _ = update(policy, method.objective, batch, optimizer, token_budget=budget)
        losses.append((result["loss"], policy.logits.detach()))
    assert losses[0][0] == pytest.approx(losses[1][0], abs=1e-12)
    assert torch.allclose(losses[0][1], losses[1][1], atol=1e-12)


def test_a_term_that_is_not_there():
    credit = PerObjective(objectives={"grounding": {"term": "iuo"}})
    batch = batch_of(MIXED)
    batch.reward_terms = {"iou": batch.rewards}
    with pytest.raises(RunError, match="iou"):
        credit(batch)


def replay(n: int, **options: object) -> Replay:
    target, general = ([Task(f"{k}{i}", k) for i in range(5)] for k in "tg")
    return Replay(TrainStream(Listed(target)), n, 2, Listed(general), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("prompts", "share", "general"), [(8, 0.5, 4), (3, 0.01, 1), (3, 0.99, 2), (10, 0.3, 3)])
def test_the_share_of_replayed_tasks(prompts, share, general):
    asks = replay(prompts, share=share).next(0)
    labels = [a.task.meta["source"] for a in asks]
    assert labels.count("general") == general and labels.count("target") == prompts - general
    assert all(a.task.id[0] == a.task.meta["source"][0] and a.n == 2 for a in asks)


def test_replayed_tasks_come_equally_often_and_go_on_after_a_checkpoint():
    one, two = replay(4), replay(4)
    seen = [a.task.id for _ in range(5) for a in one.next(0) if a.task.id.startswith("g")]
    assert sorted(seen) == sorted([f"g{i}" for i in range(5)] * 2)
    two.load_state_dict(one.state_dict())
    general = [[a.task.id for a in c.next(5) if a.task.id.startswith("g")] for c in (one, two)]
    assert general[0] == general[1]


def test_options():
    for bad in ({"window": 0}, {"temperature": 0}, {"objectives": {"a": {"kind": "b"}}}):
        with pytest.raises(UsageError, match="S082"):
            PerObjective(**bad)
    for bad in ({"share": 1.0}, {"general": Listed([])}):
        with pytest.raises(UsageError, match="replay"):
            Replay(TrainStream(Listed([Task("t", "")])), 4, 2, **{"general": Listed([Task("g", "")]), **bad})
    with pytest.raises(UsageError, match="gspo_token"):
        make_method("S082", credit={"credit": "gae"}, objective="gspo")


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=9), min_size=1, max_size=4), st.floats(0.05, 10))
def test_weights_sum_to_their_number(series, temperature):
    made = Course(2, temperature)
    for i, values in enumerate(series):
        for value in values:
            made.observe({str(i): value})
    names = [str(i) for i in range(len(series))]
    assert sum(made.weights(names).values()) == pytest.approx(len(names))
    other = Course(2, temperature)
    other.load_state_dict(made.state_dict())
    assert other.weights(names) == made.weights(names)


@pytest.mark.slow
def test_a_resumed_run_has_the_same_weights(tmp_path: Path):
    general = {"name": "arithmetic", "operation": "multiplication", "digits": 1}
    method = {
        "name": "S082",
        "curriculum": {"name": "replay", "general": general},
        "credit": {"window": 1, "temperature": 0.1},
    }
    sections = {"method": method, "warmup": {"steps": 0}, "evaluate": {"every": 0}}
    whole = run(tmp_path / "whole", **sections, train={"steps": 4})
    short = run(tmp_path / "short", **sections, train={"steps": 3})
    assay.train(resume=short, overrides=["train.steps=4"], quiet=True)
    a, b = weights(whole), weights(short)
    assert all(torch.equal(a[k], b[k]) for k in a)
    rows = [[r for r in metrics(f) if r["stage"] == "rl"] for f in (whole, short)]
    assert rows[0] == rows[1]
    last = rows[0][-1]
    assert last["weight/arithmetic"] + last["weight/general"] == pytest.approx(2) and last["weight/general"] != 1


@pytest.mark.slow
def test_the_setting_forgets_without_replay(tmp_path: Path):
    setting = retention.Setting(steps=30, lr=3.0)
    alone, replayed = (
        setting.run(arm, 0, tmp_path)
        for arm in ({"name": "grpo"}, {"name": "S082", "curriculum": {"name": "replay", "general": "here"}})
    )
    assert alone["general/start"] == replayed["general/start"] > 0.85
    assert alone["general"] < alone["general/start"] - 0.1
    assert replayed["general"] > alone["general"] and replayed["rollouts"] == alone["rollouts"] == 30 * 64
