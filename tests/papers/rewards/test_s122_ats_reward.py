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
from assay.papers.rewards.s122_ats_reward import ScreeningReward, read, screened, screening_task, worth_of_rejecting
from assay.types import Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
VARIED = f"{Path(__file__).parents[2] / 'running.py'}:varied"
YES = screening_task("y", "Cook", "cooked for years", True, 0.75, 1.0)
NO = screening_task("n", "Cook", "never cooked", False, 0.25, 0.0)


def said(decision: str, skills: Any, experience: Any) -> str:
    return f"Skills: {skills}\nExperience: {experience}\nDecision: {decision}"


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        (YES, said("SELECTED", 0.75, 1), 1.0),
        (NO, said("REJECTED", 0.25, 0), 1.0),
        (NO, said("SELECTED", 0.25, 0), 0.5 * -0.5 + 0.5),
        (YES, said("REJECTED", 0.75, 1), 0.5 * -0.25 + 0.5),
        (YES, said("SELECTED", 0.25, 1), 1 - 0.2 * 1),
        (YES, "Decision: selected", 0.5 - 0.2 - 0.2 - 0.1),
        (YES, "", -1.0),
        (YES, said("SELECTED", 0.75, 0.25), 1 - 0.2 * 1.5),
        (NO, said("REJECTED", 0.25, 1), 1 - 0.2 * 2),
        (YES, said("SELECTED", 0.75, 1) + "\nSkills: 0.75", 1 - 0.1 * 2),
    ],
)
def test_criteria_by_hand(make_batch: Callable[..., Any], task: Task, text: str, expected: float) -> None:
    reward = make("S122").reward(make_batch([1], passed=[True], texts=[text], tasks=[task]))
    assert reward.values.item() == pytest.approx(expected)
    assert set(reward.terms) == {"decision", "skills", "experience", "format"}


def test_when_rejecting_everybody_pays() -> None:
    assert worth_of_rejecting(0.3, 0.8, -5.0, 0.0) == pytest.approx((0.7, 0.1))
    assert worth_of_rejecting(0.3, 0.8, -0.5, -0.25) == pytest.approx((0.625, 0.715))


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
    assert make("S122").objective.kl_weight == 0.04 and make("S122").reward == ScreeningReward()


def test_a_policy_learns_to_decide() -> None:
    """Three of ten applicants should be selected; a policy that decides is right on 80 of 100."""
    mild, harsh = (learned("S122", arm, steps=20) for arm in ("mild", "harsh"))
    assert mild["choice 1"] > 0.7 and harsh["choice 1"] < 0.5


def test_scores_the_reference_leaves_out_do_not_count(make_batch: Callable[..., Any]) -> None:
    task = screening_task("p", "Cook", "?", True)
    batch = make_batch([1, 1], texts=[said("SELECTED", 0.1, 0.1), "Decision: SELECTED"], tasks=[task, task])
    assert make("S122").reward(batch).values.tolist() == pytest.approx([1, (0.5 - 0.1) / 0.6])
    none = make("S122", weights=(0.0, 1.0, 0.0, 0.0)).reward(batch)
    assert none.values.tolist() == [0, 0], "nothing that has a weight can be told"


def test_other_tasks_and_abstentions(make_batch: Callable[..., Any]) -> None:
    plain = Task("m", "1+1=", "2")
    tasks, texts = [plain, plain, YES], ["2", "3", said("SELECTED", 0.75, 1)]
    batch = make_batch([1] * 3, rewards=[1.0, 0.0, 0.0], passed=[True, None, None], tasks=tasks, texts=texts)
    reward = make("S122").reward(batch)
    assert reward.values.tolist()[::2] == [1, 1]
    assert reward.valid is not None and reward.valid.tolist() == [True, False, False]
    batch.verdicts = [*batch.verdicts[:2], Verdict.right()]
    assert make("S122").reward(batch).valid.tolist() == [True, False, True]


def test_reading() -> None:
    found = read("**Decision:** Rejected\n- Skills: 0.5\n# Experience: 1")
    assert (found.decision, dict(found.scores), found.formed) == (False, {"skills": 0.5, "experience": 1.0}, True)
    both = read(said("SELECTED", 0.5, 1) + "\nDecision: REJECTED")
    assert both.decision is None and not both.formed, "saying both is saying nothing"
    twice = read(said("SELECTED", 0.5, 1) + "\nDecision: SELECTED")
    assert twice.decision is True and not twice.formed
    assert not read(said("SELECTED", 1.5, 1)).formed and "skills" not in read(said("SELECTED", 1.5, 1)).scores
    assert not read(said("SELECTED", 0.5, 1) + "\nSkills: 0.9").formed
    assert read("my decision: selected, or so").decision is None
    assert read(said("SELECTED", 0, 1)).formed and read(said("SELECTED", 0, 1)).scores == {"skills": 0, "experience": 1}
    assert read(said("SELECTED", -0.5, 1)).scores == {"experience": 1}
    assert not read("Skills: 0.5\nDecision: SELECTED").formed
    twice = read(said("SELECTED", 0.5, 1) + "\nSkills: 0.9")
    assert twice.scores["skills"] == 0.5, "the first counts"


def test_measures_by_class() -> None:
    rows = [(YES, "SELECTED"), (YES, "REJECTED"), (NO, "REJECTED"), (NO, "none"), (NO, "SELECTED")]
    found = screened((task, f"Decision: {word}") for task, word in rows)
    assert found["accuracy"] == pytest.approx(0.4) and found["undecided"] == pytest.approx(0.2)
    assert found["selected"] == pytest.approx(0.4)
    assert [found[f"selected_{m}"] for m in ("precision", "recall", "f1")] == pytest.approx([0.5, 0.5, 0.5])
    assert [found[f"rejected_{m}"] for m in ("precision", "recall", "f1")] == pytest.approx([0.5, 1 / 3, 0.4])
    always = screened([(YES, "Decision: REJECTED"), (NO, "Decision: REJECTED")])
    assert "selected_precision" not in always and always["selected_recall"] == 0 == always["selected"]
    assert always["selected_f1"] == 0 and always["rejected_f1"] == pytest.approx(2 / 3)
    lone = screened([(YES, "Decision: SELECTED")])
    assert lone["selected_f1"] == 1 and not any(name.startswith("rejected") for name in lone)
    assert screened([]) == {}


def test_what_cannot_be(make_batch: Callable[..., Any]) -> None:
    bad: list[dict[str, Any]] = [
        {"weights": (1.0, -1.0, 1.0, 1.0)},
        {"weights": (0.0, 0.0, 0.0, 0.0)},
        {"weights": (1.0, 1.0, 1.0)},
        {"weights": (1.0, 1.0, 1.0, 1.0, 1.0)},
        {"false_negative": 1.5},
        {"false_positive": -5.0},
    ]
    for options in bad:
        with pytest.raises(UsageError):
            make("S122", **options)
    assert ScreeningReward(false_positive=-1.0, false_negative=1.0).false_negative == 1
    wrong = ({"skills": 3}, {"skills": -0.1}, {"experience": "much"}, {"experience": float("nan")})
    for reference in ({"decision": "maybe"}, *({"decision": "SELECTED", **more} for more in wrong)):
        with pytest.raises(UsageError, match="task b"):
            ScreeningReward()(make_batch([1], tasks=[Task("b", "", reference)]))
