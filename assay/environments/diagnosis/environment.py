"""The chain from a complaint to a diagnosis: after each piece of the record a ranked differential, with evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.environments.base import Action, Agreement, Observation, Step
from assay.environments.diagnosis.records import SECTIONS, SIGNS, Records, Style, fits, piece
from assay.environments.tools import say
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_seed
from assay.types import Message, Task, Verdict

MOST = len(next(iter(SIGNS.values())))


@part("environment", "diagnosis")
class Diagnosis:
    """A record is shown section by section; each turn ends with a differential and the evidence for its first disease.

    The last line of a turn is ``X > Y | finding, finding``: diseases that are told of, the likeliest first, and
    findings. One that cannot be read counts as no differential, makes the turn invalid and is answered by what is wrong
    with it; the next piece is shown all the same, so that an episode has as many turns as the record has sections.

    The verdict is on the line after the last piece. Its score is 1 / (rank of the patient's disease), 0 where it is
    not named, and it passes where that disease is the first. Parts: ``diagnosis``, that score; ``evidence``, the F1 of
    the findings given there against the disease's criteria, so that to give them all is not best; ``differential``,
    the mean of 1 / rank over all turns. An episode that stops before the record does has no diagnosis.

    Args:
        diseases: told of, 2 to 8.
        sections: of the record, 1 to 4: complaint, history, examination, tests.
        signs: known in each section, 2 to 10; ``signs ** sections`` has to be at least ``diseases``.
        extra: incidental findings in a section, at most; fewer where more would leave two diseases.
        style: ``words``; or ``compact``, letters and digits for small models.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: an option out of range.

    Source: the evidence-based diagnostic chain of WiNGPT-3.0 (arXiv 2505.17387), whose details are not given.
    """

    def __init__(
        self,
        diseases: int = 4,
        sections: int = len(SECTIONS),
        signs: int = MOST,
        extra: int = 2,
        style: Style = "words",
        seed: int = 0,
    ):
        check_seed("environment 'diagnosis'", seed)
        if not (2 <= diseases <= 8 and 1 <= sections <= len(SECTIONS) and 2 <= signs <= MOST and extra >= 0):
            raise UsageError(
                f"environment 'diagnosis': diseases {diseases} must be 2 to 8, sections {sections} 1 to "
                f"{len(SECTIONS)}, signs {signs} 2 to {MOST} and extra {extra} at least 0"
            )
        if signs**sections < diseases or style not in ("words", "compact"):
            raise UsageError(
                f"environment 'diagnosis': {signs} signs in {sections} sections are too few to tell {diseases} "
                f"diseases apart, or style {style!r} is neither words nor compact"
            )
        self.records = Records(seed, diseases, sections, signs, extra, style)
        self.style, self.sections = style, sections
        self.task: Task | None = None
        self.turns: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def tasks(self) -> Records:
        return self.records

    def reset(self, task: Task, seed: int) -> Observation:
        self.task, self.turns = task, []
        self.criteria, self.pieces = task.meta["criteria"], task.meta["pieces"]
        between = "\n" if self.style == "compact" else "\n\n"
        shown = f"{task.question}{between}{piece(0, self.pieces[0], self.style)}"
        return Observation((Message(role="user", content=shown),), state=self._state())

    def step(self, action: Action) -> Step:
        if self.task is None or self._over:
            raise RuntimeError("no episode is under way; call reset first")
        ranked, evidence, error = self._read(action.text)
        self.turns.append((ranked, evidence))
        told = "?" if error and self.style == "compact" else error
        follows = "" if self._over else piece(len(self.turns), self.pieces[len(self.turns)], self.style)
        said = "\n".join(filter(None, [told, follows]))
        messages = (Message(role="user", content=said),) if said else ()
        return Step(
            Observation(messages, state=self._state()),
            terminated=self._over,
            valid=not error,
            error=error,
            info={"differential": list(ranked), "evidence": list(evidence)},
        )

    def verdict(self) -> Verdict:
        if self.task is None or not self._over:
            return Verdict.wrong("the record has not been read to its end")
        ranks = [_reciprocal(ranked, self.task.meta["disease"]) for ranked, _ in self.turns]
        parts = {
            "diagnosis": ranks[-1],
            "evidence": _f1(self.turns[-1][1], self.criteria[self.task.meta["disease"]]),
            "differential": sum(ranks) / len(ranks),
        }
        passed = ranks[-1] == 1
        return Verdict(ranks[-1], passed, parts, "" if passed else f"it was {self.task.meta['disease']}")

    def close(self) -> None:
        self.task = None

    def state_json(self) -> Any:
        return {"turns": [{"differential": list(ranked), "evidence": list(found)} for ranked, found in self.turns]}

    def judge(self, action: Action) -> Verdict:
        """A differential is right where no disease fits what has been shown better than its first, nor any so well that
        it leaves out, and all evidence has been shown."""
        ranked, evidence, error = self._read(action.text)
        shown = self._shown(len(self.turns) + 1)
        if error or not {*evidence} <= {*map(_plain, shown)}:
            return Verdict.wrong(error or "evidence that has not been shown")
        likely = self._likely(shown)
        return Verdict.right() if ranked[0] in likely and {*likely} <= {*ranked} else Verdict.wrong()

    def compare(self, action: Action, expert: Action) -> Agreement:
        """Return how far a line agrees with another: of one kind are those with the same first disease."""
        one, two = self._read(action.text), self._read(expert.text)
        read = not one[2]
        same = (one[0], {*one[1]}) == (two[0], {*two[1]})
        return Agreement(read, read and one[0][:1] == two[0][:1], read and same)

    def gold(self) -> Sequence[Action]:
        """Return for each piece that is left the diseases that fit best so far, and the evidence for the first."""
        lines = []
        for k in range(len(self.turns) + 1, self.sections + 1):
            shown = self._shown(k)
            likely = self._likely(shown)
            evidence = [sign for sign in self.criteria[likely[0]] if sign in shown]
            space = "" if self.style == "compact" else " "
            ranked = f"{space}>{space}".join(likely)
            lines.append(say(f"{ranked}{space}|{space}{f',{space}'.join(evidence)}"))
        return lines

    @property
    def _over(self) -> bool:
        return len(self.turns) >= len(self.pieces)

    def _shown(self, pieces: int) -> list[str]:
        """Return the findings of the first pieces."""
        return [finding for found in self.pieces[:pieces] for finding in found]

    def _likely(self, shown: Sequence[str]) -> list[str]:
        found = fits(self.criteria, shown)
        return [name for name, count in found.items() if count == max(found.values())]

    def _read(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """Return the differential and the evidence of a turn's last line, and what is wrong with it."""
        line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        diseases, _, findings = line.partition("|")
        known = {name.casefold(): name for name in self.criteria}
        ranked = [known.get(_plain(name), "") for name in diseases.split(">")]
        if not all(ranked):
            return (), (), "end with a line of diseases that are told of: X > Y | findings for X"
        if len({*ranked}) < len(ranked):
            return (), (), "a disease has one place in the differential"
        return tuple(ranked), tuple(dict.fromkeys(filter(None, map(_plain, findings.split(","))))), ""

    def _state(self) -> str:
        return f"{self.task.id if self.task else ''}: {len(self.turns)} {self.turns[-1:]}"


def _plain(text: str) -> str:
    """Return a name or finding as names and findings are compared."""
    return " ".join(text.strip().rstrip(".").casefold().split())


def _reciprocal(ranked: Sequence[str], disease: str) -> float:
    return 1 / (ranked.index(disease) + 1) if disease in ranked else 0.0


def _f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    key = {*map(_plain, wanted)}
    return 2 * len(key & {*given}) / (len(key) + len(given))
