"""Watches a run for what teaches nothing: no gradient, groups without a difference, a term that never varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.batch import Batch

IN_A_ROW = 3
"""Steps that something has to last to be told of."""
EQUAL = 0.95
"""Share of the groups whose rewards are all equal, above which there is hardly anything to learn from."""


def without_gradient(metrics: Mapping[str, float]) -> bool:
    """Whether a step's gradient was exactly 0, and that of what it replayed, if it did."""
    return metrics.get("grad_norm") == 0 and not metrics.get("replay/grad_norm")


@dataclass(slots=True)
class Idle:
    """What has lasted how many steps, and what was said of it; each is said once.

    A function of the steps seen, and in the checkpoint: a resumed run says what the uninterrupted one would have said.
    """

    lasted: dict[str, int] = field(default_factory=dict)
    """Steps in a row by kind: ``samples``, ``gradient``, ``groups``, ``term NAME``."""
    values: dict[str, float] = field(default_factory=dict)
    """The one value that each term has had in those steps."""
    said: list[str] = field(default_factory=list)

    def step(self, step: int, batch: Batch, metrics: Mapping[str, float], rewarded: bool = True) -> list[str]:
        """Take in a step's valued batch and its metrics; return a line for each thing that has lasted long enough.

        Where nothing is ``rewarded``, as in supervised learning, only the gradient is looked at.
        """
        empty = not len(batch)
        if empty or metrics.get("skipped"):
            self.lasted = {**self.lasted, "samples": self.lasted.get("samples", 0) + 1}
            if self.lasted["samples"] < IN_A_ROW or "samples" in self.said:
                return []
            self.said.append("samples")
            return [f"step {step}: {self._text('samples', metrics)}"]
        now = {"samples": False, "gradient": without_gradient(metrics)}
        if rewarded:
            now["groups"] = metrics.get("groups/zero_variance", 0.0) > EQUAL
            now |= {f"term {name}": steady for name, steady in self._steady(batch).items()}
        self.lasted = {kind: self.lasted.get(kind, 0) + 1 if idle else 0 for kind, idle in now.items()}
        new = [k for k, steps in self.lasted.items() if steps >= IN_A_ROW and k not in self.said]
        self.said += new
        return [f"step {step}: {self._text(kind, metrics)}" for kind in new]

    def _steady(self, batch: Batch) -> dict[str, bool]:
        """Whether each term of the reward, of all samples with a reward, is what it was the step before."""
        steady, values = {}, {}
        for name, term in batch.reward_terms.items():
            known = term[batch.valid]
            if not len(known) or bool((known != known[0]).any()):
                steady[name] = False
                continue
            values[name] = float(known[0])
            steady[name] = self.values.get(name, values[name]) == values[name]
        self.values = values
        return steady

    def _text(self, kind: str, metrics: Mapping[str, float]) -> str:
        if kind == "samples":
            return (
                f"for {IN_A_ROW} steps no response was left to learn from, and the weights stayed as they are: the "
                "selection kept none, or the curriculum asked for none; take easier or harder tasks or larger groups"
            )
        if kind == "gradient":
            return (
                f"the gradient was exactly 0 for {IN_A_ROW} steps, nothing is learned; mean reward "
                f"{metrics.get('reward/mean', 0.0):.3g}, pass rate {metrics.get('pass_rate', float('nan')):.3g}"
            )
        if kind == "groups":
            return (
                f"for {IN_A_ROW} steps the rewards were all equal in more than {EQUAL:.0%} of the groups, from which "
                "comparing siblings learns nothing; take easier or harder tasks, larger groups or a reward that differs"
            )
        name = kind.removeprefix("term ")
        return (
            f"the reward's term {name!r} has been {self.values[name]:.3g} for every response of {IN_A_ROW} steps; it "
            "tells no response from another"
        )

    def state_dict(self) -> dict[str, Any]:
        return {"lasted": dict(self.lasted), "values": dict(self.values), "said": list(self.said)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.lasted, self.values, self.said = dict(state["lasted"]), dict(state["values"]), list(state["said"])
