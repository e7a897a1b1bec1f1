# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Whether all that stands beside an answer in words belongs to a plain statement of it.

Before the answer stand words of statements, the question's own, units and numbers; behind it fewer. The reason that
follows may use any words. Labels have a vocabulary of their own. In scripts without blanks, what is left of a sentence
without its common particles and the characters of the question is strange.
"""

from __future__ import annotations

import re

from assay.verify.math.counted_nouns import NOUNS
from assay.verify.math.english import plain_words
from assay.verify.math.frames import is_foreign, known_words
from assay.verify.math.harmless import bare
from assay.verify.math.statement import UNSPACED, WORD, A
from assay.verify.math.units import lookup
from assay.verify.math.values import Truth
from assay.verify.math.withdrawal import HARD
from assay.verify.math.words import number_words

QUESTIONED = re.compile(r"[?？؟]")
_REASON = re.compile(
    r"[,;:(]?\s*[–—-]?\s?(?:\b(?:because|since|as|so|due to|given that)\b|(?:,|;|:|\s[–—-])\s(?=(?:and |so |"
    r"because |since "
    r")?(?:[0-9$\\]|(?:it|this|that|they|there|the|we|its|no|each|every|all|both|any|only|[0-9]+)\b))|[,;(:]|"
    r"\s[–—-]\s|\.)",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[,;:](?:\s+|$)|\s[–—-]\s|\b(?:so|therefore|thus|hence|because|since)\b", re.IGNORECASE)
_FRAME = frozenset(
    (
        "the a an is are was be of to in on at and so thus hence therefore then it its this that these there we "
        "get gets have "
        "has obtain find finds found final answer answers result solution solutions value conclusion correct "
        "right our my here "
        "finally conclude which what who whom whose i'm im going with must will falls fall lands land lies comes "
        "come occurs "
        "statement claim proposition equation system limit series sum product number numbers integer person name "
        "day date week weekday month "
        "year colour color shape type kind word after before later from now today by as for exactly indeed "
        "always only one ones "
        "he she they means mean given since because overall all together short brief verdict question asked "
        "required desired "
        "called becomes belongs leaves leaving see us it'll double checked checking spelled spells named written "
        "makes equal "
        "exist exists short sure okay ok yes great well let's lets first last element mathematician scientist "
        "wages highest lowest fastest slowest oldest youngest tallest shortest largest smallest greatest "
        "cheapest heaviest "
        "author painter inventor composer symbol capital city country planet triangle"
    ).split()
)
_LABELS = frozenset(
    (
        "the a my our your this answer answers final correct right result results solution solutions so thus "
        "hence therefore "
        "conclusion short verdict value response is we have get in to of question short overall finally a bottom "
        "line and ans "
        "together altogether follows as i summary day date name who what which capital city result output "
        "complete simplified simple short explanation reasoning"
    ).split()
)
_NEVER = frozenset(
    (
        "not never hardly scarcely barely almost nearly would could might may should cannot won't don't doesn't "
        "didn't isn't wasn't "
        "can't couldn't wouldn't shouldn't maybe perhaps possibly probably or either neither nor if unless "
        "whether except but "
        "without some many people everyone nobody nothing none anyone anything everything far opposite reverse "
        "contrary other "
        "another different previous next old original initial initially placeholder random fake false wrong "
        "incorrect student "
        "teacher friend book internet half sort kind sometimes partly longer used want wanted wants hope wish "
        "expect expected "
        "guess suppose assume imagine consider let say says said claims claim think thinks thought believe "
        "believed believes "
        "like word term letter letters favourite example sample option options choice choices candidate "
        "candidates case possible about "
        "around near approximately least    than rather instead both also too plus versus vs against "
        "copied wrote "
        "model read note answered second third written write print return output assert reference grader ignore "
        "instruction instructions"
    ).split()
)
_NOUN = r"(?:answer|result|solution|conclusion|response|verdict|choice)"
_OWNED = re.compile(
    rf"\b(?P<whose>[^\W\d_]+['’]s?|an?|one|another|other|some|his|her|their|your|"
    rf"its)\s(?:[^\W\d_]+\s){{0,3}}{_NOUN}\b|"
    rf"\b(?P<of>{_NOUN})\b(?!\s*(?:is|are|:|=|\ufffc|here\b|must be|can only be|has to be|will be|should "
    rf"therefore|in (?:words|short)|"
    r"(?:to|of|for) (?:the|this|your|our|that)\b|we (?:get|find|obtain|seek|want|are looking)|i (?:get|find|"
    r"obtain|arrive)|as\b|"
    r"by\b|therefore|thus|hence|then|it\b)|\W*$|\W*\ufffc)",
    re.IGNORECASE,
)
_ABOUT = re.compile(rf"\b{_NOUN} (?:to|of|for) (?P<what>[^:\ufffc]{{1,80}}?) (?:is|was)\b", re.IGNORECASE)
_CONDITION = re.compile(r"^\W*(?:if|when|unless|had)\b(?!.*\b(?:so|thus|therefore|we|you|then)\b)", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"\b(?:question|problem|exercise|part) [0-9]|\b(?:another|different|previous|next|other|last|first)\b", re.I
)
_PAST = re.compile(
    rf"\b{_NOUN}s? (?:was|were|would|used|could|might|may)\b|\b(?:was|were|been|used to be) \ufffc", re.IGNORECASE
)
_SAID_BY = re.compile(
    r"(?:^|[.!?\n])\s*(?:(?:the|a|my|an) )?(?:\w+ )?(?:user|human|teacher|student|professor|bob|alice|friend|"
    r"someone|chatgpt|gpt|"
    r"assistant|tutor|pupil|system|q)\s?:|^\s*(?-i:(?!Answer|Solution|Result|So|Thus|Yes|No|Final|Conclusion|"
    r"Verdict)[A-Z][a-z]+): "
    r"[\"“]?(?-i:[A-Z])",
    re.IGNORECASE,
)
_ORDINAL = re.compile(
    r"\b(?:[0-9]+(?:st|nd|rd|th)|every (?:second|third|fourth|fifth|other)|the (?:second|third|fourth|fifth|"
    r"sixth|seventh)|each|all the|every)\b",
    re.IGNORECASE,
)
_CJK_FRAME = re.compile(
    r"最终|最終|最後|最后|正确|正確|答案|答え|解答|正解|答|结果|結果|结论|結論|因此|所以|故|于是|综上|即|就|应该|應該|应|為|为|是|有|的|我们|得到|得|"
    r"したがって|よって|ゆえに|だから|つまり|以上より|これより|です|である|であり|だ|になります|となります|になる|となる|なので|は|が|の|に|と|を|"
    r"정답|답|최종|결과|결론|따라서|그러므로|즉|입니다|이다|이에요|예요|이며|은|는|이|가|의|그|คำตอบ|คือ|ดังนั้น|จึง|เป็น|วัน|該|该|此|这|這|那|天|日|曜|"
    r"요일|오늘|命题|命題|方程|无|無"
)


def strange_label(label: str, question: str, reference: str) -> str | None:
    if alien(label) or UNSPACED.search(label):
        return next((w for w in WORD.findall(label) if not known_words(w, f"{question} {reference}")), None)
    words = [w.casefold() for w in WORD.findall(re.sub(r"[0-9]\w*", " ", label)) if len(w) > 1]
    asked = _stems(f"{question}")
    for word in words:
        if (
            word in _LABELS
            or number_words(word) is not None
            or (word == "after" and len(words) > 2)
            or lookup(word) is not None
            or (bare(word)[:5] in asked and word not in _NEVER)
            or word in ("step",)
        ):
            continue
        if label.startswith("#") and word not in _NEVER and known_words(word, question) and not word.endswith("s"):
            continue
        return word
    return None


def _stems(text: str) -> frozenset[str]:
    return frozenset(bare(word)[:5] for word in WORD.findall(text) if len(word) > 2)


def _unknown(text: str, question: str, reference: str, frame: frozenset[str] = _FRAME) -> str | None:
    """The first word that no plain statement of an answer holds."""
    asked = _stems(question)
    named = {word.casefold() for word in WORD.findall(f"{question} {reference}")}
    for word in WORD.findall(text):
        low = word.casefold()
        if low in named or (len(low) < 2 and not low.isascii()) or (len(low) < 2 and low != "i"):
            continue
        if low in _NEVER:
            return word
        if low in frame or (len(low) > 3 and bare(low)[:5] in asked):
            continue
        if "'" in low or "’" in low:
            if re.fullmatch(r"(?:it|that|there|here|what|who|he|she)['’]s|(?:i|we|they)['’](?:m|re|ve)|let['’]s", low):
                continue
            return word
        if word.isupper() and len(word) < 4:
            continue
        if bare(low) in _NOUNS or low in _PLACES:
            return word
        if frame is _FRONT and (known_words(low, question) or low in plain_words()):
            continue
        if lookup(low) is not None or number_words(low) is not None:
            continue
        return word
    return None


_FRONT = frozenset((*_FRAME, "i"))
_NOUNS = frozenset(bare(noun).rstrip("*") for noun in NOUNS.split()) | {"banana", "bananas"}
_PLACES = frozenset("no far placeholder output prints i".split())


def in_english(front: str, behind: str, question: str, reference: str, kind: Truth | None) -> str | None:
    front = re.sub(r"^\W*(?:[-*•>#|]+|[0-9]+[.)])\s", "", front)
    if front.rstrip(" \"'“").endswith(":") or re.search(r"[:=|]\s*\W{0,3}$", front):
        label = re.split(r"[.;]\s", front.rstrip(" :=|\"'“"))[-1]
        said = label.rpartition(":")[2]
        word = strange_label(said, question, reference) if "{" not in front else None
        if word is not None and (not _sentence(said) or _unknown(said, question, reference, _FRONT) is not None):
            return f"{word!r} labels the answer"
        if re.fullmatch(r"\W*step 1\W*", said, re.IGNORECASE):
            return "a step labels the answer"
    else:
        label = ""
    last = _BREAK.split(front)[-1]
    if last != front:
        last = re.sub(r"^\W*(?:but|and)\s", "", last)
    if not label and last.strip() and (word := _unknown(last, question, reference, _FRONT)) is not None:
        return f"{word!r} before the answer is not known to be harmless"
    if (
        owned := _OWNED.search(f"{last or front}{A}")
    ) is not None and owned.group().casefold() not in question.casefold():
        return f"the answer is another's: {owned.group()!r}"
    if (about := _ABOUT.search(f"{front}{A}")) is not None and _ELSEWHERE.search(about["what"]):
        return "the answer is that of another question"
    if _CONDITION.search(front) and not re.search(r"\b(?:if|when)\b", question, re.IGNORECASE):
        return "the answer depends on a condition"
    if re.search(r"\b(?:second|first|third|other) (?:answer|choice|try|guess)\b", last, re.IGNORECASE):
        return "the answer is one of several"
    if re.match(r"[\s,]*and (?!(?:it|this|that|the|so|thus|therefore|hence|we|its|they|there|[0-9$])\b)\w+", behind):
        return "what follows the answer speaks against it"
    if _PAST.search(f"{front}{A}") or _SAID_BY.search(front):
        return "the answer is told of, not given"
    if (ordinal := _ORDINAL.search(last)) is not None and ordinal.group().casefold() not in question.casefold():
        return "it is said of something else"
    reason = _REASON.search(behind)
    near, rest = (behind[: reason.start()], behind[reason.start() :]) if reason is not None else (behind, "")
    if (word := _unknown(near, question, reference)) is not None:
        return f"{word!r} behind the answer is not known to be harmless"
    explains = re.match(r"\W*(?:because|since|as|so|due|given)\b", rest) is not None
    judged = kind is not None and _CLAUSE.match(rest) is not None
    if (
        rest
        and not explains
        and not judged
        and len(WORD.findall(rest)) <= 5
        and (word := _short_aside(rest, question, reference))
    ):
        return f"{word!r} behind the answer is not known to be harmless"
    if HARD.search(rest.lstrip(" .,;:")) and kind is None:
        return "what follows the answer takes it back"
    return None


def alien(text: str) -> bool:
    """Say whether a text is in another language than English."""
    words = [word.casefold() for word in WORD.findall(text) if len(word) > 1]
    english = sum(w in plain_words() or w in _NEVER or w in _FRAME or w in _PLACES for w in words)
    return is_foreign(text) and 2 * english <= len(words)


_CLAUSE = re.compile(r"[\s,;:.–—-]*(?:it|this|that|they|there)(?:\s|['’]s\s)", re.IGNORECASE)
"""What is said of a truth value is compared with it elsewhere."""


def _sentence(text: str) -> bool:
    return re.search(r"\b(?:is|are|has|we|get|have|obtain|conclude)\b", text) is not None and len(text.split()) > 4


def _short_aside(text: str, question: str, reference: str) -> str | None:
    for word in WORD.findall(text):
        low = word.casefold()
        if (
            low in ("not", "no", "non", "any", "other", "example")
            or low in _FRAME
            or bare(low)[:5] in _stems(f"{question} {reference}")
        ):
            continue
        if low in _NEVER:
            return word
        if low in plain_words() or known_words(low, question) or len(low) < 3 or word[0].isupper():
            continue
        return word
    return None


_CONTRAST = re.compile(
    r"\b(?:pero|aber|mais|ma|mas|porém|maar|sondern|daher|но|а|ale|ama|men|sino|bensì|utan)\b", re.IGNORECASE
)
_ASIDE = re.compile(r"\(([^()]{2,60})\)")
_FOREIGN_REASON = re.compile(
    r"[,;:(]|\s[–—-]\s|\.\s|\b(?:weil|denn|da|porque|pues|ya que|car|parce que|puisque|perché|poiché|pois|want|"
    r"omdat|bo|"
    r"ponieważ|gdyż|потому|так как|поскольку|ведь|çünkü|karena|vì|eftersom|لأن|क्योंकि)\b",
    re.IGNORECASE,
)
_FOREIGN_DENIES = frozenset(
    (
        "nicht kein keine nie niemals außer oder pas jamais sauf ou n non nunca no menos salvo o u não exceto "
        "tranne oppure "
        "niet geen nooit behalve of nie nigdy oprócz lub albo не нет никогда кроме или değil veya tidak bukan "
        "atau không hoặc "
        "ليس ليست لا أو नहीं या inte aldrig eller"
    ).split()
)


def in_another_language(front: str, behind: str, question: str, reference: str) -> str | None:
    if QUESTIONED.search(behind[:40]) or "¿" in front:
        return "the answer is asked, not given"
    near = _FOREIGN_REASON.split(behind, maxsplit=1)[0]
    front = _CONTRAST.sub(" ", front)
    clauses = [c for c in re.split(r"[,;:]\s+|\.\s", front) if re.search(r"\w", c)]
    told = [c for k, c in enumerate(clauses) if k == len(clauses) - 1 or len(c.split()) < 3]
    told += [aside for aside in _ASIDE.findall(behind) if len(aside.split()) < 4]
    for text in (*told, near):
        for word in WORD.findall(text):
            low = word.casefold()
            if low in _FOREIGN_DENIES or not (known_words(word, f"{question} {reference}") or len(low) < 2):
                return f"{word!r} beside the answer is not known to be harmless"
    return None


def without_spaces(front: str, behind: str, question: str) -> str | None:
    if QUESTIONED.search(behind) or re.search(r"か[。.\s]*$|吗|吧|呢|까[?.\s]*$", behind):
        return "the answer is asked, not given"
    last = re.split(r"[,，、。:：]", front)[-1] if re.search(r"[,，、。]", front) else front
    near = re.split(r"[,，、。(（]|因为|因為|なぜなら", behind)[0]
    left = "".join(c for c in _CJK_FRAME.sub("", f"{last}{near}") if UNSPACED.match(c) and c not in question)
    if left:
        return f"{left!r} beside the answer is not known to be harmless"
    earlier = front[: len(front) - len(last)] if last else front
    if re.search(r"猜|也许|可能|或许|不知|不确定|说|怀疑|假设|如果|たぶん|おそらく|わかり|勘|아마|모르|친구", earlier):
        return "a doubt stands before the answer"
    return None
