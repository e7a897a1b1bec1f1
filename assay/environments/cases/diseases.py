"""Made-up diseases that real findings are the signs of, what is known of each, and where it is written."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from assay.environments.naming import made_up
from assay.environments.search.corpus import Corpus, Document
from assay.tasks.seeded import generator

MODALITIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "chest radiograph": (
        ("right upper lobe", "left upper lobe", "right lower lobe", "left lower lobe"),
        (
            *("consolidation", "pleural effusion", "cavitation", "ground-glass opacity", "hilar enlargement"),
            *("volume loss", "air bronchogram", "septal lines", "nodular opacity", "pleural thickening"),
        ),
    ),
    "abdominal ultrasound": (
        ("liver", "gallbladder", "spleen", "right kidney", "left kidney"),
        (
            *("wall thickening", "acoustic shadow", "cystic lesion", "echogenic focus", "duct dilatation"),
            *("free fluid", "cortical thinning", "hypoechoic mass", "increased vascularity", "capsular retraction"),
        ),
    ),
    "brain MRI": (
        ("frontal lobe", "temporal lobe", "cerebellum", "brainstem", "basal ganglia"),
        (
            *("restricted diffusion", "ring enhancement", "midline shift", "white matter hyperintensity"),
            *("microhaemorrhage", "vasogenic oedema", "cortical atrophy", "leptomeningeal enhancement"),
            *("flow void", "cystic necrosis"),
        ),
    ),
    "echocardiogram": (
        ("left ventricle", "right ventricle", "left atrium", "mitral valve", "aortic valve"),
        (
            *("chamber dilatation", "wall hypokinesia", "leaflet calcification", "regurgitant jet"),
            *("pericardial effusion", "septal flattening", "apical ballooning", "leaflet prolapse"),
            *("spontaneous echo contrast", "outflow obstruction"),
        ),
    ),
}
"""Places and findings of each kind of image."""
FINDINGS = tuple(finding for _, findings in MODALITIES.values() for finding in findings)
COMPLAINTS = (
    *("fever", "night sweats", "weight loss", "dizziness", "palpitations", "breathlessness", "headache", "fatigue"),
    *("nausea", "back pain", "ankle swelling", "blurred vision", "confusion", "dry cough", "chest pain", "itching"),
)
CAUSES = (
    *("iron overload", "a channelopathy", "an enzyme deficiency", "an autoantibody", "a fungal toxin"),
    *("chronic dust exposure", "a complement defect", "a clonal mast cell disorder", "a mitochondrial mutation"),
)
SIGNS = 3
"""Findings that a disease has."""


@dataclass(frozen=True, slots=True)
class Disease:
    """What is true of a disease: the findings in a kind of image, their place, complaints, cause and drug."""

    name: str
    modality: str
    place: str
    findings: tuple[str, ...]
    complaints: tuple[str, ...]
    cause: str
    drug: str

    @property
    def lines(self) -> tuple[str, ...]:
        """What the knowledge base says of it, each line an entry of its own."""
        signs = f"{', '.join(self.findings[:-1])} and {self.findings[-1]}"
        return (
            f"{self.name} shows {signs} in the {self.place} on the {self.modality}.",
            f"Patients with {self.name} complain of {' and '.join(self.complaints)}.",
            f"{self.name} is caused by {self.cause}.",
            f"{self.name} is treated with {self.drug}.",
        )


@dataclass(frozen=True, slots=True)
class Medicine:
    """All diseases of a seed, the knowledge base on them, and the words that are medical."""

    diseases: tuple[Disease, ...]
    corpus: Corpus
    entities: tuple[str, ...]


@functools.lru_cache(maxsize=8)
def make_medicine(seed: int, diseases: int) -> Medicine:
    """Return the medicine that belongs to a seed.

    No two diseases have the same :data:`SIGNS` findings, so that an image tells them apart, or the same drug. Each line
    of :attr:`Disease.lines` is a document.

    Args:
        diseases: in all, 4 to 200, four after four in each kind of image.
    """
    rng = generator(seed, diseases, 216)
    names = made_up(rng, 2 * diseases)
    kinds = list(MODALITIES)
    found = []
    signs = {kind: _signs(MODALITIES[kind][1], rng) for kind in kinds}
    for i in range(diseases):
        kind = kinds[i // 4 % len(kinds)]
        found.append(
            Disease(
                f"{next(names)} disease",
                kind,
                str(rng.choice(MODALITIES[kind][0])),
                signs[kind].pop(),
                tuple(map(str, rng.choice(COMPLAINTS, 2, replace=False))),
                str(rng.choice(CAUSES)),
                f"{next(names).lower()}in",
            )
        )
    lines = [(d.name, line) for d in found for line in d.lines]
    documents = [Document(f"k{k:04d}", *lines[i]) for k, i in enumerate(rng.permutation(len(lines)))]
    places = [place for places, _ in MODALITIES.values() for place in places]
    terms = [*(d.name for d in found), *(d.drug for d in found), *FINDINGS, *places, *kinds, *COMPLAINTS, *CAUSES]
    return Medicine(tuple(found), Corpus(documents), tuple(dict.fromkeys(t.casefold() for t in terms)))


def _signs(findings: tuple[str, ...], rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Return all sets of findings, they and the findings of each in an order that tells nothing."""
    every = list(combinations(findings, SIGNS))
    return [tuple(str(f) for f in rng.permutation(every[i])) for i in rng.permutation(len(every))]
