"""Who says how good a response, or the beginning of one, is: verifiers, functions, judges, step scorers, confidence."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from assay.engines.base import Engine
from assay.errors import RunError, UsageError, nearest
from assay.from_file import is_reference
from assay.inference.named import read_spec
from assay.inference.scoring.base import Score, Scorer, mean_logprob
from assay.registry import build, names, part
from assay.rewards.function import load_function
from assay.rewards.process.step_scores import StepScorer, make_scorer
from assay.rewards.step_models.examples import StepExample
from assay.signals.steps import Steps, step_texts
from assay.types import Episode, Task, Verdict
from assay.verify.episodes import judge_episodes
from assay.verify.kind import KindVerifier
from assay.verify.make import make_verifier

Reduce = Literal["min", "product", "mean", "sum", "last", "max", "geometric", "mean_logit", "mean_odds"]
OF_CHANCES: tuple[Reduce, ...] = ("product", "geometric", "mean_logit", "mean_odds")
"""Those that mean something of probabilities alone."""
SURE = 2.0**-40
"""A probability is held this far from 0 and 1 where its odds are taken."""


@part("scorer", "verifier")
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


@part("scorer", "function")
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


@part("scorer", "confidence")
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


@part("scorer", "steps")
@dataclass(frozen=True, slots=True)
class BySteps:
    """The scores of a response's steps in one number: a process reward model.

    Args:
        scorer: see :func:`assay.rewards.process.step_scores.make_scorer`: a folder that ``assay train-prm`` wrote or
            one with a token classifier, a function of task and steps, a step scorer.
        by: where steps end, see :class:`~assay.signals.steps.Steps`.
        reduce: see :func:`reduced`.
        unit: scores in [-1, 1] are first made probabilities (1 + s) / 2.

    Raises:
        UsageError: ``reduce`` means nothing of scores that are no probabilities, and ``unit`` is false.
    """

    scorer: Any
    by: Steps = field(default_factory=lambda: Steps("newline"))
    reduce: Reduce = "min"
    unit: bool = True
    _made: StepScorer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reduce in OF_CHANCES and not self.unit:
            raise UsageError(f"scorer 'steps': reduce {self.reduce!r} is of probabilities; leave unit as it is")
        object.__setattr__(self, "_made", make_scorer(self.scorer))

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        found = scored_steps(self._made, self.by, pairs, engine)
        values = [
            None if row is None else reduced([(1 + s) / 2 if self.unit else s for s in row], self.reduce)
            for row in found
        ]
        return [Score(v, read_tokens(e)) for v, (_, e) in zip(values, pairs, strict=True)]

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        return len(engine.encode(task.prompt)) + response if isinstance(response, int) else read_tokens(response)


def scored_steps(
    scorer: StepScorer, by: Steps, pairs: Sequence[tuple[Task, Episode]], engine: Engine
) -> list[Sequence[float] | None]:
    """Return the score of each step of each response; ``None`` where there is no step or no score."""
    spans = [by.of(e, engine.decode) for _, e in pairs]
    texts = [step_texts(e, s, engine.decode) for (_, e), s in zip(pairs, spans, strict=True)]
    rows = [i for i, steps in enumerate(texts) if steps]
    by_token = getattr(scorer, "score_examples", None)
    if by_token is None:
        found = scorer.scores([(pairs[i][0], texts[i]) for i in rows])
    else:
        found = by_token(
            [StepExample(pairs[i][0], tuple(texts[i]), (), replace(pairs[i][1], spans=spans[i])) for i in rows]
        )
    out: list[Sequence[float] | None] = [None] * len(pairs)
    for i, row in zip(rows, found, strict=True):
        out[i] = row
    return out


def read_tokens(episode: Episode) -> int:
    """Return how many tokens there are to read for a model that is shown prompt and response."""
    return len(episode.prompt) + len(episode.tokens) if len(episode.tokens) else 0


def reduced(scores: Sequence[float], how: Reduce) -> float:
    """Return one number for the scores p_1 ... p_K of steps; min and product of .9, .8, .95 are .8 and .684.

    ``min``, ``max``, ``sum``, ``mean``, ``last`` and ``product``, and of probabilities

        geometric   (prod p_k)^(1/K)
        mean_logit  sigmoid(mean log(p_k / (1 - p_k)))
        mean_odds   mean p_k / (1 - p_k)

    Source: the last two are of the process reward models that RewardMATH (arXiv 2410.01729) compares.
    """
    if how in ("mean_logit", "mean_odds"):
        held = [min(max(p, SURE), 1 - SURE) for p in scores]
        odds = [p / (1 - p) for p in held]
        if how == "mean_odds":
            return math.fsum(odds) / len(odds)
        return 1 / (1 + math.exp(-math.fsum(map(math.log, odds)) / len(odds)))
    functions: dict[str, Callable[[Sequence[float]], float]] = {
        "product": math.prod,
        "geometric": lambda s: math.prod(s) ** (1 / len(s)),
        "min": min,
        "max": max,
        "sum": math.fsum,
        "mean": lambda s: math.fsum(s) / len(s),
        "last": lambda s: s[-1],
    }
    return float(functions[how](scores))


def as_scorer(spec: Any) -> Scorer:
    """Return the scorer that something stands for.

    - ``verifier`` (the tasks' own), ``confidence``, ``judge`` (the model judges itself), or a table with ``name`` and
      options, e.g. ``{"name": "steps", "scorer": "path/to/prm", "reduce": "last"}``, or that as a person writes it,
      ``steps(scorer=path/to/prm,reduce=last)``;
    - ``path/to/file.py:name``, a class of scorers or a function; a function of task and response text: a number, a
      verdict or ``None``;
    - an engine, which judges; a step scorer, such as :class:`assay.rewards.step_models.classifier.ClassifierPRM`;
    - any :class:`Scorer`.

    Raises:
        UsageError: it is none of these, or an option does not fit.
    """
    if isinstance(spec, Scorer):
        return spec
    if isinstance(spec, StepScorer):
        return BySteps(spec)
    if isinstance(spec, Engine):
        return build("scorer", {"name": "judge", "engine": spec})
    if isinstance(spec, str) and is_reference(spec) and not inspect.isclass(load_function(spec)):
        return ByFunction(load_function(spec))
    if isinstance(spec, str):
        spec = read_spec(spec) if "(" in spec else {"name": spec}
    if isinstance(spec, Mapping):
        name, known = str(spec.get("name", "")), names("scorer")
        if not is_reference(name) and name not in known:
            raise UsageError(f"no scorer is called {name!r}{nearest(name, known)}; a function is path/to/file.py:name")
        made: Scorer = build("scorer", spec)
        return made
    if callable(spec):
        return ByVerifier(spec) if isinstance(spec, KindVerifier) or hasattr(spec, "map") else ByFunction(spec)
    raise UsageError(f"a scorer is a name, a table, a function of task and response, or an engine, not {spec!r}")
