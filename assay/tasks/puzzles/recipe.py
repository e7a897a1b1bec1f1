"""What is wrong with the recipe that a challenge's container is built by, as far as its text tells."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from fnmatch import fnmatchcase

FAMILIES = ("ubuntu", "debian", "python", "alpine", "node", "php", "gcc", "openjdk", "golang", "ruby", "nginx", "httpd")
"""Images that a recipe may start from, by the last part of their names."""
INSTRUCTIONS = (
    *("FROM", "RUN", "CMD", "LABEL", "EXPOSE", "ENV", "ADD", "COPY", "ENTRYPOINT", "VOLUME", "USER", "WORKDIR", "ARG"),
    *("ONBUILD", "STOPSIGNAL", "HEALTHCHECK", "SHELL"),
)
KEPT_BACK = ("flag.sha256", "flag.txt.sha256", "checker*", "*checker.py", "check_flag*")
"""Files that must not be in the image: they tell, or judge, the flag."""
WEB = (".php", ".html", ".htm", ".jsp")
SERVERS = (
    "nginx",
    "apache",
    "httpd",
    "php",
    "node",
    "flask",
    "http.server",
    "gunicorn",
    "uvicorn",
    "tomcat",
)
_EXECUTABLE = re.compile(r"chmod\s+(?:-r\s+)?(?:[ugoa]*\+\w*x|[0-7]*[1357])")
_STRAY = re.compile(rf"\\[ \t]*\n(?=[ \t]*(?:#|\n|(?:{'|'.join(INSTRUCTIONS)})[ \t]))", re.IGNORECASE)


def repaired(recipe: str) -> str:
    """Return the recipe without line continuations that nothing is continued by: before an instruction, or a gap."""
    return _STRAY.sub("\n", recipe)


def issues(recipe: str, files: Mapping[str, bytes], server: bool = True) -> list[str]:
    """Return what is wrong with a recipe, each in a line; empty if it is valid.

    Args:
        recipe: in Docker's notation.
        files: of the challenge, by relative path.
        server: whether it offers a service; what only carries its flag needs neither port nor start.
    """
    lines = instructions(repaired(recipe))
    found: list[str] = []
    base = next((rest.split()[0] for name, rest in lines if name == "FROM" and rest), "")
    family = base.partition("@")[0].rpartition("/")[2].partition(":")[0]
    if not base:
        found.append("no base image")
    elif family not in FAMILIES:
        found.append(f"base image {base}: not one of {', '.join(FAMILIES)}")
    copied: set[str] = set()
    for name, rest in lines:
        if name in ("COPY", "ADD"):
            for source in sources(rest):
                here = matched(source, files)
                if not here:
                    found.append(f"{name} {source}: there is no such file")
                copied |= here
    found += [f"{one}: must not be in the image" for one in sorted(copied) if _is_kept_back(one)]
    if server:
        if not any(name == "EXPOSE" and re.match(r"\d", rest) for name, rest in lines):
            found.append("no port is exposed")
        if not any(name in ("CMD", "ENTRYPOINT") and rest for name, rest in lines):
            found.append("no start command")
    text = " ".join(f"{name} {rest}" for name, rest in lines).lower()
    if any(one.endswith(".py") for one in copied) and family != "python" and "python" not in text:
        found.append("Python sources without an interpreter")
    if any(_is_binary(files[one]) for one in copied) and not _EXECUTABLE.search(text):
        found.append("a binary without an executable bit")
    if any(one.endswith(WEB) for one in copied) and not any(one in text for one in SERVERS):
        found.append("web files without a web server")
    return found


def instructions(recipe: str) -> list[tuple[str, str]]:
    """Return each instruction's name and the rest of it, lines that are continued joined."""
    said = "\n".join(line for line in recipe.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\[ \t]*\n", " ", said)
    found = []
    for line in joined.splitlines():
        name, _, rest = line.strip().partition(" ")
        if name.upper() in INSTRUCTIONS:
            found.append((name.upper(), rest.strip()))
    return found


def sources(rest: str) -> list[str]:
    """Return what a COPY or ADD takes from the challenge; nothing where it takes it from elsewhere."""
    if rest.startswith("["):
        words = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
    else:
        try:
            words = shlex.split(rest)
        except ValueError:
            words = rest.split()
    if any(word.startswith("--from") for word in words):
        return []
    plain = [word for word in words if not word.startswith("--")][:-1]
    return [word for word in plain if "://" not in word and not word.startswith("<<")]


def matched(source: str, files: Mapping[str, bytes]) -> set[str]:
    """Return the files that a source names: itself, by a pattern, or below it."""
    pattern = source.removeprefix("./").strip("/")
    if pattern in ("", "."):
        return set(files)
    prefixes = {name: ["/".join(name.split("/")[:i]) for i in range(1, name.count("/") + 2)] for name in files}
    return {name for name, above in prefixes.items() if any(_fits(one, pattern) for one in above)}


def _fits(name: str, pattern: str) -> bool:
    pieces, patterns = name.split("/"), pattern.split("/")
    return len(pieces) == len(patterns) and all(map(fnmatchcase, pieces, patterns))


def _is_kept_back(name: str) -> bool:
    return any(fnmatchcase(name.rpartition("/")[2].lower(), pattern) for pattern in KEPT_BACK)


def _is_binary(data: bytes) -> bool:
    return data.startswith((b"\x7fELF", b"MZ"))
