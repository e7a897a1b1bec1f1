"""Responses on record: which are drawn, what is asked anew, and files that hold them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.engines.base import Request, Sampling
from assay.engines.recall.recorded import Recorded, key
from assay.engines.tabular import TabularEngine
from assay.errors import RunError
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.responses import read_responses, write_responses
from assay.types import Episode

ENGINE = TabularEngine(TabularPolicy.random(Tree.uniform(3, 2, rewards=[0.0] * 9), seed=3))
TWO = Sampling(2)


def responses(n: int) -> list[Episode]:
    """n responses that tell apart."""
    [made] = ENGINE.generate([Request("", n, TWO, 0)])
    return [replace(episode, text=f"response {i}") for i, episode in enumerate(made)]


def test_responses_are_drawn_without_replacement_and_the_seed_says_which() -> None:
    kept = responses(8)
    engine = Recorded(ENGINE, {key(""): kept}, TWO)
    requests = [Request("", n, TWO, seed) for n, seed in ((8, 1), (3, 1), (3, 1), (3, 2))]
    whole, three, again, other = ([e.text for e in episodes] for episodes in engine.generate(requests))
    assert sorted(whole) == [e.text for e in kept]
    assert three == again == whole[:3] and other != three
    # Each of 8 stands first as often as any other: 4 standard deviations of a share of 1/8 in 4,000 draws.
    firsts = [e.text for [e] in engine.generate([Request("", 1, TWO, s) for s in range(4000)])]
    shares = [firsts.count(e.text) / 4000 for e in kept]
    assert shares == pytest.approx([1 / 8] * 8, abs=4 * np.sqrt(1 / 8 * 7 / 8 / 4000))


def test_processes_that_work_together_do_not_go_past_it() -> None:
    class Several(TabularEngine):
        divided = work = staticmethod(lambda items, work, cost=None: work(items, ENGINE))

    engine = Recorded(Several(ENGINE.policy), {}, TWO)
    assert engine.divided is None and engine.work is Several.work and engine.policy is ENGINE.policy


def test_what_is_not_on_record_is_asked_of_the_model() -> None:
    engine = Recorded(ENGINE, {key(""): responses(2)}, TWO)
    asked = [
        Request("", 3, TWO, 0),
        Request("0", 1, TWO, 0),
        Request("", 1, Sampling(2, temperature=0.0), 0),
        Request("", 1, Sampling(1), 0, prefix=(1,)),
    ]
    found = engine.generate([asked[0], Request("", 2, TWO, 0), *asked[1:]])
    assert {e.text for e in found.pop(1)} == {"response 0", "response 1"}
    for mine, theirs in zip(found, ENGINE.generate(asked), strict=True):
        assert [e.text for e in mine] == [e.text for e in theirs]


def test_a_file_gives_back_every_token(tmp_path: Path) -> None:
    prompt, ids = np.array([7, 8]), np.array([5, 49151, 0])
    real = np.array([-0.5, -1e-7, -13.25], dtype=np.float32)
    one = Episode(prompt, ids, np.ones(3, bool), real, "a\nb", "eos", -real)
    two = Episode(prompt, ids[:0], np.ones(0, bool), None, "", "length")
    write_responses(tmp_path / "part.parquet", {"t": [one, two]})
    found = read_responses(tmp_path / "part.parquet", {"t": prompt})["t"]
    for mine, theirs in zip(found, (one, two), strict=True):
        assert (mine.text, mine.stop) == (theirs.text, theirs.stop)
        for name in ("prompt", "tokens", "mask", "logprobs", "entropies"):
            a, b = getattr(mine, name), getattr(theirs, name)
            assert (a is None) == (b is None)
            assert a is None or (a.dtype == b.dtype and np.array_equal(a, b))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    write_responses(path, {"t": responses(2)})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunError, match=r"part\.parquet is damaged .*remove it"):
        read_responses(path, {"t": np.array([0])})
    path.write_bytes(whole)
    with pytest.raises(RunError, match="is damaged"):
        read_responses(path, {"other": np.array([0])})
