"""The answer is one of the references, as it stands or after normalising."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.registry import part
from assay.types import Task, Verdict
from assay.verify.answer.extract import RULES, Fallback, Rule, extract
from assay.verify.answer.place import Marked
from assay.verify.text.exact import shorten

Normalise = Literal["none", "space", "case", "squad"]


@part("verify", "text")
@dataclass(frozen=True, slots=True)
class Text(Marked):
    """Right iff the answer equals one of the references after normalising both.

    ``task.reference`` is a text or a list of texts. ``normalise``, each including those before it:

    - ``none``: Unicode canonical composition (NFC), nothing else;
    - ``space``: compatibility forms (NFKC), runs of white space are one blank, none at the ends;
    - ``case``: case is folded;
    - ``squad``: punctuation and the English articles "a", "an", "the" are removed, as SQuAD is scored (arXiv
      1606.05250), with the punctuation of any script.

    Args:
        normalise: what is not told apart.
        contains: right also where a reference stands inside the answer as whole words.
        rules, fallback: where the answer stands, see :func:`~assay.verify.answer.extract.extract`.
    """

    normalise: Normalise = "squad"
    contains: bool = False
    rules: tuple[Rule, ...] = RULES
    fallback: Fallback = "line"

    def __call__(self, task: Task, response: str) -> Verdict:
        accepted = [normalised(r, self.normalise) for r in references(task.reference)]
        if not any(accepted):
            return Verdict.abstain(f"task {task.id} has no reference to compare with")
        answer = extract(response, self.rules, self.fallback)
        if answer is None:
            return Verdict.wrong("no final answer found")
        given = normalised(answer, self.normalise)
        if given in accepted or (self.contains and any(r and _inside(r, given) for r in accepted)):
            return Verdict.right()
        return Verdict.wrong(f"answered {shorten(answer)!r}, expected {shorten(references(task.reference)[0])!r}")


def references(reference: Any) -> list[str]:
    """Return what is accepted as a list of texts; of a mapping, its ``answers``."""
    if isinstance(reference, dict):
        reference = reference.get("answers", reference.get("answer"))
    if isinstance(reference, str) or not isinstance(reference, Sequence):
        reference = [reference]
    return [str(r) for r in reference if r is not None]


_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalised(text: str, how: Normalise = "squad") -> str:
    """Return ``text`` without what ``how`` says does not change an answer, see :class:`Text`.

    A text of articles or of punctuation alone ("A", "?!") is kept, so that it does not equal every other such text.
    """
    if how == "none":
        return unicodedata.normalize("NFC", text)
    text = unicodedata.normalize("NFKC", text)
    if how in ("case", "squad"):
        text = unicodedata.normalize("NFKC", text.casefold())
    if how == "squad":
        # Punctuation goes without leaving a blank, as in SQuAD: "don't" is "dont". Symbols such as + and $ go only
        # where they are ASCII punctuation, as there.
        bare = "".join(c for c in text if not (unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~"))
        bare = " ".join(_ARTICLES.sub(" ", bare).split())
        if bare:
            return bare
    return " ".join(text.split())


def _inside(wanted: str, text: str) -> bool:
    """Say whether ``wanted`` stands in ``text`` as whole words; scripts without blanks have no ends of words."""
    at = text.find(wanted)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(wanted) : at + len(wanted) + 1]
        if not (_joined(before, wanted[0]) or _joined(wanted[-1], after)):
            return True
        at = text.find(wanted, at + len(wanted))
    return False


def _joined(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum() and not (is_cjk(left) or is_cjk(right))


_CJK = re.compile(
    "[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff]"
)


def is_cjk(character: str) -> bool:
    """Say whether ``character`` is of a script written without blanks: Chinese, Japanese, Thai, Lao, Burmese, Khmer."""
    return bool(_CJK.match(character))


def tokens(text: str) -> list[str]:
    """Return the words of a text; in scripts written without blanks each character is one."""
    return _CJK.sub(lambda m: f" {m.group()} ", text).split()
