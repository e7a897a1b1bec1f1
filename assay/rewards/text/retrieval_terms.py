"""What a response that thinks, looks up and answers is worth, term by term: functions of texts and numbers alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

Pieces = Sequence[tuple[str, bool]]
"""A response in order: what the policy wrote (true), and what was retrieved for it (false), without tags."""

TAGS = ("think", "query", "retrieve", "answer")
TOP = 10
"""Places of the list that options are looked for in."""
_TAG = re.compile(r"<[^<>]+>")
_OWN = {f"<{slash}{tag}>" for tag in TAGS if tag != "retrieve" for slash in ("", "/")}
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_QUERY = re.compile(r"<query>(.*?)</query>", re.DOTALL)
_BLOCK = re.compile(rf"<({'|'.join(TAGS)})>(.*?)</\1>", re.DOTALL)
_CYCLE = r"<think>[^<>]*</think>(?:\s*<query>[^<>]*</query>\s*<retrieve>\s*</retrieve>)?\s*"
_ANSWERED = re.compile(rf"\s*(?:{_CYCLE})*<answer>[^<>]*</answer>\s*")
_DIRECT = re.compile(r"\s*<think>[^<>]*</think>\s*<answer>[^<>]*</answer>\s*")


def accuracy(answer: str, label: str, text: str | None) -> float:
    """Return 5 for the right letter with its option's text, 4 for the letter alone, else 0; 5 for an open match.

    Args:
        answer: what stands in the last ``<answer>``.
        label: of the right option; empty where the question is open.
        text: the right option's, ``None`` for any; of an open question, the reference.
    """
    if not label:
        return 5.0 if text is not None and _plain(answer) == _plain(text) else 0.0
    said = re.fullmatch(r"\(?([A-Za-z])\)?(?:[.):\s]\s*(.*))?", answer.strip(), re.DOTALL)
    if said is None or said[1].casefold() != label.casefold():
        return 0.0
    told = _plain(said[2] or "")
    return 5.0 if told and (text is None or told == _plain(text)) else 4.0


def form(pieces: Pieces, right: bool) -> float:
    """Return what the form is worth: 3, 1 or 0, less 1 for an empty block and 1 for three line breaks in a row.

    - 0, and nothing taken off, for any other tag, for ``=word>``, the rest of one, and for a ``<retrieve>`` that the
      policy wrote: what was retrieved is not its word.
    - Without a query 1 for just one thought and an answer.
    - With queries, each after a thought and answered: 3 where ``right``, else 1, for thoughts up to an answer.
    """
    own = "".join(text for text, wrote in pieces if wrote)
    if re.search(r"=[A-Za-z]+>", own) or not {*_TAG.findall(own)} <= _OWN:
        return 0.0
    whole = "".join(text if wrote else "<retrieve></retrieve>" for text, wrote in pieces)
    if "<query>" in own or "<retrieve>" in whole:
        worth = (3.0 if right else 1.0) if _ANSWERED.fullmatch(whole) else 0.0
    else:
        worth = 1.0 if _DIRECT.fullmatch(whole) else 0.0
    empty = any(not body.strip() for _, body in _BLOCK.findall(own))
    return worth - empty - bool(re.search(r"[\n\r]{3}", own))


def length(pieces: Pieces, shortest: int = 512, longest: int = 3072) -> float:
    """Return 0 where the policy wrote ``shortest`` to ``longest`` characters, else -1."""
    return 0.0 if shortest <= sum(len(text) for text, wrote in pieces if wrote) <= longest else -1.0


def semantics(
    queries: Sequence[str], retrieved: Sequence[str], gold: str, terms: Iterable[str], most: int = 5
) -> float:
    """Return q + d + e - 1[more than ``most`` entities in the queries]; 0 without a query.

    q and d are the shares of the gold answer's entity words that stand in the queries and in what was retrieved, e the
    share of the queries' words that entities are made of.

    Args:
        queries, retrieved: all of a response's.
        gold: the right answer.
        terms: medical terms, of one word or several.
        most: entities.
    """
    asked = words(" ".join(queries))
    if not asked:
        return 0.0
    known = by_length(terms)
    wanted = [word for entity in entities(words(gold), known) for word in entity]
    named = entities(asked, known)

    def share(text: Sequence[str]) -> float:
        return sum(word in text for word in wanted) / len(wanted) if wanted else 0.0

    covered = sum(map(len, named)) / len(asked)
    return share(asked) + share(words(" ".join(retrieved))) + covered - (len(named) > most)


def gain(before: tuple[float, float], after: tuple[float, float], right: bool) -> float:
    """Return what retrieving did for the gold option: .1 (log p' - log p) if ``right``, else .05 (rank - rank').

    An option that is not among the first :data:`TOP`, or for which there is no place, has log-probability 0, and rank 0
    before and 10 after. Where there is no place either time nothing is known, and nothing gained.

    Args:
        before, after: log-probability of the gold option and its rank from 0; NaN where there is none.
    """
    if math.isnan(before[1]) and math.isnan(after[1]):
        return 0.0
    found = [(p, r) if r < TOP else (0.0, missing) for (p, r), missing in ((before, 0.0), (after, float(TOP)))]
    (p, r), (q, s) = found
    return 0.1 * (q - p) if right else 0.05 * (r - s)


def looked_at(queries: Sequence[str], text: str) -> list[str]:
    """Return what is compared with the image: every query, or else the first sentence, without tags, of a response."""
    return [*queries] or [_TAG.sub("", text.split(".")[0]).strip()]


def answer_in(pieces: Pieces) -> str:
    """Return what stands in the last ``<answer>`` of the policy's; empty where there is none."""
    found = [text for piece, wrote in pieces if wrote for text in _ANSWER.findall(piece)]
    return found[-1].strip() if found else ""


def queries_in(pieces: Pieces) -> list[str]:
    """Return the policy's queries."""
    return [text.strip() for piece, wrote in pieces if wrote for text in _QUERY.findall(piece) if text.strip()]


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return re.findall(r"[^\W_]+", text.casefold())


def by_length(terms: Iterable[str]) -> Mapping[int, frozenset[tuple[str, ...]]]:
    """Return terms as words, by how many they are of, the most first."""
    found = {tuple(words(term)) for term in terms} - {()}
    sizes = sorted({len(term) for term in found}, reverse=True)
    return {size: frozenset(term for term in found if len(term) == size) for size in sizes}


def entities(text: Sequence[str], known: Mapping[int, frozenset[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """Return the different terms in a text, from left to right, of those that begin at a word the longest."""
    found: dict[tuple[str, ...], None] = {}
    i = 0
    while i < len(text):
        here = next((t for size in known if (t := tuple(text[i : i + size])) in known[size]), None)
        if here is not None:
            found[here] = None
        i += 1 if here is None else len(here)
    return list(found)


def _plain(text: str) -> str:
    return " ".join(text.casefold().strip(" .\n\t").split())
