"""Keeps an engine that has weights of its own at the policy's: gives it new ones, lets it rest, compares the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.batch import Batch
from assay.config import RunConfig
from assay.console import Reporter
from assay.engines.base import Engine, Follower, Sampling
from assay.learning.signals import compute_signals
from assay.method import Method
from assay.objectives.correction import Correction
from assay.policies.base import Policy
from assay.scale.ranks import Ranks
from assay.signals.base import Models
from assay.training.ahead.overlap import Pipeline
from assay.training.ahead.shadow import Shadow
from assay.training.mismatch import compare, corrected, correction_for, probe
from assay.types import Task


@dataclass
class Keeper:
    """What a run does to its engine besides asking it; nothing, where the engine decodes with the policy's weights.

    Args:
        config: the run's.
        engine: of the run.
        policy: that is trained.
        eval_tasks: held out; the first of them are probed with.
        ranks: all of them make the same calls.
        reporter: told what was found.
        pipeline: what the engine is asked ahead through, if it is.

    Attributes:
        behind: whether the weights have changed since the engine was given them.
        asleep: whether the engine has given its device's memory back.
        correction: what the mismatch of engine and policy called for.
    """

    config: RunConfig
    engine: Engine
    policy: Policy
    eval_tasks: Sequence[Task]
    ranks: Ranks
    reporter: Reporter
    pipeline: Pipeline | None = None
    behind: bool = field(default=True, init=False)
    asleep: bool = field(default=False, init=False)
    correction: Correction = field(default="none", init=False)

    def sync(self) -> None:
        """Wake the engine, and give it the policy's weights if it has a copy that is behind them; it is idle then."""
        if isinstance(self.engine, Follower):
            if self.pipeline is not None:
                self.pipeline.idle()
            if self.asleep:
                self.engine.wake()  # type: ignore[attr-defined]
                self.asleep = False
            if self.behind:
                self.engine.follow(self.policy)
        self.behind = False

    def rest(self) -> None:
        """Before the weights change, have an engine beside them give its device's memory back, if it knows how.

        Its weights are dropped, for :meth:`sync` gives it others when it wakes it. One that is asked ahead has no rest.
        """
        sleep = getattr(self.engine, "sleep", None)
        if isinstance(self.engine, Follower) and sleep is not None and self.pipeline is None and not self.asleep:
            sleep(level=2)
            self.asleep = True
        self.behind = True

    def due(self, step: int) -> bool:
        """Whether engine and policy are to be compared in this RL step."""
        every = self.config.engine.check_every
        return every > 0 and step % every == 0

    def check(
        self, method: Method, models: Models, batch: Batch | None = None, tasks: Sequence[Task] | None = None
    ) -> tuple[Method, dict[str, float]]:
        """Compare what an engine of another make says with the policy, and correct what is too far off.

        Ranks compare together, what the first finds holds for all.

        Args:
            method: of the run.
            models: what runs the policy.
            batch: what the engine sampled with the weights that the policy has; without it, a probe is sampled.
            tasks: the first of them are what a probe asks; those held out if left out, and a line says what was found.

        Returns:
            The method, which corrects for the engine from here on if it has to and knows how; and what was found.
        """
        if not isinstance(self.engine, Follower) or isinstance(self.engine, Shadow):
            return method, {}
        settings, name, sampled = self.config.engine, self.config.engine.name, batch
        if batch is None:
            self.sync()
            rollout = self.config.rollout
            sampling = Sampling(rollout.max_tokens, rollout.temperature, rollout.top_p, rollout.top_k)
            batch = probe(self.engine, (self.eval_tasks if tasks is None else tasks)[:4], sampling)
        found = self.ranks.broadcast(compare(batch, models))
        if sampled is None and tasks is None:
            self.reporter.line(f"engine {name} against the policy: {found}")
        if found.kl > settings.mismatch and self.correction == "none":
            method = self.correct(method, correction_for(found.kl, settings.mismatch, settings.correction))
            done = "the objective corrects for it from here on" if self.correction != "none" else "nothing is done"
            self.reporter.line(f"engine {name}: {found}, above engine.mismatch = {settings.mismatch:g}; {done}")
            if sampled is not None:
                compute_signals(sampled, method.needs & {"policy_logprobs"} - sampled.signals.keys(), models)
        return method, found.metrics

    def correct(self, method: Method, correction: Correction) -> Method:
        """Return the method with an objective that corrects for the engine, if it knows how."""
        mended = corrected(method, correction)
        if mended is None or correction == "none":
            return method
        self.correction = correction
        return mended
