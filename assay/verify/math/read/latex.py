# ruff: noqa: SIM905  (words in a row read better than a list of quoted words)
r"""One spelling for what LaTeX, Unicode and plain text write differently.

:func:`plain` keeps ``\frac``, ``\sqrt`` and ``\binom`` with braced arguments, and writes everything else as single
characters or words: ``*``, ``/``, ``<=``, ``π``, ``∞``, ``∪``, ``⦃`` and ``⦄`` for set braces, ``\n`` between rows.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from assay.verify.math.words.numerals import western_digits

_GREEK = (
    "alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta θ iota ι kappa "
    "κ lambda λ mu μ nu ν xi ξ rho ρ varrho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω "
    "Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω pi π"
).split()
FUNCTIONS = (
    "sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan arccot arcsec arccsc asin acos atan ln "
    "log lg cis exp abs floor ceil gcd lcm min max sgn sign Re Im sqrt cbrt binom"
).split()

_COMMANDS = {f"\\{name}": letter for name, letter in zip(_GREEK[::2], _GREEK[1::2], strict=True)}
_COMMANDS |= {f"\\{name}": f" {name} " for name in FUNCTIONS if name not in ("sqrt", "binom")}
_COMMANDS |= {
    **dict.fromkeys([r"\left", r"\right", r"\big", r"\Big", r"\bigg", r"\Bigg", r"\bigl", r"\bigr", r"\Bigl", r"\Bigr",
                     r"\displaystyle", r"\textstyle", r"\limits", r"\!", r"\rm", r"\bf", r"\it", r"\middle", r"\mathop",
                     r"\nolimits", r"\scriptstyle", r"\hline", r"\centering", r"\normalsize"], ""),
    **dict.fromkeys([r"\,", r"\;", r"\:", r"\>", r"\ ", r"\quad", r"\qquad", r"\enspace", r"\hfill"], " "),
    r"\thinspace": " ",
    **dict.fromkeys([r"\(", r"\)", r"\[", r"\]"], " "),
    **dict.fromkeys([r"\cdot", r"\times", r"\ast", r"\star", r"\bullet"], "*"),
    **dict.fromkeys([r"\dfrac", r"\tfrac", r"\cfrac", r"\frac"], r"\frac"),
    **dict.fromkeys([r"\dbinom", r"\tbinom", r"\binom"], r"\binom"),
    **dict.fromkeys([r"\le", r"\leq", r"\leqslant", r"\leqq"], "<="),
    **dict.fromkeys([r"\ge", r"\geq", r"\geqslant", r"\geqq"], ">="),
    **dict.fromkeys([r"\ne", r"\neq"], "!="),
    **dict.fromkeys([r"\approx", r"\simeq", r"\sim", r"\thickapprox", r"\cong", r"\doteq"], "≈"),
    **dict.fromkeys([r"\Rightarrow", r"\mapsto", r"\implies", r"\Longrightarrow", r"\therefore", r"\rightarrow", r"\to",
                     r"\longrightarrow"], "⇒"),
    **dict.fromkeys([r"\setminus", r"\smallsetminus", r"\backslash"], "∖"),
    **dict.fromkeys([r"\mid", r"\vert", r"\lvert", r"\rvert", r"\|", r"\Vert", r"\lVert", r"\rVert"], "|"),
    **dict.fromkeys([r"\varnothing", r"\emptyset"], "∅"),
    **dict.fromkeys([r"\dots", r"\ldots", r"\cdots", r"\dotsc", r"\dotsb"], "..."),
    **dict.fromkeys([r"\circ", r"\degree", r"\textdegree"], "°"),
    **dict.fromkeys([r"\lor", r"\vee"], " or "), **dict.fromkeys([r"\land", r"\wedge"], " and "),
    **dict.fromkeys([r"\iff", r"\Leftrightarrow", r"\equiv"], "="),
    r"\div": "/", r"\lt": "<", r"\gt": ">", r"\in": "∈", r"\cup": "∪", r"\bigcup": "∪", r"\cap": "∩", r"\pm": "±",
    r"\mp": "∓", r"\infty": "∞", r"\infin": "∞", r"\{": "⦃", r"\}": "⦄", r"\lbrace": "⦃", r"\rbrace": "⦄",
    r"\langle": "⟨", r"\rangle": "⟩", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lceil": "⌈", r"\rceil": "⌉",
    r"\lbrack": "[", r"\rbrack": "]", r"\lparen": "(", r"\rparen": ")", r"\colon": ":", r"\ell": "l",
    r"\R": "ℝ", r"\Z": "ℤ", r"\N": "ℕ", r"\Q": "ℚ", r"\C": "ℂ", r"\reals": "ℝ",
    r"\%": "%", r"\$": "$", r"\#": "#", r"\&": "&", r"\_": "_", r"\\": "\n", r"\newline": "\n", r"\cr": "\n",
    r"\euro": "€", r"\pounds": "£", r"\yen": "¥", r"\cent": "¢", r"\imath": "i", r"\jmath": "j", r"\prime": "'",
    r"\angle": "∠", r"\triangle": "△", r"\bmod": " mod ", r"\mod": " mod ", r"\quotient": "/", r"\over": "/",
    r"\perp": "⊥", r"\parallel": "∥", r"\neg": "¬", r"\forall": "∀", r"\exists": "∃", r"\notin": "∉",
    r"\checkmark": "✓",
}  # fmt: skip
_COMMAND = re.compile(r"\\(?:[a-zA-Z]+|.)", re.DOTALL)

_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("−–—‒﹣－‐‑", "-"),
        **dict.fromkeys("×·∙⋅•✕∗✖", "*"),
        **dict.fromkeys("÷∕", "/"),
        **dict.fromkeys("’‘ʼ′´", "'"),
        **dict.fromkeys("“”„«»", '"'),
        **dict.fromkeys("\u00a0\u2009\u202f\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u200a\u3000\t", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\u00ad", ""),
        **dict.fromkeys("→⟶⟹∴↦➡➜➔➤", "⇒"),
        **dict.fromkeys("≃≅∼≒", "≈"),
        **dict.fromkeys("≡≣", "="),
        "ᵀ": "^T", "∨": " or ", "∧": " and ", "⊤": "T",
        **dict.fromkeys("∣｜", "|"),
        **dict.fromkeys("㎝", "cm"),
        "≤": "<=", "⩽": "<=", "≦": "<=", "≥": ">=", "⩾": ">=", "≧": ">=", "≠": "!=", "⁄": "/", "º": "°", "˚": "°",
        "∶": ":", "\N{ANGSTROM SIGN}": "Å", "〈": "⟨", "〉": "⟩", "《": "⟨", "》": "⟩", "⟹": "⇒", "…": "...", "。": ".",
        "，": ",", "、": ",", "；": ";", "：": ":", "（": "(", "）": ")", "［": "[", "］": "]", "｛": "{", "｝": "}",
        "％": "%", "＝": "=", "＋": "+", "＜": "<", "＞": ">", "／": "/", "＊": "*", "＾": "^", "𝜋": "π", "ϕ": "φ",
        "¥": "¥", "￥": "¥", "＄": "$", "℃": "°C", "℉": "°F", "µ": "μ", "ⅈ": "i", "𝑖": "i", "⟌": "", "⎯": "-",
    }
)  # fmt: skip
_VULGAR = re.compile("[¼-¾⅐-⅞↉]")
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ᐟⁿˣʸᵏᵃᵇᵗᵐⁱᶻ", "₀₁₂₃₄₅₆₇₈₉₊₋ₙₖᵢⱼₓₐₑₘₜ"
_SUPERSCRIPT = re.compile(f"[{_RAISED}]+")
_SUBSCRIPT = re.compile(f"[{_LOWERED}]+")
_TO_PLAIN = str.maketrans(_RAISED + _LOWERED, "0123456789+-()/nxykabtmiz" + "0123456789+-nkijxaemt")
_OVERLINED = re.compile("((?:[0-9][\u0304\u0305])+)")

_WRAPPER = re.compile(
    r"\\(text|textbf|textit|textrm|textnormal|textsf|texttt|mbox|hbox|mathrm|mathbf|mathit|mathsf|boldsymbol|bm|vec|hat"
    r"|operatorname\*?|boxed|fbox|overrightarrow|emph|underline|mathbb|Bbb|mathcal|ensuremath|displaylines|pmb"
    r"|color|textcolor|unit|si|SI|qty|num|ce|phantom|hspace|vspace|label|tag)\s?\{((?:[^{}]|\{[^{}]*\})*)\}"
)
_ROW_SPACE = re.compile(r"\\\\\s?\[-?[0-9.]{1,6}\s?(?:pt|em|ex|mm|cm)\]")
_OVER = re.compile(r"\{([^{}\\]{1,80})\\over(?![a-z])([^{}\\]{1,80})\}")
_CHOOSE = re.compile(r"\{\s?([^{}\\]{1,40}?)\s?\\choose\s?([^{}\\]{1,40}?)\s?\}")
_COLOUR = re.compile(r"\s*\\(?:text)?color\s?\{[^{}]*\}\s?(?=\{)")
_SETS = {"R": "ℝ", "Z": "ℤ", "N": "ℕ", "Q": "ℚ", "C": "ℂ"}

UNIT_VECTORS = ("î", "ĵ", "k̂")
_BLACKBOARD = re.compile(r"\\(?:mathbb|Bbb)\s*([RZNQC])(?![a-zA-Z])")
_MATH_MODE = re.compile(r"(?<!\\)\$\$?((?:[^$\\]|\\.)*)(?<!\\)\$\$?(?![0-9])")
_DIGITS_BAR = re.compile(r"\\(?:overline|bar|dot|overset\{\s*-\s*\})\s?\{?\s?([0-9]+)\s?\}?")
# A dot on the first and on the last digit of what repeats.
_DOTTED = re.compile(r"⟦([0-9])⟧([0-9]{0,100})⟦([0-9])⟧")
_ACCENTED = re.compile(r"\\(?:over|bar|dot|under|widehat|tilde)|⟦")
_ACCENT = re.compile(r"\\(?:overline|bar|underline|widehat|tilde|overleftrightarrow)\s?\{([^{}]*)\}")
_GROUPED = re.compile(r"(?<=[0-9])(?:\{,\}|,?\\!\s?,?|,\\[,;:]|\{\\,\}|\\,)\s?(?=[0-9]{3}(?![0-9]))")
_ENVIRONMENT = re.compile(r"\\(begin|end)\s?\{([a-zA-Z]+\*?)\}(?:\{[clr| ]*\})?")
_SHORT_FRAC = re.compile(r"\\frac\s*([0-9a-zA-Z])\s*(?=[0-9a-zA-Z{\\])")
_SHORT_FRAC2 = re.compile(r"(\\frac\s?\{[^{}]*\})\s*([0-9a-zA-Z])")
_FRAC_SPACED = re.compile(r"\\frac\s+(?=\{)")
_PERCENT = re.compile(
    r"\s*\b(?:percents?|per cent|percentage points?|por ciento|por cento|per cento|pour ?cent|Prozent|"
    r"процент(?:а|ов)?|procent|yüzde|persen)\b",
    re.IGNORECASE,
)
# "R \\ {2}" in plain text: no command, but all reals without 2.
_SPACED_DIFFERENCE = re.compile(r"(?<![A-Za-z\\])[Rℝ] \\ (?=[\[{(])")
_PRIMES = re.compile(r"\^\s?\{\s?('{1,3}|\\circ)\s?\}|\^('{1,3})")
_SIMPLE = re.compile(r"[A-Za-z0-9 .,+*/()=<>:;'!?%-]*")


def _unwrap(match: re.Match[str]) -> str:
    name, content = match.groups()
    if name in ("mathbb", "Bbb"):
        return _SETS.get(content.strip(), content)
    if name in ("hat", "mathbf", "vec", "boldsymbol", "bm", "pmb"):
        letter = content.strip().removeprefix("\\imath") or "i"
        letter = "j" if letter == "\\jmath" else letter
        if letter in ("i", "j", "k"):
            return UNIT_VECTORS["ijk".index(letter)]
        return content
    if name in ("color", "textcolor", "phantom", "hspace", "vspace", "label", "tag"):
        return ""
    if name in ("boxed", "fbox", "emph", "ensuremath", "mathcal", "num"):
        return content
    if name.startswith("operatorname"):
        return f" {content} "
    # The blanks keep "5\text{cm}" from reading as a product of letters.
    return f" {content} " if len(content) > 1 or name in ("text", "mbox", "mathrm") else content


@functools.lru_cache(8192)
def plain(text: str) -> str:
    """Return ``text`` in the one spelling that :mod:`~assay.verify.math.read.reading` reads."""
    if _SIMPLE.fullmatch(text) and "**" not in text and "ent" not in text:
        return " ".join(text.split())
    if not text.isascii():
        text = _from_unicode(text)
    if " \\ " in text:
        text = _SPACED_DIFFERENCE.sub("ℝ∖", text)
    if "ent" in text or "ент" in text:
        text = _PERCENT.sub("%", text)
    if "$" in text:
        text = _MATH_MODE.sub(lambda m: f" {m[1]} ", text)
    if "\\" in text:
        text = _from_latex(text)
    elif "{,}" in text:
        text = text.replace("{,}", ",")
    if "**" in text or "__" in text or "`" in text:
        text = re.sub(r"(?<![0-9a-zA-Z)])\*\*|\*\*(?![0-9a-zA-Z(-])|__|`", "", text)
    return " ".join(text.split(" ")).strip() if "\n" in text else " ".join(text.split())


def _from_unicode(text: str) -> str:
    text = _VULGAR.sub(lambda m: " " + unicodedata.normalize("NFKC", m[0]) + " ", text)
    text = _SUPERSCRIPT.sub(lambda m: "^{" + m[0].translate(_TO_PLAIN) + "}", text)
    text = _SUBSCRIPT.sub(lambda m: "_{" + m[0].translate(_TO_PLAIN) + "}", text)
    text = _OVERLINED.sub(lambda m: "\\overline{" + re.sub("[^0-9]", "", m[0]) + "}", text)
    text = western_digits(text.translate(_CHARACTERS))
    # Compatibility forms (full width, mathematical alphabets), except where that loses a distinction kept above.
    text = "".join(c if c.isascii() or c in "ℝℤℕℚℂ∞≈" else unicodedata.normalize("NFKC", c) for c in text)
    return text.translate(_CHARACTERS)


def _from_latex(text: str) -> str:
    if "," in text or "\\!" in text:
        text = _GROUPED.sub(",", text)
    text = text.replace("{:}", ":")
    if "~" in text:
        text = text[:1] + text[1:].replace("~", " ")
    text = (
        text.replace("^{\\circ}", "°").replace("^\\circ", "°").replace("^{\\prime}", "'").replace("\\dfrac", "\\frac")
    )
    text = text.replace("\\tfrac", "\\frac").replace("\\cfrac", "\\frac")
    if "\\over" in text:
        text = _OVER.sub(r"\\frac{\1}{\2}", text)
    if "\\choose" in text:
        text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    if "color" in text and (tint := _COLOUR.match(text)) is not None and one_group(text[tint.end() :]):
        text = text[tint.end() + 1 : text.rindex("}")]
    for _ in range(4):
        text, times = _WRAPPER.subn(_unwrap, text)
        if not times:
            break
    if "bb" in text:
        text = _BLACKBOARD.sub(lambda m: _SETS[m[1]], text)
    if "\\begin" in text:
        text = _ROW_SPACE.sub(r"\\\\", text)
        text = _ENVIRONMENT.sub(_bracket, text)
    if _ACCENTED.search(text) is not None:
        text = _DIGITS_BAR.sub(r"⟦\1⟧", text)
        if "⟦" in text:
            text = _DOTTED.sub(r"⟦\1\2\3⟧", text)
        text = _ACCENT.sub(r"\1", text)
    if "\\frac" in text:
        text = _SHORT_FRAC.sub(r"\\frac{\1}", text)
        text = _FRAC_SPACED.sub(r"\\frac", text)
        text = _SHORT_FRAC2.sub(r"\1{\2}", text)
    text = _COMMAND.sub(lambda m: _COMMANDS.get(m[0], m[0]), text).replace("°C", " °C").replace("°F", " °F")
    return _PRIMES.sub(lambda m: m[1] or m[2], text) if "'" in text else text


def one_group(text: str) -> bool:
    """Say whether the brace that ``text`` begins with closes at its end."""
    depth = 0
    for place, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if depth == 0:
            return not text[place + 1 :].strip()
    return False


def _bracket(match: re.Match[str]) -> str:
    which, name = match.groups()
    if name.rstrip("*") in ("pmatrix", "bmatrix", "matrix", "smallmatrix", "array", "Bmatrix"):
        return "⟪" if which == "begin" else "⟫"
    if name.rstrip("*") == "vmatrix":
        return "|⟪" if which == "begin" else "⟫|"
    return " "
