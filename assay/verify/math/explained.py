"""A paragraph behind the answer that only explains it: ``Explanation: The angles add up to ...``."""

from __future__ import annotations

import re

FAILED = re.compile(
    r"≠|\\neq?\b|!=|[?？✗✘❌]|\b(?:not?|n't|never|wrong|incorrect|fail\w*|but|however|error|mistake|instead|oops|"
    r"wait|so [a-z] =|"
    r"nicht|falsch|aber|pas|faux|mais|pero|non|ma|не|но|неверно)\b|n't\b|不|错|ない",
    re.IGNORECASE,
)
"""What tells that a check fails or an explanation speaks against the answer."""
_EXPLAINED = re.compile(
    r"\n[ \t]*\n[*_(\s]{0,4}(?:(?:short |brief |step-by-step )?(?:explanation|reason(?:ing)?|justification|rationale|"
    r"method|why)|erklärung|begründung|explicación|explication|spiegazione|explicação|uitleg|förklaring|"
    r"wyjaśnienie|vysvětlení|пояснение|объяснение|açıklama|giải thích|penjelasan|解释|解説|説明|理由|설명|풀이)"
    r"[*_]{0,3}\s?[:：][*_]{0,3}\s?(?P<said>[^\n]{1,400})\Z",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"[=≈→⇒]\W{0,3}[0-9]|\b(?:answers?|results?|therefore|thus|hence|actually|should|said|says|told|guess\w*|random\w*|"
    r"pick\w*|chose\w*|invent\w*|luck|copy|copied|sheet|board|neighbou?r|manual|internet|teacher|friend|dream\w*|"
    r"coin|dice|magic|monkey|options?|alternative\w*|also|or|may|might|could|all)\b",
    re.IGNORECASE,
)
"""What may state another answer in an explanation, or say where the answer is from."""


def explained(text: str) -> int | None:
    """Where a paragraph begins that ends the text and only explains the answer before it, ``None`` without one."""
    told = _EXPLAINED.search(text, max(len(text) - 1000, 0)) if "\n" in text else None
    if told is None or not text[: told.start()].strip():
        return None
    return None if FAILED.search(told["said"]) or _RESULT.search(told["said"]) else told.start()
