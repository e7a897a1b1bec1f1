"""WiNGPT-3.0: calculators, rewards by rule or by model, and a run through general, medical and clinical stages."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, tables

import assay
from assay import catalogue
from assay.batch import Batch
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.procedural.calculators import CALCULATORS, Calculators
from assay.types import Ask, Episode, Group, Task, Turn, Verdict
from assay.verify import KindVerifier

VERIFIER = KindVerifier()
TEN = Task("t", "q", {"value": 10.0, "rtol": 0.05, "units": "ignore"}, "numeric")


@pytest.mark.parametrize(
    ("answer", "right"),
    [("9.6", True), ("9.4", False), ("10.5", True), ("9.5", True), ("10.51", False), ("9.6 mmol/L", True)],
)
def test_a_formula_is_met_within_a_twentieth(answer: str, right: bool) -> None:
    assert VERIFIER(TEN, f"\\boxed{{{answer}}}").passed is right
    exact = Task("t", "q", {"value": 10.0, "rtol": 0, "units": "ignore"}, "numeric")
    assert VERIFIER(exact, f"\\boxed{{{answer}}}").passed is False and VERIFIER(exact, "\\boxed{10 points}").passed
    unknown = Task("t", "q", {"value": 10.0, "units": "some"}, "numeric")
    assert VERIFIER(unknown, "\\boxed{10}").passed is None


@pytest.mark.parametrize(
    ("name", "patient", "value"),
    [
        ("anion_gap", {"na": 140, "cl": 104, "hco3": 24}, 12),
        ("map", {"systolic": 120, "diastolic": 80}, 93.3333),
        ("bmi", {"weight": 70, "height": 1.75}, 22.8571),
        ("bsa", {"height": 180, "weight": 80}, 2),
        ("creatinine_clearance", {"age": 60, "weight": 72, "creatinine": 1.0}, 80),
        ("corrected_calcium", {"calcium": 8.0, "albumin": 2.0}, 9.6),
        ("corrected_sodium", {"sodium": 130, "glucose": 600}, 138),
        ("osmolality", {"na": 140, "glucose": 90, "urea": 14}, 290),
        ("ldl", {"total": 200, "hdl": 50, "triglycerides": 150}, 120),
        ("qtc", {"qt": 400, "rate": 60}, 400),
        ("qtc", {"qt": 300, "rate": 120}, 424.2641),
        ("fena", {"urine_na": 40, "plasma_na": 140, "urine_cr": 100, "plasma_cr": 1.0}, 0.285714),
        # A woman of 75 with hypertension and a stroke; of 64 without anything.
        ("chads_vasc", dict(zip("0123456", (0, 1, 0, 0, 1, 4, 1), strict=True)), 6),
        ("chads_vasc", dict(zip("0123456", (0, 0, 0, 0, 0, 1, 1), strict=True)), 1),
        # Confused, urea 31, breathing 34 times, 102/58, 65 years old; and as well as can be.
        ("curb65", dict(zip("01234", (1, 1, 1, 2, 2), strict=True)), 5),
        ("curb65", dict(zip("01234", (0, 0, 0, 0, 1), strict=True)), 0),
        ("wells", dict(zip("0123456", (1, 1, 1, 1, 1, 1, 1), strict=True)), 12.5),
    ],
)
def test_calculators_by_hand(name: str, patient: dict[str, Any], value: float) -> None:
    assert CALCULATORS[name].value(patient) == pytest.approx(value, rel=1e-5)


def test_questions_about_calculators() -> None:
    source = Calculators()
    for index in range(3 * len(CALCULATORS)):
        task = source[index]
        assert task.meta["calculator"] == [*CALCULATORS][index % len(CALCULATORS)] and "\\boxed{}" in task.prompt
        assert VERIFIER(task, task.solution).passed and VERIFIER(task, "\\boxed{x}").passed is False
        value = float(task.reference["value"])
        assert not VERIFIER(task, f"\\boxed{{{value * 1.06 + 0.5:.6g}}}").passed
    assert source[0] == Calculators()[0] != Calculators(seed=1)[0]
    compact = Calculators(names=("anion_gap",), style="compact")[0]
    assert compact.prompt == "anion_gap 148,99,16=" and compact.solution == "33" and VERIFIER(compact, "33").passed
    worked = Calculators(names=("curb65",))[0].solution
    assert worked.startswith("Points: ") and worked.endswith("}")
    for wrong in ({"names": ("x",)}, {"style": "verse"}, {"style": "compact"}, {"seed": -1}):
        with pytest.raises(UsageError, match="tasks 'calculators'"):
            build("tasks", {"name": "calculators", **wrong})


def batch(*rows: tuple[str, Task, Verdict, tuple[Turn, ...]]) -> Batch:
    mask, tokens, logprobs = np.ones(4, bool), np.arange(4), np.zeros(4, np.float32)
    return Batch.from_groups(
        [
            Group(Ask(task, 1), (Episode(tokens, tokens, mask, logprobs, text, "eos", turns=turns),), (verdict,))
            for text, task, verdict, turns in rows
        ]
    )


OPEN = Task("open", "Why?", kind="none")
CHOICE = Task("choice", "Which?", {"answer": "A", "options": ["x", "y"]}, "choice")


def mixed() -> Batch:
    """A choice right and wrong, a calculation, an open question, and a chain that ranks its disease second."""
    turns = (Turn(0, 0, 2), Turn(1, 2, 4, valid=False, error="end with a line"))
    chain = Verdict(0.5, False, {"diagnosis": 0.5, "evidence": 0.8, "differential": 0.4})
    singles = [
        (text, task, VERIFIER(task, text), ())
        for text, task in (
            ("\\boxed{A}", CHOICE),
            ("\\boxed{B}", CHOICE),
            ("it is 9.6", TEN),
            ("Because of the fever.", OPEN),
        )
    ]
    return batch(*singles, ("A>B", Task("chain", "", kind="none"), chain, turns))


def test_what_rules_can_tell_no_model_is_asked() -> None:
    """1 + .1, 0 + .1, 1, .7 and .5 + .5 x .8 + .1 / 2."""
    asked: list[str] = []

    def model(task: Task, response: str) -> float:
        asked.append(response)
        return 0.7

    found = catalogue.make("S222", auxiliary=model).reward(mixed())
    assert asked == ["Because of the fever."]
    assert found.values.tolist() == pytest.approx([1.1, 0.1, 1.0, 0.7, 0.95]) and found.valid.all()
    assert found.terms["answer/modelled"].tolist() == [0, 0, 0, 1, 0]
    alone = catalogue.make("S222", evidence=0.0, form=0.0).reward(mixed())
    assert alone.values[[0, 1, 2, 4]].tolist() == [1, 0, 1, 0.5]
    assert alone.valid.tolist() == [True, True, True, False, True], "nobody can tell"


def test_a_model_that_cannot_tell_and_a_verifier_that_failed() -> None:
    lost = batch(("x", OPEN, VERIFIER(OPEN, "x"), ()), ("y", TEN, Verdict.abstain("away", "infrastructure"), ()))
    found = catalogue.make("S222", auxiliary=lambda task, response: None).reward(lost)
    assert found.valid.tolist() == [False, False]
    part = {"name": "part", "part": "evidence"}
    assert catalogue.make("S222", auxiliary=part).reward(lost).valid.tolist() == [False, False]
    signal = {"name": "confidence"}
    assert catalogue.make("S222", auxiliary=signal).needs >= build("reward", signal).needs, "it gets what it needs"


def test_form() -> None:
    assert catalogue.make("S222", form=2.0).reward(mixed()).terms["form"].tolist() == [1, 1, 0, 0, 0.5]
    for wrong in ({"form": -1.0}, {"evidence": -0.1}):
        with pytest.raises(UsageError, match="must be at least 0"):
            catalogue.make("S222", **wrong)


def test_the_plan_alone_shows_the_chain() -> None:
    """The supervised stage imitates the environment's plan, in its last steps as in its first."""
    recipe = tomllib.loads(resources.files("assay.recipes").joinpath("wingpt.toml").read_text(encoding="utf-8"))
    [stage] = [stage for stage in recipe["stages"] if stage["name"] == "clinical-shown"]
    mixing = catalogue.make("S176", **stage["method"]["options"]).rollout["mixing"]
    assert {mixing.share for mixing.round in range(stage["steps"])} == {1.0}


def test_the_recipe_goes_through_its_stages(tmp_path: Path) -> None:
    stages = ("general-shown", "general", "medical-shown", "medical", "clinical-shown", "clinical")
    changes = [
        "model.nano.hidden=16",
        "model.nano.layers=1",
        "model.nano.heads=2",
        "rollout={prompts = 2, group = 2, max_tokens = 8}",
        "tasks.eval_size=4",
        "evaluate.samples=0",
        "run.report=false",
        f"run.dir={tmp_path / 'run'}",
        *(f"stages.{name}.steps=1" for name in stages),
        *(f"stages.{name}.rollout={{prompts = 2, max_tokens = 20}}" for name in stages if name.endswith("shown")),
    ]
    assay.train("wingpt", overrides=changes, quiet=True)
    rows = [row for row in metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert [row["stage_number"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert all(row["grad_norm"] > 0 for row in rows[::2]), "what is shown is learned"
    steps = list(tables(tmp_path / "run", "rollouts").values())
    kinds = [{row["task_id"].split("/")[0] for row in step} for step in steps]
    assert kinds[:4] == [{"addition"}] * 2 + [{"calculators"}] * 2 and kinds[5] == {"diagnosis"}
    assert all(row["passed"] for step in steps[:5:2] for row in step), "what is shown is right"
    assert len(steps[4]) == 2 * 2 * (1 + 4) and len(steps[5]) == 4, "episodes, and a label for each of their turns"
    assert {"reward/answer", "reward/evidence", "reward/form"} <= {*rows[5]}
