"""Puzzles that are answered in a line, by rules: how each family is drawn, told and solved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.tasks.procedural.buggy_tables import buggy_tables
from assay.tasks.procedural.riddles import opened
from assay.tasks.procedural.words import WORDS
from assay.verify.puzzles.lines import chain_value, cousins, open_brackets

Line = tuple[str, dict[str, Any], str]
"""What is told, the data that rules go by, and a solution."""
DICE = (4, 6, 8, 12, 20)


def math_path(rng: np.random.Generator, level: int) -> Line:
    """2 + level digits in a chain, of which about two thirds are hidden."""
    while True:
        digits = rng.integers(0, 10, size=level + 2).tolist()
        operators = rng.choice(list("+-*/%"), size=level + 1, p=(0.3, 0.3, 0.3, 0.05, 0.05)).tolist()
        parts = [str(digits[0])]
        for operator, digit in zip(operators, digits[1:], strict=True):
            parts += [operator, str(digit)]
        value = chain_value("".join(parts))
        hidden = rng.random(level + 2) < 2 / 3
        if value is not None and value.denominator == 1 and abs(value) < 1000 and hidden.any():
            break
    shown = ["?" if i % 2 == 0 and hidden[i // 2] else x for i, x in enumerate(parts)]
    equation = f"{' '.join(shown)} = {value}"
    told = (
        "Put a digit, 0 to 9, in place of each ? so that this is true; *, / (of fractions) and % (the remainder) go "
        f"before + and -: {equation}"
    )
    return told, {"equation": equation}, f"{' '.join(parts)} = {value}"


def mathador(rng: np.random.Generator, level: int) -> Line:
    """Numbers thrown with dice, of which all but one or none are combined; 3 + level // 2 of them."""
    count = 3 + level // 2
    numbers = [int(rng.integers(1, DICE[i % len(DICE)] + 1)) for i in range(count)]
    used = [numbers[i] for i in rng.permutation(count)[: count - int(rng.integers(2))].tolist()]
    text, value = str(used[0]), used[0]
    for number in used[1:]:
        usable = ["+", *("-" * (value > number)), *("*" * (value * number < 1000)), *("/" * (value % number == 0))]
        operator = usable[int(rng.integers(len(usable)))]
        text = f"({text} {operator} {number})"
        value = {"+": value + number, "-": value - number, "*": value * number, "/": value // number}[operator]
    told = (
        f"Write an expression that comes to {value} from {', '.join(map(str, numbers))}, each of which may be used "
        "once, with +, -, *, / and parentheses."
    )
    return told, {"numbers": numbers, "target": value}, text


def space_reasoning_tree(rng: np.random.Generator, level: int) -> Line:
    """A family tree of 6 + 4 level names and five generations; who has which children is told in any order."""
    names = [WORDS[i] for i in rng.permutation(len(WORDS))[: 6 + 4 * level].tolist()]
    depth = dict(zip(names[:5], (0, 1, 1, 2, 2), strict=True))
    children = {names[0]: names[1:3], names[1]: [names[3]], names[2]: [names[4]]}
    for name in names[5:]:
        able = [x for x in depth if depth[x] < 4 and len(children.get(x, ())) < 4]
        parent = able[int(rng.integers(len(able)))]
        children.setdefault(parent, []).append(name)
        depth[name] = depth[parent] + 1
    asked = [x for x in names if depth[x] > 1 and cousins(children, x)]
    of = asked[int(rng.integers(len(asked)))]
    parents = list(children)
    lines = [f"{parents[i]} has the children {', '.join(children[parents[i]])}." for i in rng.permutation(len(parents))]
    told = (
        f"{' '.join(lines)} Who has no children here has none. Cousins have one grandparent in common, but not a "
        f"parent. Name all cousins of {of}."
    )
    return told, {"children": children, "of": of}, ", ".join(sorted(cousins(children, of)))


def dyck_reasoning_errors(rng: np.random.Generator, level: int) -> Line:
    """Thoughts on a sequence of brackets, of which up to three name another stack than is there."""
    text, _ = opened(rng, 3 + 3 * level)
    stacks = [open_brackets(text[: i + 1]) for i in range(len(text))]
    wrong = sorted(rng.permutation(len(text))[: int(rng.integers(4))].tolist())
    for i in wrong:
        stack, other = stacks[i], "([{<"[int(rng.integers(4))]
        shorter = [stack[:-1]] if stack else []
        turned = [stack[:-1] + x for x in "([{<" if stack and x != stack[-1]]
        ways = [stack + other, *shorter, *turned]
        stacks[i] = ways[int(rng.integers(len(ways)))]
    thoughts = [f"Thought {i + 1}: {x}, open are {' '.join(stacks[i]) or 'none'}" for i, x in enumerate(text)]
    told = (
        f"Somebody reads the sequence of brackets {text} from left to right and says after each which are still open, "
        "the outermost first. Which thoughts are wrong, going by the sequence and not by what was said before? Give "
        "their numbers, or 0 if none is.\n" + "\n".join(thoughts)
    )
    return told, {"sequence": text, "stacks": stacks}, ", ".join(str(i + 1) for i in wrong) or "0"


LINES: dict[str, Callable[[np.random.Generator, int], Line]] = {
    "math_path": math_path, "mathador": mathador, "space_reasoning_tree": space_reasoning_tree,
    "dyck_reasoning_errors": dyck_reasoning_errors, "buggy_tables": buggy_tables,
}  # fmt: skip
"""By family, from a generator and a level, 1 or more."""
