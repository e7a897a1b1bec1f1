"""S144: problems are written by way of a rationale, and which rationale is right is learned with the problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.engines.writing import WRITING
from assay.errors import UsageError
from assay.learning.likelihood import Writes
from assay.tasks.making.filters import Agreement, PassRate
from assay.tasks.making.operators import Concepts
from assay.tasks.making.sampled_concepts import SampledConcepts
from assay.tasks.making.work import Dropped, Here, Pipeline, Want, Work, child, noted
from assay.types import Task

PROBLEM = "Problem:\n"
"""Stands between the rationale and the problem in what the generator writes."""
GENERATE = """Design a problem that needs these concepts. Think first about how they come together, then state the
problem after a line "Problem:".

Concepts:
{concepts}
"""
INFER = """Somebody designed this problem from these concepts. Say how they thought about it.

Concepts:
{concepts}

Problem:
{problem}
"""


@dataclass(frozen=True, slots=True)
class Annotated:
    """A seed: concepts c, a rationale z that a strong model has given, and the problem x."""

    concepts: tuple[str, ...]
    rationale: str
    problem: str

    @property
    def given(self) -> str:
        """What the generator is asked."""
        return filled(GENERATE, concepts=_listed(self.concepts))

    @property
    def asked(self) -> str:
        """What the posterior is asked."""
        return filled(INFER, concepts=_listed(self.concepts), problem=self.problem)

    def joint(self, rationale: str) -> str:
        """What the generator writes where it thinks in these words: z, then x."""
        return f"{rationale}\n{PROBLEM}{self.problem}"


def _listed(concepts: Sequence[str]) -> str:
    return "\n".join(f"- {name}" for name in concepts)


def elbo(joint: np.ndarray, posterior: np.ndarray) -> float:
    """Return E_q[log p(z, x | c)] - E_q[log q(z | c, x)], at most log p(x | c), and equal to it at q ~ p(z, x | c).

    Args:
        joint: ``(Z,)`` log p(z, x | c) of every rationale.
        posterior: ``(Z,)`` q(z | c, x), adds up to 1.
    """
    used = posterior > 0
    return float((posterior[used] * (joint[used] - np.log(posterior[used]))).sum())


def chosen(rewards: Sequence[float]) -> int:
    """Return the rationale of the highest R(z) = log p(x | z, c) + log p(z | c), of equal ones the first."""
    return int(np.argmax(rewards))


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the loop, means over seeds.

    Attributes:
        reward: R of the rationales that were chosen.
        drawn: mean R of those that were drawn.
        bound: the estimate of the bound from the rationales drawn, mean of R - log q.
    """

    reward: float
    drawn: float
    bound: float


def learn(
    generator: Writes, posterior: Writes, seeds: Sequence[Annotated], rounds: int = 3, k: int = 8, seed: int = 0
) -> list[Round]:
    """Train both models: first on the annotated seeds, then in turns by rationales that the posterior draws.

        cold start: max log p(z, x | c), max log q(z | c, x) over the annotations
        E: z_1 .. z_K ~ q(. | c, x);   z* = argmax_k log p(x | z_k, c) + log p(z_k | c);   max log q(z* | c, x)
        M: max log p(z*, x | c)

    Args:
        generator: p(z, x | c), which writes the rationale and then the problem.
        posterior: q(z | c, x).
        seeds: annotated problems.
        rounds: E and M steps, 0 for the cold start alone.
        k: K, rationales that are drawn for a seed.
        seed: of all draws.

    Raises:
        UsageError: no seeds, or no rationale to be drawn.
    """
    if not seeds or k < 1 or rounds < 0:
        raise UsageError("S144 learns from one annotated problem or more, by one rationale or more for each")
    generator.fit([(s.given, s.joint(s.rationale)) for s in seeds], seed)
    posterior.fit([(s.asked, s.rationale) for s in seeds], seed)
    done: list[Round] = []
    for number in range(1, rounds + 1):
        drawn = posterior.draw([s.asked for s in seeds], k, seed + 1_000_003 * number)
        flat = [(s, z) for s, row in zip(seeds, drawn, strict=True) for z in row]
        joint = np.array(generator.score([(s.given, s.joint(z)) for s, z in flat])).reshape(len(seeds), k)
        own = np.array(posterior.score([(s.asked, z) for s, z in flat])).reshape(len(seeds), k)
        best = [chosen(row.tolist()) for row in joint]
        taken = [row[i] for row, i in zip(drawn, best, strict=True)]
        posterior.fit([(s.asked, z) for s, z in zip(seeds, taken, strict=True)], seed + number)
        generator.fit([(s.given, s.joint(z)) for s, z in zip(seeds, taken, strict=True)], seed + number)
        at = np.arange(len(seeds))
        done.append(Round(float(joint[at, best].mean()), float(joint.mean()), float((joint - own).mean())))
    return done


@dataclass(frozen=True, slots=True)
class WriteByRationale:
    """Replaces a set of concepts by the problem that the writer states after its rationale, ``meta["rationale"]``.

    Args:
        kind: of the problem.
        sampling: of the reply.
    """

    kind: str = "math"
    sampling: Sampling = WRITING

    def __call__(self, task: Task, here: Here) -> Work:
        prompt = filled(GENERATE, concepts=_listed(task.meta["concepts"]))
        [[reply]] = yield [Want(prompt, 1, self.sampling)]
        rationale, mark, problem = reply.text.partition(PROBLEM)
        if reply.stop not in ("eos", "stop") or not mark or not problem.strip():
            return Dropped("no problem is written")
        facts = {"rationale": rationale.strip()}
        return child(task, "write", 0, prompt=problem.strip(), reference=None, kind=self.kind, meta=facts)


@dataclass(frozen=True, slots=True)
class SelfPlay:
    """Notes judged responses of a solver in ``meta["responses"]``; drops what it always or never solves.

    Args:
        n: responses.
        keep: ``pairs``: as many right and wrong ones as there are of both, for DPO; ``first``: the first right one, as
            the solution of the task, for SFT, of which what is always solved is not dropped.
        by: who responds: the solver itself, or a teacher in that role.
        sampling: of the responses.
    """

    n: int = 64
    keep: Literal["pairs", "first"] = "pairs"
    by: str = "solver"
    sampling: Sampling = Sampling(1024, 1.2)  # noqa: RUF009  # frozen

    def __call__(self, task: Task, here: Here) -> Work:
        [replies] = yield [Want(task.prompt, self.n, self.sampling, self.by)]
        judged = [(r.text, here.judge(task, r.text).passed) for r in replies]
        right = list(dict.fromkeys(text for text, passed in judged if passed is True))
        wrong = list(dict.fromkeys(text for text, passed in judged if passed is False))
        if not right:
            return Dropped("never solved" if wrong else "no response can be judged")
        if self.keep == "first":
            return replace(task, solution=right[0])
        if not wrong:
            return Dropped("always solved")
        both = zip(right, wrong, strict=False)
        rows = [{"text": t, "reward": r} for pair in both for t, r in zip(pair, (1.0, 0.0), strict=True)]
        return noted(task, responses=rows)


@paper(
    "S144",
    "PromptCoT 2.0",
    arxiv="2509.19894",
    seams=["tasks"],
    essentials={
        "a concept leads to a rationale and that to a problem": "test_problems_by_way_of_rationales",
        "both models begin from annotations": "test_the_loop_learns_both_models",
        "the E step takes the rationale of the highest joint likelihood": "test_the_reward_of_a_rationale",
        "the M step fits the generator to it; the bound rises": "test_the_loop_learns_both_models",
        "the bound is tight at the exact posterior, and never falls": "test_the_bound_of_a_table",
        "language models are scored and fitted": "test_a_language_model_is_scored_and_fitted",
        "answers by majority": "tasks/making/test_steps.py::test_a_majority_answers",
        "what is solved in half of the attempts is left out": "test_what_is_solved_in_half_of_the_attempts_is_left_out",
        "self-play: what is always or never solved is dropped, right and wrong make pairs": "test_self_play",
        "it acts in training": "test_pairs_are_learned_from",
    },
    choices=(
        "three rounds; the posterior is fitted to the best rationale, rejection style",
        "concepts are drawn as in S079",
        "right and wrong responses are paired in their order, those left over are dropped",
        "no number of votes is asked of a majority, and attempts are other replies than the votes and the play",
        "problems are answered by majority: the tests that a model writes for programs are not made",
        "the words of prompts",
    ),
)
def promptcot2(
    n: int = 1000,
    size: int = 5,
    votes: int = 8,
    least: int = 1,
    attempts: int = 8,
    most: int = 3,
    tries: int = 64,
    keep: Literal["pairs", "first"] = "pairs",
    embed: Callable[[Sequence[str]], np.ndarray] | None = None,
) -> Pipeline:
    """Problems by way of rationales: ``assay tasks make S144``, with the generator that :func:`learn` trained.

        log p(x | c) >= E_q[log p(z, x | c)] - E_q[log q(z | c, x)],   best at q(z | c, x) ~ p(z, x | c)

    Roles: ``annotator`` names the concepts of the seeds, the writer writes, the solver answers and plays.

    Args:
        n: problems.
        size, embed: see :class:`~assay.tasks.making.sampled_concepts.SampledConcepts`.
        votes, least: answers to a problem, and those that have to agree.
        attempts, most: no pairs are made of a problem that the solver gets right in more than ``most`` of its attempts;
            0 attempts leave out none.
        tries: responses of the solver's play.
        keep: see :class:`SelfPlay`.

    Raises:
        UsageError: ``most`` not from 0 to ``attempts``.

    Source: PromptCoT 2.0 (arXiv 2509.19894) and its authors' instructions; what is left out, from notes on it.
    """
    if attempts and not 0 <= most <= attempts:
        raise UsageError(f"S144: {most} right of {attempts} attempts is no bound")
    steps: list[tuple[str, Any]] = [
        ("concepts", Concepts()),
        ("sets", SampledConcepts(n, size, embed=embed)),
        ("write", WriteByRationale()),
        ("agreement", Agreement(votes, least)),
        *([("hard", PassRate(attempts, 0.0, most / attempts))] if attempts and keep == "pairs" else []),
        ("play", SelfPlay(tries, keep)),
    ]
    return Pipeline("S144", steps)


claims(
    Claim(
        paper="S144",
        text="Problems become likelier under a generator that learns from the likeliest of eight rationales than under "
        "one that learns from any rationale that the posterior draws.",
        setting="rationales",
        arms={"best of 8": {"k": 8}, "any": {"k": 1}},
        better="best of 8",
        baseline="any",
        measure="likelihood",
        evidence="mechanism",
        unequal="choosing among more rationales is what is compared",
    )
)
