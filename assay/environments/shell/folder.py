"""A made-up work folder: notes, logs, tables and settings in a few subfolders."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections import Counter

import numpy as np

Files = dict[str, bytes]
"""Contents by relative path."""

FOLDERS = ("docs", "data", "logs", "notes", "src", "old", "reports", "team")
STEMS = ("alpha", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "iris", "jade", "kelp", "lumen")
WORDS = (
    *("river", "stone", "lantern", "copper", "meadow", "signal", "window", "garden", "bridge", "harvest"),
    *("pepper", "velvet", "anchor", "marble", "thunder", "willow", "saddle", "pocket", "timber", "candle"),
)
LEVELS = ("INFO", "WARN", "ERROR", "DEBUG")
PEOPLE = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana", "Ivo", "June", "Kai", "Lena")
TEAMS = ("red", "blue", "green", "gold")


def notes(rng: np.random.Generator) -> str:
    lines = (" ".join(rng.choice(WORDS, int(rng.integers(3, 7)))) for _ in range(int(rng.integers(3, 9))))
    return "".join(f"{line}\n" for line in lines)


def log(rng: np.random.Generator) -> str:
    clock, out = int(rng.integers(0, 40000)), ""
    for _ in range(int(rng.integers(8, 25))):
        clock += int(rng.integers(1, 900))
        at = f"{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}"
        out += f"{at} {rng.choice(LEVELS)} {rng.choice(WORDS)} {int(rng.integers(1, 500))}\n"
    return out


def table(rng: np.random.Generator) -> str:
    rows = [
        f"{name},{rng.choice(TEAMS)},{int(rng.integers(1, 1000))}\n"
        for name in rng.permutation(PEOPLE)[: int(rng.integers(5, 12))]
    ]
    return "name,team,amount\n" + "".join(rows)


def settings(rng: np.random.Generator) -> str:
    keys = rng.choice(WORDS, 4, replace=False)
    return json.dumps({str(key): int(rng.integers(1, 100)) for key in keys}, indent=2) + "\n"


KINDS = {"txt": notes, "log": log, "csv": table, "json": settings}


def make_folder(rng: np.random.Generator) -> Files:
    """Return a folder with three to five subfolders and some ten files; of each kind there are two at least."""
    places = [str(one) for one in rng.choice(FOLDERS, int(rng.integers(3, 6)), replace=False)]
    places += [f"{places[0]}/{places[1]}", ""]
    files: Files = {f"{places[0]}/{places[1]}/readme.txt": notes(rng).encode()}
    kinds = [*KINDS, *KINDS, *map(str, rng.choice(list(KINDS), 3)), "tmp", "tmp"]
    for kind in kinds:
        while True:
            place = places[int(rng.integers(len(places)))]
            name = f"{place}/{rng.choice(STEMS)}.{kind}".lstrip("/")
            if name not in files:
                break
        files[name] = KINDS[kind](rng).encode() if kind in KINDS else b""
    return files


def digests(files: Files) -> dict[str, str]:
    """Return the SHA-256 of each file's content."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def edits(before: Files, after: Files) -> Counter[tuple[str, str, bytes]]:
    """Return the lines that were added to files, and removed from them, each as often as it was."""
    out: Counter[tuple[str, str, bytes]] = Counter()
    for name in {*before, *after}:
        old, new = (Counter(files.get(name, b"").splitlines()) for files in (before, after))
        out.update({(name, "+", line): n for line, n in (new - old).items()})
        out.update({(name, "-", line): n for line, n in (old - new).items()})
    return out


def contents(files: Files) -> bytes:
    """Return what stands for an archive of these files, whatever its bytes are."""
    return json.dumps(digests(files), sort_keys=True).encode()


def pack(files: Files) -> bytes:
    """Return an archive of files, the same bytes every time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    return out.getvalue()
