"""A response cut into words, sentences, paragraphs and lines, each in linear time and when first asked for."""

from __future__ import annotations

import re
from functools import cached_property

WORD = re.compile(r"\w+")


class Passage:
    """A response; ``prompt`` is the task's question, for instructions that refer to it."""

    def __init__(self, text: str, prompt: str = ""):
        self.text, self.prompt = text, prompt

    @cached_property
    def lower(self) -> str:
        return self.text.lower()

    @cached_property
    def words(self) -> list[str]:
        r"""Runs of letters, digits and underscores (``\w+``): "well-known" is two words, as IFEval counts."""
        return WORD.findall(self.text)

    @cached_property
    def sentences(self) -> list[str]:
        return split_sentences(self.text)

    @cached_property
    def paragraphs(self) -> list[str]:
        """What blank lines separate, without empty ones."""
        return [p.strip() for p in re.split(r"\n[^\S\n]*\n", self.text) if p.strip()]

    @cached_property
    def lines(self) -> list[str]:
        """Lines that hold something, without white space around them."""
        return [line.strip() for line in self.text.splitlines() if line.strip()]


# Every run of marks is tried once, from its first: the look-behind keeps "!!!!x" linear.
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]}*_]*+(?=\s|\Z)|[。！？｡]++[」』”’）]*+",
)
_ABBREVIATIONS = frozenset(
    (  # noqa: SIM905
        "mr mrs ms mx dr prof st jr rev capt lt sgt maj gov supt vs viz cf e.g i.e eg ie al approx ca dept univ"
        " assn bros vol vols pp pg eds repr jan feb apr aug sept oct nov dec tue tues thu thur thurs fri blvd rd mt ft"
    ).split(" ")
)
# These are words as well: abbreviations with a capital letter only ("Gen. Lee"; "the cat sat."), or before a number.
_CAPITALISED = frozenset(
    ("gen", "hon", "col", "sen", "rep", "pres", "sat", "sun", "mon", "wed", "mar", "jun", "jul", "sep", "ave")
)
_BEFORE_NUMBER = frozenset(["no", "nos", "fig", "figs", "eq", "eqs", "ch", "sec", "p", "art", "para", "line"])
# After these a word that often begins a sentence tells a new one.
_MAY_END = frozenset(
    (
        "etc",
        "a.m",
        "p.m",
        "u.s",
        "u.k",
        "u.n",
        "d.c",
        "ph.d",
        "m.d",
        "b.a",
        "m.a",
        "inc",
        "ltd",
        "co",
        "corp",
        "jr",
        "sr",
    )
)
_STARTERS = frozenset(
    ("He", "She", "It", "They", "We", "You", "I", "The", "This", "That", "These", "Those", "There", "In", "On", "At")
) | {"But", "And", "However", "A", "An", "His", "Her", "Their", "Our", "My", "If", "When", "While", "After", "Before"}
_BEFORE = re.compile(r"[^\s(\[\"'“‘*_]*\Z")
_TOKEN = re.compile(r"\S+")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of ``text``, stripped.

    A sentence ends at ``.``, ``!``, ``?``, ``…`` (with closing quotes and brackets) before white space, and at their
    CJK forms. A full stop does not end one after an abbreviation, an initial or the number of a list item, nor
    do dots before a small letter. A line break alone ends nothing.
    """
    found, start = [], 0
    for match in _END.finditer(text):
        mark = match.group()
        if set(mark) & set(".…") and not set(mark) & set("!?") and not _ends(text, start, match):
            continue
        if sentence := text[start : match.end()].strip():
            found.append(sentence)
        start = match.end()
    if rest := text[start:].strip():
        found.append(rest)
    return found


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Say whether the full stop ends the sentence that began at ``start``."""
    after = _TOKEN.search(text, match.end(), match.end() + 200)
    word = after.group().lstrip("\"'“‘«([{*_") if after else ""
    if not word:
        return True
    if match.group().count(".") != 1:
        return not word[0].islower()
    # A word is looked for only a little way back: a longer one is no abbreviation.
    found = _BEFORE.search(text[max(start, match.start() - 24) : match.start()])
    before = found.group() if found else ""
    short = before.lower()
    if short in _MAY_END:
        return word[0].isupper() if short == "etc" else word.rstrip(",") in _STARTERS
    if short in _ABBREVIATIONS or (short in _CAPITALISED and before[0].isupper()):
        return False
    if short in _BEFORE_NUMBER and word[0].isdigit():
        return False
    if len(before) == 1 and before.isupper():
        return before == "I" or word.rstrip(",") in _STARTERS - {"A", "I"}
    # "1. First": the number of a list item stands at the beginning of its line.
    window = text[max(0, match.start() - 24) : match.start()]
    alone = window.rpartition("\n")[2].strip() == before and (match.start() <= 24 or "\n" in window)
    return not (alone and before.isdigit() and len(before) <= 3)
