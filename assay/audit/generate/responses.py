r"""Whole responses out of templates: honest shells around an answer, and cheats that earn nothing.

``shells.toml`` holds what honest responses put around an answer, ``cheats.toml`` a family of responses for each kind of
cheat, with honest ones of the same looks; both say in their first lines which slots there are. In a template ``{name}``
is a text as it is, ``{$name}`` in math mode if it is LaTeX, ``{[name]}`` in a box: ``$\boxed{...}$``.
"""

from __future__ import annotations

import functools
import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assay.audit.generate.base import LAST, REFUSE, Answer, Draw, Form, family, find

HERE = Path(__file__).parent
NAMES = frozenset(
    ("value", "wrong", "other", "question", "reference", "work", "half", "noise", "gold", "low", "high", "run", "step")
) | frozenset(("unit", "options", "words", "expression", "code", "half_done"))
"""All that a template may ask for; other words in braces are LaTeX's."""
_SLOT = re.compile(r"\{(?P<style>[$\[]?)(?P<name>" + "|".join(sorted(NAMES)) + r")\]?\}")
AFTER = 0.2
"""Share of marked answers that text follows."""
SEVERAL = frozenset(
    ("both signs", "one missing", "one extra", "reciprocal", "two letters", "all", "none", "no such option", "both")
) | frozenset(("letter with another text", "cannot tell", "not worked out", "cut off", "rounded", "nearly"))
"""Near misses that state more or less than one value: beside the right answer they would say something else."""

Text = tuple[str, Form]


class Shell(NamedTuple):
    """A template for an answer, and whether it marks it; see ``shells.toml``."""

    style: str
    template: str
    takes: str = "any"
    marked: bool = True


def fill(template: str, texts: Mapping[str, Text]) -> str | None:
    """Return ``template`` with its slots filled; ``None`` if it asks for one that ``texts`` lacks."""
    if not _asked(template) <= texts.keys():
        return None

    def one(slot: re.Match[str]) -> str:
        text, form = texts[slot["name"]]
        if slot["style"] == "[":
            return rf"$\boxed{{{text}}}$"
        return f"${text}$" if slot["style"] == "$" and form == "latex" else text

    # An answer that ends in a full stop needs no second one.
    for name, (text, _) in texts.items():
        if text.endswith("."):
            template = re.sub(rf"(\{{\$?{name}\}})\.", r"\1", template)
    return _SLOT.sub(one, template)


@functools.cache
def _asked(template: str) -> frozenset[str]:
    return frozenset(slot["name"] for slot in _SLOT.finditer(template))


def slots(draw: Draw) -> dict[str, Text]:
    """The texts that any template about ``draw`` may use."""
    found: dict[str, Text] = {name: (text, "plain") for name, text in draw.slots.items()}
    found |= {"question": (draw.question, "text"), "reference": (draw.reference, "plain")}
    return found | {"work": (draw.work, "text")} if draw.work else found


@functools.cache
def shells() -> tuple[Shell, ...]:
    """All shells of ``shells.toml``."""
    return tuple(
        Shell(group["style"], template, group.get("takes", "any"), group.get("marked", True))
        for group in _read("shells.toml")["shells"]
        for template in group["templates"]
    )


def fitting(answer: Answer, draw: Draw) -> list[tuple[Shell, str]]:
    """The shells that ``answer`` fits into, each with the response, without working."""
    texts = _texts_of(answer, draw)
    filled = ((shell, fill(shell.template, texts)) for shell in _shells_for(answer, draw, texts))
    return [(shell, text) for shell, text in filled if text is not None]


def _texts_of(answer: Answer, draw: Draw) -> dict[str, Text]:
    texts = slots(draw) | {"value": (answer.text, answer.form)}
    if not answer.text.isdigit():
        texts.pop("unit", None)  # it may have one already
    return texts


def _shells_for(answer: Answer, draw: Draw, texts: Mapping[str, Text]) -> list[Shell]:
    takes = functools.cache(lambda need: _takes(need, answer, draw))
    return [shell for shell in shells() if _asked(shell.template) <= texts.keys() and takes(shell.takes)]


def wrap(answer: Answer, draw: Draw, rng: random.Random) -> tuple[str, Shell]:
    """Return a whole response that says ``answer``, and the shell it is in."""
    texts = _texts_of(answer, draw)
    choices = _shells_for(answer, draw, texts)
    style = rng.choice(list(dict.fromkeys(shell.style for shell in choices)))
    shell = rng.choice([shell for shell in choices if shell.style == style])
    text = fill(shell.template, texts)
    assert text is not None
    return around(text, shell.marked, draw, rng), shell


def around(text: str, marked: bool, draw: Draw, rng: random.Random) -> str:
    """Put working before an answer and, at times, a remark after one that is marked."""
    before = rng.choice(_read("shells.toml")["workings"])
    # A family without a sentence of its own leaves no gap.
    before = before.replace("{work}", draw.work) if draw.work else re.sub(r" ?\{work\}(\n\n)?", "", before)
    return before + text + (rng.choice(_read("shells.toml")["after"]) if marked and rng.random() < AFTER else "")


def _takes(need: str, answer: Answer, draw: Draw) -> bool:
    text, many = answer.text, "\n" in answer.text or "\\begin" in answer.text
    if need == "box":
        return answer.form != "text"
    if need == "inline":
        return not many and not set(text) & set("|*")
    if need == "choice":
        return draw.verifier == "choice" and answer.form != "text"
    if need == "code":
        return answer.form == "plain" and not many and not set(text) & set('<>&`*$\\"')
    return True


class Problem(NamedTuple):
    """A question of another family with a right answer and two wrong ones of different values."""

    draw: Draw
    right: Answer
    wrong: Answer
    other: Answer


def borrow(rng: random.Random, bases: Sequence[str]) -> Problem:
    """Draw a problem of one of the families ``bases`` whose question does not give its answer away."""
    while True:
        draw = find(rng.choice(bases)).draw(rng)
        right = draw.pick(True, rng)
        misses = [a for a in draw.answers[False] if a.kind not in SEVERAL and a.form != "text"]
        if right is None or right.form == "text" or not misses:
            continue
        wrong, other = rng.choice(misses), rng.choice(misses)
        if draw.verifier != "math" or (wrong.value != other.value and draw.reference not in draw.question):
            return Problem(draw, right, wrong, other)


def _texts(problem: Problem, rng: random.Random) -> dict[str, Text]:
    draw, right, wrong, other = problem
    noise = "".join(rng.choice("!?@^&~|;<>") for _ in range(rng.randint(5, 40)))
    found: dict[str, Text] = slots(draw) | {
        "value": (right.text, right.form),
        "wrong": (wrong.text, wrong.form),
        "other": (other.text, other.form),
        "noise": (noise, "plain"),
    }
    if len(right.text) > 2:
        found["half"] = (right.text[: len(right.text) // 2], "plain")
    if isinstance(draw.gold, int):
        low, high = draw.gold - rng.randint(2, 9), draw.gold + rng.randint(2, 9)
        run = ", ".join(map(str, range(low, high + 1)))
        numbers = {"gold": draw.gold, "low": low, "high": high, "step": rng.randint(1, 9), "run": run}
        found = {name: (str(text), "plain") for name, text in numbers.items()} | found
    return found


def _cheat(kind: str, spec: Mapping[str, Any], rng: random.Random) -> Draw:
    problem = borrow(rng, spec.get("bases", _read("cheats.toml")["bases"]))
    old = problem.draw
    draw = Draw(old.question, old.reference, old.gold, old.work, old.verifier)
    texts = _texts(problem, rng)
    for key, label, holds in (
        ("right", True, (REFUSE, LAST)),
        ("wrong", False, (REFUSE, LAST)),
        ("wrong_unmarked", False, (REFUSE,)),
    ):
        for template in spec.get(key, ()):
            if (text := fill(template, texts)) is not None:
                value, name = (old.gold, "answered") if label else (None, key.replace("wrong", kind))
                draw.answers[label].append(Answer(name, text, "whole", value, problem.right.text, holds))
    return draw


def _other_value(rng: random.Random) -> Draw:
    right, wrong = (problem := borrow(rng, _read("cheats.toml")["bases"])).right, problem.wrong
    old = problem.draw
    draw = Draw(old.question, old.reference, old.gold, old.work, old.verifier)
    for label, answer in ((True, right), (False, wrong)):
        for shell, text in fitting(answer, old):
            whole = around(text, shell.marked, old, rng)
            holds = (REFUSE, LAST) if shell.marked or not label else (LAST,)
            draw.answers[label].append(Answer(shell.style, whole, "whole", answer.value, answer.text, holds))
    return draw


@functools.cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


for _kind, _spec in _read("cheats.toml").items():
    if _kind != "bases":
        family(_kind, _spec["about"], _spec.get("counted", True))(functools.partial(_cheat, _kind, _spec))
family("other_value", "a near miss in every shell there is; the twins are right")(_other_value)
