"""S202: a model trained on outcomes as the judge of steps, and of its own samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import filled
from assay.engines.base import Engine, Request, Sampling
from assay.engines.trie import Trie
from assay.errors import UsageError
from assay.inference.base import Answer, Budget
from assay.inference.election import clusters, elect, totals
from assay.inference.meter import Meter
from assay.inference.scoring.base import Score, Scorer, unscored
from assay.inference.scoring.scorers import as_scorer
from assay.rewards.outcome.vote import Ballot
from assay.types import Episode, Task

TEMPLATE = """Question:
{question}

Proposed solution:
{response}

Is its final answer right? Reply with one word, True or False."""


@paper(
    "S202",
    "Self-PRM",
    arxiv="2505.11227",
    seams=["verify", "inference", "evaluate"],
    essentials={
        "Self-PRM: the model judges its own k samples and the best-judged is the answer": (
            "test_by_name_the_model_judges_itself"
        ),
        "beside it the majority vote: what it comes down to without a difference in scores": (
            "test_with_constant_scores_it_is_the_majority_on_any_samples"
        ),
        "the model as process reward model: the first wrong step, or -1": (
            "test_the_judge_of_steps_reads_problem_and_steps"
        ),
        "an external process reward model chooses among the samples": (
            "test_as_a_verifier_and_as_a_scorer_of_whole_responses"
        ),
        "Self-REF: judging beside a solution of its own": (
            "test_self_ref_solves_each_problem_once_and_shows_its_solution"
        ),
        "how precise acceptance is, by difficulty": "test_how_far_acceptance_can_be_believed",
        "chi-square of solving and judging": "test_solving_and_judging_go_together",
        "while it learns to solve, how well it names the first wrong step is measured beside": (
            "training/test_judging.py::test_a_run_has_both_curves_and_learns_as_without"
        ),
    },
    choices=(
        "the score: the share of critiques that say right, or P(True) / (P(True) + P(False))",
        "of equal scores the most frequent answer",
        "the words of templates",
    ),
)
def self_prm(scorer: Any = "judge", sampling: Sampling | None = None, ballot: Ballot | None = None) -> SelfPRM:
    """At test time: k samples, each judged by the model that wrote it, and the best-judged is the answer.

        i* = argmax_i s_i,   s_i = share of critiques that call it right   (``judge``; one critique is a plain verdict)
                             s_i = P(True) / (P(True) + P(False))          (``probability``)

    Of several best-judged, the answer that most of these give. So constant scores are the majority vote, verdicts are
    the vote of the accepted (of all, where none is), and an oracle's scores are pass@k. A sample without a score is
    out of the question; where none has one, the majority decides.

    The study around it, as functions:

    - :class:`assay.rewards.process.first_error.FirstError`: the model as process reward model, which names the first
      wrong step, alone or beside its own solution (``own=True``, Self-REF); a scorer of steps (``best_of_n`` with
      scorer ``steps`` takes it, an external PRM), and a verifier;
    - :class:`assay.training.looks.judging.JudgingOfSteps`: a run's callback, which measures the judging of steps at
      every evaluation of what the run learns (``run.callbacks``, with ``evaluate.every = 10`` and ``method = "dapo"``);
    - :func:`assay.statistics.judging.precision_of_verdicts`: how far acceptance can be believed, by difficulty;
    - :func:`assay.statistics.judging.independence`: do problems it solves go with solutions it judges rightly?

    Args:
        scorer: ``judge``, ``probability``, or anything :func:`assay.inference.scoring.scorers.as_scorer` takes.
        sampling: how solutions are drawn; k is the budget.
        ballot: when two answers are one.

    Source: "Is PRM Necessary? Problem-Solving RL Implicitly Induces PRM Capability in LLMs" (arXiv 2505.11227); the
    words of templates, and the rule for ties, are ours.
    """
    return SelfPRM(scorer, sampling or Sampling(), ballot or Ballot())


@dataclass(frozen=True, slots=True)
class SelfPRM:
    """See :func:`self_prm`."""

    scorer: Any = "judge"
    sampling: Sampling = field(default_factory=Sampling)
    ballot: Ballot = field(default_factory=Ballot)

    def __post_init__(self) -> None:
        made: Scorer = TrueProbability() if self.scorer == "probability" else as_scorer(self.scorer)
        object.__setattr__(self, "scorer", made)

    def __call__(
        self, tasks: list[Task], engine: Engine, budget: Budget | int, rng: np.random.Generator
    ) -> list[Answer]:
        meter = Meter(tasks, engine, budget, rng, self.sampling, self.scorer)
        out = []
        for i, (episodes, scores) in enumerate(meter.scored()):
            values = [s.value for s in scores]
            chosen = pick(values, clusters(tasks[i], episodes, self.ballot), rng)
            out.append(meter.answer(i, episodes[chosen].text, episodes, scores=values, unscored=unscored(scores)))
        return out


def pick(values: Sequence[float | None], of: Sequence[int], rng: np.random.Generator) -> int:
    """Return which sample is the answer: of the best-scored, the first that gives their most frequent answer.

    Args:
        values: scores, ``None`` for none.
        of: number of each sample's answer, -1 for none.
        rng: not drawn from, as the first of equals wins.
    """
    known = [v for v in values if v is not None]
    top = max(known, default=None)
    best = [j for j, v in enumerate(values) if top is None or (v is not None and math.isclose(v, top, abs_tol=1e-12))]
    winner = elect(totals([of[j] for j in best], [1.0] * len(best)), "first", rng)
    return best[0] if winner is None else next(j for j in best if of[j] == winner)


@dataclass(frozen=True, slots=True)
class TrueProbability:
    """P(True) / (P(True) + P(False)) of the model's next word about a response; no score where the engine fails.

    Args:
        template: with ``{question}`` and ``{response}``.
        words: what counts as true, and as false.

    Raises:
        UsageError: a template without ``{response}``, or not two different words.
    """

    template: str = TEMPLATE
    words: tuple[str, str] = ("True", "False")

    def __post_init__(self) -> None:
        if "{response}" not in self.template or len(set(self.words)) != 2:
            raise UsageError("S202: the template must show the {response}, and the two words differ")

    def score(self, pairs: Sequence[tuple[Task, Episode]], engine: Engine, rng: np.random.Generator) -> list[Score]:
        codes = [tuple(engine.encode_response(word).tolist()) for word in self.words]
        longest = Sampling(max_tokens=max(map(len, codes)))
        trie = Trie(codes)
        asked = [
            Request(
                filled(self.template, question=task.question, response=e.text), 2, longest, 0, within=trie, beam=True
            )
            for task, e in pairs
        ]
        return [self._score(replies, codes) for replies in (engine.generate(asked) if asked else [])]

    def _score(self, replies: Sequence[Episode], codes: Sequence[tuple[int, ...]]) -> Score:
        cost = sum(len(e.tokens) for e in replies) + (len(replies[0].prompt) if replies else 0)
        said = {
            tuple(e.tokens.tolist()): float(e.logprobs.sum(dtype=np.float64))
            for e in replies
            if e.stop != "error" and e.logprobs is not None
        }
        if set(codes) - set(said):
            return Score(None, cost)
        true, false = (said[c] for c in codes)
        return Score(1 / (1 + math.exp(min(false - true, 700.0))), cost)

    def most(self, task: Task, response: Episode | int, engine: Engine) -> int:
        shown, more = ("", response) if isinstance(response, int) else (response.text, 0)
        words = sum(len(engine.encode_response(word)) for word in self.words)
        return len(engine.encode(filled(self.template, question=task.question, response=shown))) + more + words


SELECTIONS: dict[str, dict[str, Any]] = {
    "self-prm": {"name": "S202", "scorer": {"name": "judge"}},
    "external prm": {"name": "best_of_n", "scorer": {"name": "steps"}},
    "majority": {"name": "majority"},
}

claims(
    Claim(
        paper="S202",
        text="Choosing among one's samples by verdicts on each, ties by vote, is right more often than the majority "
        "vote of the same samples.",
        setting="reviewers",
        evidence="construction",
        arms={
            "self-prm": {"name": "S202", "scorer": {"name": "judge"}},
            "first accepted": {"name": "best_of_n", "scorer": {"name": "judge"}},
            "majority": {"name": "majority"},
        },
        better="self-prm",
        baseline="majority",
        measure="accuracy",
        options={"doubt": 0.0, "pause": 0.0, "tasks": 60, "budget": "32"},
    ),
    Claim(
        paper="S202",
        text="Verdicts on one's own samples are worth more the more samples there are: from 8 to 64, choosing by them "
        "gains where the majority vote hardly does. An external judge of steps is shown beside both.",
        setting="reviewers",
        evidence="construction",
        name="samples",
        arms={
            f"{name}, {k}": {**arm, "budget": k} for name, arm in SELECTIONS.items() for k in ("8", "16", "32", "64")
        },
        better="self-prm, 64",
        baseline="majority, 64",
        measure="accuracy",
        options={"doubt": 0.0, "pause": 0.0, "tasks": 60},
    ),
)
