"""A response the way today's models write one: opening, working, a mark that says which part is the answer."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from assay.audit.generate.base import Draw, Form
from assay.audit.generate.spell import tex

OPENERS = (
    "",
    "Let's solve this step by step.\n\n",
    "### Step-by-step solution\n\n",
    "Great question! Let's break it down. 🧮\n\n",
    "**Solution**\n\n",
    "Okay — here is how I would do it.\n\n",
    "<think>\nI should set this up carefully, then double-check the arithmetic at the end.\n</think>\n\n",
    "To solve the problem, we identify what is given and what is asked.\n\n",
)

# name, template (@ as it is, % in math mode if needed), what it takes: any, box, inline (no newline or bar), plain
ENDINGS = (
    ("bold heading and box", "**Final Answer**\n\\[ \\boxed{@} \\]", "box"),
    ("heading and box", "## Final Answer\n\n$$\n\\boxed{@}\n$$\n", "box"),
    ("box and tick", "Therefore, the answer is $\\boxed{@}$. ✅", "box"),
    ("box with displaystyle", "Hence\n\n\\[\n\\boxed{\\displaystyle @}\n\\]", "box"),
    ("fbox", "So the answer is \\fbox{$@$}.", "box"),
    ("box and chatter", "The final answer is $\\boxed{@}$.\n\nLet me know if you'd like another method! 😊", "box"),
    ("box of text size", "Thus the final answer is \\( \\large\\boxed{@} \\).", "box"),
    ("therefore sign", "∴ the answer is %", "any"),
    ("Ans:", "Ans: %", "any"),
    ("Ans.", "Ans. %", "any"),
    ("dash", "Answer — %", "any"),
    ("thus", "The answer is thus %.", "any"),
    ("verified", "Let me verify: everything checks out when we go through it again ✔️.\n\n**Answer: %**", "inline"),
    ("fence", "```text\nAnswer: @\n```", "plain"),
    ("json fence", '```json\n{"answer": &}\n```', "inline"),
    ("json", '{"reasoning": "see the steps above", "answer": &}', "inline"),
    ("html", "<p>So the answer is <strong>@</strong>.</p>", "plain"),
    ("email", "So the answer is %.\n\nBest regards,\nTomás", "any"),
    ("table", "| Step | Outcome |\n|---|---|\n| Set-up | done |\n| **Final answer** | % |", "inline"),
    ("answer heading", "### Answer\n\n%", "any"),
    ("bold answer heading", "### Answer\n\n**%**", "inline"),
    ("conclusion", "### Conclusion\n\nPutting everything together, the answer is %.", "any"),
    ("qed", "In conclusion, the answer is %. ∎", "any"),
    ("display", "Hence the final answer is\n\n\\[\n@\n\\]\n", "box"),
    ("arrow", "⟹ **Answer:** %", "any"),
    ("tick", "✅ **Answer:** %", "any"),
    ("tldr", "**TL;DR:** the answer is %.", "any"),
    ("quote", "> **Final answer:** %", "inline"),
    ("bullet", "- **Final answer:** %", "inline"),
    ("underline", "Answer: $\\underline{\\underline{@}}$", "box"),
    ("our final answer", "Thus, our final answer is %, as required.", "inline"),
)


def math(text: str, form: str) -> str:
    """Return ``text`` as it stands in a sentence."""
    return f"${text}$" if form == "latex" else text


def _takes(need: str, text: str, form: str) -> bool:
    many = "\n" in text or "\\begin" in text
    if need == "box":
        return form != "text"
    if need == "inline":
        return not many and "|" not in text and "*" not in text
    if need == "plain":
        return form != "latex" and not many and not set(text) & set("<>&`*$\\")
    return "*" not in text or form == "latex"


def finish(rng: random.Random, text: str, form: str) -> tuple[str, str]:
    """Return the name of an ending, and the ending with ``text`` as the answer."""
    name, template, _ = rng.choice([e for e in ENDINGS if _takes(e[2], text, form)])
    inside = math(text, form)
    if template.endswith("%.") and text.endswith("."):
        template = template[:-1]
    parts = {"@": text, "%": inside, "&": json.dumps(text, ensure_ascii=False)}
    return name, "".join(parts.get(c, c) for c in template)


def respond(rng: random.Random, work: str, text: str, form: str) -> tuple[str, str]:
    """Return the name of an ending, and a whole response."""
    name, end = finish(rng, text, form)
    start = "Hi Priya,\n\n" if name == "email" else rng.choice(OPENERS)
    return name, f"{start}{work}\n\n{end}" if work else f"{start}{end}"


@dataclass(slots=True)
class Tale:
    """A :class:`Draw` whose answers are written out as whole responses with the same working."""

    rng: random.Random
    draw: Draw
    work: str = ""

    def right(self, kind: str, *texts: str, form: Form = "latex", value: Any = None) -> None:
        for text in texts:
            _, whole = respond(self.rng, self.work, text, form)
            self.draw.right(kind, whole, form="whole", value=value, said=text)

    def wrong(self, kind: str, value: Any, *texts: str, form: Form = "latex") -> None:
        for text in texts:
            _, whole = respond(self.rng, self.work, text, form)
            self.draw.wrong(kind, value, whole, form="whole", said=text)


def tale(rng: random.Random, question: str, reference: str, gold: Any, work: str = "") -> Tale:
    """Start a question whose reference is ``reference`` and whose exact answer is ``gold``."""
    return Tale(rng, Draw(question, reference, gold), work)


def plus(c: int) -> str:
    """Return ``+ 3`` or ``- 3``."""
    return f"+ {c}" if c >= 0 else f"- {-c}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with one right and two wrong answers in LaTeX, each of one value, for families about responses."""

    question: str
    reference: str
    gold: Any
    right: str
    wrong: str
    other: str
    wrong_value: Any
    other_value: Any
    work: str

    def draw(self) -> Draw:
        return Draw(self.question, self.reference, self.gold)


def problem(rng: random.Random, only: str = "") -> Problem:
    """Draw a problem: ``integer``, ``fraction`` or ``surd``."""
    kind = only or rng.choice(("integer", "integer", "fraction", "surd"))
    if kind == "integer":
        rows, seats, sold = rng.randint(12, 29), rng.randint(13, 38), rng.randint(15, 120)
        n = rows * seats - sold
        question = (
            f"A theatre has {rows} rows of {seats} seats. For tonight {sold} tickets are sold. "
            "How many seats are still free?"
        )
        work = f"The theatre has ${rows} \\times {seats}$ seats in total, and ${sold}$ of them are taken."
        w, o = rng.sample([n + 1, n - 1, n + 10, n - 10, n + sold, n + 100], 2)
        return Problem(question, str(n), Fraction(n), str(n), str(w), str(o), Fraction(w), Fraction(o), work)
    if kind == "fraction":
        while True:
            a, b = rng.randint(1, 9), rng.randint(3, 11)
            c, d = rng.randint(1, 9), rng.randint(3, 11)
            q = Fraction(a, b) + Fraction(c, d)
            if q.denominator > 6 and b != d:
                break
        question = f"Compute $\\frac{{{a}}}{{{b}}} + \\frac{{{c}}}{{{d}}}$. Give the exact value."
        work = f"Both fractions are brought to the common denominator ${b * d}$ and then added."
        x, y = rng.sample([1 / q, Fraction(a + c, b + d), -q, q + 1, q + Fraction(1, q.denominator)], 2)
        while x in (q, y) or y == q:
            x, y = rng.sample([1 / q, -q, q + 1, q + Fraction(1, q.denominator), q + 2], 2)
        return Problem(question, tex(q), q, tex(q), tex(x), tex(y), x, y, work)
    p, r = rng.randint(2, 9), rng.choice((2, 3, 5, 6, 7))
    question = f"A rectangle has the sides $\\sqrt{{{r}}}$ and ${p}$. What is its area? Give the exact value."
    work = "The area of a rectangle is the product of its two sides."
    w, o = rng.sample([p + 1, p + 2, 2 * p, p + 5], 2)
    right, wrong, other = (f"{k}\\sqrt{{{r}}}" for k in (p, w, o))
    return Problem(question, right, (p, r), right, wrong, other, (w, r), (o, r), work)
