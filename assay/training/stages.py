"""The stages of a run: each has parts of its own, and what goes on from one to the next are the weights.

A stage begins as a run does, with a fresh optimiser and with a reference policy set aside anew; where it asks from the
same source as the one before it goes on in the stream. A run without ``[[stages]]`` is one of a single stage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from assay.config import RunConfig, UntilConfig
from assay.curriculum.base import Curriculum
from assay.curriculum.pass_rates import PassRates
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.registry import build
from assay.rollout.base import Rollout
from assay.scale.divided import AgreedMethod, asked_together
from assay.scale.ranks import Ranks
from assay.scale.setup import check_sharding
from assay.tasks.split import TrainStream
from assay.training.ahead.off_policy import check_overlap, off_policy
from assay.training.preflight import before, check_pairs, unused_bound
from assay.types import Task
from assay.verify.base import Verifier, answer_place
from assay.verify.episodes import judge_groups
from assay.verify.isolate.pool import check_verifier


@dataclass(slots=True)
class Stage:
    """What a run does for some of its steps.

    Attributes:
        name: empty for the single stage of a run without any.
        config: of the run in this stage, with the stage's own number of steps.
        until: when it ends sooner, if it may.
        best: by what its best weights are told, if the next one goes on from those, or the run keeps them.
        stream, curriculum, rollout, method: its parts.
        looks: the rollout that answers what a curriculum asks when it looks at its data.
        tasks: that are known before it begins.
        said: lines on what was found when it was made.
    """

    name: str
    config: RunConfig
    until: UntilConfig | None
    stream: TrainStream
    curriculum: Curriculum
    rollout: Rollout
    looks: Rollout
    method: Method
    tasks: Sequence[Task]
    said: list[str]
    best: str | None = None

    @property
    def where(self) -> str:
        """How errors and lines on it begin."""
        return f"stage {self.name!r}: " if self.name else ""


def make_stage(
    name: str,
    config: RunConfig,
    until: UntilConfig | None,
    method: Method,
    stream: TrainStream,
    some: Sequence[Task],
    verifiers: tuple[Verifier, Verifier],
    ranks: Ranks,
    history: PassRates,
    steps: Callable[[], tuple[int, int]],
) -> Stage:
    """Make the parts of a stage and check that they fit each other.

    Args:
        name, config, until: see :class:`Stage`.
        method: of its configuration.
        stream: of its tasks.
        some: what is known of an endless source before the run.
        verifiers: that judges, and this process's own.
        ranks: that train together.
        history: shared by the run's curricula.
        steps: how far the run is, and how far it was when the stage began, for rollouts that go by that.

    Raises:
        UsageError: what does not fit.
    """
    settings, (verifier, own) = config.rollout, verifiers
    turns = method.partner.turns.own if method.partner is not None else int
    for part in method.parts.values():
        getattr(part, "planned", lambda _: None)(turns(config.train.steps))
    check_sharding(config, method, ranks)
    method = AgreedMethod.of(method, ranks)
    if method.group_relative and settings.group < 2:
        raise UsageError(
            f"credit {type(method.credit).__name__} compares a response with its siblings; rollout.group = "
            f"{settings.group} leaves it none, use 2 or more"
        )
    sampling = Sampling(settings.max_tokens, settings.temperature, settings.top_p, settings.top_k, tuple(settings.stop))
    size = {"prompts": settings.prompts, "group": settings.group, "history": history}
    curriculum = build("curriculum", method.curriculum, stream=stream, select=method.select, **size)
    if ranks.size > 1:
        # What a curriculum holds besides an engine, such as all tasks, asks nobody.
        asked_together(curriculum, ranks, depth=1)
    history.read |= getattr(curriculum, "history", None) is history
    getattr(curriculum, "planned", lambda _: None)(config.train.steps)
    answering = partial(
        build,
        "rollout",
        sampling=sampling,
        judge=partial(judge_groups, verifier),
        more=lambda: curriculum.next(steps()[0]),
        curriculum=curriculum,
        answer=partial(answer_place, own),
        progress=lambda: (steps()[0] - steps()[1], config.train.steps),
    )
    rollout = answering(method.rollout)
    looks = answering(curriculum.answers) if hasattr(curriculum, "answers") else rollout
    check_overlap(config.overlap, method, rollout, ranks.size, curriculum)
    method, line = off_policy(method, config.overlap.staleness)
    # Every task of a sized source can be looked at before the run, of an endless one those held out, or the first.
    source = stream.source
    known = list(filter(stream.fits, some if source.size is None else (source[i] for i in range(source.size))))
    getattr(curriculum, "check", lambda _: None)(known)
    check_verifier(own, known)
    if not hasattr(curriculum, "survey"):  # one that looks at its data may put responses on record itself
        check_pairs(method.objective, known, rollout)
    once = config.train.mini_batches == config.train.epochs == 1 and not config.overlap.staleness
    unbounded = unused_bound(method.objective) if once and config.engine.name == "hf" else None
    said = [*filter(None, [line, unbounded]), *before(method, known, own, rollout, config.train.steps)]
    return Stage(name, config, until, stream, curriculum, rollout, looks, method, known, said)


def ended(until: UntilConfig, seen: Sequence[float]) -> str | None:
    """Say why a stage is over by what its metric was in its steps so far; ``None`` while it is not."""
    values = [x for x in seen if math.isfinite(x)]
    if len(values) < until.window:
        return None
    mean = sum(values[-until.window :]) / until.window
    said = f"{until.metric} {mean:.4g} on average over {until.window} steps"
    if until.above is not None and mean >= until.above:
        return f"{said}, at least {until.above:g}"
    if until.below is not None and mean <= until.below:
        return f"{said}, at most {until.below:g}"
    earlier = values[-2 * until.window : -until.window]
    if until.plateau is not None and len(earlier) == until.window:
        gained = mean - sum(earlier) / until.window
        if gained < until.plateau:
            return f"{said}, {gained:+.3g} from the {until.window} before"
    return None
