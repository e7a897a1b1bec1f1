# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""What stands before an answer: whose it is, what it answers, what is said to come to it, and labels."""

from __future__ import annotations

import re

from assay.verify.caseless import Caseless, Worded
from assay.verify.math.asked_words import is_asked, spoken, unknown
from assay.verify.math.elsewhere import NO_THINGS
from assay.verify.math.english import plain_words
from assay.verify.math.frames import known_words
from assay.verify.math.units import lookup
from assay.verify.math.words import number_words

_NOUN = Caseless(r"\b(?:answer|result|solution|ans)s?\b(?!['’])")
_VERB = re.compile(
    r"[:=]|(?<![A-Za-z])(?:is|are|was|were|be|equals?|gives?|becomes?|simplifies|reduces|rounds|evaluates|amounts|"
    r"comes|"
    r"works|turns|follows as|i get|we get|i obtain|we obtain|i find|we find)(?![A-Za-z])",
    re.IGNORECASE,
)
_OWNERS = frozenset("the our my this that its it's your a an these those here's".split())
_KINDS = frozenset(
    """
    final correct right required desired exact complete full numerical numeric simplified short overall actual true
    unique only one single real positive negative integer whole decimal requested sought wanted approximate rounded
    general closed simplest combined total net end resulting computed calculated trivial two three four distinct both
    integral rational complex valid particular boxed expected asked mathematical direct simple clear definitive
    definite possible equivalent verified corrected revised updated
    """.split()
)
_LINKS = frozenset(
    """
    so thus hence therefore that and but is are gives give get find finds found finally now then also we i have as
    conclude means because since yes no ok okay sure well where here which obtain makes make leaving leaves giving state
    confirm confirms see know to in the of was
    """.split()
)
_QUALIFIES = frozenset(
    """
    to of for in the this our that these those problem question exercise task puzzle equation equations system
    inequality inequalities expression limit integral sum product we i get obtain seek sought want wanted need needed
    required desired asked here therefore thus then hence indeed again now simplest simplified form lowest terms decimal
    fraction degrees radians nearest rounded round place places tenth tenths hundredth hundredths thousandth thousandths
    whole number integer a an as it both by with will must should has have can does do would set over real numbers
    correct final only exact exactly simply just clearly finally percent percentage words full short value obtained
    arrived at arrive set pair interval notation exists your above calculation computation words after simplifying
    simplification rounding and is follows checked version method way approach hand written below
    """.split()
)
_GIVES = frozenset(
    """
    the a an simply just exactly precisely therefore thus then hence indeed clearly about approximately roughly around
    equal equals to given by number value values sum product difference quotient ratio total of only now again namely
    also actually really surely certainly definitely always both all any every each minus negative plus remainder line
    point points set interval function equation equations vector matrix pair pairs triple expression polynomial written
    as in following formula form found obtained that there are is it she he they we have has no yes true false be will
    must should out as at or and left right approx circa ca i'm i am it's that's x y z n k with where when for from
    after on this our my answer result positive integer integers whole fraction percent correct final circle parabola
    triangle square rectangle plane curve sequence list ordered base degree degrees modulo mod range between percentage
    get got one not rather than instead comes come works turn worth angle length area volume slope probability
    either equivalently constant term terms congruent rate
    satisfies satisfy problem question condition conditions choice option letter nothing none other but
    coordinates coordinate vertex center centre radius solution solutions root roots simplified exact decimal
    """.split()
)
_OPENS = re.compile(
    r"^\W*(?:(?:and|but|so|now|then|here|or|also|well|okay|ok|hence|thus),?\s+)*(?P<first>[a-z]+)\b(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_PREPOSITIONS = frozenset(
    "in for on at before without with by under to from if when as after through via upon during within besides despite "
    "per against according unless excluding had were".split()
)
_AT = frozenset(
    "the end last long this point stage that bottom at on in by a all any time whole balance other hand x t time times "
    "y n degrees once".split()
)
_ADVERBS = frozenset(
    """
    finally consequently accordingly clearly simply numerically equivalently exactly approximately ultimately correctly
    carefully surely certainly obviously evidently similarly directly precisely respectively explicitly algebraically
    eventually altogether successively subsequently respectively undoubtedly definitely truly fully properly indeed
    mathematically formally specifically overall evidently necessarily immediately importantly really actually only
    namely fortunately conversely strictly analytically geometrically concretely roughly generally systematically
    """.split()
)
_ACTIONS = frozenset(
    """
    using adding subtracting multiplying dividing solving simplifying evaluating substituting combining plugging putting
    rounding counting calculating computing applying working checking rearranging setting taking factoring factorising
    factorizing expanding converting summing differentiating integrating according collecting cancelling canceling
    comparing going doing following going concluding reducing finding expressing writing noting knowing having given
    including considering accounting starting squaring cubing totaling totalling averaging letting reading verifying
    summarizing summarising recalling interpreting multiplied redoing rechecking recomputing recalculating reworking
    rereading repeating correcting fixing retrying
    """.split()
)
_OTHER_CASES = frozenset(
    """
    sight glance face look previous similar different another other example examples special before without ignoring
    neglecting wrong original old initial simpler easier harder except wrongly initially naive earlier next guess
    guessing imagine imaginary hypothetical incorrect faulty mistaken forgetting omitting version variant analogous
    related were had neighbour neighbor textbook book internet website calculator friend classmate teacher student
    """.split()
)
_LABELS = frozenset(
    """
    the a my our your final answer answers solution result short and in of to as is so thus hence therefore conclusion
    verdict output response ans step part simplified simplest exact decimal value we get check verification explanation
    total sum overall finally altogether summary note proof version method approach way hand
    """.split()
)
NO_LABELS = frozenset(
    """
    was were before old older original initial previous first second another other some part case partial estimate
    chance chances possible possibly not half double twice triple without possibilities neither nor either above below
    under over less most more least try unknown intermediate given attempt guess trial opposite
    """.split()
)


def in_front(before: str, question: str, asked: frozenset[str]) -> str | None:
    """Return what before a value says that it is no answer to the question, ``None`` for nothing.

    Args:
        before: what stands before the value in its sentence.
        question: what is asked.
        asked: its words' stems, and the reference's.
    """
    before = _SOUGHT.sub("", _TAG.sub(" ", before))
    nouns = list(_NOUN.finditer(before))
    if nouns and _TURNS.search(before, nouns[-1].end()) is not None:
        nouns = []
    noun = before[slice(*nouns[-1].span())] if nouns else ""
    if nouns and (verb := _VERB.search(before, nouns[-1].end())) is not None:
        start, owner = _owner(before[: nouns[-1].start()], asked)
        if owner is not None:
            return f"{owner} {noun}"
        if (word := unknown(before[nouns[-1].end() : verb.start()], _QUALIFIES, asked)) is not None:
            return f"{noun} {word}"
        if (part := _PART.search(before[nouns[-1].end() : verb.start()])) is not None and not _is_named(part, question):
            return f"{noun} to {part.group()}"
        told = before[verb.end() :]
        if _TOLD.search(told) is None and not told.endswith("=") and (word := unknown(told, _GIVES, asked)) is not None:
            return f"{verb.group()} {word}"
        return _case(before[:start], question, asked)
    alone = nouns and noun.casefold() == "answer" and _BREAKS.search(before, nouns[-1].end()) is None
    if alone and (word := unknown(before[nouns[-1].end() :], _QUALIFIES | _GIVES, asked)) is not None:
        return f"{noun} {word}"
    if before.endswith(":"):
        return _label(before, asked)
    clause = _CASE_ENDS.split(before)[-1]
    if (
        (opens := _OPENS.match(clause)) is not None
        and (first := opens["first"].casefold()).endswith("ly")
        and (
            first not in _ADVERBS
            and first not in _OFTEN
            and not _ORIGINALLY.match(clause)
            and not is_asked(first, asked)
        )
    ):
        return first
    if (dangling := _DANGLING.match(clause)) is not None:
        last = (dangling[1] or dangling[2]).casefold()
        if last not in question.casefold().split():
            return dangling.group().strip()
    if (order := _ORDERS.match(clause)) is not None and not is_asked(order[1].casefold(), asked):
        return order.group().strip()
    if (teller := _TELLS.search(before)) is not None and not _teller_known(teller, asked):
        return teller.group().strip()
    if (does := _IT_DOES.search(before)) is not None:
        done = does["verb"].casefold()
        if not (done in NO_THINGS or done in _DOES or is_asked(done, asked)):
            return does.group().strip()
    subject = _PRONOUN.search(before)
    if subject is not None:
        return _case(before[: subject.start()], question, asked)
    return None


_SOUGHT = Caseless(
    r"(?:(?<=answer)|(?<=result)|(?<=solution))(?: that| which)? (?:we|i) (?:are|were|am|was) (?:looking for|"
    r"searching for|after|"
    r"seeking)\b",
)
_TOLD = re.compile(r"\b(?:has|have|had|are|costs?|travels?|takes?|earns?|sells?|gets?|needs?|pays?)\b")
_TAG = re.compile(r"</?[a-z_]+>")
_IT_DOES = Worded(
    r"\b(?:it|this|that|which)\s(?P<verb>[a-z]+s)(?: (?:below|above|under|near|to|for|at|a|an|the|about))*[\s$*]*$",
    re.I,
)
_DOES = frozenset(
    "is was has simplifies reduces evaluates becomes totals sums adds comes works turns amounts contains needs weighs "
    "measures lasts travels sells requires produces results represents means implies confirms shows factors expands "
    "satisfies holds starts ends arrives departs leaves reads consists covers rises falls drops grows weighs runs "
    "stands "
    "happens occurs opens closes moves resolves prints diverges converges tends goes outputs displays rounds "
    "converts corresponds accounts uses fits receives".split()
)
_ORIGINALLY = Caseless(r"\W*(?:originally|initially),? (?!i\b|we\b|the answer\b)\w")
_TURNS = re.compile(
    r",\s|;\s|\b(?:so|thus|hence|therefore|but|then|and|because|since) (?:we|the|it|there|x|y|its|[a-z] )\b|"
    r"\bto (?:find|get|obtain|express|calculate|determine)\b"
)
_PART = re.compile(
    r"\b(?:question|problem|exercise|part|case|item|step|task)\s?#?\(?([0-9]+|[a-h])\b\)?", re.IGNORECASE
)


def _is_named(part: re.Match[str], question: str) -> bool:
    thing = part.group()[: part.start(1) - part.start()].strip("( #")
    return re.search(rf"\b{thing}\W*{re.escape(part[1])}\b|\({part[1]}\)", question, re.IGNORECASE) is not None


_BREAKS = re.compile(r"[,;:.!?]\s|\s[–—-]\s")
_PRONOUN = Caseless(r"\b(?:it|this|that|we|i|there|one)\b(?:['’]s| \w+){0,3}\W*$")
_OFTEN = frozenset("only early family daily weekly monthly hourly yearly multiply apply july italy".split())
_DANGLING = Worded(
    r"^\W*(?:[a-z]+ly |just |right |next |somewhere |out |up |down |close |way |well )*"
    r"(by|per|near|to|of|than|against|beside|besides|beyond|towards?|past|like|over|under|below|above|times|unlike|"
    r"despite)"
    r"(?: (?:a|an|the|about|exactly|some))*[\s$*]*$|"
    r"^.*\b(like|unlike|than|near|resembling|resembles)[\s$*]*$",
    re.IGNORECASE,
)
_ORDERS = Worded(
    r"^\W*(?:(?:then|now|next|first|please|finally|just|you (?:could|can|might|should))\W+)*(divide|multiply|add|"
    r"subtract|"
    r"take|consider|pick|try|use|plug|substitute|put|halve|suppose|guess|choose|compare|insert|keep|drop|forget|avoid|"
    r"ignore|imagine|continue|proceed|go on)(?: (?:in|with|by|from|to|the|value|number|about|just))*[\s$*]*$",
    re.IGNORECASE,
)
_TELLS = Worded(
    r"(?P<who>\b(?:I|we|We|(?:[Tt]he|[Aa]n?|[Mm]y|[Hh]is|[Hh]er|[Ss]ome|[Oo]ne|[Tt]heir|[Yy]our) (?:[a-z]+ )?[a-z]+|"
    r"[A-Z][a-z]+))\s"
    r"(?P<verb>answered|answers|reads?|says?|said|wrote|writes|claims?|claimed|replied|replies|thinks?|thought|saw|"
    r"sees|"
    r"heard|copied|remember|recall|noticed|typed|picked|chose|picks|got|gets|gave|guessed|found|obtained|printed|"
    r"displays?|displayed|reported|reports|suggests?|suggested|believes?|believed|told|announced|announces|boxed|"
    r"boxes|marked|typed|dreamt|dreamed|wants|wanted|prefers|preferred|expects|"
    r"expected|hopes|hoped)\b[^.;:=0-9]{0,30}$"
)
_OF_WE = frozenset("got gets gave found obtained wrote chose picked read reads see sees".split())
_OF_WORK = frozenset(
    "this that it he she they which who equation formula graph table calculation computation diagram figure theorem "
    "check checking solving simplifying division multiplication addition sum so then thus hence now finally there "
    "substitution method rule work step problem question text statement total each everyone plot what where".split()
)


def _teller_known(teller: re.Match[str], asked: frozenset[str]) -> bool:
    """Say whether it is the writer's work, or somebody of the question, that came to the value."""
    who = teller["who"].casefold().split()[-1]
    if who in ("i", "we"):
        return teller["verb"] in _OF_WE
    return is_asked(who, asked) or who in _OF_WORK or who in NO_THINGS or who.endswith("ing")


def _owner(front: str, asked: frozenset[str]) -> tuple[int, str | None]:
    """Where the words that own an answer begin, and the one of them that is not known."""
    start = len(front)
    while (match := _LAST_WORD.search(front, 0, start)) is not None:
        word = match[1].casefold().replace("’", "'")
        if word in _OWNERS:
            return match.start(1), None
        if word in _LINKS:
            return start, None
        if word not in _KINDS and not is_asked(word, asked):
            if word.endswith("ly") and word in _ADVERBS:
                return start, None
            return start, match[1]
        start = match.start(1)
    return start, None


_LAST_WORD = re.compile(r"([A-Za-z][A-Za-z'’-]*)[\s*_\"“(]*$")


def _case(front: str, question: str, asked: frozenset[str]) -> str | None:
    """The phrase before "the answer is" where it names another case than the question's."""
    phrase = _CASE_ENDS.split(front.rstrip(" ,;:*"))[-1]
    if (opens := _OPENS.match(phrase)) is None:
        return None
    if opens["first"].casefold() in _OTHER_TIMES:
        return phrase.strip()
    first, rest = opens["first"].casefold(), opens["rest"]
    if first.endswith("ly"):
        return None if first in _ADVERBS or is_asked(first, asked) or rest.strip(" ,") else first
    if not (first in _PREPOSITIONS or first in _ACTIONS or first.endswith("ing")):
        return None
    if first in ("nothing", "everything", "something"):
        return None
    if first.endswith("ing") and first not in _ACTIONS and not is_asked(first, asked) and first not in plain_words():
        return first
    fixed = _FIXED.search(rest) if first in ("for", "in", "if", "when", "at") else None
    if fixed is not None and "".join(fixed.group().split()) not in "".join(question.split()):
        return phrase.strip()
    narrow = first in ("at", "on")
    for word in [first, *spoken(rest)]:
        if word in _OTHER_CASES and re.search(rf"\b{word}", question, re.IGNORECASE) is None:
            return phrase.strip()
        if len(word) < 3 or is_asked(word, asked) or word in _PREPOSITIONS - _OTHER_CASES:
            continue
        if narrow and word not in _AT:
            return phrase.strip()
        if word not in plain_words() and word not in _ACTIONS and lookup(word) is None and number_words(word) is None:
            return phrase.strip()
    return None


_OTHER_TIMES = frozenset("yesterday formerly earlier previously elsewhere meanwhile sometimes often usually".split())
_CASE_ENDS = Caseless(r"[,;:.!?]\s+|\b(?:so|therefore|thus|hence|then|because|since|but|that)\b")
_FIXED = re.compile(r"\b[a-z]\s?=\s?-?[0-9]+\b")


def _label(before: str, asked: frozenset[str]) -> str | None:
    """The word of a label that no plain label holds; a sentence or an instruction before a colon is not asked about."""
    words = spoken(before)
    if len(words) > 3 or any(word in _SPEAKING or word.endswith("ing") for word in words):
        return None
    if "attempt" in words or "try" in words:
        return None if _AGAIN & set(words) else words[0]
    for word in words:
        if is_asked(word, asked) or (word in _LABELS and word not in NO_LABELS):
            continue
        if word in NO_LABELS or not (
            len(word) < 2
            or word in NO_THINGS
            or lookup(word) is not None
            or number_words(word) is not None
            or (known_words(word, "") and word not in ENGLISH_LABELS)
        ):
            return word
    return None


_AGAIN = frozenset("second third fourth last new next final corrected another".split())
_SPEAKING = frozenset(
    "we it i you they he she me us from by to at with on if when where both here there then this that these is are has "
    "have divide multiply add subtract take solve find let therefore thus hence so since because as how what go agree "
    "agrees order method combine simplify factor expand apply use evaluate compute compare write convert check".split()
)
ENGLISH_LABELS = frozenset("old initially placeholder".split())
"""Words that the list of other languages knows, too."""


__all__ = ["ENGLISH_LABELS", "NO_LABELS", "in_front"]
