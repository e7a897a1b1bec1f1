"""The setting of contracts: a policy puts programs together and is paid by the verifier itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.lab.settings.reasoning.contracts import Setting

pytest.importorskip("z3")
SMALL = {"effort": 20_000}
FEW = {"effort": 20_000, "instances": 5, "proofs": 1}


@pytest.mark.slow
def test_a_policy_learns_what_is_paid_for(tmp_path: Path) -> None:
    """The trainer's steps on a tabular policy that puts programs together, judged by the verifier itself."""
    setting = Setting(positive=6, steps=60, lr=3.0)
    alone = setting.run({"name": "grpo", "verifier": {"name": "prover", "spec_tests": False, **SMALL}}, 3, tmp_path)
    tested = setting.run({"name": "grpo", "verifier": {"name": "prover", **SMALL}}, 3, tmp_path)
    assert alone["start"] == tested["start"] < 0.1
    assert alone["paid"] > 0.7 and alone["right"] < 0.1, "weak contracts are the easy way to a proof"
    assert tested["right"] > 2 * alone["right"] + 0.1


@pytest.mark.slow
def test_a_policy_lives_on_unknown_where_it_pays(tmp_path: Path) -> None:
    setting = Setting(ask="spec", positive=4, steps=60, lr=3.0)
    paid = setting.run({"name": "grpo", "verifier": {"name": "verina", "unknown": "right", **FEW}}, 1, tmp_path)
    wrong = setting.run({"name": "grpo", "verifier": {"name": "verina", **FEW}}, 1, tmp_path)
    assert paid["start"] == wrong["start"] and paid["untold"] > 0.3 > 0.1 > wrong["untold"]
    assert wrong["right"] > paid["right"] + 0.2
