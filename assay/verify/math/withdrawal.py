"""How people take an answer back, in English and some twenty other languages.

:data:`HARD` undoes an answer by itself; what :data:`WITHDRAWN` finds beyond it does so where another answer follows.
"""

from __future__ import annotations

from assay.verify.caseless import Caseless

_THIS = (
    r"(?:this|that|it|the above|(?:the|my|this|that) (?:(?:boxed|final|above|previous|preceding|first|given|last|"
    r"whole) )?"
    r"(?:answer|result|value|solution|box|number|response|claim|sentence|statement|line|paragraph|remark)(?: (?:above|"
    r"in the box|i gave|given|is what))?|"
    r"everything above)"
)
_BE = (
    r"(?:is|was|are|looks|seems|seemed|appears|must be|may be|might be|could be|has to be|feels|turns out)"
    r"(?: to be)?(?: (?:actually|clearly|in fact|completely|simply|all|also|probably|obviously|just|now|surely|"
    r"really|definitely|certainly|"
    r"quite|plainly|almost|most likely|very likely|likely|a bit|totally|entirely|only|of course|somehow|still|an?|"
    r"my|the))*"
)
_BAD = (
    r"(?:wrong|incorrect|false|invalid|mistak\w+|nonsense\w*|errone?ous|error|slip|fallac\w+|bogus|untrue|"
    r"off by|flawed|guess(?:work)?|made up|joke|lie|rubbish|garbage|void|withdrawn|retracted|"
    r"unreliable|not (?:\w+ )?(?:right|correct|true|valid|it|so|what|the (?:answer|solution|result|right|correct)|"
    r"my (?:final )?"
    r"answer|final|equal|an answer))\b"
)
_NOT = (
    r"(?:(?:is|was)(?:n't| not| never)|can(?:not|'t| not) be|could ?n[o']t be|should(?:n't| not) be|does(?:n't|"
    r" not)|fails to|"
    r"can(?:not|'t) possibly)"
    r"(?: (?:be|actually|really|possibly|at all|even))*"
)
_NOT_WHAT = (
    r"(?:right|correct|true|valid|it|so|work|hold|satisf\w+|fit|match|solve|make sense|check out|add up|"
    r"(?:the|an?|my) (?:correct |valid |right |final |real |actual )?(?:answer|solution|result))\b"
)
_IT = (
    r"(?:it\b|that\b|this\b|what i (?:said|wrote)|(?:my|the|this|that) (?:\w+ )?(?:answer|result|box|claim|value|"
    r"solution|number)"
    r"|(?:all|everything|the (?:text|line|part|answer|above|foregoing))|the above|anything above|my previous)"
)
_ENGLISH = (
    rf"{_THIS}(?:'s)? ?{_BE} {_BAD}",
    rf"that's (?:actually |clearly |completely |all |just |probably )?(?:an? )?{_BAD}",
    rf"{_THIS} {_NOT} {_NOT_WHAT}",
    r"then again|on (?:further |second )?(?:reflection|thoughts?)|maybe not\b|(?:not happy|unhappy|"
    r"uneasy) (?:with|about)|"
    r"so (?:there is|there's|it has) no (?:solution|answer)",
    rf"(?:withdraw|retract|revoke|rescind|renounce|disavow|discard|reject|abandon|disregard|ignore|forget|scratch|"
    rf"strike|"
    rf"scrap|cancel|disown|recant|undo|drop|erase|delete|(?:cross|throw) out|do not (?:accept|grade|count|use)|"
    rf"don't (?:accept|"
    rf"grade|count|use|trust|believe)) {_IT}",
    r"i (?:hereby )?(?:withdraw|retract|recant|take (?:it|that|this|my (?:answer|words)) back|stand corrected|"
    r"give up|was wrong|"
    r"(?:was|am) mistaken|was joking|disagree|refuse|erred|(?:don't|do not) (?:agree|believe|think so|stand by|"
    r"trust|accept|know|"
    r"have an? (?:answer|idea))|no longer|doubt|miscalculated|misread|misspoke|messed up|meant?|deny|dispute|"
    r"(?:made|see|found|spot(?:ted)?|notice) (?:a|an|my|the|some) (?:\w+ )?(?:mistake|error|slip)|"
    r"have (?:no idea|to (?:withdraw|retract|take)|made (?:a|an) (?:\w+ )?(?:mistake|error)|changed my mind)|"
    r"change my (?:mind|answer)|(?:made|pulled) (?:it|that|this) up|am (?:just |only )?guessing|guessed|"
    r"(?:can(?:'t|not)) (?:stand by|tell|decide|be sure|determine|answer|solve))",
    r"i'(?:m|ve) (?:wrong|mistaken|not sure|unsure|not certain|uncertain|just guessing|only guessing|guessing|"
    r"kidding|joking|"
    r"changed my mind|made (?:a|an) (?:\w+ )?(?:mistake|error))",
    r"i am (?:wrong|not (?:sure|certain|convinced|confident)|unsure|uncertain|unable)",
    r"(?:just|only) (?:a (?:wild |random )?guess|kidding|joking)|never ?mind|strike that|scrap that|scratch that|"
    r"oops|"
    r"my (?:bad|mistake)|not certain|unsure|not sure|"
    r"(?:would be|is|are|seems?) (?:just as|equally) (?:likely|possible|good|valid|plausible)",
    r"(?:the|my|this) (?:\w+ )?(?:answer|result|value|box|solution) (?:is|seems|looks) (?:impossible|absurd|"
    r"inconsistent|contradictory)",
    r"cannot (?:be (?:determined|solved|answered|known|decided)|tell)|can't (?:tell|decide|be (?:determined|"
    r"solved|answered))|"
    r"unable to|insufficient information|not enough (?:information|data)|(?:answer|result|problem|question|it|"
    r"value|solution) (?:is|be|remains) (?:unsolvable|unknown|undetermined|ill[- ]posed|"
    r"unclear|undecided)",
    r"said (?:nobody|no one|no-one|none)|(?:nobody|no one|no-one) (?:should|would|could|will|can|says?|answers?)",
    r"(?:it|this|that|the (?:check|verification|proof|test)) fail(?:s|ed)\b",
    r"(?:so|hence|thus|therefore),? (?:there (?:is|exists) )?no (?:\w+ ){1,2}exists?\b",
    r"the (?:problem|equation|question|exercise|task|system) (?:actually |really |in fact )?(?:has|have|admits) no\b",
    r"(?:^|[.!?;:]\s+)(?:\W*(?:actually|so|in fact|no|hence|therefore|but|however|i think|"
    r"i say),? )?(?:that )?there (?:is|are) no "
    r"(?:valid |correct |such |real )?(?:solutions?|answers?)\s*[.!]|none of (?:the above|these|this|it)\b",
    r"(?:^|[.!?;\n]\s*)\W{0,3}(?:no|nope|nah|wrong|incorrect|false)\s*(?:[,.!;:–—-]|$)",
)
_SOFT = (
    r"correction|wait|hmm|hold on|actually|i meant?|instead|no, it|maybe it(?:'s| is)|"
    r"(?:could|might) (?:also |just as well |as well |equally (?:well )?)?be|may (?:also|just as well|as well|"
    r"equally well) be|"
    r"alternatively,? (?:it|the answer|could)|(?:or|but|alternatively),? (?:it|the answer|"
    r"perhaps|maybe|possibly)|the (?:other|opposite) (?:answer|value) is|"
    r"(?:the |my )?(?:answer|result|value|solution) (?:should|must|would|ought to|has to) (?:really |"
    r"actually )?(?:be|have been)|"
    r"(?:the )?(?:real|true|actual|correct|right|proper) (?:answer|value|result|solution) (?:is|should be|"
    r"would be|must be|was)|"
    r"espera|aspetta|attends|moment|等等|等一下",
)
_FOREIGN = (
    # Spanish, Portuguese, Italian, French
    r"(?:es|está|era|é|e|è|sia|esta) (?:\w+ )?(?:incorrect[oa]|mal|equivocad[oa]|err[óo]ne[oa]|fals[oa]|errad[oa]|"
    r"sbagliat[oa]|"
    r"errat[oa]|scorrett[oa])\b",
    r"\b(?:no|não|non) (?:es|está|é|è) (?:\w+ )?(?:correct[oa]|ciert[oa]|cert[oa]|corret[oa]|corrett[oa]|"
    r"giust[oa]|verdad\w*|la respuesta|"
    r"a resposta|la risposta)\b",
    r"\bme (?:equivoqu[ée]|he equivocado|enganei|retracto|retrato)|\bmi sono sbagliat|\bmi correggo|\bmi? ?(?:lo |"
    r"la )?retiro\b|"
    r"\b(?:ritiro|ritratto|olvid[ae]\w*|ignor(?:ad?|en|ez|ar|ate|al[ao]s?)\b|oublie[zr]?|desconsidere|corrección|"
    r"correção|correzione|descart[oae]|en realidad|na verdade|in realtà|en fait)\b",
    r"\b(?:no|não|non) (?:tiene|hay|tem|há|ha|c'è|existe) (?:\w+ )?(?:soluci[óo]n|solução|soluzion[ei])|"
    r"\bnessuna soluzione|\bsin solución|"
    r"\bsem solução|\b(?:pas|aucune) (?:de )?solution",
    r"\b(?:est|sont) (?:\w+ )?(?:faux|fausse|incorrecte?|erronée?|inexacte?)\b|\bn'est pas (?:\w+ )?(?:correcte?|"
    r"juste|bonne?|exacte?|"
    r"la réponse)|\bje (?:me suis tromp|me trompe|retire|me rétracte|reviens sur)",
    # German, Dutch, Swedish
    r"\b(?:ist|war|sind|is|was|är) (?:\w+ )?(?:falsch|verkehrt|inkorrekt|unrichtig|unsinn|ungültig|"
    r"(?:ein )?(?:fehler|irrtum)|fout|onjuist|"
    r"verkeerd|fel|felaktigt?)\b|\b(?:nicht|niet|inte) (?:richtig|korrekt|wahr|juist|correct|rätt)\b|"
    r"\bstimmt (?:\w+ )?nicht|\bkeine lösung|"
    r"\bich (?:habe mich|irre|nehme|ziehe|widerrufe|korrigiere)|\bvergiss\w*|\bignorier\w*|\bdoch nicht\b|"
    r"\bnein\b|\bik trek\b|\bnegeer\b|"
    r"\bvergeet\b|\bdrar tillbaka\b|\bkorrektur\b",
    # Russian, Polish, Turkish, Vietnamese, Indonesian
    r"\bневерн|\bнеправильн|\bошиб|\bобратно\b|\bотзываю|\bотказываюсь|\bигнорир|\bзабудь|\bне имеет решени|"
    r"\bнет решени|\bрешений нет|"
    r"\bбłędn|\bnieprawid|\bniepoprawn|\bwycofuj|\bzignoruj|\bcofam|\bpomyl|\byanlış|\bgeri (?:al|çek)|\byok say|"
    r"\bkhông đúng|\bsai rồi|"
    r"\bsai\b|\brút lại|\bbỏ qua\b|\bsalah\b|\babaikan|\btarik kembali",
    # doubts and annulments
    r"\bannul\w+|\banul\w+|\bno estoy segur|\bpas sûr|\bnicht sicher|\bnão tenho certeza|\bnon sono sicur|"
    r"\bне уверен|"
    r"\bniet zeker|\bnie jestem pew|\bemin değil|\bno vale\b|\bnon vale\b|不确定|不確定|无效|無效|無効|不算数|不算數|"
    r"自信がな|확실하지 않|لست متأكد|यकीन नहीं",
    # Chinese, Japanese, Korean, Arabic, Hindi
    r"不对|不對|不是|错|錯|不正确|不正確|有误|有誤|收回|撤回|作废|作廢|忽略|无视|無視|无解|無解|更正|等等|等一下|间違|間違|違い|訂正|"
    r"取り消|撤回|解なし|誤り|正しくな|틀렸|틀린|잘못|취소|철회|무시|아닙니다|아니다|해가 없|"
    r"خطأ|غير صحيح|أسحب|أتراجع|تجاهل|لا يوجد حل|"
    r"ليس|गलत|ग़लत|वापस ले|नज़रअंदाज़|कोई हल नहीं|सही नहीं",
)
_ANYWHERE = "|".join(p if p.startswith("(?:^") else rf"\b(?:{p})" for p in _ENGLISH)
HARD = Caseless("|".join((_ANYWHERE, *_FOREIGN)))
WITHDRAWN = Caseless("|".join((_ANYWHERE, *_FOREIGN, rf"\b(?:{'|'.join(_SOFT)})")))
