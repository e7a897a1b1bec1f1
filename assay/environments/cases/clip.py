"""An encoder of scans and texts, learned by contrast from made-up patients, as CLIP is (arXiv 2103.00020)."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from assay.environments.cases.diseases import FINDINGS, MODALITIES, SIGNS
from assay.environments.cases.images import ROWS, Image, pixels
from assay.environments.cases.images import similarity as of_vectors
from assay.media import Picture

WORDS = {word: i for i, word in enumerate(sorted({w for f in FINDINGS for w in re.findall(r"[a-z]+", f)}), 1)}
"""Words it knows; 0 is none of them."""
STEPS, PAIRS = 120, 64
"""Updates, and scans with their texts in each."""


class Encoder(torch.nn.Module):
    """Scans and texts as vectors ``(M, 32)`` of length 1; those of a text without a word that it knows are 0."""

    def __init__(self) -> None:
        super().__init__()
        self.spots = torch.nn.Conv2d(1, 8, 8, stride=8)
        self.scans = torch.nn.Linear(8 * len(FINDINGS), 32)
        self.words = torch.nn.Embedding(len(WORDS) + 1, 32, padding_idx=0)
        self.scale = torch.nn.Parameter(torch.tensor(np.log(10.0), dtype=torch.float32))

    def scans_of(self, found: UInt8[np.ndarray, "M H W"]) -> Float[Tensor, "M 32"]:
        seen = self.spots(torch.from_numpy(found).float()[:, None] / 255).relu().flatten(1)
        return F.normalize(self.scans(seen), dim=-1)

    def texts(self, found: Sequence[str]) -> Float[Tensor, "M 32"]:
        return F.normalize(self.words(read(found)).sum(1), dim=-1)


def read(texts: Sequence[str]) -> Int[Tensor, "M L"]:
    """Return the known words of each text, filled up with 0."""
    rows = [[WORDS[w] for w in re.findall(r"[a-z]+", text.casefold()) if w in WORDS] for text in texts]
    return torch.tensor([row + [0] * (max(1, *map(len, rows)) - len(row)) for row in rows], dtype=torch.int64)


@functools.cache
def encoder(seed: int = 0) -> Encoder:
    """Return the encoder, learned once a process: symmetric InfoNCE of scans and of texts on some of their findings.

        loss = (CE(s u v') + CE(s v u')) / 2,   s learned

    What it learns from is drawn anew for each update: three findings of a kind of image, with noise of .2.
    """
    rng = np.random.default_rng([seed, 7])
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        made = Encoder()
        optimizer = torch.optim.Adam(made.parameters(), 5e-3)
        for _ in range(STEPS):
            images, texts = zip(*(patient(rng) for _ in range(PAIRS)), strict=True)
            seen = made.scans_of(np.stack([pixels(image) for image in images]))
            logits = made.scale.exp() * seen @ made.texts(texts).T
            target = torch.arange(PAIRS)
            loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return made.requires_grad_(False).eval()


def patient(rng: np.random.Generator) -> tuple[Image, str]:
    """Draw an image and a text on one to all of its findings."""
    kinds = list(MODALITIES.values())
    found = rng.permutation(kinds[int(rng.integers(len(kinds)))][1])[:SIGNS]
    planted = np.array([float(f in found) for f in FINDINGS]) + 0.2 * rng.standard_normal(len(FINDINGS))
    image = tuple(float(x) for x in planted / np.linalg.norm(planted))
    return image, ", ".join(map(str, found[: int(rng.integers(1, SIGNS + 1))]))


def similarity(images: Sequence[Image | str], texts: Sequence[str]) -> list[float]:
    """Return the cosine of each image with its text: of vectors by findings, of scans (URLs) by :func:`encoder`."""
    if not any(isinstance(image, str) for image in images):
        return of_vectors([image for image in images if not isinstance(image, str)], texts)
    made = encoder()
    with torch.no_grad():
        return [float(x) for x in (embedded(images) * made.texts(texts)).sum(-1)]


def embedded(images: Sequence[Image | str]) -> Float[Tensor, "M 32"]:
    """Return vectors of scans, given by URL."""
    size = (8 * len(FINDINGS) // ROWS, 8 * ROWS)
    seen = [Picture.from_url(str(image)).open().convert("L").resize(size) for image in images]
    with torch.no_grad():
        return encoder().scans_of(np.stack([np.asarray(one) for one in seen]))
