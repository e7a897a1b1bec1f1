"""Images as vectors over findings, which stand for pixels where a policy reads text, and scans drawn from them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from assay.environments.cases.diseases import FINDINGS, SIGNS, Disease
from assay.media import Picture

Image = tuple[float, ...]
ROWS = 5


def image_of(disease: Disease, noise: float, rng: np.random.Generator) -> Image:
    """Return an image ``(F,)`` of a patient: 1 for what is a sign of the disease, plus normal noise, of length 1."""
    planted = np.array([float(f in disease.findings) for f in FINDINGS])
    seen = planted + noise * rng.standard_normal(len(FINDINGS))
    return tuple(float(x) for x in np.round(seen / np.linalg.norm(seen), 6))


def caption(image: Sequence[float], modality_findings: Sequence[str]) -> str:
    """Return what a reader sees in an image: the findings of its kind that stand out most, the strongest first."""
    strength = {f: image[FINDINGS.index(f)] for f in modality_findings}
    return ", ".join(sorted(strength, key=lambda f: -strength[f])[:SIGNS])


def scan(image: Sequence[float]) -> Picture:
    """Return :func:`pixels` as a picture."""
    return Picture.of(np.repeat(pixels(image)[:, :, None], 3, 2))


def pixels(image: Sequence[float]) -> np.ndarray:
    """Return what a device would show of an image, uint8: a bright spot for each finding, by its strength, in the dark.

    Findings have their places in a grid of :data:`ROWS` rows; 8 pixels a place, and grain that the image decides.
    """
    strength = np.clip(np.sqrt(SIGNS) * np.asarray(image).reshape(ROWS, -1), 0.0, 1.2) / 1.2
    across = np.arange(8) - 3.5
    spot = np.exp(-(across[:, None] ** 2 + across**2) / 8)
    grain = np.random.default_rng([abs(int(x * 1e6)) for x in image]).normal(0, 0.03, (8 * ROWS, 8 * strength.shape[1]))
    gray = np.clip(np.kron(strength, spot) + grain, 0, 1)
    return (255 * gray).astype(np.uint8)


def text_vector(text: str) -> np.ndarray:
    """Return a text in the space of images: 1 for each finding that it names as whole words."""
    said = " ".join(re.findall(r"\w+", text.casefold()))
    named = [f" {' '.join(re.findall(r'[0-9a-z]+', f))} " in f" {said} " for f in FINDINGS]
    return np.array(named, dtype=np.float64)


def similarity(images: Sequence[Sequence[float]], texts: Sequence[str]) -> list[float]:
    """Return the cosine of each image with its text, 0 where the text names no finding.

    Raises:
        ValueError: an image that is no vector over :data:`~assay.environments.cases.diseases.FINDINGS`.
    """
    out = []
    for image, text in zip(images, texts, strict=True):
        a, b = np.asarray(image, dtype=np.float64), text_vector(text)
        if a.shape != b.shape:
            raise ValueError(f"an image has shape {a.shape}; those of environment 'cases' have {b.shape}")
        size = float(np.linalg.norm(a) * np.linalg.norm(b))
        out.append(float(a @ b) / size if size else 0.0)
    return out
