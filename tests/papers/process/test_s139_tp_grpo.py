"""TP-GRPO: worked advantages against summed rewards of thoughts, and labels read from a solution's own words."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import torch
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st
from marked import Critic, critique, rows_of, signalled, stepped
from running import metrics, run

from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.process.s139_tp_grpo import IntrinsicJudge, Thoughts, adopted, intervals, tp_grpo
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")

C, I = 1.0, 0.0  # noqa: E741  # of right responses: correct, incorrect
M, U = 1.0, 0.0  # of wrong ones: adopted (matching the answer), uncertain


def advantages(rows, passed, sizes=None, **options):
    batch = stepped(rows, passed, sizes)
    method = tp_grpo("verdict", **options)
    batch.signals.update(signalled(batch, method).signals)
    batch.rewards = torch.tensor([float(p) for p in passed], dtype=torch.float64)
    return rows_of(batch, method.value(batch).advantages)


def near(got, want) -> bool:
    return all(a == pytest.approx(b, abs=1e-5) for a, b in zip(got, want, strict=True))


HALF = [True, True, False, False]


@pytest.mark.parametrize(
    ("right", "wrong", "want"),
    [
        ([C, I, C], [M, U, M], ([1, 0.5, 1], [-1, 0, -1])),
        ([I, C, I, C], [U, M], ([0.5, 1, 0.5, 1], [0, -1])),
        ([C], [U, M, U, M], ([1], [0, -1, 0, -1])),
        ([I, I, C, C], [M], ([0.5, 0.5, 1, 1], [-1])),
    ],
)
def test_worked_advantages(right, wrong, want) -> None:
    """Two of four are right: ro = 1 and -1, and r_c = 1/2."""
    found = advantages([right, [C], wrong, [M]], HALF)
    assert near(found, [want[0], [1], want[1], [-1]])
    half = advantages([right, [C], wrong, [M]], HALF, alpha=0.5)
    assert near(half[:1], [[1 - (1 - a) / 2 for a in want[0]]]), "wrong ones do not depend on alpha"


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=7), min_size=2, max_size=5), st.integers(1, 4))
def test_it_is_what_summed_rewards_of_thoughts_come_to(rows, right) -> None:
    """The paper's definition, written out for each thought: rewards from it on, none for the last, plus ro."""
    rows = [[*row[:-1], True] for row in rows]
    passed = [i < right for i in range(len(rows))]
    found = advantages([[float(x) for x in row] for row in rows], passed)
    o = np.array(passed, dtype=float)
    ro, acc = (o - o.mean()) / (o.std() + 1e-6), o.mean()
    for i, row in enumerate(rows):
        runs = [(label, len(list(run))) for label, run in groupby(row)]
        worth = [(acc if passed[i] else ro[i]) * (1 if label else -1) for label, _ in runs]
        worth[-1] = 0.0
        want = [ro[i] + sum(worth[j:]) for j, (_, size) in enumerate(runs) for _ in range(size)]
        assert found[i] == pytest.approx(want, abs=1e-9)


def test_without_merging_the_first_steps_target_is_moved() -> None:
    """C I I I C, each step with its own half: the first one, which is correct, has 0.5 - 1.5 + 1 = 0."""
    found = advantages([[C, I, I, I, C], [C], [M], [M]], HALF, merged=False)
    assert near(found[:1], [[0, -0.5, 0, 0.5, 1]])
    longer = advantages([[C, C, C, C], [C, C], [M, M, M], [M]], HALF, merged=False)
    assert near(longer, [[2.5, 2, 1.5, 1], [1.5, 1], [-3, -2, -1], [-1]]), "more steps earn more"
    wide = advantages([[C, I, C], [C], [M], [M]], HALF, [[2, 1, 2], [1], [1], [1]])
    assert near(wide[:1], [[1, 1, 0.5, 1, 1]])


def test_runs_of_a_label_are_a_thought() -> None:
    """Cut into more steps of the same labels, a thought has what it had."""
    split = advantages([[C, C, C, I, I, C], [C], [U, M, M], [M]], HALF)
    assert near(split[:1], [[1, 1, 1, 0.5, 0.5, 1]]) and near(split[2:3], [[0, -1, -1]])


def test_the_reward_is_of_the_size_of_the_accuracy() -> None:
    """All right: no outcome to learn from, yet detours are blamed by alpha; all wrong: nothing is known."""
    assert near(advantages([[I, C], [C, C]], [True, True]), [[-1, 0], [0, 0]])
    assert near(advantages([[I, C], [C, C]], [True, True], alpha=0.3), [[-0.3, 0], [0, 0]])
    assert not any(map(any, advantages([[U, M], [M, M]], [False, False])))
    one = advantages([[I, C], [M], [M], [M]], [True, False, False, False])
    assert one[0] == pytest.approx([3**0.5 - 0.25, 3**0.5], abs=6e-6)


def test_right_thoughts_have_the_outcomes_advantage() -> None:
    batch = stepped([[C, C], [C], [M], [M, M]], HALF)
    method = tp_grpo("verdict")
    method.value(signalled(batch, method))
    assert torch.allclose(batch.advantages, GRPO(ddof=0)(batch))
    unlabelled = stepped([None, [C], [M], None], HALF, [[1, 1], [1], [1], [1, 1]])
    method.value(signalled(unlabelled, method))
    assert torch.allclose(unlabelled.advantages, GRPO(ddof=0)(unlabelled)), "without labels there is the outcome"
    assert bool(unlabelled.valid.all())
    noughts = tp_grpo("verdict", alpha=0.0)
    batch = stepped([[I, C], [C], [M], [M, M]], HALF)
    assert torch.allclose(noughts.value(signalled(batch, noughts)).advantages, GRPO(ddof=0)(batch))


TASK = Task("t", "What is {1}+1?", reference="2")


def test_intervals_that_a_reflection_takes_back_are_checked() -> None:
    def reply(prompt: str, k: int) -> str | None:
        if "doubted later on" in prompt:
            return None if "down" in prompt else critique([False, True, False, True]) if "mute" not in prompt else "?"
        return "Reflection: none" if "smooth" in prompt else "I see.\nReflection 3: 1-2"

    critic = Critic(reply)
    words = ["smooth", "wait", "mute", "down"]
    judge = IntrinsicJudge(critic, 77)
    found = judge.labels([(TASK, [word, "b", "c", "d", "e"], True) for word in words])
    # Of what the check says of steps that nobody doubted, step 0, nothing counts.
    assert found == [[True] * 5, [True, True, False, True, True], None, None]
    assert len(critic.asked) == 7 and {(r.sampling.max_tokens, r.sampling.temperature) for r in critic.asked} == {
        (77, 0)
    }
    assert "doubted later on: 1, 2." in str(critic.asked[4].prompt) and "{1}+1" in str(critic.asked[4].prompt)
    assert "right answer" in str(critic.asked[0].prompt) and "<step 4>\ne\n" in str(critic.asked[0].prompt)


def test_steps_that_the_answer_adopts() -> None:
    replies = {"a": "So.\nAdopted: 0, 2", "b": "Adopted: none", "c": "all of them", "d": None}
    critic = Critic(lambda prompt, k: next(v for w, v in replies.items() if f"<step 0>\n{w}\n" in prompt))
    found = IntrinsicJudge(critic).labels([(TASK, [word, "x", "y", "z"], False) for word in "abcd"])
    assert found == [[True, False, True, True], [False, False, False, True], None, None]
    assert all("which is wrong" in str(r.prompt) for r in critic.asked)
    assert IntrinsicJudge(critic).labels([(TASK, ["only"], False), (TASK, ["only"], True), (TASK, [], True)]) == [
        [True],
        [True],
        [],
    ]
    assert len(critic.asked) == 4, "of a single step there is nothing to ask"


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("Reflection 4: 1-2\nReflection 6: 2 to 3", [1, 2, 3]),
        ("**Reflection 2:** 1 - 5", [1]),
        ("reflection 9: 3-8", [3, 4, 5]),
        ("Reflections: none", []),
        ("there is none", None),
        ("Reflection 4: 3-1", []),
    ],
)
def test_what_is_taken_back(reply, found) -> None:
    """Of seven steps; nothing after the reflection, nor the answer, can be taken back."""
    assert intervals(reply, 7) == found


def test_what_is_adopted() -> None:
    assert adopted("Adopted: 1\nno: Adopted: 0\nAdopted: 0; 9", 3) == [True, False, True]
    assert adopted("adopted 1, 0.", 3) == [True, True, True] and adopted("Adopted steps", 3) is None


def test_a_judge_that_reads_labels_by_outcome() -> None:
    """In a batch right and wrong responses are asked about differently, and one that abstained counts for nothing."""
    critic = Critic(lambda prompt, k: "Reflection: none" if "right answer" in prompt else "Adopted: none")
    batch = stepped([None] * 3, [True, False, None], [[1, 1]] * 3)
    method = tp_grpo(critic)
    method.value(signalled(batch, method))
    assert batch.signals["step_labels"][:2].tolist() == [[1, 1], [0, 1]] and len(critic.asked) == 2
    assert bool(batch.signals["step_labels"][2].isnan().all())
    assert near(rows_of(batch, batch.advantages), [[1, 1], [0, -1], [0, 0]])


def test_made_by_name() -> None:
    with pytest.raises(UsageError, match=r"S139 \(TP-GRPO\) needs judge"):
        make_method("S139")
    with pytest.raises(UsageError, match="at least 0"):
        Thoughts("verdict", alpha=-1.0)
    with pytest.raises(TypeError):
        Thoughts("verdict", signal=None)  # type: ignore[call-arg]
    assert "signal" not in repr(Thoughts("verdict", alpha=0.0))
    made = make_method("S139", options={"judge": {"name": "keywords", "replies": []}})
    assert isinstance(made.credit.judge, IntrinsicJudge) and made.credit.judge.sampling.max_tokens == 8192
    assert (made.credit.alpha, made.credit.merged, made.group_relative) == (1, True, True)
    assert Thoughts("verdict") == tp_grpo("verdict").credit and IntrinsicJudge(made.credit.judge.engine).sampling == (
        made.credit.judge.sampling
    )
    with pytest.raises(UsageError, match="one for the whole"):
        make_method("grpo", credit={"name": "S139", "judge": "verdict"}, objective="gspo")


def test_a_run_learns_from_labels_in_many_updates(tmp_path: Path) -> None:
    """Every response is judged; a judge that finds every first token adopted; the batch is learned in four updates."""
    judge = {"name": "keywords", "replies": [["right answer", "Reflection 2: 0-1"], ["doubted", critique([False] * 4)]]}
    judge |= {"otherwise": "Adopted: 0"}
    folder = run(
        tmp_path / "run",
        method={"name": "S139", "options": {"judge": judge, "steps": {"by": "fixed", "size": 1}}},
        train={"steps": 2, "mini_batches": 4, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and all(np.isfinite(row["loss"]) for row in rows)
    assert any(row["grad_norm"] > 0 for row in rows)


@pytest.mark.slow
def test_thoughts_do_not_grow_in_number() -> None:
    merged, split = (learned("S139", arm, steps=30, lr=8.0) for arm in ("thoughts", "steps"))
    assert merged["concise"] > split["concise"] + 0.5
