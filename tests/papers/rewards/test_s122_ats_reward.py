"""S122: criteria by hand, when rejecting everybody pays, what is read, and measures by class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claimed import learned
from running import metrics, run

from assay.catalogue import make
from assay.errors import UsageError
from assay.papers.rewards.s122_ats_reward import (
    HARSH,
    ScreeningReward,
    befits,
    overlap,
    read,
    screened,
    screening_task,
    worth_of_rejecting,
)
from assay.types import Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
VARIED = f"{Path(__file__).parents[2] / 'running.py'}:varied"
SKILLS = ("Python", "SQL", "Docker", "Linux")
YES = screening_task("y", SKILLS, ("python ", "sql", "docker"), "STRONGLY_CONSIDER", 80, 8)
NO = screening_task("n", SKILLS, ("cooking",), "REJECT", 30, 1)


def said(status: str, score: Any) -> str:
    return f'Here: {{"status": "{status}", "score": {score}}}'


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        # 0.4 status + 0.2 (score + skills + experience); the skills are 1 and -1.
        (YES, said("SELECTED", 80), 0.4 * 2 + 0.2 * (1 + 1 + 1)),
        (YES, said("consider", 75), 0.4 * 2 + 0.2 * (0.9 + 1 + 1)),
        (YES, said("REJECTED", 20), 0.4 * -2 + 0.2 * (-0.2 + 1 - 1)),
        (YES, said("SELECTED", 300), 0.4 * 2 + 0.2 * (-1 + 1 + 1)),
        (YES, said("SELECTED", 55), 0.4 * 2 + 0.2 * (0.5 + 1 + 0)),
        (NO, said("REJECTED", 30), 0.4 * 0 + 0.2 * (1 - 1 + 1)),
        (NO, said("SELECTED", 90), 0.4 * -1 + 0.2 * (-0.2 - 1 - 1)),
        (NO, said("PERHAPS", 55), 0.4 * -1 + 0.2 * (0.5 - 1 + 0)),
        (NO, "no JSON", 0.4 * 0 + 0.2 * (0.4 - 1 + 1)),
        (YES, "", 0.4 * -2 + 0.2 * (-0.6 + 1 - 1)),
    ],
)
def test_criteria_by_hand(make_batch: Callable[..., Any], task: Task, text: str, expected: float) -> None:
    reward = make("S122").reward(make_batch([1], passed=[True], texts=[text], tasks=[task]))
    assert reward.values.item() == pytest.approx(expected)
    assert set(reward.terms) == {"status", "score", "skills", "experience"}


def test_the_authors_numbers() -> None:
    method = make("S122")
    assert method.reward == ScreeningReward((0.4, 0.2, 0.2, 0.2), 2, 0, -1, -2) == ScreeningReward()
    assert method.objective.kl_weight == 0.4


@pytest.mark.parametrize(
    ("score", "years", "expected"),
    [
        *((75, 7, 1), (74, 7, 0), (50, 3, 1), (79, 6, 1), (80, 6, 0), (49, 3, 0), (49, 2, 1), (50, 2, 0), (85, 2, 0)),
        *((86, 2, -1), (39, 5, -1), (40, 5, 0), (39, 4, 0), (39, 10, -1), (100, 10, 1), (60, 2.5, 0), (60, 6.5, 0)),
    ],
)
def test_a_score_befits_the_years(score: int, years: float, expected: float) -> None:
    assert befits(score, years) == expected


def test_how_many_of_the_jobs_skills_a_candidate_has() -> None:
    five = ("a", "b", "c", "d", "e")
    assert [overlap(five, five[:n]) for n in range(6)] == [-1, -1, 0, 0, 1, 1]
    assert overlap(SKILLS, SKILLS[:3]) == 1 and overlap((" A ",), ("a", "b")) == 1
    assert overlap((), ("a",)) == overlap(("a",), ()) == -1


def test_what_is_shown_and_asked_for() -> None:
    shown = str(YES.prompt)
    assert "Python, SQL, Docker, Linux" in shown and "python , sql, docker" in shown
    assert "JSON" in shown and "SELECTED or REJECTED" in shown and "0 to 100" in shown
    assert "STRONGLY" not in shown and "80" not in shown and "8" not in shown
    assert YES.kind == "none" and YES.reference["status"] == "STRONGLY_CONSIDER"


def test_when_rejecting_everybody_pays() -> None:
    """Three of ten should be selected, eight of ten are told right; the third are the authors' earlier numbers."""
    assert worth_of_rejecting(0.3, 0.8, ScreeningReward()) == pytest.approx((-0.6, 0.48 - 0.14 - 0.12))
    assert worth_of_rejecting(0.3, 0.8, HARSH) == pytest.approx((0, 0.48 - 0.7))
    earlier = ScreeningReward(false_positive=-2.0, false_negative=-5.0)
    assert worth_of_rejecting(0.3, 0.8, earlier) == pytest.approx((-1.5, 0.48 - 0.28 - 0.3))
    both = ScreeningReward(true_negative=1.0)
    assert worth_of_rejecting(0.3, 0.8, both) == pytest.approx((0.7 - 0.6, 0.48 + 0.56 - 0.14 - 0.12))


def test_rl_is_held_to_the_fine_tuned_policy(tmp_path: Path) -> None:
    """Supervised steps first, and then RL, of which every step pays for its distance from where they ended."""
    folder = run(
        tmp_path / "run",
        method={"name": "S122", "reward": {"name": "function", "function": VARIED}},
        train={"steps": 3, "lr": 3e-2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = metrics(folder)
    assert [row["stage"] for row in rows if row["stage"] != "rl"]
    kl = [row["kl/reference"] for row in rows if row["stage"] == "rl"]
    assert kl[0] == pytest.approx(0, abs=1e-6) and kl[-1] > 1e-4


def test_a_policy_learns_to_decide() -> None:
    """Three of ten applicants should be selected; a policy that decides is right on 70 of 100."""
    mild, harsh = (learned("S122", arm, steps=20) for arm in ("mild", "harsh"))
    assert mild["choice 1"] > 0.7 and harsh["choice 1"] < 0.5


def test_what_the_reference_leaves_out_is_worth_nothing(make_batch: Callable[..., Any]) -> None:
    task = screening_task("p", SKILLS, SKILLS, "SELECTED")
    batch = make_batch([1, 1], texts=[said("SELECTED", 10), said("SELECTED", 99)], tasks=[task, task])
    assert make("S122").reward(batch).values.tolist() == pytest.approx([0.8 + 0.2] * 2)
    assert make("S122", weights=(0.0, 0.0, 3.0, 0.0)).reward(batch).values.tolist() == [1, 1], "weights are shares"


def test_other_tasks_and_abstentions(make_batch: Callable[..., Any]) -> None:
    plain = Task("m", "1+1=", "2")
    tasks, texts = [plain, plain, YES], ["2", "3", said("SELECTED", 80)]
    batch = make_batch([1] * 3, rewards=[1.0, 0.0, 0.0], passed=[True, None, None], tasks=tasks, texts=texts)
    reward = make("S122").reward(batch)
    assert reward.values.tolist()[::2] == pytest.approx([1, 1.4])
    assert reward.valid is not None and reward.valid.tolist() == [True, False, False]
    batch.verdicts = [*batch.verdicts[:2], Verdict.right()]
    assert make("S122").reward(batch).valid.tolist() == [True, False, True]
    halves = make("S122", weights=(2.0, 1.0, 1.0, 1.0)).reward(batch)
    assert halves.values.tolist()[::2] == pytest.approx([1, 1.4]), "shares are of the criteria alone"


def test_reading() -> None:
    def found(text: str) -> tuple[bool | None, int]:
        said = read(text)
        return said.selected, said.score

    assert found('{"status": "approve", "score": "85"}') == (True, 85)
    assert found('so ```{"score": 61.9, "status": "REJECTED"}``` it is') == (False, 61)
    assert found('{"score": 70}') == (False, 70) and found('{"status": "SELECTED"}') == (True, 0)
    assert found('{"status": "REJECT", "score": 1}') == (None, 1)
    nothing = ("", "{", "} {", "{}", "{status: SELECTED}", '{"score": []}', '{"score": Infinity}', '{"score": "much"}')
    assert all(found(text) == (False, 0) for text in nothing)
    assert found('{"a": ' * 100_000 + "}") == (False, 0)


def test_measures_by_class() -> None:
    rows = [(YES, "SELECTED"), (YES, "REJECTED"), (NO, "REJECTED"), (NO, "none"), (NO, "SELECTED")]
    found = screened((task, said(word, 50)) for task, word in rows)
    assert found["accuracy"] == pytest.approx(0.4) and found["undecided"] == pytest.approx(0.2)
    assert found["selected"] == pytest.approx(0.4)
    assert [found[f"selected_{m}"] for m in ("precision", "recall", "f1")] == pytest.approx([0.5, 0.5, 0.5])
    assert [found[f"rejected_{m}"] for m in ("precision", "recall", "f1")] == pytest.approx([0.5, 1 / 3, 0.4])
    always = screened([(YES, said("REJECTED", 0)), (NO, "")])
    assert "selected_precision" not in always and always["selected_recall"] == 0 == always["selected"]
    assert always["selected_f1"] == 0 and always["rejected_f1"] == pytest.approx(2 / 3)
    lone = screened([(YES, said("SELECTED", 0))])
    assert lone["selected_f1"] == 1 and not any(name.startswith("rejected") for name in lone)
    assert screened([]) == {}


def test_what_cannot_be(make_batch: Callable[..., Any]) -> None:
    bad: list[dict[str, Any]] = [
        {"weights": (1.0, -1.0, 1.0, 1.0)},
        {"weights": (0.0, 0.0, 0.0, 0.0)},
        {"weights": (1.0, 1.0, 1.0)},
        {"weights": (1.0, 1.0, 1.0, 1.0, 1.0)},
        *({name: float("inf")} for name in ("true_positive", "true_negative", "false_positive", "false_negative")),
    ]
    for options in bad:
        with pytest.raises(UsageError):
            make("S122", **options)
    wrong: tuple[dict[str, Any], ...] = (
        {"score": "much"},
        {"years": float("nan")},
        {"job": "Python"},
        {"candidate": [1]},
    )
    for more in wrong:
        with pytest.raises(UsageError, match="task b"):
            ScreeningReward()(make_batch([1], tasks=[Task("b", "", {"status": "SELECTED", **more})]))
