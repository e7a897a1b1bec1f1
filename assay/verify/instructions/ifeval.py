r"""The 25 instruction kinds of IFEval (arXiv 2311.07911), with the ids and arguments of its data set.

They decide as google-research/instruction_following_eval does, except where that depends on resources or goes wrong:

- keywords, starts of sections and postscript markers are literal text, not regular expressions;
- sentences are split by :func:`~assay.verify.instructions.passage.split_sentences` and capital words found by a rule of
  our own, instead of NLTK's trained models;
- a text whose language cannot be told (digits only) does not follow an instruction about its language, and the language
  of capitals is told from their small letters, since langdetect does not read capitals.
"""

from __future__ import annotations

import json
import re
from typing import Annotated

from pydantic import Field

from assay.verify.instructions.kinds import Relation, holds, kind
from assay.verify.instructions.language import is_language
from assay.verify.instructions.passage import Passage

Count = Annotated[int, Field(ge=0)]
Position = Annotated[int, Field(ge=1)]
Phrase = Annotated[str, Field(min_length=1)]
Phrases = Annotated[list[Phrase], Field(min_length=1)]


@kind("keywords:existence")
def keywords_existence(passage: Passage, keywords: Phrases) -> bool:
    """Every keyword occurs, be it inside a word, in upper or lower case."""
    return all(word.lower() in passage.lower for word in keywords)


@kind("keywords:frequency")
def keywords_frequency(passage: Passage, keyword: Phrase, frequency: Count, relation: Relation = "at least") -> bool:
    """The keyword occurs so many times, be it inside words; occurrences do not overlap."""
    return holds(passage.lower.count(keyword.strip().lower() or keyword), relation, frequency)


@kind("keywords:forbidden_words")
def forbidden_words(passage: Passage, forbidden_words: Phrases) -> bool:
    """None of the words occurs as a whole word."""
    return not any(re.search(rf"(?<!\w){re.escape(w)}(?!\w)", passage.text, re.IGNORECASE) for w in forbidden_words)


@kind("keywords:letter_frequency")
def letter_frequency(
    passage: Passage,
    letter: Annotated[str, Field(min_length=1, max_length=1)],
    let_frequency: Count,
    let_relation: Relation = "at least",
) -> bool:
    """The character, in upper or lower case, occurs so many times."""
    return holds(passage.lower.count(letter.lower()), let_relation, let_frequency)


@kind("language:response_language")
def response_language(passage: Passage, language: Annotated[str, Field(min_length=2)]) -> bool:
    """The language found is the one with this ISO 639-1 code."""
    return is_language(passage.text, language)


@kind("length_constraints:number_sentences")
def number_sentences(passage: Passage, num_sentences: Count, relation: Relation = "at least") -> bool:
    return holds(len(passage.sentences), relation, num_sentences)


@kind("length_constraints:number_words")
def number_words(passage: Passage, num_words: Count, relation: Relation = "at least") -> bool:
    return holds(len(passage.words), relation, num_words)


@kind("length_constraints:number_paragraphs")
def number_paragraphs(passage: Passage, num_paragraphs: Count) -> bool:
    """``***`` separates exactly so many paragraphs; an empty one may stand only at the beginning or the end."""
    paragraphs = [p.strip() for p in passage.text.split("***")]
    if len(paragraphs) > 2 and not all(paragraphs[1:-1]):
        return False
    return sum(map(bool, paragraphs)) == num_paragraphs


@kind("length_constraints:nth_paragraph_first_word")
def nth_paragraph_first_word(
    passage: Passage, num_paragraphs: Count, nth_paragraph: Position, first_word: Phrase
) -> bool:
    """Empty lines separate exactly so many paragraphs, and the n-th begins with the word, in upper or lower case."""
    pieces = [p.strip() for p in passage.text.split("\n\n")]
    count = sum(map(bool, pieces))
    # As in the reference, the n-th piece counts empty ones though their number does not.
    if count != num_paragraphs or nth_paragraph > count or not pieces[nth_paragraph - 1]:
        return False
    word = pieces[nth_paragraph - 1].split(maxsplit=1)[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower() == first_word.lower()


@kind("detectable_content:number_placeholders")
def number_placeholders(passage: Passage, num_placeholders: Count) -> bool:
    """At least so many ``[...]`` within a line."""
    return len(re.findall(r"\[[^\[\]\n]*\]", passage.text)) >= num_placeholders


@kind("detectable_content:postscript")
def postscript(passage: Passage, postscript_marker: Phrase) -> bool:
    """The marker occurs anywhere, in upper or lower case; P.S. and P.P.S may have blanks inside."""
    marker = postscript_marker.strip()
    if marker == "P.P.S":
        return re.search(r"p\.\s?p\.\s?s", passage.lower) is not None
    if marker == "P.S.":
        return re.search(r"p\.\s?s\.", passage.lower) is not None
    return marker.lower() in passage.lower


@kind("detectable_format:number_bullet_lists")
def number_bullet_lists(passage: Passage, num_bullets: Count) -> bool:
    """Exactly so many lines begin with ``*`` (but not ``**``) or ``-``."""
    stars = re.findall(r"^[^\S\n]*\*[^*].*$", passage.text, re.MULTILINE)
    dashes = re.findall(r"^[^\S\n]*-.*$", passage.text, re.MULTILINE)
    return len(stars) + len(dashes) == num_bullets


@kind("detectable_format:constrained_response")
def constrained_response(passage: Passage) -> bool:
    """Contains "My answer is yes.", "... no." or "... maybe."."""
    return any(f"My answer is {word}." in passage.text for word in ("yes", "no", "maybe"))


@kind("detectable_format:number_highlighted_sections")
def number_highlighted_sections(passage: Passage, num_highlights: Count) -> bool:
    """At least so many ``*...*`` or ``**...**`` within a line that hold something."""
    single = re.findall(r"\*[^\n*]*\*", passage.text)
    double = re.findall(r"\*\*[^\n*]*\*\*", passage.text)
    return sum(bool(h.strip("*").strip()) for h in single + double) >= num_highlights


@kind("detectable_format:multiple_sections")
def multiple_sections(passage: Passage, section_spliter: Phrase, num_sections: Count) -> bool:
    """At least so many ``Section 1`` (the splitter, perhaps a blank, a number)."""
    return len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", passage.text)) >= num_sections


@kind("detectable_format:json_format")
def json_format(passage: Passage) -> bool:
    """The whole is JSON, perhaps inside a Markdown code fence."""
    text = passage.text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


@kind("detectable_format:title")
def title(passage: Passage) -> bool:
    """A ``<<title>>`` that holds something stands within a line."""
    for line in passage.text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start <= end - 3 and line[start : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False


@kind("combination:two_responses")
def two_responses(passage: Passage) -> bool:
    """``******`` separates exactly two different responses; it may also stand at the beginning or the end."""
    pieces = [p.strip() for p in passage.text.split("******")]
    if not all(pieces[1:-1]):
        return False
    filled = [p for p in pieces if p]
    return len(filled) == 2 and filled[0] != filled[1]


@kind("combination:repeat_prompt")
def repeat_prompt(passage: Passage, prompt_to_repeat: Phrase) -> bool:
    """Begins with the prompt, in upper or lower case."""
    return passage.lower.strip().startswith(prompt_to_repeat.strip().lower())


@kind("startend:end_checker")
def end_checker(passage: Passage, end_phrase: Phrase) -> bool:
    """Ends with the phrase, in upper or lower case, perhaps before a closing double quotation mark."""
    return passage.text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


@kind("startend:quotation")
def quotation(passage: Passage) -> bool:
    """The whole stands between double quotation marks."""
    text = passage.text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


# Words with their hyphens and inner full stops ("WELL-KNOWN", "U.S."); a contraction is two ("DON'T": "DO", "N'T").
_TREEBANK = re.compile(
    r"[^\W_]+?(?=n['’]t\b)|n['’]t\b|['’](?:s|m|d|ll|re|ve)\b|[^\s\W]+(?:[.\-/]+[^\s\W]+)*", re.IGNORECASE
)


@kind("change_case:capital_word_frequency")
def capital_word_frequency(passage: Passage, capital_frequency: Count, capital_relation: Relation = "at least") -> bool:
    """So many words have capital letters only; "A" and "I" count."""
    words = (t for chunk in passage.text.split() for t in _TREEBANK.findall(chunk[:200]))
    return holds(sum(word.isupper() for word in words), capital_relation, capital_frequency)


@kind("change_case:english_capital")
def english_capital(passage: Passage) -> bool:
    """English without a small letter."""
    return passage.text.isupper() and is_language(passage.lower, "en")


@kind("change_case:english_lowercase")
def english_lowercase(passage: Passage) -> bool:
    """English without a capital letter."""
    return passage.text.islower() and is_language(passage.text, "en")


@kind("punctuation:no_comma")
def no_comma(passage: Passage) -> bool:
    return "," not in passage.text
