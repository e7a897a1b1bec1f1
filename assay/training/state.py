"""A run in the making: its parts, how far it is, and what of that a checkpoint holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from assay.config import RunConfig
from assay.console import Reporter
from assay.curriculum.base import Curriculum
from assay.curriculum.pass_rates import PassRates
from assay.engines.base import Engine
from assay.errors import RunError
from assay.learning.optimizer import make_optimizer
from assay.learning.signals import wants_reference
from assay.method import Method
from assay.policies.base import Policy
from assay.randomness import Randomness
from assay.records.checkpoints import checkpoint
from assay.records.files import damage
from assay.records.run_folder import RunFolder
from assay.rollout.base import Rollout
from assay.scale.checkpoint import SHARDS, save_shards
from assay.scale.divided import DividedModels
from assay.scale.ranks import Ranks
from assay.signals.base import Models
from assay.tasks.split import TrainStream
from assay.training.ahead.overlap import Pipeline
from assay.training.events import Events
from assay.training.keeper import Keeper
from assay.training.partner import Second
from assay.training.stages import Stage
from assay.training.watching.watch import Watch
from assay.types import Task
from assay.verify.base import Verifier, answer_place
from assay.verify.episodes import judge_groups


@dataclass
class State:
    """One run: a policy, how it is asked, judged and improved, and where that is written down.

    ``step`` steps of ``stage`` are finished; ``untouched`` says that the step in flight has changed no weight yet,
    ``updates`` how many optimiser steps it has taken; ``started`` that the method's learners are ready;
    ``unjudged`` is why nothing could be learned so far, of the first verdict, or empty once something could be;
    ``events`` tells callbacks and loggers;
    ``stages`` are what the RL run consists of, ``place`` the number of the one it is in, which ``begun`` steps came
    before: configuration, stream, curriculum, rollout and method are that one's; ``seen`` is its metric so far, if that
    may end it; ``looks`` answers what the curriculum asks when it looks at its data; ``history`` is how often tasks
    were solved, for curricula that ask;
    ``pipeline`` holds the batches that are asked ahead, if ``overlap.staleness`` asks for that; ``partner`` is the
    second policy, if the method has one; ``keeper`` keeps the engine at the policy's weights.
    :func:`assay.training.build.build_trainer` makes one from a configuration.
    """

    config: RunConfig
    folder: RunFolder
    policy: Policy
    engine: Engine
    stream: TrainStream
    eval_tasks: list[Task]
    verifier: Verifier
    examiner: Verifier
    curriculum: Curriculum
    rollout: Rollout
    method: Method
    random: Randomness
    reporter: Reporter
    stage: str = "warmup"
    step: int = 0
    elapsed: float = 0.0
    reference: Policy | None = None
    ranks: Ranks = field(default_factory=Ranks)
    events: Events = field(default_factory=Events)
    partner: Second | None = None
    stages: list[Stage] = field(default_factory=list)
    history: PassRates = field(default_factory=PassRates)
    place: int = field(default=0, init=False)
    begun: int = field(default=0, init=False)
    seen: list[float] = field(default_factory=list, init=False)
    looks: Rollout = field(init=False)
    watch: Watch = field(default_factory=Watch, init=False)
    optimizer: torch.optim.Optimizer = field(init=False)
    untouched: bool = field(default=True, init=False)
    updates: int = field(default=0, init=False)
    started: bool = field(default=False, init=False)
    unjudged: str | None = field(default=None, init=False)
    pipeline: Pipeline | None = field(default=None, init=False)
    keeper: Keeper = field(init=False)
    _start: float = field(default_factory=time.perf_counter, init=False)

    def __post_init__(self) -> None:
        if self.config.overlap.staleness:
            self.pipeline = Pipeline(
                lambda asks, rng: self.rollout.collect(asks, self.engine, rng),
                partial(judge_groups, self.verifier),
                self.config.overlap.verify_chunks,
                hasattr(self.verifier, "map"),
                self._of_rollout,
            )
        self.keeper = Keeper(
            self.config, self.engine, self.policy, self.eval_tasks, self.ranks, self.reporter, self.pipeline
        )

    def _of_rollout(self) -> dict[str, float]:
        """What the stage's rollout says of what it did last."""
        found: dict[str, float] = getattr(self.rollout, "metrics", dict)()
        return found

    def enter(self, place: int, begun: int) -> None:
        """Take the parts of a stage, with their own state, which ``begun`` steps came before; nothing of it is done."""
        stage = self.stages[place]
        train = stage.config.train.model_copy(update={"steps": begun + stage.config.train.steps})
        self.config = self.keeper.config = stage.config.model_copy(update={"train": train})
        self.stream, self.curriculum, self.rollout = stage.stream, stage.curriculum, stage.rollout
        self.looks = stage.looks
        self.method = self.keeper.correct(stage.method, self.keeper.correction)
        self.place, self.begun, self.seen = place, begun, []
        self.reference, self.started = None, False

    def new_optimizer(self) -> torch.optim.Optimizer:
        """A fresh optimiser over the policy's trainable parameters."""
        settings = self.config.train
        optimizer = make_optimizer(
            self.policy.module.parameters(), settings.peak, settings.betas, settings.weight_decay, settings.optimizer
        )

        optimizer.register_step_pre_hook(self.touched)
        return optimizer

    def touched(self, *_: Any) -> None:
        """Note that weights of the run are about to change."""
        self.untouched = False

    def start_rl(self) -> None:
        """Go from the warm-up to the RL stage: a fresh optimiser, the reference policy set aside if one is needed."""
        self.stage, self.step = "rl", 0
        self.start_stage()

    def start_stage(self) -> None:
        """A fresh optimiser, and the reference policy set aside if the stage needs one."""
        self.optimizer = self.new_optimizer()
        if self.needs_reference:
            self.folder.save_reference(self.policy.save, self.place)

    @property
    def needs_reference(self) -> bool:
        needs = self.method.needs | getattr(self.curriculum, "needs", frozenset())
        return wants_reference(needs) or hasattr(self.curriculum, "again")

    def load_reference(self) -> None:
        """Make the frozen policy that the stage started from."""
        if self.needs_reference and self.reference is None:
            self.reference = self.policy.frozen(self._stored_reference())

    def start_again(self) -> None:
        """Go back to the weights that the stage started from, with a fresh optimiser."""
        self.policy.load_weights(self._stored_reference())
        self.optimizer, self.keeper.behind = self.new_optimizer(), True

    def _stored_reference(self) -> Path:
        stored = self.folder.reference(self.place)
        if wrong := self.ranks.once(lambda: damage(stored)):
            raise RunError(f"the reference policy in {stored} {wrong}; put it back, or start again in another run.dir")
        return stored

    @property
    def models(self) -> Models:
        """What the method's signals and learners may run."""
        rollout, train = self.config.rollout, self.config.train
        return DividedModels(
            self.policy,
            self.reference,
            rollout.temperature,
            train.token_budget,
            self.random("signals"),
            self.engine.encode,
            partial(answer_place, self.verifier),
            self.engine,
            None if self.partner is None else self.partner.engine,
            train.peak,
            partial(make_optimizer, betas=train.betas, weight_decay=0.0, kind=train.optimizer),
            self.ranks,
        )

    def start_learners(self) -> None:
        """Make what learners learn with, from the run's seed whatever was drawn before."""
        if self.started or not self.method.learners:
            return
        with torch.random.fork_rng():
            torch.manual_seed(int(self.random.fresh("learners").integers(2**62)))
            for learner in self.method.learners:
                learner.start(self.models)
        self.started = True

    @contextmanager
    def saved_on_failure(self) -> Iterator[None]:
        """If the step fails before it changes any weight, leave a checkpoint of the state before the step.

        One of several ranks may have failed alone, and a checkpoint is written by all; the last one counts then.
        """
        before, self.untouched = deepcopy(self.cheap_state(in_flight=False)), True
        flights = [] if self.pipeline is None else list(self.pipeline.flights)
        try:
            yield
        except Exception:
            if self.untouched and self.ranks.size == 1:
                self.load_cheap_state(before)
                if self.pipeline is not None:
                    self.pipeline.flights = flights
                self.save()
            raise

    def cheap_state(self, in_flight: bool = True) -> dict[str, Any]:
        """Everything but weights and optimiser; with ``in_flight`` what is asked ahead too, which is waited for."""
        asked = {"in_flight": self.pipeline.state_dict()} if in_flight and self.pipeline is not None else {}
        return {
            **asked,
            "stage": self.stage,
            "step": self.step,
            "elapsed": self.elapsed,
            "random": self.random.state_dict(),
            "stream": self.stream.state_dict(),
            "earlier_streams": [stage.stream.state_dict() for stage in self.stages[: self.place]],
            "curriculum": self.curriculum.state_dict(),
            "method": self.method.state_dict(),
            **({} if self.partner is None else {"partner_method": self.partner.method.state_dict()}),
            "correction": self.keeper.correction,
            "place": [self.place, self.begun, list(self.seen)],
            "history": self.history.state_dict(),
            "unjudged": self.unjudged,
        }

    def load_cheap_state(self, state: dict[str, Any]) -> None:
        self.stage, self.step, self.elapsed = state["stage"], state["step"], state["elapsed"]
        self.random.load_state_dict(state["random"])
        self.stream.load_state_dict(state["stream"])
        for stage, earlier in zip(self.stages, state.get("earlier_streams", ()), strict=False):
            stage.stream.load_state_dict(earlier)
        self.curriculum.load_state_dict(state["curriculum"])
        self.method = self.keeper.correct(self.method, state["correction"])
        self.method.load_state_dict(state["method"])
        if "history" in state:  # of an older version there is none
            self.seen = list(state["place"][2])
            self.history.load_state_dict(state["history"])
        self.unjudged = state.get("unjudged", self.unjudged)
        if self.partner is not None:
            self.partner.method.load_state_dict(state["partner_method"])
        if self.pipeline is not None and "in_flight" in state:
            self.pipeline.load_state_dict(state["in_flight"])

    def save(self) -> None:
        """Store a checkpoint of the state after ``step`` steps of ``stage``."""

        def write(folder: Path) -> None:
            self.policy.save(folder / "policy")
            learners = [x.state_dict() for x in self.method.learners] if self.started else None
            optimizer = self.optimizer.state_dict()
            if self.ranks.size > 1:
                save_shards(folder / SHARDS, self.policy, self.optimizer)
                optimizer["state"] = {}
            state = {"optimizer": optimizer, "learners": learners, "watch": self.watch.state_dict()}
            if self.partner is not None:
                self.partner.save(folder / "partner")
                state["partner"] = self.partner.state_dict()
            state = {**self.cheap_state(), **state}
            if self.ranks.first:
                # Through a Python file, torch's error has the system's as its context.
                with open(folder / "trainer.pt", "wb") as file:
                    torch.save(state, file)

        self.folder.save_checkpoint(self.stage, self.step, write)
        self.events.saved(checkpoint(self.folder.path, self.stage, self.step))
