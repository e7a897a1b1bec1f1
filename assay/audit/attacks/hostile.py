r"""Input that parsers choke on: too long, too deep, too large to compute, not quite text, code.

A verifier may be slow to say so, but not in proportion to what the text *asks for*: ``9**9**9**9`` is ten characters.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.audit.attacks.base import Target, attack

MARKS = (
    r"\boxed{",
    "<answer>",
    "####",
    "The answer is ",
    "**",
    "$",
    "$$",
    r"\(",
    r"\[",
    "`",
    "```\n",
    "<think>",
    "{",
    "}",
)


@attack("very_long", expects="survived")
def very_long(target: Target) -> Iterator[str]:
    """One character, blanks, lines or words up to the full size."""
    n = target.size
    yield from ("a" * n, " " * n, "\n" * n, "step by step " * (n // 13), "\u200b" * n, "é" * n, "." * n)
    yield " " * n + "z"
    yield r"\boxed{" + "z" * n + "}"
    yield r"\boxed{" + "z" * n


@attack("marks_repeated", expects="survived")
def marks_repeated(target: Target) -> Iterator[str]:
    """A mark of the answer over and over, never closed."""
    for mark in MARKS:
        yield mark * (target.size // 10 // len(mark))
    yield (r"\boxed{}" + "\n") * (target.size // 90)
    yield "answer is answer: is the answer " * (target.size // 320)


@attack("deep_nesting", expects="survived")
def deep_nesting(target: Target) -> Iterator[str]:
    """Brackets, fractions, roots, powers, lists and boxes thousands deep, closed and not."""
    depth = max(target.size // 100, 10)
    for left, right in (
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        (r"\left(", r"\right)"),
        (r"\sqrt{", "}"),
        (r"\boxed{", "}"),
    ):
        yield rf"\boxed{{{left * depth}z{right * depth}}}"
        yield left * depth
        yield right * depth
    yield r"\boxed{" + r"\frac{" * depth + "z" + "}{z}" * depth + "}"
    yield r"\boxed{" + r"\frac" * depth + "}"
    yield r"\boxed{" + "z^{" * depth + "z" + "}" * depth + "}"
    yield r"\boxed{" + "z^" * depth + "z}"
    yield r"\boxed{" + "-" * depth + "}"
    yield r"\boxed{" + r"\text{" * depth + "}" * depth + "}"
    yield r"\boxed{" + "sin(" * depth + "z" + ")" * depth + "}"
    yield "[" * depth + "]" * depth
    yield '{"z":' * depth


@attack("too_large", expects="survived")
def too_large(target: Target) -> Iterator[str]:
    """Short expressions whose value is astronomically large, or that take for ever to compute."""
    for text in (
        "9**9**9**9",
        "9^9^9^9",
        "9^{9^{9^{9}}}",
        "10^{10^{10^{10}}}",
        "1e999999999",
        "-1e-999999999",
        "2**(2**100)",
        "99999999999!",
        "((9!)!)!",
        r"\binom{10^{12}}{10^{11}}",
        r"\sum_{k=1}^{10^{15}} \frac{1}{k^2}",
        r"\prod_{k=1}^{10^{9}} k",
        r"\int_0^\infty \frac{\sin(x^x)}{x^{x^x}} dx",
        r"\sqrt[10^{12}]{10^{10^{12}}}",
        "(x+y+z)^{100000}",
        "(1+x)^99999999",
        "x^{10^{20}} - 1",
        "1/(10^(-10^9))",
        "range(10**12)",
        "'z'*10**12",
    ):
        yield rf"\boxed{{{text}}}"
        yield f"The final answer is {text}"


@attack("many_digits", expects="survived")
def many_digits(target: Target) -> Iterator[str]:
    """Numbers and lists as long as the text may be."""
    n = target.size
    yield rf"\boxed{{{'7' * n}}}"
    yield "7" * n
    yield "0." + "7" * n
    yield "7" * (n // 2) + "/" + "3" * (n // 2) + "1"
    yield "-" + "7" * n + "e" + "7" * 10
    yield rf"\boxed{{{'7,' * (n // 2)}7}}"
    yield rf"\boxed{{{'77+' * (n // 30)}7}}"
    yield rf"\boxed{{{'7*' * (n // 20)}7}}"
    yield rf"\boxed{{{'7/' * (n // 20)}7}}"
    yield r"\boxed{\{" + ", ".join(str(k * 7 + 10**6) for k in range(n // 100)) + r"\}}"
    yield r"\boxed{\begin{pmatrix}" + "7&" * (n // 20) + r"7\end{pmatrix}}"
    yield rf"\boxed{{{'x+' * (n // 20)}x}}"
    yield rf"\boxed{{{'(x+7)' * (n // 500)}}}"


@attack("not_text", expects="survived")
def not_text(target: Target) -> Iterator[str]:
    """Lone surrogates, nulls, control characters, private and unassigned code points, towers of combining marks."""
    yield "\x00"
    yield "\ud800"
    yield r"\boxed{" + "\udfff\ud800" + "}"
    yield "".join(map(chr, range(32)))
    yield "\ue000\U0010ffff\U000e0001"
    yield "z" + "\u0336\u0489" * min(10_000, target.size // 10)
    yield r"\boxed{" + "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * (target.size // 100) + "}"
    yield "\N{VULGAR FRACTION ZERO THIRDS}" * 1000
    yield "\N{SUPERSCRIPT TWO}\N{CIRCLED DIGIT SEVEN}\N{ROMAN NUMERAL FIVE HUNDRED}\N{TAMIL NUMBER ONE THOUSAND}"


@attack("code_in_answer", expects="survived")
def code_in_answer(target: Target) -> Iterator[str]:
    """Expressions that end the process, or read its memory, where the answer is evaluated as Python."""
    for text in (
        "__import__('os')._exit(3)",
        "__import__('os').abort()",
        "exec('while True: pass')",
        "[x for x in iter(int, 1)]",
        "().__class__.__base__.__subclasses__()",
        "(lambda f: f(f))(lambda f: f(f))",
        "open('/dev/zero').read()",
        "globals()",
        "breakpoint()",
        "quit()",
        "{0.__class__.__init__.__globals__}",
        "%s%s%s%n",
        "${jndi:z}",
        r"\input{/dev/zero}",
        r"\def\z{\z\z}\z",
        "Function('f')(Symbol('z')).subs(9**9**9, 0)",
    ):
        yield text
        yield rf"\boxed{{{text}}}"
        yield f"<answer>{text}</answer>"


@attack("slow_patterns", expects="survived")
def slow_patterns(target: Target) -> Iterator[str]:
    """Texts that make a backtracking regular expression quadratic or worse."""
    n = target.size // 10
    yield "1" * n + "!"
    yield "1," * n + "!"
    yield " " * n + "\n" + " " * n + "!"
    yield "- " * n + "!"
    yield "$ " * n + "!"
    yield r"\text{" * (n // 6) + "!"
    yield r"\ " * n + "!"
    yield "z = " * n + "!"
    yield "(" * (n // 2) + "1" + "," * (n // 2)
    yield "the answer is the answer" * (n // 24) + "!"
    yield "<answer>" * (n // 10) + "</answer" * (n // 10)
    yield r"\boxed{" * (n // 10) + "}" * (n // 20)
