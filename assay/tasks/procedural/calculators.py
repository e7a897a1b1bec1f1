"""Clinical calculators: what does the formula, or the score, give for this patient?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

TOLERANCE = 0.05
"""Relative, of what a formula gives; points of a score are exact."""


@dataclass(frozen=True, slots=True)
class Equation:
    """A formula: what goes in, each from a range with so many decimals, what comes out, and how it is written out."""

    title: str
    inputs: Mapping[str, tuple[str, float, float, int]]
    unit: str
    formula: Callable[..., float]
    written: str

    def patient(self, rng: np.random.Generator) -> dict[str, float]:
        return {
            name: round(float(rng.uniform(low, high)), decimals)
            if decimals
            else int(rng.integers(int(low), int(high) + 1))
            for name, (_, low, high, decimals) in self.inputs.items()
        }

    def asked(self, patient: Mapping[str, float]) -> str:
        known = [label.format(value=patient[name]) for name, (label, *_) in self.inputs.items()]
        return f"A patient has {', '.join(known[:-1])} and {known[-1]}. What is the {self.title}, in {self.unit}?"

    def value(self, patient: Mapping[str, float]) -> float:
        return float(self.formula(**patient))

    def worked(self, patient: Mapping[str, float]) -> str:
        return f"The {self.title} is {self.written.format(**patient)} = {self.value(patient):.4g}."


@dataclass(frozen=True, slots=True)
class Score:
    """Points that are added up: in each group one statement is true of a patient, and has its points."""

    title: str
    groups: Sequence[Sequence[tuple[str, float]]]

    def patient(self, rng: np.random.Generator) -> dict[str, float]:
        return {str(g): float(rng.integers(len(group))) for g, group in enumerate(self.groups)}

    def _true(self, patient: Mapping[str, float]) -> list[tuple[str, float]]:
        return [group[int(patient[str(g)])] for g, group in enumerate(self.groups)]

    def asked(self, patient: Mapping[str, float]) -> str:
        return f"Of a patient is known: {'; '.join(text for text, _ in self._true(patient))}. What is the {self.title}?"

    def value(self, patient: Mapping[str, float]) -> float:
        return sum(points for _, points in self._true(patient))

    def worked(self, patient: Mapping[str, float]) -> str:
        told = "; ".join(f"{text}: {points:g}" for text, points in self._true(patient))
        return f"Points: {told}. The {self.title} is {self.value(patient):g}."


def _yes_no(points: float, *facts: str) -> list[list[tuple[str, float]]]:
    return [[(f"no {fact}", 0), (fact, points)] for fact in facts]


CALCULATORS: dict[str, Equation | Score] = {
    "anion_gap": Equation(
        "anion gap",
        {
            "na": ("sodium {value} mmol/L", 132, 150, 0),
            "cl": ("chloride {value} mmol/L", 90, 104, 0),
            "hco3": ("bicarbonate {value} mmol/L", 8, 24, 0),
        },
        "mmol/L",
        lambda na, cl, hco3: na - cl - hco3,
        "{na} - {cl} - {hco3}",
    ),
    "map": Equation(
        "mean arterial pressure",
        {
            "systolic": ("systolic pressure {value} mmHg", 90, 190, 0),
            "diastolic": ("diastolic pressure {value} mmHg", 45, 85, 0),
        },
        "mmHg",
        lambda systolic, diastolic: (systolic + 2 * diastolic) / 3,
        "({systolic} + 2 * {diastolic}) / 3",
    ),
    "bmi": Equation(
        "body mass index",
        {"weight": ("weight {value} kg", 40, 140, 0), "height": ("height {value} m", 1.45, 2.0, 2)},
        "kg/m^2",
        lambda weight, height: weight / height**2,
        "{weight} / {height}^2",
    ),
    "bsa": Equation(
        "body surface area by Mosteller",
        {"height": ("height {value} cm", 140, 200, 0), "weight": ("weight {value} kg", 40, 140, 0)},
        "m^2",
        lambda height, weight: math.sqrt(height * weight / 3600),
        "sqrt({height} * {weight} / 3600)",
    ),
    "creatinine_clearance": Equation(
        "creatinine clearance of a man by Cockcroft and Gault",
        {
            "age": ("age {value} years", 20, 90, 0),
            "weight": ("weight {value} kg", 45, 120, 0),
            "creatinine": ("creatinine {value} mg/dL", 0.5, 6.0, 1),
        },
        "mL/min",
        lambda age, weight, creatinine: (140 - age) * weight / (72 * creatinine),
        "(140 - {age}) * {weight} / (72 * {creatinine})",
    ),
    "corrected_calcium": Equation(
        "calcium corrected for albumin",
        {
            "calcium": ("calcium {value} mg/dL", 6.5, 13.0, 1),
            "albumin": ("albumin {value} g/dL", 1.5, 3.9, 1),
        },
        "mg/dL",
        lambda calcium, albumin: calcium + 0.8 * (4 - albumin),
        "{calcium} + 0.8 * (4 - {albumin})",
    ),
    "corrected_sodium": Equation(
        "sodium corrected for glucose by 1.6 per 100 mg/dL",
        {
            "sodium": ("sodium {value} mmol/L", 118, 142, 0),
            "glucose": ("glucose {value} mg/dL", 200, 900, 0),
        },
        "mmol/L",
        lambda sodium, glucose: sodium + 1.6 * (glucose - 100) / 100,
        "{sodium} + 1.6 * ({glucose} - 100) / 100",
    ),
    "osmolality": Equation(
        "calculated serum osmolality",
        {
            "na": ("sodium {value} mmol/L", 125, 160, 0),
            "glucose": ("glucose {value} mg/dL", 70, 900, 0),
            "urea": ("blood urea nitrogen {value} mg/dL", 8, 90, 0),
        },
        "mOsm/kg",
        lambda na, glucose, urea: 2 * na + glucose / 18 + urea / 2.8,
        "2 * {na} + {glucose} / 18 + {urea} / 2.8",
    ),
    "ldl": Equation(
        "LDL cholesterol by Friedewald",
        {
            "total": ("total cholesterol {value} mg/dL", 150, 320, 0),
            "hdl": ("HDL {value} mg/dL", 25, 60, 0),
            "triglycerides": ("triglycerides {value} mg/dL", 50, 300, 0),
        },
        "mg/dL",
        lambda total, hdl, triglycerides: total - hdl - triglycerides / 5,
        "{total} - {hdl} - {triglycerides} / 5",
    ),
    "qtc": Equation(
        "QT interval corrected by Bazett",
        {"qt": ("QT interval {value} ms", 300, 520, 0), "rate": ("heart rate {value}/min", 45, 130, 0)},
        "ms",
        lambda qt, rate: qt / math.sqrt(60 / rate),
        "{qt} / sqrt(60 / {rate})",
    ),
    "fena": Equation(
        "fractional excretion of sodium",
        {
            "urine_na": ("urine sodium {value} mmol/L", 5, 120, 0),
            "plasma_na": ("plasma sodium {value} mmol/L", 125, 150, 0),
            "urine_cr": ("urine creatinine {value} mg/dL", 20, 200, 0),
            "plasma_cr": ("plasma creatinine {value} mg/dL", 0.6, 6.0, 1),
        },
        "per cent",
        lambda urine_na, plasma_na, urine_cr, plasma_cr: 100 * urine_na * plasma_cr / (plasma_na * urine_cr),
        "100 * {urine_na} * {plasma_cr} / ({plasma_na} * {urine_cr})",
    ),
    "chads_vasc": Score(
        "CHA2DS2-VASc score",
        [
            *_yes_no(1, "heart failure", "hypertension", "diabetes", "vascular disease"),
            *_yes_no(2, "stroke in the past"),
            [("age 52", 0), ("age 64", 0), ("age 65", 1), ("age 74", 1), ("age 75", 2), ("age 88", 2)],
            [("a man", 0), ("a woman", 1)],
        ],
    ),
    "curb65": Score(
        "CURB-65 score",
        [
            *_yes_no(1, "new confusion"),
            [("blood urea nitrogen 14 mg/dL", 0), ("blood urea nitrogen 31 mg/dL", 1)],
            [("respiratory rate 18/min", 0), ("respiratory rate 34/min", 1)],
            [("blood pressure 126/78", 0), ("blood pressure 84/64", 1), ("blood pressure 102/58", 1)],
            [("age 41", 0), ("age 64", 0), ("age 65", 1), ("age 83", 1)],
        ],
    ),
    "wells": Score(
        "Wells score for pulmonary embolism",
        [
            *_yes_no(3, "signs of deep vein thrombosis"),
            [("another diagnosis is likelier", 0), ("no other diagnosis is likelier", 3)],
            [("heart rate 84/min", 0), ("heart rate 121/min", 1.5)],
            *_yes_no(1.5, "surgery or immobility in the past four weeks", "earlier embolism or thrombosis"),
            *_yes_no(1, "haemoptysis", "active cancer"),
        ],
    ),
}
"""By name. Points and factors are those in common use."""


@part("tasks", "calculators")
@dataclass(frozen=True, slots=True)
class Calculators:
    """Endless questions about :data:`CALCULATORS`, judged by verifier ``numeric``.

    What a formula gives has to be met within :data:`TOLERANCE`, units are not read; a score exactly, as MedCalc-Bench
    (arXiv 2406.12036) judges both. ``meta["calculator"]`` names it, so that ``assay eval --by calculator`` tells them
    apart. The solution writes the formula out.

    Args:
        names: of calculators; by default all, in turn.
        style: ``words``; or ``compact``, such as ``anion_gap 140,104,24=``, for small models: equations alone.
        seed: >= 0.

    Raises:
        UsageError: no such calculator, or a score in compact style.
    """

    names: tuple[str, ...] = ()
    style: Literal["words", "compact"] = "words"
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed("tasks 'calculators'", self.seed)
        if unknown := [name for name in self.names if name not in CALCULATORS]:
            raise UsageError(f"tasks 'calculators': no calculator {unknown[0]!r}; there are {', '.join(CALCULATORS)}")
        if self.style not in ("words", "compact"):
            raise UsageError(f"tasks 'calculators': style {self.style!r} is neither words nor compact")
        if self.style == "compact" and (scores := [n for n in self.known if isinstance(CALCULATORS[n], Score)]):
            raise UsageError(f"tasks 'calculators': {scores[0]!r} is a score; in compact style name equations")

    @property
    def known(self) -> tuple[str, ...]:
        return self.names or tuple(CALCULATORS)

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        name = self.known[check_index(index, None) % len(self.known)]
        calculator, rng = CALCULATORS[name], generator(self.seed, index)
        patient = calculator.patient(rng)
        value = calculator.value(patient)
        if self.style == "compact":
            prompt, solution = f"{name} {','.join(f'{x:g}' for x in patient.values())}=", f"{value:.3g}"
        else:
            prompt = f"{calculator.asked(patient)} Think, then give the number in \\boxed{{}}."
            solution = f"{calculator.worked(patient)} \\boxed{{{value:.4g}}}"
        near: dict[str, Any] = {"rtol": TOLERANCE} if isinstance(calculator, Equation) else {"rtol": 0}
        return Task(
            f"calculators/{self.seed}/{self.style}/{name}/{index}",
            prompt,
            {"value": value, "units": "ignore", **near},
            "numeric",
            solution,
            meta={"source": "calculators", "calculator": name},
        )
