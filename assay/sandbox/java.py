"""What a Java source calls itself: its file has the name of the public class, a run that of the one with ``main``."""

from __future__ import annotations

import re

# Comments and texts first, so that nothing in them is taken for code; what is not closed goes to the end, so that the
# whole is read in linear time.
_TOKENS = re.compile(
    r"//[^\n]*|/\*(?:.*?\*/|.*)"
    r'|"""(?:.*?"""|.*)'
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'(?:\\.|[^'\\\n])*'?"
    r"|(?P<brace>[{}])"
    r"|\bpackage\s+(?P<package>[\w.]+)\s*;"
    r"|(?P<public>\bpublic\s+(?:(?:static|final|abstract|sealed|strictfp)\s+)*)?"
    r"\b(?:class|interface|enum|record)\s+(?P<name>[A-Za-z_$][\w$]*)"
    r"|\bvoid\s+(?P<main>main)\s*\(",
    re.DOTALL,
)


def names(source: str) -> tuple[str, str]:
    """Return the name of the file of ``source``, without its suffix, and of its class with ``main``."""
    depth, package, public, current, entry = 0, "", "", "", ""
    for token in _TOKENS.finditer(source):
        if token["brace"]:
            depth = max(0, depth + (1 if token["brace"] == "{" else -1))
        elif token["package"] and not depth:
            package = f"{token['package']}."
        elif token["name"] and not depth:
            current = token["name"]
            public = public or (current if token["public"] else "")
        elif token["main"] and depth == 1:
            entry = entry or current
    stem = public or entry or "Main"
    return stem, package + (entry or stem)
