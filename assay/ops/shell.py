"""What a shell command is about: its syntax tree as a list of words, and how far two of them are apart."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Sequence
from typing import Any

NO_OPS = frozenset({":", "true", "pwd", "clear", "echo"})
CONTROL = frozenset({"pipeline", "list", "subshell", "function_definition", "do_group", "command_substitution"})
"""Kinds of nodes that say how commands are put together, beside those that end with ``_statement``."""
ARGUMENTS = frozenset({"word", "string", "raw_string", "number", "ansi_c_string", "concatenation", "simple_expansion"})
_JOINED = {"|": "pipeline", "|&": "pipeline", "&&": "list", "||": "list", "(": "subshell"}
_PLAIN = re.compile(r"\s+")


@functools.lru_cache(maxsize=65536)
def signature(text: str) -> tuple[str, ...]:
    """Return what a text of bash does: ``K:`` kinds of control, ``V:`` verbs, ``W:`` arguments, in their order.

    A verb that does nothing to speak of, without arguments, is ``V::noop``, and so is a text without a command. The
    syntax is read by tree-sitter, where it is installed (``assay[shell]``); else, and where it finds no command, words
    are split as by a shell, and pipes and lists are told by their signs.
    """
    parser = _parser()
    found: list[str] = []
    if parser is not None:
        _walk(parser.parse(text.encode("utf-8", "surrogatepass")).root_node, found)
    if not any(one.startswith("V:") for one in found):
        found = split_signature(text)
    return tuple(found) or ("V::noop",)


@functools.cache
def _parser() -> Any:
    """The parser of bash, ``None`` where it is not installed."""
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _walk(root: Any, found: list[str]) -> None:
    # Not by recursion: a text may be nested as deep as it likes.
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "command":
            found += _command(node)
            # What is run in its arguments counts as well.
            waiting += [one for child in node.children for one in _inside(child)][::-1]
            continue
        if node.type in CONTROL or node.type.endswith("_statement"):
            found.append(f"K:{node.type}")
        elif node.type in ARGUMENTS:
            found.append(f"W:{_text(node)}")
            continue
        waiting += node.children[::-1]


def _command(node: Any) -> list[str]:
    name = node.child_by_field_name("name")
    words = [_text(one) for one in node.children if one.type in ARGUMENTS]
    verb = _text(name).lower() if name is not None else ""
    return _said(verb, words)


def _said(verb: str, words: Sequence[str]) -> list[str]:
    if not verb or (verb in NO_OPS and not words):
        return ["V::noop"]
    return [f"V:{verb}", *(f"W:{word}" for word in words)]


def _inside(node: Any) -> list[Any]:
    """Return the outermost substitutions of commands below a node."""
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        if one.type in ("command_substitution", "process_substitution"):
            found.append(one)
        else:
            waiting += one.children
    return found


def _text(node: Any) -> str:
    text = node.text.decode("utf-8", "replace")
    return text[1:-1] if node.type in ("string", "raw_string") and len(text) >= 2 else text


def split_signature(text: str) -> list[str]:
    """Return the signature of a text by its words alone."""
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars="|&;()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        words = _PLAIN.split(text.strip())
    found: list[str] = []
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in _JOINED and not set(word) <= set("|&;()"):
            command.append(word)
            continue
        if command:
            found += _said(command[0].lower(), command[1:])
            command = []
        kind = _JOINED.get(word, "")
        found += [f"K:{kind}"] if kind else []
    return found


def distance(one: Sequence[str], other: Sequence[str]) -> float:
    """Return Levenshtein's distance of two signatures over the length of the longer one, in [0, 1]."""
    if not one and not other:
        return 0.0
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1] / max(len(one), len(other))


def clusters(signatures: Sequence[Sequence[str]], size: float) -> list[int]:
    """Return the cluster of each signature: single linkage into ceil(m / size) of them, at most m, or fewer.

    All that are no further apart than some distance are joined, the least one that leaves no more clusters than that:
    so what is alike is always together, and the order of signatures plays no part. Clusters are numbered in the order
    of their first members.
    """
    m = len(signatures)
    wanted = min(max(-int(-m // size), 1), m)
    group = list(range(m))
    pairs = sorted((distance(signatures[i], signatures[j]), i, j) for i in range(m) for j in range(i + 1, m))
    left, reach = m, 0.0
    for far, i, j in pairs:
        if left <= wanted and far > reach:
            break
        reach = far
        if group[i] != group[j]:
            keep, drop = sorted((group[i], group[j]))
            group = [keep if g == drop else g for g in group]
            left -= 1
    number = {g: k for k, g in enumerate(dict.fromkeys(group))}
    return [number[g] for g in group]
