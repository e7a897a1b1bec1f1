"""Questions about patients, with four options each, and earlier patients to compare with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.environments.cases.diseases import CAUSES, MODALITIES, Disease, make_medicine
from assay.environments.cases.images import Image, caption, image_of, scan
from assay.media import MARK
from assay.tasks.seeded import check_index, generator
from assay.types import Task

Kind = Literal["text", "image", "both"]
LABELS = "ABCD"
HOW = (
    "Think in <think>...</think>. To look something up end a turn with <query>...</query>; what is found comes in "
    "<retrieve>. End with <answer>the letter and the text of an option</answer>."
)
ASKED: dict[str, tuple[str, Callable[[Disease], str]]] = {
    "diagnosis": ("Which disease is it?", lambda d: d.name),
    "treatment": ("Which drug treats the disease?", lambda d: d.drug),
    "cause": ("What causes the disease?", lambda d: d.cause),
}
"""What is asked, and the answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """An earlier patient: an image and the report on it, which tells the disease."""

    image: Image | str
    report: str
    disease: str


@dataclass(frozen=True, slots=True)
class Patients:
    """Endless tasks over the medicine of a seed; the reference is a letter, the options are in ``meta``.

    In a task of ``text`` the findings are told as they are. In one of ``image`` there is an image, ``meta["image"]``:
    as a vector, and what a reader of it sees stands in the prompt for it (:func:`.images.caption`), with noise, now and
    then what is not there; or, where ``drawn``, as a scan (:func:`.images.scan`, by URL), which the prompt shows.
    ``meta["entities"]`` are the medical terms of the medicine, ``meta["disease"]`` the disease.
    """

    seed: int
    diseases: int
    kind: Kind
    noise: float
    asked: tuple[str, ...]
    drawn: bool = False

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None), 2)
        medicine = make_medicine(self.seed, self.diseases)
        disease = medicine.diseases[int(rng.integers(len(medicine.diseases)))]
        question, of = ASKED[self.asked[int(rng.integers(len(self.asked)))]]
        kind = ("text", "image")[index % 2] if self.kind == "both" else self.kind
        options = self.options(disease, of, medicine.diseases, rng)
        image = image_of(disease, self.noise, rng) if kind == "image" else None
        told = ", ".join(map(str, rng.permutation(disease.findings)))
        seen = told if image is None else caption(image, MODALITIES[disease.modality][1])
        shows = f"The {disease.modality} shows, in the {disease.place}: {seen}."
        picture = scan(image) if image is not None and self.drawn else None
        if picture is not None:
            shows = f"This is the {disease.modality}, of the {disease.place}: {MARK}."
        shown = image if picture is None else picture.url
        listed = "\n".join(f"{label}. {option}" for label, option in zip(LABELS, options, strict=True))
        prompt = f"A patient complains of {' and '.join(disease.complaints)}. {shows} {question}\n{listed}\n{HOW}"
        return Task(
            id=f"cases/{self.seed}/{self.diseases}/{kind}/{index}",
            prompt=prompt if picture is None else ({"role": "user", "content": prompt, "images": (picture,)},),
            reference=LABELS[options.index(of(disease))],
            kind="choice",
            meta={
                "options": options,
                "disease": disease.name,
                "entities": medicine.entities,
                **({} if image is None else {"image": shown}),
            },
        )

    @staticmethod
    def options(
        disease: Disease, of: Callable[[Disease], str], others: tuple[Disease, ...], rng: np.random.Generator
    ) -> list[str]:
        """Return four different answers, the right one among them; the others of diseases most like it, if there are.

        Alike are those in the same kind of image, and of these the ones that share most findings.
        """
        order = [others[i] for i in rng.permutation(len(others))]
        order.sort(key=lambda d: (d.modality != disease.modality, -len({*d.findings} & {*disease.findings})))
        # Few diseases may have fewer causes than there are options.
        spare = CAUSES if of(disease) in CAUSES else ()
        wrong = [answer for answer in dict.fromkeys([*map(of, order), *spare]) if answer != of(disease)]
        chosen = [of(disease), *wrong[: len(LABELS) - 1]]
        return [chosen[i] for i in rng.permutation(len(chosen))]


def earlier(seed: int, diseases: int, count: int, noise: float, drawn: bool = False) -> list[Case]:
    """Return the case base of a seed: patients that no task is about, each disease's as often as another's."""
    rng = generator(seed, diseases, count, 3)
    found = make_medicine(seed, diseases).diseases
    out = []
    for i in range(count):
        disease = found[i % len(found)]
        image = image_of(disease, noise, rng)
        told = f"The {disease.modality} shows {', '.join(disease.findings)} in the {disease.place}."
        report = f"{told} It is {disease.name}; treated with {disease.drug}."
        out.append(Case(scan(image).url if drawn else image, report, disease.name))
    return out
