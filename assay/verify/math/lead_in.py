# ruff: noqa: SIM102, SIM905  (words in a row read better than a list of quoted words)
"""Whose answer a sentence gives, of what, and how: what stands around the value of an answer in its own sentence.

Nobody can list all that is no answer to the question: ``Tom's answer is 42``, ``At first sight the answer is 42``,
``The answer is a long way from 42``, ``Old: 42``. So the rule is turned round, part by part. Known have to be the
words that own the answer, those between "answer" and its verb, those between the verb and the value, the phrase
before all of that, the words of a label, and what is said of a value that is the subject. The question's words are
known, units and numbers too. Sentences in another language than English are not asked about.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.disowned import in_words
from assay.verify.math.elsewhere import NO_THINGS, is_english
from assay.verify.math.english import plain_words
from assay.verify.math.final import Final
from assay.verify.math.foreign_doubt import FORMULA
from assay.verify.math.frames import is_foreign, known_words
from assay.verify.math.governed import around
from assay.verify.math.mentioned import UNSOLVED
from assay.verify.math.units import lookup
from assay.verify.math.words import number_words

MAX_BEFORE = 300
MAX_OPENING = 40
MAX_TAIL = 120
_ENDS = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<=[a-z0-9)$*}\]%\"'”])[.!?]\s+(?=[A-Z$\\*(0-9<])|\n+|<br\s?/?>")
_OPENED = re.compile(
    r"(?:\\(?:boxed|text|mathbf|textbf|fbox)\s*\{|<(?:final_)?answer>|\\[(\[]|\\[,;! ]|[$*_(\[`\"“\s#]|"
    r"\\left\s?[(\[])+$",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"^(?:</(?:final_)?answer>|\\[)\]]|\\right\s?[)\]]|[$*_)\]}`\"”])+", re.IGNORECASE)
_WORD = re.compile(r"(?<![\\\w])[A-Za-z](?:[A-Za-z]|['’](?=[a-z]))*")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|textit|mbox)\s*\{([^{}]*)\}")
_NOUN = re.compile(r"\b(?:answer|result|solution|ans)s?\b(?!['’])", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[,;:.!?]\s+|\s[–—-]\s|[⇒→]|=>|\\(?:implies|Rightarrow|to)(?![a-z])|"
    r"\b(?:so|therefore|thus|hence|then|because|since|but|and)\b",
    re.IGNORECASE,
)
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
_NO_LABELS = frozenset(
    """
    was were before old older original initial previous first second another other some part case partial estimate
    chance chances possible possibly not half double twice triple without possibilities neither nor either above below
    under over less most more least try unknown intermediate given attempt guess trial opposite
    """.split()
)
_SUBJECT = frozenset(
    """
    the a an our my this that its final correct right answer answers result results solution solutions value number
    total sum amount what we i want wanted wants need needed asked for required desired sought of to in exactly
    therefore thus hence then so indeed only unique it is are will be must problem question exercise get obtain find
    found have also left all equal correct one single each per and with as by at on there how many much which were was
    looking exact simplest form simplified remaining root roots zero zeros equation
    """.split()
)
_SAID = _SUBJECT | (NO_THINGS - _NO_LABELS)
_PREDICATE = re.compile(
    r"^\W*(?P<noun>(?:[a-z]+ )?)(?P<verb>is|are|was|were|would|could|might|may|can(?!['’])|cannot|can['’]t|can not|"
    r"does|do|"
    r"doesn['’]t|don['’]t|isn['’]t|aren['’]t|wasn['’]t|won['’]t|didn['’]t|has|fits|lies|looks|seems|sounds|needs|"
    r"should|comes|feels|appears|works|serves)\b(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_NEVER_SAID = re.compile(
    r"\b(?:not|never|no|cannot|too|an? (?:answer|solution)|(?:his|her|their|your|whose) (?:\w+ )?"
    r"(?:answer|result|solution|guess|value)|(?:his|hers|theirs|yours)(?=\W*$)|half|twice|part|first|step|intermediate|"
    r"candidate|given|far|close|only (?:an?|part|half|one|some)|out of|extraneous|rejected|invalid|wrong|"
    r"(?-i:[A-Z][a-z]+)"
    r"['’]s|\w+n['’]t)\b",
    re.IGNORECASE,
)
_GRADED = re.compile(
    r"^[\s$*)\]}]*(?:[A-Za-z%°/\\{}^]+\s){0,3}(?P<grade>too (?:\w+)|off|shy|and (?:change|counting|then some|a bit|"
    r"some|"
    r"more|a half|rising|falling)|upwards|downwards|give or take|plus or minus|high|low|apart|at first|to begin with|"
    r"for now|initially|originally|so far|(?:before|without|excluding|ignoring|not counting) (?:the )?(?P<thing>\w+))"
    r"\b(?!\s?[0-9])",
    re.IGNORECASE,
)
_WANTS_ANOTHER = re.compile(
    r"[,;.–—-]\s*(?:but|yet|though|although|however|whereas|while|not counting|excluding|ignoring|without)\b(?P<rest>"
    r"[^.!?]{0,80}\b(?:need|needs|want|wants|wanted|asks?|asked|required|sought|looking|counting|"
    r"last one|first one|the answer)\b)",
    re.IGNORECASE,
)
_TERM = re.compile(
    r"^\W*(?:-\s?[a-z]|[0-9]+\s?[*·]?\s?[a-z]|[a-z]\s?[-+*/^]\s?[0-9]+|[0-9]+\s?[-+/^]\s?[a-z]|"
    r"\\[dt]?frac\{[0-9]+\}\{[a-z]\}|"
    r"\\sqrt\{[a-z]\}|√[a-z])\W*$"
)
_NOT_CONCLUDED = Caseless(
    r"\b(?:let|suppose|assume|denote)\W*$|\b(?:let|suppose|say|assume|denote|set|given|given that|with)\s+(?:that "
    r")?\$?[a-z]\$?"
    r"\s*(?:=|be|is|equal)?[\s$*]*$|\bwe (?:are|were|have been) given(?: that)?[\s$*]*$|"
    r"\b(?:initial|starting|given) (?:value|amount|number|quantity) (?:is|was|=|of)[\s$*]*$|"
    r"\bas if (?:it|this|that) (?:were|was)[\s$*]*$|\b(?:want|like|wish|hope|love|need) (?:it|this|that|the answer) "
    r"to be[\s$*]*$|"
    r"^\W*(?:using|with|from|taking|starting (?:with|from)|given)[\s$*]*$|\bany(?:thing| number| "
    r"value)?\b[^0-9]{0,16}$|"
    r"\banything (?:from|between)\b.*$|\b(?:in|within|out of|outside) the range\b.*$|\b(?:neighbou?rhood|vicinity|"
    r"region) of"
    r"[\s$*]*$|\b(?:if|as far as|to the best of) (?:my )?(?:memory|i (?:recall|remember)|knowledge)\b.*$|"
    r"\b(?:way|ways|removed|away|distance) from[\s$*]*$|\b(?:i|we|you) (?:start|started|begin|began) (?:with|at|from|"
    r"on|"
    r"out with)[\s$*]*$|\b(?:i['’]m|i am|i was|we were) told\b.*$|"
    r"\b(?:i|we)(?: \w+ly)? (?:hope|wish|pray|bet|wager|reckon|fancy|dream)\b[^.;:]{0,24}$|"
    r"\b(?:one|you|we|people|someone|many|some|most)(?: people| students)? (?:might|may|could|would|tend to|often|"
    r"usually) "
    r"(?:think|believe|say|guess|suspect|expect|answer|write|try|put|argue|assume|conclude|claim|box|choose|pick|"
    r"imagine|"
    r"suppose|object|reply|respond)(?: that)?[\s$*]*$|\bfollows? from[\s$*]*$|"
    r"\b(?:square|cube|negative|reciprocal|inverse|opposite|double|half|multiple|factor|divisor|part|third|quarter) "
    r"of[\s$*]*$|\be\.g\.?\W*$",
)
_EMPTY_HANDED = Caseless(
    r"\b(?:i|we)(?: (?:really|just|still|honestly))? (?:do not|don['’]t|did not|didn['’]t|cannot|can['’]t|could not|"
    r"couldn['’]t|am not|was not|have no|had no)(?: (?:really|even|yet))? (?:know|solve|sure|certain|compute|"
    r"determine|find|"
    r"answer|see how|tell|idea|clue|work (?:it|this) out)\b|\bi['’]m not (?:sure|certain)\b|"
    r"^\W*(?:(?:so|but|well|and),? )?(?:no|not|without any|without an?) (?:sure|certain|clue|idea|answer)\b|"
    r"^\W*(?:hmm+|uh+|um+|er+|dunno|idk|whatever|maybe|perhaps|possibly|probably)\b",
)
_INSTRUCTS = Caseless(
    r"\b(?:put|place|write|enter|give|box|type|fill|state|report|return|submit|provide)\b(?: \w+){0,3}? (?:(?:final|"
    r"own) )?"
    r"(?:answer|result|solution|value|response)s?\b(?: \w+){0,2}? (?:in|into|inside|within|as|like|here|using)\W*$|"
    r"\b(?:do not|don['’]t|never|nobody should|no one should|please|always|must not|should not) (?:\w+ )?"
    r"(?:box|write|put|answer|submit|enter|say|give|report|return)\b\W*$|\bformat\b.{0,24}$",
)


_LETTERS = re.compile(r"[^\W\d_]+")
_PLAIN = frozenset(
    "so thus hence therefore finally then altogether the our my this final correct answer result solution is are "
    "equals we get have obtain".split()
)


def lead_in(final: Final, response: str, question: str, reference: str, agrees: Callable[[str], bool]) -> str | None:
    """Return the words that make a right value no answer to the question, ``None`` if there are none.

    Args:
        final: the answer found, which agrees with the reference.
        response: the response.
        question: its words are known; one in another language than English is not asked about.
        reference: what the answer is compared with.
        agrees: whether a text is the reference.
    """
    if in_words(reference) or not _asked_in_english(question):
        return None
    before, behind, earlier = _parts(final, response, reference, agrees)
    if before is None:
        return None
    if (reason := _boxed_beside(before, behind, earlier, final, agrees)) is not None:
        return reason
    if _PLAIN.issuperset(map(str.casefold, _LETTERS.findall(f"{before} {behind}"))):
        return None  # most answers are announced in these words, or in none
    if _is_foreign(f"{before} {behind}"):
        return None
    asked = _stems(f"{question} {reference}")
    if (found := _another_term(before, question)) is not None:
        return found
    tail = before if len(before) < MAX_TAIL else before[-MAX_TAIL:]  # most of these stand right before the value
    for pattern, text in ((_NOT_CONCLUDED, tail), (_EMPTY_HANDED, before), (_INSTRUCTS, tail)):
        if (match := pattern.search(text)) is not None and not _all_asked(match.group(), asked):
            return match.group().strip()
    return _in_front(before, question, asked) or _said_of(before, behind, asked)


def _parts(final: Final, response: str, reference: str, agrees: Callable[[str], bool]) -> tuple[str | None, str, str]:
    """What stands before the value in its sentence, ``None`` if it is not found, what behind it, and the one before."""
    text, after = final.text, final.after
    end = len(response) - len(after) if after and response.endswith(after) else len(response)
    place = response.rfind(text, 0, end)
    if place >= 0:
        front, rest = response[max(place - MAX_BEFORE, 0) : place], response[place + len(text) :][:200]
    else:
        front, rest = final.lead, after[:200]
    head = (_HEAD if final.marker else _REASON).split(text, maxsplit=1)[0]
    inner = behind = ""
    goes_on = _SPOKEN.search(text, len(head)) is not None
    if goes_on:
        inner, behind = around(head, agrees, reference)
    if goes_on and (inner or behind or agrees(head)):
        behind += text[len(head) :]  # what it says first: "42, because 17 + 25 = 42"
    elif "=" in text or _SPOKEN.search(text) is not None:
        inner, behind = around(text, agrees, reference)
    if not inner and not behind and not agrees(text):
        return None, "", ""
    if not inner:
        opened = _unopened(front)
        joined = "\n" not in front[len(opened) :] or _LEADS_ON.search(opened) is not None
        front = opened if joined else f"{opened}\n"
    pieces = _ENDS.split(f"{front}{inner}")
    earlier = next((piece for piece in reversed(pieces[:-1]) if piece.strip()), "")
    rest = _ENDS.split(_CLOSED.sub("", f"{behind}{rest}"))[0]
    while (unit := _UNIT.match(rest)) is not None and lookup(unit[1]) is not None:
        rest = rest[unit.end() :]
    before = _unopened(_at_end(_NAMED, _unopened(pieces[-1]).strip())).strip()
    return before, _CLOSED.sub("", rest), earlier


def _unopened(text: str) -> str:
    """A text without what opens a box, a formula or emphasis at its end."""
    return _at_end(_OPENED, text)


def _at_end(pattern: re.Pattern[str], text: str) -> str:
    """A text without what a pattern finds at its end, where alone it is looked for."""
    return text[:-MAX_OPENING] + pattern.sub("", text[-MAX_OPENING:])


_SPOKEN = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_LEADS_ON = re.compile(
    r"(?:[:=,]|\b(?:is|are|be|get|obtain|gives|have|so|thus|hence|therefore))[*_\s]*$", re.IGNORECASE
)
_UNIT = re.compile(r"\s*(?:(?:per|an?)\s|/\s?)?\s*([A-Za-z]{1,12})\b(?!['’])")
_REASON = re.compile(r",?\s+(?=(?:because|since)\b)")
_HEAD = re.compile(
    r"(?<=[\w)}$*%°])(?:[,;:]?\s+(?=\(|(?:because|since|as|so|which|where|when|for|by|after|with)\b)|[,;]\s+)"
)


def _boxed_beside(before: str, behind: str, earlier: str, final: Final, agrees: Callable[[str], bool]) -> str | None:
    """What stands right beside a box or tag, or in the sentence before one that has none of its own."""
    if not any(map(str.isalpha, before)):
        if (refused := UNSOLVED.search(earlier)) is not None and _BUT.search(earlier, refused.end()) is None:
            return refused.group()
        if len(_words(earlier)) < 5 and (refused := _EMPTY_HANDED.search(earlier)) is not None:
            return refused.group()
        if final.framed and _MINUEND.search(before) is not None:
            return before
    if (
        final.marker
        and _QUESTIONED.match(final.after.partition("\n")[0]) is not None
        and _ASKING.search(before) is None
    ):
        return "?"
    if final.framed and (goes := _GOES_ON.match(final.after)) is not None:
        said = [piece for piece in goes["rest"].split("=") if any(map(str.isdigit, piece))]
        if said and not any(agrees(piece.strip(" .,;$")) for piece in said):
            return goes.group().strip()
    return None


_BUT = re.compile(r"\b(?:but|still|yet|however)\b|['\"”’]", re.IGNORECASE)
_MINUEND = re.compile(r"[0-9)}]\s*[-−]\s*(?:[A-Za-z]\s?=\s*)?$")
_QUESTIONED = re.compile(r"^[\s$)*\]}.]*\?+[\s$)*\]}]*$")
_ASKING = re.compile(r"\?|\bwhat\b|\bhow\b|\bwhich\b", re.IGNORECASE)
_GOES_ON = re.compile(
    r"^[\s$)}]*(?:=|\\to(?![a-z])|→|->|\\(?:long)?rightarrow(?![a-z]))(?P<rest>[\s$]*[^.,;:\n≈A-Za-z$]*(?:\.[0-9]+)?)"
)


_IN_ENGLISH = re.compile(r"\b(?:[Tt]he|and|of|are|answer|[Tt]hus|[Tt]herefore|[Hh]ence)\b")


def _is_foreign(text: str) -> bool:
    """Say whether a text is in another language; without a common English word, one word of another one tells."""
    if _IN_ENGLISH.search(text) is not None or not is_foreign(text):
        return False
    words = [word for word in _words(text) if len(word) > 2]
    return not text.isascii() or any(
        word not in plain_words() and word not in _ENGLISH_LABELS and word not in NO_THINGS and known_words(word, "")
        for word in words
    )


@functools.lru_cache(256)
def _asked_in_english(question: str) -> bool:
    if is_english(question):
        return True
    words = [word for word in _words(question) if len(word) > 3]
    return question.isascii() and bool(words) and 2 * sum(word in plain_words() for word in words) >= len(words)


def _in_front(before: str, question: str, asked: frozenset[str]) -> str | None:
    before = _SOUGHT.sub("", _TAG.sub(" ", before))
    nouns = list(_NOUN.finditer(before))
    if nouns and _TURNS.search(before, nouns[-1].end()) is not None:
        nouns = []
    if nouns and (verb := _VERB.search(before, nouns[-1].end())) is not None:
        start, owner = _owner(before[: nouns[-1].start()], asked)
        if owner is not None:
            return f"{owner} {nouns[-1].group()}"
        if (word := _strange(before[nouns[-1].end() : verb.start()], _QUALIFIES, asked)) is not None:
            return f"{nouns[-1].group()} {word}"
        if (part := _PART.search(before[nouns[-1].end() : verb.start()])) is not None and not _is_named(part, question):
            return f"{nouns[-1].group()} to {part.group()}"
        told = before[verb.end() :]
        if (
            _TOLD.search(told) is None
            and not told.endswith("=")
            and (word := _strange(told, _GIVES, asked)) is not None
        ):
            return f"{verb.group()} {word}"
        return _case(before[:start], question, asked)
    if nouns and nouns[-1].group().casefold() == "answer" and _BREAKS.search(before, nouns[-1].end()) is None:
        if (word := _strange(before[nouns[-1].end() :], _QUALIFIES | _GIVES, asked)) is not None:
            return f"{nouns[-1].group()} {word}"
    if before.endswith(":"):
        return _label(before, asked)
    clause = _CASE_ENDS.split(before)[-1]
    if (opens := _OPENS.match(clause)) is not None and (first := opens["first"].casefold()).endswith("ly"):
        if (
            first not in _ADVERBS
            and first not in _OFTEN
            and not _ORIGINALLY.match(clause)
            and not _is_asked(first, asked)
        ):
            return first
    if (dangling := _DANGLING.match(clause)) is not None:
        last = (dangling[1] or dangling[2]).casefold()
        if last not in question.casefold().split():
            return dangling.group().strip()
    if (order := _ORDERS.match(clause)) is not None and not _is_asked(order[1].casefold(), asked):
        return order.group().strip()
    if (teller := _TELLS.search(before)) is not None and not _teller_known(teller, asked):
        return teller.group().strip()
    if (does := _IT_DOES.search(before)) is not None:
        done = does["verb"].casefold()
        if not (done in NO_THINGS or done in _DOES or _is_asked(done, asked)):
            return does.group().strip()
    subject = _PRONOUN.search(before)
    if subject is not None:
        return _case(before[: subject.start()], question, asked)
    return None


_SOUGHT = re.compile(
    r"(?:(?<=answer)|(?<=result)|(?<=solution))(?: that| which)? (?:we|i) (?:are|were|am|was) (?:looking for|"
    r"searching for|after|"
    r"seeking)\b",
    re.IGNORECASE,
)
_TOLD = re.compile(r"\b(?:has|have|had|are|costs?|travels?|takes?|earns?|sells?|gets?|needs?|pays?)\b")
_TAG = re.compile(r"</?[a-z_]+>")
_IT_DOES = re.compile(
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
_ORIGINALLY = re.compile(r"\W*(?:originally|initially),? (?!i\b|we\b|the answer\b)\w", re.IGNORECASE)
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
_PRONOUN = re.compile(r"\b(?:it|this|that|we|i|there|one)\b(?:['’]s| \w+){0,3}\W*$", re.IGNORECASE)


_OFTEN = frozenset("only early family daily weekly monthly hourly yearly multiply apply july italy".split())
_DANGLING = re.compile(
    r"^\W*(?:[a-z]+ly |just |right |next |somewhere |out |up |down |close |way |well )*"
    r"(by|per|near|to|of|than|against|beside|besides|beyond|towards?|past|like|over|under|below|above|times|unlike|"
    r"despite)"
    r"(?: (?:a|an|the|about|exactly|some))*[\s$*]*$|"
    r"^.*\b(like|unlike|than|near|resembling|resembles)[\s$*]*$",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"^\W*(?:(?:then|now|next|first|please|finally|just|you (?:could|can|might|should))\W+)*(divide|multiply|add|"
    r"subtract|"
    r"take|consider|pick|try|use|plug|substitute|put|halve|suppose|guess|choose|compare|insert|keep|drop|forget|avoid|"
    r"ignore|imagine|continue|proceed|go on)(?: (?:in|with|by|from|to|the|value|number|about|just))*[\s$*]*$",
    re.IGNORECASE,
)
_TELLS = re.compile(
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
    return _is_asked(who, asked) or who in _OF_WORK or who in NO_THINGS or who.endswith("ing")


def _owner(front: str, asked: frozenset[str]) -> tuple[int, str | None]:
    """Where the words that own an answer begin, and the one of them that is not known."""
    start = len(front)
    while (match := _LAST_WORD.search(front, 0, start)) is not None:
        word = match[1].casefold().replace("’", "'")
        if word in _OWNERS:
            return match.start(1), None
        if word in _LINKS:
            return start, None
        if word not in _KINDS and not _is_asked(word, asked):
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
        return None if first in _ADVERBS or _is_asked(first, asked) or rest.strip(" ,") else first
    if not (first in _PREPOSITIONS or first in _ACTIONS or first.endswith("ing")):
        return None
    if first in ("nothing", "everything", "something"):
        return None
    if first.endswith("ing") and first not in _ACTIONS and not _is_asked(first, asked) and first not in plain_words():
        return first
    if first in ("for", "in", "if", "when", "at") and (fixed := _FIXED.search(rest)) is not None:
        if "".join(fixed.group().split()) not in "".join(question.split()):
            return phrase.strip()
    narrow = first in ("at", "on")
    for word in [first, *_words(rest)]:
        if word in _OTHER_CASES and re.search(rf"\b{word}", question, re.IGNORECASE) is None:
            return phrase.strip()
        if len(word) < 3 or _is_asked(word, asked) or word in _PREPOSITIONS - _OTHER_CASES:
            continue
        if narrow and word not in _AT:
            return phrase.strip()
        if word not in plain_words() and word not in _ACTIONS and lookup(word) is None and number_words(word) is None:
            return phrase.strip()
    return None


_OTHER_TIMES = frozenset("yesterday formerly earlier previously elsewhere meanwhile sometimes often usually".split())
_CASE_ENDS = re.compile(r"[,;:.!?]\s+|\b(?:so|therefore|thus|hence|then|because|since|but|that)\b", re.IGNORECASE)
_FIXED = re.compile(r"\b[a-z]\s?=\s?-?[0-9]+\b")


def _label(before: str, asked: frozenset[str]) -> str | None:
    """The word of a label that no plain label holds; a sentence or an instruction before a colon is not asked about."""
    words = _words(before)
    if len(words) > 3 or any(word in _SPEAKING or word.endswith("ing") for word in words):
        return None
    if "attempt" in words or "try" in words:
        return None if _AGAIN & set(words) else words[0]
    for word in words:
        if _is_asked(word, asked) or (word in _LABELS and word not in _NO_LABELS):
            continue
        if word in _NO_LABELS or not (
            len(word) < 2
            or word in NO_THINGS
            or lookup(word) is not None
            or number_words(word) is not None
            or (known_words(word, "") and word not in _ENGLISH_LABELS)
        ):
            return word
    return None


_AGAIN = frozenset("second third fourth last new next final corrected another".split())
_SPEAKING = frozenset(
    "we it i you they he she me us from by to at with on if when where both here there then this that these is are has "
    "have divide multiply add subtract take solve find let therefore thus hence so since because as how what go agree "
    "agrees order method combine simplify factor expand apply use evaluate compute compare write convert check".split()
)
_ENGLISH_LABELS = frozenset("old initially placeholder".split())
"""Words that the list of other languages knows, too."""


def _said_of(before: str, behind: str, asked: frozenset[str]) -> str | None:
    """What is said of a value that makes it another thing than the answer."""
    if (graded := _GRADED.match(behind)) is not None:
        thing = graded["thing"]
        of_the_value = thing in _PRONOUNS or (graded["grade"] in _MEASURES and not _IS.search(before))
        if not of_the_value and not (_is_asked(thing, asked) if thing else _all_asked(graded["grade"], asked)):
            return graded.group().strip()
    if (on := _WORKS_ON.match(behind)) is not None:
        return on.group().strip()
    if (wanted := _WANTS_ANOTHER.search(behind)) is not None and not _all_asked(wanted.group(), asked):
        return wanted.group().strip(" ,;")
    said = _CLAUSE.split(before)[-1]
    predicate = _PREDICATE.match(behind)
    if predicate is None or any(map(str.isalpha, said)):
        return None
    noun = predicate["noun"].strip().casefold()
    verb, rest = predicate["verb"].casefold(), _PREDICATE_ENDS.split(predicate["rest"])[0]
    if noun and not (_is_asked(noun, asked) or lookup(noun) is not None or noun in ("only",)):
        return None
    if verb not in _STATES:
        return f"{verb}{rest}"
    if (never := _NEVER_SAID.search(rest)) is not None and not _all_asked(never.group(), asked):
        return f"{verb}{rest}"
    word = _strange(rest, _SAID, asked)
    return None if word is None else f"{verb} {word}"


_PREDICATE_ENDS = re.compile(r"[.;]\s|,\s(?!not\b|but\b)|\bbecause\b|\bsince\b")
_STATES = frozenset("is are was were has does do can should would need needs comes fits works".split())
_MEASURES = ("off", "shy", "high", "low", "apart")
_PRONOUNS = frozenset("he she they it we i you his her their its our".split())
_IS = re.compile(r"\b(?:answer|result|solution|it|that|this)\b.*\b(?:is|was|are|were)\b|['’]s\W*$", re.IGNORECASE)
_WORKS_ON = re.compile(
    r"^[\s$)*\]},]*(?:we|i|you|one|let us|let['’]s)\s(?:now |then |can |could |may |will )*(?:continue|proceed|go on|"
    r"move on|carry on|"
    r"start|begin)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?<![-+*/^A-Za-z0-9\\=}])(?<![-+*/^=] )[A-Za-z](?:\(\w\))?\s?=\s*$")


def _another_term(before: str, question: str) -> str | None:
    """``2x =``, unless the question asks for it."""
    chain = re.split(r"[,;:]\s|[⇒→]|=>|\\(?:implies|Rightarrow|to)(?![a-z])", before)[-1]
    if re.search(r"(?<!\\)\b[A-Za-z]{2}", before) is not None or not chain.rstrip(" $*(").endswith("="):
        return None
    asked = "".join(question.split())
    term = chain.partition("=")[0].strip(" $*")
    return f"{term} =" if _TERM.match(term) and "".join(term.split()) not in asked else None


def _strange(text: str, lexicon: frozenset[str], asked: frozenset[str]) -> str | None:
    for word in _words(text):
        if (len(word) < 3 and word not in ("up", "if")) or word in lexicon or _is_asked(word, asked):
            continue
        if lookup(word) is None and number_words(word) is None:
            return word
    return None


def _words(text: str) -> list[str]:
    text = _ABBREVIATED.sub(" ", text)
    plain = FORMULA.sub(" ", _TEXT.sub(r" \1 ", text)) if any(map(text.__contains__, "$\\{<")) else text
    return [match.group().casefold().replace("’", "'") for match in _WORD.finditer(plain)]


_ABBREVIATED = re.compile(r"(?<![A-Za-z\\])(?!NOT\b|OLD\b|NO\b|WAS\b)[A-Z]{1,4}(?![A-Za-z'’])")


def _is_asked(word: str, asked: frozenset[str]) -> bool:
    return len(word) > 2 and word[:_STEM] in asked


def _all_asked(words: str, asked: frozenset[str]) -> bool:
    """Say whether the question speaks of it too."""
    long = [word for word in _words(words) if len(word) > 3]
    return bool(long) and all(_is_asked(word, asked) for word in long)


_STEM = 5


@functools.lru_cache(256)
def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _WORD.findall(text.casefold()) if len(word) > 2)


def gives_up(final: Final, response: str) -> bool:
    """Say whether the sentence right before a box or tag that stands alone says that there is no answer."""
    if final.lead or not final.framed:
        return False
    end = response.rfind(final.text)
    earlier = [
        piece for piece in _ENDS.split(_OPENED.sub("", response[max(end - 200, 0) : max(end, 0)])) if piece.strip()
    ]
    return bool(earlier) and UNSOLVED.search(earlier[-1]) is not None and _BUT.search(earlier[-1]) is None


__all__ = ["gives_up", "lead_in"]
