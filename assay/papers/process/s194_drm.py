"""S194: a derivation is worth its confidence, relevance and coherence, whatever the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Loss, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.engines.base import Engine
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.objectives.picked_pairs import PickedPairs, picked
from assay.objectives.preference import DPO
from assay.ops import IMPOSSIBLE, group_mean, group_std
from assay.rewards.function import load_function
from assay.rewards.judged import judged
from assay.rewards.judges.preference_model import PreferenceModel
from assay.rewards.judges.score_of_ten import ScoreOfTen
from assay.select.pairs import Pairs
from assay.signals.answer_tokens import AnswerTokens
from assay.verify.kind import KindVerifier
from assay.verify.support.cross_encoder import CrossEncoder

Mode = Literal["added", "alone", "pairs"]
Pair = tuple[str, str]

FOLLOWS = """Two texts:

A:
{first}

B:
{second}

How far does B follow from A, or rest on it? End with one line "Score: " and a number from 0 (not at all) to 10."""

COHERES = """A question, and reasoning about it:

{first}

Reasoning:
{second}

How consistent and clear is the reasoning, whatever it comes to? End with one line "Score: " and a number from 0 to \
10."""


@paper(
    "S194",
    "DRM",
    arxiv="2510.11457",
    seams=["reward", "credit", "objective"],
    essentials={
        "confidence: the mean of log-probabilities of the reasoning, and the sum of the answer's": (
            "test_confidence_by_hand"
        ),
        "relevance: to the question, to documents where there are any, and of the answer to it": (
            "test_relevance_has_three_parts"
        ),
        "coherence, from a model of quality": "test_coherence_is_of_the_reasoning",
        "their weighted sum, each on the scale of its group": "test_dimensions_are_brought_to_one_scale",
        "added to the answer's as an advantage": "test_advantages_are_added",
        "or by itself, without any answer": "test_an_all_wrong_group_still_learns",
        "or to choose the best and the worst, for DPO with a term of fine-tuning": "test_best_against_worst",
        "it acts in training": "test_a_run_learns_from_dimensions",
    },
    choices=(
        "weights 0.2, 0.3 and 0.5, of dimensions standardised over the group",
        "relevance is the sum of its parts; to documents, of the best of them",
        "log-probabilities are those that the response was sampled with",
        "the weight of the fine-tuning term, 1, and beta, 0.1",
        "a reasoning without tokens has confidence 0 and the least coherence of its group",
    ),
)
def drm(
    entailment: Any = None,
    quality: Any = None,
    weights: tuple[float, float, float] = (0.2, 0.3, 0.5),
    mode: Mode = "added",
    relevance: Literal["sum", "mean"] = "sum",
    sft: float = 1.0,
    beta: float = 0.1,
) -> Method:
    """GRPO's advantage of the answer plus that of what the reasoning R is worth by itself, with Q the question and A
    the answer.

        conf = mean_{t in R} log p_t + sum_{t in A} log p_t
        rel  = f(Q, R) + f(D, R) + f(R, A),   f the entailment of the second by the first, D documents if any
        coh  = the quality of R as an answer to Q
        W    = w_1 N(conf) + w_2 N(rel) + w_3 N(coh),   N over the group
        A_i  = GRPO(v)_i + GRPO(W)_i  (``added``),   GRPO(W)_i  (``alone``);   v the verdict's score

    With ``pairs`` the responses of the largest and the least W of a group are learned by DPO, with a term ``sft`` times
    -log pi of the chosen one's tokens. Longer answers are the less confident, since theirs is a sum.

    Args:
        entailment: f: an engine or a table that specifies one, which is asked for a score from 0 to 10; the folder of a
            :class:`~assay.verify.support.cross_encoder.CrossEncoder`; ``path/to/file.py:function`` of (first, second);
            or an object with ``scores(pairs)``. Not needed where its weight is 0.
        quality: likewise of (question, reasoning), a folder being that of a
            :class:`~assay.rewards.judges.preference_model.PreferenceModel`.
        weights: of confidence, relevance and coherence, at least 0 each.
        mode: see above.
        relevance: parts are summed, or averaged.
        sft, beta: of ``pairs``.

    Documents are the task's ``meta["documents"]``.

    Source: DRM (arXiv 2510.11457).
    """
    reward = Dimensions(entailment, quality, weights, relevance, alone=mode != "added")
    if mode == "pairs":
        return Method(reward=reward, select=Pairs(), objective=PairsAndSFT(beta, sft))
    return Method(reward=reward, credit=Added() if mode == "added" else GRPO())


class Dimensions:
    """The verdict's score, with W of :func:`drm` as term ``drm``; or, ``alone``, W.

    No reward where a scorer could not score, log-probabilities are not known, or the verifier failed. The other terms
    are ``verdict``, ``confidence``, ``relevance`` and ``coherence`` as they are before they are compared.

    Raises:
        UsageError: negative weights or none above 0, or a weight without its scorer.
    """

    def __init__(
        self,
        entailment: Any = None,
        quality: Any = None,
        weights: Sequence[float] = (0.2, 0.3, 0.5),
        relevance: Literal["sum", "mean"] = "sum",
        alone: bool = False,
    ):
        if len(weights) != 3 or min(weights) < 0 or not any(weights):
            raise UsageError(f"reward 'S194': weights {tuple(weights)} are three numbers, not negative and not all 0")
        for name, spec, weight in (("entailment", entailment, weights[1]), ("quality", quality, weights[2])):
            if spec is None and weight:
                raise UsageError(
                    f"reward 'S194': weight {weight:g} of what it has no scorer for; name one, {name} = ..., or give "
                    "it the weight 0"
                )
        self.weights, self.relevance, self.alone = tuple(weights), relevance, alone
        self.entailment = None if entailment is None else scorer_of(entailment, FOLLOWS, Supports)
        self.quality = None if quality is None else scorer_of(quality, COHERES, PreferenceModel)
        self.signal = AnswerTokens()

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal})

    def __call__(self, batch: Batch) -> Reward:
        reasoning, answers = split(batch)
        confidence, known = confidences(batch)
        valid = judged(batch) & known
        relevance = coherence = zero = torch.zeros_like(confidence)
        if self.weights[1]:
            relevance, told = self._relevance(batch, reasoning, answers)
            valid = valid & told
        if self.weights[2]:
            coherence, told = self._coherence(batch, reasoning, valid)
            valid = valid & told
        dims = {"confidence": confidence, "relevance": relevance.to(zero), "coherence": coherence.to(zero)}
        worth = zero
        for weight, dim in zip(self.weights, dims.values(), strict=True):
            worth = worth + weight * compared(dim, batch, valid)
        verdict = torch.tensor([v.score for v in batch.verdicts], dtype=zero.dtype)
        return Reward(worth if self.alone else verdict, valid=valid, terms={"drm": worth, "verdict": verdict, **dims})

    def _relevance(
        self, batch: Batch, reasoning: Sequence[str], answers: Sequence[str]
    ) -> tuple[Float[Tensor, "N"], Bool[Tensor, "N"]]:
        """The three parts, of which one without an answer to rest on it is 0; and where all could be told."""
        pairs: list[Pair] = []
        places: list[list[list[int]]] = []
        for task, r, a in zip(batch.tasks, reasoning, answers, strict=True):
            documents = [str(d) for d in task.meta.get("documents", ())]
            parts = [[(task.question, r)], [(d, r) for d in documents], [(r, a)] if a else []]
            mine = []
            for part in parts:
                mine.append(list(range(len(pairs), len(pairs) + len(part))))
                pairs += part
            places.append(mine)
        assert self.entailment is not None
        found = scored(self.entailment, pairs)
        values, told = [], []
        for question, documents_, answer in places:
            parts_ = [question, *([documents_] if documents_ else []), answer]
            best = [[found[k] for k in part] for part in parts_]
            told.append(all(x is not None for part in best for x in part))
            sums = [max((x or 0.0 for x in part), default=0.0) for part in best]
            values.append(sum(sums) / (len(sums) if self.relevance == "mean" else 1))
        return torch.tensor(values, dtype=torch.float64), torch.tensor(told, dtype=torch.bool)

    def _coherence(
        self, batch: Batch, reasoning: Sequence[str], valid: Bool[Tensor, "N"]
    ) -> tuple[Float[Tensor, "N"], Bool[Tensor, "N"]]:
        """What the model of quality says of the reasoning; the group's least where there is none."""
        assert self.quality is not None
        empty = torch.tensor([not r.strip() for r in reasoning], dtype=torch.bool)
        asked = [i for i, none in enumerate(empty.tolist()) if not none]
        found = scored(self.quality, [(batch.tasks[i].question, reasoning[i]) for i in asked])
        values = torch.zeros(len(batch), dtype=torch.float64)
        told = empty.clone()
        for i, x in zip(asked, found, strict=True):
            values[i], told[i] = x or 0.0, x is not None
        for g in batch.group[empty].unique().tolist():
            others = (batch.group == g) & ~empty & told & valid
            values[(batch.group == g) & empty] = values[others].min() if bool(others.any()) else 0.0
        return values, told


def split(batch: Batch) -> tuple[list[str], list[str]]:
    """Return of each response the reasoning, before its answer, and the answer; without an answer all is reasoning."""
    find = batch.answer or KindVerifier().answer
    reasoning, answers = [], []
    for task, episode in zip(batch.tasks, batch.episodes, strict=True):
        place = find(task, episode.text)
        reasoning.append(episode.text if place is None else episode.text[: place.start])
        answers.append("" if place is None else episode.text[place.start : place.end])
    return reasoning, answers


def confidences(batch: Batch) -> tuple[Float[Tensor, "N"], Bool[Tensor, "N"]]:
    """Return conf of :func:`drm` by the log-probabilities of sampling, and where they are known."""
    answer = batch.signals["answer_tokens"] & batch.mask
    before = answer.to(torch.int64).cumsum(-1) == 0
    own = batch.logprobs.clamp(min=IMPOSSIBLE)
    known = ~(own.isnan() & batch.mask).any(-1)
    own = torch.where(batch.mask & known[:, None], own, 0).to(batch.rewards.dtype)
    reasoning = batch.mask & before
    mean = torch.where(reasoning, own, 0).sum(-1) / reasoning.sum(-1).clamp(min=1)
    return mean + torch.where(answer, own, 0).sum(-1), known


def compared(x: Float[Tensor, "N"], batch: Batch, valid: Bool[Tensor, "N"]) -> Float[Tensor, "N"]:
    """N of :func:`drm`: less the group's mean, by its population standard deviation; 0 where all are equal."""
    centred = x - group_mean(x, batch.group, valid)
    spread = group_std(x, batch.group, valid, ddof=0)
    return torch.where(valid & (spread > 0), centred / torch.where(spread > 0, spread, 1), 0)


@dataclass(frozen=True, slots=True)
class Added:
    """A_i = GRPO(R)_i + GRPO(W)_i: advantages are added, each by its own deviation, not rewards. W is the term ``drm``.

    Raises:
        RunError: the reward has no such term.
    """

    inner: GRPO = field(default_factory=GRPO)

    group_relative = True

    @property
    def summary(self) -> dict[str, str]:
        return self.inner.summary

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        if "drm" not in batch.reward_terms:
            raise RunError("credit 'S194': the reward has no term 'drm'; take reward S194 too (method = \"S194\")")
        own = replace(batch, rewards=batch.reward_terms["drm"].to(batch.rewards.dtype), token_rewards=None)
        return self.inner(batch) + self.inner(own)


class PairsAndSFT:
    """DPO over the picked pairs plus ``sft`` times -mean_t log pi(y_t) of the chosen ones, averaged alike: over groups,
    and over the pairs of a group.

    Raises:
        UsageError: ``sft`` negative, or ``beta`` not above 0.
    """

    whole_groups = True
    reads = "nothing"

    def __init__(self, beta: float = 0.1, sft: float = 1.0):
        if sft < 0:
            raise UsageError(f"objective 'S194': sft {sft:g} must be at least 0")
        self.pairs, self.sft = PickedPairs(DPO(beta)), sft

    @property
    def needs(self) -> frozenset[str]:
        return self.pairs.needs

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        loss = self.pairs(logprobs, batch)
        better, _ = picked(batch)
        own = torch.where(batch.mask, logprobs.clamp(min=IMPOSSIBLE), 0).sum(-1) / batch.lengths.clamp(min=1)
        count = torch.bincount(batch.group[better], minlength=1)[batch.group[better]].to(own.dtype)
        groups = (batch.totals or batch.count()).groups
        fitted = -(own[better] / count).sum() / max(groups, 1.0)
        metrics = {**loss.metrics, "sft": float(fitted.detach())}
        return Loss(loss.value + self.sft * fitted, metrics)


def scorer_of(spec: Any, template: str, model: Callable[[Any], Any]) -> Any:
    """Return what scores pairs of texts, see :func:`drm`.

    Raises:
        UsageError: none of what may be named.
    """
    if isinstance(spec, Engine | Mapping):
        return ScoreOfTen(spec, template)
    if hasattr(spec, "scores"):
        return spec
    if isinstance(spec, str | Path) and ".py:" not in str(spec):
        return model(spec)
    function = load_function(spec) if isinstance(spec, str) else spec
    if not callable(function):
        raise UsageError(f"reward 'S194': {spec!r} is no engine, folder, function of two texts, or scorer of pairs")
    return ByFunction(function)


class Supports:
    """How far a cross-encoder finds a claim, the second text, supported by a passage, the first."""

    def __init__(self, source: str | Path):
        self.model = CrossEncoder(source)

    def scores(self, pairs: Sequence[Pair]) -> list[float | None]:
        return list(self.model.scores([(second, first) for first, second in pairs]).tolist())


@dataclass(frozen=True, slots=True)
class ByFunction:
    """A plain function of two texts, which returns a number, or ``None`` if it cannot."""

    function: Callable[[str, str], float | None]

    def scores(self, pairs: Sequence[Pair]) -> list[float | None]:
        return [self.function(first, second) for first, second in pairs]


def scored(scorer: Any, pairs: Sequence[Pair]) -> list[float | None]:
    """Return the scores of pairs, equal ones asked about once."""
    once = list(dict.fromkeys(pairs))
    found = dict(zip(once, scorer.scores(once) if once else [], strict=True))
    return [None if found[p] is None else float(found[p]) for p in pairs]


HERE = {"entailment": "here", "quality": "here"}

claims(
    Claim(
        paper="S194",
        text="Where a miracle is right more often than work, a policy whose reasoning is valued beside its answer is "
        "right by sound steps more often than one that is paid by outcome.",
        setting="miracle",
        evidence="construction",
        arms={
            "added": {"name": "S194", "options": HERE},
            "outcome": {"name": "grpo"},
            "alone": {"name": "S194", "options": {**HERE, "mode": "alone"}},
        },
        better="added",
        baseline="outcome",
        measure="verified",
        sweep={"lr": (0.03, 1.0, 30.0)},
    )
)
