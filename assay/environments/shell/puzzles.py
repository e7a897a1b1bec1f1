"""Puzzles: a flag is hidden in a folder, never as it stands, and another one every time the puzzle is set."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.environments.shell.folder import STEMS, Files, log, make_folder, pack

LETTERS = list("abcdefghjkmnpqrstuvwxyz23456789")
REVERSE = r"sed '/\n/!G;s/\(.\)\(.*\n\)/&\2\1/;//D;s/.//'"


@dataclass(frozen=True, slots=True)
class Puzzle:
    """What is asked, the files, the SHA-256 of the flag, and a command that prints it."""

    text: str
    files: Files
    digest: str
    command: str


def digest(flag: str) -> str:
    """Return what a flag is known by; blanks around it do not count."""
    return hashlib.sha256(flag.strip().encode("utf-8", "surrogatepass")).hexdigest()


def draw_flag(rng: np.random.Generator) -> str:
    return f"flag{{{''.join(rng.choice(LETTERS, 12))}}}"


Hidden = tuple[str, Files, str]
"""The question, the files that hide the flag, a command that prints it."""


def encoded(flag: str, rng: np.random.Generator) -> Hidden:
    """Two or three encodings, one on the other."""
    shift, data = int(rng.integers(1, 26)), flag
    steps: list[str] = []
    undo: list[str] = []
    for way in rng.permutation(["base64", "reversed", "shifted"])[: int(rng.integers(2, 4))]:
        if way == "base64":
            data = base64.b64encode(data.encode()).decode()
            steps, undo = [*steps, "base64"], ["base64 -d", *undo]
        elif way == "reversed":
            data = data[::-1]
            steps, undo = [*steps, "reversal"], [REVERSE, *undo]
        else:
            low = "abcdefghijklmnopqrstuvwxyz"
            moved = low[shift:] + low[:shift]
            data = data.translate(str.maketrans(low + low.upper(), moved + moved.upper()))
            steps = [*steps, f"a shift of the letters by {shift} in the alphabet"]
            undo = [f"tr '{moved}{moved.upper()}' 'a-zA-Z'", *undo]
    text = f"The flag was written into secret.txt after {', then '.join(steps)}."
    return text, {"secret.txt": data.encode()}, " | ".join(["cat secret.txt", *undo])


def concealed(flag: str, rng: np.random.Generator) -> Hidden:
    """A hidden file among others, as hexadecimal digits."""
    name = f"{rng.choice(STEMS)}/.{rng.choice(STEMS)}/.{rng.choice(STEMS)}"
    text = "Some file here is hidden from a plain listing; it holds the flag's bytes as hexadecimal digits."
    command = f"printf \"$(sed 's/../\\\\x&/g' {name})\\n\""
    return text, {name: flag.encode().hex().encode() + b"\n"}, command


def scattered(flag: str, rng: np.random.Generator) -> Hidden:
    """Pieces in a log, out of order."""
    pieces = [flag[i : i + 3] for i in range(0, len(flag), 3)]
    lines = [f"piece {i} of {len(pieces)} is {piece}" for i, piece in enumerate(pieces, 1)]
    every = [*log(rng).splitlines(), *log(rng).splitlines(), *lines]
    shuffled = "".join(f"{every[i]}\n" for i in rng.permutation(len(every)))
    command = "grep '^piece' trace.log | sort -k2,2n | awk '{printf \"%s\", $6} END {print \"\"}'"
    return "The log trace.log holds the flag in pieces.", {"trace.log": shuffled.encode()}, command


def nested(flag: str, rng: np.random.Generator) -> Hidden:
    """Archives in archives, the innermost compressed."""
    depth = int(rng.integers(2, 5))
    # Compressed, a flag that is short would still stand there letter by letter.
    data, name = gzip.compress(base64.b64encode(flag.encode()), mtime=0), "flag.b64.gz"
    undo = "gzip -d < flag.b64.gz | base64 -d"
    for level in range(depth):
        data, inner, name = pack({name: data}), name, f"box{level}.tar"
        undo = f"tar -xf {name} -O {inner} > /tmp/{inner}; cd /tmp; {undo}"
    text = f"The flag lies in {name}, in archives within archives, as base64."
    return text, {name: data}, undo


LOCK = """#!/bin/sh
# usage: sh lock.sh NUMBER
[ $(( ($1 * {a} + {b}) % {m} )) -eq {c} ] || {{ echo wrong; exit 1; }}
k=$1
for byte in {data}; do
  k=$(( (k * 75 + 74) % 65537 ))
  printf "\\\\$(printf '%03o' $(( byte ^ (k % 256) )))"
done
echo
"""


def locked(flag: str, rng: np.random.Generator) -> Hidden:
    """A script that opens for one number below ten thousand."""
    m, key = 10007, int(rng.integers(0, 10000))
    a, b = int(rng.integers(2, m)), int(rng.integers(0, m))
    k, data = key, []
    for byte in flag.encode():
        k = (k * 75 + 74) % 65537
        data.append(byte ^ (k % 256))
    script = LOCK.format(a=a, b=b, m=m, c=(key * a + b) % m, data=" ".join(map(str, data)))
    number = f"n=0; while [ $(( (n * {a} + {b}) % {m} )) -ne {(key * a + b) % m} ]; do n=$((n + 1)); done"
    text = "The script lock.sh shows the flag for one number below 10000, and for no other."
    return text, {"lock.sh": script.encode()}, f"{number}; sh lock.sh $n"


def joined(flag: str, rng: np.random.Generator) -> Hidden:
    """Two tables: which rows count, and in what order, stands in the other."""
    order = rng.permutation(len(flag))
    others = rng.permutation(100)[: 2 * len(flag)]
    codes = [f"{code},{flag[i] if i < len(flag) else rng.choice(LETTERS)}" for i, code in enumerate(others)]
    places = [f"{i + 1},{others[i]}" for i in order]
    files = {
        "codes.csv": ("code,letter\n" + "".join(f"{codes[i]}\n" for i in rng.permutation(len(codes)))).encode(),
        "order.csv": ("place,code\n" + "".join(f"{place}\n" for place in places)).encode(),
    }
    command = (
        "awk -F, 'FNR > 1 && NR == FNR {l[$1] = $2} FNR > 1 && NR != FNR {print $1, l[$2]}' codes.csv order.csv "
        '| sort -n | awk \'{printf "%s", $2} END {print ""}\''
    )
    return (
        "order.csv says which code stands at each place of the flag, codes.csv which letter a code is.",
        files,
        command,
    )


PUZZLES: dict[str, Callable[[str, np.random.Generator], Hidden]] = {
    one.__name__: one for one in (encoded, concealed, scattered, nested, locked, joined)
}


def make_puzzle(kind: str, shape: np.random.Generator, chance: np.random.Generator) -> Puzzle:
    """Return a puzzle: ``shape`` decides what is drawn once and for all, ``chance`` the flag and what hides it."""
    flag = draw_flag(chance)
    text, hidden, command = PUZZLES[kind](flag, chance)
    return Puzzle(text, {**make_folder(shape), **hidden}, digest(flag), command)
