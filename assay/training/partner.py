"""The second policy of a run: what it is made of, its step, and what of it a checkpoint holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from assay.config import RunConfig
from assay.engines.base import Engine, Sampling, engine_of
from assay.errors import UsageError
from assay.learning.optimizer import learning_rate, make_optimizer
from assay.learning.signals import check_signals, wants_reference
from assay.learning.step import learn, sample
from assay.learning.update import update
from assay.method import Method
from assay.method.partner import Partner
from assay.policies.base import Policy
from assay.policies.loading import ModelConfig
from assay.policies.policy import load_policy
from assay.randomness import Randomness
from assay.rollout.single_turn import SingleTurn, fits
from assay.scale.checkpoint import SHARDS, load_shards, load_whole, save_shards
from assay.scale.divided import AgreedMethod, DividedModels, divided_engine
from assay.scale.ranks import Ranks
from assay.signals.base import Models
from assay.signals.steps import Decode
from assay.training.clock import Clock
from assay.training.watching.metrics import rollout_metrics
from assay.types import Ask, Group
from assay.verify.base import answer_place


class Second:
    """A policy that is trained beside the run's, as :class:`assay.method.partner.Partner` says.

    Args:
        spec: how.
        config: the run's; training settings are its own but for what ``spec`` names.
        policy: a language model of its own.
        random: the run's generators.
        engine: samples from it; the transformers engine on its very weights if left out.
        ranks: that train together; its policy is sharded over them if there are several.
        twin: another policy as it begins, to be its reference; a copy of ``policy`` if left out.
    """

    def __init__(
        self,
        spec: Partner,
        config: RunConfig,
        policy: Policy,
        random: Randomness,
        engine: Engine | None = None,
        ranks: Ranks | None = None,
        twin: Callable[[], Policy] | None = None,
    ):
        self.spec, self.config, self.policy, self.random = spec, config, policy, random
        self.ranks = ranks or Ranks()
        own = engine_of(policy, "hf", config.rollout.max_rows) if engine is None else engine
        self.engine: Any = divided_engine(own, policy, self.ranks)
        self.method: Method = AgreedMethod.of(spec.method, self.ranks)
        check_signals(self.method.needs, self.method.live, policy)
        if self.method.learners:
            raise UsageError("the method of a partner has learners of its own, which are not kept; leave them out")
        if self.method.group_relative and spec.group < 2:
            raise UsageError("the partner's responses are compared with each other; give it a group of 2 or more")
        # Its model is loaded anew in every process, so that what it began as is there without a file of its own.
        self.reference = (twin or policy.twin)() if wants_reference(self.method.needs) else None
        if self.reference is not None:
            self.reference.module.requires_grad_(False).eval()
        for part in self.method.parts.values():
            getattr(part, "planned", lambda _: None)(config.train.steps - spec.turns.own(config.train.steps))
        self.optimizer = self.new_optimizer()

    @classmethod
    def load(cls, spec: Partner, config: RunConfig, random: Randomness, ranks: Ranks) -> Second:
        """Return the one that a configuration describes."""
        model = ModelConfig.model_validate({**config.model.model_dump(), **(spec.model or {})})
        if ranks.size == 1:
            return cls(spec, config, load_policy(model, config.seed + 1), random)
        from assay.scale.sharding import ShardedLM

        make = partial(ShardedLM.load_sharded, model, config.seed + 1, ranks, config.scale.offload)
        return cls(spec, config, make(), random, ranks=ranks, twin=make)

    def new_optimizer(self) -> torch.optim.Optimizer:
        train = self.config.train
        return make_optimizer(
            self.policy.module.parameters(), self.peak, train.betas, train.weight_decay, train.optimizer
        )

    @property
    def peak(self) -> float:
        """Its highest learning rate."""
        return self.config.train.peak if self.spec.lr is None else self.spec.lr

    def models(self, policy: Engine | None = None) -> Models:
        """What its method's signals may run; the run's policy is its partner."""
        rollout, train = self.config.rollout, self.config.train
        return DividedModels(
            self.policy,
            self.reference,
            rollout.temperature,
            train.token_budget,
            self.random("partner signals"),
            self.engine.encode,
            partial(answer_place, self.spec.verifier),
            self.engine,
            policy,
            ranks=self.ranks,
        )

    def asks(self, asks: Sequence[Ask]) -> list[Ask]:
        """What the policy is asked in a step of the partner's."""
        return [replace(ask, n=self.spec.per_prompt) for ask in asks]

    def step(
        self, groups: Sequence[Group], step: int, clock: Clock, decode: Decode, policy: Engine | None = None
    ) -> tuple[dict[str, float], int]:
        """Answer what is made of the policy's judged groups, and learn; return metrics and tokens generated.

        Signals of its method may ask the ``policy``'s engine.

        What leaves no room for a reply in the partner's context is left out.
        """
        rollout, train = self.config.rollout, self.config.train
        longest = rollout.max_tokens if self.spec.max_tokens is None else self.spec.max_tokens
        sampling = Sampling(longest, rollout.temperature, rollout.top_p, rollout.top_k)
        asks = [Ask(task, self.spec.group) for task in self.spec.tasks(groups, decode)]
        asks = [ask for ask in asks if fits(ask, self.engine, sampling)]
        _, batch = sample(
            asks,
            SingleTurn(sampling),
            self.engine,
            self.spec.verifier,
            self.method,
            models := self.models(policy),
            self.random("partner rollout"),
            clock,
        )
        metrics = rollout_metrics(batch)
        if not len(batch):
            return metrics, 0
        per_step = train.epochs * train.mini_batches
        done = step * per_step

        def apply(objective: Any, part: Any) -> dict[str, float]:
            nonlocal done
            lr = learning_rate(self.peak, done, train.steps * per_step, train.ramp, train.schedule)
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            done += 1
            found, _ = update(
                self.policy,
                objective,
                part,
                self.optimizer,
                live=getattr(objective, "live", ()),
                temperature=rollout.temperature,
                token_budget=train.token_budget,
                max_grad_norm=train.max_grad_norm,
                skip_idle=getattr(objective, "zero_advantage_is_idle", False),
                ranks=self.ranks,
            )
            return {**found, "lr": lr}

        with clock("update"):
            rng = self.random("partner mini-batches")
            metrics |= learn(batch, self.method, models, rng, apply, train.epochs, train.mini_batches)
        return metrics, sum(len(e.tokens) for e in batch.episodes)

    # What a checkpoint holds

    def save(self, folder: Path) -> None:
        """Write its weights; several ranks write their parts of them and of the optimiser's state, too."""
        self.policy.save(folder)
        if self.ranks.size > 1:
            save_shards(folder / SHARDS, self.policy, self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Its optimiser, without what is in shards; weights are in a folder, what its parts remember among the run's
        cheap state."""
        state = self.optimizer.state_dict()
        return {"optimizer": {**state, "state": {}} if self.ranks.size > 1 else state}

    def restore(self, folder: Path, state: dict[str, Any]) -> None:
        """Take the weights that :meth:`save` wrote, and what :meth:`state_dict` gave, of however many ranks."""
        self.optimizer = self.new_optimizer()
        if (folder / SHARDS).is_dir():
            load_shards(folder / SHARDS, self.policy, self.optimizer, state["optimizer"]["param_groups"])
        else:
            self.policy.load_weights(folder)
            load_whole(state["optimizer"], self.policy, self.optimizer)
