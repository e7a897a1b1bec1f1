"""Further kinds that rules can check: counts, order, case, sentence and paragraph shape, Markdown, letters."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from assay.verify.instructions.ifeval import Count, Phrase, Phrases, Position
from assay.verify.instructions.kinds import Relation, holds, kind
from assay.verify.instructions.passage import WORD, Passage


@kind("count:unique_words")
def unique_words(passage: Passage, num: Count, relation: Relation = "at least") -> bool:
    """So many different words, case aside."""
    return holds(len({w.lower() for w in passage.words}), relation, num)


@kind("count:numbers")
def numbers(passage: Passage, num: Count, relation: Relation = "exactly") -> bool:
    """So many numbers in digits; "1,000.5" is one."""
    return holds(len(re.findall(r"\d+(?:[.,]\d+)*", passage.text)), relation, num)


@kind("count:characters")
def characters(passage: Passage, num: Count, relation: Relation = "at most", spaces: bool = True) -> bool:
    """So many characters, or so many other than white space."""
    return holds(len(passage.text if spaces else "".join(passage.text.split())), relation, num)


@kind("count:lines")
def lines(passage: Passage, num: Count, relation: Relation = "exactly") -> bool:
    """So many lines that hold something."""
    return holds(len(passage.lines), relation, num)


@kind("count:paragraphs")
def paragraphs(passage: Passage, num: Count, relation: Relation = "exactly") -> bool:
    """So many paragraphs separated by blank lines."""
    return holds(len(passage.paragraphs), relation, num)


@kind("count:emoji")
def emoji(passage: Passage, num: Count, relation: Relation = "at least") -> bool:
    """So many emoji; a sequence joined by zero-width joiners or skin tones is one."""
    return holds(len(_EMOJI.findall(passage.text)), relation, num)


_ONE = "[\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001f3fa\U0001f400-\U0001faff]"
_EMOJI = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|{_ONE}[\ufe0f\U0001f3fb-\U0001f3ff]*+(?:\u200d{_ONE}[\ufe0f\U0001f3fb-\U0001f3ff]*+)*+"
)


@kind("count:questions")
def questions(passage: Passage, num: Count, relation: Relation = "exactly") -> bool:
    """So many sentences end with a question mark."""
    return holds(sum(_mark(s) in "?？" for s in passage.sentences), relation, num)


def _mark(sentence: str) -> str:
    """Return the last mark of a sentence, behind which quotes and brackets may stand; a blank for an empty text."""
    return (sentence.rstrip("\"'”’»)]}*_」』）") or " ")[-1]


@kind("sentence:length")
def sentence_length(passage: Passage, min_words: Count = 1, max_words: Count | None = None) -> bool:
    """Every sentence has so many words."""
    counts = [len(WORD.findall(s)) for s in passage.sentences]
    return bool(counts) and all(min_words <= n and (max_words is None or n <= max_words) for n in counts)


@kind("sentence:distinct_starts")
def distinct_starts(passage: Passage) -> bool:
    """No two sentences begin with the same word, case aside."""
    starts = [m.group().lower() for s in passage.sentences if (m := WORD.search(s))]
    return bool(starts) and len(set(starts)) == len(starts)


@kind("sentence:chain")
def chain(passage: Passage) -> bool:
    """Every sentence begins with the last word of the one before, case aside; at least two sentences."""
    words = [w for s in passage.sentences if (w := WORD.findall(s.lower()))]
    return len(words) > 1 and all(before[-1] == after[0] for before, after in pairwise(words))


@kind("sentence:acrostic")
def acrostic(passage: Passage, word: Phrase, of: Literal["sentences", "lines", "paragraphs"] = "lines") -> bool:
    """The first letters of the lines (sentences, paragraphs) spell the word, exactly, case aside."""
    units = {"sentences": passage.sentences, "lines": passage.lines, "paragraphs": passage.paragraphs}[of]
    initials = "".join(m.group() for u in units if (m := re.search(r"[^\W_]", u)))
    return initials.lower() == "".join(word.lower().split())


@kind("sentence:alternating_marks")
def alternating_marks(passage: Passage, marks: Phrase = ".!") -> bool:
    """The sentences end with these marks in turn, beginning with the first; at least as many sentences as marks."""
    ends = [_mark(s) for s in passage.sentences]
    return len(ends) >= len(marks) and all(e == marks[i % len(marks)] for i, e in enumerate(ends))


@kind("paragraph:sentences")
def paragraph_sentences(passage: Passage, num: Count, relation: Relation = "exactly") -> bool:
    """Every paragraph has so many sentences."""
    counts = [len(Passage(p).sentences) for p in passage.paragraphs]
    return bool(counts) and all(holds(n, relation, num) for n in counts)


@kind("words:keywords_in_order")
def keywords_in_order(passage: Passage, keywords: Phrases) -> bool:
    """The keywords occur as whole words, each after the one before, case aside."""
    at = 0
    for word in keywords:
        found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE).search(passage.text, at)
        if found is None:
            return False
        at = found.end()
    return True


@kind("words:nth")
def nth_word(passage: Passage, n: int, word: Phrase) -> bool:
    """The n-th word (from 1, negative from the end) is this one, case aside."""
    if n == 0 or abs(n) > len(passage.words):
        return False
    return passage.words[n - 1 if n > 0 else n].lower() == word.strip().lower()


@kind("words:length")
def word_length(passage: Passage, min_letters: Count = 1, max_letters: Count | None = None) -> bool:
    """Every word has so many letters."""
    counts = [len(w) for w in passage.words]
    return bool(counts) and all(min_letters <= n and (max_letters is None or n <= max_letters) for n in counts)


@kind("words:alternating_case")
def alternating_case(passage: Passage) -> bool:
    """Words are by turns all upper and all lower case, whichever comes first; at least two words with letters."""
    cases = [w for w in passage.words if w.upper() != w.lower()]
    return len(cases) > 1 and all(
        (a.isupper() and b.islower()) or (a.islower() and b.isupper()) for a, b in pairwise(cases)
    )


@kind("words:alternating_parity")
def alternating_parity(passage: Passage) -> bool:
    """Words are by turns of odd and even length; at least two words."""
    return len(passage.words) > 1 and all((len(a) + len(b)) % 2 for a, b in pairwise(passage.words))


@kind("words:no_consecutive_initials")
def no_consecutive_initials(passage: Passage) -> bool:
    """No two words in a row begin with the same letter, case aside."""
    return bool(passage.words) and all(a[0].lower() != b[0].lower() for a, b in pairwise(passage.words))


@kind("words:alphabetical_initials")
def alphabetical_initials(passage: Passage) -> bool:
    """Each word begins with the letter after that of the word before (after z comes a); at least two words."""
    initials = [w[0].lower() for w in passage.words]
    letters = string.ascii_lowercase
    return len(initials) > 1 and all(
        a in letters and b == letters[(letters.index(a) + 1) % 26] for a, b in pairwise(initials)
    )


@kind("words:palindromes")
def palindromes(passage: Passage, num: Count, relation: Relation = "at least", min_letters: Position = 3) -> bool:
    """So many different words of at least ``min_letters`` letters read the same backwards, case aside."""
    found = {w for word in passage.words if len(w := word.lower()) >= min_letters and w == w[::-1] and w.isalpha()}
    return holds(len(found), relation, num)


@kind("words:repetition")
def word_repetition(passage: Passage, max_times: Position, min_letters: Position = 1) -> bool:
    """No word of at least ``min_letters`` letters occurs more often than this, case aside."""
    counts = Counter(w.lower() for w in passage.words if len(w) >= min_letters)
    return bool(passage.words) and max(counts.values(), default=0) <= max_times


@kind("letters:avoid")
def avoid_letters(passage: Passage, letters: Phrase) -> bool:
    """A lipogram: none of the letters occurs, in either case or with accents; there is at least one letter."""
    base = set(unicodedata.normalize("NFD", passage.text).lower())
    return any(c.isalpha() for c in base) and not base & set(letters.lower())


@kind("letters:vowels")
def vowels(passage: Passage, num: Annotated[int, Field(ge=0, le=5)], relation: Relation = "at most") -> bool:
    """So many different ones of the vowels a, e, i, o, u occur; there is at least one letter."""
    return any(map(str.isalpha, passage.text)) and holds(sum(v in passage.lower for v in "aeiou"), relation, num)


@kind("startend:start_phrase")
def start_phrase(passage: Passage, start_phrase: Phrase) -> bool:
    """Begins with the phrase, case included, and not inside a longer word."""
    text, start = passage.text.strip().strip('"'), start_phrase.strip()
    return text.startswith(start) and not (start[-1:].isalnum() and text[len(start) : len(start) + 1].isalnum())


@kind("startend:same_sentence")
def same_sentence(passage: Passage) -> bool:
    """The first sentence is repeated as the last, word for word; at least two sentences."""
    return len(passage.sentences) > 1 and passage.sentences[0] == passage.sentences[-1]


@kind("format:numbered_list")
def numbered_list(passage: Passage, num: Count, relation: Relation = "exactly") -> bool:
    """So many lines are numbered ``1.``, ``2.``, ... (or ``1)``), without a gap from 1."""
    found = [int(m[1]) for line in passage.lines if (m := re.match(r"(\d{1,6})[.)]\s+\S", line))]
    return found == list(range(1, len(found) + 1)) and holds(len(found), relation, num)


@kind("format:headings")
def headings(
    passage: Passage,
    num: Count,
    relation: Relation = "at least",
    level: Annotated[int, Field(ge=1, le=6)] | None = None,
) -> bool:
    """So many Markdown headings, of one level if it is given."""
    marks = [len(m[1]) for line in passage.lines if (m := re.match(r"(#{1,6})\s+\S", line))]
    return holds(sum(level is None or n == level for n in marks), relation, num)


@kind("format:code_block")
def code_block(passage: Passage, num: Count = 1, relation: Relation = "at least", language: str | None = None) -> bool:
    """So many fenced code blocks that are closed, of one language if it is given."""
    count, inside, matches = 0, False, False
    for line in passage.lines:
        if not line.startswith("```"):
            continue
        if inside:
            count += matches
        else:
            matches = language is None or line[3:].strip().lower() == language.strip().lower()
        inside = not inside
    return not inside and holds(count, relation, num)


@kind("format:table")
def table(passage: Passage, columns: Position | None = None, min_rows: Count = 1) -> bool:
    """A Markdown table of so many columns with at least ``min_rows`` rows below its head."""
    rows = [_cells(line) for line in passage.text.splitlines()]
    for at, (head, rule) in enumerate(pairwise(rows)):
        if not head or len(head) != len(rule) or not all(re.fullmatch(r":?-+:?", c) for c in rule):
            continue
        if columns is not None and len(head) != columns:
            continue
        below = 0
        for row in rows[at + 2 : at + 2 + min_rows]:
            if len(row) != len(head):
                break
            below += 1
        if below >= min_rows:
            return True
    return False


def _cells(line: str) -> list[str]:
    """Return the cells of a table row, none for another line."""
    line = line.strip()
    return [c.strip() for c in line.strip("|").split("|")] if "|" in line else []


@kind("format:line_length")
def line_length(passage: Passage, max_chars: Position) -> bool:
    """No line is longer."""
    return all(len(line) <= max_chars for line in passage.text.splitlines())


@kind("format:no_markdown")
def no_markdown(passage: Passage) -> bool:
    """No heading, list, bold type, code or table."""
    marked = any(re.match(r"#{1,6}\s|[*+-]\s|\d{1,6}[.)]\s|```|>\s|\|", line) for line in passage.lines)
    return not marked and not re.search(r"\*\*[^\s*]|__[^\s_]|`[^`\n]", passage.text)


@kind("punctuation:only")
def punctuation_only(passage: Passage, marks: str) -> bool:
    """No punctuation but these marks."""
    return all(c in marks for c in passage.text if unicodedata.category(c)[0] == "P")


@kind("combination:copy_prompt")
def copy_prompt(passage: Passage, num: Position = 1) -> bool:
    """The task's whole question is repeated word for word exactly so many times."""
    prompt = passage.prompt.strip()
    return bool(prompt) and passage.text.count(prompt) == num
