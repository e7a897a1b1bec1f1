"""S-expressions, as PDDL and SMT-LIB are written in: nested lists of words, read without recursion."""

from __future__ import annotations

import re
from typing import Any

Node = Any
"""A word (str) or a list of nodes."""

_TOKEN = re.compile(r';[^\n]*|"(?:[^"]|"")*"|\|[^|\\]*\||[()]|[^\s()";|]+|["|\\]')


class SyntaxFault(ValueError):
    """The text is no sequence of S-expressions; the message says why."""


def parse(text: str, max_depth: int = 200, max_nodes: int = 2_000_000) -> list[Node]:
    """Return the expressions of ``text``; comments run from ``;`` to the end of the line. Linear time.

    Raises:
        SyntaxFault: unbalanced parentheses or quotes, deeper or more than allowed.
    """
    top: list[Node] = []
    stack = [top]
    for number, match in enumerate(_TOKEN.finditer(text)):
        token = match.group()
        if number > max_nodes:
            raise SyntaxFault(f"more than {max_nodes} words")
        if token == "(":
            inner: list[Node] = []
            stack[-1].append(inner)
            stack.append(inner)
            if len(stack) > max_depth:
                raise SyntaxFault(f"nested deeper than {max_depth}")
        elif token == ")":
            stack.pop()
            if not stack:
                raise SyntaxFault("a parenthesis is closed that was not opened")
        elif token[0] != ";":
            if token in ('"', "|", "\\"):
                raise SyntaxFault(f"a quote {token} is not closed")
            stack[-1].append(token)
    if len(stack) > 1:
        raise SyntaxFault("a parenthesis is not closed")
    return top


def show(node: Node) -> str:
    """Return ``node`` as text on one line; its depth is bounded by :func:`parse`."""
    return node if isinstance(node, str) else f"({' '.join(map(show, node))})"
