"""Settings in which something is looked up: by a policy that reads, by a doctor, for citations that were altered."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from assay.errors import UsageError
from assay.lab.settings.lookups import Reading, Worded
from assay.lab.settings.lookups import Setting as Lookups
from assay.lab.settings.open_ended.citations import Overlap
from assay.lab.settings.open_ended.citations import Setting as Citations
from assay.lab.settings.reasoning.patients import Setting as Patients
from assay.policies.tabular import Tree


def test_second_looks_mend_what_a_similar_case_tells(tmp_path: Path) -> None:
    setting = Patients(tasks=60)
    once = setting.run({"name": "re_retrieve", "threshold": 0.0}, 1, tmp_path)
    again = setting.run({"name": "re_retrieve"}, 1, tmp_path)
    assert once["again"] == 0 and once["accuracy"] == once["first"] == again["first"]
    assert again["same"] == 1 and again["accuracy"] > once["accuracy"] and again["tokens"] > once["tokens"]
    assert again["accuracy"] - again["first"] == pytest.approx(again["mended"] - again["broken"])
    # Reports that nobody trusts change nothing but by chance; those of other diseases mislead.
    assert abs(Patients(tasks=60, trust=0.0).run({"name": "re_retrieve"}, 1, tmp_path)["accuracy"] - 0.4) < 0.2
    noisy = Patients(tasks=60, noise=5.0).run({"name": "re_retrieve"}, 1, tmp_path)
    assert noisy["same"] < 0.5 and noisy["accuracy"] < again["accuracy"]


def test_altered_claims_share_fewer_words(tmp_path: Path) -> None:
    found = Citations(documents=40, train=20, test=60).run({"score": "overlap"}, 1, tmp_path)
    assert found["altered"] == 0.1 and found["ranked"] > 0.6 and 0.5 < found["first"] <= 1
    assert Overlap().scores([("As to A, b", "a b c."), ("x y", "z")]).tolist() == [0.5, 0]
    with pytest.raises(UsageError, match="encoder or overlap"):
        Citations(documents=40, train=20, test=60).run({"score": "guess"}, 1, tmp_path)
    with pytest.raises(UsageError, match="fewer than"):
        Citations(documents=10).run({"score": "overlap"}, 1, tmp_path)


@pytest.mark.slow
def test_an_encoder_scores_in_the_lab(tmp_path: Path) -> None:
    setting = Citations(documents=40, train=24, test=30, epochs=1, hidden=16)
    found = setting.run({"score": "encoder", "how": "first"}, 1, tmp_path)
    assert found == setting.run({"score": "encoder", "how": "first"}, 1, tmp_path)
    assert found != setting.run({"score": "encoder"}, 1, tmp_path)
    assert set(found) == {"flagged", "ranked", "altered", "first"} and 0 <= found["ranked"] <= 1


def test_a_policy_that_reads(tmp_path: Path) -> None:
    """The right answer is likelier where its article has been shown, and nowhere else."""
    setting = Lookups(questions=2, values=5, spread=0.0, gain=3.0, steps=2, group=2)
    tasks, words = setting.questions_and_words()
    assert len(tasks) == 2 and len(words) == 7 and {f"<answer>{t.reference}</answer>" for t in tasks} < {*words}
    engine, _ = Reading(
        environment=setting.world,
        words=(words,),
        tasks=[int(t.id.rpartition("/")[2]) for t in tasks],
        turns=3,
        spread=0.0,
        gain=3.0,
    ).player(0)
    policy = engine.policy
    for k, task in enumerate(tasks):
        right = words.index(f"<answer>{task.reference}</answer>")
        for path, shown in (([], False), ([k], True), ([1 - k], False), ([1 - k, k], True), ([k, 1 - k], True)):
            node = policy.tree.node([k, *path])
            chance = policy.log_policy()[node].exp()[right].item()
            e = torch.tensor(3.0).exp().item()
            assert chance == pytest.approx(e / (e + 6) if shown else 1 / 7)
    found = setting.run({"name": "grpo", "reward": "answer_f1"}, 1, tmp_path)
    assert found["rollouts"] == 2 * 4 * 2 and 0 < found["start"] < 1
    with pytest.raises(UsageError, match="cannot answer"):
        Lookups(questions=3, values=2)


def test_words_are_tokens() -> None:
    policy = Worded(Tree.bandit(2), ["<answer>a</answer>", "x"])
    assert policy.encode_response("x").tolist() == [1] and policy.encode_response("y").tolist() == []
    assert policy.decode([0, 1]) == "<answer>a</answer>x"
