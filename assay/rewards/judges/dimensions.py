"""What a reward model's states say of its judgement: which dimensions it tells apart, and how near it is to what it
knows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.cluster.vq import kmeans2
from torch import Tensor

from assay.errors import UsageError
from assay.records.files import write_text
from assay.records.rows import read_rows
from assay.types import Prompt

LABELS = 3
"""Of responses in a dimension: 0, 1 and 2."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A response that somebody said of how well it does in a dimension: 0, 1 or 2.

    Attributes:
        held: whether it is to be measured on and not learned from; ``None`` where nobody says.
    """

    prompt: Prompt
    response: str
    dimension: str
    label: int
    held: bool | None = None


SIDES = {"train.json": False, "test.json": True}


def read_labelled(path: Path) -> list[Labelled]:
    """Read rows with ``prompt``, ``response``, ``dimension`` and ``label``, 0, 1 or 2; of a folder MRMBench's, whose
    subfolders are dimensions, each with ``train.json`` and ``test.json`` of rows with ``input``, ``output`` and
    ``label``.

    Raises:
        UsageError: no rows, or one of no such form, with its place.
    """
    out = []
    for where, row, held in _released(path) if path.is_dir() else ((*found, None) for found in read_rows(path)):
        try:
            prompt, label = row["prompt"], row["label"]
            if not isinstance(prompt, str):
                prompt = tuple({"role": str(m["role"]), "content": str(m["content"])} for m in prompt)
            if isinstance(label, bool) or label not in range(LABELS):
                raise ValueError(f"label {label!r} is not 0, 1 or 2")
            out.append(Labelled(prompt, str(row["response"]), str(row["dimension"]), int(label), held))
        except (KeyError, TypeError, ValueError) as wrong:
            said = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
            raise UsageError(f"{where}: {said}; a row has prompt, response, dimension and label") from None
    if not out:
        raise UsageError(f"{path} has no rows")
    return out


def _released(folder: Path) -> Iterator[tuple[str, Any, bool | None]]:
    """Yield the rows of MRMBench's files with our names of their fields, their places, and their sides."""
    for dimension in sorted(x for x in folder.iterdir() if x.is_dir()):
        for name, held in SIDES.items():
            for where, row in read_rows(dimension / name):
                if isinstance(row, Mapping) and {"input", "output"} <= set(row):
                    told = {"prompt": row["input"], "response": row["output"], "dimension": dimension.name}
                    yield where, {**row, **told}, held
                else:
                    raise UsageError(f"{where} has not the fields input, output and label")


def balanced(labels: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Return the places of as many of each label, the surplus left out by lot, in their order."""
    kinds = [[i for i, x in enumerate(labels) if x == label] for label in sorted(set(labels))]
    size = min(map(len, kinds))
    return sorted(i for kind in kinds for i in rng.permutation(kind)[:size].tolist())


def fit_probe(
    states: Float[Tensor, "N D"],
    labels: Int[Tensor, "N"],
    rng: np.random.Generator,
    lr: float,
    epochs: int = 1,
    batch: int = 128,
) -> torch.nn.Linear:
    """Return a linear classifier of states: cross-entropy by AdamW, from 0."""
    probe = torch.nn.Linear(states.shape[1], int(labels.max()) + 1, dtype=states.dtype)
    torch.nn.init.zeros_(probe.weight)
    torch.nn.init.zeros_(probe.bias)
    optimizer = torch.optim.AdamW(probe.parameters(), lr=lr)
    for _ in range(epochs):
        order = torch.from_numpy(rng.permutation(len(states)))
        for rows in order.split(batch):
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(probe(states[rows]), labels[rows]).backward()
            optimizer.step()
    return probe


def centroids(states: Float[Tensor, "N D"], count: int, seed: int = 0) -> Float[Tensor, "k D"]:
    """Return the centres of ``count`` clusters of states (k-means)."""
    found, _ = kmeans2(states.double().numpy(), count, minit="++", seed=seed)
    return torch.from_numpy(found)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Centres of a reward model's states by dimension, and how far from the nearest is far.

    Attributes:
        centres: by dimension, ``(k, D)``.
        threshold: the distance beyond which a state is far.
    """

    centres: Mapping[str, Tensor]
    threshold: float

    def distances(self, states: Float[Tensor, "N D"]) -> dict[str, Float[Tensor, "N"]]:
        """Return d_dim = min_c ||h - c|| over the centres of each dimension; the least is the one in play."""
        return {name: torch.cdist(states.double(), c.double()).min(-1).values for name, c in self.centres.items()}

    def nearest(self, states: Float[Tensor, "N D"]) -> Float[Tensor, "N"]:
        """Return the least of the distances over dimensions."""
        return torch.stack(list(self.distances(states).values())).min(0).values

    @classmethod
    def fit(
        cls, states: Mapping[str, Float[Tensor, "N D"]], count: int, quantile: float = 0.9, seed: int = 0
    ) -> Clusters:
        """Cluster the states of each dimension; far is beyond this quantile of their own nearest distances."""
        made = cls({name: centroids(h, count, seed) for name, h in states.items()}, 0.0)
        nearest = made.nearest(torch.cat(list(states.values())))
        return cls(made.centres, float(nearest.quantile(quantile)))

    def save(self, path: Path) -> None:
        """Write what :meth:`load` reads."""
        table = {"threshold": self.threshold, "centres": {k: v.tolist() for k, v in self.centres.items()}}
        write_text(path, json.dumps(table))

    @classmethod
    def load(cls, path: str | Path) -> Clusters:
        """Read a file; raise UsageError where it is none of these."""
        try:
            table: Any = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
            centres = {str(k): torch.tensor(v, dtype=torch.float64) for k, v in table["centres"].items()}
            if not centres or any(c.ndim != 2 for c in centres.values()):
                raise ValueError("it has no centres")
            return cls(centres, float(table["threshold"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path} cannot be read as clusters of a reward model's states ({error}); assay eval MODEL "
                "--dimensions FILE --out PATH.json writes them"
            ) from None
