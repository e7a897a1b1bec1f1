"""Chores in a folder: what is asked, a command that does it, and the folder as it is afterwards.

What it is afterwards is computed here, from what was asked and without a shell.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.environments.shell.folder import TEAMS, WORDS, Files, contents


@dataclass(frozen=True, slots=True)
class Chore:
    """One thing to do; ``command`` does it in bash, and ``after`` are the files then."""

    text: str
    command: str
    after: Files


def _named(files: Files, kind: str) -> list[str]:
    return sorted(name for name in files if name.endswith(f".{kind}"))


def _one(files: Files, kind: str, rng: np.random.Generator) -> str:
    return str(rng.choice(_named(files, kind)))


def _lines(data: bytes) -> list[str]:
    return data.decode().splitlines()


def _told(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def find(files: Files, rng: np.random.Generator) -> Chore:
    held = Counter(w for n in _named(files, "txt") for w in set(files[n].decode().split()))
    word = str(rng.choice(sorted(held)))
    found = [n for n in _named(files, "txt") if word in files[n].decode().split()]
    text = f"write the paths of all .txt files with the word {word!r} into found.txt, sorted, one a line, without ./"
    command = f"grep -rlw --include='*.txt' {word} . | sed 's|^./||' | LC_ALL=C sort > /tmp/f; mv /tmp/f found.txt"
    return Chore(text, command, {**files, "found.txt": _told(found)})


def move(files: Files, rng: np.random.Generator) -> Chore:
    kind = str(rng.choice(["log", "csv"]))
    target = f"all_{kind}"
    after = {n: d for n, d in files.items() if not n.endswith(f".{kind}")}
    for name in _named(files, kind):
        after[f"{target}/{name.replace('/', '_')}"] = files[name]
    text = (
        f"move every .{kind} file of all folders into the folder {target}, with each / of its path made a _ "
        f"(a/b.{kind} becomes {target}/a_b.{kind})"
    )
    command = (
        f"find . -name '*.{kind}' | sed 's|^./||' > /tmp/f; mkdir -p {target}; "
        f'while read -r f; do mv "$f" "{target}/${{f//\\//_}}"; done < /tmp/f'
    )
    return Chore(text, command, after)


def edit(files: Files, rng: np.random.Generator) -> Chore:
    held = sorted({w for n in _named(files, "txt") for w in files[n].decode().split()} & set(WORDS))
    old = str(rng.choice(held))
    new = f"{rng.choice(WORDS)}s"
    after = {n: re.sub(rf"\b{old}\b", new, d.decode()).encode() if n.endswith(".txt") else d for n, d in files.items()}
    text = f"replace the word {old!r} by {new!r} in every .txt file"
    return Chore(text, f"find . -name '*.txt' -exec sed -i 's/\\b{old}\\b/{new}/g' {{}} +", after)


def count(files: Files, rng: np.random.Generator) -> Chore:
    name, level = _one(files, "log", rng), str(rng.choice(["ERROR", "WARN"]))
    n = sum(line.split()[1] == level for line in _lines(files[name]))
    text = f"write the number of {level} lines of {name} into count.txt"
    return Chore(text, f"grep -c ' {level} ' {name} > count.txt; true", {**files, "count.txt": _told([str(n)])})


def extract(files: Files, rng: np.random.Generator) -> Chore:
    name, team = _one(files, "csv", rng), str(rng.choice(TEAMS))
    rows = [line.split(",") for line in _lines(files[name])[1:]]
    names = sorted(row[0] for row in rows if row[1] == team)
    text = f"write the names of team {team} in {name} into {team}.txt, sorted, one a line"
    command = f"awk -F, 'NR > 1 && $2 == \"{team}\" {{print $1}}' {name} | LC_ALL=C sort > {team}.txt"
    return Chore(text, command, {**files, f"{team}.txt": _told(names)})


def total(files: Files, rng: np.random.Generator) -> Chore:
    name = _one(files, "csv", rng)
    amount = sum(int(line.split(",")[2]) for line in _lines(files[name])[1:])
    text = f"write the sum of the column amount of {name} into total.txt"
    command = f"awk -F, 'NR > 1 {{s += $3}} END {{print s}}' {name} > total.txt"
    return Chore(text, command, {**files, "total.txt": _told([str(amount)])})


def rename(files: Files, rng: np.random.Generator) -> Chore:
    after = {n.removesuffix(".txt") + ".md" if n.endswith(".txt") else n: d for n, d in files.items()}
    command = 'find . -name \'*.txt\' | while read -r f; do mv "$f" "${f%.txt}.md"; done'
    return Chore("rename every .txt file, in all folders, so that it ends with .md instead", command, after)


def delete(files: Files, rng: np.random.Generator) -> Chore:
    after = {n: d for n, d in files.items() if not n.endswith(".tmp")}
    return Chore("delete every .tmp file, in all folders", "find . -name '*.tmp' -delete", after)


def archive(files: Files, rng: np.random.Generator) -> Chore:
    folder = str(rng.choice(sorted({n.split("/")[0] for n in files if "/" in n})))
    packed = {n: d for n, d in files.items() if n.startswith(f"{folder}/")}
    text = f"pack the folder {folder} with all that is in it into {folder}.tar.gz, and keep the folder"
    return Chore(text, f"tar -czf {folder}.tar.gz {folder}", {**files, f"{folder}.tar.gz": contents(packed)})


def merge(files: Files, rng: np.random.Generator) -> Chore:
    lines = sorted({line for n in _named(files, "txt") for line in _lines(files[n])})
    text = "write the lines of all .txt files into merged.dat, sorted in byte order, each line once"
    command = "find . -name '*.txt' -exec cat {} + | LC_ALL=C sort -u > merged.dat"
    return Chore(text, command, {**files, "merged.dat": _told(lines)})


def configure(files: Files, rng: np.random.Generator) -> Chore:
    name = _one(files, "json", rng)
    held = json.loads(files[name])
    key, value = str(rng.choice(sorted(held))), int(rng.integers(100, 1000))
    changed = json.dumps({**held, key: value}, indent=2) + "\n"
    text = f"set {key!r} to {value} in {name}, and change nothing else in it"
    command = f'sed -i \'s/"{key}": [0-9]*/"{key}": {value}/\' {name}'
    return Chore(text, command, {**files, name: changed.encode()})


def worst(files: Files, rng: np.random.Generator) -> Chore:
    name, n = _one(files, "log", rng), int(rng.integers(2, 5))
    lines = sorted(_lines(files[name]), key=lambda line: (-int(line.split()[3]), line))[:n]
    text = (
        f"write the {n} lines of {name} with the largest numbers in the fourth column into top.txt, the largest first, "
        "equal ones in byte order"
    )
    return Chore(text, f"LC_ALL=C sort -k4,4nr {name} | head -n {n} > top.txt", {**files, "top.txt": _told(lines)})


CHORES: dict[str, Callable[[Files, np.random.Generator], Chore]] = {
    one.__name__: one
    for one in (find, move, edit, count, extract, total, rename, delete, archive, merge, configure, worst)
}


def chores(files: Files, steps: int, rng: np.random.Generator) -> list[Chore]:
    """Return ``steps`` chores, each to be done in the folder that the ones before have left; each changes something."""
    done: list[Chore] = []
    kinds = [str(kind) for kind in rng.permutation(list(CHORES))]
    # What renames or moves files comes last, so that the others find their kind of file.
    kinds = sorted(kinds[:steps], key=lambda kind: kind in ("move", "rename"))
    for kind in kinds:
        before = done[-1].after if done else files
        done.append(CHORES[kind](before, rng))
    return done
