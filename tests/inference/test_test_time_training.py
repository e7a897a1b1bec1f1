"""Test-time training: what a step does, that nothing is left of it, what it costs, and what it is compared by."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.engines.recall.remembering import Remembering
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.errors import UsageError
from assay.inference.base import Budget
from assay.inference.named import make_strategy
from assay.inference.test_time_training import Adaptation, Checkpoint, best_of_adaptation
from assay.lab.settings import load
from assay.policies.borrowed import borrowed
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig, ModelConfig
from assay.policies.tabular import TabularPolicy, Tree, path_of
from assay.statistics.pass_at_k import pass_at_k
from assay.statistics.selection import equivalent_samples
from assay.statistics.sharpening import Step, distinct_at_k, oversharpened, sharpening
from assay.types import Episode, Task, Verdict

NANO = {"hidden": 16, "layers": 2, "heads": 2, "context": 64, "alphabet": "0123456789+= "}
TASKS = [Task(str(i), "") for i in range(4)]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


class Watching:
    """Judges paths of a tree, and notes the policy's logits whenever it does."""

    def __init__(self, policy: TabularPolicy, judge: Any):
        self.policy, self.judge = policy, judge
        self.seen: list[tuple[str, str, torch.Tensor]] = []

    def __call__(self, task: Task, response: str) -> Verdict:
        self.seen.append((task.id, response, self.policy.logits.detach().clone()))
        return self.judge(task, response)


def test_one_step_is_adams_first_on_grpos_loss(one_thread: None) -> None:
    """A right and a wrong sample: the right logit goes up by lr and the wrong one down by it, the third stays."""
    tree = Tree.of([0, 1, 0])
    policy = TabularPolicy(tree)
    base, lr = policy.logits.detach().clone(), 0.25
    watching = Watching(policy, TabularVerifier(tree))
    strategy = Adaptation(Sampling(1), watching, steps=1, lr=lr)
    mixed = 0
    for seed in range(20):
        watching.seen.clear()
        [answer] = strategy(TASKS[:1], TabularEngine(policy), 4, rng(seed))
        (_, a, start), (_, b, _), (_, _, after), _ = watching.seen
        assert torch.equal(start, base) and torch.equal(policy.logits, base)
        moved = torch.zeros(1, 3, dtype=base.dtype)
        if (a == "1") != (b == "1"):
            mixed += 1
            moved[0, 1], moved[0, int(a if b == "1" else b)] = lr, -lr
        assert torch.allclose(after - base, moved, atol=1e-6)
        assert answer.meta["trained"] == (2 if moved.any() else 0)
        assert answer.tokens == 4 + answer.meta["trained"]
    assert 0 < mixed < 20


def test_samples_are_those_of_the_adapted_policy_and_the_next_task_begins_anew(one_thread: None) -> None:
    tree = Tree.of([0, 1, 0, 0])
    policy = TabularPolicy(tree)
    base = policy.logits.detach().clone()
    watching = Watching(policy, TabularVerifier(tree))
    answers = Adaptation(Sampling(1), watching, steps=1, lr=50.0)(TASKS, TabularEngine(policy), 16, rng(3))
    for task, answer in zip(TASKS, answers, strict=True):
        first, second = answer.meta["steps"]
        # Eight of four arms: some right and some wrong, so that the step is certain to have come.
        assert first.trained == 8 and [e.text for e in second.episodes] == ["1"] * 8
        assert answer.meta["step"] == 1 and answer.text == "1"
        mine = [logits for t, _, logits in watching.seen if t == task.id]
        assert all(torch.equal(logits, base) for logits in mine[:8])
        assert not any(torch.equal(logits, base) for logits in mine[8:])


def snapshot(policy: Any) -> dict[str, Any]:
    """Everything that must be as it was: bits of weights, modules, flags, gradients, the model's own attributes."""
    module = policy.module
    model = getattr(policy, "model", module)
    return {
        "bits": {k: v.contiguous().view(torch.uint8).numpy().tobytes() for k, v in module.state_dict().items()},
        "modules": [(name, id(m), m.training) for name, m in module.named_modules()],
        "flags": [(name, id(p), p.requires_grad, p.grad is None) for name, p in module.named_parameters()],
        "names": sorted(vars(model)),
        "generator": torch.get_rng_state().numpy().tobytes(),
    }


def policies() -> dict[str, tuple[Any, int]]:
    """Policies by what is trained of them, and the rank of what is put on."""
    nano = {"source": "nano", "nano": NANO}
    own = CausalLM.load(ModelConfig(**nano, lora=LoraConfig(rank=2)), 0)
    for name, p in own.module.named_parameters():
        if "lora_B" in name:  # adapters that change something
            torch.nn.init.normal_(p, std=0.2)
    frozen = CausalLM.load(ModelConfig(**nano), 0)
    frozen.module.requires_grad_(False).eval()
    return {
        "own adapters": (own, 16),
        "adapters put on": (CausalLM.load(ModelConfig(**nano), 0), 4),
        "adapters put on a frozen model": (frozen, 4),
        "all weights": (CausalLM.load(ModelConfig(**nano), 0), 0),
        "bfloat16": (CausalLM.load(ModelConfig(**nano, dtype="bfloat16"), 0), 0),
    }


@pytest.mark.parametrize("how", list(policies()))
@pytest.mark.parametrize("end", [None, pytest.param(UsageError, marks=pytest.mark.slow), KeyboardInterrupt])
def test_not_a_bit_of_the_model_is_left_changed(how: str, end: type[BaseException] | None) -> None:
    if "put on" in how:
        pytest.importorskip("peft")
    policy, rank = policies()[how]
    before, calls, changed = snapshot(policy), [0], [False]

    def verifier(task: Task, response: str) -> Verdict:
        calls[0] += 1
        # Half of the samples are right, so that every step has something to learn.
        if calls[0] > 4:
            changed[0] |= any(p.requires_grad and bool((p != start[id(p)]).any()) for p in trained(policy))
        if end is not None and calls[0] == 11:
            raise end("in the middle of the second task")
        start.update((id(p), p.detach().clone()) for p in trained(policy) if id(p) not in start)
        return Verdict.right() if calls[0] % 2 else Verdict.wrong()

    start: dict[int, torch.Tensor] = {}
    strategy = Adaptation(Sampling(4), verifier, steps=1, lr=1e-2, rank=rank)
    tasks = [Task(str(i), "1+1=") for i in range(2)]
    if end is None:
        answers = strategy(tasks, HFEngine(policy), 8, rng())
        assert all(a.meta["trained"] > 0 for a in answers)
    else:
        with pytest.raises(end):
            strategy(tasks, HFEngine(policy), 8, rng())
    assert changed[0]
    assert snapshot(policy) == before


def trained(policy: CausalLM) -> list[torch.nn.Parameter]:
    return [p for p in policy.module.parameters() if p.requires_grad]


def test_what_is_trained_of_a_model() -> None:
    pytest.importorskip("peft")
    sizes = {}
    for how, (policy, rank) in policies().items():
        with borrowed(policy, rank) as held:
            assert {id(p) for p in held.parameters} == {id(p) for p in trained(policy)}
            sizes[how] = sum(p.numel() for p in held.parameters)
    # Two layers of q, k, v, o (16 x 16) and three of 16 x 48, each with rank (inputs + outputs).
    per_rank = 2 * (4 * 32 + 3 * 64)
    assert sizes["own adapters"] == 2 * per_rank
    assert sizes["adapters put on"] == sizes["adapters put on a frozen model"] == 4 * per_rank
    assert sizes["all weights"] == sizes["bfloat16"] > 10 * per_rank


def test_adapters_put_on_begin_by_changing_nothing_and_are_the_same_for_a_seed() -> None:
    pytest.importorskip("peft")
    policy = CausalLM.load(ModelConfig(source="nano", nano=NANO), 0)
    engine = HFEngine(policy)

    def run(seed: int) -> list[Any]:
        strategy = Adaptation(Sampling(4), even, steps=2, lr=3e-2, rank=2)
        return strategy([Task("a", "1+1="), Task("b", "2+1=")], engine, 12, rng(seed))

    first, again = run(0), run(0)
    assert [[e.text for e in a.episodes] for a in first] == [[e.text for e in a.episodes] for a in again]
    plain = make_strategy("majority", sampling=Sampling(4))([Task("a", "1+1="), Task("b", "2+1=")], engine, 4, rng())
    for a, b in zip(first, plain, strict=True):
        assert [e.text for e in a.meta["steps"][0].episodes] == [e.text for e in b.episodes]


def even(task: Task, response: str) -> Verdict:
    """Right for an even number of digits, which a model without training meets about every other time."""
    right = sum(c.isdigit() for c in response) % 2 == 0
    return Verdict.right() if right else Verdict.wrong()


def test_the_checkpoint_is_chosen_by_its_own_samples() -> None:
    def made(rates: list[float]) -> list[Checkpoint]:
        none = np.zeros(0, dtype=np.int64)
        e = Episode(none, none, none.astype(bool), None, "", "eos")
        n = 1000
        return [
            Checkpoint((e,) * n, (Verdict.right(),) * round(n * r) + (Verdict.wrong(),) * round(n * (1 - r)))
            for r in rates
        ]

    assert best_of_adaptation(made([0.494, 0.550, 0.456, 0.419])) == 1
    assert best_of_adaptation(made([0.3, 0.3])) == 0
    assert best_of_adaptation(made([0.0, 0.0, 0.001])) == 2
    unknown = Checkpoint(made([0.5])[0].episodes[:1], (Verdict.abstain("down"),))
    assert unknown.worth == (0.0, 0.0) and unknown.step() is None
    assert best_of_adaptation([unknown, *made([0.1])]) == 1


def test_patience_stops_at_the_first_fall(one_thread: None) -> None:
    """Scores by the number of judgements so far: the third checkpoint is worse than the second."""
    policy = TabularPolicy(Tree.uniform(3, 2))
    shares = [0.25, 0.5, 0.25, 1.0]

    def run(patience: int | None) -> Any:
        count = [0]

        def verifier(task: Task, response: str) -> Verdict:
            step, place = divmod(count[0], 4)
            count[0] += 1
            return Verdict.right() if place < 4 * shares[step] else Verdict.wrong()

        strategy = Adaptation(Sampling(2), verifier, steps=3, patience=patience)
        return strategy(TASKS[:1], TabularEngine(policy), 16, rng())[0]

    stopped, whole = run(1), run(None)
    assert [c.worth[0] for c in stopped.meta["steps"]] == shares[:3] and stopped.meta["step"] == 1
    assert [c.worth[0] for c in whole.meta["steps"]] == shares and whole.meta["step"] == 3
    # Twelve samples of two tokens, eight of them learned from; sixteen, twelve of them.
    assert stopped.tokens == 24 + 16 and whole.tokens == 32 + 24


@settings(max_examples=30)
@given(
    tokens=st.integers(1, 60),
    samples=st.none() | st.integers(1, 20),
    steps=st.integers(0, 5),
    price=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)
def test_no_more_is_spent_than_there_is(tokens: int, samples: int | None, steps: int, price: float) -> None:
    tree = Tree.uniform(2, 2, rewards=[0, 1, 0, 1])
    strategy = Adaptation(Sampling(2), TabularVerifier(tree), steps=steps, price=price, lr=0.1)
    engine = TabularEngine(TabularPolicy(tree))
    for answer in strategy(TASKS[:2], engine, Budget(samples, tokens), rng()):
        assert answer.tokens <= max(tokens, 1)
        assert samples is None or len(answer.episodes) <= samples
        assert answer.tokens >= sum(len(e.tokens) for e in answer.episodes) + price * answer.meta["trained"] - 0.5
        trajectory = answer.meta["steps"]
        assert 1 <= len(trajectory) <= steps + 1
        assert trajectory[-1].trained == 0


def test_the_budget_is_shared_evenly(one_thread: None) -> None:
    tree, steps = Tree.uniform(2, 2, rewards=[0, 1, 0, 1]), 3
    strategy = Adaptation(Sampling(2), TabularVerifier(tree), steps=steps, lr=0.1)
    engine = TabularEngine(TabularPolicy(tree))
    for k in (1, 3, 7, 20):
        for answer in strategy(TASKS[:2], engine, k, rng()):
            counts = [len(c.episodes) for c in answer.meta["steps"]]
            assert sum(counts) == k and max(counts) - min(counts) <= 1
            assert len(counts) == max(1, min(steps + 1, k // 2))


@pytest.mark.slow
def test_what_an_engine_remembers_is_not_taken_for_samples_of_other_weights(one_thread: None) -> None:
    tree = Tree.uniform(3, 2, rewards=[0, 1, 0, 0, 0, 1, 1, 0, 0])
    policy = TabularPolicy(tree)
    made = [Adaptation(Sampling(2), TabularVerifier(tree), steps=3, lr=lr) for lr in (1.0, 1.5)]

    def texts(engine: Any, strategy: Adaptation, budget: int) -> list[list[str]]:
        return [[e.text for e in a.episodes] for a in strategy(TASKS, engine, budget, rng())]

    shared = Remembering(TabularEngine(policy))
    for budget in (32, 16):
        for strategy in made:
            assert texts(shared, strategy, budget) == texts(TabularEngine(policy), strategy, budget)


class Noting:
    """An engine that notes what it is asked and what it answers."""

    def __init__(self, engine: TabularEngine):
        self.engine, self.policy = engine, engine.policy
        self.asked: list[tuple[Any, list[str]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def generate(self, requests: Any) -> Any:
        found = self.engine.generate(requests)
        self.asked += [(r, [e.text for e in many]) for r, many in zip(requests, found, strict=True)]
        return found


def test_steps_too_small_to_matter_are_plain_samples(one_thread: None) -> None:
    """So that its success is pass@K, and its equivalent K is K."""
    tree = Tree.uniform(3, 2, rewards=[0, 1, 0, 0, 0, 0, 0, 0, 0])
    engine = Noting(TabularEngine(TabularPolicy(tree)))
    strategy = Adaptation(Sampling(2), TabularVerifier(tree), steps=1, lr=1e-12)
    answers = strategy([Task(str(i), "") for i in range(20)], engine, 6, rng(1))
    assert sum(r.n for r, _ in engine.asked) == 120
    for request, texts in engine.asked:
        assert [e.text for e in engine.engine.generate([request])[0]] == texts
    assert len({r.seed for r, _ in engine.asked}) == 40
    for answer in answers:
        assert answer.abstains == ("0/1" not in [e.text for e in answer.episodes])
    # One of nine base samples right: the least K whose pass@K is the rate of six samples.
    totals, corrects, exact = np.full(1, 9000), np.full(1, 1000), 1 - (8 / 9) ** 6
    assert equivalent_samples(totals, corrects, exact - 1e-3) == 6
    assert float(pass_at_k(totals, corrects, 6)[0]) == pytest.approx(exact, abs=1e-3)


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=7), st.data())
def test_distinct_at_k_is_the_mean_over_subsets(solutions: list[str], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(solutions)))
    sets = [len(set(c)) for c in combinations(solutions, k)]
    assert distinct_at_k(solutions, k) == pytest.approx(sum(sets) / len(sets))


def test_sharpening_by_hand() -> None:
    assert distinct_at_k(["a", "a", "a", "b"], 2) == pytest.approx(1.5)
    before = Step(("a", "b", "c", "d"), (0.0, 0.0, 0.2, 1.0))
    after = Step(("c", "c"), (0.6, 0.6))
    found = sharpening([[before, after]])
    assert [s.k for s in found] == [2, 2] and [s.distinct for s in found] == pytest.approx([2.0, 1.0])
    # The better of two: 1 in half of the pairs, .2 in two of six.
    assert [s.best for s in found] == pytest.approx([(3 * 1.0 + 2 * 0.2) / 6, 0.6])
    assert [s.mean for s in found] == pytest.approx([0.3, 0.6])
    assert [s.spread for s in found] == pytest.approx([math.sqrt((2 * 0.09 + 0.01 + 0.49) / 4), 0.0])
    assert oversharpened(found) is None  # .6 is more than .567
    assert oversharpened(sharpening([[before, Step(("c", "c"), (0.5, 0.5))]])) == 1
    assert oversharpened(sharpening([[before, before]])) is None
    # A task that stopped early counts for the steps it took.
    uneven = sharpening([[before, after], [before]])
    assert [s.tasks for s in uneven] == [2, 1] and uneven[1].mean == pytest.approx(0.6)
    with pytest.raises(ValueError, match="at least one sample"):
        sharpening([[Step((), ())]])


def test_adapting_makes_samples_better_and_more_alike(one_thread: None) -> None:
    """On a tree of 27 leaves with graded scores: the mean rises, distinct solutions fall."""
    tree = Tree.uniform(3, 3)
    policy = TabularPolicy(tree)

    def verifier(task: Task, response: str) -> Verdict:
        score = sum(path_of(response) or ()) / 6
        return Verdict(score, score > 0)

    strategy = Adaptation(Sampling(3), verifier, steps=5, lr=0.5)
    answers = strategy([Task(str(i), "") for i in range(8)], TabularEngine(policy), 96, rng())
    found = sharpening([[c.step() for c in a.meta["steps"]] for a in answers])
    assert len(found) == 6 and {s.tasks for s in found} == {8}
    means, distinct = [s.mean for s in found], [s.distinct for s in found]
    assert means[0] < means[2] < means[5] and distinct[0] > distinct[2] > distinct[5]
    # Untrained, a leaf is worth 1/2, and 16 of 27 equally likely ones are 27 (1 - (26/27)^16) different.
    assert means[0] == pytest.approx(0.5, abs=0.06)
    assert distinct[0] == pytest.approx(27 * (1 - (26 / 27) ** 16), abs=0.8)
    assert means[-1] > 0.85 and distinct[-1] < 8


def test_what_cannot_be(one_thread: None) -> None:
    endpoint: Any = object()
    with pytest.raises(UsageError, match="no weights here"):
        Adaptation()(TASKS, endpoint, 4, rng())
    for wrong in ({"steps": -1}, {"lr": 0.0}, {"rank": -1}, {"rule": "best"}, {"patience": 0}, {"price": -1.0}):
        with pytest.raises(UsageError):
            Adaptation(**wrong)
    policy = TabularPolicy(Tree.of([0, 1]))
    down = Adaptation(Sampling(1), lambda task, response: Verdict.abstain("down"), steps=2)
    [answer] = down(TASKS[:1], TabularEngine(policy), 6, rng())
    assert answer.abstains and answer.meta["unscored"] == 6 and answer.meta["trained"] == 0


def test_by_name_in_the_labs_setting(tmp_path: Any, one_thread: None) -> None:
    setting = load("solutions", {"tasks": 6, "samples": 24})
    arm = {"name": "test_time_training", "steps": 3, "lr": 0.3}
    found = setting.run(arm, 0, tmp_path)
    assert 0 < found["speed"] <= found["best"] + 1e-9 and found["answered"] > 0.5


def test_on_the_command_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from assay.cli.strategies import command
    from assay.evaluate.strategies.comparison import Comparison

    recipe = tmp_path / "r.toml"
    recipe.write_text(
        """
[model]
source = "nano"
nano = {hidden = 16, layers = 1, heads = 2, context = 64, alphabet = "0123456789+=\\n"}
[tasks]
eval_size = 3
source = {name = "arithmetic", digits = 1}
[rollout]
max_tokens = 4
"""
    )
    names = "best_of_n(scorer=verifier),test_time_training(steps=2,lr=0.01,patience=1),test_time_training(rank=0)"
    assert command(str(recipe), (), names, "6,48t", None, True) == 0
    found = Comparison.from_json(capsys.readouterr().out)
    assert len(found.points) == 6 and all(len(p.outcomes) == 3 for p in found.points)
    assert all(o.tokens <= 48 for p in found.points if p.budget == "48t" for o in p.outcomes)
