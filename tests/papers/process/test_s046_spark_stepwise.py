"""SPARK: verifications by vote and review, what judges are taught, rewards and advantages by hand, and the form."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from marked import Critic, critique, rows_of, signalled, stepped
from running import metrics, run
from scipy import stats

from assay.catalogue.claim import claim_of
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.lab.settings import load
from assay.lab.settings.reasoning.miracle import Judge
from assay.lab.settings.reasoning.verifications import Setting
from assay.method import make_method
from assay.papers.process.s046_spark_stepwise import (
    Verdicts,
    Verified,
    by_token,
    keeps_form,
    lessons,
    reviewed,
    spark,
    written,
)
from assay.rewards.process.critiques import Critics, Critique, consensus, nearest
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")

GOOD = r"so <answer>\boxed{4}</answer>"
TASK = Task("t", "What is 1+1?", reference="2")


def valued(rows, texts=None, sizes=None, **options):
    """Responses whose steps have these scores p; the answer is judged right iff all are above 1/2."""
    passed = [False] * len(rows)
    batch = stepped(rows, passed, sizes, texts=texts or [GOOD] * len(rows))
    method = make_method("S046", options={"critic": "verdict", "kl_weight": 0.0, **options})
    return method.value(signalled(batch, method))


def said(*marks: bool, final: bool | None = None) -> Critique:
    return Critique(marks, final, critique(marks, final))


def test_rewards_by_hand() -> None:
    """The judge finds the third response wrong at its last step; the ground truth, all wrong, is not asked."""
    rows = [[1, 1], [1, 1, 1], [1, 1, 1, 0], [1]]
    batch = valued(rows)
    assert batch.rewards.tolist() == [1, 1, 0, 1]
    a = batch.advantages[:, 0].tolist()
    # Less than the exact 3/2 and 1/2 by the 1e-6 that is added to the deviation.
    assert a == pytest.approx([0.5, 0.5, -1.5, 0.5], abs=4e-6)
    augmented = valued(rows, mode="augmented")
    assert augmented.rewards.tolist() == pytest.approx([1, 1, 0.3, 1])
    assert augmented.reward_terms["steps"].tolist() == pytest.approx([1, 1, 0.75, 1])
    critic = Critic(lambda prompt, k: critique([True, True, True, False], True))
    method = spark(critic, "augmented", kl_weight=0.0)
    found = method.value(signalled(stepped([None], [False], [[1] * 4], texts=[GOOD]), method))
    assert found.rewards.tolist() == pytest.approx([0.9]), "a verdict of its own beside one wrong step of four"


def test_selective_advantages() -> None:
    """Of a response with an advantage above 0 the right steps are praised, of one below 0 the wrong ones blamed."""
    verdicts = [
        ([True, False, True], True),
        ([True, False, True], False),
        ([True] * 3, True),
        ([True, False, True], True),
    ]
    critic = Critic(lambda prompt, k: critique(*verdicts[int(prompt.partition("<step 0>\n")[2].split()[0]) // 10]))
    batch = stepped([None] * 4, [False] * 4, [[1, 2, 1]] * 4, texts=[GOOD] * 4)
    method = spark(critic, "selective", kl_weight=0.0)
    for i, episode in enumerate(batch.episodes):
        episode.tokens[:] += 10 * i
    found = method.value(signalled(batch, method))
    up, down = 0.5, -1.5
    want = [[up, 0, 0, up], [0, down, down, 0], [up] * 4, [up, 0, 0, up]]
    assert all(row == pytest.approx(w, abs=4e-6) for row, w in zip(rows_of(found, found.advantages), want, strict=True))
    assert method.group_relative and len(critic.asked) == 4 and {r.n for r in critic.asked} == {1}
    sound = valued([[1, 1], [1]], mode="selective")
    assert torch.equal(sound.advantages, GRPO()(sound)), "all steps right: as GRPO has it where it is not below 0"


def test_global_advantages() -> None:
    """0.8 of the response's advantage and 0.2 of its steps', these compared over all five of the group."""
    batch = valued([[1, 0], [1, 1, 1]], mode="global", sizes=[[1, 2], [1, 1, 1]])
    outcome, steps = 0.7071068, [0.4472136, -1.7888544]
    want = [
        [-0.8 * outcome + 0.2 * steps[0], *[-0.8 * outcome + 0.2 * steps[1]] * 2],
        [0.8 * outcome + 0.2 * steps[0]] * 3,
    ]
    found = rows_of(batch, batch.advantages)
    assert all(row == pytest.approx(w, abs=4e-6) for row, w in zip(found, want, strict=True))
    assert found[0][0] == pytest.approx(-0.476242, abs=4e-6) and found[1][0] == pytest.approx(0.655128, abs=4e-6)
    broken = valued([[1, 0], [1, 1, 1]], mode="global", texts=["no form", GOOD])
    assert broken.token_rewards is not None and broken.token_rewards.tolist() == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (GOOD, True),
        (GOOD + " \n", True),
        (r"<answer>a \boxed{\frac{1}{2}} b</answer>", True),
        (r"\boxed{4} <answer>4</answer>", True),
        (GOOD + "Now 1+1: it is 2", False),
        (GOOD + GOOD, False),
        (r"first \boxed{2} " + GOOD, False),
        (r"<answer><answer>\boxed{4}</answer>", False),
        ("<answer>4</answer>", False),
        (r"\boxed{4}", False),
        ("", False),
    ],
)
def test_the_form(text, kept) -> None:
    """One block, one box, nothing behind: else a right answer earns nothing, and with the gate open what it did."""
    assert keeps_form(text) is kept
    batch = valued([[1, 1], [0, 1]], texts=[text, GOOD])
    assert batch.rewards.tolist() == [float(kept), 0] and batch.reward_terms["form"].tolist() == [float(kept), 1]
    assert valued([[1, 1], [0, 1]], texts=[text, GOOD], gated=False).rewards.tolist() == [1, 0]


NOISY = [
    said(True, False, True, final=False),
    said(True, True, True, final=True),
    said(True, False, False, final=False),
]


def test_the_vote_at_every_step() -> None:
    assert consensus(NOISY) == ((True, False, True), False)
    assert nearest(NOISY) is NOISY[0], "it agrees on all three steps and on the answer"
    assert nearest(NOISY[::-1]) is NOISY[0]
    tie = [said(True, final=True), said(False, final=False)]
    assert consensus(tie) == ((False,), False) and nearest(tie) is tie[1]
    assert consensus([said(True, True), said(True, False), said(True, True)]) == ((True, True), True)


def test_the_vote_on_the_outcome() -> None:
    """The first with the majority's verdict on the answer, whatever it says of steps."""
    assert nearest(NOISY[::-1], "outcome") is NOISY[2] and nearest(NOISY[1:], "outcome") is NOISY[2]


@pytest.mark.parametrize(("n", "accuracy"), [(3, 0.784), (15, 0.94999)])
def test_the_majority_of_noisy_verdicts(n, accuracy) -> None:
    """Each right with chance 0.7: how often n of them are by vote, counted and from the binomial distribution."""
    assert stats.binom.sf(n // 2, n, 0.7) == pytest.approx(accuracy, abs=1e-3)
    setting = Setting(solutions=1, length=3000, flawed=0.5, missed=0.3, alarms=0.3, n=n)
    critics = Critics(Judge(0.3, 0.3, 0), n)
    steps = [str(k % 2) for k in range(setting.length)]
    [row] = critics.critiques([(TASK, steps)])
    assert row is not None
    marks, _ = consensus(row)
    assert sum(m == (s == "0") for m, s in zip(marks, steps, strict=True)) / 3000 == pytest.approx(accuracy, abs=0.02)


def test_a_verification_is_criticised_and_merged() -> None:
    first = [said(True, True, final=True), said(True, True, final=True), said(True, False, final=False)]
    solutions = [(TASK, ["a", "b"]), (TASK, ["mute", "b"]), (TASK, ["down", "b"])]

    def reply(prompt: str, k: int) -> str | None:
        if "Review the reply" in prompt:
            return "it misses step 1"
        return "mumble" if "\nmute\n" in prompt else None if "\ndown\n" in prompt else critique([True, False], False)

    critic = Critic(reply)
    found = reviewed(Critics(critic), solutions, first)
    assert [(c.marks, c.final) for c in found] == [((True, False), False), ((True, True), True), ((True, False), False)]
    assert found[1:] == first[1:], "what cannot be read, or failed, leaves it as it was"
    asked, merging = str(critic.asked[0].prompt), str(critic.asked[3].prompt)
    assert first[0].text in asked and "<step 1>\nb\n" in asked
    assert "it misses step 1" in merging and first[0].text in merging


def test_what_a_judge_is_taught() -> None:
    replies = [critique(c.marks, c.final) + f"\n({k})" for k, c in enumerate(NOISY)]
    critics = Critics(Critic(lambda prompt, k: "?" if "mute" in prompt else replies[k]), 3)
    solutions = [(TASK, ["a", "b", "c"]), (TASK, ["mute"]), (TASK, ["a", "b", "c"])]
    [task] = lessons(solutions, critics)
    assert task.prompt == critics.prompt(*solutions[0]) and task.solution == replies[0] and task.kind == "none"
    [steps] = lessons(solutions, critics, form="steps")
    assert steps.solution == "Step 0: correct\nStep 1: incorrect\nStep 2: correct\nVerdict: incorrect"
    [verdict] = lessons(solutions, critics, form="verdict")
    assert verdict.solution == "Verdict: incorrect"
    critic = Critic(lambda prompt, k: replies[k])
    [first] = lessons(solutions[:1], Critics(critic, 3), by=None)
    assert first.solution == replies[0] and len(critic.asked) == 1, "no review unless told"
    [merged] = lessons(solutions[:1], Critics(Critic(lambda p, k: critique([True] * 3, True)), 2), review=True)
    assert merged.solution == critique([True] * 3, True)
    assert written(said(True, False), "rationale") == "Step 0: correct\nStep 1: incorrect\nVerdict: incorrect"


def test_who_has_no_reward() -> None:
    """Unread or unreachable verifications; a response without steps is wrong, not unknown."""
    replies = {"0": critique([True], True), "1": "hm", "2": None}
    critic = Critic(lambda prompt, k: next(v for t, v in replies.items() if f"<step 0>\n{t}\n" in prompt))
    batch = stepped([None] * 4, [True] * 3 + [None], [[1], [1], [1], [1]], texts=[GOOD] * 4)
    for i, episode in enumerate(batch.episodes):
        episode.tokens[:] = i % 3
    method = spark(critic, kl_weight=0.0)
    found = method.value(signalled(batch, method))
    assert found.valid.tolist() == [True, False, False, False] and found.rewards[0] == 1
    assert found.reward_terms["judge"].tolist() == [1, 0, 0, 1], "what is not known adds nothing to what is reported"
    stepwise = spark(critic, "global", kl_weight=0.0)
    paid = stepwise.value(signalled(batch, stepwise))
    assert paid.token_rewards is not None and paid.token_rewards.tolist() == [[1], [0], [0], [1]]
    empty = stepped([None], [False], [[]], texts=[GOOD])
    assert method.value(signalled(empty, method)).rewards.tolist() == [0] and bool(empty.valid.all())


def test_several_verifications_of_a_response_are_put_to_the_vote() -> None:
    critic = Critic(lambda prompt, k: critique(NOISY[k].marks, NOISY[k].final))
    method = spark(critic, n=3, kl_weight=0.0)
    batch = signalled(stepped([None], [True], [[1, 1, 1]], texts=[GOOD]), method)
    assert batch.signals["step_verdicts"].tolist() == [[0, 1, 0, 1]] and critic.asked[0].n == 3


def test_verdicts_by_token_where_steps_and_verdicts_differ_in_number() -> None:
    """Tokens outside of steps, and of steps that were given no verdict, have none."""
    verdicts = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, math.nan]])
    steps = torch.tensor([[0, 0, 1, -1], [0, 1, 2, 3]])
    found = by_token(verdicts, steps)
    assert found.nan_to_num(9).tolist() == [[0, 0, 1, 9], [1, 9, 9, 9]]
    assert by_token(verdicts, torch.zeros((2, 0), dtype=torch.int64)).shape == (2, 0)
    narrow = by_token(torch.tensor([[1.0, 0.25]]), torch.tensor([[0, 2]]))
    assert narrow.nan_to_num(9).tolist() == [[0.25, 9]]


def test_scores_in_the_place_of_a_judge() -> None:
    """A step is right whose score is above 0, and the answer if all are; of a score of 0 neither is."""
    signal = Verdicts("verdict")
    batch = stepped([[0.5, 1], [1, 0.7], []], [False] * 3, texts=[GOOD] * 3)
    found = signal.rows(batch, [["a", "b"], ["a", "b"], []])
    assert found == [((False, True), False), ((True, True), True), ((), False)]
    assert signal.whole, "it is about responses as wholes, and read once for a batch"


def test_made_by_name() -> None:
    with pytest.raises(UsageError, match=r"S046 \(SPARK\) needs critic"):
        make_method("S046")
    made = make_method("S046", options={"critic": {"name": "keywords", "replies": []}})
    assert (made.objective.kl_weight, made.objective.kl_estimator) == (0.001, "k3")
    judge = made.reward.signal.scorer
    assert (judge.n, judge.max_tokens, judge.temperature) == (1, 4096, 0) and made.credit == GRPO()
    assert made.reward == Verified(made.reward.signal) == Verified(made.reward.signal, gated=True)
    everywhere = spark("verdict", "global").credit
    assert (everywhere.weight, everywhere.convex, everywhere.place) == (0.2, True, "broadcast")


def test_a_run_is_paid_by_its_judge(tmp_path: Path) -> None:
    """A judge that finds every second token wrong and the answer right, whatever it is."""
    reply = critique([k % 2 == 0 for k in range(8)], True)
    options = {
        "critic": {"name": "keywords", "replies": [["Solution", reply]]},
        "steps": {"by": "fixed", "size": 1},
        "mode": "global",
        "gated": False,
    }
    folder = run(
        tmp_path / "run",
        method={"name": "S046", "reward": None, "options": options},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert [row["reward/judge"] for row in rows] == [1, 1] and all(row["grad_norm"] > 0 for row in rows)
    assert all(0.4 < row["reward/steps"] <= 1 for row in rows)


def test_the_arms_of_its_claims(tmp_path: Path) -> None:
    setting = Setting(solutions=40)
    found = {by: setting.run({"by": by}, 0, tmp_path) for by in ("steps", "none")}
    assert found["steps"]["accuracy"] > found["none"]["accuracy"] + 0.1
    assert found["none"]["accuracy"] == pytest.approx(0.7, abs=0.12)
    arm = claim_of("S046", "miracle").arms["process"]
    assert load("miracle", {"steps": 20, "lr": 6.0}).run(arm, 0, tmp_path)["honest"] > 0.7
