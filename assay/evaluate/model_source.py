"""Samples drawn from a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.engines.base import requests
from assay.errors import RunError, UsageError
from assay.evaluate.asking import check_tasks, player_of, sample_tasks
from assay.evaluate.chain_judge import as_chain_judge
from assay.evaluate.detail import Detail, final_answers
from assay.evaluate.source import FILES, Options
from assay.records.sample import Sample

if TYPE_CHECKING:
    from assay.engines.base import Request
    from assay.types import Task


class ModelSource:
    """Samples of a model on the held-out tasks of its configuration. See :class:`Source`.

    How many tasks are answered together follows from the configuration alone, so that an evaluation that goes on makes
    the very parts that it would have made.
    """

    def __init__(self, target: str, overrides: Sequence[str], options: Options):
        from assay.engines.base import Sampling
        from assay.engines.target import engine_setting, files_mark, resolve, tasks_mark
        from assay.inference.scoring.scorers import as_scorer
        from assay.randomness import Randomness
        from assay.tasks.configured import held_out, held_out_of
        from assay.verify.configured import make_verifier
        from assay.verify.isolate.pool import check_verifier

        for name in ("fields", "reference", "threshold", "workers"):
            if getattr(options, name) not in (None, {}):
                raise UsageError(f"--{name} is for a file of samples, and {target!r} is not one of {', '.join(FILES)}")
        extra = [] if options.verifier is None else [f"tasks.verify={_toml(options.verifier)}"]
        self.target = resolve(target, [*overrides, *extra])
        config = self.target.config
        samples = config.evaluate.samples if options.samples is None else options.samples
        self.asked = held_out(config)
        rollout = config.rollout
        sampling = Sampling(
            rollout.max_tokens, config.evaluate.temperature, config.evaluate.top_p, stop=tuple(rollout.stop)
        )
        # A twentieth of the tasks at most is lost when it is stopped.
        self.chunk = max(1, min(rollout.max_rows // max(1, samples), max(8, -(-len(self.asked) // 20))))
        check_tasks(self.asked, samples, self.chunk)
        scorer = options.scorer or "confidence"
        judge = None if options.chain is None else as_chain_judge(options.chain, options.votes)
        if judge is None and (options.votes, options.rule, options.every) != (3, "majority", False):
            raise UsageError(
                "--chain-votes, --chain-rule and --chain-every are for a judge of chains; give --chain judge, or "
                "--chain openai:MODEL@http://host/v1"
            )
        self.detail = Detail(
            options.equal,
            None if scorer == "none" else as_scorer(scorer),
            judge or (None if options.chain is None else as_scorer(options.chain)),
            options.rule,
            options.every,
        )
        self.verifier = make_verifier(config)
        check_verifier(self.verifier, self.asked)
        self.player = player_of(config, sampling)
        self.seed = config.seed
        self.requests = requests(self.asked, samples, sampling, Randomness(config.seed).fresh("evaluate/command"))
        self.about = {
            "target": target,
            "overrides": list(overrides),
            "options": options.plain(),
            "step": self.target.step,
            "tasks": len(self.asked),
            "parts": -(-len(self.asked) // self.chunk),
            "settings": {
                "model": config.model.setting,
                "weights": self.target.weights,
                "step": self.target.step,
                "tasks": {"source": held_out_of(config), "mark": tasks_mark(self.asked), "verify": config.tasks.verify},
                "samples": samples,
                "sampling": asdict(sampling),
                "seed": config.seed,
                **engine_setting(config),
                "scorer": scorer,
                "chain": options.chain,
                **({} if judge is None else {"votes": judge.n, "rule": options.rule, "every": options.every}),
                "equal": options.equal,
                "chunk": self.chunk,
                **({"files": files} if (files := files_mark(scorer, options.chain, config.tasks.verify)) else {}),
            },
        }
        self.engine: Any = None

    def start(self) -> None:
        self.engine = self.target.open()

    def _slice(self, part: int) -> slice:
        return slice(part * self.chunk, (part + 1) * self.chunk)

    def tasks(self, part: int) -> int:
        return len(self.asked[self._slice(part)])

    def make(self, part: int) -> list[Sample]:
        here = self._slice(part)
        rng = np.random.default_rng([self.seed, part])
        asked = self.asked[here], self.requests[here]
        samples = sample_tasks(*asked, self.engine, self.verifier, self.detail, rng, self.player)
        if all(s.stop == "error" for s in samples):
            # Not stored, so that they are asked again.
            raise RunError(
                f"{self.target.name} gave no response to any of {len(samples)} requests: {samples[0].feedback}"
            )
        return samples

    def again(self, part: int, samples: list[Sample]) -> list[Sample]:
        """Return the samples of a part with what can be had this time of the responses that failed."""
        rows, places = list(samples), []
        tasks: list[Task] = []
        asked: list[Request] = []
        here = self._slice(part)
        for task, request in zip(self.asked[here], self.requests[here], strict=True):
            mine = [i for i, s in enumerate(rows) if s.task_id == task.id]
            if failed := [i for i in mine if rows[i].failed]:
                # Those that are there are the first of the request's seed; the rest must not be the same once more.
                kept = len(mine) - len(failed)
                fresh = int(np.random.default_rng([request.seed, kept]).integers(0, 2**63 - 1))
                tasks.append(task)
                asked.append(replace(request, n=len(failed), seed=fresh if kept else request.seed))
                places += failed
        rng = np.random.default_rng([self.seed, part])
        for place, sample in zip(
            places, sample_tasks(tasks, asked, self.engine, self.verifier, self.detail, rng, self.player), strict=True
        ):
            rows[place] = sample
        for task in tasks:  # old answers and new ones that say the same have the same text
            mine = [i for i, s in enumerate(rows) if s.task_id == task.id]
            answers = final_answers(task, [rows[i].response for i in mine], self.detail.equal)
            for i, answer in zip(mine, answers, strict=True):
                rows[i] = replace(rows[i], answer=answer)
        return rows

    @property
    def usage(self) -> dict[str, dict[str, float]]:
        engines = {"model": self.engine, "judge": getattr(self.detail.chain, "engine", None)}
        engines["scorer"] = getattr(self.detail.scorer, "engine", None)
        used = {name: getattr(engine, "usage", None) for name, engine in engines.items()}
        return {name: usage.plain() for name, usage in used.items() if usage is not None}

    def close(self) -> None:
        judges = (getattr(part, "engine", None) for part in (self.detail.chain, self.detail.scorer))
        for thing in (self.verifier, self.engine, *judges):
            close = getattr(thing, "close", None)
            if callable(close):
                close()


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)
