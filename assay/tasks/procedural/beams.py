"""Beams on two supports under point loads: which forces hold them?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task
from assay.verify.number.reactions import reactions

Axis = Literal["trained", "loads", "supports", "wording"]
AXES: tuple[Axis, ...] = get_args(Axis)
_WORDS = (
    "A beam of length {length} is simply supported: pin A at x = {a}, roller B at x = {b}. It carries {loads}.",
    "Take a simply supported beam, {length} long, with support A at x = {a} and B at x = {b}. On it act {loads}.",
    "{loads} act downwards on a beam of length {length} that rests on A (x = {a}) and B (x = {b}).",
)
_OTHER = (
    "At x = {a} and x = {b} of a plank measuring {length} stand the trestles A and B. On the plank weigh {loads}.",
    "A girder spans {length}. Its bearings, A and B, sit {a} and {b} from the left end. Weights on it: {loads}.",
)
_ASK = (
    " Find the vertical reactions R_A and R_B as multiples of P. Think between <think> and </think>, then give both in "
    "one box, such as \\boxed{R_A = 0.5P, R_B = 0.5P}."
)


@part("tasks", "beams")
@dataclass(frozen=True, slots=True)
class Beams:
    """Endless beams of length L, 2L, ... under loads P, 2P, ... at places on them; verifier ``reactions`` judges.

    An axis says what a task differs in from what is trained on:

    - ``trained``: ``loads`` loads at most, supports at the ends;
    - ``loads``: more of them, up to ``more``;
    - ``supports``: supports that are moved inwards, loads between and beyond them;
    - ``wording``: other words.

    Axes take turns; ``meta["axis"]`` names a task's, so that ``assay eval --by axis`` tells them apart.

    Source: BeamPERL (arXiv 2603.04124) and its authors' code, which has every one of the 189 beams of the axis
    ``trained`` once, in two wordings of a language model's.

    Args:
        seed: >= 0.
        axes: any of the four.
        loads, more: see above; 1 <= loads < more.
        parts: places are multiples of this part of the length, both ends among them; at least 4.
        longest: lengths are L to this many L, 1 or more.
        heaviest: loads are P to this many P, 1 or more.

    Raises:
        UsageError: an option out of range.
    """

    seed: int = 0
    axes: tuple[Axis, ...] = ("trained",)
    loads: int = 1
    more: int = 3
    parts: int = 20
    longest: int = 3
    heaviest: int = 3

    def __post_init__(self) -> None:
        check_seed("tasks 'beams'", self.seed)
        if not self.axes or set(self.axes) - set(AXES):
            raise UsageError(f"tasks 'beams': axes {list(self.axes)} must be some of {', '.join(AXES)}")
        if not 1 <= self.loads < self.more <= self.parts or self.parts < 4:
            raise UsageError(
                f"tasks 'beams': loads {self.loads}, more {self.more} and parts {self.parts} must satisfy 1 <= loads < "
                "more <= parts, parts at least 4"
            )
        if self.longest < 1 or self.heaviest < 1:
            raise UsageError(f"tasks 'beams': longest {self.longest} and heaviest {self.heaviest} must be 1 or more")

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        check_index(index, None)
        rng = generator(self.seed, index)
        axis = self.axes[index % len(self.axes)]
        ends = (0, self.parts)
        if axis == "supports":
            first = int(rng.integers(1, self.parts // 2))
            ends = first, int(rng.integers(first + 1, self.parts))
        low, high = (self.loads + 1, self.more) if axis == "loads" else (1, self.loads)
        count = int(rng.integers(low, high + 1))
        places = sorted(rng.permutation(self.parts + 1)[:count].tolist())
        weights = rng.integers(1, self.heaviest + 1, size=count).tolist()
        length = int(rng.integers(1, self.longest + 1))
        left, right = reactions(ends, list(zip(places, weights, strict=True)))
        words = _OTHER if axis == "wording" else _WORDS
        told = [f"a load {_times(w)} at x = {self._place(x, length)}" for x, w in zip(places, weights, strict=True)]
        listed = told[0] if count == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
        text = words[int(rng.integers(len(words)))].format(
            length=self._place(self.parts, length),
            a=self._place(ends[0], length),
            b=self._place(ends[1], length),
            loads=listed,
        )
        text = text[0].upper() + text[1:]
        return Task(
            f"beams/{self.seed}/{index}",
            text + _ASK,
            {"reactions": {"R_A": str(left), "R_B": str(right)}},
            "reactions",
            self._worked(ends, places, weights, length, left, right),
            meta={"source": "beams", "axis": axis, "difficulty": count},
        )

    def _place(self, x: int, length: int) -> str:
        share = Fraction(x * length, self.parts)
        return "0" if not share else "L" if share == 1 else f"{float(share):g}L"

    def _worked(
        self,
        ends: tuple[int, int],
        places: list[int],
        weights: list[int],
        length: int,
        left: Fraction,
        right: Fraction,
    ) -> str:
        def lever(x: int) -> str:
            return f"{float(Fraction((x - ends[0]) * length, self.parts)):g}"

        moments = " + ".join(f"{w} * {lever(x)}" for x, w in zip(places, weights, strict=True))
        return (
            f"<think>Moments about A: R_B * {lever(ends[1])} = {moments}, so R_B = {float(right):.6g}P. The sum is "
            f"{sum(weights)}P, so R_A = {float(left):.6g}P.</think>\\boxed{{R_A = {float(left):.6g}P, R_B = "
            f"{float(right):.6g}P}}"
        )


def _times(weight: int) -> str:
    return "P" if weight == 1 else f"{weight}P"
