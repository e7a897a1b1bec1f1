"""S176: dataset aggregation for agents: the student acts, now and then the teacher, and he labels every state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import judge_of
from assay.engines.base import Engine, Request, Sampling
from assay.environments.base import Action, EnvironmentFailure, Guided
from assay.environments.calls import written
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.off_policy.soft_labels import SoftLabels
from assay.objectives.sft import SFT
from assay.registry import part
from assay.rollout.turns.by_messages import as_messages
from assay.rollout.turns.labelling import Labelling, label_of
from assay.rollout.turns.under_way import Live
from assay.select.labels import Labels
from assay.signals.reread.teacher_tokens import TeacherTokens
from assay.types import Ask, Episode, Group


@paper(
    "S176",
    "DAgger for LM agents",
    arxiv="2605.12913",
    seams=["rollout", "select", "objective"],
    essentials={
        "each turn is the teacher's with probability beta, the student's else": "test_turns_are_mixed_by_beta",
        "the environment goes on by the action that was executed": "test_at_beta_0_the_teacher_labels",
        "the teacher labels every state that is visited": "test_at_beta_0_the_teacher_labels",
        "at beta 1 the data are those of behaviour cloning": "test_at_beta_1_it_is_behaviour_cloning",
        "the data of all rounds are learned from, or the latest": "test_rounds_are_aggregated",
        "beta falls to a floor, and the round is in the checkpoint": "test_the_schedule",
        "the single switch at a turn that is drawn: the student begins, the teacher finishes": "test_a_single_switch",
        "the teacher may be a language model, asked in every state by the conversation so far": (
            "test_a_language_model_teaches"
        ),
        "one that fails ends the episode without a verdict": "test_a_teacher_that_fails",
        "soft labels: the log-loss of his distribution over next tokens": "test_soft_labels_by_hand",
        "soft labels of earlier rounds are soft when they are replayed": "test_soft_labels_are_learned_in_a_run",
        "it trains a language model": "test_it_trains_a_language_model",
    },
    choices=(
        "a round is a step of the run: the paper's five are of 512 tasks, each learned for three epochs",
        "the longest beginning of the student grows by so many turns a round; that of the paper is not known",
        "labels of earlier rounds are replayed, so many drawn at random per step",
        "without a teacher it is the environment's plan",
        "a teacher's turn is what he finds likeliest, and one that was cut is a label without an end",
        "soft labels are of the teacher's 20 likeliest tokens or so, the others as one, at the temperature of sampling",
    ),
)
def dagger(
    environment: Any = None,
    beta: float = 1.0,
    fall: float = 0.2,
    floor: float = 0.6,
    decay: float = 1.0,
    switch: int | None = None,
    aggregate: Literal["union", "latest"] = "union",
    replayed: int = 256,
    solved: bool = False,
    turns: int = 8,
    teacher: Any = None,
    soft: int = 0,
) -> Method:
    """In round i a turn is taken by the teacher with probability beta_i, and in each state visited he says what he
    would do, a_E; the loss is the log-loss of that.

        beta_i = beta max(floor, decay^i - fall i)
        L = mean over labels of -log pi(a_E | history), the sum over the tokens of a_E

    With soft labels the loss is -sum_v pi_E(v | history, a_<t) log pi(v | history, a_<t) at every token of a label.

    A round is a step. Labels are derived samples of the step; those of earlier rounds are replayed.

    Args:
        environment: played by rollout ``dagger``; without a teacher it has a plan
            (:class:`~assay.environments.base.Guided`). ``None`` where the recipe names the rollout itself.
        beta, fall, floor, decay: see above, each in [0, 1]; the paper's mixture is 1, 0.8, and then 0.6.
        switch: with a number s the student acts for the first turns of an episode, in round i a number drawn from
            0 to s i, and the teacher finishes it; ``None`` for the mixture by turns.
        aggregate: learn from the labels of all rounds, or of the latest.
        replayed: labels of earlier rounds in a step.
        solved: learn only from episodes that end right.
        turns: of an episode, at most.
        teacher: a language model: an engine, or the specification of one; ``None`` for the environment's plan.
        soft: how many tokens of a teacher's distribution are learned at every token of a label; 0 for labels alone.
            The teacher is then a model of this process with the student's tokens, engine ``hf``.

    Raises:
        UsageError: an option out of range, or soft labels of a teacher who only speaks.

    Source: DAgger (arXiv 1011.0686) for language agents (arXiv 2605.12913), the schedule from notes on the latter.
    """
    mixing = Mixing(beta, fall, floor, decay, switch)
    objective: SFT | SoftLabels = SFT("sequence_sum")
    if teacher is not None:
        teacher = judge_of(teacher, "S176")
    if soft:
        if (knows := getattr(teacher, "policy", None)) is None:
            raise UsageError(
                "S176: soft labels need a teacher whose distributions can be read; set teacher = {name = 'hf', model = "
                "...}, or soft = 0"
            )
        objective = SoftLabels(TeacherTokens(knows, soft), "sequence_sum")
    options = {"name": "dagger", "mixing": mixing, "turns": turns, **({} if teacher is None else {"teacher": teacher})}
    rollout = {**options, "environment": environment} if environment is not None else "single_turn"
    return Method(
        rollout=rollout,
        select=Aggregated("labels", aggregate, replayed, solved, mixing),
        objective=objective,
    )


@dataclass(slots=True)
class Mixing:
    """Who acts in which turn of which round.

    Raises:
        UsageError: ``beta``, ``fall``, ``floor`` or ``decay`` outside [0, 1], or ``switch`` below 0.
    """

    beta: float = 1.0
    fall: float = 0.2
    floor: float = 0.6
    decay: float = 1.0
    switch: int | None = None
    round: int = 0

    def __post_init__(self) -> None:
        shares = {name: float(getattr(self, name)) for name in ("beta", "fall", "floor", "decay")}
        if not all(0 <= value <= 1 for value in shares.values()) or (self.switch or 0) < 0:
            listed = ", ".join(f"{name} {value:g}" for name, value in shares.items())
            raise UsageError(f"S176: {listed} must lie in [0, 1], switch {self.switch} be >= 0")

    @property
    def share(self) -> float:
        """beta of the round."""
        return float(self.beta * max(self.floor, self.decay**self.round - self.fall * self.round))

    def begins(self, rng: np.random.Generator) -> int | None:
        """Return how many turns of an episode are the student's before the switch, ``None`` where there is none."""
        return None if self.switch is None else int(rng.integers(self.switch * self.round + 1))

    def teacher_acts(self, turn: int, begins: int | None, rng: np.random.Generator) -> bool:
        """Whether turn number ``turn``, from 0, is the teacher's."""
        return bool(rng.random() < self.share) if begins is None else turn >= begins


@part("rollout", "dagger")
class Dagger(Labelling):
    """Plays as ``multi_turn`` with a teacher in some of the turns, and adds what he would do in every state.

    What the teacher says is no token of the policy: it stands in the episode without log-probabilities. A group of
    labels follows the groups that were asked, for each task. Evaluations are the student's alone.

    The teacher is the environment's plan, or a model that is shown the conversation as it stands, with the tools, and
    says what he finds likeliest. Where he fails, the episode has no verdict.

    Args:
        environment, sampling, turns, calls, attempts: see :class:`~assay.rollout.turns.multi_turn.MultiTurn`.
        mixing: who acts when: of :func:`dagger`, or options of :class:`Mixing`.
        progress: supplied by the run, whose steps are the rounds; without it each collection is one.
        teacher: an engine, or the specification of one; ``None`` for the environment's plan.

    Raises:
        UsageError: no teacher, and an environment without a plan; of a step, an engine of several processes.
    """

    name = "dagger"

    def __init__(
        self,
        environment: str | dict[str, Any],
        sampling: Sampling,
        mixing: Any = None,
        turns: int = 8,
        calls: Any = "auto",
        attempts: int = 2,
        progress: Callable[[], tuple[int, int]] | None = None,
        teacher: Any = None,
    ):
        super().__init__(environment, sampling, turns, calls=calls, attempts=attempts)
        self.progress = progress
        self._begins: dict[str, int | None] = {}
        self.mixing = mixing if isinstance(mixing, Mixing) else Mixing(**(mixing or {}))
        self.teacher = None if teacher is None else judge_of(teacher, "rollout 'dagger'")
        if self.teacher is None and not isinstance(self.worlds.here(), Guided):
            raise UsageError(
                f"rollout 'dagger': environment {self.worlds.name!r} has no plan to label states by; name a teacher"
            )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        if self.progress is not None:
            self.mixing.round = self.progress()[0]
        self._begins = {}
        groups = super().collect(asks, engine, rng)
        self._metrics["dagger/beta"] = self.mixing.share
        self.mixing.round += 1
        return groups

    def _said(self, going: Sequence[Live], engine: Any) -> list[Episode]:
        if self._labels is None:
            return super()._said(going, engine)
        chosen: dict[int, Episode] = {}
        labels = self._planned(going, engine) if self.teacher is None else self._taught(going, engine)
        for i, (live, label) in enumerate(zip(going, labels, strict=True)):
            if label is None:
                continue
            self.note(live, label)
            if live.trajectory not in self._begins:
                self._begins[live.trajectory] = self.mixing.begins(live.rng)
            if self.mixing.teacher_acts(len(live.turns), self._begins[live.trajectory], live.rng):
                chosen[i] = label
        acting = [live for i, live in enumerate(going) if i not in chosen and live.stop is None]
        found = iter(super()._said(acting, engine) if acting else [])
        nothing = np.zeros(0, dtype=np.int64)
        lost = Episode(nothing, nothing, nothing > 0, None, "", "error")
        return [chosen[i] if i in chosen else lost if live.stop is not None else next(found)
                for i, live in enumerate(going)]  # fmt: skip

    def _planned(self, going: Sequence[Live], engine: Any) -> list[Episode | None]:
        """Return what the plan does in each present state, as a response to all that came before it; ``None`` where it
        is at its end."""
        out: list[Episode | None] = []
        for live in going:
            plan: Sequence[Action] = ()
            try:
                plan = live.played.ask("gold")
            except EnvironmentFailure as error:
                live.lose(str(error))
            if not plan:
                out.append(None)
                continue
            calls = plan[0].calls if self.calls == "python" else ()
            text = written(calls, self.calls) if calls else plan[0].text
            out.append(label_of(live.context, np.asarray(engine.encode_response(text), dtype=np.int64), text))
        return out

    def _taught(self, going: Sequence[Live], engine: Any) -> list[Episode | None]:
        """Return what the model says in each present state, likewise; ``None`` where it failed."""
        assert self.teacher is not None
        sampling = replace(self.sampling, temperature=0.0)
        asked = [Request(as_messages(self.context.shown(live), live.tools), 1, sampling, 0) for live in going]
        out: list[Episode | None] = []
        for live, [said] in zip(going, self.teacher.generate(asked), strict=True):
            # What was cut has no end that could be learned.
            tokens = engine.encode_response(said.text, end=said.stop != "length") if said.text else ()
            if said.stop == "error" or not len(tokens):
                live.lose(f"the teacher failed: {said.meta.get('error', 'he said nothing')}")
                out.append(None)
            else:
                out.append(label_of(live.context, np.asarray(tokens, dtype=np.int64), said.text))
        return out


@dataclass(slots=True)
class Aggregated(Labels):
    """Labels of all rounds, see :class:`~assay.select.labels.Labels`; which round it is is kept with them."""

    mixing: Mixing = field(default_factory=Mixing)

    def state_dict(self) -> dict[str, Any]:
        return {**Labels.state_dict(self), "round": self.mixing.round}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        Labels.load_state_dict(self, state)
        self.mixing.round = state["round"]


def arm(decay: float) -> dict[str, Any]:
    """Return the arm of a decay in setting ``environment``."""
    mixing = {"fall": 0.0, "floor": 0.0, "decay": decay}
    return {"name": "S176", "rollout": {"name": "dagger", "mixing": mixing, "turns": 4}}


claims(
    Claim(
        paper="S176",
        text="Labels in the states that the student itself comes to make him reach the goal more often than labels of "
        "as many episodes of the teacher's own.",
        setting="environment",
        arms={"dagger": arm(0.5), "cloning": arm(1.0)},
        better="dagger",
        baseline="cloning",
        measure="area",
        options={"environment": {"name": "corridor", "rooms": 3, "moves": 4}, "turns": 4, "steps": 60},
        sweep={"lr": (0.3, 1.0, 3.0, 10.0, 30.0)},
        unequal="the teacher's turns are not sampled; both arms play as many episodes",
    ),
)
