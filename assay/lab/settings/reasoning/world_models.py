"""World models with one fault, judged without running them or by what they do."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.environments.world_models.made import Kind, WorldTasks
from assay.environments.world_models.mutants import mutants
from assay.errors import UsageError
from assay.verify.behaviour.model import agrees
from assay.verify.behaviour.static import fault
from assay.verify.behaviour.truth import Truth, truth_of
from assay.verify.behaviour.verifier import judged_model


@dataclass(frozen=True, slots=True)
class Setting:
    """Of drawn worlds the true model, and models with one fault that static validation lets through.

    A model is *wrong* if it differs from the world on any of the steps that were explored, visible or hidden: what
    decides is exhaustive, while a judge sees a few. An arm's ``judge`` is ``static``, or ``played``, the verifier
    ``behaviour``. Nothing is learned.

    Args:
        kinds: of worlds.
        worlds: of each kind.
        faults: models with a fault of each world.
        hidden: tests of the verifier.
    """

    kinds: Sequence[Kind] = ("grid", "domain")
    worlds: int = 1
    faults: int = 6
    hidden: int = 400

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return means over models.

        ``right``: share of models that are judged as they are, the wrong and the others counting half each; ``caught``:
        of the wrong ones that are refused; ``kept``: of the others, the true one among them, that are accepted;
        ``wrong``: share of models that are.

        Raises:
            UsageError: an arm without a judge that there is.
        """
        if arm.get("judge") not in ("static", "played"):
            raise UsageError(f"setting 'world_models': the judge is static or played, not {arm.get('judge')!r}")
        found = _models(seed, tuple(self.kinds), self.worlds, self.faults, self.hidden)
        wrong = np.array([is_wrong for _, _, is_wrong in found])
        accepted = np.array([_accepts(str(arm["judge"]), truth, source) for truth, source, _ in found])
        caught, kept = float((~accepted[wrong]).mean()), float(accepted[~wrong].mean())
        return {"right": (caught + kept) / 2, "caught": caught, "kept": kept, "wrong": float(wrong.mean())}


def _accepts(judge: str, truth: Truth, source: str) -> bool:
    if judge == "static":
        return not fault(source, truth.language, truth.problems)
    return judged_model(truth, source).passed is True


@functools.lru_cache(maxsize=16)
def _models(seed: int, kinds: tuple[Kind, ...], worlds: int, faults: int, hidden: int) -> list[tuple[Truth, str, bool]]:
    """Return models, each with its world and whether it is wrong; the true ones are among them."""
    out = []
    tasks = WorldTasks(seed, kinds, hidden, 0, False)
    for index in range(worlds * len(kinds)):
        truth = truth_of(tasks[index].reference)
        every = [text for _, text in mutants(truth.source, truth.language)]
        order = np.random.default_rng([seed, index, 9]).permutation(len(every)).tolist()
        sound = [every[i] for i in order if not fault(every[i], truth.language, truth.problems)]
        out += [(truth, text, _differs(truth, text)) for text in [truth.source, *sound[:faults]]]
    return out


def _differs(truth: Truth, source: str) -> bool:
    got = truth.model(source).steps([(case.state, case.action) for case in truth.cases])
    return not all(all(agrees(one, case.right)) for one, case in zip(got, truth.cases, strict=True))
