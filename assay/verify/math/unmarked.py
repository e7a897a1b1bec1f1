"""The final answer of a response that marks none: its last line, formula or sentence, if that concludes anything."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from assay.verify.caseless import Caseless
from assay.verify.math.read import MAX_LENGTH, read
from assay.verify.math.units import lookup
from assay.verify.math.values import Text


@dataclass(frozen=True, slots=True)
class Final:
    """A final answer: its text, whether a marker framed exactly it (``framed``) or it is a sentence around it, the
    texts of all different marked answers, what follows, what comes before in the same sentence, and whether it is a
    formula that stands by itself."""

    text: str
    framed: bool
    marked: tuple[str, ...] = ()
    after: str = ""
    marker: bool = True
    lead: str = ""
    display: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no final answer."""

    reason: str


_OPENED_THINK = re.compile(r"<think(?:ing)?>")
_CLOSED_THINK = re.compile(r"</think(?:ing)?>")
DENIAL = Caseless(
    r"(?:n(?:(?<=\bn)(?:ot|ever|either|or|o es)|'t|icht|'est pas)|不是|不|не)\s*[:$*(\[\\ ]*$", frequent=True
)
_CLOSER = re.compile(
    r"let me know|hope (?:this|that)|feel free|is there anything|good luck|thank|happy to|"
    r"if you (?:have|need|want)|great question|"
    r"please (?:ask|tell)|any (?:other|more) questions|best,|cheers|"
    r"^\W*(?:and |all )?(?:done|that'?s (?:it|all)|voil\w+|q\.?\s?e\.?\s?d|easy(?: peasy)?|simple|problem solved|"
    r"solved|perfect|"
    r"finished|ta-?da|there (?:you|we) (?:go|have it)|nice|boom|fertig|listo|fini|готово)\W*$",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[^\sa-z0-9])|(?<=[。！？])|\n+")
FENCE = re.compile(r"^[ \t]*```[a-z]{0,12}[ \t]*$", re.MULTILINE)
_PROGRAM = re.compile(
    r"```(?:python|py|js|javascript|ts|c|cpp|c\+\+|java|go|rust|lean|sql|bash|sh|ruby|r|matlab|julia)\b"
    r"(?:(?!```)[\s\S]){0,4000}(?:```)?\s*\Z",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^\s*(?:def|return|import|print|exec|eval|while|for|if|let|var|const)\b.*[(:;=]|\breturn\s|print\(|"
    r"exec\(|;\s*$|==|\blambda\b"
)
_IS_THE_ANSWER = re.compile(
    r"(?:(?:so|hence|thus|therefore|finally)\b,?\s*)?(?:we (?:see|find|"
    r"conclude) that\s*)?(.{1,400}) is (?:the|our|my) (?:final |correct )?(?:answer|result|"
    r"solution)\W*",
    re.IGNORECASE | re.DOTALL,
)
UNFINISHED = re.compile(r"(?<=[^\s*_$])\s*(?:[-+/×÷=^(\[{,<>]|(?<!\*)\*)\s*$")
_PLAN = re.compile(
    r"\b(?:let'?s|let us|let me|we (?:need|must|have) to|first(?:ly)?,|step \d+|i will|i'll|we will|"
    r"we'll|consider|suppose|"
    r"given that|recall|note that|next,)\b|^to [a-z]+ ",
    re.IGNORECASE,
)


_REMARK = re.compile(r"\W*(?:note|notice|recall|remember|observe)\b(?: that)?", re.IGNORECASE)
_CALCULATOR = re.compile(r"<<[^<>\n]{1,200}>>")


_DISPLAY = re.compile(
    r"(?:\$\$([^$]{1,2000})\$\$|\\\[((?:(?!\\\[).){1,2000}?)\\\]|(?:^|\n)[*\s]*\$([^$]{1,2000})\$\**|(?:^|"
    r"\n)[*\s]*\\\(((?:(?!\\\().){1,2000}?)\\\)\**"
    r")[\s.]*$",
    re.DOTALL,
)
_UNIT_BEHIND = re.compile(r"(?:\$\$|\\\])\s{0,4}([A-Za-z]{1,14})\.?\s*\Z")
_MATRIX = re.compile(
    r"((?:-?\s?(?:\\[dt]?frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}|\(?-?[0-9]{1,9}(?:/[0-9]{1,9})?\)?)\s?(?:\\cdot|"
    r"\\times|\*)?\s?)?"
    r"\\begin\{(?:[a-z]*matrix|array)\}(?:(?!\\begin).){1,2000}?\\end\{[a-z]+\})[\s.]*$",
    re.DOTALL,
)


def unmarked(text: str) -> Final | Missing:
    # GSM8K's calculator notes, "9*2=$<<9*2=18>>18".
    text = _CALCULATOR.sub("", text).rstrip() if "<<" in text else text.rstrip()
    if "```" in text:
        if _PROGRAM.search(text) is not None:
            return Missing("it ends in code")
        text = FENCE.sub("", text).rstrip()
    if thinking(text):
        return Missing("the thinking does not end")
    if not text.strip():
        return Missing("the response is empty")
    # "So the number is 5!" is no factorial.
    tail = re.sub(r"([A-Za-z] [0-9]{1,20})!+$", r"\1", text[-4000:])
    display = _DISPLAY.search(tail) or (_MATRIX.search(tail) if "\\end{" in tail[-40:] else None)
    if display is None and (unit := _UNIT_BEHIND.search(tail)) is not None and lookup(unit[1]) is not None:
        display = _DISPLAY.search(tail[: unit.start(1)])  # "$$t = 2$$ hours."
    if display is not None:
        return Final(next(g for g in display.groups() if g is not None).strip(), False, marker=False, display=True)
    if (broken := broken_off(tail)) is not None:
        return broken
    if guesses(tail):
        return Missing("it makes several guesses")
    if _GREETING.match(tail) is not None and not any(map(str.isdigit, tail)):
        return Missing("it greets")
    if _REFUSAL.search(tail[-500:]) and (refused := _refused(tail[-500:])):
        return refused
    if (block := _ITEMS.search(tail)) is not None and whole(block.group()):
        return Final(block.group().strip(), False, marker=False)
    lines = tail.rpartition("\n")[2].strip()
    pieces = [piece for piece in _SENTENCES.split(tail) if piece and piece.strip()]
    if len(pieces) > 1 and _REMARK.match(pieces[-1]):
        return Missing("it ends in a remark")
    if (meant := contrasted(lines)) is not None:
        return Final(meant, False, marker=False)
    if (stated := _stated(lines)) is not None:
        return stated
    if (said := _IS_THE_ANSWER.fullmatch(_SENTENCES.split(lines)[-1])) is not None:
        return Final(said[1].strip(), False)
    if len(tail) <= 400 and "\n" not in tail.strip() and whole(tail):
        return Final(tail.strip(), False, marker=False)
    if whole(lines) and not DENIAL.search(lines):
        return Final(lines, False, marker=False)
    sentences = [s.strip() for s in _SENTENCES.split(tail) if s and s.strip()]
    while len(sentences) > 1 and _CLOSER.search(sentences[-1]):
        sentences.pop()
    last = sentences[-1] if sentences else ""
    if last.endswith(("?", "？")):
        return Missing("it ends in a question")
    if _CODE.search(last):
        return Missing("it ends in code")
    if _PLAN.search(last) and not re.match(r"(?:so|therefore|thus|hence)\b", last, re.IGNORECASE) and "=" not in last:
        return Missing("it ends in the middle of the working")
    if UNFINISHED.search(last):
        return Missing("it ends in the middle of a formula")
    return Final(last, False, marker=False)


_ITEMS = re.compile(
    r"(?:\A|(?<=:\n)|(?<=:\n\n))(?:[ \t]{0,4}(?:[-*•]|[0-9]{1,2}[.)])[ \t]+\S[^\n]{0,60}\n){1,40}"
    r"[ \t]{0,4}(?:[-*•]|[0-9]{1,2}[.)])[ \t]+\S[^\n]{0,60}\s*\Z"
)
"""A list with bullets or numbers that is the whole text, or follows a colon."""
_REFUSAL = Caseless(
    r"\bunable to (?:determine|answer|solve|give|find)|\b(?:i|we) (?:must |have to |would rather |shall "
    r")?(?:decline|refuse|abstain)|"
    r"\b(?:can ?not|can't) (?:be (?:determined|answered|solved|given|known|decided)|answer|determine|solve|confirm|"
    r"(?:give|provide|offer|make) (?:you )?(?:an? |any )?(?:\w+ )?(?:answer|diagnosis|advice|opinion))|"
    r"\bno (?:answer can|such answer|answer is possible)|\bthere is no (?:right |correct |single |definite )?answer|"
    r"\b(?:not enough|insufficient) (?:information|data)|\bill[- ]posed|\b(?:i|we) (?:do not|don't) know\b|"
    r"\bi give up\b|"
    r"\bno sé\b|\bje ne sais pas|\bich weiß (?:es )?nicht|\bne peut pas être|\bno se puede|\bkann nicht|lässt "
    r"sich nicht|不知道|无法|無法|わかりません|解けま|풀 수 없|모르",
    frequent=True,
)
_AFTER_ALL = re.compile(
    r"\b(?:but|however|yet|still|nevertheless|after all|though|fortunately|nonetheless|pero|mais|aber|doch|"
    r"jedoch|но|但|可是|しかし|하지만)\b|但|不过",
    re.IGNORECASE,
)


_TRAILING = re.compile(r"[=≈→⇒]\s*(?:\.\.\.|…|\\[lc]?dots)[\s$.]*\Z|(?:[0-9)}\]%]|\b[A-Za-z])\s*[=≈→⇒]\s*\Z")
_BROKEN_OFF = re.compile(
    r"(?<!\bis)(?<!\bthe)(?<!\bword)\s(?:if|because|since|unless|although|though|whereas|provided(?: that)?|assuming|"
    r"supposing|but|and|or|than|only if|except|minus|plus|so|so that|therefore|thus|hence|then|which|whose|of|to|with)"
    r",?\s*\Z",
    re.IGNORECASE,
)
"""A conjunction that a text ends in."""


def broken_off(tail: str) -> Missing | None:
    """Say where a text without a marked answer was cut, if it was."""
    if _TRAILING.search(tail) is not None:
        return Missing("it ends in the middle of the working")
    if _BROKEN_OFF.search(tail[-30:]) is not None and any(map(str.isdigit, tail[-160:])):
        return Missing("it ends in the middle of a sentence")
    return None


def thinking(text: str) -> bool:
    """Say whether a response is cut before its thinking ends."""
    return _OPENED_THINK.search(text) is not None and _CLOSED_THINK.search(text) is None


_GUESS = re.compile(
    r"^\W*(?:guess|attempt|candidate|try|possibility|possible answer|answer|option|alternative)\s*#?\d\s*[:.)]",
    re.IGNORECASE | re.MULTILINE,
)


def guesses(text: str) -> bool:
    """Say whether a response ends in a list of numbered guesses."""
    if _GUESS.match(text.rstrip().rpartition("\n")[2]) is None:
        return False
    return len({match.group().strip().casefold() for match in _GUESS.finditer(text[-4000:])}) > 1


_GREETING = re.compile(
    r"\W*(?:hello|hi|hey|welcome|greetings)\b[!,. ]+(?:there|i'?m|i am|i'd|how|thanks?|nice|let|what|please|today|"
    r"my name)\b",
    re.IGNORECASE,
)


def declined(text: str) -> bool:
    """Say whether a response declines to answer and does not go on with a "but"."""
    return _REFUSAL.search(text[-500:]) is not None and _refused(text[-500:]) is not None


def _refused(tail: str) -> Missing | None:
    """A response that declines to answer and does not go on with a "but"."""
    last = next(iter(deque(_REFUSAL.finditer(tail), maxlen=1)), None)
    if last is None or _AFTER_ALL.search(tail, last.end()):
        return None
    return Missing("it declines to answer")


_STATED = re.compile(
    r"(?:.{0,400}[.!:。]\s)?(?:(?:so|thus|hence|therefore|then|finally|in (?:the end|total|all|conclusion|"
    r"sum)|altogether|"
    r"consequently|überall|also|somit|damit|daher|donc|ainsi|alors|así|entonces|por tanto|luego|logo|portanto|assim|"
    r"quindi|dunque|perciò|итак|значит|dus|zatem|więc|alltså),? ){0,2}"
    r"(?:(?:we|I|you|one) (?:get|obtain|find|arrive at|end up with|are left with|reach|conclude with)|"
    r"(?:this|that|it|which) (?:gives(?: us)?|leaves(?: us)?(?: with)?|yields|makes|comes (?:out )?to|equals|"
    r"amounts to|totals|is)|"
    r"(?:it|that)'s|si ottiene|otteniamo|ottengo|risulta|viene|получаем|получается|получим|получится|"
    r"on (?:trouve|obtient)|nous (?:trouvons|obtenons)|cela (?:donne|fait)|ça (?:donne|fait)|"
    r"(?:es )?ergibt sich|(?:man|wir) erhält|wir erhalten|(?:das|es) (?:macht|sind|ergibt|ist)|"
    r"se obtiene|obtenemos|(?:nos )?queda|resulta|obtém-se|obtemos|(?:we )?krijgen(?: we)?|dat is|otrzymujemy|"
    r"dostáváme|dostaneme|elde ederiz|buluruz) "
    r"(?P<value>\S.{0,200}?)(?P<ours> as (?:our|the|my|a) (?:final |correct )?(?:answer|result|solution))?[\s.!]*",
    re.IGNORECASE | re.DOTALL,
)


def _stated(line: str) -> Final | None:
    """``Thus we get 5 as our final answer.``, ``So it's 5.``: a sentence around a value that is read as a whole."""
    match = _STATED.fullmatch(line) if len(line) <= 700 else None
    if match is None or not whole(match["value"]):
        return None
    value = match["value"].rstrip(".")
    return Final(
        value, match["ours"] is not None, marker=match["ours"] is not None, lead=line[: match.start("value")][-160:]
    )


def contrasted(text: str) -> str | None:
    """Return ``541`` of ``not 540 but 541`` and of ``isn't 540; it is 541``, ``None`` if it says nothing like it."""
    match = _CONTRASTED.fullmatch(text.strip()) if _NEGATIVE.search(text) else None
    meant = None if match is None else match[1] or match[2]
    return meant if meant is not None and whole(meant) else None


_NEGATIVE = re.compile(r"no|n't|nicht|pas\b|não|не\b|nie|inte|ikke|不|并非|なく|아니라", re.IGNORECASE)
_CONTRASTED = re.compile(
    r"[^.;]{0,60}?(?:\b(?:not|\w+n't|nicht|no (?:es|son)|no|n'est pas|pas|non (?:è|sono)|"
    r"não (?:é|são)|não|не|nie|niet|inte|ikke)\b|不是|"
    r"并非)\s?(?:\$[^$]{1,80}\$|[^\s,;，]{1,40})(?:,? but(?: rather)?|[;,] (?:rather|it(?:'s| is)|but it is)|"
    r",? (?:sondern|sino(?: (?:es|son))?|mais|bensì|ma|mas|а|ale|lecz|maar|utan|men)|"
    r"[;,] (?:c'est|ce sont|(?:es|das) (?:ist|sind)|è|sono|é|são|es|son|это|det är)|"
    r"[，,]\s?而?是)\s?(\$[^$]{1,80}\$|[^\s,;]{1,40}?(?:\s[^\W\d_]{2,12})?)[.!。]?|"
    r"[^.;。]{0,40}?[^\s,、]{1,30}(?:ではなく|じゃなくて?|이 아니라|가 아니라)[、,\s]?([^\s,、]{1,30}?)"
    r"(?:です|입니다|だ)?[.!。]?",
    re.IGNORECASE,
)


def whole(text: str) -> bool:
    readings = read(text.strip()[:MAX_LENGTH]) if len(text) <= MAX_LENGTH else ()
    return bool(readings) and not isinstance(readings[0], Text)
