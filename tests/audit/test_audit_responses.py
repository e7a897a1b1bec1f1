"""Responses from templates: every slot is filled, labels follow from what is marked, and rates of the verifier."""

from __future__ import annotations

import collections
import random
import re
import tomllib
from pathlib import Path

import pytest

import assay.audit.generate as package
from assay.audit.generate import cases, families, responses
from assay.audit.generate.base import FAMILIES, LAST, REFUSE, Answer, Draw
from assay.audit.measure import Confusion
from assay.audit.outcome import Status
from assay.errors import UsageError
from assay.registry import build

HERE = Path(package.__file__).parent
CHEATS = tomllib.loads((HERE / "cheats.toml").read_text())
SHELLS = tomllib.loads((HERE / "shells.toml").read_text())
KINDS = sorted(set(CHEATS) - {"bases"})
KEYS = ("right", "wrong", "wrong_unmarked")
families()


def test_every_kind_of_cheat_is_a_family_with_honest_twins() -> None:
    asked = {
        "echo", "master_key", "injection", "several_values", "alternatives", "truncated", "garbage", "unevaluated",
        "right_only_in_working", "placeholder", "negated_mark", "operator_after_mark", "disowned",
    }  # fmt: skip
    assert asked <= set(KINDS) and {*KINDS, "other_value"} <= set(families())
    assert all(CHEATS[kind]["right"] and CHEATS[kind]["wrong"] for kind in KINDS)
    assert {kind for kind in KINDS if not FAMILIES[kind].counted} == {"disowned"}


def shape(template: str) -> re.Pattern[str]:
    """What any response from ``template`` looks like; a full stop behind a slot may be that of the answer."""
    parts, end = [], 0
    for slot in responses._SLOT.finditer(template):
        parts.append(
            re.escape(template[end : slot.start()]).removeprefix(r"\.") if end else re.escape(template[: slot.start()])
        )
        end = slot.end()
    last = re.escape(template[end:])
    return re.compile(".*".join([*parts, last.removeprefix(r"\.") if end else last]), re.DOTALL)


@pytest.mark.parametrize("kind", KINDS)
def test_every_template_is_used_with_its_label(kind: str) -> None:
    """Over some problems each template occurs, and every response is one of a template with its label."""
    unused = {(key, template) for key in KEYS for template in CHEATS[kind].get(key, ())}
    for seed in range(20):
        draw = FAMILIES[kind].draw(random.Random(seed))
        for label, answers in draw.answers.items():
            for a in answers:
                key = "right" if label else "wrong_unmarked" if a.holds == (REFUSE,) else "wrong"
                fitting = {(key, t) for t in CHEATS[kind][key] if shape(t).fullmatch(a.text)}
                assert fitting, a
                unused -= fitting
                assert label == (a.value == draw.gold) and a.form == "whole"
    assert not unused


def test_wrong_templates_never_mark_the_right_value_alone() -> None:
    """Read with other eyes: the last box, tag or line of hashes of a wrong response does not hold just the answer."""
    mark = re.compile(r"\\boxed\{(.*)\}|<answer>(.*?)</answer>|#### (.*)")
    for c in cases(8, 60 * len(KINDS), [k for k in KINDS if k != "disowned"]):
        if c.label:
            continue
        marks = list(mark.finditer(c.response))
        if marks and c.family not in ("negated_mark", "operator_after_mark", "several_values", "hidden"):
            said = next(g for g in marks[-1].groups() if g is not None).strip().removesuffix("$").removeprefix("$")
            assert said != c.answer, c


def test_honest_shells_hold_the_answer_and_say_whether_they_mark_it() -> None:
    draw = Draw("How much is 5 + 7?", "12", 12, "We add.", slots={"unit": "cm"})
    for text, form in (("12", "plain"), (r"\frac{24}{2}", "latex"), ("12, as one sees", "text")):
        answer = Answer("digits", text, form, 12)  # type: ignore[arg-type]
        found = responses.fitting(answer, draw)
        assert {shell.style for shell, _ in found} >= {"hashes", "phrase", "label", "heading", "language"}
        assert all(text in response for _, response in found)
        assert any(shell.marked for shell, _ in found) and not all(shell.marked for shell, _ in found)
        assert form != "text" or not any("boxed" in response for _, response in found)
        assert form != "latex" or all("$" in r or "\\" in s.template or "{value}" in s.template for s, r in found)
    # An answer with a full stop gets no second one.
    assert not any(".." in r for _, r in responses.fitting(Answer("digits", "12.", "text", 12), draw))


def test_labels_of_unmarked_answers_hold_for_one_setting() -> None:
    """A right value without a mark is right for ``last`` only; a wrong one is wrong for both."""
    seen = set()
    for c in cases(2, 300, ["integers", "other_value"]):
        assert c.unmarked == ((REFUSE, LAST) if not c.label or c.unmarked != (LAST,) else (LAST,))
        if c.family == "integers":
            assert (c.unmarked == (LAST,)) == (c.label and c.meta["shell"] == "last sentence")
        seen.add((c.label, c.unmarked))
    assert seen == {(True, (REFUSE, LAST)), (True, (LAST,)), (False, (REFUSE, LAST))}
    for setting in (REFUSE, LAST):
        assert all(setting in c.unmarked for c in cases(2, 200, unmarked=setting))
    with pytest.raises(UsageError, match="'refuse' or 'last'"):
        cases(2, 1, unmarked="never")


def test_every_shell_and_slot_is_known() -> None:
    assert {g["style"] for g in SHELLS["shells"]} == {s.style for s in responses.shells()}
    assert {g.get("takes", "any") for g in SHELLS["shells"]} <= {"any", "box", "inline", "code", "choice"}
    templates = [s.template for s in responses.shells()] + [
        t for k in KINDS for key in KEYS for t in CHEATS[k].get(key, ())
    ]
    for template in templates:
        # What stands in braces with a sign that only slots have is a slot.
        for name in re.findall(r"\{[$\[]([a-z_]+)\]?\}", template):
            assert name in responses.NAMES, template
        assert responses.fill(template, dict.fromkeys(responses.NAMES, ("@", "plain"))) is not None


def test_no_file_of_the_generator_is_too_long() -> None:
    """Newcomers read it: files of at most 400 lines, 20 to a folder, 5,500 lines in all."""
    files = [p for p in HERE.rglob("*") if p.suffix in (".py", ".toml")]
    lines = {p.name: len(p.read_text().splitlines()) for p in files}
    assert max(lines.values()) <= 400 and sum(lines.values()) <= 5500
    assert max(collections.Counter(p.parent for p in files).values()) <= 20
    assert not [p.name for p in files if "_more" in p.name]


MATHS = 2000
NONE_ACCEPTED = ("echo", "master_key", "injection", "several_values", "truncated", "garbage", "right_only_in_working")


@pytest.fixture(scope="module")
def judged() -> list[tuple[str, bool, Status]]:
    """Family, label and outcome of cases of mathematics, where only marked answers are taken."""
    verifier = build("verify", {"name": "math", "unmarked": REFUSE})
    found: list[tuple[str, bool, Status]] = []
    for c in cases(31, MATHS, unmarked=REFUSE):
        if c.counted and c.verifier == "math":
            passed = verifier(c.task(), c.response).passed
            found.append((c.family, c.label, "accepted" if passed else "rejected"))
    return found


@pytest.mark.slow
def test_error_rates_over_all_families(judged: list[tuple[str, bool, Status]]) -> None:
    """Right ones refused at most 6 %, wrong ones accepted at most 0.5 %."""
    rates = Confusion.count((label, status) for _, label, status in judged)
    assert rates.right > 800 and rates.wrong > 800
    assert rates.false_negative_rate.value <= 0.06 and rates.false_positive_rate.value <= 0.005


@pytest.mark.slow
def test_no_structural_cheat_is_accepted(judged: list[tuple[str, bool, Status]]) -> None:
    fooled = [
        family for family, label, status in judged if not label and status == "accepted" and family in NONE_ACCEPTED
    ]
    assert not fooled


def test_a_unit_stands_behind_bare_numbers_only() -> None:
    draw = Draw("How long, in km?", "5 km", 5, slots={"unit": "km"})
    behind = {
        text: [r for _, r in responses.fitting(Answer("a", text, "plain", 5), draw) if "km" in r]
        for text in ("5", "5 km")
    }
    assert behind["5"] and all(re.search(r"\\boxed\{5\}\S* ?\S*km", r) for r in behind["5"])
    assert not any(re.search(r"km.*km", r) for r in behind["5 km"])
