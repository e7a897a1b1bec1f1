"""LaSeR: verdicts, weights and mixed advantages by hand, the schedule, the gradient, and the vote."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from running import metrics, run
from tiny import TOKENIZER, plain_logits, tiny

from assay.batch import Batch
from assay.catalogue import make
from assay.credit.grpo import GRPO
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine
from assay.errors import RunError, UsageError
from assay.inference.voting.last_token_vote import LastTokenVote, last_token_scores, vote_by_verdict, weighted_vote
from assay.learning.signals import check_signals, compute_signals
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.ops import group_std
from assay.papers.objectives.s081_laser import LastTokenLoss, SelfRewardMix
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.signals.base import Models
from assay.signals.last_token import LastToken
from assay.statistics.self_verification import self_verification
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

NOBODY = Models(TabularPolicy(Tree.bandit(2)))
"""Models that are not asked: the log-probabilities are given."""

SAID, RIGHT, OWN = [-13.5, -22.0, -14.0, -20.0], [True, False, True, True], [0.5, -1.5, 0.5, 0.5]


def judged(make_batch, said=SAID, passed=RIGHT, phase=2, truncated=()) -> tuple[Batch, LastToken]:
    batch = make_batch([2] * len(said), [float(p) for p in passed], None, passed)
    for i in truncated:
        object.__setattr__(batch.episodes[i], "stop", "length")
    signal = LastToken(scale=0.1, reference=-23.0, warmup=0, rest=0)
    signal.seen = 0
    batch.signals["policy_next_logprob@0"] = torch.tensor(said, dtype=torch.float64)
    batch.signals[signal.name] = signal(batch, NOBODY)
    batch.signals["last_token_phase"][:] = phase
    return batch, signal


def squares(batch: Batch, objective: LastTokenLoss, said=SAID) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss with the policy gradient at zero advantages, and the live verdicts' log-probabilities."""
    live = torch.tensor(said, dtype=torch.float64, requires_grad=True)
    batch.live = {"next_logprob@0": live}
    objective.prepare(batch)
    return objective(torch.zeros(batch.mask.shape, dtype=torch.float64), batch).value, live


def test_the_worked_example(make_batch):
    batch, signal = judged(make_batch)
    assert batch.signals["self_verdict"].tolist() == pytest.approx([0.95, 0.1, 0.9, 0.3])
    loss, live = squares(batch, LastTokenLoss(alpha=1.0, verdict=signal))
    assert batch.signals["last_token_weight"].tolist() == pytest.approx([2 / 3, 2, 2 / 3, 2 / 3])
    assert loss.item() == pytest.approx(0.08875)
    (slope,) = torch.autograd.grad(loss, live)
    want = [
        2 / 4 * w * 0.1 * (r - y)
        for w, r, y in zip([2 / 3, 2, 2 / 3, 2 / 3], [0.95, 0.1, 0.9, 0.3], RIGHT, strict=True)
    ]
    assert slope.tolist() == pytest.approx(want)
    assert squares(batch, LastTokenLoss(alpha=1.0, balanced=False, verdict=signal))[0].item() == pytest.approx(0.128125)
    assert squares(batch, LastTokenLoss(alpha=0.5, verdict=signal))[0].item() == pytest.approx(0.044375)


def test_the_target_of_the_verdict(make_batch):
    """Right is at reference + 1 / scale, wrong at the reference."""
    batch, signal = judged(make_batch, [-13.0, -23.0], [True, False])
    assert squares(batch, LastTokenLoss(verdict=signal), [-13.0, -23.0])[0].item() == pytest.approx(0, abs=1e-12)


def test_mixed_advantages(make_batch):
    batch, _ = judged(make_batch)
    mixed = SelfRewardMix(tau=1.0)(batch)[:, 0]
    assert mixed.tolist() == pytest.approx([0.907587, -1.083249, 0.790479, -0.614817], abs=1e-6)
    want = [0.540759, -1.458325, 0.529048, 0.388518]
    assert SelfRewardMix()(batch)[:, 0].tolist() == pytest.approx(want, abs=5e-6)
    assert GRPO()(batch)[:, 0].tolist() == pytest.approx(OWN, abs=5e-6)


def test_verdicts_that_hardly_differ_say_nothing(make_batch):
    batch, _ = judged(make_batch, [-13.0, -13.5, -14.0, -13.2])
    assert float(batch.signals["self_verdict"].std()) < 0.1
    assert torch.equal(SelfRewardMix()(batch), GRPO()(batch))
    assert not torch.equal(SelfRewardMix(least=0.01)(batch), GRPO()(batch))


def test_verdicts_are_clipped_before_they_are_compared(make_batch):
    far, _ = judged(make_batch, [-3.0, -50.0, -13.0, -23.0])
    near, _ = judged(make_batch, [-13.0, -23.0, -13.0, -23.0])
    assert torch.allclose(SelfRewardMix()(far), SelfRewardMix()(near))


def test_a_truncated_response_has_no_verdict(make_batch):
    batch, signal = judged(make_batch, truncated=[0])
    assert batch.signals["self_verdict"][0] == 0
    _, live = squares(batch, LastTokenLoss(verdict=signal))
    loss, live = squares(batch, LastTokenLoss(verdict=signal))
    assert torch.autograd.grad(loss, live)[0][0] == 0
    assert batch.signals["last_token_weight"].tolist() == pytest.approx([0, 1.5, 0.75, 0.75])
    other, _ = judged(make_batch, [-23.0, *SAID[1:]])
    assert torch.allclose(SelfRewardMix()(batch), SelfRewardMix()(other))


def test_a_class_that_is_absent(make_batch):
    batch, signal = judged(make_batch, SAID, [True] * 4)
    loss, _ = squares(batch, LastTokenLoss(alpha=1.0, verdict=signal))
    assert batch.signals["last_token_weight"].tolist() == [0.5] * 4 and math.isfinite(loss.item())


def test_one_response_and_one_token(make_batch):
    """Half of the square of 0.95 - 1, for the class that is absent weighs nothing; and a single token is a response."""
    batch, signal = judged(make_batch, SAID[:1], [True])
    objective = LastTokenLoss(alpha=1.0, verdict=signal)
    assert squares(batch, objective, SAID[:1])[0].item() == pytest.approx(0.05**2 / 2)
    short = make_batch([1, 0], [1.0, 1.0], None, [True, True])
    objective.prepare(short)
    assert short.signals["last_token_weight"].tolist() == [0.5, 0]


def test_verdicts_that_differ_just_so_much_say_nothing(make_batch):
    batch, _ = judged(make_batch, [-13.0, -18.0, -13.0, -18.0])
    least = float(group_std(batch.signals["self_verdict"], batch.group, batch.active)[0])
    assert torch.equal(SelfRewardMix(least=least)(batch), GRPO()(batch))


def test_phases(make_batch):
    signal = LastToken(warmup=2, rest=3, reference=-23.0)
    seen = []
    for _ in range(7):
        batch, _ = judged(make_batch)
        batch.signals[signal.name] = signal(batch, NOBODY)
        seen.append(int(batch.signals["last_token_phase"][0]))
        found = signal.learn(batch, NOBODY)
    assert seen == [0, 0, 1, 1, 1, 2, 2]
    assert found["self_verdict/right"] == pytest.approx(2 / 3) and found["self_verdict/wrong"] == 1
    assert found["self_verdict/f1"] == pytest.approx(0.8) and found["self_verdict/reference"] == -23
    other = LastToken(warmup=2, rest=3)
    other.load_state_dict(signal.state_dict())
    assert other.phase == 2 and other.reference == -23.0
    batch, signal = judged(make_batch, phase=0)
    assert squares(batch, LastTokenLoss(verdict=signal))[0].item() == 0
    assert torch.equal(SelfRewardMix()(judged(make_batch, phase=1)[0]), GRPO()(batch))


@pytest.mark.parametrize(("steps", "phase"), [(100, 20), (999, 199), (1000, 200), (5000, 200), (4, 0)])
def test_in_a_short_run_every_phase_has_its_turn(steps, phase):
    """The authors' 200 and 200 of their 1000 steps, and as large a part of fewer; numbers that are given stay."""
    objective = make("S081").objective
    objective.planned(steps)
    assert (objective.verdict.warmup, objective.verdict.rest) == (phase, phase)
    given = make("S081", warmup=7, rest=0).objective
    given.planned(steps)
    assert (given.verdict.warmup, given.verdict.rest) == (7, 0)


def test_without_its_weights_it_is_grpo(make_batch):
    batch, signal = judged(make_batch)
    assert torch.equal(SelfRewardMix(tau=0.0)(batch), GRPO()(batch))
    batch.advantages = GRPO()(batch)
    logprobs = torch.full(batch.mask.shape, 0.3, dtype=torch.float64)
    ours = LastTokenLoss(alpha=0.0, verdict=signal)
    assert torch.equal(ours(logprobs, batch).value, ClippedSurrogate()(logprobs, batch).value)
    assert ours.zero_advantage_is_idle and not LastTokenLoss(verdict=signal).zero_advantage_is_idle


def test_the_reference_is_measured_once_and_the_scale_follows(make_batch):
    signal = LastToken()
    batch, _ = judged(make_batch, [-4.0, -6.0, -5.0, -50.0], truncated=[3])
    batch.signals[signal.name] = signal(batch, NOBODY)
    assert signal.reference == -5.0 and signal.scale == pytest.approx(0.4)
    batch.signals["policy_next_logprob@0"] += 1
    signal(batch, NOBODY)
    assert signal.reference == -5.0
    assert LastToken(reference=-23.0).scale == 0.1 and LastToken(scale=0.3).scale == 0.3


@pytest.fixture(scope="module")
def nano() -> CausalLM:
    torch.manual_seed(0)
    return CausalLM.load(ModelConfig(source="nano", nano={"hidden": 32, "layers": 2, "heads": 2, "context": 64}), 0)


def ended(policy: CausalLM, texts: list[str], right: list[bool]) -> list[Group]:
    out = []
    for i, (text, passed) in enumerate(zip(texts, right, strict=True)):
        tokens = policy.encode_response(text)
        logprobs = np.full(len(tokens), -1.0, dtype=np.float32)
        episode = Episode(policy.encode(f"{i}+2="), tokens, np.ones(len(tokens), dtype=bool), logprobs, text, "eos")
        out.append(Group(Ask(Task(str(i), f"{i}+2="), 1), (episode,), (Verdict(float(passed), passed),)))
    return out


def test_defaults():
    """The authors' numbers: 0.1 for each weight, 200 steps twice, both classes alike; deviations of 0.1 say nothing."""
    method = make("S081")
    for verdict in (method.objective.verdict, LastToken()):
        assert (verdict.token, verdict.warmup, verdict.rest, verdict.reference) == (0, 200, 200, None)
    for objective in (method.objective, LastTokenLoss()):
        assert (objective.alpha, objective.balanced, objective.kl_weight) == (0.1, True, 0)
    for credit in (method.credit, SelfRewardMix()):
        assert (credit.tau, credit.least, credit.group_relative) == (0.1, 0.1, True)
        assert credit.summary == {"baseline": "group mean", "normalisation": "group std"}
    given = make("S081", token=3, scale=0.2, reference=-9.0, warmup=4, rest=5, balanced=False, alpha=0.3).objective
    assert (given.verdict.token, given.verdict.scale, given.verdict.reference) == (3, 0.2, -9)
    assert (given.verdict.warmup, given.verdict.rest, given.balanced, given.alpha) == (4, 5, False, 0.3)
    for bad in ({"token": -1}, {"rest": -1}, {"scale": 0.0}):
        with pytest.raises(UsageError, match="last_token"):
            LastToken(**bad)
    assert LastToken(token=0, warmup=0, rest=0, scale=1e-3).phase == 2
    for tau in (0.0, 1.0):
        assert SelfRewardMix(tau=tau).tau == tau
    with pytest.raises(UsageError, match="tau"):
        SelfRewardMix(tau=-0.1)
    assert make_method("S081", objective={"alpha": 0.0}).objective.alpha == 0


def test_the_scale_where_the_token_is_not_rare():
    """2 / |reference| above 0.1; a reference of nearly nothing does not make it endless."""
    for reference, scale in ((-23.0, 0.1), (-20.0, 0.1), (-10.0, 0.2), (-2.0, 1.0), (-0.01, 20.0), (None, 20.0)):
        assert LastToken(reference=reference).scale == pytest.approx(scale)


def test_samples_that_are_not_learned_from_are_in_no_class(make_batch):
    """Of three right and one wrong response, one of the right has no weight: n / (2 n_c) with n = 3."""
    batch, signal = judged(make_batch)
    batch.weights = torch.tensor([0.0, 1.0, 1.0, 2.0]).double()
    squares(batch, LastTokenLoss(verdict=signal))
    assert batch.signals["last_token_weight"].tolist() == pytest.approx([0, 1.5, 0.75, 1.5])
    # Squares 0.01 and 0.01 and 0.49 with these weights, over the three that are active.
    loss, _ = squares(batch, LastTokenLoss(alpha=1.0, verdict=signal))
    assert loss.item() == pytest.approx((1.5 * 0.01 + 0.75 * 0.01 + 1.5 * 0.49) / 3)


def test_what_is_said_while_it_learns(make_batch):
    """The mean of the verdicts, 0.5625; without the weights of a whole mini-batch its own are taken."""
    batch, signal = judged(make_batch)
    batch.live = {"next_logprob@0": torch.tensor(SAID, dtype=torch.float64)}
    found = LastTokenLoss(alpha=1.0, verdict=signal)(torch.zeros(batch.mask.shape, dtype=torch.float64), batch)
    assert found.metrics["self_verdict/score"] == pytest.approx(0.5625) and found.value.item() == pytest.approx(0.08875)
    silent = LastTokenLoss(alpha=0.0, verdict=signal)(torch.zeros(batch.mask.shape, dtype=torch.float64), batch)
    assert "self_verdict/score" not in silent.metrics
    learned = signal.learn(batch, NOBODY)
    assert learned["self_verdict/scale"] == 0.1 and signal.seen == 1
    batch.valid[0] = False
    assert signal.learn(batch, NOBODY)["self_verdict/right"] == 0.5


def test_without_a_response_that_ended_nothing_is_measured(make_batch):
    signal = LastToken(warmup=0, rest=0)
    batch, _ = judged(make_batch, truncated=[0, 1, 2, 3])
    found = signal(batch, NOBODY)
    assert signal.reference is None and found.tolist() == [0] * 4
    assert batch.signals["last_token_phase"].tolist() == [0] * 4 == batch.signals["last_token_reference"].tolist()
    batch.signals[signal.name] = found
    assert "self_verdict/reference" not in signal.learn(batch, NOBODY)


def test_votes():
    assert weighted_vote(["a", "b", "b"], [0.95, 0.3, 0.4]) == 0
    assert weighted_vote(["a", "b", "b"], [1, 1, 1]) == 1
    assert weighted_vote([None, "b", "a"], [9, 0.1, 0.1]) == 1, "no answer, no vote; the first of equals"
    assert weighted_vote(["a", "b"], [-0.2, -0.1]) == 1
    assert weighted_vote([None, None], [1, 1]) == 0
    with pytest.raises(ValueError, match="needs a response"):
        weighted_vote([], [])


def test_a_verdict_weighs_from_0_to_1():
    """Beyond right, 2.0, it weighs no more than 1: two of 0.6 outvote it; and below wrong it takes nothing away."""
    assert vote_by_verdict(["a", "b", "b"], [2.0, 0.6, 0.6]) == 1
    assert vote_by_verdict(["a", "b", "b"], [0.2, 0.4, -0.5]) == 1


def test_self_verification():
    found = self_verification([0.9, 0.2, 0.6, 0.5], [True, True, False, False])
    assert found == {"right": 0.5, "wrong": 0.5, "accuracy": 0.5, "f1": 0.5}
    found = self_verification([0.9, 0.8, 0.7, 0.1], [True, True, False, False])
    assert found["f1"] == pytest.approx(2 * 1 * 0.5 / 1.5) and found["accuracy"] == 0.75
    assert self_verification([0.1, 0.9], [True, False])["f1"] == 0
    assert self_verification([0.9], [True]) == {"right": 1.0, "accuracy": 1.0}
    assert self_verification([], []) == {}


def test_parts_that_belong_together(make_batch):
    with pytest.raises(RunError, match="take both"):
        SelfRewardMix()(make_batch([2, 2], [1.0, 0.0]))
    method = make("S081", token=7, tau=0.2)
    assert {"policy_next_logprob@7"} <= method.needs and method.live == {"next_logprob@7"}
    assert [type(x) for x in method.learners] == [LastToken]
    with pytest.raises(UsageError, match="TabularPolicy"):
        check_signals(method.needs, method.live, TabularPolicy(Tree.bandit(2)))
    for seam, bad in (("credit", {"tau": 1.5}), ("objective", {"alpha": -1.0})):
        with pytest.raises(UsageError, match="S081"):
            make_method("S081", **{seam: bad})
    with pytest.raises(UsageError, match="last_token"):
        LastToken(warmup=-1)


def test_training_the_verdict_tells_right_from_wrong(nano):
    """The square alone, through the real signal and the model's own pass, temperature other than 1."""
    texts, right = [str(i) for i in range(8)], [i % 2 == 0 for i in range(8)]
    objective = LastTokenLoss(alpha=1.0, verdict=LastToken(warmup=0, rest=0))
    policy = nano.twin()
    models = Models(policy, temperature=0.7, encode=policy.encode)
    batch = Batch.from_groups(ended(policy, texts, right))
    compute_signals(batch, objective.needs, models)
    assert batch.signals["self_verdict"].abs().max() < 0.5
    optimizer = torch.optim.Adam(policy.module.parameters(), lr=3e-3)
    for _ in range(60):
        output = policy.forward(batch, objective.live, 0.7)
        batch.live = output.live
        objective.prepare(batch)
        optimizer.zero_grad()
        objective(output.logprobs, batch).value.backward()
        optimizer.step()
    scores = last_token_scores(
        policy, ended(policy, texts, right), 0, objective.verdict.scale, objective.verdict.reference
    )
    found = self_verification([s for row in scores for s in row], right)
    assert found["f1"] == 1.0


def test_the_vote_asks_the_policy(nano):
    tasks = [Task("a", "1+1="), Task("b", "2+3=")]
    strategy = LastTokenVote(token=0, reference=-5.0, scale=0.2, sampling=Sampling(6))
    answers = strategy(tasks, HFEngine(nano), 5, np.random.default_rng(0))
    again = strategy(tasks, HFEngine(nano), 5, np.random.default_rng(0))
    assert [a.text for a in answers] == [a.text for a in again]
    for answer, task in zip(answers, tasks, strict=True):
        (scores,) = last_token_scores(nano, [Group(Ask(task, 5), answer.episodes)], 0, 0.2, -5.0)
        assert answer.meta["scores"] == pytest.approx(scores) and len(scores) == 5
        assert answer.tokens == sum(len(e.tokens) + 1 for e in answer.episodes)
        assert all(s == 0 for s, e in zip(scores, answer.episodes, strict=True) if e.truncated)
    with pytest.raises(UsageError, match="no token after a response"):
        strategy(tasks, TabularEngine(TabularPolicy(Tree.bandit(2))), 2, np.random.default_rng(0))


def test_with_an_output_row_of_its_own_the_verdict_hardly_touches_the_responses():
    """The output layer's gradient is (onehot(c) - p) h at the end: a step there moves log pi(c) and little else."""
    policy = CausalLM(tiny("llama"), TOKENIZER)
    batch, name = Batch.from_groups(ended(policy, ["5", "12"], [True, False])), "next_logprob@0"
    before = policy.forward(batch, {name}, 0.7)
    assert torch.allclose(before.live[name], policy.forward(batch, {name}).live[name]), "it is read at temperature 1"
    (slope,) = torch.autograd.grad(before.live[name][0], policy.head.weight)
    tokens = np.concatenate([batch.episodes[0].tokens, [0]])
    logits = plain_logits(tiny("llama"), batch.episodes[0].prompt, tokens)[-1].detach()
    chances = logits.softmax(-1)
    rows = -chances
    rows[0] += 1
    assert torch.allclose(slope.norm(dim=-1) / slope[0].norm(), rows.abs() / rows[0], atol=1e-4)
    with torch.no_grad():
        policy.head.weight.add_(0.1 * slope)
    after = policy.forward(batch, {name}, 0.7)
    moved = (after.logprobs - before.logprobs).abs()[batch.mask].mean()
    assert float((after.live[name][0] - before.live[name][0]).detach()) > 5 * float(moved.detach())


def test_in_a_run_of_few_steps_its_defaults_act(tmp_path: Path):
    """Five steps, of which the first is GRPO's alone."""
    steps = {"train": {"steps": 5}, "warmup": {"steps": 0}, "evaluate": {"every": 0}}
    method = {"name": "S081", "objective": {"verdict": {"name": "last_token", "reference": -5.0}}}
    rows = [row for row in metrics(run(tmp_path / "run", method=method, **steps)) if row["stage"] == "rl"]
    assert ["self_verdict/score" in row for row in rows] == [False, True, True, True, True]


def test_it_runs_through_every_phase(tmp_path: Path):
    folder = run(
        tmp_path / "run",
        method={
            "name": "S081",
            "objective": {"verdict": {"name": "last_token", "warmup": 1, "rest": 1, "reference": -5.0}},
        },
        train={"steps": 4},
        warmup={"steps": 0},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert ["self_verdict/score" in row for row in rows] == [False, True, True, True]
    assert all(math.isfinite(v) for row in rows for v in row.values() if isinstance(v, float))
