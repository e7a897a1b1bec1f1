"""The jobs of a comparison: warm starts, the sweep, the runs that count; and what they found."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay.compare.plan import WARM_UP, Choice, Plan
from assay.compare.processes import Found, Job
from assay.errors import RunError

WARM = ("model.", "tasks.", "warmup.", "train.betas", "train.weight_decay", "train.max_grad_norm", "evaluate.")
"""Swept keys that a warm-up depends on."""


class Runs:
    """The jobs of a plan, and what they found.

    Args:
        plan: what is to be run.
        folder: where everything is kept.
        unprotected: programs from responses run without the sandbox.
    """

    def __init__(self, plan: Plan, folder: Path, unprotected: bool):
        self.plan, self.folder, self.unprotected = plan, folder, unprotected

    def jobs(self, found: Mapping[str, Found]) -> list[Job]:
        """Every job, in the order they are to be begun; ``found`` has, when a job is made, all it builds on."""
        plan, out = self.plan, {job.name: job for job in self.tuning()}
        tried = {m: [n for n in out if n.split("/")[-1].split("@")[0] == m] for m in plan.methods}
        for seed in plan.seeds:
            for task in plan.tasks:
                for method in plan.methods:
                    choose = functools.partial(self.chosen, method, found)
                    warm = self._warm(task, seed, plan.choices)
                    name = f"{task}/seed-{seed}/{method}"
                    job = self._job(name, method, task, seed, choose, True, after=tried[method])
                    out |= {j.name: j for j in (*warm, job)}
        return list(out.values())

    def tuning(self) -> list[Job]:
        """The jobs of the sweep; none where there is nothing to choose."""
        plan, out = self.plan, dict[str, Job]()
        each = [(m, t, s, c) for c in plan.choices for s in plan.tuning for t in plan.tasks for m in plan.methods]
        for method, task, seed, choice in each if len(plan.choices) > 1 else []:
            name = f"{task}/seed-{seed}/{_named(method, choice)}"
            job = self._job(name, method, task, seed, functools.partial(dict, choice), False)
            out |= {j.name: j for j in (*self._warm(task, seed, [choice]), job)}
        return list(out.values())

    def outdated(self, jobs: Sequence[Job], found: dict[str, Found]) -> list[str]:
        """Forget runs of another setting than the sweep chooses by now, since a failed run of it was made up for."""
        old = []
        for job in jobs:
            if job.after and found[job.name]["status"] == "finished":
                there = json.loads((job.folder / "job.json").read_text(encoding="utf-8"))
                if there["recipe"] != json.loads(json.dumps(job.make()["recipe"])):
                    shutil.rmtree(job.folder)
                    del found[job.name]
                    old.append(job.name)
        return old

    def best(self, method: str, found: Mapping[str, Found]) -> Choice | None:
        """The combination of the sweep with the largest mean, ``None`` if none finished all its runs."""
        if len(self.plan.choices) == 1:
            return self.plan.choices[0]
        means = [t["mean"] for t in self.tried(method, found)]
        known = [m for m in means if m is not None]
        return self.plan.choices[means.index(max(known))] if known else None

    def chosen(self, method: str, found: Mapping[str, Found]) -> Choice:
        """Likewise; raise RunError if there is none."""
        choice = self.best(method, found)
        if choice is None:
            raise RunError(f"no setting of the sweep finished for {method}")
        return choice

    def tried(self, method: str, found: Mapping[str, Found]) -> list[dict[str, Any]]:
        """Per combination its values and its mean over tasks and tuning seeds, ``None`` if one of its runs failed."""
        out = []
        for choice in self.plan.choices:
            names = [f"{t}/seed-{s}/{_named(method, choice)}" for t in self.plan.tasks for s in self.plan.tuning]
            runs = [found[name] for name in names]
            whole = all(r["status"] == "finished" for r in runs)
            mean = float(np.mean([r[self.plan.measure] for r in runs])) if whole else None
            out.append({"values": dict(choice), "mean": mean})
        return out

    def records(self, found: Mapping[str, Found]) -> list[dict[str, Any]]:
        """What the runs that count found."""
        out = []
        for method in self.plan.methods:
            for task in self.plan.tasks:
                for seed in self.plan.seeds:
                    result = found[f"{task}/seed-{seed}/{method}"]
                    out.append({"method": method, "task": task, "seed": seed, **result})
        return out

    def _warm(self, task: str, seed: int, choices: Sequence[Choice]) -> list[Job]:
        """The warm starts that runs of these settings need."""
        seed = self.plan.start(seed)
        if not self.plan.data(task, seed, {}).get("warmup", {}).get("steps"):
            return []
        out = {}
        for choice in choices:
            name = self._warm_name(task, seed, choice)
            kept = _warm_part(choice)

            def make(kept: Choice = kept) -> dict[str, Any]:
                recipe = self.plan.data(task, seed, kept)
                recipe |= {"train": {**recipe.get("train", {}), "steps": 0}}
                recipe["evaluate"] = {**recipe.get("evaluate", {}), "samples": 1}
                return {"recipe": recipe, "budget": None, "unprotected": self.unprotected}

            out[name] = Job(name, self.folder / "runs" / name, make)
        return list(out.values())

    def _warm_name(self, task: str, seed: int, choice: Choice) -> str:
        return f"{task}/seed-{self.plan.start(seed)}/{_named(WARM_UP, _warm_part(choice))}"

    def _job(
        self,
        name: str,
        method: str,
        task: str,
        seed: int,
        choose: Callable[[], Choice],
        keep: bool,
        after: Sequence[str] = (),
    ) -> Job:
        plan = self.plan
        warm = [j.name for j in self._warm(task, seed, plan.choices)]

        def make() -> dict[str, Any]:
            choice = choose()
            recipe = plan.config(method, task, seed, choice).model_dump(mode="json", exclude_unset=True)
            start = None
            if warm:
                start = str(self.folder / "runs" / self._warm_name(task, seed, choice))
                recipe["warmup"] = {**recipe["warmup"], "steps": 0}
            budget = {"unit": plan.budget.unit, "amount": plan.budget.amount}
            return {
                "recipe": recipe,
                "budget": budget,
                "points": plan.points,
                "start": start,
                "keep": keep,
                "unprotected": self.unprotected,
            }

        return Job(name, self.folder / "runs" / name, make, needs=warm, after=after)


def _named(name: str, choice: Choice) -> str:
    values = (f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in choice.items())
    return "@".join([name, *values]).replace("/", "_")


def _warm_part(choice: Choice) -> Choice:
    return {k: v for k, v in choice.items() if k.startswith(WARM)}
