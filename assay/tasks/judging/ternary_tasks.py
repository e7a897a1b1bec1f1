"""Tasks that teach a judge to tell right, wrong and invalid, with cases that judges disagree on among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.judging.boundary import PATTERNS, boundary_cases
from assay.tasks.judging.formulas import formula_variants
from assay.tasks.judging.ternary import DIRECT, PARAPHRASES, SHOWN, Item, Letter, retold
from assay.tasks.seeded import check_index, check_seed
from assay.tasks.solutions.critiques import judged_groups
from assay.types import Group, Task
from assay.verify.text.text import references


@part("tasks", "ternary_judging")
class TernaryJudging:
    """Tasks of comparing a response with a reference, reply A, B or C, from solutions that were judged, and made cases.

    Each has its letter as worked solution, so that a warm-up, or any supervised training on solutions, is the
    fine-tuning of the judge. See :func:`ternary_items` for what is added to what was judged.

    Args:
        path: the folder of a run (all of its stored rollouts) or of an evaluation, or a file of samples that say
            which are right, as :class:`assay.records.foreign.Reader` reads them. Questions need their references.
        boundary, formulas, thinking: see :func:`ternary_items`.
        paraphrases: the prompt is one of several by lot, or else always the same.
        template: of the prompt, with ``{question}``, ``{reference}`` and ``{response}``, in place of all of those.
        seed: of all lots.
        fields, threshold: of a file, see the reader.

    Raises:
        UsageError: nothing there is of use, or an option out of range.
    """

    def __init__(
        self,
        path: Path,
        boundary: float = 24 / 54,
        formulas: float = 18 / 54,
        thinking: bool = True,
        paraphrases: bool = True,
        template: str | None = None,
        seed: int = 0,
        fields: dict[str, str] | None = None,
        threshold: float | None = None,
    ):
        check_seed("tasks 'ternary_judging'", seed)
        if template is not None and any(f"{{{name}}}" not in template for name in SHOWN):
            raise UsageError(
                "tasks 'ternary_judging': the template must show the judge {question}, {reference} and {response}"
            )
        prompts = (template,) if template is not None else PARAPHRASES if paraphrases else (DIRECT,)
        rng = np.random.default_rng(seed)
        base = judged_items(judged_groups(Path(path), fields or {}, threshold))
        items = ternary_items(base, rng, boundary, formulas, thinking)
        self.tasks = [
            items[i].task(f"judging/{k}", str(rng.choice(prompts)))
            for k, i in enumerate(rng.permutation(len(items)).tolist())
        ]

    @property
    def size(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[check_index(index, self.size)]


def judged_items(groups: Sequence[Group]) -> list[Item]:
    """Return every different judged response to a question with a reference, right A and wrong B.

    Raises:
        UsageError: there is none.
    """
    out = dict[tuple[str, str, str], Item]()
    for group in groups:
        task, gold = group.task, " / ".join(references(group.task.reference))
        for episode, verdict in zip(group.episodes, group.verdicts, strict=True):
            if gold and verdict.passed is not None:
                label: Letter = "A" if verdict.passed else "B"
                item = Item(task.question, gold, episode.text, label, domain=str(task.meta.get("domain", "")))
                out.setdefault((item.question, gold, episode.text), item)
    if not out:
        raise UsageError("tasks 'ternary_judging': there is no judged response to a question with a reference")
    return list(out.values())


def ternary_items(
    base: Sequence[Item],
    rng: np.random.Generator,
    boundary: float = 24 / 54,
    formulas: float = 18 / 54,
    thinking: bool = True,
) -> list[Item]:
    """Return judged items with those that three augmentations add to them.

    Args:
        base: judged.
        rng: of all lots.
        boundary: cases at the boundaries, for each item; all patterns alike, as
            :func:`~assay.tasks.judging.boundary.boundary_cases` makes them. 24,294 to 54,420 in the paper.
        formulas: variants of references, for each item, as far as there are so many, see
            :func:`~assay.tasks.judging.formulas.formula_variants`. 18,118 to 54,420 in the paper.
        thinking: every response with thinking is added once more with that cut or between other tags, with the same
            label, see :func:`~assay.tasks.judging.ternary.retold`.

    Raises:
        UsageError: a share below 0 or not finite.

    Source: CompassVerifier (arXiv 2508.03686).
    """
    for name, share in (("boundary", boundary), ("formulas", formulas)):
        if not 0 <= share < float("inf"):
            raise UsageError(f"tasks 'ternary_judging': {name} {share} must be a finite number >= 0")
    want = round(boundary * len(base))
    cases = boundary_cases(-(-want // len(PATTERNS)), rng) if want else []
    added = [cases[i] for i in rng.permutation(len(cases))[:want].tolist()]
    want = round(formulas * len(base))
    for i in rng.permutation(len(base)).tolist():
        if want <= 0:
            break
        made = formula_variants(base[i], rng)[:want]
        added += made
        want -= len(made)
    items = [*base, *added]
    changed = [retold(item, rng) for item in items] if thinking else []
    return [*items, *(c for c, item in zip(changed, items, strict=False) if c.response != item.response)]
