"""Solved problems as items of judging: is this response right? As many right as wrong ones of each generator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from assay.engines.asking import ask, filled
from assay.engines.base import Engine, Sampling
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed
from assay.tasks.solutions.critiques import judged_groups
from assay.types import Group, Task
from assay.verify.critique import said

TEMPLATE = r"""Question:
{question}

Response:
{response}

Is the final answer of the response right? Think it through, then write \boxed{True} or \boxed{False}."""
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Judged:
    """A response to a problem, by which generator, and whether it is right."""

    question: str
    response: str
    right: bool
    generator: str
    subset: str = ""

    def task(self, name: str, template: str = TEMPLATE) -> Task:
        """Return the task of judging it, of kind ``critique``."""
        prompt = filled(template, question=self.question, response=self.response)
        meta = {"generator": self.generator, "subset": self.subset, "response": self.response}
        return Task(name, prompt, str(self.right), "critique", meta=meta)


def pointwise_items(
    generators: Mapping[str, Sequence[Group]], rng: np.random.Generator, least: int = 64
) -> list[Judged]:
    """Return judged responses of several generators, each generator's as many right as wrong.

    Of problems of which a generator has ``least`` judged responses or more; what is nothing but thinking is left out,
    as is the surplus, by lot.

    Args:
        generators: judged groups of each, by name.
        rng: of the lots.
        least: see above; 64 in the paper.

    Source: Libra Bench (arXiv 2507.21645).
    """
    out = []
    for name, groups in generators.items():
        mine: dict[bool, list[Judged]] = {True: [], False: []}
        for group in groups:
            pairs = list(zip(group.episodes, group.verdicts, strict=True))
            judged = [(e.text, v.passed) for e, v in pairs if v.passed is not None]
            if len(judged) < least:
                continue
            subset = str(group.task.meta.get("subset", ""))
            for text, passed in judged:
                if _THOUGHT.sub("", text).strip():
                    mine[bool(passed)].append(Judged(group.task.question, text, bool(passed), name, subset))
        few = min(len(mine[True]), len(mine[False]))
        out += [mine[k][i] for k in (True, False) for i in sorted(rng.permutation(len(mine[k]))[:few].tolist())]
    return out


def with_traces(tasks: Sequence[Task], judge: Engine, tries: int = 8, sampling: Sampling | None = None) -> list[Task]:
    """Return the tasks with a judgment of the judge's own as worked solution, where one of ``tries`` is the label.

    The first such one is taken; tasks without one are left out.
    """
    drawn, out = sampling or Sampling(max_tokens=8192), list[Task]()
    for k in range(tries):
        open_ = [t for t in tasks if t.id not in {o.id for o in out}]
        # A blank behind the prompt makes it another draw of the same.
        replies = ask(judge, [t.question + " " * k for t in open_], drawn)
        for task, reply in zip(open_, replies, strict=True):
            if reply.stop != "error" and said(reply.text) is (task.reference == "True"):
                out.append(replace(task, solution=reply.text))
    return out


@part("tasks", "pointwise_judging")
class PointwiseJudging:
    """Tasks of kind ``critique`` of solved problems, without references, balanced for each generator.

    Args:
        paths: by the name of each generator, the folder of a run or an evaluation, or a file of samples that say which
            are right; one path is one generator.
        least: judged responses to a problem, see :func:`pointwise_items`.
        template: of the prompt, with ``{question}`` and ``{response}``.
        seed: of the lots.

    Raises:
        UsageError: nothing there is of use, or a template that does not fit.
    """

    def __init__(self, paths: dict[str, Path] | Path, least: int = 64, template: str = TEMPLATE, seed: int = 0):
        check_seed("tasks 'pointwise_judging'", seed)
        if any(f"{{{name}}}" not in template for name in ("question", "response")):
            raise UsageError("tasks 'pointwise_judging': the template must show {question} and {response}")
        named = {name: Path(p) for name, p in paths.items()} if isinstance(paths, dict) else {"": Path(paths)}
        rng = np.random.default_rng(seed)
        items = pointwise_items({name: judged_groups(p, {}, None) for name, p in named.items()}, rng, least)
        if not items:
            raise UsageError(
                f"tasks 'pointwise_judging': no generator has right and wrong ones of problems with {least} or more"
            )
        order = rng.permutation(len(items)).tolist()
        self.tasks = [items[i].task(f"judging/{k}", template) for k, i in enumerate(order)]

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]
