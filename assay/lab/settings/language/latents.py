"""Does a nano language model's hidden state say when its response is wrong? Nothing of the model is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.batch import Batch
from assay.lab.settings.language._nano import warm_start
from assay.lab.settings.language.columns import Setting as Columns
from assay.types import Task


@dataclass(frozen=True, slots=True)
class Setting:
    """The model of ``columns`` after its warm start; a flow field is fitted to its right responses to some tasks.

    Responses to other tasks are then scored by the mean deviation of their tokens from the field. An arm is the table
    ``score``: options of :class:`~assay.signals.flows.flow_score.FlowScore`, or nothing for a score of no use.

    Args:
        start: pass@1 at which the warm start ends.
        fits: steps of fitting, with ``prompts`` times ``group`` responses each.
        prompts, group: see above.
        tasks, samples: other tasks, and responses to each, that are scored.
    """

    start: float = 0.5
    fits: int = 60
    prompts: int = 16
    group: int = 4
    tasks: int = 100
    samples: int = 4

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "recipe": self.recipe()}

    def recipe(self) -> dict[str, Any]:
        """Return the sections of the warm start."""
        recipe = Columns(start=self.start).recipe()
        return {**recipe, "tasks": {**recipe["tasks"], "eval_size": self.tasks}}

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return ``auroc``, how often a wrong response has a higher deviation than a right one (0.5 without a score);
        ``right``, the share of right responses among those scored; ``rollouts``."""
        from assay.config import load_config
        from assay.engines.hf import HFEngine
        from assay.policies.causal_lm import CausalLM
        from assay.records.checkpoints import last_checkpoint
        from assay.signals.base import Models
        from assay.signals.flows.flow_score import FlowScore
        from assay.statistics.calibration import auroc
        from assay.tasks.configured import task_split
        from assay.verify.configured import make_verifier

        run = warm_start(self.recipe(), seed, folder)
        config = load_config(run / "config.toml")
        policy = CausalLM.load(
            config.model.model_copy(update={"source": str(last_checkpoint(run)[2] / "policy")}), seed
        )
        stream, others = task_split(config)
        engine, judge, rng = HFEngine(policy), make_verifier(config), np.random.default_rng([seed, 29])
        torch.manual_seed(seed)

        def answered(tasks: Sequence[Task], n: int) -> Batch:
            return judged(tasks, n, config.rollout.max_tokens, engine, judge, rng)

        test = answered(others, self.samples)
        right, options = test.rewards.bool(), arm["score"]
        spent, told = len(test), 0.5
        if options is not None:
            flow, models = FlowScore(**options), Models(policy, rng=rng)
            flow.start(models)
            for _ in range(self.fits):
                batch = answered(stream.next(self.prompts), self.group)
                spent += len(batch)
                batch.signals[flow.name] = torch.full_like(batch.logprobs, torch.nan)
                flow.learn(batch, models)
            deviation = torch.nanmean(flow(test, models), -1)
            scored = ~deviation.isnan()
            told = auroc(-deviation[scored].numpy(), right[scored].numpy())
        return {"auroc": told, "right": float(right.float().mean()), "rollouts": spent}


def judged(tasks: Sequence[Task], n: int, longest: int, engine: Any, judge: Any, rng: np.random.Generator) -> Batch:
    """Return ``n`` responses to each task with the reward 1 for a right one."""
    from assay.engines.base import Request, Sampling
    from assay.types import Ask, Group
    from assay.verify.episodes import judge_groups

    asked = [Request(t.prompt, n, Sampling(longest), int(rng.integers(2**63))) for t in tasks]
    made = engine.generate(asked)
    groups = judge_groups(judge, [Group(Ask(t, n), tuple(e)) for t, e in zip(tasks, made, strict=True)])
    batch = Batch.from_groups(groups)
    batch.rewards = torch.tensor([float(v.passed is True) for v in batch.verdicts])
    return batch
