"""Claims to verify by documents that were found: which label, and which of the documents to cite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from assay.errors import UsageError
from assay.lab.settings._tabular import Training, jitter, train
from assay.lab.settings.tree import Counting
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task
from assay.verify.grounding.claims import LABELS, UNKNOWN, Claim, read_answer, score_claim
from assay.verify.guard import judge


@dataclass(frozen=True, slots=True)
class Setting:
    """Claim q has ``documents`` documents, up to ``evidence`` of them its evidence, and one of three labels.

    Claims take labels in turn; one of NOT ENOUGH INFO has no evidence. A response is a label, and for every document
    whether it is cited; its logits begin normal with deviation ``spread``. It is read as text, by the verifier
    ``claim`` and by the reward of the arm.

    Args:
        claims, documents, evidence, spread: see above.
        steps, prompts, group, lr, optimizer: of training.

    Raises:
        UsageError: more evidence than documents, or more than 8 of them.
    """

    claims: int = 6
    documents: int = 4
    evidence: int = 2
    spread: float = 0.5
    steps: int = 60
    prompts: int = 6
    group: int = 8
    lr: float = 1.0
    optimizer: Literal["sgd", "adam"] = "sgd"

    def __post_init__(self) -> None:
        if not 1 <= self.evidence <= self.documents <= 8:
            raise UsageError(f"setting 'claims': evidence {self.evidence} of {self.documents} documents, at most 8")

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures of the trained policy, means over claims.

        ``joint``: chance of the right label with just the evidence; ``verified``: with all of it at least; ``label``:
        of the right label; ``iou``: expected overlap of what is cited and what is evidence, over claims that have some;
        ``area``: mean of ``joint`` over training; ``start``; ``rollouts``.
        """
        tasks = self.tasks(np.random.default_rng([seed, 187]))
        policy = Citing(self.claims, self.documents, jitter(self.spread, seed, self.claims, 3 + self.documents))
        paths = list(product(range(3), *[range(2)] * self.documents))
        found = [[score_claim(*read_answer(text_of(path)), task.reference) for path in paths] for task in tasks]
        told = np.array([task.reference["label"] != UNKNOWN for task in tasks])
        worth = {
            "joint": np.array([[s.label * (s.unknown or s.exact) for s in row] for row in found], dtype=float),
            "verified": np.array([[s.right for s in row] for row in found], dtype=float),
            "label": np.array([[s.label for s in row] for row in found]),
            "iou": np.array([[s.iou for s in row] for row in found]),
        }

        def measure() -> dict[str, float]:
            with torch.no_grad():
                p = policy.leaf_logprobs().exp().numpy().reshape(self.claims, -1)
            p = p / p.sum(-1, keepdims=True)
            return {k: float((p * of).sum(-1)[told if k == "iou" else slice(None)].mean()) for k, of in worth.items()}

        start, curve, engine = measure()["joint"], list[float](), Saying(policy)
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer)
        verifier = Claim()
        train(
            policy,
            tasks,
            lambda task, response: judge(verifier, task, response),
            arm,
            training,
            seed,
            lambda *_: curve.append(measure()["joint"]),
            engine,
        )
        return {**measure(), "area": float(np.mean(curve)), "start": start, "rollouts": engine.sampled}

    def tasks(self, rng: np.random.Generator) -> list[Task]:
        """Draw the claims."""
        out = []
        for q in range(self.claims):
            label = LABELS[q % 3]
            count = int(rng.integers(1, self.evidence + 1)) if label != UNKNOWN else 0
            chosen = sorted(rng.choice(self.documents, count, replace=False).tolist())
            reference = {"label": label, "evidence": [f"d{i}" for i in chosen]}
            out.append(Task(str(q), str(q), reference=reference, kind="claim"))
        return out


class Citing(TabularPolicy):
    """A label, and then document by document whether it is cited, whatever was decided before.

    Args:
        claims, documents: how many.
        logits: ``(claims, 3 + documents)``: of the labels, and of citing each document.
    """

    def __init__(self, claims: int, documents: int, logits: np.ndarray):
        def nested(depth: int) -> Any:
            return [nested(depth - 1) for _ in range(2)] if depth else 0.0

        tree = Tree.of([[nested(documents) for _ in range(3)] for _ in range(claims)])
        table = np.zeros(tuple(tree.children.shape))
        for q in range(claims):
            table[tree.node((q,)), :3] = logits[q, :3]
            for path in (p for d in range(documents) for p in product(range(3), *[range(2)] * d)):
                table[tree.node((q, *path)), 1] = logits[q, 2 + len(path)]
        super().__init__(tree, torch.from_numpy(table))

    def decode(self, tokens: Iterable[Any]) -> str:
        return text_of(tokens)


class Saying(Counting):
    """Samples from :class:`Citing`, and gives the text of what was decided."""

    def decode(self, tokens: Any) -> str:
        return text_of(tokens)

    def generate(self, requests: Any) -> Any:
        return [[replace(e, text=text_of(e.tokens)) for e in group] for group in super().generate(requests)]


def text_of(tokens: Iterable[Any]) -> str:
    """Return the response that a path stands for."""
    label, *cites = (int(t) for t in tokens)
    cited = " ".join(f"[[d{i}]]" for i, c in enumerate(cites) if c)
    return f"<think>So it is.</think>\n<answer>Label: {LABELS[label]}, Evidence: {cited}</answer>"
