"""Made-up names, so that nobody has read of what is called by them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

FIRST = str.split("Ada Bruno Celia Dorian Elsa Felix Greta Hugo Ines Jonas Kira Leon Mara Nils Olga Pavel Rosa Sven")
_ONSETS = str.split("b br d dr f fl g gr h k kl l m n p pr r s st t tr v w")
_VOWELS = str.split("a e i o u au ei")
_CODAS = str.split("ck ld lm n nd r rn sk st th x")


def made_up(rng: np.random.Generator, most: int) -> Iterator[str]:
    """Yield ``most`` made-up names, all different, and none of them a first name."""
    seen: set[str] = {word.casefold() for word in FIRST}
    while len(seen) < most + len(FIRST):
        syllables = 2 + int(rng.random() < 0.3)
        name = "".join(str(rng.choice(_ONSETS)) + str(rng.choice(_VOWELS)) for _ in range(syllables))
        name += str(rng.choice(_CODAS))
        if name not in seen:
            seen.add(name)
            yield name.capitalize()
