"""CAPO: the four cases, advantages over tokens, votes of critics, and a policy that does without miracles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from claimed import learned
from marked import Critic, critique, rows_of, signalled, stepped
from running import metrics, run

from assay import catalogue
from assay.errors import UsageError
from assay.lab.settings.reasoning.miracle import Judge, Setting
from assay.method import make_method
from assay.papers.process.s057_capo import FlawedSteps, capo
from assay.rewards.process.critiques import Critics, Voted
from assay.signals.steps import Steps

pytestmark = pytest.mark.usefixtures("one_thread")


def valued(batch, **options):
    method = make_method("S057", options={"critic": "verdict", **options})
    return method.value(signalled(batch, method))


def near(got, want) -> bool:
    return all(a == pytest.approx(b, abs=2e-6) for a, b in zip(got, want, strict=True))


def test_advantages_over_the_tokens_of_the_group() -> None:
    """The first response is right and its tokens 3 and 4 are flawed; the second is wrong, its tokens 1 and 2 flawed."""
    batch = valued(stepped([[1, 0, 1], [0, 1]], [True, False], [[2, 2, 1], [2, 1]]))
    want = [[1.042572, 1.042572, 0.208514, 0.208514, 1.042572], [-1.459601, -1.459601, -0.625543]]
    assert near(rows_of(batch, batch.advantages), want)
    assert batch.rewards.tolist() == [2, 0] and batch.token_rewards is not None
    assert rows_of(batch, batch.token_rewards) == [[0, 0, 0, -1, 0], [0, -1, 0]]
    assert batch.reward_terms["flawed"].tolist() == [1, 1] and batch.reward_terms["outcome"].tolist() == [1, 0]
    unbiased = valued(stepped([[1, 0, 1], [0, 1]], [True, False], [[2, 2, 1], [2, 1]]), ddof=1)
    assert unbiased.advantages[0, 0].item() == pytest.approx(1.042572 * (7 / 8) ** 0.5, abs=1e-5)


def test_the_four_cases() -> None:
    """Right or wrong, clean or flawed: 2, 1, 0 and -1, as they stand before they are compared."""
    batch = stepped([[1, 0], [1, 0]], [True, False])
    method = capo("verdict")
    method.credit.kind = "none"
    found = method.value(signalled(batch, method)).advantages
    assert found.tolist() == [[2, 1], [0, -1]]
    half = capo("verdict", process=0.5)
    half.credit.kind = "none"
    soft = half.value(signalled(stepped([[0.25, 1]], [True]), half)).advantages
    assert soft.tolist() == [[2 - 0.5 * 0.75, 2]], "of a share of critics it is as much less"


def test_without_a_process_weight_it_is_the_outcome_over_tokens() -> None:
    batch = valued(stepped([[1, 0, 1], [0, 1], [1]], [True, False, False]), process=0.0)
    rewards = torch.tensor([2.0, 2, 2, 0, 0, 0], dtype=torch.float64)
    want = (rewards - rewards.mean()) / (rewards.std(correction=0) + 1e-6)
    assert torch.allclose(batch.advantages[batch.mask], want)
    equal = valued(stepped([[1, 1], [1]], [True, True]))
    assert not bool(equal.advantages.any()), "identical rewards teach nothing"


def test_the_outcome_stays_dominant() -> None:
    for bad in ({"process": 2.0}, {"process": 3.0}, {"process": -0.1, "dominant": False}):
        with pytest.raises(UsageError, match="outweigh the outcome"):
            capo("verdict", **bad)
    assert capo("verdict", process=2.0, dominant=False).reward.process == 2
    reward = capo("verdict").reward
    assert (reward.whole, reward.process) == (2, 1) and reward.whole - reward.process > 0
    assert FlawedSteps("verdict") == reward, "taken by itself the reward is the paper's"
    with pytest.raises(TypeError):
        FlawedSteps("verdict", signal=None)  # type: ignore[call-arg]
    assert "signal" not in repr(reward)


CALLS = [[True, False, True], [True, False, True], [True, True, True], [True, True, True]]
"""What four critics say of three steps."""


@pytest.mark.parametrize(
    ("vote", "n", "scores"),
    [
        ("intersection", 4, [1, 1, 1]),
        ("intersection", 2, [1, -1, 1]),
        ("majority", 4, [1, -1, 1]),
        ("union", 4, [1, -1, 1]),
        ("average", 4, [1, 0, 1]),
        ("greedy", 4, [1, -1, 1]),
    ],
)
def test_votes(vote, n, scores) -> None:
    critic = Critic(lambda prompt, k: critique(CALLS[k]))
    method = capo(critic, n, vote)
    signal = method.reward.signal
    assert isinstance(signal.scorer, Voted)
    batch = signalled(stepped([None], [True], [[1, 1, 1]]), method)
    assert batch.signals["step_scores"].tolist() == [scores]
    [asked] = critic.asked
    assert (asked.n, asked.sampling.temperature) == ((1, 0.0) if vote == "greedy" else (n, 1.0))


def test_critiques_are_asked_for_once_with_the_reference() -> None:
    critic = Critic(lambda prompt, k: critique([True, True]))
    method = make_method("S057", options={"critic": critic})
    assert method.reward.signal.scorer.critics == Critics(
        critic, 4, template=method.reward.signal.scorer.critics.template
    )
    signalled(stepped([None] * 3, [True, False, True], [[1, 1]] * 3), method)
    [asked] = critic.asked
    assert asked.n == 4 and "question 0" in asked.prompt and "\n4\n" in asked.prompt and "<step 1>\n1\n" in asked.prompt


def test_who_has_no_reward() -> None:
    """Critics that cannot be read or reached, and verdicts that abstain, leave the update; others are compared."""
    replies = {"0": critique([True]), "1": "hm", "2": None, "3": critique([False])}
    critic = Critic(lambda prompt, k: next(v for t, v in replies.items() if f"<step 0>\n{t}\n" in prompt))
    batch = stepped([None] * 4, [True, True, True, None], [[1]] * 4)
    for i, episode in enumerate(batch.episodes):
        episode.tokens[:] = i
    method = capo(critic)
    found = method.value(signalled(batch, method))
    assert found.valid.tolist() == [True, False, False, False] and not bool(found.advantages.any())
    # A response is scored as a whole or not at all.
    some = signalled(stepped([[1, 0], [1, 0]], [True, True]), capo("verdict"))
    some.signals["step_scores"][1, 0] = torch.nan
    reward = FlawedSteps("verdict")(some)
    assert reward.valid is not None and reward.valid.tolist() == [True, False]
    assert reward.tokens is not None and reward.tokens.tolist() == [[0, -1], [0, 0]]


def test_a_step_that_ends_on_a_token_of_others_pays_on_its_own() -> None:
    batch = stepped([[0, 1]], [True], [[2, 1]])
    batch.mask[0, 1] = False
    reward = FlawedSteps("verdict")
    batch = signalled(batch, make_method("grpo", reward=reward))
    assert reward(batch).tokens.tolist() == [[-1, 0, 0]]


def test_made_by_name() -> None:
    with pytest.raises(UsageError, match=r"S057 \(CAPO\) needs critic"):
        make_method("S057")
    table = {"name": "keywords", "replies": [["", critique([True])]]}
    made = catalogue.make("S057", critic=table, vote="majority", steps=Steps("newline"))
    assert made.reward.signal.scorer.vote == "majority" and made.credit.steps == Steps("newline")
    assert (made.credit.unit, made.credit.merged, made.credit.ddof, made.credit.place) == (
        "token",
        True,
        0,
        "broadcast",
    )
    assert made.needs == {made.reward.signal, Steps("newline")}


def test_a_run_pays_for_flawed_steps(tmp_path: Path) -> None:
    """A critic that finds every second token wrong; whatever is right, each response has its flaws."""
    reply = critique([k % 2 == 0 for k in range(8)])
    critic = {"name": "keywords", "replies": [["Reference answer", reply]]}
    folder = run(
        tmp_path / "run",
        method={"name": "S057", "reward": None, "options": {"critic": critic, "steps": {"by": "fixed", "size": 1}}},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2
    for row in rows:
        assert 0 < row["reward/flawed"] <= 2 and row["grad_norm"] > 0


@pytest.mark.slow
def test_miracles_are_not_learned() -> None:
    """The outcome alone teaches the miracle; with the tokens of flawed steps paying for them it is given up."""
    capo_, outcome = (learned("S057", arm, steps=30, lr=6.0) for arm in ("capo", "outcome"))
    assert capo_["honest"] > 0.9 and capo_["sound"] > 0.8
    assert outcome["honest"] < 0.3 and outcome["rollouts"] == capo_["rollouts"] == 480


def test_the_setting_and_its_judge() -> None:
    setting = Setting(spread=0.0)
    found = setting.measure(setting.policy(0))
    assert found["right"] == pytest.approx((0.9 + 0.9 + 0.7 + 0.2) / 4) and found["honest"] == 0.5
    assert found["verified"] == pytest.approx(0.175) and found["gap"] == pytest.approx(0.5)
    ending = Setting(spread=0.0, answer=True)
    assert ending.measure(ending.policy(0)) == pytest.approx(found) and ending.policy(0).tree.depth == 3
    steps = [[str(a), str(b)] for a in (0, 1) for b in (0, 1)]
    batch = stepped([None] * 4, [True] * 4, [[1, 1]] * 4)
    critics = Critics(Judge(0.0, 0.0, 0), 2)
    said = critics.critiques([(batch.tasks[0], row) for row in steps])
    assert [c[0].marks for c in said if c] == [(True, True), (True, False), (False, True), (False, False)]
    assert [c[0].final for c in said if c] == [True, False, False, False]
    noisy = Critics(Judge(0.4, 0.1, 0), 500).critiques([(batch.tasks[0], ["0", "1"])])[0]
    assert noisy is not None
    assert sum(not c.marks[0] for c in noisy) / 500 == pytest.approx(0.1, abs=0.04)
    assert sum(c.marks[1] for c in noisy) / 500 == pytest.approx(0.4, abs=0.06)
