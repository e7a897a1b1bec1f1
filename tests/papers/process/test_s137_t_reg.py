"""T-REG: rewards of tokens by two prompts, the regulariser and its gradient by hand, and blame for a planted token."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run, weights

from assay.batch import Batch
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.method import make_method
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO, IPO, SimPO
from assay.papers.process.s137_t_reg import Contrast, TokenRewards
from assay.policies.tabular import TabularPolicy, Tree
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
NOBODY = np.zeros(0, dtype=np.int64)


def episode(*tokens: int, prompt: tuple[int, ...] = ()) -> Episode:
    ids = np.array(tokens, dtype=np.int64)
    return Episode(np.array(prompt, dtype=np.int64), ids, ids >= 0, None, "/".join(map(str, tokens)), "eos")


def worked() -> tuple[Batch, torch.Tensor]:
    """A chosen response of two tokens and a rejected one of one: pi, the reference and the rewards of tokens."""
    verdicts = (Verdict.right(), Verdict.wrong())
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 2), (episode(0, 1), episode(2)), verdicts)], torch.float64)
    batch.rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    batch.signals["reference_logprobs"] = torch.tensor([[0.4, 0.25], [0.2, 1.0]], dtype=torch.float64).log()
    batch.signals["contrast"] = torch.tensor([[0.25, -0.3], [-0.3, 0.0]], dtype=torch.float64)
    batch.totals = batch.count()
    logprobs = torch.tensor([[0.5, 0.2], [0.3, 1.0]], dtype=torch.float64).log().requires_grad_(True)
    return batch, logprobs


def test_the_loss_by_hand() -> None:
    batch, logprobs = worked()
    objective = DPO(0.1, regulariser=TokenRewards(0.25, Contrast()))
    assert DPO(0.1)(logprobs, batch).value.item() == pytest.approx(0.7136259, abs=1e-7)
    assert objective(logprobs, batch).value.item() == pytest.approx(0.7050717, abs=1e-6)
    regulariser = TokenRewards(1.0, Contrast(), weighted=False)
    first, second = torch.tensor([0]), torch.tensor([1])
    found = regulariser(torch.zeros(1), first, second, logprobs, batch, 0.1)
    assert found.item() == pytest.approx(-0.0670736, abs=1e-7)
    assert TokenRewards(1.0, Contrast())(
        torch.tensor([-0.0405465]), first, second, logprobs, batch, 0.1
    ).item() == pytest.approx(0.5101352 * -0.0670736, abs=1e-7)
    # Nothing to go by: the plain loss.
    batch.signals["contrast"] = torch.zeros_like(batch.signals["contrast"])
    assert objective(logprobs, batch).value.item() == pytest.approx(0.7136259, abs=1e-7)


def test_the_weight_is_that_of_the_gradient() -> None:
    """d DPO / d h_w = -beta w; and nothing flows through w into the regulariser."""
    batch, logprobs = worked()
    [slope] = torch.autograd.grad(DPO(0.1)(logprobs, batch).value, logprobs)
    assert slope[0, 0].item() == pytest.approx(-0.1 * 0.5101352, abs=1e-8)
    objective = DPO(0.1, regulariser=TokenRewards(0.25, Contrast()))
    [both] = torch.autograd.grad(objective(logprobs, batch).value, logprobs)
    # alpha w beta r of each token, and no more.
    rest = -(both - slope) / (0.25 * 0.5101352 * 0.1)
    assert rest[batch.mask].tolist() == pytest.approx([0.25, -0.3, -0.3], abs=1e-5)


def test_the_gradient_raises_praised_tokens_in_both_responses() -> None:
    batch, logprobs = worked()
    batch.signals["contrast"] = torch.tensor([[-0.4, 0.1], [0.3, 0.0]], dtype=torch.float64)
    regulariser = TokenRewards(1.0, Contrast(), weighted=False)
    term = regulariser(torch.zeros(1), torch.tensor([0]), torch.tensor([1]), logprobs, batch, 0.1).sum()
    [slope] = torch.autograd.grad(term, logprobs)
    assert (-slope[batch.mask] / 0.1).tolist() == pytest.approx([-0.4, 0.1, 0.3])


def test_simpo_takes_the_same_regulariser() -> None:
    """Means of log pi: (log .5 + log .2) / 2 against log .3; beta 2, gamma 1."""
    batch, logprobs = worked()
    margin = (math.log(0.5) + math.log(0.2)) / 2 - math.log(0.3)
    logit = 2 * margin - 1
    plain = SimPO(2.0, gamma=1.0)
    assert plain.needs == frozenset() and plain(logprobs, batch).value.item() == pytest.approx(
        math.log1p(math.exp(-logit))
    )
    term = -2 * (0.25 * math.log(0.5) - 0.3 * math.log(0.2) - 0.3 * math.log(0.3))
    weight = 1 / (1 + math.exp(logit))
    found = SimPO(2.0, gamma=1.0, regulariser=TokenRewards(0.5, Contrast()))(logprobs, batch).value.item()
    assert found == pytest.approx(math.log1p(math.exp(-logit)) + 0.5 * weight * term)
    method = make_method("S137", options={"loss": "simpo"})
    assert isinstance(method.objective, PickedPairs) and isinstance(method.objective.loss, SimPO)
    assert {n if isinstance(n, str) else n.name for n in method.needs} == {"contrast"}
    assert method.objective.loss == SimPO(2.0, regulariser=TokenRewards(0.25, Contrast()))
    usual: Any = make_method("S137").objective
    assert usual.loss == DPO(0.1, regulariser=TokenRewards(0.25, Contrast(), True)) and usual.loss.beta == 0.1
    with pytest.raises(UsageError, match="gamma"):
        SimPO(gamma=-1.0)
    with pytest.raises(UsageError, match="dpo and simpo alone"):
        IPO(regulariser=TokenRewards(0.5, Contrast()))


def evaluator() -> TabularPolicy:
    """Token 0 or 1 under a prompt: .3 and .7 after the prompt 0, .1 and .9 after 1; alike after 2."""
    policy = TabularPolicy(Tree.of([[0.0, 0.0]] * 3))
    with torch.no_grad():
        for q, p in enumerate((0.3, 0.1, 0.5)):
            policy.logits[policy.tree.node([q]), :2] = torch.tensor([p, 1 - p], dtype=torch.float64).log()
    return policy


class Reading(Models):
    """Counts passes of the reference."""

    passes = 0

    def quantities(self, *arguments: Any, **options: Any) -> Any:
        Reading.passes += 1
        return super().quantities(*arguments, **options)


def read(signal: Contrast, *tokens: int, temperature: float = 1.0) -> list[list[float]]:
    policy = evaluator()
    encode = lambda prompt: np.array([int(c) for c in prompt], dtype=np.int64)  # noqa: E731
    models = Reading(policy, policy.twin(), temperature, encode=encode)
    many = tuple(episode(t, prompt=(2,)) for t in tokens)
    batch = Batch.from_groups([Group(Ask(Task("t", ""), len(many)), many)], torch.float64)
    return [[round(x, 9) for x in row] for row in signal(batch, models).tolist()]


def test_token_rewards_by_hand() -> None:
    """.3 against .1 is 1/4; .7 against .9 is sigmoid(log .7/.9) - 1/2 = -1/16; swapped, .1 against .3 is -1/4."""
    assert read(Contrast("0", "1"), 0, 1) == [[0.25], [-0.0625]]
    assert read(Contrast("1", "0"), 0) == [[-0.25]]
    assert read(Contrast("0", "1"), 0, temperature=2.0) == [[0.25]], "the temperature of sampling plays no part"
    with pytest.raises(UsageError, match="no contrast"):
        Contrast("{question}", "{question}")


def test_they_are_computed_once_by_the_reference() -> None:
    signal = Contrast("0", "1")
    assert signal.models == {"reference"}
    Reading.passes = 0
    first = read(signal, 0, 1, 0)
    assert Reading.passes == 4, "two prompts for each of two responses"
    assert read(signal, 0, 1, 0) == first and Reading.passes == 4
    assert hash(signal) == hash(Contrast("0", "1")) and signal == Contrast("0", "1")
    assert repr(signal) == repr(Contrast("0", "1"))
    with pytest.raises(TypeError):
        Contrast(_known={})  # type: ignore[call-arg]


def test_a_prompt_without_room_gives_no_reward() -> None:
    policy = evaluator()
    policy.context = 1  # type: ignore[attr-defined]
    models = Models(policy, policy.twin(), encode=lambda prompt: np.array([int(prompt)]))
    batch = Batch.from_groups([Group(Ask(Task("t", ""), 1), (episode(0, prompt=(2,)),))])
    assert Contrast("0", "1")(batch, models).tolist() == [[0.0]]
    policy.context = 2  # type: ignore[attr-defined]
    assert Contrast("0", "1")(batch, models).item() == pytest.approx(0.25)


def test_baselines() -> None:
    batch, logprobs = worked()
    chosen = make_method("S137", options={"rewards": "chosen", "weighted": False}).objective
    assert isinstance(chosen, PickedPairs) and chosen.needs == {"reference_logprobs"}
    # -beta times the log-probability of the chosen response, alpha times.
    expected = 0.7136259 - 0.25 * 0.1 * math.log(0.5 * 0.2)
    assert chosen(logprobs, batch).value.item() == pytest.approx(expected, abs=1e-7)
    trained = evaluator()
    with torch.no_grad():
        trained.logits[trained.tree.node([2]), 0] += 1.0
    # Half, and e / (e + 1): the model's log-ratio to the reference.
    ratio = math.log(math.e / (math.e + 1) / 0.5)
    assert read(Contrast(model=trained), 0) == [[pytest.approx(1 / (1 + math.exp(-ratio)) - 0.5, abs=1e-8)]]
    with pytest.raises(UsageError, match="alpha"):
        make_method("S137", options={"alpha": -1.0})
    plain = make_method("S137", options={"alpha": 0.0}).objective
    assert plain == PickedPairs(DPO(0.1))


def test_the_pair_is_the_best_and_the_worst_of_five() -> None:
    method = make_method("S137")
    assert method.rollout == "recorded"
    rewards = [0.4, 0.9, 0.1, 0.6, 0.5]
    group = Group(Ask(Task("t", ""), 5), tuple(episode(i) for i in range(5)), (Verdict.right(),) * 5)
    batch = Batch.from_groups([group], torch.float64)
    batch.rewards = torch.tensor(rewards, dtype=torch.float64)
    assert method.select(batch).tolist() == [0, 1, 1, 0, 0]
    assert batch.signals["pair_over"][1].tolist() == [2]


def test_a_blamed_token_of_a_chosen_response_loses() -> None:
    """Chosen "0/1" against "1/0"; the evaluator blames token 1 after 0. DPO alone raises it, and T-REG lowers it.

    The two prompts of the evaluator are the children 2 and 3 of the root, with one tree of responses each.
    """
    half = [[0.0, 0.0], [0.0, 0.0]]
    tree = Tree.of([*half, half, half])
    start = TabularPolicy(tree)
    with torch.no_grad():
        start.logits[0, 2:] = -1e4
        for mode, sign in ((2, -4.0), (3, 4.0)):
            start.logits[tree.node([mode, 0]), 1] = sign
    records = [{"text": "0/1", "reward": 1.0}, {"text": "1/0", "reward": 0.0}]
    after = {}
    for name, alpha in (("dpo", 0.0), ("t-reg", 4.0)):
        policy = start.twin()
        method = {"name": "S137", "options": {"alpha": alpha, "better": "2", "worse": "3"}}
        task = Task("t", "", kind="tabular", meta={"responses": records})
        train(policy, [task], TabularVerifier(tree), method, Training(10, 1, 2, 2.0), 0)
        after[name] = policy.log_policy().exp()[tree.node([0]), 1].item()
    assert after["dpo"] > 0.51 and after["t-reg"] < 0.49


def test_a_run_learns_from_records_under_it(tmp_path: Path) -> None:
    sections: dict[str, Any] = {"warmup": {"steps": 0}, "evaluate": {"every": 0}, "tasks": {"eval_size": 2}}
    sections["train"] = {"steps": 2, "epochs": 1, "mini_batches": 1}
    options = {"better": "{question}1", "worse": "{question}2", "rollout": "single_turn"}
    arms = {a: {"name": "S137", "options": {**options, "alpha": a}} for a in (0.0, 4.0)}
    folders = {a: run(tmp_path / str(a), method=method, **sections) for a, method in arms.items()}
    rows = [row for row in metrics(folders[4.0]) if row["stage"] == "rl"]
    assert all(row["pairs"] > 0 and math.isfinite(row["loss"]) for row in rows)
    one, other = (weights(folder) for folder in folders.values())
    assert not all(torch.equal(one[k], other[k]) for k in one)


@pytest.mark.slow
def test_fewer_flaws_than_with_dpo_where_the_evaluator_has_an_idea() -> None:
    found = {arm: learned("S137", arm, steps=15, lr=30.0) for arm in ("t-reg", "dpo")}
    assert found["t-reg"]["blamed"] > found["dpo"]["blamed"] > 0
    assert found["t-reg"]["right"] > found["dpo"]["right"] > 0.4 > found["dpo"]["start"]
