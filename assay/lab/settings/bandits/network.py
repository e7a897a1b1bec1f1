"""Questions given as vectors and answered by a small network, trained beforehand: the smallest policy with matrices."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.diagnose.weight_change import by_kind, weight_change
from assay.engines.tabular import TabularVerifier
from assay.errors import UsageError
from assay.lab.settings._tabular import Training, train
from assay.lab.settings.tree import Counting
from assay.policies.regions import decomposed
from assay.policies.tabular import TabularPolicy, Tree
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """One answer among ``answers`` to each question, by a network of one hidden layer over the question's vector.

    Vectors are normal with a standard deviation that falls from one coordinate to the next by the factor ``decay``.
    Beforehand the network learns, by supervised steps on smoothed labels, the right answer to a share ``known`` of the
    questions and a wrong one to the others; RL sees all of them. An arm may give a table ``setting`` with ``adapters``,
    see :meth:`Network.adapt`, and their ``rank``, to train these in place of the matrices.

    Args:
        questions, answers: how many.
        features, hidden: sizes of the layers.
        decay: in (0, 1].
        known: share of questions whose right answer is learned beforehand.
        smoothing: share of a label's probability that is spread over all answers.
        warmup: supervised steps of Adam, at a rate of 0.01.
        steps, prompts, group, lr, optimizer, epochs: of RL.
    """

    questions: int = 32
    answers: int = 8
    features: int = 32
    hidden: int = 32
    decay: float = 0.9
    known: float = 0.5
    smoothing: float = 0.3
    warmup: int = 500
    steps: int = 100
    prompts: int = 16
    group: int = 8
    lr: float = 3e-3
    optimizer: Literal["sgd", "adam"] = "adam"
    epochs: int = 1

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return exact measures: mean probability of the right answer at the ``start``, at the end (``final``) and over
        training (``area``); ``kept``: at the end on questions known beforehand.

        What RL did to the matrices, means over both: ``spectral_shift``, ``rotation`` (degrees, leading tenth) and
        ``sparsity``; and ``kl`` from the policy at the start, nats per answer; ``rollouts``.
        """
        method = {**arm}
        adapted = dict(method.pop("setting", {}))
        if adapted and adapted.keys() != {"adapters", "rank"}:
            raise UsageError("an arm may give its setting adapters, and then their rank, alone")
        policy, known = self.policy(seed)
        before = {name: w.detach().clone() for name, w in policy.matrices().items()}
        if adapted:
            policy.adapt(adapted["adapters"], adapted["rank"], torch.Generator().manual_seed(seed))
        first = policy.twin()
        tasks = [Task(str(i), str(i), kind="tabular") for i in range(self.questions)]
        training = Training(self.steps, self.prompts, self.group, self.lr, self.optimizer, self.epochs)
        engine, curve, start = Counting(policy), list[float](), policy.chances()

        def watch(step: int, batch: Any, metrics: Mapping[str, float]) -> None:
            curve.append(float(policy.chances().mean()))

        train(policy, tasks, TabularVerifier(policy.tree), method, training, seed, watch, engine)
        after = {name: w.detach() for name, w in policy.matrices().items()}
        changes = weight_change(before, after, ranks=(0.1,))
        change = by_kind(changes)["all"]
        with torch.no_grad():
            new, old = (p.answers() for p in (policy, first))
            kl = float((new.exp() * (new - old)).sum(-1).mean())
        final = policy.chances()
        return {
            "start": float(start.mean()),
            "final": float(final.mean()),
            "area": float(np.mean(curve)),
            "kept": float(final[known].mean()),
            "spectral_shift": change["spectral_shift"],
            "rotation": float(np.mean([r.mean for c in changes for r in c.rotations])),
            "sparsity": change["sparsity"],
            "kl": kl,
            "rollouts": engine.sampled,
        }

    def policy(self, seed: int) -> tuple[Network, np.ndarray]:
        """Return the policy at the start, and which questions it knows."""
        rng = np.random.default_rng([seed, 7])
        x = torch.from_numpy(
            rng.standard_normal((self.questions, self.features)) * self.decay ** np.arange(self.features)
        )
        right = rng.integers(self.answers, size=self.questions)
        known = rng.permutation(self.questions) < round(self.known * self.questions)
        taught = np.where(known, right, (right + rng.integers(1, self.answers, self.questions)) % self.answers)
        scale = self.features**-0.5, self.hidden**-0.5
        policy = Network(
            x,
            right,
            scale[0] * torch.from_numpy(rng.standard_normal((self.hidden, self.features))),
            scale[1] * torch.from_numpy(rng.standard_normal((self.answers, self.hidden))),
        )
        labels = torch.full((self.questions, self.answers), self.smoothing / self.answers, dtype=torch.float64)
        labels[torch.arange(self.questions), torch.from_numpy(taught)] += 1 - self.smoothing
        optimizer = torch.optim.Adam(policy.module.parameters(), lr=0.01)
        for _ in range(self.warmup):
            optimizer.zero_grad()
            loss = -(labels * policy.answers()).sum(-1).mean()
            loss.backward()
            optimizer.step()
        optimizer.zero_grad()
        return policy, known


class Network(TabularPolicy):
    """A tabular policy whose logits for question i are ``out @ tanh(inner @ x_i)``.

    Args:
        x: ``(questions, features)``.
        right: the right answer to each.
        inner: ``(hidden, features)`` at first.
        out: ``(answers, hidden)`` at first.
    """

    def __init__(self, x: Tensor, right: np.ndarray, inner: Tensor, out: Tensor):
        self.tree = Tree.of([[float(a == r) for a in range(len(out))] for r in right.tolist()])
        self.x, self.right = x, torch.from_numpy(right)
        self.module = self.trained = torch.nn.ParameterDict({"inner": inner, "out": out})
        self.choices, self.fixed = len(out), dict[str, Tensor]()
        self.starts_at = torch.tensor([self.tree.node([i]) for i in range(len(right))])

    def matrices(self) -> dict[str, Tensor]:
        """Both matrices by name, W' + B A where adapters are trained."""
        if not self.fixed:
            return dict(self.trained.items())
        return {name: w + self.trained[f"{name}_b"] @ self.trained[f"{name}_a"] for name, w in self.fixed.items()}

    def adapt(self, start: Literal["lora", "pissa"], rank: int, generator: torch.Generator) -> None:
        """Train A and B of ``rank`` for each matrix W instead; the policy is what it was.

        ``lora``: B = 0, A uniform as in PEFT, W' = W; ``pissa``: B A = W_r, the leading directions of W, and W' is what
        is left of it (arXiv 2404.02948). Both have a scale of 1.
        """
        made: dict[str, Tensor] = {}
        for name, w in self.matrices().items():
            u, s, v = decomposed(w)
            root = s[:rank].sqrt()
            if start == "pissa":
                made[f"{name}_b"], made[f"{name}_a"] = u[:, :rank] * root, root[:, None] * v[:rank]
            else:
                bound = w.shape[1] ** -0.5
                made[f"{name}_b"] = torch.zeros(len(w), rank, dtype=w.dtype)
                made[f"{name}_a"] = bound * (2 * torch.rand(rank, w.shape[1], dtype=w.dtype, generator=generator) - 1)
            self.fixed[name] = w.detach() - made[f"{name}_b"] @ made[f"{name}_a"]
        self.module = self.trained = torch.nn.ParameterDict(made)

    @property
    def logits(self) -> Tensor:  # type: ignore[override]
        w = self.matrices()
        z = torch.tanh(self.x @ w["inner"].mT) @ w["out"].mT
        table = torch.zeros(self.tree.children.shape, dtype=z.dtype)
        columns = torch.arange(z.shape[1])
        return table.index_put((self.starts_at[:, None], columns[None]), z)

    def answers(self) -> Tensor:
        """Log-probability of each answer to each question."""
        return self.log_policy()[self.starts_at, : self.choices]

    def chances(self) -> np.ndarray:
        """Probability of the right answer to each question."""
        with torch.no_grad():
            return self.answers().exp()[torch.arange(len(self.x)), self.right].numpy()

    def twin(self) -> Network:
        return deepcopy(self)
