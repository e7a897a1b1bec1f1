"""S041: four cells, what fails apart from what is wrong, rates by hand, and what always holds."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from assay import catalogue
from assay.audit.labelled import Row, read_labelled
from assay.cli.audit import audit
from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.papers.judges.s041_verifybench import CELLS, TOKENS, changes, grid, sensitivity, verifybench
from assay.rewards.judges.word_judge import TEMPLATE, WordJudge, viewed
from assay.tasks.judging.boundary import boundary_cases
from assay.tasks.judging.words import said_word
from assay.types import Episode, Task, Verdict
from assay.verify.make import make_verifier
from assay.verify.math.verifier import Math

TEN = [
    Row(Task(str(k), f"Question {k}?", "42"), f"Number {k}.", k < 6, "math" if k < 4 else "biology") for k in range(10)
]


def said(pattern: str) -> dict[str, bool | None]:
    return {f"Number {k}.": {"1": True, "0": False, "?": None}[c] for k, c in enumerate(pattern)}


def verifier(pattern: str, asked: list[str] | None = None):  # type: ignore[no-untyped-def]
    verdicts = said(pattern)

    def judge(task: Task, response: str) -> Verdict:
        if asked is not None:
            asked.append(response)
        passed = verdicts.get(response)
        return Verdict(float(bool(passed)), passed)

    return judge


class Thinks(Keywords):
    """An engine that writes ten letters of thought for each of its ``need`` tokens, as far as it may, before it says
    Correct."""

    def __init__(self, need: int):
        super().__init__(())
        self.need, self.caps = need, list[int]()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.caps += [r.sampling.max_tokens for r in requests]
        texts = ["so " * self.need + "[Correct]" if r.sampling.max_tokens > self.need else "so " * 8 for r in requests]
        return [[Episode(self.encode(""), self.encode(t), self.encode(t) > 0, None, t, "eos")] for t in texts]


def test_four_cells() -> None:
    assert CELLS == (("complete", "short"), ("complete", "long"), ("boxed", "short"), ("boxed", "long"))
    assert TOKENS == {"short": 8, "long": 4096}
    assert viewed(r"x \boxed{1} y \boxed{2} z", "boxed") == r"\boxed{2}" and viewed("none", "boxed") == ""
    assert viewed(r"x \boxed{1}", "complete") == r"x \boxed{1}"
    engine = Thinks(0)
    rows = [Row(Task("t", "Q?", "7"), r"So \boxed{7}.", True)]
    found = grid(rows, {"model": WordJudge(engine)})["model"]
    assert list(found) == list(CELLS) and engine.caps == [8, 4096, 8, 4096]
    shown: list[str] = []
    grid(rows, {"rule": lambda task, response: bool(shown.append(response))})  # type: ignore[func-returns-value]
    assert shown == [r"So \boxed{7}."] * 2 + [r"\boxed{7}"] * 2
    assert list(grid(rows, {"rule": Math()}, [CELLS[2]])["rule"]) == [CELLS[2]]
    for bad in (([], CELLS), (rows, [CELLS[0], ("boxed", "tall")])):
        with pytest.raises(UsageError, match="one or more, in cells of"):
            grid(bad[0], {}, bad[1])  # type: ignore[arg-type]


def test_a_judge_that_has_to_think() -> None:
    """One that needs 50 tokens fails in every short cell, and nothing there is scored wrong."""
    found = grid(TEN, {"model": verifybench(Thinks(50))})["model"]
    for cell, measured in found.items():
        short = cell[1] == "short"
        assert measured.failed == short and measured.unread == float(short)
        assert measured.overall.fn == 0 and math.isnan(measured.overall.accuracy.value) == short
        assert math.isnan(measured.gap) == short
    assert found["complete", "long"].overall.accuracy.value == 0.6
    assert sensitivity(found) == 1.0 == changes(found)[CELLS[0], CELLS[1]] and changes(found)[CELLS[0], CELLS[2]] == 0.0
    assert len(changes(found)) == 6


def test_rates_by_hand() -> None:
    """Labels 1111110000; verdicts 1111000000, then 1111111000, then with two that are missing."""
    found = {name: grid(TEN, {"v": verifier(name)}, CELLS[:1])["v"][CELLS[0]] for name in ("1111000000", "1111111000")}
    first, second = (m.overall for m in found.values())
    assert (first.precision.value, first.recall.value) == pytest.approx((1.0, 0.6667), abs=1e-4)
    assert (first.f1, first.kappa, first.balanced_accuracy) == pytest.approx((0.8, 0.6154, 0.8333), abs=1e-4)
    assert (second.precision.value, second.recall.value) == pytest.approx((0.8571, 1.0), abs=1e-4)
    assert (second.f1, second.kappa, second.balanced_accuracy) == pytest.approx((0.9231, 0.7826, 0.875), abs=1e-4)
    # Of four questions in mathematics all are right; of six in biology those two are missed that are right.
    subjects = found["1111000000"].subjects
    assert subjects["math"].recall.value == 1.0 and subjects["biology"].recall.value == 0.0
    assert subjects["biology"].accuracy.value == pytest.approx(4 / 6)
    assert found["1111000000"].gap == pytest.approx(2 / 6)
    # Where one subject has no verdict there is no gap, and not one of 0.
    assert math.isnan(grid(TEN, {"v": verifier("1111??????")}, CELLS[:1])["v"][CELLS[0]].gap)
    missing = grid(TEN, {"v": verifier("11??111000")}, CELLS[:1])["v"][CELLS[0]]
    assert missing.unread == 0.2 and missing.overall.decided == 8 and not missing.failed
    assert missing.overall.accuracy.value == 7 / 8 and missing.overall.recall.value == 1.0


def test_sensitivity_and_gap() -> None:
    one, two, three = (
        grid(TEN, {"v": verifier(p)}, CELLS[:1])["v"][CELLS[0]] for p in ("1111000000", "1?11100000", "1111000001")
    )
    cells = dict(zip(CELLS, (one, two, three), strict=False))
    assert sensitivity(cells) == pytest.approx(0.3)  # rows 1, 4 and 9
    assert list(changes(cells).values()) == pytest.approx([0.2, 0.1, 0.3])
    with pytest.raises(UsageError, match="two cells or more"):
        sensitivity({CELLS[0]: one})


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("[Correct]", True),
        ("It is [correct], or rather [Incorrect].", False),
        (r"\boxed{Incorrect} \boxed{\text{Correct}}", True),
        ("Incorrect.", False),
        ("Judgment: Correct", None),
        ("the answer is not correct", None),
        ("", None),
    ],
)
def test_the_words_of_a_verdict(reply: str, right: bool | None) -> None:
    assert said_word(reply) is right
    judge = verifybench(Keywords((), reply))
    assert judge(TEN[0].task, "42").passed is right
    assert WordJudge(Keywords((), reply), unread="wrong")(TEN[0].task, "42").passed is bool(right)


def test_a_judge_and_its_options() -> None:
    judge = verifybench(Keywords((), "Correct"))
    assert (judge.temperature, judge.top_p, judge.max_tokens, judge.template) == (0.2, 0.95, 4096, TEMPLATE)
    asked = judge.question(TEN[1].task, "So {reference}")
    assert "Question 1?" in asked and "answer:\n42" in asked and "Response:\nSo {reference}" in asked
    assert r"Response:" + "\n" + r"\boxed{3}" in WordJudge(judge.judge, view="boxed").question(
        TEN[1].task, r"a \boxed{3}"
    )
    assert judge(Task("n", "q"), "42").passed is None
    plain = WordJudge(judge.judge)
    assert (plain.temperature, plain.top_p, plain.max_tokens, plain.unread) == (0.0, 1.0, 4096, "abstain")
    with pytest.raises(UsageError, match="must show"):
        WordJudge(judge.judge, template="{response}")
    assert catalogue.find("S041").factory is verifybench


def test_what_always_holds() -> None:
    """On cases of every pattern: a verifier that compares texts is precise and recognises no other writing; one that
    always says yes has recall 1 and the share of right ones as precision; one that is blind sees no difference."""
    items = [i for i in boundary_cases(2, np.random.default_rng(0)) if i.label != "C" and i.pattern != "broken symbols"]
    rows = [
        Row(Task(str(k), i.question, i.reference), i.response, i.label == "A", i.domain, i.pattern)
        for k, i in enumerate(items)
    ]
    rows += [Row(row.task, rf"\boxed{{{row.task.reference}}}", True, row.category, "literal") for row in rows]
    exact = make_verifier({"name": "exact"})
    found = grid(rows, {"exact": exact, "yes": lambda t, r: True, "blind": lambda t, r: len(t.question) % 2 == 0})
    literal = found["exact"]["boxed", "short"]
    assert literal.overall.precision.value == 1.0 and literal.patterns["literal"].recall.value == 1.0
    equivalents = [c for name, c in literal.patterns.items() if name != "literal" and c.tp + c.fn]
    assert len(equivalents) == 10 and all(c.recall.value == 0.0 for c in equivalents)
    yes = found["yes"]["complete", "long"].overall
    assert yes.recall.value == 1.0 and yes.precision.value == 0.7
    assert sensitivity(found["blind"]) == 0.0 < sensitivity(found["exact"])
    # A rule of mathematics sees more: other writings of a number.
    rule = grid(rows, {"math": Math()}, [CELLS[1]])["math"][CELLS[1]]
    assert literal.overall.recall.value < rule.overall.recall.value


def test_a_general_model_first_and_a_special_one_behind() -> None:
    first, second = verifier("1111111100"), verifier("1111100011")
    both = make_verifier({"name": "gated", "gate": first, "then": second})
    found = grid(TEN, {"both": both}, CELLS[:1])["both"][CELLS[0]]
    assert found.verdicts == tuple(c == "1" for c in "1111100000")


def test_a_cell_in_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"question": "?", "reference": "7", "response": rf"{w} \boxed{{{n}}}", "label": n == 7, "category": "physics"}
        for w in ("so", "7 or")
        for n in (7, 8)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    seen, no = r"Response:(.|\n)*7(.|\n)*Is the", "[Incorrect]"
    judge = f'judge={{name="keywords", replies=[[{json.dumps(seen)}, "[Correct]"]], otherwise="{no}"}}'
    words = ("assay.rewards.judges.word_judge:WordJudge", str(file), judge, "view=boxed", "max_tokens=8")
    assert audit(words, as_json=True, workers=1) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["clean"]["accuracy"]["value"] == 1.0 == report["categories"]["physics"]["recall"]["value"]
    # The complete response names the reference whatever stands in its box.
    model = WordJudge(Keywords([(seen, "[Correct]")], no))
    [[measured]] = [list(cells.values()) for cells in grid(read_labelled(file), {"m": model}, CELLS[:1]).values()]
    assert measured.overall.accuracy.value == 0.75
