"""S005: learn to revise one's own attempts, then to answer at once as one would after having seen the attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Engine
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.second_view import Distilled
from assay.objectives.sft import SFT
from assay.registry import part
from assay.rollout.derived import Derived
from assay.rollout.reread.prompts import RIGHT, WRONG, Revision
from assay.select.shown import Shown
from assay.signals.reread.second_view import Teacher, second_view
from assay.types import Ask, Episode, Group, Task

LOSS = "loss"
"""Key in an episode's ``meta`` of the loss that it is a sample of."""


@paper(
    "S005",
    "SD-Zero",
    arxiv="2604.12002",
    seams=["rollout", "select", "objective"],
    essentials={
        "a phrase says whether the attempt was right, and the policy goes on from both": "test_a_revision_goes_on",
        "only tuples whose revision is right are learned from, whatever the attempt was": (
            "test_the_first_and_the_third_of_four_tuples_are_kept"
        ),
        "two losses of equal weight: on the revision, and on attempt, phrase and revision in one go": (
            "test_both_losses_of_a_tuple"
        ),
        "the teacher sees the whole response before it reads it again": "test_the_teacher_reads_the_response_twice",
        "the teacher is frozen where the second phase begins, or copied anew after some steps": (
            "test_the_teacher_is_frozen_or_copied"
        ),
        "all responses are distilled, right and wrong": "test_right_and_wrong_responses_are_distilled",
        "the reverse divergence on the teacher's 64 likeliest tokens": "test_the_teachers_tokens",
        "both phases train a language model, the second from where the first ended": "test_both_phases_train",
    },
    choices=(
        "the phrases are the paper's; the released code has others for each family of models",
        "the reverse divergence, as in the paper; the released script mixes in half of the forward one",
        "both losses in one step, as in the paper; the released code has them one after the other, on other tuples",
        "how many steps a teacher stays frozen; for good by default",
        "phases are two runs, so that their prompts are disjoint by what each is given",
    ),
)
def sd_zero(
    phase: Literal["revision", "distillation"] = "distillation",
    revisions: int = 3,
    generation: float = 1.0,
    max_tokens: int | None = None,
    k: int = 64,
    every: int | None = None,
    template: str | None = None,
    right: str = RIGHT,
    wrong: str = WRONG,
) -> Method:
    """Two runs: ``assay train method=S005 method.options.phase=revision``, and another from its checkpoint.

    Revision: each attempt y is judged and revised, y' ~ pi(. | x, y, P_r) with a phrase P_r for right or wrong; of the
    tuples whose revision is right

        L = -log pi(y' | x, y, P_r) - generation log pi(y, P_r, y' | x)

    Distillation: the model as it then is, frozen, reads each response again, having seen all of it and the phrase:

        L = sum_t KL(pi(. | x, y_<t) || sg q(. | x, y, P_r, y_<t)), both over q's k likeliest tokens alone

    Args:
        phase: which of the two.
        revisions: per attempt; attempts per task are ``rollout.group``, 1 in the paper.
        generation: weight of the second loss, at least 0; 0 leaves it out.
        max_tokens: of a revision.
        k: tokens of the divergence.
        every: copy the student to the teacher after so many steps; never if ``None``.
        template, right, wrong: see :class:`assay.rollout.reread.prompts.Revision`.

    Source: SD-Zero (arXiv 2604.12002), section 2, and its released code.
    """
    words = Revision(template, right, wrong)
    if phase == "revision":
        rollout = {"name": "revisions", "n": revisions, "generation": generation, "max_tokens": max_tokens}
        rollout |= {"template": template, "right": right, "wrong": wrong}
        return Method(rollout=rollout, select=OfTuples(generation), objective=SFT("sequence_sum"))
    if phase != "distillation":
        raise UsageError(f"S005: phase is revision or distillation, not {phase!r}")
    teacher: Teacher = "initial" if every is None else "averaged"
    view = second_view(words, teacher, k, "teachers", rate=1.0, every=every or 1)
    return Method(select=Shown(view), objective=Distilled(view, 1.0, "renormalise", weight_cap=None))


@part("rollout", "revisions")
@dataclass(slots=True)
class Revisions(Derived):
    """Attempts, judged, and after them revisions of each, judged by what judges the task.

    A group of revisions holds those that are right. With ``generation`` above 0 it also holds for each of them the text
    that attempts, notices and revises in one go, under the task's own prompt and of no known author. Both say in
    ``meta`` which loss they are a sample of.

    Args:
        sampling, judge, more, curriculum, answer, inner, n, max_tokens: see :class:`~assay.rollout.derived.Derived`.
        generation: weight of that text's loss, at least 0.
        template, right, wrong: see :class:`assay.rollout.reread.prompts.Revision`.

    Raises:
        UsageError: ``generation`` below 0.
    """

    generation: float = 1.0
    template: str | None = None
    right: str = RIGHT
    wrong: str = WRONG
    _words: Revision = field(init=False)

    def __post_init__(self) -> None:
        Derived.__post_init__(self)
        if self.generation < 0:
            raise UsageError(f"rollout 'revisions': generation {self.generation:g} must be at least 0")
        self._words = Revision(self.template, self.right, self.wrong)

    def derive(self, groups: Sequence[Group], engine: Engine, rng: np.random.Generator) -> list[Ask]:
        out = []
        for group in groups:
            for i, (episode, verdict) in enumerate(zip(group.episodes, group.verdicts, strict=True)):
                if verdict.passed is None or episode.stop == "error":
                    continue
                prompt = self._words.prompt(group.task.prompt, episode.text, verdict.passed)
                made = {
                    **group.task.meta,
                    "attempt": episode.text,
                    "phrase": self._words.phrase(verdict.passed),
                    "begun": self._words.beginning(episode.text, verdict.passed),
                }
                # What stands in the task goes on to judge its revisions; hints and solutions are of the question.
                task = replace(group.task, id=f"{group.task.id}/revise-{i}", prompt=prompt, meta=made)
                task = replace(task, parent=group.task.id, hints=(), solution=None)
                out.append(Ask(task, group.ask.n if self.n is None else self.n))
        return out

    def begun(self, task: Task, engine: Engine) -> Sequence[int]:
        text = str(task.meta["begun"])
        return [int(token) for token in engine.encode_response(text, end=False)] if text else ()

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        found = Derived.collect(self, asks, engine, rng)
        asked = {group.task.id: group.task for group in found if not group.derived}
        out, kept = list[Group](), 0
        for group in found:
            if not group.derived:
                out.append(group)
                continue
            good = [e for e, v in zip(group.episodes, group.verdicts, strict=True) if v.passed]
            verdicts = tuple(v for v in group.verdicts if v.passed)
            kept += len(good)
            episodes = tuple(replace(e, meta={**e.meta, LOSS: "revision"}) for e in good)
            if self.generation:
                whole = engine.encode(asked[str(group.task.parent)].prompt)
                episodes += tuple(self._at_once(e, group.task, whole, engine) for e in good)
                verdicts *= 2
            if episodes:
                out.append(Group(replace(group.ask, n=len(episodes)), episodes, verdicts))
        self._metrics = {**self._metrics, "revisions/kept": float(kept)}
        return out

    def _at_once(self, revision: Episode, task: Task, prompt: np.ndarray, engine: Engine) -> Episode:
        """Return attempt, phrase and revision as one response."""
        text = f"{task.meta['attempt']}\n\n{task.meta['phrase']}\n\n{revision.text}"
        tokens = np.asarray(engine.encode_response(text), dtype=np.int64)
        context = getattr(getattr(engine, "policy", None), "context", None)
        if context is not None:
            tokens = tokens[: context - len(prompt)]
        return Episode(prompt, tokens, np.ones(len(tokens), dtype=bool), None, text, "eos", meta={LOSS: "generation"})


@dataclass(frozen=True, slots=True)
class OfTuples:
    """Weight 1 for revisions that are kept, ``generation`` for the texts that revise in one go, 0 for the rest."""

    generation: float = 1.0

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        weights = {"revision": 1.0, "generation": self.generation}
        return torch.tensor([weights.get(e.meta.get(LOSS, ""), 0.0) for e in batch.episodes]).to(batch.rewards)


REMARKS: dict[str, Any] = {"template": "{question} {phrase} {attempt}", "right": "right", "wrong": "wrong"}
"""How attempts are shown in setting ``feedback``."""
QUIET = {"named": False, "hard": 0.5}
"""A verifier that says right or wrong and no more."""

claims(
    Claim(
        paper="S005",
        text="Distilling what a reviser makes of its own attempts raises accuracy at the first try more than GRPO does "
        "from as many responses and verdicts.",
        setting="feedback",
        arms={
            "grpo": {"name": "grpo"},
            "sd-zero": {"name": "S005", "options": {**REMARKS, "k": 20}},
        },
        better="sd-zero",
        baseline="grpo",
        measure="area",
        options=QUIET,
        sweep={"lr": (1.0, 3.0, 10.0, 30.0, 100.0)},
    ),
    Claim(
        paper="S005",
        text="Fine-tuning on revisions that came out right teaches a policy that heeds no remark to heed them; GRPO on "
        "as many responses leaves that as it is.",
        setting="feedback",
        name="mechanism",
        arms={
            "grpo": {"name": "grpo", "setting": {"group": 8}},
            "revision": {
                "name": "S005",
                "options": {**REMARKS, "phase": "revision", "revisions": 3, "generation": 0.0},
                "setting": {"group": 2},
            },
        },
        better="revision",
        baseline="grpo",
        measure="trust",
        options={**QUIET, "trust": 0.0},
        sweep={"lr": (0.03, 0.1, 0.3, 1.0)},
    ),
)
