"""S092: a policy writes, from its own right solutions of hard problems, new problems with the same answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from assay.registry import build, part
from assay.rollout.proposing import Proposing, accuracy
from assay.rollout.single_turn import SingleTurn, fits
from assay.rollout.templates import check_template, through_template
from assay.select.dynamic import DynamicSampling
from assay.types import Ask, Episode, Group, Message, Task, Verdict
from assay.verify.programs.python import blocks

KIND = "svs_synthesis"
"""Of tasks that ask for a problem."""
TEMPLATE = """Below is a complete solution of a problem that you do not see. Work out which problem it solves, and write
a problem of your own, different in wording and in structure, of which the solution's final answer is the answer too.
State all that is needed to solve it, and neither the answer nor a hint. End with the problem in a block that opens with
```text.

Solution:
{response}"""


@paper(
    "S092",
    "SvS",
    arxiv="2508.14029",
    seams=["tasks", "rollout", "reward", "select"],
    essentials={
        "problems are written for right responses of problems that are solved in 1/8 to 1/2 of tries": (
            "test_who_is_asked_to_write"
        ),
        "the writer sees the response alone": "test_the_writer_sees_the_response_alone",
        "a written problem has the original's answer and verifier": "test_the_answer_stays_what_it_was",
        "a writer earns 1 if 1/8 to 5/8 of answers to its problem are right, else 0": "test_the_reward_of_a_writer",
        "problems, writers and written problems are groups of their own": "test_three_kinds_of_groups",
        "groups without two verdicts teach nothing; writers' do with one success": "test_what_is_learned_from",
        "without anything to write from it is GRPO": "test_with_nothing_to_write_from_it_is_grpo",
        "one update of all three, in a run": "test_one_update_of_all_three",
    },
    choices=(
        "the words of the prompt",
        "of several blocks the last is the problem; the released code reads the first after the reasoning",
        "a share of writers' groups below 1 is drawn at random; the released code draws responses",
        "a step without written problems learns from the original ones; the released code skips it",
    ),
)
def svs(
    solved: tuple[float, float] = (0.125, 0.5),
    window: tuple[float, float] = (0.125, 0.625),
    n: int | None = None,
    share: float = 1.0,
    template: str = TEMPLATE,
    form: Literal["block", "whole"] = "block",
    inner: Any = "single_turn",
) -> Method:
    """GRPO on a step's problems, on problems written from their right solutions, and on the writing of these.

    With a the share of right responses to a problem, and a' that of answers to a written one, judged against the
    original's answer:

        written for    every right response of a problem with solved[0] <= a <= solved[1], ``n`` times
        R(writer)      1 if window[0] <= a' <= window[1], else 0; 0 too where no problem can be read
        R(answer)      the verdict
        learned from   groups of problems and of written ones with 0 < a < 1; of writers with a success

    Args:
        solved: for which problems others are written.
        window: a' that is neither too easy nor out of reach.
        n: problems written from a response, and answers to each; ``rollout.group`` if ``None``.
        share: of writers' groups that are learned from, in (0, 1].
        template: of the writer's prompt, with ``{response}``.
        form: where a written problem stands: in the last ``block`` that opens with three backticks and ``text``, or it
            is the ``whole`` response.
        inner: the rollout that solves.

    Source: SvS (arXiv 2508.14029), section 3, and its released code.
    """
    options = {"solved": solved, "window": window, "n": n, "share": share, "template": template, "form": form}
    return Method(
        rollout={"name": "variational", **options, "inner": inner}, select=WithWriters(), credit=build("credit", "grpo")
    )


@part("rollout", "variational")
@dataclass(slots=True)
class Variational(Proposing):
    """Responses, problems written from right ones, and answers to these.

    Args:
        sampling, judge, more, curriculum, answer, inner, n, max_tokens: see :class:`~assay.rollout.derived.Derived`.
        solved, window, share, template, form: see :func:`svs`.

    Raises:
        UsageError: a range that is none within [0, 1], a share out of range, a template without ``{response}``.
    """

    solved: tuple[float, float] = (0.125, 0.5)
    window: tuple[float, float] = (0.125, 0.625)
    share: float = 1.0
    template: str = TEMPLATE
    form: Literal["block", "whole"] = "block"

    def __post_init__(self) -> None:
        Proposing.__post_init__(self)
        for name, (low, high) in (("solved", self.solved), ("window", self.window)):
            if not 0 < low <= high < 1:
                raise UsageError(f"rollout 'variational': {name} [{low:g}, {high:g}] must lie between 0 and 1")
        if not 0 < self.share <= 1:
            raise UsageError(f"rollout 'variational': share {self.share:g} must be in (0, 1]")
        check_template(self.template, "response", "rollout 'variational'")

    def derive(self, groups: Sequence[Group], engine: Engine, rng: np.random.Generator) -> list[Ask]:
        """Return what writers are asked: a task for each right response of a problem that is hard and not too hard."""
        asks = []
        for group in groups:
            share = accuracy(group)
            if share is None or not self.solved[0] <= share <= self.solved[1]:
                continue
            for i, (episode, verdict) in enumerate(zip(group.episodes, group.verdicts, strict=True)):
                if verdict.passed:
                    name = f"{group.task.id}/write-{i}"
                    asks.append(Ask(self._writing(group, episode, name), group.ask.n if self.n is None else self.n))
        return asks

    def _writing(self, group: Group, episode: Episode, name: str) -> Task:
        prompt = through_template(group.task.prompt, self.template, response=episode.text)
        return Task(name, prompt, group.task, KIND, parent=group.task.id)

    def pose(self, group: Group, episode: Episode, number: int) -> Task | Verdict:
        found = [text for name, text in blocks(episode.text) if name == "text"]
        problem = (found[-1] if found else "") if self.form == "block" else episode.text
        if not problem.strip():
            return Verdict(0.0, False, {"format": 0.0}, "no problem in a block that opens with ```text")
        original: Task = group.task.reference
        prompt = problem.strip() if isinstance(original.prompt, str) else _asked(original.prompt, problem.strip())
        name = f"{group.task.id}/{number}"
        return replace(
            original, id=name, prompt=prompt, solution=None, hints=(), parent=original.id, meta={"source": "svs"}
        )

    def worth(self, accuracy: float) -> Verdict:
        low, high = self.window
        right = low <= accuracy <= high
        said = "" if right else "too easy" if accuracy > high else "hardly anybody gives the answer that it should have"
        return Verdict(float(right), right, {"format": 1.0, "accuracy": accuracy}, said)

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        groups = self.judge(self._inner.collect(asks, engine, rng))
        made = self.derive([group for group in groups if not group.derived], engine, rng)
        wanted = [ask for ask in made if fits(ask, engine, self.further)]
        written = SingleTurn(self.further).collect(wanted, engine, rng) if wanted else []
        n = max((ask.n for ask in wanted), default=1)
        writers, answers = self.settled(written, n, engine, rng)
        verdicts = [v for group in writers for v in group.verdicts]
        self._metrics = {
            **getattr(self._inner, "metrics", dict)(),
            "derived/asked": float(len(wanted) + len(answers)),
            "derived/left_out": float(len(made) - len(wanted)),
            "derived/tokens": float(sum(len(e.tokens) for g in [*writers, *answers] for e in g.episodes)),
            "written/read": float(np.mean([v.parts.get("format", 0.0) for v in verdicts])) if verdicts else 0.0,
            "written/accepted": float(np.mean([bool(v.passed) for v in verdicts])) if verdicts else 0.0,
        }
        if self.share < 1:
            kept = rng.permutation(len(writers))[: round(self.share * len(writers))]
            writers = [writers[i] for i in sorted(kept.tolist())]
        return [*groups, *writers, *answers]


def _asked(prompt: Sequence[Message], problem: str) -> tuple[Message, ...]:
    """A conversation with another question in the place of its last one."""
    last = max(i for i, m in enumerate(prompt) if m["role"] == "user")
    return (*prompt[:last], Message(role="user", content=problem), *prompt[last + 1 :])


@part("select", "with_writers")
@dataclass(frozen=True, slots=True)
class WithWriters:
    """Weight 1 for the samples of prompts with 0 < accuracy < 1, and of writers of whom at least one succeeded.

    Source: SvS (arXiv 2508.14029), section 3.3.
    """

    def __call__(self, batch: Batch) -> Float[Tensor, "N"]:
        passed = torch.tensor([bool(v.passed) for v in batch.verdicts])
        writing = torch.tensor([task.kind == KIND for task in batch.tasks])
        succeeded = torch.isin(batch.prompt_group, batch.prompt_group[passed & writing & batch.active])
        return torch.where(writing, succeeded.to(batch.rewards.dtype), DynamicSampling()(batch))


TABLE: dict[str, Any] = {"template": "48/{response}", "form": "whole", "n": 4}
"""How prompts of setting ``variations`` are written: a solution's number leads to its writer's choice of a problem."""

claims(
    Claim(
        paper="S092",
        text="Of problems that nobody asked, more are solved in four tries by a policy that learned from variations it "
        "wrote itself than, after as many steps, by one that learned from the original problems alone.",
        setting="variations",
        evidence="mechanism",
        arms={"svs": {"name": "S092", "options": TABLE}, "grpo": {"name": "grpo"}},
        better="svs",
        baseline="grpo",
        measure="held_out",
        sweep={"lr": (0.3, 1.0, 3.0)},
        unequal="steps are equal, as in the paper; writers and answers to what they wrote come on top",
    ),
)
