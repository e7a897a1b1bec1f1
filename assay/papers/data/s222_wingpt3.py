"""S222: general, medical and clinical reasoning in turn, each shown and then reinforced; a chain of evidence."""

from __future__ import annotations

from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.environments.diagnosis.environment import Diagnosis
from assay.errors import UsageError
from assay.method import Method
from assay.ops.turns import own_turns
from assay.rewards.judged import judged
from assay.rewards.outcome.verdict_part import VerdictPart
from assay.rewards.shaping.weighted import WeightedSum
from assay.rewards.spec import reward_of
from assay.tasks.procedural.calculators import Calculators
from assay.verify.answer.place import marked
from assay.verify.none import UNJUDGED

__all__ = ["Calculators", "Diagnosis", "wingpt3"]


@paper(
    "S222",
    "WiNGPT-3.0",
    arxiv="2505.17387",
    seams=["tasks", "envs", "curriculum", "reward"],
    essentials={
        "general, medical and clinical reasoning in turn, each supervised and then reinforced": (
            "test_the_recipe_goes_through_its_stages"
        ),
        "calculations are right within a tolerance, scores exactly": "test_a_formula_is_met_within_a_twentieth",
        "choices are judged by rule": "test_what_rules_can_tell_no_model_is_asked",
        "a reward model judges what rules cannot": "test_what_rules_can_tell_no_model_is_asked",
        "form is rewarded": "test_form",
        "a record is shown in clinical order, and the differential is ranked anew after each piece": (
            "environments/test_diagnosis.py::test_the_record_is_shown_in_order"
        ),
        "a diagnosis is worth its rank and the evidence for it": (
            "environments/test_diagnosis.py::test_rank_and_evidence_by_hand"
        ),
        "it trains a language model": "test_the_recipe_goes_through_its_stages",
    },
    choices=(
        "everything that the abstract does not say: the weights, 1 / rank, F1 of the evidence, the tolerance of a "
        "twentieth that MedCalc-Bench has, GRPO as it stands",
        "patients are made up from criteria, and evidence is judged by rule",
        "the supervised stage of the chain imitates the environment's plan",
    ),
    lacks="a recipe at small size: curated long reasoning, hospital records, the reward models and 32B are not here",
)
def wingpt3(evidence: float = 0.5, form: float = 0.1, auxiliary: Any = None) -> Method:
    """GRPO on rules where there are any, an auxiliary reward model where there are none; ``assay train wingpt``.

        r = a + evidence F1(given, key findings) + form f
        a = the verdict's score; the auxiliary's where the verifier is ``none``

    f is 1 for a response that marks its answer, and of an episode the share of its turns that can be read. The second
    term is 0 where there is nothing to be found. In environment ``diagnosis`` a is 1 / rank of the patient's disease.

    Args:
        evidence, form: weights, at least 0.
        auxiliary: any reward, such as a reward model; without one what no rule can tell has no reward.

    Raises:
        UsageError: a weight below 0.

    Source: WiNGPT-3.0 (arXiv 2505.17387); the reward is not given in detail.
    """
    if min(evidence, form) < 0:
        raise UsageError(f"S222: evidence {evidence:g} and form {form:g} must be at least 0")
    terms = {"answer": RuleOrModel(auxiliary), "evidence": VerdictPart("evidence", missing=0.0), "form": Form()}
    return Method(reward=WeightedSum(terms, {"evidence": evidence, "form": form}))


class RuleOrModel:
    """R_i = the verdict's score, or the reward of ``model`` where no verifier judges (verifier ``none``).

    The model is asked about those alone. Without one they have no reward, nor has a sample whose verifier abstained.
    """

    def __init__(self, model: Any = None):
        self.model = None if model is None else reward_of(model)

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset(getattr(self.model, "needs", ()))

    def __call__(self, batch: Batch) -> Reward:
        values = torch.tensor([v.score for v in batch.verdicts], dtype=batch.rewards.dtype)
        valid = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        open_ended = torch.tensor([i for i, v in enumerate(batch.verdicts) if v == UNJUDGED], dtype=torch.int64)
        terms: dict[str, Any] = {}
        if self.model is not None and len(open_ended):
            found = self.model(batch.rows(open_ended))
            values[open_ended] = found.values.to(values)
            valid[open_ended] = True if found.valid is None else found.valid
            terms = {"modelled": torch.zeros_like(values).index_fill(0, open_ended, 1.0)}
        return Reward(values, valid=valid, terms={"rule_or_model": values, **terms})


class Form:
    """R_i = 1 where an answer is marked, 0 else; of an episode of several turns the share that could be read."""

    def __call__(self, batch: Batch) -> Reward:
        found = [
            sum(t.valid for t in own_turns(e)) / len(own_turns(e))
            if e.turns
            else float(marked(e.text, fallback="none") is not None)
            for e in batch.episodes
        ]
        values = torch.tensor(found, dtype=batch.rewards.dtype)
        return Reward(values, valid=judged(batch), terms={"form": values})


LAB = {"name": "diagnosis", "diseases": 3, "sections": 2, "signs": 3, "extra": 1, "style": "compact"}
LINES = [f"{name}|c{c},h{h}" for name in "ABC" for c in range(3) for h in range(3)]
"""What can be said in a turn of setting ``environment``: a disease, and a finding of either section."""

claims(
    Claim(
        paper="S222",
        text="Where the evidence is rewarded beside the diagnosis, the policy learns the diagnosis sooner than where "
        "the diagnosis alone is.",
        setting="environment",
        arms={
            "diagnosis": {"name": "S222", "options": {"evidence": 0.0}},
            "evidence": {"name": "S222", "options": {"evidence": 0.5}},
        },
        better="evidence",
        baseline="diagnosis",
        measure="area",
        options={"environment": LAB, "words": [LINES], "tasks": [0, 1, 2, 3], "turns": 2, "steps": 30, "prompts": 4},
        sweep={"lr": (10.0, 30.0, 100.0, 300.0)},
    ),
)
