"""The training loop: it reads top to bottom like the picture of the seams."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from assay.batch import Batch
from assay.curriculum.base import unaided
from assay.engines.base import Follower, Sampling
from assay.errors import RunError, UsageError, nearest
from assay.evaluate.asking import evaluate, player_of
from assay.learning.optimizer import learning_rate
from assay.learning.step import learn, sample, value
from assay.learning.update import update
from assay.learning.warmup import demonstrations
from assay.objectives.sft import SFT
from assay.records.evaluation import Evaluation
from assay.records.run_folder import run_id
from assay.records.sign import Sign
from assay.records.token_columns import token_columns
from assay.scale.ranks import LostRank, going
from assay.signals.base import Models
from assay.signals.steps import decoder
from assay.training.ahead.off_policy import Observed
from assay.training.ahead.overlap import Flight, Pipeline
from assay.training.best import Best
from assay.training.callbacks import Running
from assay.training.clock import Clock
from assay.training.interrupt import Interrupt, Stopped, interrupts
from assay.training.partner import Second
from assay.training.preflight import at_first
from assay.training.restore import restore
from assay.training.stages import ended
from assay.training.state import State
from assay.training.survey import survey
from assay.training.watching.metrics import rollout_metrics
from assay.types import Group
from assay.verify.episodes import judge_groups

FEW = 12
"""Sources of held-out tasks, at most, that the log tells of one by one; the report does of any number."""


@dataclass
class Trainer(State):
    """One run, from its first step to its last. :func:`assay.training.build.build_trainer` makes one."""

    def run(self, resume: bool = False) -> Interrupt:
        """Train to the end or until asked to stop; return what asked, if anything did.

        Raises:
            RunError: something failed; the checkpoint is of the state before the step, unless that had changed weights.
        """
        if not (resume and self.restore()):
            self.optimizer = self.new_optimizer()
            if self.config.warmup.steps == 0:
                self.start_rl()
            self.save()
        self._start = time.perf_counter() - self.elapsed
        agree = self.ranks.largest if self.ranks.size > 1 else int
        with interrupts(self.reporter.quiet, agree) as interrupt:
            try:
                self.events.start(Running(self), run_id(self.folder.path))
                if self.stage == "warmup":
                    self.warm_up(interrupt)
                self.reinforce(interrupt)
                # vLLM, when it is closed, takes down every group of the process, that of the ranks too.
                self.ranks.barrier()
            except Stopped:
                self.save()
                self.ranks.barrier()
            except UsageError as error:
                raise RunError(str(error)) from error
            except torch.OutOfMemoryError as error:
                raise RunError(
                    f"the device ran out of memory after {self.stage} step {self.step}; start a run with a lower "
                    "train.token_budget or rollout.max_rows"
                ) from error
            except RuntimeError as error:
                if self.ranks.lost(error) and not isinstance(error, LostRank):
                    raise LostRank from error
                raise
            finally:
                self.events.end()
                if isinstance(self.engine, Follower):
                    self.engine.close()
                if self.pipeline is not None:
                    self.pipeline.close()
                if self.config.scale.verifiers:
                    getattr(self.verifier, "close", lambda: None)()
        self.ranks.close()
        return interrupt

    # Stages

    def warm_up(self, interrupt: Interrupt) -> None:
        """Supervised steps on worked solutions."""
        settings, total = self.config.warmup, self.config.warmup.steps
        with self.reporter.progress("warm-up", total, self.step) as tick:
            while not self.warmed_up(interrupt):
                clock = Clock()
                with self.saved_on_failure(), clock("step"):
                    tasks = self.stream.next(settings.batch)
                    batch = demonstrations(tasks, self.policy, self.rollout)  # type: ignore[arg-type]
                    lr = self.set_lr(settings.lr, self.step, total, settings.ramp, settings.schedule)
                    metrics, tokens = self.apply(SFT(), batch)
                self.step += 1
                self.log({**metrics, "lr": lr}, clock, tokens)
                tick(self.step, f"loss {metrics['loss']:.3f}")
                if self.step % self.config.run.checkpoint_every == 0:
                    self.save()
        self.start_rl()
        self.save()

    def warmed_up(self, interrupt: Interrupt) -> bool:
        """Whether no warm-up step is left, after the look at the target that is due."""
        interrupt.check()
        settings = self.config.warmup
        if self.step == settings.steps or self.asked_to_end():
            return True
        if settings.target is None or self.step == 0 or self.step % settings.every:
            return False
        found = self.evaluate(f"warmup-{self.step:06d}", 1, interrupt).pass_interval(1)
        return found is not None and found.value >= settings.target

    def reinforce(self, interrupt: Interrupt) -> None:
        """The RL run, stage after stage, between an evaluation before and one after it."""
        total, samples = self.folder.config.train.steps, self.config.evaluate.samples
        self.folder.save_signs(self.watch.signs)
        with self.reporter.progress("RL", total, self.step) as tick:
            while True:
                self.ready()
                while not self.reinforced(interrupt):
                    # A run that is extended beyond its end is measured again at the new one.
                    self.folder.evaluation("after").unlink(missing_ok=True)
                    if not self.looked(interrupt):
                        continue
                    metrics = self.rl_step()
                    passed = metrics.get("pass_rate", metrics.get("partner/pass_rate", float("nan")))
                    reward, length = metrics.get("reward/mean", float("nan")), metrics.get("length/mean", float("nan"))
                    words = f"reward {reward:.3f}  pass {passed:.3f}  length {length:.0f}"
                    tick(self.step, words)
                    if self.step % self.config.run.checkpoint_every == 0:
                        self.save()
                if self.place + 1 >= len(self.stages):
                    break
                self.next_stage(interrupt)
        self.save()
        if self.folder.stored_evaluation("after", self.step):
            self.reporter.line(f"{self.folder.path} is finished; to extend it, give train.steps=... above {self.step}")
        self.measured("after", samples, interrupt)
        if self.best is not None and (found := self.best.upto(self.step)) is not None:
            where = self.best.at(found.step) if self.folder.has(self.best.at(found.step)) else "not kept"
            self.reporter.line(f"best at step {found.step}, {self.best.told(found)}: {where}")

    def looked(self, interrupt: Interrupt) -> bool:
        """Have the curriculum look at its data where that is due; return whether the step can be taken then."""
        survey(self, interrupt)
        return True

    def ready(self) -> None:
        """Have what the stage needs besides its parts, whether it begins or goes on."""
        self.load_reference()
        self.start_learners()
        self.method, _ = self.keeper.check(self.method, self.models)
        self.watch.start = self.first_evaluation()

    def first_evaluation(self) -> Evaluation | None:
        """Of the weights that the stage begins with."""
        if self.place == 0:
            return self.folder.stored_evaluation("before", self.begun)
        done = self.stages[self.place - 1]
        if done.best is not None:
            ends = {each.label: each.step for each in self.folder.evaluations()}
            before = 0 if self.place == 1 else ends.get(f"after-{self.stages[self.place - 2].name}", self.begun)
            if found := Best(self.folder, done.best, before).upto(self.begun):
                return found
        return self.folder.stored_evaluation(f"after-{done.name}", self.begun)

    @property
    def best(self) -> Best | None:
        """What keeps the best weights of the stage, if the next one goes on from those, or the run keeps them."""
        metric = self.stages[self.place].best if self.stages else None
        return None if metric is None else Best(self.folder, metric, self.begun)

    def next_stage(self, interrupt: Interrupt) -> None:
        """End a stage and begin the next one. The checkpoint is of its end, and all else follows from that."""
        self.save()
        done = self.stages[: self.place + 1]
        self.measured(f"after-{done[-1].name}", self.config.evaluate.samples, interrupt)
        self.asked_to_end()  # by what was measured: of the stage that is over, not of the next one
        if self.pipeline is not None:
            self.pipeline.drop()  # what a stage that was ended had asked ahead is not for the next one
        if self.best is not None:
            self.go_back(self.best, done[-1].name)
        self.enter(self.place + 1, self.step)
        if same := [stage for stage in done if stage.config.tasks.source == self.config.tasks.source]:
            # Of tasks that were counted otherwise: the run's, say, by what is held out of them too.
            self.stream.load_state_dict(self.stream.adapted(same[-1].stream.state_dict()))
        self.start_stage()
        self.watch.begin()
        self.reporter.line(f"stage {self.stages[self.place].name!r} from step {self.step + 1} on")

    def go_back(self, best: Best, name: str) -> None:
        """Take the best weights of the stage that ends, and say which they are."""
        found = best.take(self.step, self.policy.load_weights)
        self.keeper.behind = True
        if found is None:
            self.reporter.line(
                f"stage {name!r}: nothing could be judged, so no weights are best; going on from the last"
            )
        else:
            self.reporter.line(f"stage {name!r}: best at step {found.step}, {best.told(found)}; going on from there")

    def reinforced(self, interrupt: Interrupt) -> bool:
        """Whether no step of the stage is left, after the evaluation that is due."""
        interrupt.check()
        total, every, target = self.config.train.steps, self.config.evaluate.every, self.config.train.target
        reached = None
        if self.step == 0:
            reached = self.measured("before", self.config.evaluate.samples, interrupt)
        elif every and self.step % every == 0 and self.begun < self.step < total:
            reached = self.measured(f"step-{self.step:06d}", 1, interrupt)
        if target is not None and reached is not None and reached >= target:
            self.reporter.line(f"held-out pass@1 {reached:.3f} reached the target {target:g} at step {self.step}")
            return True
        until = self.stages[self.place].until if self.stages else None
        if until is not None and (why := ended(until, self.seen)) is not None:
            self.reporter.line(f"stage {self.stages[self.place].name!r} is over at step {self.step}: {why}")
            return True
        return self.step >= total or self.asked_to_end()

    def asked_to_end(self) -> bool:
        """Whether a callback asked for the end of the stage; that is then done."""
        return self.ranks.once(self.events.taken)

    def rl_step(self) -> dict[str, float]:
        """Ask, generate, verify, value, learn, observe; or the partner's step, where it is its turn."""
        if self.partner is not None and self.partner.spec.turns.partners(self.step):
            return self.partner_step(self.partner)
        clock, settings = Clock(), self.config.train
        with self.saved_on_failure(), clock("step"):
            self.updates, models = 0, self.models
            groups, batch, found = self.sampled(models, clock) if self.pipeline is None else self.taken(models, clock)
            if self.pipeline is None and self.keeper.due(self.step):
                self.method, more = self.keeper.check(self.method, models, batch)
                found |= more
            if self.step - self.begun == (0 if self.partner is None else self.partner.spec.turns.warm_up):
                for line in at_first(self.method, batch, self.rollout):
                    self.reporter.line(line)
            metrics = rollout_metrics(batch)
            self.note_verdicts(groups, batch)
            tokens = self.tokens(batch, models, clock)
            if len(batch):
                with clock("update"):
                    # A learner before the policy changes weights that no hook tells of.
                    self.untouched &= not self.method.early
                    rng, parts = self.random("mini-batches"), settings.mini_batches
                    learned = learn(batch, self.method, models, rng, self.rl_update, settings.epochs, parts)
                    if both := sorted(learned.keys() & metrics.keys()):
                        raise UsageError(
                            f"metric {both[0]!r} of the method has the name of the run's own; call it otherwise"
                        )
                    metrics |= learned
            metrics |= found | getattr(self.method.select, "metrics", dict)()
            self.noted(groups, metrics)
            with going(together=True):
                self.curriculum.observe(unaided(groups))
        self.step += 1
        self.log(metrics, clock, sum(len(e.tokens) for e in batch.episodes))
        if self.step % self.config.run.rollouts_every == 0 and len(batch):
            version = self.step - 1 - int(metrics.get("staleness", 0))
            self.folder.save_rollouts(self.step, batch, version, tokens)
        self.events.rollouts(batch)
        self.say(self.watch.step(self.step, batch, metrics))
        replays = getattr(self.method.select, "replays_alone", False)
        rewarded = not (replays or getattr(self.method.objective, "ignores_rewards", False))
        for line in self.watch.idle.step(self.step, batch, metrics, rewarded):
            self.reporter.line(line)
        return metrics

    def noted(self, groups: list[Group], metrics: dict[str, float]) -> None:
        """Keep what later steps go by: how often tasks were solved, and the metric that may end the stage."""
        if self.history.read:
            self.history.note(self.step, unaided(groups))
        if len(self.stages) > 1:
            metrics["stage_number"] = self.place + 1
        until = self.stages[self.place].until if self.stages else None
        if until is not None:
            if self.step == self.begun and until.metric not in metrics:
                self.reporter.line(
                    f"stage {self.stages[self.place].name!r}: its first step has no metric {until.metric!r}, and until "
                    f"ends nothing without it{nearest(until.metric, metrics)}"
                )
            self.seen = [*self.seen, metrics.get(until.metric, float("nan"))][-2 * until.window :]

    def partner_step(self, partner: Second) -> dict[str, float]:
        """Have the policy answer, and the partner learn from what is made of that; its metrics are ``partner/...``."""
        clock = Clock()
        with self.saved_on_failure(), clock("step"):
            self.keeper.sync()
            with clock("generate"):
                asks = partner.asks(self.curriculum.next(self.step))
                groups = self.rollout.collect(asks, self.engine, self.random("rollout"))
            with clock("verify"):
                groups = judge_groups(self.verifier, groups)
            hook = partner.optimizer.register_step_pre_hook(self.touched)
            try:
                found, tokens = partner.step(groups, self.step, clock, self.engine.decode, self.engine)
            finally:
                hook.remove()
            metrics = {f"partner/{name}": value for name, value in found.items()}
            with going(together=True):
                self.curriculum.observe(unaided(groups))
        self.step += 1
        self.log(metrics, clock, tokens + sum(len(e.tokens) for group in groups for e in group.episodes))
        return metrics

    def tokens(self, batch: Batch, models: Models, clock: Clock) -> dict[str, list[Any]] | None:
        """Return what is kept of single tokens, if that is wanted of this step, and what the policy says of them."""
        settings = self.config.run
        if not settings.rollout_tokens or (self.step + 1) % settings.rollouts_every or not len(batch):
            return None
        with clock("tokens"):
            wanted = {"logprobs"} | ({"entropy"} & self.policy.quantities)
            found = {f"policy_{k}": v for k, v in models.quantities(batch, wanted).items() if k in wanted}
            return token_columns(batch, decoder(models), found)

    def note_verdicts(self, groups: list[Group], batch: Batch) -> None:
        """Remember why no response of the run had a verdict or a reward yet, until one has."""
        verdicts = [verdict for group in groups for verdict in group.verdicts]
        if self.unjudged == "" or not verdicts:
            return
        if any(verdict.passed is not None for verdict in verdicts) or bool(batch.valid.any()):
            self.unjudged = ""
        elif self.unjudged is None:
            self.unjudged = verdicts[0].feedback or "it gave no reason"

    def rl_update(self, objective: Any, batch: Batch) -> dict[str, float]:
        """One optimiser step of the RL stage, at the step's learning rate."""
        settings = self.config.train
        per_step = settings.epochs * settings.mini_batches
        if self.pipeline is not None and self.updates == 0:
            objective = Observed(objective)
        done = (self.step - self.begun) * per_step + min(self.updates, per_step - 1)
        self.updates += 1
        total = (settings.steps - self.begun) * per_step
        lr = self.set_lr(settings.peak, done, total, settings.ramp, settings.schedule)
        return {**self.apply(objective, batch)[0], "lr": lr}

    # Pieces of a step

    def sampled(self, models: Models, clock: Clock) -> tuple[list[Group], Batch, dict[str, float]]:
        """Return the step's judged groups, their valued batch, and what the rollout says of them."""
        self.keeper.sync()
        asks, rng = self.curriculum.next(self.step), self.random("rollout")
        groups, batch = sample(
            asks,
            self.rollout,
            self.engine,
            self.verifier,
            self.method,
            models,
            rng,
            clock,
            more=partial(self.curriculum.next, self.step),
            parts=self.config.overlap.verify_chunks,
        )
        if "waiting" in clock.seconds:
            clock.seconds["verify_hidden"] = max(0.0, clock.seconds["verify"] - clock.seconds["waiting"])
        return groups, batch, getattr(self.rollout, "metrics", dict)()

    def taken(self, models: Models, clock: Clock) -> tuple[list[Group], Batch, dict[str, float]]:
        """The same of a batch that was asked for ``overlap.staleness`` steps ago, after asking for a later one."""
        assert self.pipeline is not None
        found = self.launch(self.pipeline, models)
        taken = self.pipeline.take()
        clock.seconds |= taken.seconds
        batch = value(taken.groups, self.method, models, clock)
        return taken.groups, batch, {"staleness": float(self.step - taken.version), **taken.metrics, **found}

    def launch(self, pipeline: Pipeline, models: Models) -> dict[str, float]:
        """Ask for every batch up to ``overlap.staleness`` steps ahead, in the run's steps; today's weights answer.

        What is asked is drawn here, step by step; the answers to each batch have a generator of their own. Before they
        are begun, engine and policy are compared, if that is due: when the answers come, the policy has gone on.
        """
        found: dict[str, float] = {}
        last = min(self.step + self.config.overlap.staleness, self.config.train.steps - 1)
        asked = pipeline.flights[-1].step if pipeline.flights else self.step - 1
        pipeline.flights += [Flight(step, list(self.curriculum.next(step))) for step in range(asked + 1, last + 1)]
        if new := [flight for flight in pipeline.flights if flight.generated is None]:
            self.keeper.sync()
            if self.keeper.due(self.step):
                self.method, found = self.keeper.check(self.method, models, tasks=[ask.task for ask in new[-1].asks])
            for flight in new:
                pipeline.launch(flight, self.random.fresh(f"rollout/{flight.step}"), self.step)
        return found

    def apply(self, objective: Any, batch: Batch) -> tuple[dict[str, float], int]:
        """One optimiser step of the current stage."""
        self.keeper.rest()
        return update(
            self.policy,
            objective,
            batch,
            self.optimizer,
            live=getattr(objective, "live", ()),
            temperature=self.config.rollout.temperature if self.stage == "rl" else 1.0,
            token_budget=self.config.train.token_budget,
            max_grad_norm=self.config.train.max_grad_norm,
            skip_idle=getattr(objective, "zero_advantage_is_idle", False),
            ranks=self.ranks,
        )

    def measured(self, label: str, samples: int, interrupt: Interrupt) -> float | None:
        """Return pass@1 on the held-out tasks, measured unless it is stored already; ``None`` if nothing was judged."""
        if self.config.evaluate.samples == 0:
            return None
        evaluation = self.folder.stored_evaluation(label, self.step)
        if evaluation is None:
            evaluation = self.evaluate(label, samples, interrupt)
            self.folder.save_evaluation(evaluation)
            self.events.evaluated(evaluation)
        if self.best is not None and self.step > self.begun:
            self.best.keep(self.step, self.policy.save)
        found, signs = evaluation.pass_interval(1), self.watch.evaluated(evaluation)
        if found is None:
            self.reporter.line(f"{label}: every verdict was an abstention")
            return None
        self.reporter.line(f"{label}: held-out pass@1 {found}")
        parts = evaluation.by_source()
        for source, part in parts.items() if len(parts) <= FEW else ():
            if (of := part.pass_interval(1)) is not None:
                self.reporter.line(f"{label}, {source}: {of}")
        self.say(signs)
        return found.value

    def say(self, signs: list[Sign]) -> None:
        """Tell of new signs that the reward is gamed, and store them."""
        for sign in signs:
            self.reporter.line(sign.line)
        if signs:
            self.folder.save_signs(self.watch.signs)

    def evaluate(self, label: str, samples: int, interrupt: Interrupt) -> Evaluation:
        """Ask every held-out task ``samples`` times; the draws depend on the run's seed and the label alone.

        Raises:
            Stopped: asked to stop; what was measured so far is dropped.
        """
        # What a stage changes is how the policy learns, not what it is measured by.
        config = self.folder.config
        settings, rollout = config.evaluate, config.rollout
        sampling = Sampling(rollout.max_tokens, settings.temperature, settings.top_p, stop=tuple(rollout.stop))
        self.keeper.sync()
        if self.pipeline is not None:
            self.pipeline.idle(verdicts=True)

        def progress(done: int, total: int) -> None:
            tick(done)
            interrupt.check()

        with self.reporter.progress(f"evaluate {label}", len(self.eval_tasks)) as tick:
            return evaluate(
                self.eval_tasks,
                self.engine,
                self.examiner,
                samples=samples,
                sampling=sampling,
                rng=self.random.fresh(f"evaluate/{label}"),
                label=label,
                step=self.step,
                chunk=max(1, rollout.max_rows // samples),
                progress=progress,
                player=player_of(config, sampling),
            )

    def set_lr(self, peak: float, step: int, total: int, ramp: int, schedule: Any) -> float:
        """Set and return the learning rate of an optimiser step."""
        lr = learning_rate(peak, step, total, ramp, schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        return lr

    def log(self, metrics: dict[str, float], clock: Clock, tokens: int) -> None:
        """Write a step's metrics with its times (seconds) and tokens per second."""
        self.elapsed = time.perf_counter() - self._start
        times = {f"time/{k}": v for k, v in clock.seconds.items()}
        speed = tokens / max(clock.seconds["step"], 1e-9)
        row = {**metrics, "tokens_per_second": speed, **times, "time": self.elapsed}
        self.folder.log(self.stage, self.step, row)
        self.events.step(row)

    def restore(self) -> bool:
        """See :func:`assay.training.restore.restore`."""
        return restore(self)
