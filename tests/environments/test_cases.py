"""Patients: diseases that findings tell apart, options, images, and a knowledge base that has to be searched."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from acted import plans_hold, share

from assay.audit.environment import audit_environment
from assay.environments.base import Action
from assay.environments.cases.diseases import CAUSES, FINDINGS, MODALITIES, SIGNS, make_medicine
from assay.environments.cases.environment import Cases
from assay.environments.cases.images import caption, image_of, similarity, text_vector
from assay.environments.cases.patients import ASKED, LABELS
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import say
from assay.errors import UsageError

KINDS: list[dict[str, Any]] = [
    {},
    {"kind": "text", "asked": ["diagnosis"], "diseases": 4},
    {"kind": "image", "asked": ["treatment", "cause"], "diseases": 200, "shown": 1, "seed": 3},
]


@pytest.mark.parametrize("options", KINDS)
def test_the_plan_passes_and_repeats(options: dict[str, Any]) -> None:
    plans_hold(lambda: Cases(**options), 60, 20)


def test_to_guess_is_right_in_a_quarter() -> None:
    def guess(world: Cases, shown: Any, rng: np.random.Generator) -> Action:
        return say(f"<answer>{rng.choice(list(LABELS))}</answer>")

    assert share(Cases, Cases().tasks(), guess, 400) == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize("diseases", [4, 32, 200])
def test_findings_tell_diseases_apart(diseases: int) -> None:
    medicine = make_medicine(1, diseases)
    assert len(medicine.diseases) == diseases == len({d.drug for d in medicine.diseases})
    for one, other in combinations(medicine.diseases, 2):
        assert one.name != other.name and {*one.findings} != {*other.findings}
    for d in medicine.diseases:
        places, findings = MODALITIES[d.modality]
        assert d.place in places and {*d.findings} <= {*findings} and len({*d.findings}) == SIGNS
        # Each line is a document under the disease's name, and what it is of is found by it.
        assert medicine.corpus.find(" ".join(d.findings), 1)[0].title == d.name
        assert {x.text for x in medicine.corpus.documents.values() if x.title == d.name} == {*d.lines}
        assert all(term.casefold() in medicine.entities for term in (d.name, d.drug, d.cause, d.place, *d.findings))
    assert make_medicine(2, diseases).diseases != medicine.diseases and len(FINDINGS) == 40


@pytest.mark.parametrize("diseases", [4, 32])
def test_options_are_four_and_one_of_them_right(diseases: int) -> None:
    tasks, found = Cases(diseases=diseases).tasks(), {d.name: d for d in make_medicine(0, diseases).diseases}
    hard = []
    for i in range(120):
        task = tasks[i]
        disease = found[task.meta["disease"]]
        options = task.meta["options"]
        [of] = [of for question, of in ASKED.values() if question in task.prompt]
        assert options[LABELS.index(task.reference)] == of(disease) and len({*options}) == 4
        assert all(f"{label}. {option}\n" in task.prompt for label, option in zip(LABELS, options, strict=True))
        if options[0] in found:
            hard += [found[o].modality == disease.modality for o in options]
        assert options[0] in found or options[0] in CAUSES or options[0].endswith("in")
    assert all(hard), "options are the diseases most alike, of the same kind of image"
    assert {tasks[i].reference for i in range(40)} == {*LABELS}


def test_images_show_their_findings() -> None:
    """Cosine of three planted findings with themselves 1, with two of them and another 2/3."""
    disease = make_medicine(0, 4).diseases[0]
    clean = image_of(disease, 0.0, np.random.default_rng(0))
    assert np.linalg.norm(clean) == pytest.approx(1, abs=1e-5)
    findings = MODALITIES[disease.modality][1]
    assert {*caption(clean, findings).split(", ")} == {*disease.findings}
    other = next(f for f in findings if f not in disease.findings)
    texts = [
        " and ".join(disease.findings).upper(),
        f"{disease.findings[0]}, {disease.findings[1]}; {other}",
        other,
        "nothing",
    ]
    assert similarity([clean] * 4, texts) == pytest.approx([1, 2 / 3, 0, 0], abs=1e-5)
    assert text_vector("ground glass opacity of nodular opacities").sum() == 1, "whole words"
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        similarity([(1.0, 0.0)], ["x"])
    noisy = [image_of(disease, 1.0, np.random.default_rng(k)) for k in range(20)]
    assert any({*caption(image, findings).split(", ")} != {*disease.findings} for image in noisy)


def test_what_a_turn_may_say() -> None:
    world = Cases(kind="image", queries=2)
    task = world.tasks()[0]
    shown = world.reset(task, 0)
    assert caption(task.meta["image"], FINDINGS[:10])[:5] not in ("",) and "<query>" in shown.messages[0]["content"]
    step = world.step(say("<think>so</think>"))
    assert not step.valid and "end a turn with <query>" in step.error and not step.terminated
    assert not world.step(say("<query> </query>")).valid and world.left == 2
    step = world.step(say('<think>t</think>\n<query> "fever" </query>\n'))
    assert step.info["query"] == "fever" and step.info["retrieved"].count("\n") == 2
    assert step.observation.messages[0]["content"] == f"<retrieve>\n{step.info['retrieved']}\n</retrieve>"
    assert world.step(say("<query>zzz</query>")).info["retrieved"] == "None"
    step = world.step(say("<query>fever</query>"))
    assert not step.valid and step.error.startswith("no queries are left") and "retrieved" not in step.info
    assert not world.verdict().passed
    # An answer ends it, whatever else is there; the last one counts.
    wrong = LABELS[(LABELS.index(task.reference) + 1) % 4]
    step = world.step(say(f"<answer>{wrong}</answer> no: <answer>{task.reference}</answer> <query>x</query>"))
    assert step.terminated and world.verdict().passed and world.state_json()["left"] == 0
    with pytest.raises(RuntimeError, match="call reset"):
        world.step(say("x"))


def test_the_case_base_has_every_disease() -> None:
    world = Cases(diseases=8, earlier=20)
    found = world.earlier()
    assert len(found) == 20 and len({case.disease for case in found}) == 8 and world.earlier() == found
    names = {d.name: d for d in make_medicine(0, 8).diseases}
    assert all(c.disease in c.report and names[c.disease].drug in c.report for c in found)
    # The most similar image is mostly of the same disease.
    tasks = Cases(kind="image", diseases=8).tasks()
    bank = np.array([case.image for case in found])
    same = [found[int(np.argmax(bank @ tasks[i].meta["image"]))].disease == tasks[i].meta["disease"] for i in range(60)]
    assert np.mean(same) > 0.9


@pytest.mark.parametrize(
    "options", [{"diseases": 3}, {"diseases": 201}, {"shown": 0}, {"queries": 0}, {"noise": -1.0}, {"earlier": 0}]
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="environment 'cases': diseases"):
        Cases(**options)
    with pytest.raises(UsageError, match="environment 'cases': kind"):
        Cases(kind="pixels")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="asked"):
        Cases(asked=["dose"])
    with pytest.raises(UsageError, match="does not say what disease"):
        Cases().gold()


@pytest.mark.slow
def test_its_audit_passes() -> None:
    worlds = Worlds({"name": "cases", "diseases": 8}, 2)
    source = worlds.here().tasks()
    try:
        findings = list(audit_environment(worlds, [source[i] for i in range(4)]))
    finally:
        worlds.close()
    assert all(f.passed for f in findings) and "gold passes" in {f.name for f in findings}
