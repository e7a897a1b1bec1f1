"""S046: verdicts on steps, voted on without a reference, teach a judge whose verdicts are then the only reward."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.base import Credit
from assay.credit.grpo import GRPO
from assay.credit.step_reward import StepReward
from assay.engines.asking import ask, filled
from assay.engines.base import Engine, Sampling
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judged import judged
from assay.rewards.process.critiques import Critics, Critique, consensus, final_of, nearest, read
from assay.rewards.process.step_scores import make_scorer, of_verdict
from assay.rewards.process.summed import step_ends
from assay.signals.base import Models
from assay.signals.steps import Steps, decoder, step_texts
from assay.types import Task

Mode = Literal["process", "augmented", "selective", "global"]
Form = Literal["verdict", "steps", "rationale"]

ANSWER = re.compile(r"<answer>.*?</answer>", re.DOTALL)
STEP_SHARE = 0.4
"""Of the reward that is ``augmented``; the verdict has the rest."""
STEP_WEIGHT = 0.2
"""Of the steps' advantage in the ``global`` one."""


@paper(
    "S046",
    "SPARK",
    arxiv="2512.03244",
    seams=["reward", "credit"],
    essentials={
        "many verifications of a solution, put to the vote at every step": "test_the_vote_at_every_step",
        "or on the outcome alone": "test_the_vote_on_the_outcome",
        "or one, criticised and merged": "test_a_verification_is_criticised_and_merged",
        "what was chosen teaches a judge: verdict, verdicts on steps, or with the rationale": (
            "test_what_a_judge_is_taught"
        ),
        "the judge's verdict as the only reward, or with the share of right steps": "test_rewards_by_hand",
        "advantages where step and response agree": "test_selective_advantages",
        "or with those of steps over the whole group": "test_global_advantages",
        "what breaks the form earns nothing": "test_the_form",
        "it acts in training": "test_a_run_is_paid_by_its_judge",
    },
    choices=(
        "the words of questions, and the form of verdicts",
        "a tie of verdicts is against the step or the answer",
        "the verdicts on steps (1 and 0) are compared over the group's steps and broadcast, not summed",
        "a response that breaks the form earns nothing by its steps either",
    ),
)
def spark(
    critic: Any,
    mode: Mode = "process",
    gated: bool = True,
    n: int = 1,
    steps: Steps = Steps(),  # noqa: B008  # frozen
    kl_weight: float = 1e-3,
    max_tokens: int = 4096,
    temperature: float = 0.0,
) -> Method:
    """GRPO on the verdicts of a judge of steps, without a reference.

    With y the judge's verdict on the answer, v_k in {0, 1} those on the K steps, and ok whether the form is kept:

        process:    r = ok y;  A = GRPO(r)
        augmented:  r = ok (0.4 mean_k v_k + 0.6 y)
        selective:  A_it = A_i where A_i >= 0 and v_k = 1, or A_i < 0 and v_k = 0, for a token t of step k; else 0
        global:     A_it = 0.8 A_i + 0.2 N(v)_ik, N over all steps of the group

    The form: exactly one ``<answer>`` block, exactly one ``\\boxed{}``, and nothing after the block. Without it
    (``gated`` false) responses learn to append a second solved problem, of which the judge approves; many trivial steps
    raise the share of right ones.

    The judge is taught on verifications that :func:`lessons` chooses by vote. Reward by the majority of a policy's own
    answers, which collapses in the end, is reward ``majority``.

    Args:
        critic: an engine or a table that specifies one, see :class:`assay.rewards.process.critiques.Critics`; or a
            scorer of steps (:class:`assay.rewards.process.step_scores.StepScores`): right are those above 0, and the
            answer if all of them are.
        mode, gated: see above.
        n: verifications of each response, of which the majority counts.
        steps: how responses are cut.
        kl_weight: of the divergence from the reference policy, k3 in the loss.
        max_tokens, temperature: of a verification.

    Source: SPARK (arXiv 2512.03244).
    """
    scorer = critic
    if isinstance(critic, Engine | Mapping):
        scorer = Critics(critic, n, max_tokens, temperature)
    signal = Verdicts(scorer, steps)
    credits: dict[str, Credit] = {
        "selective": Selective(signal, steps),
        "global": StepReward(steps, weight=STEP_WEIGHT, convex=True),
    }
    return Method(
        reward=Verified(signal, steps, mode, gated),
        credit=credits.get(mode, GRPO()),
        objective=ClippedSurrogate(kl_weight=kl_weight, kl_estimator="k3"),
    )


@dataclass(frozen=True)
class Verdicts:
    """Signal ``step_verdicts`` ``(N, 1 + K)``: 1 or 0 for the answer, then for each step; NaN where there is none.

    All of a response is NaN where no verification of it can be read. A response without steps is wrong.
    """

    scorer: Any
    steps: Steps = field(default_factory=Steps)

    name = "step_verdicts"
    whole = True

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N K"]:
        decode = decoder(models)
        texts = [step_texts(e, self.steps.of(e, decode), decode) for e in batch.episodes]
        rows = self.rows(batch, texts)
        out = torch.full((len(batch), 1 + max(map(len, texts), default=0)), math.nan, dtype=batch.logprobs.dtype)
        for i, row in enumerate(rows):
            if row is not None:
                marks, final = row
                out[i, : 1 + len(marks)] = torch.tensor([float(final), *map(float, marks)], dtype=out.dtype)
        return out

    def rows(self, batch: Batch, texts: Sequence[list[str]]) -> list[tuple[Sequence[bool], bool] | None]:
        """Return verdicts on the steps and the answer of each response."""
        pairs = list(zip(batch.tasks, texts, strict=True))
        if isinstance(self.scorer, Critics):
            many = self.scorer.critiques(pairs)
            found = [None if not row else consensus(row) for row in many]
        else:
            scores = (
                [of_verdict(v, len(t)) for v, t in zip(batch.verdicts, texts, strict=True)]
                if self.scorer == "verdict"
                else make_scorer(self.scorer).scores(pairs)
            )
            found = [None if s is None else (tuple(x > 0 for x in s), all(x > 0 for x in s)) for s in scores]
        return [row if text else ((), False) for row, text in zip(found, texts, strict=True)]


def by_token(verdicts: Float[Tensor, "N K"], steps: Tensor) -> Float[Tensor, "N T"]:
    """Return the verdict on the step of each token; NaN outside of steps, and where there is none."""
    width = int(steps.max()) + 2 if steps.numel() else 1
    wide = torch.nn.functional.pad(verdicts, (0, max(width - verdicts.shape[1], 0)), value=math.nan)
    return torch.where(steps >= 0, wide.gather(1, steps.clamp(min=0) + 1), math.nan)


@dataclass(frozen=True, slots=True)
class Verified:
    """r of :func:`spark`, and in mode ``global`` ok v_k on the last learnable token of each step.

    No reward where there are no verdicts. Terms: ``judge``, y; ``steps``, the share of right ones; ``form``, ok.
    """

    signal: Verdicts
    steps: Steps = field(default_factory=Steps)
    mode: Mode = "process"
    gated: bool = True

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal, self.steps})

    def __call__(self, batch: Batch) -> Reward:
        verdicts, dtype = batch.signals[self.signal.name], batch.rewards.dtype
        told = ~verdicts[:, 0].isnan()
        y = verdicts[:, 0].nan_to_num(0).to(dtype)
        marks = verdicts[:, 1:]
        share = (marks.nan_to_num(0).sum(-1) / (~marks.isnan()).sum(-1).clamp(min=1)).to(dtype)
        ok = torch.tensor([not self.gated or keeps_form(e.text) for e in batch.episodes], dtype=dtype)
        worth = STEP_SHARE * share + (1 - STEP_SHARE) * y if self.mode == "augmented" else y
        tokens = None
        if self.mode == "global":
            ends = step_ends(batch.signals["steps"], batch.mask)
            own = by_token(verdicts, batch.signals["steps"]).nan_to_num(0).to(dtype)
            tokens = torch.where(ends, ok[:, None] * own, 0)
        return Reward(ok * worth, tokens, told & judged(batch), {"judge": y, "steps": share, "form": ok})


def keeps_form(text: str) -> bool:
    r"""Return whether a response has one ``<answer>`` block with nothing behind it, and one ``\boxed{}``."""
    blocks = ANSWER.findall(text)
    single = len(blocks) == 1 and text.count("<answer>") == text.count("</answer>") == 1
    return single and text.rstrip().endswith("</answer>") and len(re.findall(r"\\boxed\s*\{", text)) == 1


@dataclass(frozen=True, slots=True)
class Selective:
    """A_it = A_i where its sign and the verdict on t's step agree, else 0, see :func:`spark`."""

    signal: Verdicts
    steps: Steps = field(default_factory=Steps)
    inner: GRPO = field(default_factory=GRPO)

    group_relative = True
    level = "token"

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.signal, self.steps})

    @property
    def summary(self) -> dict[str, str]:
        return self.inner.summary

    def __call__(self, batch: Batch) -> Float[Tensor, "N T"]:
        whole = self.inner(batch)
        marks = by_token(batch.signals[self.signal.name], batch.signals["steps"])
        agrees: Bool[Tensor, "N T"] = torch.where(whole >= 0, marks == 1, marks == 0)
        return torch.where(agrees, whole, 0)


CRITIQUE = """A verifier was given this task:

{asked}

It replied:
{verification}

Review the reply: which errors of the solution does it miss, and which right steps does it call wrong?"""

MERGE = """A verifier was given this task:

{asked}

It replied:
{verification}

A review of that reply:
{review}

Do the task anew, taking the review into account as far as it is right. Keep to the form that the task asks for."""


def reviewed(
    critics: Critics, solutions: Sequence[tuple[Task, Sequence[str]]], first: Sequence[Critique]
) -> list[Critique]:
    """Return each verification after a review of it is merged in; as it was where nothing readable came of that."""
    sampling = Sampling(critics.max_tokens, critics.temperature)
    asked = [critics.prompt(task, steps) for task, steps in solutions]
    shown = [{"asked": a, "verification": c.text} for a, c in zip(asked, first, strict=True)]
    reviews = ask(critics.engine, [filled(CRITIQUE, **s) for s in shown], sampling)
    merged = ask(
        critics.engine,
        [filled(MERGE, **s, review=r.text) for s, r in zip(shown, reviews, strict=True)],
        sampling,
    )
    out = []
    for c, (_, steps), review, reply in zip(first, solutions, reviews, merged, strict=True):
        failed = "error" in (review.stop, reply.stop)
        out.append(c if failed else read(reply.text, len(steps)) or c)
    return out


def lessons(
    solutions: Sequence[tuple[Task, Sequence[str]]],
    critics: Critics,
    by: Literal["steps", "outcome"] | None = "steps",
    review: bool = False,
    form: Form = "rationale",
) -> list[Task]:
    """Return tasks that teach a judge of steps, without a reference: a warm-up on their solutions is its fine-tuning.

    Each asks what the critics were asked, and its worked solution is the verification that was chosen among theirs:
    the one that agrees best with the majority on every step (``steps``; both that vote and a review is the hybrid), one
    whose verdict on the answer is the majority's (``outcome``), or the first (``None``). A solution of which no
    verification can be read teaches nothing.

    Args:
        solutions: tasks, and the steps of several solutions of each.
        critics: verifiers; the paper asks each solution 16 times.
        by: see above.
        review: whether what was chosen is criticised and merged, see :func:`reviewed`.
        form: of the worked solution: the ``verdict`` on the answer alone, with the verdicts on ``steps``, or the whole
            verification with its ``rationale``.
    """
    found = critics.critiques(solutions)
    known = [(pair, row) for pair, row in zip(solutions, found, strict=True) if row]
    chosen = [row[0] if by is None else nearest(row, by) for _, row in known]
    if review:
        chosen = reviewed(critics, [pair for pair, _ in known], chosen)
    made: dict[str, Task] = {}
    for ((task, steps), _), critique in zip(known, chosen, strict=True):
        prompt = critics.prompt(task, steps)
        name = f"{task.id}/verification {len(made)}"
        made.setdefault(prompt, Task(name, prompt, kind="none", solution=written(critique, form)))
    return list(made.values())


def written(critique: Critique, form: Form) -> str:
    """Return a verification in one of the forms that judges are taught."""
    word = {True: "correct", False: "incorrect"}
    verdict = f"Verdict: {word[final_of(critique)]}"
    if form == "rationale":
        return critique.text if critique.final is not None else f"{critique.text.rstrip()}\n{verdict}"
    lines = [f"Step {k}: {word[m]}" for k, m in enumerate(critique.marks)] if form == "steps" else []
    return "\n".join([*lines, verdict])


ONE = {"by": "fixed", "size": 1}
JUDGED = {"critic": "here", "steps": ONE, "gated": False, "kl_weight": 0.0}

claims(
    Claim(
        paper="S046",
        text="Of verifications by a noisy verifier, the one that agrees best with the majority at every step has more "
        "right verdicts on steps than one that agrees with the majority on the outcome.",
        setting="verifications",
        evidence="mechanism",
        arms={
            "steps": {"by": "steps"},
            "outcome": {"by": "outcome"},
            "first": {"by": "none"},
            "steps, reviewed": {"by": "steps", "review": True},
        },
        better="steps",
        baseline="outcome",
        measure="accuracy",
    ),
    Claim(
        paper="S046",
        name="miracle",
        text="Where a miracle is right more often than work, a judge's verdicts on steps teach a policy to do without "
        "it, and right answers teach it.",
        setting="miracle",
        evidence="construction",
        arms={
            "process": {"name": "S046", "options": JUDGED},
            "outcome": {"name": "grpo"},
            "global": {"name": "S046", "options": {**JUDGED, "mode": "global"}},
        },
        better="process",
        baseline="outcome",
        measure="honest",
        sweep={"lr": (0.03, 1.0, 30.0)},
    ),
)
