# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
"""Sentences after an answer, of which it has to be known that they leave it as it is.

Nobody can list all ways to take an answer back in a sentence of its own ("That makes no sense.", "If only.", "My
calculator disagrees."). So the rule is turned round: behind an answer may stand an offer or a wish, an explanation or a
check in the words of plain solutions, and what repeats the question's words. Sentences of other languages and values
that are stated anew are judged elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from assay.verify.math.conclusion import closing
from assay.verify.math.courtesy import courteous
from assay.verify.math.english import plain_words
from assay.verify.math.foreign_doubt import prose
from assay.verify.math.frames import is_foreign, known_words
from assay.verify.math.reconsidered import restates
from assay.verify.math.remark_words import harmless_words

MAX_LENGTH = 1500
_SENTENCES = re.compile(r"(?<=[.!?;…])[\"'”’)\]*_}$]*\s+|\n+")
_CLAUSE = re.compile(r"[\s$*)}\]]*,\s*(?:(?:and|but|then|which|so)\b[\s,]*)?(?P<said>[A-Za-z].*)", re.DOTALL)
_LABEL = re.compile(r"^\W*[A-Za-z][A-Za-z ]{2,24}:\W*$")
_FIGURE = re.compile(r"[0-9]|\\[a-z]|[=+<>^$]")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|textit|mbox)\s*\{([^{}]*)\}")
_WORD = re.compile(r"(?<!\\)[A-Za-z]{3,}(?:['’][a-z]+)?")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}")
_NO = re.compile(r"^\W*(?:no|yes)\b\W*", re.IGNORECASE)
_NEXT = re.compile(r"\W*(?:question|q|human|user)\s?[0-9]*\s?:(?=\W*[A-Z])", re.IGNORECASE)
_REGARDS = re.compile(r"(?:regards|wishes|cheers|sincerely|yours),\s*$", re.IGNORECASE)
_SIGNED = re.compile(r"\W*[A-Z][a-z]+(?: [A-Z][a-z]*\.?)*\W*$")


def _either(*patterns: str) -> str:
    return "|".join(patterns)


_REASONS = re.compile(
    _either(
        r"(?:because|since|as|for|so|i\.e|that is|when|where|while|if|with|given|or|using|by|in|of|per|at|on|to|"
        r"from)\b",
        r"(?:is|are|was|were|equals|gives|rounded|namely|meaning)\b",
    ),
    re.IGNORECASE,
)
"""How the clause behind an answer begins that belongs to its statement."""
_CUES = _either(
    r"explanation|explained|reason(?:ing)?|proof|why|note|notice|recall|remember|remarks?|observe|check|checking",
    r"verification|to (?:verify|check|see)|(?:we|you) (?:can |could )?(?:also )?check",
    r"indeed|because|since|as|here|where|for (?:example|instance)|if you|(?:al)?though",
    r"alternatively|equivalently|in other words|in (?:words|figures|decimals?|fractions?|percent)",
    r"more generally|in general|i assumed|in case you|wrong answers",
    r"(?:all )?(?:the )?(?:other|remaining|rest of the) [a-z]+",
    r"(?:it is |it's )?a (?:common|frequent|typical) (?:mistake|error|slip|pitfall)",
    r"(?:this|that|it) (?:is because|makes sense (?:because|since|as)|follows|satisfies|matches|agrees with|"
    r"comes from)",
    r"(?:this|that|it) (?:works|holds) because",
    r"(?:this|that|it) can (?:also |easily )?be (?:checked|verified|seen|shown|confirmed|written)",
    r"(?:you|we|one) (?:can|could|may|might) (?:also )?(?:have )?(?:also )?"
    r"(?:check|verify|confirm|see|find|use|get|have|recognized?|solved?|done)",
)
_EXPLAINS = re.compile(rf"\W*(?:{_CUES})\b", re.IGNORECASE)
"""How an explanation or a check begins."""
_WISHES = _either(
    r"i hope (?:this|that|it|i)\b.*|hope (?:this|that|it)\b.*|keep up\b.*|you(?:['’]ve)? got this",
    r"let me know if (?:you|anything|something|there)\b.*|(?:please )?(?:tell|ask) me if you (?:have|need|want)\b.*",
    r"(?:would you like|do you want|want me|shall i|is there anything|any (?:other )?questions)\b[^.!0-9]*",
    r"does (?:that|this) (?:make sense|help)",
    r"(?:(?:best|kind|warm)? ?(?:regards|wishes)|cheers|sincerely|yours)",
)
_ENDINGS = _either(
    r"or|q\.?e\.?d|quod erat demonstrandum|(?:we(?:['’]re| are) )?done|(?:the square will look like: )?a drawing",
    r"end of (?:the |my )?(?:solution|answer|proof|response)|i (?:fully |completely )?(?:agree|concur)",
    r"(?:score|verdict|grade|mark)s?: (?:correct|full marks?|right|true|10/10)|correct",
    r"the answer (?:is correct|matches the (?:reference|expected answer))",
    r"das war zu zeigen|c'est la seule (?:valeur|solution|réponse) possible|le compte est bon",
    r"die (?:probe|rechnung) (?:geht auf|stimmt)|la (?:verifica|prova) torna|la (?:comprobación|vérification) \w+",
)
_CHECKS = _either(
    r"(?:(?:the|all|my|this|each|every|both)\s)?(?:working|steps?|computations?|calculations?|solution|check|derivation|"
    r"arithmetic|everything)\s(?:(?:is|are|was|were|can be|has been|have been|comes?|adds?|works?|fits?)\s)?(?:\w+ )?"
    r"(?:done|kept|checked|holds?|double-checked|verified|shown|given|reversed|reversible|complete|exact|short|out|up|"
    r"right|consistent|correct)"
    r"(?:, so (?:nothing is lost|no (?:correction|change) is needed)| twice| above| below| step by step)?",
    r"(?:on checking, )?(?:this|it|that) (?:uses|needs|meets|satisfies|fulfil?ls) "
    r"(?:only |all |the |every |what |both )*(?:is given|conditions?|requirements?|information|data)(?: (?:in|"
    r"of) the (?:question|problem))?",
    r"(?:also |it also |this )?fits the (?:given )?(?:data|question)",
    r"i(?: have|['’]ve)? (?:\w+ )?(?:double-)?checked (?:this|it|that|the \w+)(?: twice)?"
    r"(?:,? and it (?:stands|holds|is right))?",
    r"(?:and |so |thus |hence |therefore )?(?:the )?(?:claim|result|answer|statement) follows",
    r"actually, it is that simple",
)
_FACTS = _either(
    r"(?:and |but )?(?:it|this|that|which)? ?(?:cannot|can't|can not) be (?:simplified|reduced)(?: any)?(?: further)?",
    r"no (?:further|more|other) (?:simplification|steps?|work|calculations?|terms?|reduction)s? (?:is|are) (?:needed|"
    r"required|necessary|possible)",
    r"(?:no other|this is the only|it is the only) (?:value|number|solution)(?: is)? possible(?: value)?",
    r"this is the only possible (?:value|solution|answer)|the (?:key|trick|point|idea) (?:is|was|here)\b.*",
    r"(?:it|this|that) is (?:an? |the )?"
    r"(?:(?:even|odd|prime|composite|positive|negative|whole|natural|rational|irrational|square|perfect|round|exact|"
    r"single|smallest|largest|least|greatest|only|two-digit|three-digit) )*"
    r"(?:number|integer|prime|value|square|cube|fraction|even|odd|positive|negative)",
)
_CLOSES = re.compile(rf"\W*(?:{_either(_WISHES, _ENDINGS, _CHECKS, _FACTS)})\W*$", re.IGNORECASE | re.DOTALL)
"""Whole sentences that leave an answer as it is."""
_EXPLAINING = frozenset(
    """
    could should might alternatively manually appears appear relation relations definition definitions assume assumed
    confused compass straightedge sense resolvent arises impossible monotonically try recognized possibility labelings
    decomposition estimate beforehand wondering earlier version confirms confident reasonable expectation solved
    straightforward simplification understand double-checked verified addition subtraction multiplication
    """.split()
)
"""Words of explanations that the statement of an answer would not hold."""
_MISTAKES = frozenset("error errors mistake instead otherwise wrong forgot forgotten forget forgetting would".split())
"""Words of explanations that say how one would go wrong."""
_STANCE = re.compile(
    r"\b(?:no|not|nor|never|none|nothing|nobody|neither|without|but|however|yet|though|although|unless|if|or|else|only|too|"
    r"sure|lies?|wish|maybe|perhaps|friends?|teacher|pigs?|left|rest|next|then|still|first|instead|another|again|"
    r"change[sd]?|should|could|would|might|may|must|ought|want|need|asks?|asked|say|says|said|told|think|thought|believe|"
    r"feel|know|real|really|actually|truth|true|false|story|joke|trust|bet|hope|luck|far|way|small|big|large|high|low|much|"
    r"many|less|more|close|near|almost|nearly|about|like|guess)\b|n['’]t\b",
    re.IGNORECASE,
)
"""What a sentence without a figure can take an answer back with, though plain solutions use the word."""
_DENIES = re.compile(
    r"^\W*(?:(?:and|but|so|then|yet|in fact|actually|however)\b\W*)*"
    r"(?:it|that|this|which|(?:the|my) (?:\w+ )?(?:answer|result|value|solution))"
    r"(?:['’]s| is| was| are| can| could| does| did| will| would)?\s?(?:not|n['’]t|never|no)\b",
    re.IGNORECASE,
)


def taken_back(after: str, question: str, reference: str, agrees: Callable[[str], bool]) -> str | None:
    """Return the first sentence after an answer that is not known to leave it as it is, ``None`` if there is none.

    Args:
        after: what follows the answer, from the rest of its sentence on.
        question: its words are known.
        reference: so are those of the answer.
        agrees: whether a text is the answer; a sentence that gives it once more settles those before it.
    """
    pieces = _SENTENCES.split(after[:MAX_LENGTH])
    clause = _CLAUSE.match(pieces[0])
    if clause is not None and _FIGURE.search(reference) and not is_foreign(pieces[0]):
        said = clause["said"]
        if not (_REASONS.match(said) or _understood(said, question, reference, False, strict=True)):
            return said.strip()
    explains, doubt = False, None
    for before, piece in pairwise(pieces):
        if _NEXT.match(piece):
            break  # a model that goes on to another exercise of its own
        if not any(map(str.isalpha, piece)) or (is_foreign(piece) and (not piece.isascii() or is_foreign(question))):
            continue
        if _LABEL.match(piece):
            explains = _EXPLAINS.match(piece) is not None
            continue
        if _REGARDS.search(before) and _SIGNED.match(piece):
            continue
        if doubt is None and _understood(piece, question, reference, explains):
            continue
        settled = restates(_NO.sub("", piece), agrees)
        doubt = None if settled else doubt or piece.strip()
    return doubt


def _understood(sentence: str, question: str, reference: str, explains: bool, strict: bool = False) -> bool:
    known = f"{question} {reference}"
    if courteous(sentence) or _CLOSES.match(sentence) or closing(sentence, question) or harmless_words(sentence, known):
        return True
    if _DENIES.match(sentence) or "?" in sentence:
        return False
    cue = _EXPLAINS.match(sentence)
    text = prose(_TEXT.sub(r" \1 ", sentence if cue is None else sentence[cue.end() :]))
    words = _WORD.findall(text)
    if all(known_words(word, known) for word in words):
        return cue is not None or len(words) > 1 or _FIGURE.search(sentence) is not None
    if not (explains or cue or _FIGURE.search(sentence)) and (strict or len(words) < 3 or _STANCE.search(sentence)):
        return _names(sentence, known)
    return all(
        word.lower() in _EXPLAINING
        or (cue is not None and word.lower() in _MISTAKES)
        or word.lower() in plain_words()
        or known_words(word, known)
        or (f" {word}" in text and word[0].isupper())  # a name
        for word in words
    )


def _names(sentence: str, known: str) -> bool:
    """Say whether a sentence tells more of somebody whom the question names."""
    return any(name in sentence for name in _NAME.findall(known))
