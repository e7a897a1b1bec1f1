"""How many rows a device has room for, against what decoding them really keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tiny import KINDS, TOKENIZER, tiny

from assay.engines import hf
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.stream import Stream
from assay.policies import room
from assay.policies.causal_lm import CausalLM
from assay.policies.room import memory_of, rows_that_fit

CPU = torch.device("cpu")


class Seen(Stream):
    """Keeps of each block of rows how many there are, and their keys' and values' bytes."""

    blocks: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        assert self.cache.data is not None
        self.blocks.append((self.cache.data.shape[2], self.cache.data.nbytes))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_decoded_together_keep_no_more_than_their_share(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf, "Stream", Seen)
    monkeypatch.setattr(Seen, "blocks", [])
    engine = HFEngine(CausalLM(tiny(kind), TOKENIZER))
    asked = [Request("12+3=", 8, Sampling(max_tokens=12), seed=5)]
    whole = engine.generate(asked)
    [(rows, size)] = Seen.blocks
    assert rows == 8
    monkeypatch.setattr(room, "memory_of", lambda device: int(size / 8 * 3 / room.SHARE))
    parted = engine.generate(asked)
    assert Seen.blocks[1:] == [(3, size // 8 * 3), (3, size // 8 * 3), (2, size // 8 * 2)]
    assert [e.tokens.tolist() for e in parted[0]] == [e.tokens.tolist() for e in whole[0]]
    monkeypatch.setattr(room, "memory_of", lambda device: 1)
    assert rows_that_fit(engine.policy.model, CPU, 20) == 1, "a row is decoded wherever it is"


def test_a_container_has_the_memory_that_it_may_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = memory_of(CPU)
    assert whole > 1 << 28
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(room, "LIMITS", (limit, tmp_path / "none"))
    machine = memory_of(CPU)
    limit.write_text("max\n")
    assert memory_of(CPU) == machine >= whole
    limit.write_text(f"{1 << 27}\n")
    assert memory_of(CPU) == 1 << 27
