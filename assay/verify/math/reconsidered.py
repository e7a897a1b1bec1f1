"""Whether the sentences after an answer go on thinking about it, in English and some fifteen other languages.

After an answer may stand why it is so, how it was checked, what is wrong with the alternatives, or good wishes. A
sentence goes on thinking where it corrects the answer ("Wait, no, Thursday."), takes it back ("I lied."), puts another
beside it ("Or Thursday."), returns to work ("Let me start over.") or breaks off ("So the final answer is"). What the
answer is does not matter: the rules look at how such sentences begin, at what they say of the answer, and at how the
text ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assay.verify.caseless import Caseless
from assay.verify.math.foreign_doubt import foreign, retracted
from assay.verify.math.withdrawal import HARD

MAX_LENGTH = 4000
_SENTENCES = re.compile(r"(?<=[.!?;…])[\"'”’)\]*_}]*\s+|\n+|(?<=[。！？।؟])|\s[–—]\s")
_MARKUP = re.compile(r"\\(?:text|mathrm|textbf|mathbf|boxed|fbox|emph)\s?\{|</?\w+>|[*_`{}$\\\[\]]")
_EDGE = " \t\n.,;:!?()\"'“”‘’«»–—-→…。，、！？；：।؟"

# --- how a sentence begins that thinks again -------------------------------------------------------------------------

_LINK = r"(?:(?:and|but|so|oh|ah|well|okay|ok|then|yet|though|although|however|still|hence|therefore|thus)\b\W*){0,3}"
_STOPS = r"(?=\W*$|\s*[,.:;!?…–—-])"
_OPENS = Caseless(
    rf"^\W*{_LINK}(?:"
    r"(?:no |oh )?wait\b|h+m+\b|hold on\b|hang on\b|one (?:moment|second|sec)\b|(?:uh|um+|er|erm|ugh|argh|eh|mmm+)\b|"
    r"w?oops\b|sorry\b|apolog\w+|my (?:bad|mistake|apologies)\b|pardon\b|or rather\b|rather\b(?! than)|"
    r"(?:or|and) (?:maybe|perhaps|possibly|else|not)\b|maybe\b|perhaps\b(?! (?:surpris|unexpect|counter|it "
    r"helps))|possibly\b|"
    r"alternatively\b|if not\W*[,;:]|failing that\b|then again\b|on (?:the (?:other hand|contrary)\W*$|second "
    r"thoughts?|reflection"
    r"|(?:further|closer|careful|another) (?:thought|inspection|reflection|look|examination|review|analysis|"
    r"consideration))|"
    r"upon (?:\w+ )?(?:thought|inspection|reflection|look|examination|review|analysis|consideration)|come to "
    r"think of|"
    r"(?:after|with) (?:re-?\w+|(?:more|further|some) \w+|a second look|second thoughts?|another look|double[- "
    r"]?check\w*|"
    r"verif\w+|review\w*)\W+(?:it|i|the|no|yes|:)\b|a (?:second|closer|further|fresh) (?:look|check|count)\b|"
    r"(?:correct(?:ion|ed)|errat(?:um|a)|corrigend(?:um|a)|typo|edit(?:ed)?|update[d]?|revis(?:ion|ed)|"
    r"amend(?:ed|ment))\b"
    r"\W*(?=[:.,!–—-]|$|to\b|it\b|the\b|i\b)|(?:i )?recount\w*\b|recalculat\w+\b|"
    r"(?:correct|change|amend|fix) (?:that|this|it)\b|make (?:that|it)\b|i mean(?:t)?\b|not (?:quite|really|so "
    r"fast|sure|certain|exactly|true|right|correct|that|yet|any ?more)\b|"
    rf"(?:no|nope|nah|not|yes and no|wrong|incorrect|false|psych|sike|gotcha|lol|haha\w*|jk|kidding|just "
    rf"kidding){_STOPS}|"
    r"never ?mind\b|(?:scratch|strike|scrap|forget|ignore|disregard|cancel|erase|delete|undo)(?:led|ed)?\b(?= "
    r"(?:that|this|it|the"
    r" above|what|my|all|everything)\b|\W*$)|(?:retracted|withdrawn|cancell?ed|revoked|void|rejected|discarded|"
    r"deleted|"
    r"superseded|obsolete|outdated|deprecated|redacted|disputed|debunked|denied|overruled|refuted)\W*$|"
    r"(?:please )?(?:use|read|take|write|put|prefer|choose|pick|replace|change)\b(?=.{0,60}(?:\binstead\b|\bby\b|"
    r"\bfor\b|\bwith\b|"
    r"\bto\b)|(?: \w+)?\W*$)|better(?: answer)?\s?:|who knows\b|god knows\b|you wish\b|as if\b|yeah,? right\b|"
    r"(?:i )?(?:had|got) you\b|fooled you\b|april fools?\b|/s\b|i had (?:you|my doubts)\b)"
)
_SHORTLY = Caseless(
    rf"^\W*{_LINK}(?:actually|in (?:fact|truth|reality|actuality)|really|to be (?:honest|precise|exact)|"
    r"(?:more|most) (?:accurately|precisely|exactly|correctly|likely|probably)|or|nor|else|otherwise|unless|"
    r"probably|likely)\b"
    r"\W*(?P<rest>.*)"
)
"""Openings after which only a whole statement explains anything: ``Actually, no.``, ``Or Thursday.``"""
_WORTH = re.compile(
    r"^\W*(?:equivalently|in other words|as an?|written|in|simply|about|approximately|more|put|to put|that "
    r"is)\b",
    re.I,
)
_STATES = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|would|can|could|gives?|makes?|means?|holds?|leaves?|follows?|"
    r"shows?|"
    r"divides?|equals?|needs?|must|will|fails?|contains?|comes?|go(?:es)?|works?)\b|n['’]t\b|[=<>≤≥]",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"^\W*(?:(?:the (?:\w+ )?(?:answer|result|choice|option)|i|let|no|yes)(?:['’]\w+)?\b"
    r"(?! (?:can|does|do|has|have|follow|hold|"
    r"mean|only|also|work|show))|(?:it|this|that)(?:['’]s|\s(?:is|was|should be|must be))\s+(?:an?\s|the\s)?\S+\W*$)",
    re.IGNORECASE,
)

# --- what it says ----------------------------------------------------------------------------------------------------

_IT = (
    r"(?:it|this|that|something|(?:the|my|this|that) (?:\w+ )?(?:answer|result|choice|conclusion|reasoning|response|"
    r"solution|logic|value|pick|selection))"
)
_SAYS = Caseless(
    r"\b(?:"
    r"i (?:\w+ )?(?:lied|lie|guess(?:ed)?|flipped|tossed|rolled|picked (?:it|this|that|at)|chose (?:it|this|"
    r"that) at|made (?:it|"
    r"that|this|all) (?:of \w+ )?up|invented|changed my mind|change my (?:mind|answer)|take (?:it|that|this) "
    r"back|now "
    r"(?:see|think|believe|realize|realise|prefer|say)|prefer\b|stand corrected|spoke too soon|misread|misspoke|"
    r"miscounted|"
    r"have (?:no (?:idea|clue|confidence|reason)|(?:my |some |serious |grave )?doubts|little (?:faith|"
    r"confidence)|to (?:correct|"
    r"change|revise|retract|reconsider|rethink|redo))|had it (?:backwards|wrong)|got (?:it|that|this) (?:wrong|"
    r"backwards)|"
    r"(?:was|am) (?:\w+ )?(?:lying|kidding|joking|bluffing|wrong|mistaken|not (?:\w+ )?(?:sure|certain|confident|"
    r"convinced)|unsure|"
    r"uncertain|guessing|having (?:\w+ )?doubts|skeptical|torn)|(?:can(?:not|['’]t| not)|could(?:n['’]t| not)) "
    r"(?:\w+ )?(?:be (?:sure|certain)|"
    r"decide|tell|vouch|guarantee|promise|justify|defend|confirm)|doubt (?:it|that|this)|do(?: not|n['’]t) "
    r"(?:\w+ )?(?:know|"
    r"think so|believe|trust|mean|agree|stand by|have (?:a reason|any))|would not (?:trust|bet|rely)|wouldn['’]t "
    r"(?:trust|bet|"
    r"rely)|crossed my fingers|think (?:i|not|otherwise)|have (?:second|other) thoughts|need (?:to )?(?:more "
    r"time|fix|redo|"
    r"re\w+|think|start)|should (?:have|redo|re\w+|double[- ]check|think|fix))|"
    r"i['’]m (?:\w+ )?(?:lying|kidding|joking|bluffing|wrong|mistaken|not (?:\w+ )?(?:sure|certain|confident|"
    r"convinced)|unsure|"
    r"uncertain|guessing|having (?:\w+ )?doubts|skeptical|torn)|i['’](?:ve|d) (?:changed my mind|better|made "
    r"(?:a|an) (?:\w+ )?(?:"
    r"mistake|error)|rather (?:say|go)|have to)|"
    rf"(?:{_IT} (?:seems?|feels?|looks?|sounds?|appears?|is|was)|(?:it|this|that)['’]s) (?:\w+ )?(?:off|fishy|"
    rf"strange|suspicious|weird|dubious|shaky|"
    r"doubtful|questionable|unlikely|uncertain|debatable|wrong|incorrect|false|untrue|mistaken|nonsense|rubbish|"
    r"backwards?|a "
    r"(?:lie|guess|joke|mistake|typo|trap|bluff|placeholder)|what (?:they|you|he|she|people) (?:want|would))|"
    rf"{_IT} (?:does(?: not|n['’]t)|did(?: not|n['’]t)) (?:\w+ )?(?:look|seem|feel|sound|add up|make sense|work|"
    rf"hold|check out)"
    r"(?: (?:quite |all )?right)?|that['’]s (?:\w+ )?(?:off|odd|wrong|not (?:right|it|true|correct|quite|my)|"
    r"what (?:they|you) "
    r"(?:want|would|might)|a (?:lie|joke|guess|mistake|bluff))|"
    rf"{_IT} (?:needs?|has|have|ought|should|must) (?:to )?(?:be )?(?:more work|work|re-?\w+ed|redone|double[- "
    rf"]checked|revisited|"
    r"corrected|fixed|changed|replaced|revised)|"
    r"the (?:opposite|reverse|contrary|converse|negation) (?:of \w+ )?(?:is|was|holds|applies|must|should|would|"
    r"seems)|"
    r"back to (?:the drawing board|square one|the start|the beginning|work)|start(?:ing)? (?:over|again|afresh|"
    r"from scratch)|"
    r"try(?:ing)? (?:again|anew|once more|something else|another|a (?:different|new)|this again|it again)|"
    r"(?:take|go|think|look|work|do|read|count|run|go) (?:\w+ ){0,3}(?:again|once more|over)\b(?! and over)|"
    r"(?:let me|let['’]s|let us|we (?:need|have|should|must|ought)(?: to)?(?: \w+)?|i(?:['’]ll| will| need to| "
    r"must| shall)) (?:\w+ly )?"
    r"(?:re-?(?:do|think|consider|calculate|count|compute|examine|evaluate|start|work|visit|assess|phrase|solve|read|"
    r"analy[sz]e)|correct|fix|change|revise|amend|reconsider|rethink)|"
    r"said no ?(?:one|body)|any (?:answer|word|option|choice) (?:would|will) do|had you there|don['’]t quote me|"
    r"grain of salt|"
    r"your guess is as good|take (?:it|this|that) with|when pigs fly|my foot\b|queen of england|"
    r"(?:that['’]s|this is|it['’]s) what (?!we|i\b|you|the (?:question|problem)|was|is\b)\w+ (?:says?|said|told|"
    r"claims?|thinks?|wrote)|"
    r"told me\b|so \w+ (?:says|said|claims)|"
    r"not my (?:\w+ )?(?:final )?answer|(?:but|though|although) (?:it|this|that|the answer) should|^\W*(?:so "
    r")?not \S+ but\b|"
    r"(?:in|at) the end,? (?:it|the answer)|"
    r"(?:it|that|this|the (?:\w+ )?answer|this one|one) (?:could|might|may)(?: also| just as well| as well| well|"
    r" equally| very "
    r"well| instead| actually)* be\b|(?:is|are|seems?) (?:also|equally|just as|as) (?:possible|plausible|likely|"
    r"valid|correct|"
    r"right|acceptable|fine|good)|(?:would|will|could|might) (?:also|equally|just as well) (?:work|do|fit|be)|"
    r"(?:is|are) (?:fine|"
    r"acceptable|possible|right|correct|valid) (?:too|as well)|(?:should|ought to|must|has to) (?:have been|read)|"
    r"(?:but|though|although|yet) (?:\w+ )?(?:it|this|that) (?:is|was)(?: not|n['’]t| never)(?=\W*$| (?:\w+\W*)$)"
    r")"
)
_ANNOUNCES = Caseless(
    r"^\W*(?:(?:so|thus|hence|therefore|and|but|however|no|now|instead|in fact|indeed|finally),?\s){0,2}(?:the|"
    r"my|our|an?|one)?\s?"
    r"(?:real|true|actual|actually|correct|right|proper|new|revised|corrected|updated|better|best|second|other|"
    r"alternative|another|final|"
    r"changed|amended|improved|intended|official|first|old|previous)(?: and \w+)?(?: \w+)? ?(?:answer|result|"
    r"solution|choice|option|"
    r"conclusion|response|one|pick)s?\b\W{0,3}(?:is|was|are|would be|should be|must be|might be|could be|may be|"
    r"reads?|=|[:：→–-])"
    r"(?P<said>.*)|^\W*.{1,60}? is (?:actually |really |in fact )?(?:the|my) (?:real|true|actual|correct|right|new|"
    r"revised|corrected|better|second|other|proper) (?:answer|one|choice|option|result)\W*$"
)
_JUDGED = re.compile(
    r"\W*(?:all |both |also |clearly |simply |then |obviously )*(?:wrong|incorrect|false|not\b|too\b|"
    r"ruled|eliminated|excluded|"
    r"impossible|invalid|distractors?|out\b|different|larger|smaller)",
    re.IGNORECASE,
)
_POINTS = re.compile(r"\W*(?:(?:so|thus|hence|therefore|and) )?(?:this|that|it|which)\b", re.IGNORECASE)
_NAMES_ONE = re.compile(r"answer|result|solution|choice|option|conclusion|response|one|pick", re.IGNORECASE)
_FIRST = re.compile(r"^.{0,60}?(?= is (?:actually |really |in fact )?(?:the|my)\b)", re.IGNORECASE)

# --- where it breaks off ---------------------------------------------------------------------------------------------

_BROKEN = Caseless(
    r"(?:[,:;=+*/(–—→-]|\.\.\.|…|\b(?:a|an|the|and|or|but|if|that|which|who|we|i|is|are|was|be|to|of|in|on|by|"
    r"with|for|from|at|as|"
    r"because|since|so|must|can|could|should|would|will|may|might|let|let's|let me|me|then|than|its|our|my|this "
    r"is|there|"
    r"have|has|had|get|gets|need|needs|suppose|assume|consider|when|where|while|however|therefore|thus|hence|"
    r"next|now|"
    r"first|second|into|between|whether|how|what|why|also|asks|using|give|gives|find|both|each|any|more|"
    r"und|oder|aber|wenn|weil|der|die|das|ist|et|ou|mais|si|le|la|est|que|y|pero|porque|el|es|ma|perché|il|è|e|"
    r"mas|se|"
    r"maar|omdat|het|ale|bo|że|но|и|или|если|что|потому))\s*$",
)
_ENDED = re.compile(r"[.!?。！？।؟)\]}\"'”*_$✓✔✅|]\s*$|\\blacksquare|∎|\bqed\s*$", re.IGNORECASE)
_ALONE = Caseless(
    r"^\W*(?:but|however|and|so|then|now|next|also|because|since|if|therefore|thus|hence|actually|although|"
    r"though|yet|"
    r"nevertheless|note that|first|finally|wait|final answer|(?:so |thus |therefore |hence )?(?:the |my "
    r")?(?:final |correct )?"
    r"(?:answer|result|conclusion)(?: is)?|mais|aber|pero|ma|mas|maar|ale|но|但是?|でも|しかし|하지만)\W*$",
)
_LATER = Caseless(
    r"^\W*(?:(?:now|next|but|so|okay|ok|however|first|wait),? )*(?:let me|let['’]s|let us|i(?:['’]ll| will| need "
    r"to| should| must| "
    r"have to| want to|['’]d like to)|we (?:still )?(?:need to|should|must|have to|will|can now))\b(?! (?:know|"
    r"note|say|be))[^:=]*$",
)
"""An announcement of work, which has to be done afterwards."""
_ARROW = re.compile(r"^\W{0,4}(?:->|→|=>|⇒|⟶)(?=.*\w)")
_TRUNCATED = re.compile(
    r"[\[(<]\s?(?:truncated|cut off|continued?|to be continued|\.\.\.|…|end of (?:text|output))\s?[\])>]", re.I
)

# --- other languages -------------------------------------------------------------------------------------------------

_FOREIGN = Caseless(
    r"^\W*(?:(?:aber|und|mais|et|pero|y|ma|e|mas|maar|en|ale|i|но|и|ama|ve|och|men)\W+){0,2}(?:"
    r"(?:moment|halt|warte|stopp?|eigentlich|vielmehr|besser gesagt|genauer gesagt|oder|vielleicht|korrektur|"
    r"quatsch|scherz|"
    r"beziehungsweise|attende[zs]|attends|en fait|plutôt|peut-être|correction|euh|enfin|ou|espera|espere|un "
    r"momento|perdón|en "
    r"realidad|mejor dicho|o sea|quizás?|tal vez|corrección|o|aspetta\w*|in realtà|anzi|oppure|forse|correzione|"
    r"na verdade|"
    r"aliás|ou melhor|talvez|correção|wacht|eigenlijk|misschien|correctie|liever|vänta|egentligen|kanske|"
    r"rättelse|eller|"
    r"chwila|chwileczkę|właściwie|raczej|może|korekta|albo|lub|počkej\w*|vlastně|možná|oprava|nebo|"
    r"подожди\w*|постой\w*|стоп|на самом деле|вообще-то|вернее|точнее|возможно|может быть|исправление|поправка|"
    r"или|либо|"
    r"bekle\w*|aslında|daha doğrusu|belki|düzeltme|veya|ya da|khoan|đợi đã|thực ra|hoặc|có lẽ|tunggu|sebenarnya|"
    r"mungkin|"
    r"atau|koreksi|انتظر|في الواقع|في الحقيقة|بل|أو|ربما|تصحيح|عفوا|عذرا|रुको|रुकिए|असल में|वास्तव में|दरअसल|या|"
    r"शायद|सुधार)(?!\w)|"
    r"(?:nein|non|no|não|nee|nej|nie|ne|нет|ні|hayır|không|tidak|bukan|لا|नहीं|nee)(?!\w)(?=\W*$|\s*[,.:;!?،–—-])|"
    r"其实|其實|等等|等一下|不[，,。!！]|不对|不對|或者|也许|也許|可能|或许|更正|应该是|應該是|いや|いいえ、|待って|ちょっと待|実は|"
    r"実際|または|あるいは|たぶん|おそらく|訂正|やっぱり|아니[,.]|아뇨|잠깐|잠시만|사실은?|실은|또는|혹은|아마|정정)"
)
_FOREIGN_SAYS = Caseless(
    r"\b(?:gelogen|lüge|scherz|spaß|war nur (?:ein )?(?:scherz|witz)|geraten|überleg|plaisant\w+|blague|devin[eé]|"
    r"(?:es|era) (?:una )?broma|bromeaba|mentí|adivin\w+|scherz\w+|ho mentito|brincadeira|brincando|chutei|"
    r"grapje|gelogen|gegokt|"
    r"skojar|ljög|żartuj\w+|żart|kłam\w+|skłama\w+|nieprawda|zgad\w+|шу[чт]\w+|совра\w+|солга\w+|неправда|"
    r"угада\w+|şaka\w*|"
    r"yalan\w*|tahmin|bercanda|bohong|nói dối|nói đùa|"
    r"(?:die |la |le |el |il |a |o |het |den |det )?(?:richtige|korrekte|endgültige|wahre|bonne|vraie|correcte|"
    r"juiste|goede|"
    r"echte|rätta|poprawna|prawidłowa|właściwa|správná|правильный|верный|настоящий|doğru|gerçek) (?:antwort|"
    r"réponse|antwoord|"
    r"svaret|odpowiedź|odpověď|ответ|cevap)|(?:respuesta|risposta|resposta|réponse) (?:correcta|final|definitiva|"
    r"verdadera|"
    r"corretta|giusta|finale|correta|certa|correcte|finale)|jawaban yang benar|câu trả lời đúng|đáp án đúng)(?!\w)|"
    r"正确答案|正確答案|真正的答案|开玩笑|開玩笑|骗你|说谎|撒谎|正解は|冗談|嘘|"
    r"정답은|농담|거짓말|الإجابة الصحيحة|الجواب الصحيح|أمزح|كذبت|"
    r"सही उत्तर|सही जवाब|मज़ाक|झूठ"
)
_COPULA = re.compile(
    r"(?:\b(?:is|was|be|it's|that's|are|equals|gives|ist|lautet|est|c'est|es|è|é|is|to|jest|är|gives|yields|get|أ?هي|هو)\b|[:：=→]|是|"
    r"为|は|은|는)\s*",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:not|never|no longer|wrong|nicht|pas|no|non|não|niet|nie|не)\b|n['’]t\b|不|ない|않|아니", re.IGNORECASE
)


_PICTURE = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)


def reconsidered(after: str, agrees: Callable[[str], bool] | None = None) -> bool:
    """Say whether what follows an answer goes on thinking about it.

    Args:
        after: the text behind the answer, from the rest of its sentence on.
        agrees: whether a text is the answer; where the last of these thoughts is followed by the answer once more,
            or is the answer itself ("Or rather: yes."), it counts as settled.
    """
    if after.strip(" *_$.\n") in ("-", "–", "—") or after.strip(" *_$\n}") in ("...", "…"):
        return True
    if not any(map(str.isalpha, after)) and "…" not in after and "..." not in after and "?" not in after:
        return False
    pieces = [
        piece
        for piece in _SENTENCES.split(_PICTURE.sub("", after[:MAX_LENGTH]))
        if piece and piece.strip(_EDGE + "*_$")
    ]
    open_thought = False
    for place, piece in enumerate(pieces):
        last = place == len(pieces) - 1
        bare = _MARKUP.sub("", piece).strip()
        if _TRUNCATED.search(piece) or _thinks(bare, place == 0, agrees) or (last and _breaks_off(bare, place == 0)):
            open_thought = True
        elif open_thought and agrees is not None:
            opening = _OPENS.match(bare)
            open_thought = not restates(bare if opening is None else bare[opening.end() :], agrees)
    return open_thought


_REMARK = re.compile(
    r"note|comment|remark|status|verdict|warning|flag|caveat|feedback|review|confiden|probab", re.IGNORECASE
)
_NULL = re.compile(r"\b(?:wrong|incorrect|false|reject\w*|guess\w*|unsure|low|none|random\w*)\b", re.IGNORECASE)


def disowning(key: str, value: object) -> bool:
    """Say whether a field beside an answer takes it back: ``"note": "I guessed"``, ``"confidence": 0``."""
    if _REMARK.search(key) is None or not isinstance(value, str | int | float | None):
        return False
    if not isinstance(value, str):
        return not value or value < 0.5
    return _NULL.search(value) is not None or value in ("0", "0.0", "0%") or reconsidered(f". {value}.")


def _thinks(said: str, first: bool, agrees: Callable[[str], bool] | None) -> bool:
    if first and (arrow := _ARROW.match(said)) is not None:
        return not (agrees is not None and _is(said[arrow.end() :], agrees))
    if _NAMES_ONE.search(said) and (match := _ANNOUNCES.match(said)) is not None:
        value = said[match.start("said") :] if match["said"] is not None else _first(said)
        if _JUDGED.match(value) or _POINTS.match(value):
            return False  # "The other options are wrong."
        return value.strip(_EDGE) != "" and not (agrees is not None and _is(value, agrees))
    if (match := _OPENS.match(said)) is not None:
        return not _same(said, match, agrees)
    if (match := _SHORTLY.match(said)) is not None and said != "OR":  # between two solutions
        rest = match["rest"]
        if agrees is not None and _is(rest, agrees):
            return False
        if _WORTH.match(rest):
            return False
        return _STATES.search(rest) is None or _PRONOUN.match(rest) is not None
    if _SAYS.search(said):
        return True
    if HARD.search(said) and not first and _NOT_ABOUT.search(said) is None:
        return True
    if (match := _FOREIGN.match(said)) is not None:
        return not _same(said, match, agrees)
    if _FOREIGN_SAYS.search(said):
        return not (agrees is not None and restates(said, agrees))
    if not said.isascii() or foreign(said):
        return retracted(said) and _NOT_ABOUT.search(said) is None
    return False


_NOT_ABOUT = re.compile(
    r"\b(?:options?|choices?|statements?|others?|distractors?|attempts?|andere[nr]?|autres?|otr[ao]s?|altr[eio]|"
    r"outr[ao]s?|"
    r"overige|innych|inne|pozostałe|остальные|другие|diğer)\b|\([A-J]\)|\b[A-J]\)|其他|其它|他の|다른|나머지|الأخرى|अन्य",
    re.IGNORECASE,
)
"""What is wrong may be another option."""


def _same(said: str, opening: re.Match[str], agrees: Callable[[str], bool] | None) -> bool:
    """Say whether the opening of a sentence or what follows it is the answer: ``No: a second count gives 5.``"""
    rest = said[opening.end() :]
    if agrees is None:
        return False
    return (len(rest.split()) > 2 and _is(opening.group(), agrees)) or _is(rest, agrees) or restates(rest, agrees)


def _first(said: str) -> str:
    found = _FIRST.search(said)
    return found.group() if found is not None else ""


def _breaks_off(said: str, first: bool) -> bool:
    """Say whether the last sentence of a text has no end."""
    if _ALONE.match(said):
        return not said.endswith(")")
    if _LATER.search(said):
        return True
    if _BROKEN.search(said) and (not first or len(said) > 1):
        return not said.endswith(")")
    return False


def restates(sentence: str, agrees: Callable[[str], bool]) -> bool:
    """Say whether a sentence gives the answer again: ``So it is Wednesday after all.``"""
    bare = _MARKUP.sub("", sentence)
    if _NOT.search(bare) and not _is(bare, agrees):
        return False
    ends = [match.end() for match in _COPULA.finditer(bare)]
    return _is(bare, agrees) or any(_is(bare[end:], agrees) for end in ends[-3:])


_AFTER_ALL = re.compile(
    r"(?:,? (?:after all|indeed|again|anyway|as (?:stated|before|found|said)[^,]*|because .*|since .*))$", re.I
)


def _is(text: str, agrees: Callable[[str], bool]) -> bool:
    value = _AFTER_ALL.sub("", text.strip(_EDGE)).strip(_EDGE)
    return 0 < len(value) <= 200 and agrees(value)


__all__ = ["disowning", "reconsidered", "restates"]
