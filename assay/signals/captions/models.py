"""What captions are worth, learned from their labels: a table, a classifier, a ranker."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.signals.captions.network import CaptionNetwork

Kind = Literal["retrieval", "classification", "ranking"]
Question = tuple[str, ...]
"""A caption to be labelled, or two to be compared."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How a network learns from labels: by Adam, on ``rows`` labels a step, ``updates`` steps when new labels have come
    while there are fewer than ``few``, and afterwards one in every step of the run."""

    lr: float = 1e-4
    rows: int = 256
    updates: int = 32
    few: int = 25_000
    length: int = 256
    width: int = 64


@runtime_checkable
class RewardModel(Protocol):
    """Learns what captions are worth."""

    def __len__(self) -> int:
        """Return how many labels it has."""
        ...

    @property
    def helpful(self) -> float:
        """The share of its labels that say something."""
        ...

    def worth(self, captions: Sequence[str]) -> Float[Tensor, "M"]:
        """Return what each caption is worth as far as is known, 0 where nothing is; of these captions alone."""
        ...

    def meet(self, captions: Sequence[str], waiting: int, rng: np.random.Generator) -> list[Question]:
        """Note the captions of a batch, and return what is to be asked, the newest last; ``waiting`` are asked yet."""
        ...

    def add(self, labels: Mapping[Question, float]) -> None:
        """Take labels: of a caption whether it helps, of two how likely the second is the better one."""
        ...

    def fit(self, steps: int, rng: np.random.Generator) -> float | None:
        """Take steps on the labels so far; return the mean loss, nothing where there is none."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Retrieval:
    """r(o) = the label of o, and 0 as long as it has none."""

    def __init__(self) -> None:
        self.labels: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def helpful(self) -> float:
        """The share of captions that are labelled so."""
        return float(np.mean(list(self.labels.values()))) if self.labels else 0.0

    def worth(self, captions: Sequence[str]) -> Float[Tensor, "M"]:
        return torch.tensor([self.labels.get(caption, 0.0) for caption in captions])

    def meet(self, captions: Sequence[str], waiting: int, rng: np.random.Generator) -> list[Question]:
        return [(caption,) for caption in captions if caption not in self.labels]

    def add(self, labels: Mapping[Question, float]) -> None:
        self.labels |= {caption: label for (caption,), label in labels.items()}

    def fit(self, steps: int, rng: np.random.Generator) -> float | None:
        return None

    def state_dict(self) -> dict[str, Any]:
        return {"labels": dict(self.labels)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.labels = dict(state["labels"])


class Classification(Retrieval):
    """r(o) = 1 where P(helpful | o) > eta, by a network of the caption; 0 before it has learned from a label.

    Args:
        eta: threshold.
        how: how it learns, by cross-entropy.
    """

    def __init__(self, eta: float, how: Fit):
        super().__init__()
        self.eta, self.how, self.fitted = eta, how, False
        self.network = CaptionNetwork(2, how.length, how.width)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=how.lr)

    @torch.no_grad()
    def worth(self, captions: Sequence[str]) -> Float[Tensor, "M"]:
        if not self.fitted or not captions:
            return torch.zeros(len(captions))
        return (self.network(captions).softmax(-1)[:, 1] > self.eta).float()

    def fit(self, steps: int, rng: np.random.Generator) -> float | None:
        known = list(self.labels.items())
        if not known or not steps:
            return None
        losses = []
        for _ in range(steps):
            drawn = [known[i] for i in rng.permutation(len(known))[: self.how.rows]]
            target = torch.tensor([int(label) for _, label in drawn])
            loss = torch.nn.functional.cross_entropy(self.network([caption for caption, _ in drawn]), target)
            losses.append(_step(self.optimizer, loss))
        self.fitted = True
        return float(np.mean(losses))

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), **_saved(self)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        _load(self, state)


class Ranking:
    """r(o) = z 1[z > epsilon], z = (s(o) - mean) / std, with s a network of the caption; 0 before it has learned.

    s is fitted to comparisons: with y the chance that o_2 is better, -(1 - y) log p_1 - y log p_2, p = softmax(s_1,
    s_2). Mean and std are of the s of all captions met so far, each with the s it had then. Captions are compared in
    ``pairs`` drawn uniformly from those met, as often as they were met, while fewer than ``most`` wait.

    Args:
        epsilon: threshold, in standard deviations.
        how: how it learns.
        pairs: drawn in a step.
        most: see above.
        capacity: captions and comparisons that are kept, each the latest.
    """

    def __init__(self, epsilon: float, how: Fit, pairs: int, most: int, capacity: int):
        self.epsilon, self.how, self.pairs, self.most, self.fitted = epsilon, how, pairs, most, False
        self.network = CaptionNetwork(1, how.length, how.width)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=how.lr)
        self.met: deque[str] = deque(maxlen=capacity)
        self.compared: deque[tuple[str, str, float]] = deque(maxlen=capacity)
        self.moments = Moments()

    def __len__(self) -> int:
        return len(self.compared)

    @property
    def helpful(self) -> float:
        """The share of comparisons that say which is better."""
        return float(np.mean([y != 0.5 for *_, y in self.compared])) if self.compared else 0.0

    @torch.no_grad()
    def scores(self, captions: Sequence[str]) -> Float[Tensor, "M"]:
        """Return s, each distinct caption computed once."""
        once = {caption: i for i, caption in enumerate(dict.fromkeys(captions))}
        return self.network(list(once))[:, 0][torch.tensor([once[caption] for caption in captions])]

    def worth(self, captions: Sequence[str]) -> Float[Tensor, "M"]:
        if not self.fitted or not captions:
            return torch.zeros(len(captions))
        scores = self.scores(captions)
        return thresholded(self.moments.joined(scores).normalised(scores), self.epsilon)

    def meet(self, captions: Sequence[str], waiting: int, rng: np.random.Generator) -> list[Question]:
        if self.fitted and captions:
            self.moments = self.moments.joined(self.scores(captions))
        self.met.extend(captions)
        if waiting >= self.most or not self.met:
            return []
        drawn = [(self.met[i], self.met[j]) for i, j in rng.integers(len(self.met), size=(self.pairs, 2))]
        # A caption compared with itself teaches nothing.
        return [(a, b) for a, b in drawn if a != b]

    def add(self, labels: Mapping[Question, float]) -> None:
        self.compared.extend((a, b, y) for (a, b), y in labels.items())

    def fit(self, steps: int, rng: np.random.Generator) -> float | None:
        if not self.compared or not steps:
            return None
        losses = []
        for _ in range(steps):
            drawn = [self.compared[i] for i in rng.permutation(len(self.compared))[: self.how.rows]]
            scores = self.network([caption for a, b, _ in drawn for caption in (a, b)])[:, 0].reshape(-1, 2)
            losses.append(_step(self.optimizer, comparison(scores, torch.tensor([y for *_, y in drawn]))))
        self.fitted = True
        return float(np.mean(losses))

    def state_dict(self) -> dict[str, Any]:
        kept = {"met": list(self.met), "compared": list(self.compared)}
        return {**kept, "moments": [self.moments.count, self.moments.mean, self.moments.variance], **_saved(self)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.met = deque(state["met"], maxlen=self.met.maxlen)
        self.compared = deque(map(tuple, state["compared"]), maxlen=self.compared.maxlen)
        self.moments = Moments(*state["moments"])
        _load(self, state)


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and unbiased variance of numbers so far; at first those of a standard normal, with next to no
    weight."""

    count: float = 1e-4
    mean: float = 0.0
    variance: float = 1.0

    def joined(self, x: Float[Tensor, "M"]) -> Moments:
        """Return the moments with further numbers, by the parallel algorithm."""
        n = len(x)
        if not n:
            return self
        both, gap = self.count + n, float(x.mean()) - self.mean
        spread = float(x.var()) if n > 1 else 0.0
        squares = self.variance * self.count + spread * n + gap**2 * self.count * n / both
        return Moments(both, self.mean + gap * n / both, squares / both)

    def normalised(self, x: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
        """(x - mean) / std; 0 where nothing has differed."""
        return (x - self.mean) / self.variance**0.5 if self.variance > 0 else torch.zeros_like(x)


def thresholded(z: Float[Tensor, "M"], epsilon: float) -> Float[Tensor, "M"]:
    """z where z > epsilon, else 0."""
    return torch.where(z > epsilon, z, 0)


def comparison(scores: Float[Tensor, "M 2"], second: Float[Tensor, "M"]) -> Float[Tensor, ""]:
    """Mean of -(1 - y) log p_1 - y log p_2 with p = softmax(scores) and y the chance that the second is better."""
    logs = scores.log_softmax(-1)
    return -((1 - second) * logs[:, 0] + second * logs[:, 1]).mean()


def _step(optimizer: torch.optim.Optimizer, loss: Float[Tensor, ""]) -> float:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


def _saved(model: Any) -> dict[str, Any]:
    return {
        "network": model.network.state_dict(),
        "optimizer": model.optimizer.state_dict(),
        "fitted": model.fitted,
    }


def _load(model: Any, state: Mapping[str, Any]) -> None:
    model.network.load_state_dict(state["network"])
    model.optimizer.load_state_dict(state["optimizer"])
    model.fitted = state["fitted"]
