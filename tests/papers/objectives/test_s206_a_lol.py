"""A-LoL: its losses by hand, the value head, what is drawn how often, and that records are all it learns from."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from running import recipe, tables

from assay.batch import Batch
from assay.catalogue import make
from assay.config import load_config
from assay.console import Reporter
from assay.curriculum.drawn import Drawn
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.errors import RunError, UsageError
from assay.lab.settings import load
from assay.learning.survey import look
from assay.method import make_method
from assay.papers.objectives.s206_a_lol import Leftovers, PositiveLeftover
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.nano import NanoConfig, nano_model
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.surveys import read_survey, survey_file
from assay.registry import build
from assay.rollout.recorded import Recorded
from assay.select.chain import Chain
from assay.select.everything import All
from assay.signals.base import Models
from assay.signals.prompt_value import PooledValue, PromptValue, prompt_states
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream
from assay.training.build import build_trainer
from assay.types import Ask, Episode, Group, Origin, Task, Verdict
from assay.verify.none import NoVerifier

pytestmark = pytest.mark.usefixtures("one_thread")

REWARDS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
SHARES = np.array([0.35, 0.3, 0.2, 0.1, 0.05])
"""Of the arms among the records; the expected reward is 0.34."""


def one(make_batch, logprobs, reference, advantage):
    batch = make_batch([len(logprobs)])
    batch.advantages = torch.full((1, len(logprobs)), advantage, dtype=torch.float64)
    batch.signals["reference_logprobs"] = torch.tensor([reference], dtype=torch.float64)
    return batch, torch.tensor([logprobs], dtype=torch.float64, requires_grad=True)


def test_the_weight_of_a_whole_response(make_batch):
    batch, here = one(make_batch, [-20.0], [-20.5], 0.3)
    loss = Leftovers()(here, batch)
    assert loss.value.item() == pytest.approx(9.892328, abs=1e-6)
    assert torch.autograd.grad(loss.value, here)[0].item() == pytest.approx(-0.3 * 1.648721, abs=1e-6)
    for gap, weight in ((1.0, 1.9), (-3.0, 0.1)):
        batch, here = one(make_batch, [-20.0], [-20.0 - gap], 1.0)
        assert Leftovers()(here, batch).value.item() == pytest.approx(20 * weight)


def test_the_weights_of_tokens(make_batch):
    given = ([-1.0, -0.5, -2.0], [-1.5, -0.4, -1.0], 0.3)
    batch, here = one(make_batch, *given)
    loss = Leftovers(form="token")(here, batch)
    assert loss.value.item() == pytest.approx(0.851070, abs=1e-6)
    slope = torch.autograd.grad(loss.value, here)[0][0] / -0.3
    assert slope.tolist() == pytest.approx([1.648721, 0.904837, 0.367879], abs=1e-6)
    batch, here = one(make_batch, *given)
    assert Leftovers()(here, batch).value.item() == pytest.approx(0.576252, abs=1e-6)


def test_other_forms(make_batch):
    given = ([-1.0, -0.5, -4.0], [-1.5, -0.4, -1.0], 0.3)
    batch, here = one(make_batch, *given)
    assert Leftovers(form="free")(here, batch).value.item() == pytest.approx(0.3 * 5.5)
    gold = Leftovers(form="gold")(here, batch).value.item()
    assert gold == pytest.approx(0.3 * (np.exp(-1) * 1 + np.exp(-0.5) * 0.5 + 0.1 * 4))
    with_kl = Leftovers(form="free", kl_weight=0.2)(here, batch)
    assert with_kl.value.item() == pytest.approx(0.3 * 5.5 + 0.2 * (-5.5 + 2.9))
    assert torch.autograd.grad(with_kl.value, here)[0][0].tolist() == pytest.approx([-0.1] * 3)


def test_at_the_reference_all_forms_agree(make_batch):
    found = []
    for form in ("sequence", "token", "free"):
        batch, here = one(make_batch, [-1.0, -0.5], [-1.0, -0.5], 0.7)
        loss = Leftovers(form=form)(here, batch).value
        found.append((loss.item(), torch.autograd.grad(loss, here)[0].tolist()))
    assert found[0] == found[1] == found[2]


def drawn(rewards, values, roles=None, draw="priority", steps=1):
    episodes = tuple(
        Episode(np.array([0]), np.array([1]), np.array([True]), None, "", "eos", meta={"role": r} if r else {})
        for r in (roles or [None] * len(rewards))
    )
    verdicts = tuple(Verdict(max(r, 0.0), r >= 1) for r in rewards)
    batch = Batch.from_groups([Group(Ask(Task("t", ""), len(rewards)), episodes, verdicts)], torch.float64)
    batch.rewards = torch.tensor(rewards, dtype=torch.float64)
    batch.signals["prompt_value"] = torch.tensor(values, dtype=torch.float64)
    part = PositiveLeftover(draw)
    return [part(batch) for _ in range(steps)]


def test_draws_go_on_after_a_checkpoint():
    batch = [0.8, 0.7, 0.6, 0.9], [0.1] * 4
    first = drawn(*batch, steps=3)
    part = PositiveLeftover()
    part.load_state_dict({"steps": 2})
    assert part.state_dict() == {"steps": 2}
    again = drawn(*batch, steps=3)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(first[0], w) for w in first[1:])


def test_the_advantage_is_what_the_value_leaves(make_batch):
    """Rewards 0.8 and 0.2 of a prompt worth 0.5: 0.3 and -0.3, on every token, divided by nothing."""
    batch = make_batch([2, 1], [0.8, 0.2])
    batch.signals["prompt_value"] = torch.tensor([0.5, 0.5])
    credit = make_method("S206").credit
    assert credit(batch).flatten().tolist() == pytest.approx([0.3, 0.3, -0.3, 0.0], abs=1e-6)
    assert credit.summary == {"baseline": "value of the prompt", "normalisation": "none"}


def test_what_is_not_data_is_not_drawn(make_batch):
    """A response without a token, and one whose verifier abstained, have nothing to teach, however it is drawn."""
    batch = make_batch([1, 0, 1], [0.9, 0.9, 0.9])
    batch.valid[2] = False
    batch.signals["prompt_value"] = torch.tensor([0.5, 0.5, 0.5])
    for draw in ("priority", "uniform", "all"):
        assert PositiveLeftover(draw)(batch).tolist() == [1, 0, 0]
    batch.rewards[:] = 0.5
    assert PositiveLeftover()(batch).tolist() == PositiveLeftover("uniform")(batch).tolist() == [0, 0, 0]
    assert PositiveLeftover("all")(batch).tolist() == [1, 0, 0]
    assert [PositiveLeftover(draw).one_sided for draw in ("priority", "uniform", "all")] == [True, True, False]


def test_draws_are_the_seeds_and_what_was_drawn_is_no_option():
    rewards = torch.tensor([0.8, 0.7, 0.6, 0.9, 0.8]).double()
    found = []
    for seed in (0, 0, 1):
        part = PositiveLeftover(seed=seed)
        episodes = (Episode(np.array([0]), np.array([1]), np.array([True]), None, "", "eos"),) * 5
        batch = Batch.from_groups([Group(Ask(Task("t", ""), 5), episodes, (Verdict.right(),) * 5)], torch.float64)
        batch.rewards, batch.signals["prompt_value"] = rewards, torch.full((5,), 0.1)
        found.append([part(batch).tolist() for _ in range(3)])
    assert found[0] == found[1] != found[2]
    assert part.state_dict() == {"steps": 3} != PositiveLeftover(seed=1).state_dict()
    assert "drawn" not in repr(part)
    used = PositiveLeftover(value=part.value, seed=1)
    assert used == part, "parts that differ in what they have drawn alone are alike"
    with pytest.raises(TypeError):
        PositiveLeftover(_drawn={"steps": 1})


def test_defaults():
    """Clipped to [0.1, 1.9], no divergence, priority; V from ten steps and ten passes, of rewards up to 1."""
    method = make("S206")
    for objective in (method.objective, Leftovers()):
        assert (objective.form, objective.clip, objective.floor, objective.kl_weight) == ("sequence", 0.9, 0.1, 0)
        assert (objective.aggregation, objective.kl_estimator) == ("sequence_sum", "k1")
    assert method.select.draw == PositiveLeftover().draw == "priority" and method.select.seed == PositiveLeftover().seed
    value = method.credit.value
    assert method.rollout == {"name": "recorded", "first": value} and method.select.value is value
    for one_value in (value, PromptValue()):
        assert (one_value.steps, one_value.epochs, one_value.lr, one_value.ceiling) == (10, 10, 1e-3, 1.0)
        assert (one_value.batch, one_value.heads) == (16, 8)
    assert make("S206", max_value=3.0).credit.value.ceiling == 3
    assert [Leftovers(form=f).words()[1] for f in ("sequence", "token", "free", "gold")] == [
        "[0.1, 1.9]",
        "[0.1, 1.9]",
        "none",
        "at least 0.1",
    ]
    for good in ({"clip": 0.0}, {"clip": 1.0}):
        Leftovers(**good)
    for bad in ({"epochs": 0}, {"batch": 0}, {"ceiling": 0.0}):
        with pytest.raises(UsageError, match="prompt_value"):
            PromptValue(**bad)
    assert PromptValue(steps=1, epochs=1, batch=1, ceiling=1e-3).steps == 1
    with pytest.raises(UsageError, match="S206"):
        Leftovers(clip=-0.1)


def test_what_is_logged(make_batch):
    """Weights 1.648721, 0.904837 and 0.367879, of which a clip of half cuts two; gold floors the last of three."""
    batch, here = one(make_batch, [-1.0, -0.5, -2.0], [-1.5, -0.4, -1.0], 0.3)
    metrics = Leftovers(form="token", clip=0.5)(here, batch).metrics
    assert metrics["clip_fraction"] == pytest.approx(2 / 3)
    assert metrics["a_lol/weight"] == pytest.approx((1.5 + 0.904837 + 0.5) / 3)
    batch, here = one(make_batch, [-1.0, -0.5, -4.0], [-1.5, -0.4, -1.0], 0.3)
    assert Leftovers(form="gold")(here, batch).metrics["clip_fraction"] == pytest.approx(1 / 3)
    free = Leftovers(form="free")(here, batch).metrics
    assert (free["clip_fraction"], free["a_lol/weight"]) == (0, 1)


def test_a_response_far_from_the_reference_has_a_finite_weight(make_batch):
    batch, here = one(make_batch, [-1.0], [-900.0], 1.0)
    assert Leftovers(clip=1.0)(here, batch).value.item() == 2
    assert Leftovers(form="gold", floor=0.5)(here, batch).value.item() == 0.5


@pytest.fixture(scope="module")
def nano() -> CausalLM:
    torch.manual_seed(0)
    return CausalLM.load(ModelConfig(source="nano", nano={"hidden": 32, "layers": 2, "heads": 2, "context": 64}), 0)


def groups_of(policy, prompts, rewards, role=None):
    out = []
    for i, (prompt, mine) in enumerate(zip(prompts, rewards, strict=True)):
        meta = {"role": role} if role else {}
        made = tuple(
            Episode(policy.encode(prompt), np.array([5, 6]), np.ones(2, dtype=bool), None, "", "eos", meta=meta)
            for _ in mine
        )
        out.append(Group(Ask(Task(str(i), prompt), len(mine)), made, tuple(Verdict(r, r >= 1) for r in mine)))
    return out


def valued(groups) -> Batch:
    batch = Batch.from_groups(groups)
    batch.rewards = torch.tensor([v.score for v in batch.verdicts])
    return batch


def test_states_are_those_of_the_prompts_own_tokens(nano):
    """Against the hidden states that transformers' own model computes of the prompt alone."""
    config = NanoConfig(hidden=32, layers=2, heads=2, context=64)
    model = nano_model(config, len(nano.tokenizer), 0).eval()
    prompts = ["1+1=", "23+4=", "7"]
    batch = valued(groups_of(nano, prompts, [[0.0]] * 3))
    models = Models(nano, nano, encode=nano.encode)
    states, mask = prompt_states(list(batch.episodes), batch, models)
    for row, here, prompt in zip(states, mask, prompts, strict=True):
        ids = torch.from_numpy(nano.encode(prompt))[None]
        with torch.no_grad():
            plain = model.base_model(input_ids=ids, use_cache=False).last_hidden_state[0]
        assert int(here.sum()) == ids.shape[1]
        assert torch.allclose(row[here], plain, atol=1e-5)


def test_an_interrupted_collection_goes_on(nano):
    models = Models(nano, nano, encode=nano.encode)
    value, other = PromptValue(steps=3, epochs=2), PromptValue(steps=3, epochs=2)
    for one_value in (value, other):
        torch.manual_seed(1)
        one_value.start(models)
    batch = valued(groups_of(nano, ["1+1=", "2*3="], [[1.0, 0.0], [0.0, 0.0]]))
    value.learn(batch, models)
    other.load_state_dict(value.state_dict())
    results = []
    for one_value in (value, other):
        models.rng = np.random.default_rng(5)
        one_value.learn(batch, models)
        one_value.learn(batch, models)
        results.append(one_value(batch, models))
    assert torch.equal(*results)


def test_the_head_ignores_padding_and_respects_its_ceiling():
    head = PooledValue(12, heads=8, ceiling=3.0)
    assert head.attention.num_heads == 6
    states = torch.randn(2, 4, 12)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    found = head(states, mask)
    states[1, 2:] = 1e3
    assert torch.allclose(head(states, mask), found) and bool(((found > 0) & (found < 3)).all())


def fitted(value: PromptValue, data) -> float:
    """The error that a fit to data of states, mean rewards and counts ends with."""
    value._data = list(data)
    models = Models(TabularPolicy(Tree.bandit(2)), rng=np.random.default_rng(0))
    return value._fit(models)["prompt_value/error"]


@pytest.mark.parametrize(("rewards", "value"), [((0.4, 1.0), 0.85), ((0.0, 0.0), 0.02), ((2.0, 2.0), 1.98)])
def test_a_fit_begins_at_the_mean_reward(rewards, value):
    """One response of 0.4 and three of 1, of rewards up to 2, and never quite at an end of what there is."""
    torch.manual_seed(0)
    part = PromptValue(steps=1, epochs=1, lr=1e-12, ceiling=2.0)
    part.head = PooledValue(4, ceiling=2.0)
    torch.nn.init.zeros_(part.head.out.weight)
    states = torch.randn(10, 3, 4)
    fitted(part, [(states[i], rewards[i % 2], 1 + 2 * (i % 2)) for i in range(10)])
    found = part.head(states, torch.ones(10, 3, dtype=torch.bool))
    assert found.tolist() == pytest.approx([value] * 10, abs=1e-5)


class Told(PromptValue):
    """A fit whose held-out errors are given; it keeps what was asked, and the weights at each held-out error."""

    def __init__(self, errors, **options):
        super().__init__(steps=1, lr=0.1, batch=4, **options)
        self.errors, self.asked, self.weights = iter(errors), [], []
        torch.manual_seed(0)
        self.head = PooledValue(4)

    def _error(self, members, device):
        held = not torch.is_grad_enabled()
        self.asked.append((held, tuple(members)))
        if not held:
            return super()._error(members, device)
        self.weights.append(self.head.out.weight.clone())
        return torch.tensor(next(self.errors))


def test_a_fifth_is_held_out_and_the_best_pass_is_kept():
    states = torch.randn(11, 3, 4, generator=torch.Generator().manual_seed(1))
    data = [(state, 0.1 * i, 2) for i, state in enumerate(states)]
    part = Told([0.5, 0.2, 0.9], epochs=3)
    assert fitted(part, data) == pytest.approx(0.2) and not part._data
    assert [len(members) for _, members in part.asked] == [4, 4, 1, 2] * 3
    assert [held for held, _ in part.asked] == [False, False, False, True] * 3
    train = [sorted(m for _, members in part.asked[k : k + 3] for m in members) for k in (0, 4, 8)]
    held = part.asked[3][1]
    assert train[0] == train[1] == train[2] == sorted(set(range(11)) - set(held))
    assert part.asked[0] != part.asked[4], "another order in each pass"
    assert torch.equal(part.head.out.weight, part.weights[1])
    assert not torch.equal(part.weights[1], part.weights[2])
    few = Told([0.5], epochs=1)
    fitted(few, data[:4])
    assert [len(members) for _, members in few.asked] == [4, 4], "of fewer than five none is spared"
    ten = Told([0.5], epochs=1)
    fitted(ten, data[:10])
    assert [len(members) for _, members in ten.asked] == [4, 4, 2]


def test_the_error_of_a_value_by_hand():
    """Prompts of 2 tokens and 1, with a value of one a token: (1 (2 - 1)^2 + 3 (1 - 5)^2) / 4."""
    part = PromptValue()
    part.head = lambda states, mask: mask.sum(-1).float()  # type: ignore[assignment]
    part._data = [(torch.zeros(2, 4), 1.0, 1), (torch.zeros(1, 4), 5.0, 3), (torch.zeros(3, 4), 0.0, 9)]
    assert float(part._error([0, 1], torch.device("cpu"))) == pytest.approx(12.25)


def test_what_a_value_is_made_of():
    torch.manual_seed(0)
    head = PooledValue(480)
    assert head.attention.num_heads == 8 and head.ceiling == 1.0 and head.out.out_features == 1
    assert (
        float(head.query.detach().std()) == pytest.approx(0.02, rel=0.1)
        and PooledValue(7, heads=3).attention.num_heads == 1
    )
    assert PooledValue(2, heads=8).attention.num_heads == 2


def test_values_are_kept_once_they_are_fixed(nano):
    models = Models(nano, nano, encode=nano.encode)
    part = PromptValue(steps=1, epochs=1)
    part.start(models)
    batch = valued(groups_of(nano, ["1+1=", "2*3="], [[1.0, 0.0], [0.0, 0.0]]))
    part(batch, models)
    assert not part._known
    part.learn(batch, models)
    found = part(batch, models)
    assert sorted(part._known.values()) == sorted(set(found.tolist())) and part.seen == 1


def test_records_are_drawn_without_generation():
    policy = TabularPolicy(Tree.bandit(3, [0.1, 0.5, 1.0]))
    engine = TabularEngine(policy)
    engine.generate = None  # type: ignore[assignment,method-assign]
    task = Task("t", "", meta={"responses": ["0", {"text": "1", "reward": 0.5}, "2"]})
    rollout = Recorded(Sampling(8))
    (group,) = rollout.collect([Ask(task, 2)], engine, np.random.default_rng(0))
    assert len(group.episodes) == 2 and len({e.text for e in group.episodes}) == 2 and not group.verdicts
    assert all(e.logprobs is None and (e.origins == Origin.TEACHER).all() for e in group.episodes)
    (group,) = rollout.collect([Ask(task, 9)], engine, np.random.default_rng(0))
    assert [e.text for e in group.episodes] == ["0", "1", "2"]
    scored = Task("t", "", meta={"responses": [{"text": "1", "reward": 0.5}, {"text": "2", "reward": 1.0}]})
    (group,) = rollout.collect([Ask(scored, 2)], engine, np.random.default_rng(0))
    assert [(v.score, v.passed) for v in group.verdicts] == [(0.5, False), (1.0, True)]
    (group,) = rollout.collect([Ask(Task("t", "", solution="2"), 4)], engine, np.random.default_rng(0))
    assert [e.text for e in group.episodes] == ["2"]
    with pytest.raises(RunError, match="no recorded response"):
        rollout.collect([Ask(Task("t", ""), 1)], engine, np.random.default_rng(0))
    bad = Task("t", "", meta={"responses": [{"text": "1", "reward": 2}]})
    with pytest.raises(RunError, match="outside"):
        rollout.collect([Ask(bad, 1)], engine, np.random.default_rng(0))


def test_it_samples_only_until_the_value_is_fitted():
    policy = TabularPolicy(Tree.bandit(3, [0.1, 0.5, 1.0]))
    method = make("S206", value_steps=1)
    value = method.rollout["first"]
    assert method.credit.value is value and method.select.value is value and method.learners == [value]
    rollout = build("rollout", method.rollout, sampling=Sampling(8))
    with pytest.raises(RunError, match="no part of the method learns"):
        rollout.collect([Ask(Task("t", ""), 4)], TabularEngine(policy), np.random.default_rng(0))
    models = Models(policy, policy.twin(), rng=np.random.default_rng(0))
    value.start(models)
    ask = Ask(Task("t", "", meta={"responses": ["0", "2"]}), 4)
    for role, sizes in (("value", 4), ("record", 2)):
        (group,) = rollout.collect([ask], TabularEngine(policy), np.random.default_rng(0))
        assert [e.meta["role"] for e in group.episodes] == [role] * sizes
        batch = Batch.from_groups(
            [group.judged([Verdict(0.5 if role == "value" else 0.9, False)] * sizes)], torch.float64
        )
        batch.signals["prompt_value"] = value(batch, models)
        method.value(batch)
        assert bool(batch.active.any()) == (role == "record"), "nothing is learned from the reference's own samples"
        value.learn(batch, models)


RECORDS = [
    Task("low", "", meta={"responses": [{"text": "0", "reward": 0.1}, {"text": "1", "reward": 0.4}]}),
    Task("high", "", meta={"responses": [{"text": t, "reward": r} for t, r in (("1", 0.6), ("2", 0.9), ("0", 0.3))]}),
    Task("none", "", meta={"responses": [{"text": "0", "reward": 0.2}]}),
]


class Known:
    """A value of 0.3 for every prompt."""

    name, models = "prompt_value", ("reference",)

    def __init__(self) -> None:
        self.ready = True

    def __call__(self, batch: Batch, models: Models) -> torch.Tensor:
        return torch.full((len(batch),), 0.3)


def data(draw: str = "priority", tasks=RECORDS) -> Drawn:
    select = PositiveLeftover(draw, Known())
    return Drawn(TrainStream(Listed(tasks)), 4, 25, select=select)


def looked_at(draw: str = "priority") -> tuple[Drawn, str]:
    """All records are judged and valued, none is generated; and what is said of it."""
    part = data(draw)
    method = make_method("S206", select=part.select, credit="reinforce", objective={"form": "free"})
    policy = TabularPolicy(Tree.bandit(3))
    engine = TabularEngine(policy)
    engine.generate = None  # type: ignore[assignment,method-assign]
    models, rng = Models(policy, policy.twin(), encode=engine.encode), np.random.default_rng(0)
    rows = look(part, part.survey(0), Recorded(Sampling(8)), engine, NoVerifier(), method, models, rng, torch.float64)
    return part, part.settle(0, json.loads(json.dumps(rows)))


def shares(part: Drawn, steps: int) -> dict[str, float]:
    """How often each record is drawn, by the first letter of its task and its text."""
    counts = Counter(
        ask.task.id[0] + record["text"]
        for step in range(steps)
        for ask in part.next(step)
        for record in ask.task.meta["responses"]
    )
    return {name: count / counts.total() for name, count in counts.items()}


def test_records_are_dropped_and_drawn_over_all_of_the_data():
    """Advantages of -0.2 and 0.1, of 0.3, 0.6 and 0, of -0.1: of six three are left, with 1, 3 and 6 chances in ten."""
    part, said = looked_at()
    assert said == "curriculum 'drawn': 3 of 6 recorded responses are drawn from, from step 1 on"
    assert part.survey(1) == []
    for step in range(3):
        asks = part.next(step)
        assert sum(a.n for a in asks) == 4 * 25 and all(a.n == len(a.task.meta["responses"]) for a in asks)
        assert all(a.task.meta["drawn"] for a in asks)
    found = shares(part, 100)
    assert found == {
        "l1": pytest.approx(0.1, abs=0.01),
        "h1": pytest.approx(0.3, abs=0.02),
        "h2": pytest.approx(0.6, abs=0.02),
    }
    even = shares(looked_at("uniform")[0], 100)
    assert even == {name: pytest.approx(1 / 3, abs=0.02) for name in ("l1", "h1", "h2")}
    assert len(shares(looked_at("all")[0], 20)) == 6
    # What goes on after a checkpoint draws the same.
    other = data()
    other.load_state_dict(json.loads(json.dumps(part.state_dict())))
    assert [(a.task, a.n) for a in other.next(7)] == [(a.task, a.n) for a in part.next(7)] and other.survey(8) == []
    assert [a.task for a in part.next(7)] != [a.task for a in part.next(8)]
    some = Drawn(TrainStream(Listed(RECORDS)), 4, 25, select=part.select, pool=2)
    some.survey(0)
    some.settle(0, [{"task": task, "chances": {"0": 0.5}} for task in some._pool.tasks])
    again = Drawn(TrainStream(Listed(RECORDS)), 4, 25, select=part.select, pool=2)
    again.load_state_dict(json.loads(json.dumps(some.state_dict())))
    assert [a.task for a in again.next(0)] == [a.task for a in some.next(0)]
    # Tasks that have gone since cannot be drawn, nor records.
    fewer = data(tasks=[replace(RECORDS[1], meta={"responses": RECORDS[1].meta["responses"][:1]}), RECORDS[2]])
    fewer.load_state_dict(part.state_dict())
    assert set(shares(fewer, 3)) == {"h1"}
    gone = data(tasks=[RECORDS[0]])
    gone.load_state_dict(part.state_dict())
    assert set(shares(gone, 3)) == {"l1"}
    assert part.seed == 0
    for name in ("_pool", "_left", "_chances"):
        with pytest.raises(TypeError):
            Drawn(part.stream, 4, 25, select=part.select, **{name: []})


def test_what_was_drawn_is_not_drawn_again(make_batch):
    """Of drawn tasks each response with A > 0 counts once; of others the selection draws itself."""
    part = PositiveLeftover()
    tasks = [Task("t", "", meta={"drawn": True})] * 3
    batch = make_batch([1, 1, 1], [0.9, 0.6, 0.2], tasks=tasks)
    batch.signals["prompt_value"] = torch.full((3,), 0.5)
    assert [part(batch).tolist() for _ in range(5)] == [[1, 1, 0]] * 5 and part.state_dict() == {"steps": 0}
    batch.tasks[0] = Task("t", "")
    assert len({tuple(part(batch).tolist()) for _ in range(9)}) > 1


def test_until_the_value_is_known_the_stream_is_asked():
    part = data()
    part.select.value.ready = False
    assert not part.select.ready and part.survey(0) == []
    assert [(a.n, "drawn" in a.task.meta) for a in part.next(0)] == [(25, False)] * 4
    part.select.value.ready = True
    assert len(part.survey(1)) == 3


def test_data_that_cannot_be_drawn_from():
    part = data()
    with pytest.raises(UsageError, match="task bare has no recorded response"):
        part.check([RECORDS[0], Task("bare", "")])
    part.check(RECORDS)
    part.survey(0)
    with pytest.raises(RunError, match="none of the responses of 3 tasks is worth drawing"):
        part.settle(0, [{"task": "low", "chances": {}}])
    with pytest.raises(UsageError, match="All gives none"):
        Drawn(TrainStream(Listed(RECORDS)), 4, 25, select=All())
    chained = Drawn(TrainStream(Listed(RECORDS)), 4, 25, select=Chain(["all", PositiveLeftover(value=Known())]))
    assert isinstance(chained.select, PositiveLeftover)


def test_a_run_fits_the_value_then_drops_and_draws(tmp_path):
    """Two steps of its own samples, then all records of the data are looked at, and drawn from."""
    tasks = [
        Task(f"t{i}", f"{i}+1=", reference=str(i + 1), meta={"responses": [str(i + 1), "0", "77"]}) for i in range(8)
    ]
    config = recipe(tmp_path / "run", warmup={"steps": 0}, run={"rollouts_every": 1})
    config["method"] = {"name": "S206", "options": {"value_steps": 2}}
    config["tasks"] = {"eval_size": "auto", "eval_share": 0.2}
    config["evaluate"] = {"every": 0, "samples": 0}
    config["train"] |= {"mini_batches": 1, "epochs": 1}
    trainer = build_trainer(load_config(config), Reporter(quiet=True), tasks=Listed(tasks))
    trainer.run()
    found = [[row for p in read_survey(survey_file(tmp_path / "run", step)) for row in p.rows] for step in range(5)]
    assert [step for step, rows in enumerate(found) if rows] == [2]
    assert [row["task"] for row in found[2]] == [task.id for task in trainer.stream.all()]
    # Right records are worth 1, others 0, of a value in between.
    assert all(list(row["chances"]) == ["0"] and 0 < row["chances"]["0"] < 1 for row in found[2])
    steps = list(tables(tmp_path / "run", "rollouts").values())
    assert [len(rows) for rows in steps] == [12, 12, 12, 12]
    for rows in steps[2:]:
        assert all(row["response"] == str(int(row["prompt"][0]) + 1) and row["passed"] for row in rows)


def final_reward(objective: Leftovers, weight: np.ndarray) -> float:
    """Expected reward after 100 expected steps at rate 2 on the records, from where their imitation ends."""
    policy = TabularPolicy(Tree.bandit(5), torch.from_numpy(np.log(SHARES))[None])
    episodes = tuple(policy.leaf_episodes(torch.arange(5)))
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 5), episodes, (Verdict.right(),) * 5)], torch.float64)
    batch.signals["reference_logprobs"] = policy.log_policy().detach().T.clone()
    # The mean over records is one over arms, each weighted by how often it is drawn, times 5 for the mean over samples.
    chances = SHARES * (weight > 0)
    batch.advantages = torch.from_numpy(5 * weight * chances / chances.sum())[:, None]
    for _ in range(100):
        loss = objective(policy.forward(batch).logprobs, batch).value
        (slope,) = torch.autograd.grad(loss, policy.logits)
        with torch.no_grad():
            policy.logits -= 2 * slope
    return float(policy.log_policy()[0].exp().detach() @ torch.from_numpy(REWARDS))


def test_options():
    method = make_method("S206", objective={"form": "token"}, select={"draw": "uniform"})
    assert method.objective.form == "token" and method.select.draw == "uniform"
    assert "reference_logprobs" in method.objective.needs
    assert "reference_logprobs" not in make_method("S206", objective={"form": "free"}).objective.needs
    with pytest.raises(UsageError, match="S206"):
        make_method("S206", objective={"clip": 1.5})
    with pytest.raises(UsageError, match="prompt_value"):
        PromptValue(steps=0)


def test_only_responses_above_the_value_are_drawn_in_proportion():
    rewards, values = [0.8, 0.5, 0.2, 0.6, 0.9], [0.5, 0.5, 0.5, 0.5, 0.1]
    found = drawn(rewards, values, [None, None, None, None, "value"], steps=1500)
    assert drawn(rewards, values, draw="uniform")[0].tolist() == [1, 0, 0, 1, 1]
    assert drawn(rewards, values, [None] * 4 + ["value"], draw="all")[0].tolist() == [1, 1, 1, 1, 0]
    shares = torch.stack([w / w.sum() for w in found])
    assert not shares[:, [1, 2, 4]].any()
    assert shares.mean(0)[[0, 3]].tolist() == pytest.approx([0.75, 0.25], abs=0.03), "A = 0.3 and 0.1"
    twice = drawn([0.8, 0.6, 0.2, 0.2, 0.2], [0.5] * 5, steps=50)
    assert {w for weights in twice for w in weights.tolist()} == {0, 1}, "two draws of two: both, or one of them twice"
    for weights in found[:50]:
        active = int((weights > 0).sum())
        assert float(weights.sum()) == pytest.approx(active), "a mean over active samples is the mean over draws"


def test_the_value_learns_which_prompts_are_hard_and_then_stays(nano):
    prompts = [f"{a}{op}{b}=" for a in range(1, 9) for b in range(1, 5) for op in "+*"]
    rewards = [[1.0, 1.0, 0.0, 1.0] if "+" in p else [0.0, 0.0, 1.0, 0.0] for p in prompts]
    value = PromptValue(steps=2, epochs=15, lr=1e-2)
    models = Models(nano, nano, encode=nano.encode, rng=np.random.default_rng(0))
    torch.manual_seed(0)
    value.start(models)
    batch = valued(groups_of(nano, prompts, rewards))
    assert not value.ready and value.learn(batch, models) == {}
    ours = valued(groups_of(nano, prompts, [[1.0]] * len(prompts), role="record"))
    metrics = value.learn(ours, models)
    assert value.ready and metrics["prompt_value/error"] < 0.02, "records are not what the reference earns"
    found = value(batch, models)
    easy = torch.tensor(["+" in p for p in prompts for _ in range(4)])
    assert float(found[easy].mean()) == pytest.approx(0.75, abs=0.1)
    assert float(found[~easy].mean()) == pytest.approx(0.25, abs=0.1)
    assert float(found[easy].min()) > float(found[~easy].max())
    assert value.learn(batch, models) == {} and torch.equal(value(batch, models), found)
    other = PromptValue(steps=2)
    other.start(models)
    other.load_state_dict(value.state_dict())
    assert other.ready and torch.equal(other(batch, models), found)


def test_it_earns_more_than_imitation():
    free = Leftovers(form="free")
    above = (REWARDS - 0.34).clip(0)
    imitation, weighted = final_reward(free, np.ones(5)), final_reward(free, REWARDS)
    assert imitation == pytest.approx(0.34) and weighted == pytest.approx(0.497, abs=0.01)
    assert imitation < weighted < final_reward(free, above) < final_reward(Leftovers(), above)


def test_the_lab_starts_where_imitation_ends(tmp_path):
    """At the records' frequencies, whose expected reward is 0.34, and samples nothing but for the value."""
    setting = load("offline", {"steps": 3, "tasks": 4, "records": 5000})
    found = setting.run({"name": "S206"}, 0, tmp_path)
    assert found["start"] == found["final"] == pytest.approx(0.34, abs=0.01)
    assert found["sampled"] == 3 * 8 * 16
    plain = setting.run({"name": "grpo", "rollout": "recorded", "objective": "sft"}, 0, tmp_path)
    assert plain["sampled"] == 0
    with pytest.raises(UsageError, match="one number for each arm"):
        load("offline", {"rewards": [0.5]})
