r"""Words that speak against an answer: before it in its sentence, directly after it, and further on.

What stands directly after an answer is about it, so that a wide list of words counts there; further on, only what names
the answer. Nothing counts that is about another value, about other people's mistakes, or itself denied.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.foreign_doubt import foreign

_FIRST = r"(?:that|if|whether|to (?:say|think|claim|believe|assume|answer|conclude)(?: that)?)"
_TOWARDS = r"[\s\"'“:]*(?:\b(?:the|my|our|its|this|an?)\b)?\s*(?:(?:final|right|correct|actual)\b)?[\s\"'“$*]*$"
LEAD = Caseless(
    rf"\b(?:not (?:quite |at all )?(?:true|right|correct|the case|possible|clear|known|certain|sure|so|proven|said|"
    rf"settled)|untrue|false|wrong|mistaken|incorrect|an? (?:mistake|error|lie|myth|trap|fallacy)|absurd|tempt\w*|"
    rf"rumou?red|alleged|claimed|believed|thought|said|reported|guess(?:ed)?|bet|den(?:y|ies|ied)|(?<!no "
    rf")doubt\w*|refus\w+|"
    rf"pretend\w*|imagine|suppos\w+|assum\w+|hop(?:e|ed|ing)|wish|fear|wonder\w*|tells? (?:you|me|us)|says?|swears?|"
    rf"tempting|exclud\w+|rul\w+ out|refuted?|nobody (?:could|can|would) \w+|no one (?:could|can|would) \w+|"
    rf"what if|if only)(?: (?:me|us|you|here|first|now))?[,:]?(?: {_FIRST})?{_TOWARDS}|"
    r"\b(?:allegedly|supposedly|purportedly|reportedly|ostensibly|seemingly|apparently|presumably|hypothetically|"
    r"even if|"
    r"according to (?:my|a|an|some|him|her|them|one|another|wikipedia|google|chatgpt|legend|rumou?rs?|"
    r"the (?:student|teacher|friend|other|forum|internet|web|neighbou?r|blog|book's? back|wrong|faulty|broken|"
    r"first|old|"
    r"naive)"
    rf")\b[^,.]{{0,40}},?){_TOWARDS}"
)
"""What denies, doubts, supposes or ascribes to others what the answer is, at the end of what stands before it."""
_KIND = Caseless(
    r"\b(?:na[iï]ve|obvious|official|reference|wrong|incorrect|false|tempting|typical|popular|rejected|"
    r"mistaken|erroneous|bad|intuitive|"
    r"careless|hasty|apparent|invalid|impossible|fake|bogus|misleading|other|usual|frequent|falsch\w*|mauvaise|"
    r"incorrecta|equivocada|sbagliata|errada|неправильный|неверный)\s*$",
)


INSIDE = Caseless(
    r"\b(?:i now (?:believe|think)|what i (?:thought|believed)|"
    r"apart from|aside from|vicinity|unverified|unchecked|ballpark|placeholder|(?:is|are|seems?) (?:also "
    r")?possible|[0-9]+ ?% (?:sure|"
    r"confiden\w+|certain\w*|likely)|mark \S+ as|the key|save for|besides|slightly|somewhat|nearly|almost|not "
    r"quite|fails? to|has "
    r"nothing to do|no circumstances|"
    r"by no means|in no way|in no case|(?:just|a bit|a little|well|far|barely|shortly) (?:over|under|below|"
    r"above|less|more|short|shy|off|from)|short of|"
    r"shy of|close to|a trap|to be rejected|(?:is|are|was|would be|must be|seems) (?:an? |the |actually |"
    r"clearly |obviously )?"
    r"(?:false|untrue|wrong|incorrect|mistaken|mistake|error|invalid|absurd|nonsense|rejected|excluded|"
    r"refuted|impossible|void)|"
    r"take your pick|pick (?:one|any|whichever)|whichever|(?:on|in|under|with|for) (?:the )?(?:one|first|"
    r"other|second|another|"
    r"alternative) (?:reading|interpretation|case|assumption|view|version|variant)|"
    r"leave (?:it|that|this) open|alternatively|may well be|could well be|might well be|(?:one|two|ten|three) "
    r"(?:more|less) than|"
    r"same as the (?:key|reference|ground)|answer key|e\.g\.|for example|for instance|such as|if the (?:key|"
    r"reference|grader)|"
    r"something|or so|unless|opposite|exclude|no wait|make that|scratch that|or rather|corrected|fixed|"
    r"expected|in geen geval|geenszins|(?:auf|in) keine[nm] fall|keineswegs|en ning[uú]n caso|de ning(?:ún modo|"
    r"una manera)|"
    r"em nenhum caso|de (?:jeito nenhum|modo algum|forma alguma)|en aucun cas|aucunement|in nessun caso|nessun modo|"
    r"ни в коем случае|ни в каком случае|в жодному разі|w żadnym (?:razie|wypadku)|v žádném případě|i intet tilfælde|"
    r"under inga omständigheter|på intet sätt|ikke under noen|semmi esetre|în niciun caz|hiçbir şekilde|asla)\b|"
    r"[\"”’»“]\s*[,;—–-]?\s*(?:\w+\s){0,3}?(?:said|says|wrote|writes|"
    r"claim(?:s|ed)|shout(?:s|ed)|answer(?:s|ed)|repl(?:ies|ied)|told|heard|reads?)\b|±\s?(?:something|some|a|"
    r"\?)|[❌✗✘🚫⛔👎❎☒¬]|->",
    frequent=True,
)
"""What speaks against an answer, or puts it beside another, in the very sentence that states it."""


def led_against(lead: str) -> bool:
    """Say whether what stands before an answer in its sentence denies it or is no claim of the writer's."""
    return bool(lead) and (LEAD.search(lead) is not None or _KIND.search(lead) is not None)


# --- after the answer -------------------------------------------------------------------------------------------------

_IT = (
    r"(?:this|that|it|(?:the|this|that|my) (?:(?:boxed|final|above|previous|last|given) )?(?:answer|result|value|box|"
    r"solution|number|line|claim|statement|figure)(?: above| in the box)?|the above|"
    r"(?:the|my|this|that) (?:(?:previous|preceding|last|first|above|foregoing) )?(?:sentence|statement|line|"
    r"paragraph|remark|"
    r"equation)(?: above)?)"
)
_ITSELF = _IT.replace("this|that|it|", "", 1)
_BAD = (
    r"(?:wrong|incorrect|false|untrue|invalid|absurd|nonsens\w+|impossible|mistaken|erroneous|flawed|bogus|void|"
    r"meaningless|unverified|unproven|unfounded|unjustified|unchecked|doubtful|dubious|questionable|suspicious|"
    r"unlikely|inconsistent|contradictory|contradict\w+|fails?|failed|"
    r"mistakes?|errors?|slip|typo|blunder|guess\w*|invented|made up|fabricated|random|arbitrary|retracted|withdrawn|"
    r"struck|ignored|disregard\w*|discard\w*|reject\w*|remov\w+|delet\w+|kidding|joking|joke|lie|lying|bluff\w*|"
    r"trust|no clue|no idea|no longer|nowhere|ill-posed|placeholder|dummy)"
)
_DENIED_GOOD = (
    r"(?:(?:do|does|did|is|was|has|have|can|could|would|should|will)(?:n't| not|not)|cannot|never|not)(?: \w+){0,3}? "
    r"(?:trust\w*|believ\w+|right|correct\w*|true|valid|so|it|hold|holds|work|works|work out|match|agree|fit|"
    r"fulfil|satisf\w+|"
    r"follow|count|used?|graded?|accept\w*|verif\w+|check\w*|proved?|proven|redone|comput\w+|calculat\w+|"
    r"derived?|worked out|solved?|sure|certain|convinced|come out|"
    r"add up|the (?:answer|solution|value|result|case|end|one)|an answer|what (?:is|was|the)|this one|"
    r"possible|make sense|final)"
)
_DIRECT = Caseless(
    rf"\b(?:{_BAD}|{_DENIED_GOOD}|(?:has|have|had|needs?|ought) to (?:go|be (?:changed|replaced|fixed|redone))|must go|"
    rf"made (?:that|this|it|one|the|up)[\w ]{{0,20}} up|to put something|(?:for|to|of) (?:another|a different) "
    rf"(?:question|problem|task)|ran out of|strike|scratch|scrap|undo|take back|or so (?:it|one)|"
    rf"broken|cheat\w*|hack\w*|copied)\b"
)
"""What speaks against an answer in the sentence after it."""
_NAMED = Caseless(
    rf"\b{_ITSELF}(?: \w+){{0,3}}? (?:{_BAD}|{_DENIED_GOOD}|(?:has|have) to go|must go|"
    rf"(?:came|comes|stems|results) from an? (?:\w+ )?(?:error|slip|mistake|guess))\b|"
    rf"\b(?:ignore|disregard|discard|strike|delete|remove|cross out|(?:don't|do not|not|never) (?:\w+ "
    rf")?(?:count|trust|grade|use)) "
    rf"(?:\w+ ){{0,2}}?{_IT}\b",
)
"""What speaks against an answer further on."""
_HARMLESS = re.compile(
    r"\b(?:(?:no|not|n't|without|never|nothing|zero|any|avoid\w*|find(?:ing)? no|rule[sd]? out|free of|"
    r"hardly)\b(?! longer| clue| idea)"
    r"(?: (?!trust|so\b|it\b)\w+){0,3}? (?:wrong|mistakes?|errors?|slips?|typos?|contradict\w+|guess\w*|"
    r"incorrect|false|absurd|fails?|invalid|"
    r"uncertain|unclear|arbitrary|doubtful|random|impossible)|"
    r"(?:common|typical|usual|frequent|popular|classic|rounding|careless|"
    r"(?:earlier|previous|initial|first|old) (?:version|attempt|try|guess|answer|draft)|many|often|students?|"
    r"people|beginners|would (?:be|have been|give|lead|result)|could have|if (?:one|you|we)|forgetting|"
    r"careful|"
    r"in case|wondering|beware|tempting|margin of|standard|percent(?:age)?|other (?:options?|values?|answers?|choices?|"
    r"candidates?|cases?)|options? [A-J]|at random|randomly|random\w* (?:chosen|select\w+|variable|draw\w*)|"
    r"instead of|not only|one (?:error|mistake))\b)",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?;。！？])\s+|\n+|(?<=[。！？])|\s[–—]\s")
VALUE = re.compile(r"\$([^$\n]{1,200})\$|\\\(([^\n]{1,200}?)\\\)|(?<![\w.,/^])(-?[0-9](?:[0-9.,/]*[0-9])?)(?![\w^])")
_CROSS = re.compile(r"^[\s$*)\]}.|,:-]{0,6}(?:[❌✗✘🚫⛔👎✖❎☒]|\[x\](?! ?\w))")
"""A cross behind an answer."""
_ABOUT_ANOTHER = re.compile(
    r"^\W{0,6}(?:\$[^$\n]{1,200}\$|\\\([^\n]{1,200}?\\\)|-?[0-9][0-9.,/]*|(?:[B-HJ]|\([A-J]\))\b)\W{0,4}"
    r"(?:is|are|was|were|would|could|can|does|do|did|fails?|comes?|came|has|gives?)\b",
    re.IGNORECASE,
)
"""A sentence whose subject is a value."""
_ON_PURPOSE = Caseless(
    r"\b(?:deliberate(?:ly)?|intentional(?:ly)?|purposely|purposefully|knowingly|consciously) (?:an? |the )?(?:\w+ )?"
    r"(?:wrong|incorrect|false|mistaken|erroneous|faulty|misleading|error|mistake)\b|\b(?:wrong|incorrect|"
    r"false) (?:\w+ )?"
    r"(?:on purpose|by design|by intention)\b"
)
"""What no right answer is, whomever it is said to."""
_TO_BE_NAMED = re.compile(
    r"^[\s$)*\]}.\\,;:!]*(?:text\{\s*)?(?:is|was) (?:exactly |just )?"
    r"(?:what|the (?:one|thing|value|number|answer|result)(?: that)?|which) (?:\w+ ){1,4}?(?:not|never|\w+n't|"
    r"cannot)\b|"
    r"^[\s.$)*!]*\(?(?-i:NOT)\b[\s.!)]*(?:$|\n)",
    re.IGNORECASE,
)
"""``... is what you must not write``, ``Yes. NOT.``"""
MAX_SENTENCES = 12


def beside(said: str, reference: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether the sentence that states an answer denies it, weakens it or puts another beside it."""
    found = list(INSIDE.finditer(said))
    if not found or not any(c.isdigit() or c == "\\" for c in reference):
        return False
    values = [(value, agrees(_text(value))) for value in VALUE.finditer(said)]
    first = next((value.start() for value, right in values if right), None)
    for match in found:
        if match.group().casefold() in reference.casefold():
            continue
        about_another = first is not None and any(
            not right and value.start() < match.start() < first for value, right in values
        )
        if not about_another:
            return True
    return False


def crossed(after: str) -> bool:
    """Say whether a cross follows an answer."""
    return _CROSS.match(after) is not None


def spoken_against(after: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether the sentences after an answer speak against it."""
    if not any(map(str.isalpha, after)):
        return False
    if _ON_PURPOSE.search(after) or _TO_BE_NAMED.match(after):
        return True
    sentences = [s for s in _SENTENCES.split(after) if any(map(str.isalpha, s))]
    for place, sentence in enumerate(sentences[:MAX_SENTENCES]):
        pattern = _DIRECT if place == 0 else _NAMED
        if (found := pattern.search(sentence)) is None or sentence.endswith("?") or _HARMLESS.search(sentence):
            continue
        if (subject := _ABOUT_ANOTHER.match(sentence)) is not None:
            value = VALUE.search(subject.group())
            if value is None or not agrees(_text(value)):
                continue
        if any(not agrees(_text(value)) for value in VALUE.finditer(sentence)) and not re.search(
            _IT, sentence[: found.end()], re.IGNORECASE
        ):
            continue  # about another value
        return True
    return False


# --- another value in its place ---------------------------------------------------------------------------------------

_REPLACED = Caseless(
    r"(?:\b(?:make (?:that|it)|no,? wait|wait,|or rather|i mean|i meant|erratum|errata|corrigendum|corrected|"
    r"correction|"
    r"edit(?:ed)?|updated?|amended|revised|revision|fixed|fix|changed? to|"
    r"(?:correct|change|revise|amend|adjust|update)\w* (?:the|my|this|that|it)(?: \w+)? to|"
    r"should (?:be|read|have been)|read|"
    r"replace\w*(?: it| that| this)? (?:by|with)|"
    r"(?:it|that|this)(?:'s| is)(?: actually| really| rather| in fact)?|(?:it )?comes? (?:out )?to|(?:value|"
    r"answer|result) is|"
    r"is really|is actually|is in fact|really|better|now|instead|sorry|oops|apologies|no)\b|->|→|⟶|"
    r"⇒)[^.!?\n$0-9]{0,60}?[\s:*(]*$"
)
_CORRECTS = Caseless(
    r"\b(?:make (?:that|it)|no,? wait|or rather|i mean|i meant|erratum|errata|corrigendum|correct(?:ed|ion)|"
    r"correct (?:the|my|this|that|it)|"
    r"edit(?:ed)?|updated?|amended|revised|revision|"
    r"fix(?:ed)?|should (?:be|read|have been)|mixed|slip|mistake|error|wrong|typo|oops|sorry|apolog\w+|"
    r"actually|really|instead|wait|"
    r"in fact|on second|second look|review|recount\w*|recheck\w*|double[- ]check\w*|let me check|redo(?:ne|"
    r"ing)?|miscalculated|misread|"
    r"pointed out|no)\b|->|⟶",
)
_ENDS = re.compile(
    r"^[\s$*)\].!,;]*(?:(?:instead|really|actually|now|then|rather|after all|I think|of "
    r"course)\b[\s.!]*)?(?:$|[.!;\n])",
    re.IGNORECASE,
)


def replaced(after: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether another value is put in the place of an answer by what follows: ``Make that 6.``"""
    window = after[:600]
    if not _CORRECTS.search(window):
        return False
    last: bool | None = None
    for value in VALUE.finditer(window):
        start = max(window.rfind("\n\n", 0, value.start()), value.start() - 160, 0)
        before = window[start : value.start()]
        if not _REPLACED.search(before) or not _ENDS.match(window[value.end() :]):
            continue
        if not _CORRECTS.search(window[max(value.start() - 200, 0) : value.end() + 24]):
            continue
        if _HARMLESS.search(before.rpartition(".")[2]):
            continue
        last = agrees(_text(value))
    return last is False


def goes_on(after: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a foreign sentence soon after an answer ends in another value: ``richtig ist 6``."""
    near = _PICTURE.sub("", after[:600]).lstrip(" .$)*")
    for sentence in _SENTENCES.split(near)[:5]:
        values = list(VALUE.finditer(sentence))
        if not values or "=" in sentence or not foreign(sentence):
            continue
        last = values[-1]
        before, behind = sentence[: last.start()], sentence[last.end() :]
        if _SAID.search(before) and len(re.findall(r"\w", behind)) <= 5 and not agrees(_text(last)):
            return True
    return False


_PICTURE = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
_SAID = re.compile(r"[^\W\d_]{2}[^\W\d_]*\W{0,3}$|[^\W\d_A-Za-z]\W{0,3}$")


def _text(value: re.Match[str]) -> str:
    return next(group for group in value.groups() if group is not None)
