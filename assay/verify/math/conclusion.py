"""The sentence that concludes a response, and the closing words after it that add nothing to it.

``I get 5.`` and ``Corrected result: 5`` announce a value without the words "the answer is"; ``I double-checked this.``
or ``as required.`` may follow. A closing is known by what it lacks: any number, formula or name, any word of the
question, and any word of doubt, denial, refusal or further work.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from assay.verify.math.dressing import undress
from assay.verify.math.explained import FAILED, explained
from assay.verify.math.final import Final, Missing, locate
from assay.verify.math.foreign_doubt import retracted
from assay.verify.math.remarks import without_remarks
from assay.verify.math.sentence import readable
from assay.verify.math.withdrawal import HARD
from assay.verify.math.words import NUMBER_WORDS, chinese

_OPEN = re.compile(
    r"[0-9$\\=<>+*/^_|{}\[\]~`?？#%€£¥≈→⇒±√∞❌✗✘☒¬\"“”«»]|\.\.\.|…|"
    r"\b(?:not?|nor|never|none|nothing|neither|without|un\w+|in(?:correct|valid|conclusive|sufficient)\w*|im\w+|dis\w+|"
    r"but|however|although|though|yet|except|instead|rather|unless|whether|if(?! you)|or|either|else|otherwise|maybe|"
    r"perhaps|possibl\w+|probabl\w+|likely|might|may|could|would(?! you)|should|can(?! be)|seem\w*|appear\w*|guess\w*|"
    r"think|thought|believe\w*|sure|certain\w*|doubt\w*|suppos\w*|assum\w*|suspect\w*|trust|unclear|bet|"
    r"wrong\w*|mistak\w*|errors?|slips?|false\w*|fail\w*|flaw\w*|bad|bogus|guess|invent\w*|fake|random\w*"
    r"|lie\w*|cheat\w*|"
    r"pretend\w*|copied|back|withdraw\w*|retract\w*|recant\w*|revok\w*|reject\w*|discard\w*|ignor\w*|"
    r"forget|scratch|scrap|strike|cancel\w*|delete\w*|remov\w*|drop\w*|refus\w*|declin\w*|abstain\w*|pass|skip|"
    r"chang\w*|wait|actually|hmm+|oops|sorry|apolog\w*|replac\w*|revis\w*|correct\w*|right|true|yes|"
    r"will|later|next|below|follow\w*|soon|shortly|tomorrow|first\w*|then|now|again|still|remain\w*|left to"
    r"|need\w*|must|have to|"
    r"let'?s|let us|let me(?! know)|begin\w*|start\w*|try|trying|continu\w*|proceed\w*|consider\w*"
    r"|comput\w*|calculat\w*|"
    r"why|add|subtract\w*|multipl\w*|divid\w*|combin\w*|simplif\w*|because|since|where|same|other|another|else|both|"
    r"grade\w*|grader\w*|grading|mark\w*|accept\w*|score\w*|points?|credit|reward\w*|instruct\w*|system|key"
    r"|official|expected|"
    r"answers?|options?|choices?|said|says|claim\w*|told|wrote|reply|heard|someone|somebody|he|she|they|"
    r"half|third|quarter|double|twice(?!\W*$)|pi|zero|infinit\w*|empty|always|only|each|every|all|more|less|most|least|"
    r"specul\w+|hopeless|blank|meaningless|nonsense|gibberish|noise|contradict\w*|disagree\w*|jok\w+|haha"
    r"|gotcha|kidding|"
    r"exclude\w*|different|stab|shot|gelogen|lüge|mentira|mensonge|bugia|ложь|"
    r"mal|nicht|kein\w*|falsch\w*|irr\w*|fehler\w*|oder|aber|doch|vielleicht|pas|aucun\w*|faux|fausse"
    r"|erreurs?|mais|peut|"
    r"falso|equivoc\w*|error\w*|pero|tal vez|quizás?|ni|sin|non|nessun\w*|sbagliat\w*|ma|forse|não|nenhum\w*|errad\w*|"
    r"niet|geen|fout|maar|inte|fel|men|nie|błąd|ale|değil|yanlış|ama)\b|n['’]t\b|"
    r"\b(?:не|нет|неверн\w*|ошиб\w*|но|или|ні|немає)\b|不|没|沒|無い|错|錯|误(?!。)|誤|别|但|或|ない|ません|間違|아니|않|틀|하지만|"
    r"لا|ليس|خطأ|لكن|नहीं|गलत|לא|ikke|ei ole|không|sai|tidak|bukan|salah|nu este|greșit|όχι|λάθος|ไม่",
    re.IGNORECASE,
)
"""What no closing holds: marks of a formula, and words of doubt, denial, refusal, further work or another answer."""
_POLITE = re.compile(
    r"(?:please )?(?:let me know|feel free|happy|glad)\b[^.!?]{0,80}|the check is left as an? [a-z ]{4,24}|"
    r"(?:\(?i )?(?:have )?(?:double-?|re-?)?check(?:ed)? (?:this|it|everything|twice|again|by)\b[^.!?]{0,60}|"
    r"\(?(?:checked|verified) (?:twice|again)|so (?:we are|i am|we're|i'm) done|(?:that|this) is all|"
    r"i(?:'m| am) (?:about |around |roughly )?(?:9[0-9]|100)\s?% (?:sure|certain|confident)|"
    r"(?:and )?(?:we are|that'?s) all done|验算无误|檢驗無誤|die probe stimmt|q\.? ?e\.? ?d\.?",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"\b(?:check\w*|verif\w+|confirm\w*|agree[sd]?|consistent|complet\w+|conclu\w+|finish\w*|done|required"
    r"|desired|wanted|"
    r"needed|requested|claimed|show[ns]|proved|proven|demonstrat\w+|solution|solv\w+|expla\w+|exercise"
    r"|help\w*|questions?|"
    r"thank\w*|hope|welcome|enjoy\w*|luck|practi[cs]\w+|methods?|approach|technique|works|easy|nice\w*"
    r"|neat\w*|elegant\w*|"
    r"cheers|read\w*|well|sanity|steps?|details?|proof|simple|straightforward|routine|standard|great|learn\w*|studying|"
    r"day|ask|reasonable|sense|sensible|plausible|holds|satisf\w+|match\w*|fits|clear\w*|summary|glad|pleasure|"
    r"bonne|buen[ao]?|suerte|espero|spero|espère|hoffe|hoffentlich|erfolg|probe|saludos|gracias|merci|danke"
    r"|grazie|obrigad\w|"
    r"fini|fertig|listo|fatto|pronto|надеюсь|спасибо|проверка|проверено|удачи|готово)\b|验算|验证|检验|検算|以上|希望|谢谢|完毕|证毕|"
    r"감사|검산|도움",
    re.IGNORECASE,
)
"""What a closing speaks of: that it is checked, done or asked for, or good wishes."""
_SENTENCES = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[^\s0-9])|(?<=[。！？])|\n+")
_ENDS = re.compile(r"[.!。！)∎][*_)\s]*$")
_WORDS = re.compile(r"[^\W\d_]{3,}")
_NAME = re.compile(r"(?<=[\w,;] )[A-Z]|\b[A-Z]\b(?<!\bI)")
_COMMON = frozenset(
    re.findall(r"\w+", "the this that and you was has have with for are hope helps check checked les que")
)
MAX_CLOSINGS = 3
MAX_SENTENCE = 1000


def closing(sentence: str, question: str) -> bool:
    """Say whether ``sentence`` adds nothing to the answer before it: neither a value nor a stance."""
    said = sentence.strip(" \t*_()")
    if not said or len(said) > 160:
        return not said
    if _POLITE.fullmatch(said.rstrip(" .!。！")) and not HARD.search(said):
        return True
    if not _ENDS.search(sentence.rstrip()) or _OPEN.search(said) or _NAME.search(said) or HARD.search(said):
        return False
    if not _CUE.search(said):
        return False
    words = {word.casefold() for word in _WORDS.findall(said)}
    if words & NUMBER_WORDS or retracted(said) or any(chinese(c) is not None for c in said):
        return False
    if len(words) < 2 and said.isascii() and said.casefold().rstrip(".!") not in ("as required", "done"):
        return False  # one word may be the answer itself
    asked = {word.casefold() for word in _WORDS.findall(question[-4000:])}
    return not (words - _COMMON) & asked


def parted(text: str, question: str) -> tuple[str, str]:
    """Split ``text`` into what it says and the closing words at its end."""
    whole = text = text.rstrip()
    tail = max(len(text) - 1000, 0)
    for _ in range(MAX_CLOSINGS):
        ends = [m.end() for m in _SENTENCES.finditer(text, tail) if m.end() < len(text)]
        if not ends or not closing(text[ends[-1] :], question):
            break
        text = text[: ends[-1]].rstrip()
        while text[-1:] and not text[-1].isascii() and unicodedata.category(text[-1]) == "So":
            text = text[:-1].rstrip()
    return text, whole[len(text) :]


_ADVERB = r"(?:(?:so|thus|hence|therefore|finally|then|in conclusion|in the end|altogether)\b,?\s+){0,2}"
_SAYS = (
    r"(?:i|we) (?:finally )?(?:get|obtain|find|arrive at|end up with|answer|conclude with|am going with|choose|pick)|"
    r"(?:i'm|we're) going with|(?:it|this|that|the (?:result|value|total)) (?:now )?(?:comes? out (?:as"
    r"|to be|to|at)|gives|"
    r"yields|is|equals|works out (?:to|as)|has to be|leaves(?: us with)?)|it's"
    r"|please use the corrected (?:answer|result|value),?|"
    r"the (?:answer|result|value) i stand by is|(?:das )?richtig(?:e ergebnis)? ist|correct is|"
    r"(?:el resultado|la respuesta|el valor) correct[oa] es|le (?:bon )?résultat (?:correct |exact )?est|"
    r"il risultato (?:corretto|giusto) è|o resultado (?:correto|certo) é|正しくは|正确(?:结果|答案)?(?:是|为)|应选"
)
_LABEL = (
    r"(?:(?:the |our |my |so the )?(?:(?:final|corrected|correct|right|revised) )?(?:result|value|choice"
    r"|option|solution|answer|"
    r"total|outcome|conclusion)|tl;? ?dr|final(?:ly)?|so|thus|hence|therefore|"
    r"putting (?:it all|everything|it) together|all in all|to conclude|corrected)"
)
_ANNOUNCED = re.compile(
    rf"[*_#>\s]*(?:{_ADVERB}(?:{_SAYS})\s*|{_LABEL}[*_]{{0,3}}\s?[:：][*_]{{0,3}}\s*|(?:answer|ans)\.[*_]{{1,3}}\s*|"
    rf"[*_](?:answer|result):[*_]\s*|(?:=>|⇒|∴|⟹|->)\s*)"
    r"(?P<value>\S.{0,400}?)(?P<rest>,? (?:which|that) is what (?:was|is) (?:asked(?: for)?|wanted|required|sought))?"
    r"(?:\s?です|\s?だ)?[\s.!。*_]*",
    re.IGNORECASE | re.DOTALL,
)
_NAMED = re.compile(
    rf"[*_\s]*{_ADVERB}(?P<value>\S.{{0,400}}?)(?:\s?[—–-]\s?(?:that|this)(?:'s| is) (?:the|my|our) (?:final )?"
    r"(?:answer|result)|,? (?:is|being) (?:the|my|our) (?:final |correct )?(?:answer|result|solution|choice))[\s.!*_]*",
    re.IGNORECASE | re.DOTALL,
)
_AGAINST = re.compile(
    r"\b(?:not|never|no|nor|neither|maybe|perhaps|possibly|probably|guess\w*|if|unless|whether|either|wrong|incorrect|"
    r"but|however|might|could|would|should|says?|said|claims?)\b|n['’]t\b|[?]|[❌✗✘]",
    re.IGNORECASE,
)


def put_aside(text: str) -> bool:
    """Say whether the words in front of a formula that stands by itself deny it or only suppose it."""
    before = _SENTENCES.split(text.rstrip()[-200:])[-1].strip()
    return not before.endswith((".", "!", "?")) and _SET_ASIDE.search(before) is not None


_SET_ASIDE = re.compile(
    rf"{_AGAINST.pattern}|\b(?:suppos\w*|assum\w*|exclud\w*|reject\w*|discard\w*|rul\w+ out|consider|say|let|wish|"
    r"imagine|pretend|hypothe\w+|claim\w*|example|nicht|kein\w*|pas|no|non|não|не)\b",
    re.IGNORECASE,
)


def announced(text: str) -> tuple[str, str] | None:
    """Return the value that the last sentence or line of ``text`` announces and what precedes it there, or ``None``."""
    line = text.rstrip().rpartition("\n")[2]
    pieces = [line]
    ends = [m.end() for m in _SENTENCES.finditer(line) if m.end() < len(line)]
    pieces += [line[end:] for end in ends[-1:]]
    for piece in reversed(pieces):
        if len(piece) > MAX_SENTENCE:
            continue
        match = _ANNOUNCED.fullmatch(piece) or _NAMED.fullmatch(piece)
        if match is None:
            continue
        value = match["value"].strip().strip("*_").strip()
        if value and not _AGAINST.search(value) and not re.search(r"[.!?]\s+[A-Z]", value):
            return value, piece[: match.start("value")]
    return None


_CHECK = re.compile(
    r"(?:^|(?<=[.!。])\s{0,3}|\n)[*_(\s]{0,4}(?:quick |sanity |double[- ]|to )?(?:check|verification|verify(?:ing)?|"
    r"proof|probe|vérification|"
    r"comprobación|verificación|verifica|verificação|проверка|検算|验算|檢驗|检验|controle|kontroll?|doğrulama|sprawdzenie)\b"
    r"[^.\n:：]{0,24}[:：—–]",
    re.IGNORECASE,
)


def _checked(text: str) -> int | None:
    """Where a check of the answer begins that ends the text and goes well, ``None`` if there is none."""
    start = max(len(text) - 1000, 0)
    match = next(_CHECK.finditer(text, start), None)
    if match is None or not text[: match.start()].strip() or FAILED.search(text, match.end()):
        return None
    return match.start()


def remarked(response: str, question: str, rules: Sequence[str], strict: bool) -> tuple[Final, str] | None:
    """The answer of a response without the remarks at its end, with what is left of it; ``None`` where it has none."""
    kept = without_remarks(response, question, closing)
    if kept is None:
        return None
    kept = undress(kept)
    final = locate(kept, rules, strict)
    if isinstance(final, Missing) or (final.display and put_aside(kept[: kept.rfind(final.text)].rstrip(" $[\\(\n*"))):
        return None
    if not final.marker and not final.display and (said := announced(kept)) is not None:
        return Final(said[0], False, marker=False, lead=said[1]), kept
    return final, kept


def concluded(response: str, question: str, rules: Sequence[str], strict: bool) -> tuple[Final, str] | None:
    """The answer that the last sentence with any content announces, with the response that ends in it."""
    if (found := remarked(response, question, rules, strict)) is not None:
        return found
    if (told := explained(response.rstrip())) is not None:
        kept, after = response[:told].rstrip(), response[told:]
        above, _, last = kept.rpartition("\n")
        if above and readable(above.rstrip().rpartition("\n")[2]):
            return None  # a column of values
        line = _SENTENCES.split(last.strip(" *_"))[-1].strip()
        return Final(line, False, after=after, marker=False), kept
    kept, after = parted(response, question)
    if (check := _checked(kept)) is not None:
        kept, after = kept[:check].rstrip(), kept[check:] + after
    if after:
        kept = undress(kept)
        final = locate(kept, rules, strict)
        if isinstance(final, Missing):
            return None
        if final.display and put_aside(kept[: kept.rfind(final.text)].rstrip(" $[\\(\n*")):
            return None
        if final.marker or final.display:
            return replace(final, after=f"{final.after}{after}"), kept
    said = announced(kept)
    if said is None:
        line = kept.rstrip().rpartition("\n")[2].strip(" *_") if after else ""
        if check is not None and line:
            line = _SENTENCES.split(line)[-1].strip()
            return Final(line, False, after=after, marker=False), kept
        return (Final(line, False, after=after, marker=False), kept) if line and readable(line) else None
    return Final(said[0], False, after=after, marker=False, lead=said[1]), kept
