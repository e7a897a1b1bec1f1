"""A nano language model adds in columns, which it generalises from; answers are single ones and votes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assay.lab.settings.language._nano import run_arm


@dataclass(frozen=True, slots=True)
class Setting:
    """Sums of two numbers of up to ``digits`` digits with a line for each column: ``57+86=`` is ``7+6=13``,
    ``5+8+1=14`` and ``143``.

    The supervised warm start imitates such solutions until a held-out pass@1 of ``start``; RL begins there. Start,
    model and learning rate were chosen from a run of GRPO alone, on seed 1000, so that it improves.

    A run whose metrics have ``self_verdict/reference`` votes with the weights of
    :class:`~assay.signals.last_token.LastToken`, token ``token``; any other with equal weights.

    Args:
        digits: of the numbers.
        start: held-out pass@1 at which the warm start ends.
        warmup: its supervised steps of 64 solutions, at most.
        steps: RL steps.
        prompts, group: tasks per step and responses per task.
        lr: of RL.
        hidden, layers: of the nano model.
        samples: responses that vote on a held-out task.
        token: the reserved one.
    """

    digits: int = 2
    start: float = 0.3
    warmup: int = 400
    steps: int = 25
    prompts: int = 16
    group: int = 8
    lr: float = 3e-4
    hidden: int = 64
    layers: int = 2
    samples: int = 8
    token: int = 0

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "recipe": self.recipe()}

    def recipe(self) -> dict[str, Any]:
        """Return the sections of a run."""
        source = {"name": "arithmetic", "operation": "addition", "digits": self.digits, "scratchpad": 1.0}
        nano = {"hidden": self.hidden, "layers": self.layers, "heads": 4, "context": 64, "alphabet": "0123456789+=\n"}
        return {
            "model": {"source": "nano", "nano": nano},
            "tasks": {"source": source, "eval_size": 200},
            "warmup": {"steps": self.warmup, "target": self.start, "every": 10, "batch": 64, "lr": 3e-3},
            "rollout": {"prompts": self.prompts, "group": self.group, "max_tokens": 32},
            "train": {"steps": self.steps, "lr": self.lr, "ramp": 3},
            "evaluate": {"samples": 4},
        }

    def run(self, arm: Mapping[str, Any], seed: int, folder: Path) -> dict[str, float]:
        """Return what :func:`~assay.lab.settings.language._nano.run_arm` does, and of ``samples`` responses to held-out
        tasks.

        ``vote``: share of tasks answered right by the vote; ``majority``: by equal weights; ``single``: of single
        responses; ``f1``: how well the verdicts tell right from wrong (0 without any), see
        :func:`~assay.statistics.self_verification.self_verification`; ``auroc``: how often a right response has a
        higher verdict on itself than a wrong one (0.5 without any).
        """
        found = run_arm(self.recipe(), arm, seed, folder)
        from assay.config import load_config
        from assay.engines.base import Request, Sampling
        from assay.engines.hf import HFEngine
        from assay.inference.voting.last_token_vote import last_token_scores, vote_by_verdict
        from assay.policies.causal_lm import CausalLM
        from assay.records.checkpoints import last_checkpoint
        from assay.statistics.calibration import auroc
        from assay.statistics.self_verification import self_verification
        from assay.tasks.configured import task_split
        from assay.types import Ask, Group
        from assay.verify.answer.extract import extract
        from assay.verify.configured import make_verifier
        from assay.verify.episodes import judge_groups

        run = folder / "run"
        config = load_config(run / "config.toml")
        model = config.model.model_copy(update={"source": str(last_checkpoint(run)[2] / "policy")})
        policy = CausalLM.load(model, seed)
        _, tasks = task_split(config)
        sampling = Sampling(config.rollout.max_tokens, config.rollout.temperature)
        seeds = np.random.default_rng([seed, 23]).integers(2**63, size=len(tasks))
        asked = [Request(t.prompt, self.samples, sampling, int(s)) for t, s in zip(tasks, seeds, strict=True)]
        groups = [
            Group(Ask(t, self.samples), tuple(e)) for t, e in zip(tasks, HFEngine(policy).generate(asked), strict=True)
        ]
        groups = judge_groups(make_verifier(config), groups)
        last = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        right = [[v.passed is True for v in g.verdicts] for g in groups]
        scores, f1, told = [[1.0] * self.samples for _ in groups], 0.0, 0.5
        if "self_verdict/reference" in last:
            scale, reference = last["self_verdict/scale"], last["self_verdict/reference"]
            scores = last_token_scores(policy, groups, self.token, scale, reference)
            flat, truth = [s for row in scores for s in row], [r for row in right for r in row]
            f1, told = self_verification(flat, truth).get("f1", 0.0), auroc(flat, truth)
        answers = [[extract(e.text) for e in g.episodes] for g in groups]
        voted = {"vote": scores, "majority": [[1.0] * self.samples] * len(groups)}
        shares = {
            name: float(np.mean([r[vote_by_verdict(a, w)] for a, w, r in zip(answers, weights, right, strict=True)]))
            for name, weights in voted.items()
        }
        return {**found, **shares, "single": float(np.mean(right)), "f1": f1, "auroc": told}
