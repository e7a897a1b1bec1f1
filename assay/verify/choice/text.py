"""What a text says about options: labels by themselves, in lists and in sentences, and the options' own texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from assay.verify.math.foreign_doubt import retracted, unsure
from assay.verify.math.withdrawal import HARD
from assay.verify.text.compare import normalise, same

_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|textbf|boxed|rm|bf|textit)\s?\{([^{}]*)\}")
_SPACES = re.compile(r"\\[,;:! ]|[`*$_~\"“”‘’\[\]{}<>]|\\[()\[\]]")


def plain(text: str) -> str:
    """Return ``text`` without LaTeX wrappers, emphasis and quotes, in NFKC."""
    text = unicodedata.normalize("NFKC", text)
    for _ in range(3):
        text = _WRAPPED.sub(r" \1 ", text)
    return " ".join(_SPACES.sub(" ", text).split())


def known(text: str, options: Mapping[str, str]) -> str | None:
    """Return the label that ``text`` is, upper or lower case."""
    return next((k for k in (text, text.upper(), text.lower()) if k in options), None)


_DRESS = " \t().,:;#-"


def bare(text: str, options: Mapping[str, str]) -> frozenset[str]:
    found = known(text.strip(_DRESS), options)
    return frozenset() if found is None else frozenset([found])


def named(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Return the one option whose text ``text`` is."""
    found = [k for k, v in options.items() if v.strip() and same(text, plain(v))]
    return frozenset(found) if len(found) == 1 else frozenset()


def begins(text: str, start: str) -> bool:
    after = text[len(start) : len(start) + 1]
    return text.startswith(start) and not (start[-1:].isalnum() and after.isalnum())


LEAD = re.compile(
    r"^(?:(?:so|thus|therefore|hence),?\s)?(?:the\s)?(?:(?:correct|right|best|final)\s)*(?:answers?|options?|choices?)"
    r"(?:\s(?:is|are)\b)?\s?:?\s?(?:(?:answers?|options?|choices?)\s)?",
    re.IGNORECASE,
)
LABELLED = re.compile(r"\(?([A-Za-z0-9]{1,3})(?:\s?[).:]\s?|\s[-–—=]\s|\s)(\S.*)$", re.DOTALL)
ARTICLE = re.compile(r"(?:A|I)\s[a-z]")
_JOINT = re.compile(r"\s?(?:[,;/&+]|\band\b|\s)\s?", re.IGNORECASE)
HEDGE = re.compile(r"\bor\b|\beither\b|\bnor\b|\bmaybe\b|\bperhaps\b|\bpossibly\b", re.IGNORECASE)


def listed(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Return the labels of a list such as ``A, C``, ``A and C`` or ``ACD``, empty if it is anything else."""
    text = text.strip(_DRESS)
    if len(text) > 8 * len(options) + 20:
        return frozenset()
    if 1 < len(text) == len(set(text)) <= len(options) and text.isupper() and set(text) <= options.keys():
        return frozenset(text)
    items = [item.strip(_DRESS) for item in _JOINT.split(text) if item.strip(_DRESS)]
    # Small letters are words in a list of several: "a and b" is not read.
    if not items or (len(items) > 1 and any(item not in options for item in items)):
        return frozenset()
    found = [known(item, options) for item in items]
    return frozenset(k for k in found if k is not None) if all(found) else frozenset()


_NEGATED = re.compile(
    r"(?:\bnot|n't|\bnor|\bnever|\brather than|\bexcept|\bbut|\bbesides|\bexclud\w*|\beliminat\w*|\brul\w* out|"
    r"\binstead of|\bgrade of|\bmark of|\bscore of|\brating of|\bvitamin)"
    r"(?:\s(?:be|the|an?|answers?|options?|choices?|either))*\s?\(?$",
    re.IGNORECASE,
)
_REFUTED = re.compile(
    r"\)?\s?(?:is|are|was|would be|cannot be|can't be|isn't|is not)?\s?"
    r"(?:\b(?:not|n't)\b|"
    r"(?:in(?:correct|valid)|wrong|false|ruled out|eliminated|(?:the|an?) (?:\w+ )?(?:distractor|trap|decoy|wrong))\b|"
    r"(?<=n't)|(?<=cannot be)|(?<=is not))",
    re.IGNORECASE,
)


def mentions(text: str, options: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Return the labels that stand by themselves in ``text``: those put forward and those denied."""
    kept: set[str] = set()
    dropped: set[str] = set()
    for match in re.finditer(r"(?<![\w'’^\\])[A-Za-z0-9]{1,3}(?![\w'’^])", text):
        symbol = match.group()
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
        if symbol not in options:
            # A small letter is a label only after "option" or in parentheses.
            if known(symbol, options) is None or not (
                _cued(before) or (before.endswith("(") and after.startswith(")"))
            ):
                continue
            symbol = known(symbol, options) or symbol
        elif not _cued(before) and not before.endswith("("):
            # "A dog", "I think", "5 metres": an article, a pronoun and a quantity are no labels.
            articled = symbol in ("A", "I", "a", "i") and re.match(r"\s[a-z]", after) and not _VERB.match(after)
            if articled and not _ALTERNATIVE.search(before):
                continue
            if symbol.isdigit() or symbol.islower():
                continue
        denied = _NEGATED.search(before) or _REFUTED.match(after)
        (dropped if denied else kept).add(symbol)
    return kept, dropped - kept


_ALTERNATIVE = re.compile(r"(?:/|\b(?:or|and|either|maybe|perhaps|depends:))\s$", re.IGNORECASE)
_SETTLED = re.compile(
    r"\b(?:correct|right|best|final)\s(?:answers?|options?|choices?|one)\s?(?:is|:|=|"
    r"must be)\s?\(?([A-Za-z0-9]{1,3})\b(?!\s(?:or|and)\b|\s?[,/]\s?\(?[A-Z]\b)"
)


def settled(text: str, kept: set[str]) -> str | None:
    """Return the label that the last sentence calls the correct one, where earlier ones discuss others."""
    sentence = re.split(r"(?<=[.!?])\s", text)[-1]
    found = [m[1] for m in _SETTLED.finditer(sentence)] or [m[1] for m in _SETTLES.finditer(sentence)][-1:]
    return found[0] if len(found) == 1 and found[0] in kept and not HEDGE.search(sentence) else None


_SETTLES = re.compile(
    r"(?:,\s(?:so|hence|therefore|thus|leaving)(?: only)?|\bsettle (?:on|for)|\bgo(?:ing)? (?:with|for)|"
    r"\bi (?:choose|pick)|^(?:it|this) must be)\s\(?([A-Z])\)?(?=\W*$|,? because\b|,? since\b)",
    re.IGNORECASE,
)
_VERB = re.compile(r"\s(?:is|was|because|since|and|or|as|must|seems|would|but|not|isn't|are|fits|matches)\b")


def _cued(before: str) -> bool:
    return bool(re.search(r"(?:answers?|options?|choices?)(?:\s(?:is|are))?\s?:?\s?\(?$", before, re.IGNORECASE))


def contained(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Return the options whose texts occur in ``text`` as whole words and undenied, longest first."""
    text = normalise(text)
    found: set[str] = set()
    for key, value in sorted(options.items(), key=lambda item: -len(item[1])):
        wanted = normalise(plain(value))
        if not wanted or len(wanted) > len(text):
            continue
        pattern = re.compile(rf"(?<!\w)(?<![0-9][.,]){re.escape(wanted)}(?!\w|[.,][0-9])")
        matches = list(pattern.finditer(text))
        if any(
            not _NEGATED.search(text[max(0, m.start() - 40) : m.start()])
            and not _REFUTED.match(text[m.end() : m.end() + 40])
            for m in matches
        ):
            found.add(key)
        text = pattern.sub(" ", text)
    return frozenset(found)


_ENTRY = re.compile(r"\W{0,4}([A-Za-z0-9]{1,3})\W{0,3}[).:]\W{0,3}\s")


def listing(response: str, options: Mapping[str, str]) -> bool:
    """Say whether a response ends in a list of options, one a line, without a word on which of them it is."""
    lines = [line for line in response[-4000:].split("\n") if line.strip()]
    if len(lines) < 2:
        return False
    entries = [_ENTRY.match(line) for line in lines[-2:]]
    labels = [entry[1].upper() for entry in entries if entry is not None]
    return len(set(labels)) == 2 and all(label in options for label in labels)


_ANNOUNCED = re.compile(r"^[^:\n]{2,70}(?::|=|—|–)\s*(?P<choice>\S[^\n]{0,120})$")
_ASIDE = re.compile(
    r"\b(?:wrong|incorrect|not|never|mistake|eliminat\w*|rul\w* out|exclud\w*|distractor|trap|because|why|note|"
    r"check\w*|confidence|tempting|reason\w*)\b|n't\b",
    re.IGNORECASE,
)


def announced(after: str, options: Mapping[str, str], chosen: frozenset[str]) -> bool:
    """Say whether a line after an answer announces another option: ``Final answer (alternative): A``."""
    for line in after.split("\n")[:12]:
        found = _ANNOUNCED.match(plain(line))
        if found is None or _ASIDE.search(line):
            continue
        said = bare(found["choice"], options) or named(found["choice"], options)
        labelled = LABELLED.match(found["choice"])
        if not said and labelled is not None and (label := known(labelled[1], options)) is not None:
            said = frozenset([label])
        if said and said.isdisjoint(chosen):
            return True
    return False


def taken_back(response: str, answer: str, chosen: frozenset[str], options: Mapping[str, str]) -> bool:
    """Say whether what follows the last mention of a chosen option takes the answer back or declines to give one."""
    stated = response.rfind(answer) + len(answer) if bare(plain(answer), options) else -1
    names = [*chosen, *(options[key].strip() for key in chosen if options.get(key, "").strip())]
    last = max(
        (m.end() for name in names for m in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", response)), default=-1
    )
    last = max(last, stated)
    if last < 0:
        return False
    after = response[last : last + 2000]
    return HARD.search(after) is not None or retracted(after)


_ENDS = re.compile(r"[.!?](?=\s)|[。！？\n]|:(?=\s*\n)")


def hesitates(response: str, answer: str, options: Mapping[str, str]) -> bool:
    """Say whether the sentence with the answer, in another language than English, does not plainly state it."""
    place = response.rfind(answer)
    if place < 0:
        return False
    before = _ENDS.split(response[max(place - 300, 0) : place])[-1]
    behind = _ENDS.split(response[place + len(answer) : place + len(answer) + 300])[0]
    said = f"{before} {answer} {behind}"
    for value in options.values():
        if value.strip():
            said = said.replace(value, " ")
    return unsure(said)
