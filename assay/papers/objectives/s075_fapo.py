"""S075: right answers by a flawed derivation are worth less than sound ones and more than wrong ones."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Engine, Request, Sampling
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build
from assay.rewards.base import RewardPart
from assay.rewards.length.overlong import SoftOverlong
from assay.rewards.process.error_step import NO_ERROR, TEMPLATE, ErrorStep, index_of, question, steps_of
from assay.rewards.shaping.weighted import WeightedSum
from assay.types import Task


@paper(
    "S075",
    "FAPO",
    arxiv="2510.22543",
    seams=["reward", "objective"],
    essentials={
        "a generative judge gives the earliest wrong step of right responses, and of them alone": (
            "test_the_judge_is_asked_once_about_each_right_response_and_never_about_a_wrong_one"
        ),
        "flawed positives lose 1 of their reward, which helps them at first and suppresses them later": (
            "test_flawed_responses_help_until_sound_ones_outnumber_wrong_ones"
        ),
        "the judge is trained by RL on step-level rewards: outcome, and how far off the located step is": (
            "test_what_the_judge_earns"
        ),
        "tasks on which the judge is trained, judged and rewarded": (
            "test_the_judges_own_tasks_are_judged_and_rewarded"
        ),
        "DAPO below it: clip range [0.8, 1.28], token mean, no divergence": "test_without_a_penalty_it_is_dapo",
        "soft overlong punishment": "test_the_overlong_punishment_is_added",
        "training with the judge leaves fewer flawed answers than without": ("test_an_arm_is_given_the_settings_judge"),
    },
    choices=(
        "a reply that cannot be read leaves the reward of a right response",
        "the judge's prompt, and greedy replies of at most 4096 tokens",
        "steps are what blank lines separate",
    ),
)
def fapo(judge: Any, penalty: float = 1.0, overlong: tuple[int, int] | None = None) -> Method:
    """GRPO with DAPO's clip range, where a judge reads the right responses and flawed ones lose their reward.

        R_i = -1 if wrong;  1 if right and sound;  1 - penalty if right and the judge finds a wrong step
        A_i = (R_i - mean R) / std R;  clip range [0.8, 1.28], token mean, no KL

    With T sound, F flawed and N wrong responses in a group and penalty 1, a flawed one has A = -(T - N) / (G std R): it
    is reinforced while sound responses are fewer than wrong ones, then suppressed, without a schedule.

    Args:
        judge: an engine (or the specification of one) that is shown problem, reference answer and the response's
            numbered steps, and answers with the boxed number of the earliest wrong step, or -1; see
            :class:`FlawedAware`. A recipe names it as ``method.reward = {judge = ...}`` or among ``method.options``.
            ``None`` with ``penalty=0`` only, which is DAPO's reward.
        penalty: lambda, 1 in the paper, which takes the numbers from R alone ("parameter-free").
        overlong: max_length and buffer of DAPO's soft overlong punishment, which is then added (the paper: 8192, 4096).

    The judge is trained by the same loop, on tasks made by :func:`assay.rewards.process.error_step.critic_task` and
    with :func:`critic` as method (``method.reward = "error_step"``).

    Source: FAPO (arXiv 2510.22543) and its authors' code.
    """
    reward: RewardPart = FlawedAware(judge, penalty)
    if overlong is not None:
        reward = WeightedSum({"flawed_aware": reward, "overlong": SoftOverlong(*overlong)})
    return Method(reward=reward, objective=ClippedSurrogate(clip_high=0.28))


def critic() -> Method:
    """Return the method that trains the judge: GRPO on how far off it locates the first error, clip range [0.8, 1.28].

    R = -1 if the answer cannot be read or is wrong about whether there is an error, else 1 - |said - truth| / steps.
    """
    return Method(reward=ErrorStep(), objective=ClippedSurrogate(clip_high=0.28))


@dataclass(slots=True)
class FlawedAware:
    """R_i = ``wrong``, ``right``, or ``right - penalty`` for a right response in which the judge finds a wrong step.

    The judge is asked about right responses only, about equal ones once, and never again about one it has read while
    that is remembered. A reply without a readable number leaves the reward of a right response. If the judge could not
    be reached (generation failed), the sample has no reward and leaves the update, and is asked about again when it
    comes back.

    Terms: ``verdict``; ``flawed`` and ``unread``, zeros and ones.

    Args:
        judge: an engine, or the specification of one; ``None`` with ``penalty`` 0 only.
        penalty: lambda.
        right, wrong: rewards of right and wrong responses.
        max_tokens, temperature: of the judge's reply.
        template: the judge's prompt, with ``{problem}``, ``{reference}`` and ``{steps}``.
        remembered: readings that are kept.

    Raises:
        UsageError: a judge that is no engine, a penalty without a judge, a negative ``penalty``, or a template without
            ``{steps}``.
    """

    judge: Any = None
    penalty: float = 1.0
    right: float = 1.0
    wrong: float = -1.0
    max_tokens: int = 4096
    temperature: float = 0.0
    template: str = TEMPLATE
    remembered: int = 100_000
    _readings: OrderedDict[bytes, int | None] = field(
        default_factory=OrderedDict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.penalty < 0 or self.remembered < 1 or self.max_tokens < 1:
            raise UsageError("reward 'S075': needs penalty >= 0, and remembered and max_tokens of at least 1")
        if "{steps}" not in self.template:
            raise UsageError("reward 'S075': the template does not show the judge the {steps}")
        if self.judge is None and self.penalty:
            raise UsageError(
                "reward 'S075': without a judge no response is flawed and the verdict alone counts; name an engine, "
                'e.g. reward.judge = {name = "openai", model = "MODEL", base_url = "http://host/v1"}, or penalty = 0'
            )
        self.judge = None if self.judge is None else build("engine", self.judge)
        if self.judge is not None and not isinstance(self.judge, Engine):
            raise UsageError(f"reward 'S075': the judge must be an engine or its specification, not {self.judge!r}")

    def __call__(self, batch: Batch) -> Reward:
        passed = [v.passed for v in batch.verdicts]
        valid = torch.tensor([p is not None for p in passed], dtype=torch.bool)
        verdict = torch.tensor([self.right if p else self.wrong for p in passed], dtype=batch.rewards.dtype)
        flawed, unread = torch.zeros_like(verdict), torch.zeros_like(verdict)
        asked = [i for i, p in enumerate(passed) if p] if self.judge is not None else []
        said = self.read([(batch.tasks[i], batch.episodes[i].text) for i in asked])
        for i, index in zip(asked, said, strict=True):
            valid[i] = index != "failed"
            unread[i] = index is None
            flawed[i] = isinstance(index, int) and index != NO_ERROR
        terms = {"verdict": verdict, "flawed": flawed, "unread": unread}
        return Reward(verdict - self.penalty * flawed, valid=valid, terms=terms)

    def read(self, pairs: list[tuple[Task, str]]) -> list[int | str | None]:
        """Return the judge's index for each response, ``None`` where it gave none, ``"failed"`` where it failed."""
        prompts = [question(t.question, t.reference, steps_of(text), self.template) for t, text in pairs]
        keys = [hashlib.blake2b(p.encode("utf-8", "replace"), digest_size=16).digest() for p in prompts]
        known: dict[bytes, int | str | None] = {k: self._readings[k] for k in keys if k in self._readings}
        new = {k: p for k, p in zip(keys, prompts, strict=True) if k not in known}
        sampling = Sampling(self.max_tokens, self.temperature)
        # The seed is of the prompt alone, so that a reading depends neither on the batch nor on what is remembered.
        requests = [Request(p, 1, sampling, int.from_bytes(k[:7], "big")) for k, p in new.items()]
        replies = self.judge.generate(requests) if requests else []
        for key, [reply] in zip(new, replies, strict=True):
            if reply.stop == "error":
                known[key] = "failed"
            else:
                known[key] = self._readings[key] = index_of(reply.text)
        for key in keys:
            if key in self._readings:
                self._readings.move_to_end(key)
        while len(self._readings) > self.remembered:
            self._readings.popitem(last=False)
        return [known[key] for key in keys]


claims(
    Claim(
        paper="S075",
        text="Where a judge takes the reward from flawed derivations of right answers, sound ones win in the end; "
        "where the outcome alone counts, flawed ones do.",
        setting="derivations",
        evidence="construction",
        arms={
            "fapo": {"name": "S075", "reward": {"judge": "here"}},
            "dapo": {"name": "S075", "reward": {"judge": "here", "penalty": 0.0}},
            "strict": {"name": "S075", "reward": {"judge": "here", "penalty": 2.0}},
        },
        better="fapo",
        baseline="dapo",
        measure="sound",
        sweep={"lr": (1.0, 3.0)},
    )
)
