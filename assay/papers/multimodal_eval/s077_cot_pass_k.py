"""S077: pass@k that counts a sample only if its reasoning is right too, and why rewards for answers teach reasoning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.evaluate.chain_judge import TEMPLATE, ChainJudge, settle
from assay.evaluate.chain_judge import Rule as Mode
from assay.records.evaluation import Evaluation
from assay.statistics.intervals import mean_interval
from assay.types import Task, Verdict
from assay.verify.kind import KindVerifier


@paper(
    "S077",
    "CoT-Pass@K",
    arxiv="2506.14245",
    seams=["verify", "evaluate"],
    essentials={
        "pass@K without bias, of samples whose answer and whose chain of thought are both right": (
            "test_only_right_answers_with_right_chains_count"
        ),
        "a judge model reads each chain several times; any, most or all opinions must agree": (
            "test_opinions_settle_by_mode_and_unreadable_ones_do_not_count"
        ),
        "three opinions of a model, most of which decide": "test_the_judge_is_asked_as_in_the_paper",
        "the judge goes through the steps, names faults in five kinds, and says yes or no in a box": (
            "test_the_judge_is_asked_for_what_the_paper_asks_for"
        ),
        "P(CC | CA), the share of right answers with a right chain, of each task and averaged over tasks": (
            "test_shares_by_hand"
        ),
        "theorem: in large groups E[A | CC] is (1 - p)(alpha - beta) / sigma, of others -p (alpha - beta) / sigma": (
            "test_the_theorem_in_numbers"
        ),
        "it is the mean advantage over every group that the credit can see": (
            "test_the_finite_group_is_the_mean_over_every_group"
        ),
        "trained on answers alone, right chains take over where alpha > beta, and only there": (
            "test_learning_follows_the_sign"
        ),
    },
    choices=(
        "words of the judge's template: ours; it asks for what the paper's asks for",
        "judge: any engine, where the paper asks one strong reasoning model",
        "opinions that fail or say neither do not count; a chain without others is left out, as is its right answer",
    ),
)
def cot_pass_k(
    judge: Any,
    n: int = 3,
    mode: Mode = "majority",
    every: bool = False,
    template: str = TEMPLATE,
    sampling: Sampling | None = None,
) -> CotPassK:
    """A measure, not a training method: pass@k over samples whose answer and whose chain of thought are both right.

        CoT-Pass@K = mean over tasks of 1 - C(m - c, K) / C(m, K)

    c counts the samples with a right answer (CA) and a right chain (CC) among the m whose answer and chain could be
    judged. The chain is right if ``any``, the ``majority`` or ``all`` of n opinions of a judge say so; opinions that
    cannot be read are left out, and a chain without a readable one is an abstention, as is an answer's.

        cot = cot_pass_k(engine)
        found = cot(evaluation)             # an Evaluation with right and wrong answers
        found.both().metrics()              # intervals of CoT-Pass@K under pass@k, and the share of abstentions
        found.metrics()                     # P(CC | CA), and P(CC), P(CA | CC), P(CA | not CC) with ``every``

    ``verifier()`` is the same as a verifier, for training; ``assay eval --chain`` measures it, and keeps the opinions.

    Why rewards for answers raise P(CC): with p = P(CC), alpha = P(CA | CC), beta = P(CA | not CC),
    mu = p alpha + (1 - p) beta and sigma^2 = mu (1 - mu), GRPO's advantages have

        E[A | CC] = (1 - p) (alpha - beta) / sigma      E[A | not CC] = -p (alpha - beta) / sigma

    in large groups (:mod:`assay.statistics.chain_advantages`, which has groups of any size too): right chains are
    reinforced iff they lead to right answers more often.

    Args:
        judge: an engine, or the specification of one.
        n: opinions about each chain.
        mode: see above.
        every: judge chains of wrong answers too; they cannot count, but P(CC), alpha and beta are then known.
        template: with ``{question}`` and ``{response}``; the last box of the reply is to hold yes or no.
        sampling: of the opinions.

    Source: "Reinforcement Learning with Verifiable Rewards Implicitly Incentivizes Correct Reasoning in Base LLMs"
    (arXiv 2506.14245); the template asks for what the paper's asks for, in our words.
    """
    if judge is None:
        raise UsageError("S077: the judge must be an engine or the specification of one")
    return CotPassK(ChainJudge(judge, n, template, sampling or Sampling(max_tokens=4096)), mode, every)


@dataclass(frozen=True, slots=True)
class CotPassK:
    """See :func:`cot_pass_k`."""

    judge: ChainJudge
    mode: Mode = "majority"
    every: bool = False

    def __call__(self, evaluation: Evaluation) -> Chains:
        """Ask for opinions on the chains of an evaluation whose verdicts are on answers."""
        wanted = [i for i, s in enumerate(evaluation.samples) if s.passed or (self.every and s.passed is not None)]
        votes: list[tuple[bool | None, ...] | None] = [None] * len(evaluation.samples)
        pairs = [(evaluation.samples[i].prompt, evaluation.samples[i].response) for i in wanted]
        for i, row in zip(wanted, self.judge.votes(pairs), strict=True):
            votes[i] = row
        return Chains(evaluation, tuple(votes), self.mode)

    def verifier(self, answers: Any = None) -> RightChain:
        """Return the verifier of answer and chain; ``answers`` judges answers, by default as each task's kind says."""
        return RightChain(self.judge, self.mode, self.every, answers or KindVerifier())


@dataclass(frozen=True, slots=True)
class Chains:
    """An evaluation of answers with opinions on its chains.

    Attributes:
        evaluation: ``passed`` is of the answer.
        votes: of each sample; ``None`` where the chain was not asked about.
        mode: how they are settled, unless one is named.
    """

    evaluation: Evaluation
    votes: tuple[tuple[bool | None, ...] | None, ...]
    mode: Mode = "majority"

    def both(self, mode: Mode | None = None, unjudged: bool | None = None) -> Evaluation:
        """Return the evaluation in which a sample passes iff answer and chain are right: its pass@k is CoT-Pass@K.

        A right answer whose chain has no verdict is left out, while a wrong answer needs none and stays: a judge that
        fails often pulls the estimate down. ``unjudged`` counts such chains as wrong or as right instead; what they
        might have been lies between the two.
        """
        rows = []
        for sample, votes in zip(self.evaluation.samples, self.votes, strict=True):
            chain = settle(votes or (), mode or self.mode)
            passed = sample.passed and (unjudged if chain is None else chain)
            why = "the judge of the chain came to no verdict" if sample.passed and passed is None else sample.feedback
            rows.append(replace(sample, passed=passed, score=float(passed or 0), feedback=why))
        return replace(self.evaluation, samples=tuple(rows))

    def metrics(self) -> dict[str, float]:
        """Return shares of samples, each only where there is something it is a share of.

        ``chain|answer``: P(CC | CA), the mean over tasks of the share of their right answers whose chain is right, with
        ``/low`` and ``/high`` (95% over tasks) where two tasks or more have right answers; ``unjudged``: share of the
        chains asked about without a verdict; ``unanimous``: share of those with a verdict whose readable opinions
        agree. Where chains of wrong answers were judged too, ``chain``, ``answer|chain`` and ``answer|wrong chain``:
        p, alpha and beta of the theorem, over all samples.
        """
        said_ = [None if v is None else settle(v, self.mode) for v in self.votes]
        rows = list(zip(self.evaluation.samples, self.votes, said_, strict=True))
        asked = [(s, v, c) for s, v, c in rows if v is not None]
        known = [(s, v, c) for s, v, c in asked if c is not None]
        out: dict[str, float] = {}
        if asked:
            out["unjudged"] = 1 - len(known) / len(asked)
        if known:
            out["unanimous"] = sum(len({x for x in v if x is not None}) == 1 for _, v, _ in known) / len(known)
        tasks: dict[str, list[float]] = {}
        for s, _, c in known:
            if s.passed:
                tasks.setdefault(s.task_id, []).append(float(c))
        if tasks:
            found = mean_interval([sum(row) / len(row) for row in tasks.values()], bounds=(0, 1))
            out["chain|answer"] = found.value
            if len(tasks) > 1:
                out |= {"chain|answer/low": found.low, "chain|answer/high": found.high}
        if any(not s.passed for s, _, _ in known):
            out["chain"] = sum(c for _, _, c in known) / len(known)
            for name, kind in (("answer|chain", True), ("answer|wrong chain", False)):
                mine = [s.passed is True for s, _, c in known if c is kind]
                if mine:
                    out[name] = sum(mine) / len(mine)
        return out


@dataclass(frozen=True, slots=True)
class RightChain:
    """A verifier: right iff the answer and the chain are. A wrong answer is wrong; else an abstention of either stands.

    The parts are ``answer`` and, where it was judged, ``chain``.
    """

    judge: ChainJudge
    mode: Mode = "majority"
    every: bool = False
    answers: Any = field(default_factory=KindVerifier)

    def __call__(self, task: Task, response: str) -> Verdict:
        [verdict] = self.map([(task, response)])
        return verdict

    def map(self, pairs: Iterable[tuple[Task, str]]) -> list[Verdict]:
        """Judge many responses, with one call of the judge."""
        pairs = list(pairs)
        together = getattr(self.answers, "map", None)
        answers = list(together(pairs)) if together is not None else [self.answers(*pair) for pair in pairs]
        wanted = [i for i, v in enumerate(answers) if v.passed or (self.every and v.passed is not None)]
        votes = self.judge.votes([(pairs[i][0].question, pairs[i][1]) for i in wanted])
        chains = {i: settle(row, self.mode) for i, row in zip(wanted, votes, strict=True)}
        return [self._both(v, i in chains, chains.get(i)) for i, v in enumerate(answers)]

    def _both(self, answer: Verdict, judged: bool, chain: bool | None) -> Verdict:
        if answer.passed is None:
            return answer
        parts: dict[str, float | None] = {"answer": float(answer.passed)}
        if judged:
            parts["chain"] = None if chain is None else float(chain)
        passed = answer.passed and chain
        why = {True: "", False: "the reasoning is wrong", None: "the judge of the chain came to no verdict"}[passed]
        return Verdict(float(passed or 0), passed, parts, why if answer.passed else answer.feedback)


claims(
    Claim(
        paper="S077",
        text="Rewarded for answers alone, right chains of thought take over where they lead to right answers more "
        "often than wrong chains do, and only there.",
        setting="chains",
        evidence="construction",
        arms={
            "logic": {"name": "grpo", "setting": {"alpha": 0.9, "beta": 0.2}},
            "no difference": {"name": "grpo", "setting": {"alpha": 0.5, "beta": 0.5}},
            "luck": {"name": "grpo", "setting": {"alpha": 0.2, "beta": 0.9}},
        },
        better="logic",
        baseline="luck",
        measure="sound",
    )
)
