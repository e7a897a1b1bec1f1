"""Patterns searched for whatever the case: they find what ``re`` finds."""

import importlib
import pkgutil
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay.verify.math
from assay.verify.caseless import Caseless, Worded
from assay.verify.needed_words import needed

SOURCES = (
    r"\b(?:told|tells|says?|hop(?:e|ed|ing)|rul\w+ out|i(?:['’]m| am) not (?:sure|certain))\b",
    r"\b(?:is|are) left\b|\bremain(?:s|ed|ing)?\b|\bless(?! than)\b",
    r"[,;:.!?]\s|\n|\b(?:so|then|(?<!thing )but|because)\b",
    r"^\W*(?:if|when)\b.*\b(?:carelessly|by mistake)\b[^.;:!?]*$",
    r"(?:no|not) (?:\w+ ){0,2}(?:answer|idea)s?\b|n't\b|answer key|\?",
    r"[^.!?]{0,20}(?:maybe|perhaps)\b|[0-9]-ish\b|(?:is )?unsure|nicht|наверное",
    r"\b(?:a|an|the)? ?(?:wrong|f[ae]ll[sn]?) (?=answer|result)",
    r"(?:[,:;=]|\.\.\.|\b(?:and|or|but))\s*$",
)
OTHER_WORDS = ["the", "answer", "is", "so", "we", "left", "them", "tolde", "isn't", "sos", "x2", "ans_", "été", "не"]
OTHER_WORDS += ["ſo", "İs", "ılık", "\u212anown"]  # letters that ``re`` takes for some in ASCII
APART = ["", " ", " ", " ", ", ", ". ", "-", "'", "’", "5", "_", "\n", "?", "..."]


def texts(source: str) -> st.SearchStrategy[str]:
    """Texts of a pattern's own words, others, blanks and marks, in small and capital letters."""
    word = st.sampled_from([*re.findall(r"[^\W\d_]+", source), *OTHER_WORDS])
    cased = st.one_of(word, word.map(str.upper), word.map(str.title))
    return st.lists(st.tuples(cased, st.sampled_from(APART)).map("".join), max_size=8).map("".join)


def plain(source: str) -> st.SearchStrategy[str]:
    return texts(source).filter(str.isascii)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("frequent", [False, True])
@given(data=st.data())
def test_finds_what_re_finds(source: str, frequent: bool, data: st.DataObject) -> None:
    text = data.draw(texts(source))
    ours, theirs = Caseless(source, frequent=frequent), re.compile(source, re.IGNORECASE)
    end = data.draw(st.integers(0, len(text)))
    for mine, other in (
        (ours.search(text), theirs.search(text)),
        (ours.search(text, 0, end), theirs.search(text, 0, end)),
        (ours.search(text, end), theirs.search(text, end)),
        (ours.match(text), theirs.match(text)),
        (ours.fullmatch(text), theirs.fullmatch(text)),
    ):
        assert (mine and mine.span()) == (other and other.span())
    assert [match.span() for match in ours.finditer(text)] == [match.span() for match in theirs.finditer(text)]
    assert ours.split(text) == theirs.split(text)
    assert ours.sub("@", text) == theirs.sub("@", text)


@pytest.mark.parametrize("source", SOURCES)
@given(data=st.data())
def test_worded_is_re(source: str, data: st.DataObject) -> None:
    text = data.draw(texts(source))
    for flags in (0, re.IGNORECASE):
        ours, theirs = Worded(source, flags), re.compile(source, flags)
        for method in ("search", "match", "fullmatch"):
            mine, other = getattr(ours, method)(text), getattr(theirs, method)(text)
            assert (mine and (mine.span(), mine.group())) == (other and (other.span(), other.group()))


def rules() -> list[Caseless | Worded]:
    modules = [
        importlib.import_module(f"assay.verify.math.{module.name}")
        for module in pkgutil.iter_modules(assay.verify.math.__path__)
    ]
    found = {id(value): value for module in modules for value in vars(module).values()}
    return [value for value in found.values() if isinstance(value, Caseless | Worded)]


@given(data=st.data())
def test_the_rules_find_what_re_finds(data: st.DataObject) -> None:
    rule = data.draw(st.sampled_from(rules()))
    # A Turkish letter that ``re`` takes for one in ASCII is only itself to these.
    text = data.draw(plain(rule.pattern.replace("ı", "#")))
    flags = rule.flags if isinstance(rule, Worded) else re.IGNORECASE
    other = re.compile(rule.pattern.replace("ı", "#"), flags).search(text)
    mine = rule.search(text)
    assert (mine and mine.span()) == (other and other.span())


@pytest.mark.parametrize(
    ("source", "heads"),
    [
        (r"\b(?:den(?:y|ies|ied)|refuse[sd]?|so)\b", {"deny", "deni", "refu", "so"}),
        (r"\b(?:the|this) (?:wrong|false) answer", {"wron", "fals"}),
        (r"answer", None),
        (r"\brul\w+", {"rul", *(f"rul{c}" for c in "abcdefghijklmnopqrstuvwxyz")}),
        (r"\br\w+", None),
        (r"n't\b", {"t"}),
        (r"\bte\Bll", None),
        (r"\bnão\b", set()),
        (r"\b(?:so)?\d", None),
    ],
)
def test_needed(source: str, heads: set[str] | None) -> None:
    assert needed("", [source], "") == [heads]
