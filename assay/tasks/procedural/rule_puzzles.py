"""Families of puzzles with a knob of difficulty, judged by their rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.errors import UsageError, nearest
from assay.registry import part
from assay.tasks.gym import Gym
from assay.tasks.procedural.grids import GRIDS
from assay.tasks.procedural.lines import LINES
from assay.tasks.procedural.riddles import RIDDLES
from assay.tasks.procedural.written_grids import WRITTEN
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task

GYM = {
    "sudoku": "mini_sudoku", "game_of_24": "puzzle24", "cryptarithm": "cryptarithm", "futoshiki": "futoshiki",
    "survo": "survo", "cipher": "caesar_cipher", "word_sorting": "word_sorting",
}  # fmt: skip
"""Families that reasoning-gym has, by its names; they go by its scorers, and have no levels."""
ON_GRIDS = {**GRIDS, **WRITTEN}
# A family's place in FAMILIES is part of what its puzzles are drawn from: new ones go to the end of OWN.
OWN = (*GRIDS, *RIDDLES, *WRITTEN, *LINES)
FAMILIES = (*OWN, *GYM)
LEVELS = 10


@part("tasks", "rule_puzzles")
@dataclass(frozen=True, slots=True)
class RulePuzzles:
    """Endless puzzles of many families, which take turns; the answer goes between ``<answer>`` tags.

    Levels are 1 to 10: grids have a side of 3 + level // 2, or as many words or houses, riddles a step more at each. A
    puzzle's level is uniform over ``levels``. Solutions are there for warm-ups; whatever keeps to the rules is right
    (verifier ``rule_puzzle``).

    Source: SynLogic (arXiv 2505.19641), whose families these are.

    Args:
        seed: >= 0.
        families: of :data:`FAMILIES`; those of our own unless given, as the others need reasoning-gym.
        levels: lowest and highest.

    Raises:
        UsageError: an unknown family, or levels out of range; reasoning-gym is needed and not installed.
    """

    seed: int = 0
    families: tuple[str, ...] = OWN
    levels: tuple[int, int] = (1, 4)
    _gym: dict[str, Gym] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_seed("tasks 'rule_puzzles'", self.seed)
        for family in self.families:
            if family not in FAMILIES:
                raise UsageError(f"tasks 'rule_puzzles': no family {family!r}{nearest(family, list(FAMILIES))}")
            if family in GYM:
                self._gym[family] = Gym(GYM[family], seed=self.seed)
        low, high = self.levels
        if not self.families or not 1 <= low <= high <= LEVELS:
            raise UsageError(f"tasks 'rule_puzzles': levels {low} to {high} must lie in 1 to {LEVELS}; name a family")

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        number, which = divmod(check_index(index, None), len(self.families))
        family = self.families[which]
        if family in self._gym:
            return self._gym[family][number]
        rng = generator(self.seed, number, FAMILIES.index(family))
        level = int(rng.integers(self.levels[0], self.levels[1] + 1))
        reference: dict[str, object] = {"family": family}
        if family in ON_GRIDS:
            told, data, grid = ON_GRIDS[family](rng, 3 + level // 2)
            reference |= {"rows": len(grid), "columns": len(grid[0]), "data": data}
            answer = "\n".join(" ".join(row) for row in grid)
            how = "Put the grid, a line for each row and a space between cells, between <answer> and </answer>."
        elif family in LINES:
            told, reference["data"], answer = LINES[family](rng, level)
            how = "Put the answer, in a line, between <answer> and </answer>."
        else:
            told, answer = RIDDLES[family](rng, level)
            reference["answer"] = answer
            how = "Put the answer between <answer> and </answer>."
        return Task(
            f"{family}/{self.seed}/{number}",
            f"{told}\n\n{how}",
            reference,
            "rule_puzzle",
            f"<answer>\n{answer}\n</answer>" if "\n" in answer else f"<answer>{answer}</answer>",
            meta={"source": "rule_puzzles", "family": family, "difficulty": level},
        )


def calibrated(
    strong: Mapping[int, Sequence[Sequence[bool]]], chat: Mapping[int, Sequence[Sequence[bool]]], k: int = 10
) -> tuple[int, int] | None:
    """Return the levels between which a family is neither out of reach nor too easy to be asked at all.

    The upper bound is the highest level at which the strong model's pass@k is above 0, the lower one the lowest that
    the chat model solves some of; ``None``, and the family is left out, where there is no such span.

    Args:
        strong, chat: by level, for each puzzle which of a model's tries are right; the first k count.

    Source: SynLogic (arXiv 2505.19641), section 3.3.
    """
    solved = [{level for level, rows in made.items() if any(any(row[:k]) for row in rows)} for made in (strong, chat)]
    if not all(solved):
        return None
    low, high = min(solved[1]), max(solved[0])
    return (low, high) if low <= high else None
