"""Who says how good a response, or the beginning of one, is: verifiers, functions, judges, step scorers, confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from assay.engines.base import Engine
from assay.errors import RunError, UsageError, nearest
from assay.registry import call
from assay.rewards.function import load_function
from assay.rewards.segments import Steps, step_texts
from assay.rewards.step_scores import StepScorer, make_scorer
from assay.types import Episode, Task, Verdict
from assay.verify.episodes import judge_episodes
from assay.verify.kind import KindVerifier
from assay.verify.make import make_verifier

Reduce = Literal["min", "product", "mean", "sum", "last", "max"]


@dataclass(frozen=True, slots=True)
class Score:
    """What a scorer says of one response.

    Attributes:
        value: larger is better; ``None`` where it could not tell, which is never a low score.
        tokens: it read and generated to say so.
        feedback: what a model can learn from it.
    """

    value: float | None
    tokens: int = 0
    feedback: str = ""


@runtime_checkable
class Scorer(Protocol):
    """Scores responses, whole or begun, of whichever tasks."""

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> Sequence[Score]:
        """Return one score per pair; ``engine`` is the one that made the responses."""
        ...

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        """Return how many tokens it can take to score a response, at most; budgets of tokens are kept by it.

        Args:
            task: of the response.
            response: one that is there; or, of one that is yet to be made, its length in tokens, for which it is enough
                to be about right.
            engine: which makes the responses.
        """
        ...


@dataclass(frozen=True, slots=True)
class ByVerifier:
    """The score of a verifier's verdict; nothing where it abstains. It costs no tokens.

    Args:
        verifier: judges, anything :func:`assay.verify.make.make_verifier` takes; with the task's own one, which knows
            the reference, the result is an upper bound.
    """

    verifier: Any = field(default_factory=KindVerifier)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verifier", make_verifier(self.verifier))

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        verdicts = judge_episodes(self.verifier, pairs)
        return [Score(None if v.passed is None else v.score, 0, v.feedback) for v in verdicts]

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class ByFunction:
    """A function ``score(task, response)`` of the text, which returns a number, a verdict, or ``None`` if it cannot."""

    function: Callable[[Task, str], Any]

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        out = []
        for task, episode in pairs:
            try:
                found = self.function(task, episode.text)
                if isinstance(found, Verdict):
                    out.append(Score(None if found.passed is None else found.score, 0, found.feedback))
                    continue
                value = None if found is None else float(found)
            except (Exception, SystemExit) as error:
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
                raise RunError(f"the scorer raised {reason} for a response to task {task.id}") from error
            if value is not None and not math.isfinite(value):
                raise RunError(f"the scorer returned {value} for a response to task {task.id}; return None for unknown")
            out.append(Score(value))
        return out

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Confidence:
    """How likely the model found the response when it drew it: exp of its mean log-probability per token, in (0, 1].

    Args:
        total: the sum of log-probabilities in place of their mean, which long responses have a low one of; its exp is
            the probability of the response.
        negative: minus that, so that what is least likely scores best.
    """

    total: bool = False
    negative: bool = False

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        return [Score(self._value(e)) for _, e in pairs]

    def _value(self, episode: Episode) -> float | None:
        if (found := mean_logprob(episode, self.total)) is None:
            return None
        return -math.exp(found) if self.negative else math.exp(found)

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        return 0


def mean_logprob(episode: Episode, total: bool = False) -> float | None:
    """Return the mean (or the sum) log-probability of the tokens the policy made; ``None`` where it is not known."""
    if episode.logprobs is None or not episode.mask.any():
        return None
    own = episode.logprobs[episode.mask].astype(np.float64)
    value = float(own.sum() if total else own.mean())
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class BySteps:
    """The scores of a response's steps in one number: a process reward model.

    Args:
        scorer: see :func:`assay.rewards.step_scores.make_scorer`: a folder with a token classifier, a function of task
            and steps, a step scorer.
        by: where steps end, see :class:`~assay.rewards.segments.Steps`.
        reduce: ``min``, ``product``, ``mean``, ``sum``, ``last`` or ``max`` over the steps.
        unit: scores in [-1, 1] are first made probabilities (1 + s) / 2, without which a product means nothing.
    """

    scorer: Any
    by: Steps = field(default_factory=lambda: Steps("newline"))
    reduce: Reduce = "min"
    unit: bool = True
    _made: StepScorer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_made", make_scorer(self.scorer))

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        texts = [step_texts(e, self.by.of(e, engine.decode), engine.decode) for _, e in pairs]
        rows = [i for i, steps in enumerate(texts) if steps]
        found = self._made.scores([(pairs[i][0], texts[i]) for i in rows])
        values: list[float | None] = [None] * len(pairs)
        for i, row in zip(rows, found, strict=True):
            if row is not None:
                values[i] = reduced([(1 + s) / 2 if self.unit else s for s in row], self.reduce)
        return [Score(v, _read(e)) for v, (_, e) in zip(values, pairs, strict=True)]

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        return len(engine.encode(task.prompt)) + response if isinstance(response, int) else _read(response)


def _read(episode: Episode) -> int:
    """Return how many tokens there are to read for a model that is shown prompt and response."""
    return len(episode.prompt) + len(episode.tokens) if len(episode.tokens) else 0


def reduced(scores: Sequence[float], how: Reduce) -> float:
    """Return one number for the scores of steps; min and product of .9, .8, .95 are .8 and .684."""
    if how == "product":
        return math.prod(scores)
    functions: dict[str, Callable[[Sequence[float]], float]] = {
        "min": min,
        "max": max,
        "sum": math.fsum,
        "mean": lambda s: math.fsum(s) / len(s),
        "last": lambda s: s[-1],
    }
    return float(functions[how](scores))


def scorers() -> dict[str, Callable[..., Any]]:
    """Return the scorers that a name stands for."""
    from assay.inference.answer_confidence import AnswerConfidence
    from assay.inference.flex import Flex
    from assay.inference.joint import ByJointHead
    from assay.inference.judge import Judge
    from assay.inference.value_head import ByValueHead

    return {
        "verifier": ByVerifier,
        "function": ByFunction,
        "confidence": Confidence,
        "answer_confidence": AnswerConfidence,
        "steps": BySteps,
        "judge": Judge,
        "flex": Flex,
        "value": ByValueHead,
        "joint": ByJointHead,
    }


def as_scorer(spec: Any) -> Scorer:
    """Return the scorer that something stands for.

    - ``verifier`` (the tasks' own), ``confidence``, ``judge`` (the model judges itself), or a table with ``name`` and
      options, e.g. ``{"name": "steps", "scorer": "path/to/prm", "reduce": "last"}``;
    - ``path/to/file.py:name``, or a function of task and response text: a number, a verdict or ``None``;
    - an engine, which judges; a step scorer, such as :class:`assay.rewards.prm.ClassifierPRM`;
    - any :class:`Scorer`.

    Raises:
        UsageError: it is none of these, or an option does not fit.
    """
    if isinstance(spec, Scorer):
        return spec
    if isinstance(spec, StepScorer):
        return BySteps(spec)
    if isinstance(spec, Engine):
        from assay.inference.judge import Judge

        return Judge(spec)
    if isinstance(spec, str) and ".py:" in spec:
        return ByFunction(load_function(spec))
    if isinstance(spec, str):
        spec = {"name": spec}
    if isinstance(spec, Mapping):
        options = dict(spec)
        name, known = str(options.pop("name", "")), scorers()
        if name not in known:
            raise UsageError(f"no scorer is called {name!r}{nearest(name, known)}; a function is path/to/file.py:name")
        made: Scorer = call(known[name], options, f"scorer {name!r}")
        return made
    if callable(spec):
        return ByVerifier(spec) if isinstance(spec, KindVerifier) or hasattr(spec, "map") else ByFunction(spec)
    raise UsageError(f"a scorer is a name, a table, a function of task and response, or an engine, not {spec!r}")


def best(scores: Sequence[Score]) -> int | None:
    """Return the first of the best-scored; ``None`` where nothing has a score."""
    known = [i for i, s in enumerate(scores) if s.value is not None]
    return max(known, key=lambda i: (scores[i].value, -i)) if known else None


def unscored(scores: Sequence[Score]) -> int:
    """Count what could not be scored."""
    return sum(s.value is None for s in scores)
