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
from assay.verify.math.foreign_doubt import FORMULA
from assay.verify.math.frames import is_foreign, known_words
from assay.verify.math.reconsidered import restates
from assay.verify.math.remark_words import harmless_words

MAX_LENGTH = 1500
_SENTENCES = re.compile(r"(?<=[.!?;…])[\"'”’)\]*_}$]*\s+|\n+")
_REGARDS = re.compile(r"(?:regards|wishes|cheers|sincerely|yours),\s*$", re.IGNORECASE)
_SIGNED = re.compile(r"\W*[A-Z][a-z]+(?: [A-Z][a-z]*\.?)*\W*$")
_NO = re.compile(r"^\W*(?:no|yes)\b\W*", re.IGNORECASE)
_LABEL = re.compile(r"^\W*[A-Za-z][A-Za-z ]{2,24}:\W*$")
_FIGURE = re.compile(r"[0-9]|\\[a-z]|[=+<>^$]")
_EXPLAINS = re.compile(
    r"\W*(?:explanation|explained|reason(?:ing)?|proof|why|note|notice|recall|remember|remarks?|observe|check|checking|"
    r"verification|to (?:verify|check|see)|indeed|because|since|as|here|where|for (?:example|instance)|i assumed|"
    r"(?:it is )?a (?:common|frequent|typical) (?:mistake|error|slip|pitfall)|in case you|"
    r"if you|alternatively|(?:al)?though|"
    r"(?:all )?(?:the )?(?:other|remaining|rest of the) \w+|wrong answers|in (?:words|figures|decimals?|fractions?|"
    r"percent)|"
    r"(?:this|that|it) can (?:also |easily )?be (?:checked|verified|seen|confirmed|written|shown)|"
    r"equivalently|in other words|more generally|in general|(?:we|you) (?:can |could )?(?:also )?check|"
    r"(?:this|that|it) (?:is because|makes sense (?:because|since|as)|follows|satisfies|matches|agrees with|"
    r"works because|"
    r"holds because|comes from)|"
    r"(?:you|we|one) (?:can|could|may|might) (?:also |have )?(?:also )?(?:check|verify|confirm|see|find|use|get|have|"
    r"recognized?|solved?|done))\b",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    r"\W*(?:i hope (?:it is correct|(?:this|that|it) (?:helps?|helped|was (?:clear|helpful|useful)|is (?:clear|"
    r"helpful|useful)))|"
    r"i hope (?:this|that|it|i)|i (?:fully |completely )?(?:agree|concur)|"
    r"let me know if (?:you|anything|something|there)|(?:please )?(?:tell|ask) me if you (?:have|need|want)|"
    r"OR|q\.?e\.?d\.?)\b(?! (?:is|was|are|were) (?:wrong|false))|"
    r"\W*(?:(?:best|kind|warm)? ?(?:regards|wishes)|cheers|sincerely|yours|end of (?:the |my )?(?:solution|answer|"
    r"proof|response)|"
    r"(?:the square will look like: )?a drawing|(?:score|verdict|grade|mark)s?: (?:correct|full marks?|right|true|"
    r"10/10)|correct|"
    r"the answer (?:is correct|matches the (?:reference|expected answer)))\W*$|"
    r"\W*(?:(?:the|all|my|this|each|every|both)\s)?(?:working|steps?|computations?|calculations?|solution|check|derivation|arithmetic|"
    r"everything)\s(?:(?:is|are|was|were|can be|has been|have been|comes?|adds?|works?|fits?)\s)?(?:\w+ )?(?:done|"
    r"kept|checked|"
    r"double-checked|verified|shown|given|reversed|reversible|complete|exact|short|out|up|right|consistent|correct)"
    r"(?:, so (?:nothing is lost|no (?:correction|change) is needed)| twice| above| below| step by step)?\W*$|"
    r"\W*(?:on checking, )?(?:this|it|that) (?:uses|needs|meets|satisfies|fulfil?ls) (?:only |all |the |every |what |"
    r"both )*(?:is given|"
    r"conditions?|requirements?|information|data)(?: (?:in|of) the (?:question|problem))?\W*$|"
    r"\W*(?:i(?: have|['’]ve)? (?:\w+ )?(?:double-)?checked (?:this|it|that)(?: twice)?(?:,? and it (?:stands|holds|"
    r"is right))?|"
    r"(?:also |it also |this )?fits the (?:given )?(?:data|question))\W*$|"
    r"\W*(?:(?:and |but )?(?:it|this|that|which)? ?(?:cannot|can't|can not) be (?:simplified|"
    r"reduced)(?: any)?(?: further)?|"
    r"(?:no other|this is the only|it is the only) (?:value|number|solution)(?: is)? possible(?: value)?|"
    r"this is the only possible (?:value|solution|answer)|actually, it is that simple|"
    r"(?:(?:and |so |thus |hence |therefore )?(?:the )?(?:claim|result|answer|statement) follows)|"
    r"(?:it|this|that) is (?:an? |the )?(?:even|odd|prime|composite|positive|negative|whole|natural|integer|rational|"
    r"irrational|"
    r"square|perfect|round|exact|single|smallest|largest|least|greatest|only|two-digit|three-digit|[ ])*"
    r"(?:number|integer|prime|value|square|cube|fraction|even|odd|positive|negative)|"
    r"the (?:key|trick|point|idea) (?:is|was|here)\b.*)\W*$|"
    r"\W*(?:die (?:probe|rechnung) (?:geht auf|stimmt)|la (?:verifica|prova) torna|la (?:comprobación|"
    r"vérification) \w+|"
    r"das war zu zeigen|c'est la seule (?:valeur|solution|réponse) possible|quod erat demonstrandum|"
    r"le compte est bon)\W*$",
    re.IGNORECASE,
)
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|textit|mbox)\s*\{([^{}]*)\}")
_WORD = re.compile(r"(?<!\\)[A-Za-z]{3,}(?:['’][a-z]+)?")
_CLAUSE = re.compile(r"[\s$*)}\]]*,\s*(?:(?:and|but|then|which|so)\b[\s,]*)?(?P<said>[A-Za-z].*)", re.DOTALL)
_REASONS = re.compile(
    r"(?:because|since|as|for|so|i\.e|that is|when|where|while|if|with|given|or|using|by|in|of|per|at|on|to|from|is|"
    r"are|was|"
    r"were|equals|gives|rounded|namely|meaning)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}")
_EXPLAINING = frozenset(
    "could should might alternatively manually appears appear relation relations definition definitions assume assumed "
    "confused compass straightedge sense resolvent arises impossible monotonically try recognized possibility "
    "labelings decomposition estimate beforehand wondering earlier version".split()
)
"""Words of explanations that the statement of an answer would not hold."""
_MISTAKES = frozenset("error errors mistake instead otherwise wrong forgot forgotten forget forgetting would".split())
"""Words of explanations that say how one would go wrong."""
_DENIES = re.compile(
    r"^\W*(?:(?:and|but|so|then|yet|in fact|actually|however)\b\W*)*(?:it|that|this|which|(?:the|"
    r"my) (?:\w+ )?(?:answer|result|"
    r"value|solution))(?:['’]s| is| was| are| can| could| does| did| will| would)?\s?(?:not|n['’]t|never|no)\b",
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
        if not (_REASONS.match(said) or _understood(said, question, reference, False)):
            return said.strip()
    explains, doubt = False, None
    for before, piece in pairwise(pieces):
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


def _understood(sentence: str, question: str, reference: str, explains: bool) -> bool:
    known = f"{question} {reference}"
    if courteous(sentence) or _CLOSES.match(sentence) or closing(sentence, question) or harmless_words(sentence, known):
        return True
    if _DENIES.match(sentence) or "?" in sentence:
        return False
    cue = _EXPLAINS.match(sentence)
    text = FORMULA.sub(" ", _TEXT.sub(r" \1 ", sentence if cue is None else sentence[cue.end() :]))
    words = _WORD.findall(text)
    if all(known_words(word, known) for word in words):
        return cue is not None or len(words) > 1 or _FIGURE.search(sentence) is not None
    if not (explains or cue or _FIGURE.search(sentence)):
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
