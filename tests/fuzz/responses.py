r"""Responses to a task: right answers bent in every way, text of the right sort, and text of no sort at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.entry import Case
from fuzz.soups import SOUPS, soup

REGULAR, LARGE = 100_000, 1_000_000
"""Characters of a large response, and of the largest."""

MARKED = {
    "answer_tag": "<answer>{}</answer>",
    "boxed": r"\boxed{{{}}}",
    "hashes": "#### {}",
    "phrase": "The answer is {}",
}
"""A right answer in each marker."""
MARKS = ("<answer>", "</answer>", r"\boxed{", "}", "{", "####", "```", "```json\n", "```sql\n", "~~~",
"The answer is ", "Answer: ",
         "answer is", "\n", " ", "$", "$$", r"\(", r"\)", r"\[", r"\]", "**", "<think>", "</think>", "答案是",
         "ответ:", "<tool_call>",
         "</tool_call>", "\\", '"', "(", ")", "[", "]", ".", "Final answer:", r"\fbox{", "</s>",
         "<|im_end|>")  # fmt: skip
NASTY = ("\x00", "\ud800", "\udfff", "\u200b", "\u202e", "\ufeff", "\u2028", "\x85", "\x1b[31m", "\r", "\u0301", "ﷺ",
"\U0001f468\u200d\U0001f469", "\U000e0041",
         "\u00a0", "\uffff", "İ", "ß", "ﬁ", "\u0336" * 20, "\x7f", "\x1c", "٫", "−", "，", "\u3000", "𝟙", "①",
         "Ⅳ")  # fmt: skip
DIGITS = (
    "٠١٢٣٤٥٦٧٨٩",
    "०१२३४५६७८९",
    "０１２３４５６７８９",
    "⁰¹²³⁴⁵⁶⁷⁸⁹",
    "₀₁₂₃₄₅₆₇₈₉",
    "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗",
    "〇一二三四五六七八九",
    "⓪①②③④⑤⑥⑦⑧⑨",
)
BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), (r"\boxed{", "}"), ("<answer>", "</answer>"), (r"\frac{", "}{2}"),
(r"\sqrt{", "}"), ('{"a":', "}"), ("<a>", "</a>"),
            ("-", ""), ("(not ", ")"), ("SELECT (", ")"), ("```\n", "\n```"), (r"\left(", r"\right)"), ("f(", ")"),
             ("- ", ""), ('"', '"'), ("x^{", "}"), ("not ", ""))  # fmt: skip
HUGE = (
    "9" * 400,
    "9" * 5000,
    "1e999999999",
    "9^9^9^9",
    "9**9**9",
    "0." + "0" * 400 + "1",
    "1/" + "3" * 400,
    "-" + "8" * 30,
    "1e-999999",
    "99999999999!",
)

_NUMBER = re.compile(r"[0-9]+")


def anything() -> SearchStrategy[str]:
    """Any text, lone surrogates and unassigned code points included."""
    return st.one_of(
        st.text(st.characters(), max_size=60),
        st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=5)), max_size=12).map("".join),
    )


@st.composite
def mutated(draw: DrawFn, answers: Sequence[str], grammar: str) -> str:
    """A right answer after one to four changes."""
    text = draw(st.sampled_from(answers))
    if draw(st.booleans()):
        text = draw(st.sampled_from(tuple(MARKED.values()))).format(text)
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4)):
        text = change(draw, text, answers, grammar)[:REGULAR]
    return text


Change = Callable[[DrawFn, str, Sequence[str], str], str]


def _span(draw: DrawFn, text: str) -> tuple[int, int]:
    start = draw(st.integers(0, len(text)))
    return start, min(len(text), start + draw(st.integers(0, 12)))


def _delete(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    start, end = _span(draw, text)
    return text[:start] + text[end:]


def _insert(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.sampled_from((*SOUPS[grammar][0], *NASTY, *MARKS))) + text[place:]


def _repeat(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    start, end = _span(draw, text)
    return text[:end] + text[start:end] * draw(st.sampled_from((1, 2, 1000))) + text[end:]


def _swap(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    a, b, c = sorted(draw(st.integers(0, len(text))) for _ in range(3))
    return text[:a] + text[b:c] + text[a:b] + text[c:]


def _splice(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    other = draw(st.sampled_from(answers))
    return text[: draw(st.integers(0, len(text)))] + other[draw(st.integers(0, len(other))) :]


def _cut(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    return text[: draw(st.integers(0, len(text)))]


def _again(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    return draw(st.sampled_from((" ", "\n", "", ", "))).join([text] * draw(st.sampled_from((2, 1000))))


def _nest(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    opening, closing = draw(st.sampled_from(BRACKETS))
    depth = draw(st.sampled_from((1, 3, 60, 1000)))
    return opening * depth + text + closing * depth


def _blow_up(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    huge = draw(st.sampled_from(HUGE))
    return _NUMBER.sub(lambda match: huge, text, count=draw(st.sampled_from((0, 1))))


def _other_script(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    return text.translate(str.maketrans("0123456789", draw(st.sampled_from(DIGITS))))


def _between(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    return draw(st.sampled_from(NASTY)).join(text[:500])


def _case(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    return draw(st.sampled_from((str.upper, str.lower, str.swapcase, str.title)))(text)


def _backwards(draw: DrawFn, text: str, answers: Sequence[str], grammar: str) -> str:
    return text[::-1]


CHANGES: tuple[Change, ...] = (
    _delete, _insert, _insert, _repeat, _swap, _splice, _cut, _again, _nest, _blow_up, _other_script, _between, _case,
    _backwards,
)  # fmt: skip


@st.composite
def marked(draw: DrawFn, answers: Sequence[str], grammar: str) -> str:
    """Markers of an answer in any order, with answers and pieces of them between."""
    pieces = st.one_of(
        st.sampled_from(MARKS), st.sampled_from(MARKS), st.sampled_from(answers), st.sampled_from(SOUPS[grammar][0])
    )
    return "".join(draw(st.lists(pieces, max_size=14)))


@st.composite
def large(draw: DrawFn, answers: Sequence[str], grammar: str) -> str:
    """One piece again and again, up to 100 kB and sometimes 1 MB, with something before and after it."""
    small = st.one_of(st.sampled_from(answers), st.sampled_from(MARKS), st.sampled_from(NASTY), soup(grammar, 4))
    piece = draw(small) + draw(st.sampled_from(("", " ", "\n", ", ", "x")))
    size = draw(st.sampled_from((5_000, 20_000, REGULAR, REGULAR, LARGE)) if draw(st.integers(0, 3)) == 0 else
                st.sampled_from((2_000, 5_000, 20_000, REGULAR)))  # fmt: skip
    before, after = draw(st.sampled_from(("", "<answer>", r"\boxed{", "#### ", "The answer is "))), draw(small)
    closing = {"<answer>": "</answer>", r"\boxed{": "}"}.get(before, "")
    text = before + (piece or " ") * (size // max(1, len(piece))) + after + (closing if draw(st.booleans()) else "")
    return text[:LARGE]


def responses(cases: Sequence[Case], grammar: str) -> SearchStrategy[str]:
    """Every sort of response to tasks of one entry of the table."""
    answers = tuple(answer for case in cases for answer in case.answers) or ("5",)
    dressed = st.builds(lambda form, text: form.format(text), st.sampled_from(("{}", *MARKED.values())), soup(grammar))
    return st.one_of(
        mutated(answers, grammar),
        mutated(answers, grammar),
        dressed,
        dressed,
        marked(answers, grammar),
        anything(),
        st.builds(lambda form, text: form.format(text), st.sampled_from(tuple(MARKED.values())), anything()),
        large(answers, grammar),
    )
