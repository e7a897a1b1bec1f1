"""An order of given items, graded by how many stand in their place."""

from __future__ import annotations

from dataclasses import dataclass

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.lists.items import item_key, reference_items
from assay.verify.lists.ranking import read_ranking


@part("verify", "permutation")
@dataclass(frozen=True, slots=True)
class Permutation(Marked):
    """The share of the places at which the reference's item stands; 0 of what is no permutation of its items.

    ``task.reference`` is a list of different items, such as ``[2, 0, 3, 1]``. The answer is a list as
    :func:`~assay.verify.lists.items.read_items` reads it. It is right if all stand where they should. ``parts``:
    ``valid``, whether it is a permutation.

    Args:
        rules, fallback: where the answer stands, see :func:`~assay.verify.answer.extract.extract`.

    Source: the jigsaws of Puzzle Curriculum GRPO (arXiv 2512.14944).
    """

    rules: tuple[Rule, ...] = ("answer_tag", "boxed", "phrase")
    fallback: Fallback = "line"

    def __call__(self, task: Task, response: str) -> Verdict:
        wanted = [item_key(item) for item in reference_items(task.reference) or ()]
        if not wanted or len(set(wanted)) < len(wanted):
            return Verdict.abstain(f"task {task.id}: reference is no list of different items", "tests")
        answer = extract(response, self.rules, self.fallback)
        if answer is None or len(answer) > 200 * len(wanted):
            return Verdict(0.0, False, {"valid": 0.0}, "no list of items found")
        given = read_ranking(answer)
        if len(given) != len(wanted) or set(given) != set(wanted):
            return Verdict(0.0, False, {"valid": 0.0}, f"not each of the {len(wanted)} items once")
        placed = sum(a == b for a, b in zip(given, wanted, strict=True))
        why = "" if placed == len(wanted) else f"{placed} of {len(wanted)} stand in their place"
        return Verdict(placed / len(wanted), placed == len(wanted), {"valid": 1.0}, why)
