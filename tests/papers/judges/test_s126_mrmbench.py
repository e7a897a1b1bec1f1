"""S126: probes of known states, distances by hand, what is left out, and the two commands."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from grouped import grouped
from running import metrics, run
from tiny import TOKENIZER, classifier

from assay import catalogue, cli
from assay.credit.gae import GAE
from assay.errors import RunError, UsageError
from assay.inference.supervision.probing import RATES, probing
from assay.lab.settings import load
from assay.rewards.judges.dimensions import Clusters, Labelled, balanced, fit_probe, read_labelled
from assay.rewards.judges.preference_model import PreferenceModel
from assay.rewards.judges.probed_preferences import ProbedPreferences
from assay.rewards.shaping.weighted import WeightedSum
from assay.select.reward_term import RewardTerm

pytestmark = pytest.mark.usefixtures("one_thread")

CARD = {"harm": [[0.0, 0.0], [4.0, 0.0]], "help": [[0.0, 3.0], [0.0, -3.0]]}


def clusters(threshold: float) -> Clusters:
    return Clusters({k: torch.tensor(v, dtype=torch.float64) for k, v in CARD.items()}, threshold)


class States:
    """Stands for a reward model: the state of a response is the two numbers that it says, its score their sum."""

    def read(self, pairs: Any) -> list[tuple[float, torch.Tensor] | None]:
        found = [None if text == "long" else torch.tensor([float(x) for x in text.split()]) for _, text in pairs]
        return [None if h is None else (float(h.sum()), h) for h in found]


def test_distances_by_hand() -> None:
    h = torch.tensor([[3.0, 0.5], [0.0, 3.0]])
    found = clusters(2.0).distances(h)
    assert found["harm"].tolist() == pytest.approx([1.1180, 3.0], abs=1e-4)
    assert found["help"].tolist() == pytest.approx([3.9051, 0.0], abs=1e-4)
    assert clusters(2.0).nearest(h).tolist() == pytest.approx([1.1180, 0.0], abs=1e-4)
    assert min(found, key=lambda name: float(found[name][0])) == "harm"


def test_far_samples_are_left_out(tmp_path: Path) -> None:
    """At distance 1.118 the response is dropped where 1 is far, and kept where 2 is."""
    part = ProbedPreferences.__new__(ProbedPreferences)
    part.model, part.clusters = States(), clusters(1.0)  # type: ignore[assignment]
    batch = grouped(["3 0.5", "0 3", "long", "9 9"])
    found = part(batch)
    assert found.valid is not None and found.valid.tolist() == [True, True, False, True]
    assert found.values.tolist() == [3.5, 3, 0, 18] and found.terms["score"].tolist() == [3.5, 3, 0, 18]
    assert found.terms["distance"].tolist() == pytest.approx([1.1180, 0, 0, math.hypot(5, 9)], abs=1e-4)
    batch.reward_terms = found.terms
    assert RewardTerm("distance", most=1.0)(batch).tolist() == [0, 1, 1, 0]
    assert RewardTerm("distance", most=2.0)(batch).tolist() == [1, 1, 1, 0]
    for more in ({}, {"most": 18.0}):
        assert RewardTerm("score", least=3.0, **more)(batch).tolist() == [1, 1, 0, 1]
    assert RewardTerm("score", 3.0, 3.0)(batch).tolist() == [0, 1, 0, 0]
    with pytest.raises(RunError, match="no term 'distanc'; did you mean"):
        RewardTerm("distanc")(batch)
    with pytest.raises(UsageError, match="above most"):
        RewardTerm("x", 2.0, 1.0)
    part.clusters = Clusters({"one": torch.zeros(1, 3)}, 1.0)
    with pytest.raises(RunError, match="states with 3 numbers, the reward model's have 2"):
        part(batch)


def test_clusters_are_kept(tmp_path: Path) -> None:
    """Three heaps a dimension: their means are the centres, and a tenth of the states is far."""
    rng = np.random.default_rng(0)
    middles = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    states = {
        name: torch.from_numpy(np.repeat(middles + shift, 20, 0) + 0.1 * rng.standard_normal((60, 2)))
        for name, shift in (("a", 0.0), ("b", 30.0))
    }
    found = Clusters.fit(states, 3)
    for name, shift in (("a", 0.0), ("b", 30.0)):
        assert sorted(found.centres[name].round().tolist()) == sorted((middles + shift).tolist())
    far = found.nearest(torch.cat([*states.values()])) > found.threshold
    assert (
        int(far.sum()) == 12 and int((found.nearest(states["a"]) > Clusters.fit(states, 3, 0.5).threshold).sum()) < 40
    )
    found.save(tmp_path / "c.json")
    again = Clusters.load(tmp_path / "c.json")
    assert again.threshold == found.threshold and torch.equal(again.centres["b"], found.centres["b"])
    for text in ("{}", '{"threshold": 1, "centres": {}}', '{"threshold": 1, "centres": {"a": [1]}}', "no"):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(UsageError, match="cannot be read as clusters"):
            Clusters.load(tmp_path / "bad.json")
    with pytest.raises(UsageError, match="assay eval MODEL --dimensions"):
        Clusters.load(tmp_path / "none.json")


def test_a_probe_by_hand() -> None:
    """One step of AdamW from 0 moves every weight by the rate, against its gradient's sign."""
    h, y = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([1, 0])
    probe = fit_probe(h, y, np.random.default_rng(0), 0.1)
    assert probe.weight.tolist() == [[pytest.approx(-0.1, abs=1e-4), 0], [pytest.approx(0.1, abs=1e-4), 0]]
    assert float(fit_probe(h, y, np.random.default_rng(0), 0.1, epochs=3).weight[1, 0].detach()) == pytest.approx(
        0.3, abs=0.01
    )
    two = fit_probe(h, y, np.random.default_rng(0), 0.1, batch=1)
    assert float(two.weight[1, 0].detach()) == pytest.approx(0.2, abs=0.02)
    kept = balanced([0, 0, 2, 0, 2], np.random.default_rng(1))
    assert len(kept) == 4 and {2, 4} <= set(kept) and kept == sorted(kept)
    assert RATES == (5e-5, 2e-5, 1e-5)


def labelled(count: int = 400) -> list[Labelled]:
    """``seen``: three heaps along the first number; ``unseen``: labels that have nothing to do with the state."""
    rng, out = np.random.default_rng(0), []
    for i in range(count):
        for name in ("seen", "unseen"):
            label = int(rng.integers(3))
            x = 3.0 * label if name == "seen" else 3.0 * rng.integers(3)
            text = f"{x + 0.2 * rng.standard_normal()} {rng.standard_normal()}"
            out.append(Labelled(f"q{i}", text, name, label))
    return [*out, Labelled("q", "long", "seen", 0)]


def test_a_probe_tells_what_is_there() -> None:
    found = probing(States(), labelled(), rates=(1e-9, 0.1), epochs=30)  # type: ignore[arg-type]
    seen, unseen = found.dimensions["seen"], found.dimensions["unseen"]
    assert seen.easy.value > 0.97 and seen.hard.value > 0.97 and (seen.learned, seen.tested) == (300, 100)
    assert unseen.hard.value == pytest.approx(1 / 3, abs=0.12) and unseen.easy.value == pytest.approx(1 / 2, abs=0.2)
    assert found.easy == pytest.approx((seen.easy.value + unseen.easy.value) / 2)
    assert found.hard == pytest.approx((seen.hard.value + unseen.hard.value) / 2)
    assert seen.easy.low < seen.easy.value <= seen.easy.high
    assert {k: len(c) for k, c in found.clusters.centres.items()} == {"seen": 3, "unseen": 3}
    assert sorted(found.clusters.centres["seen"][:, 0].round().tolist()) == [0, 3, 6]
    for few in (labelled(4), [row for row in labelled(80) if row.label < 2]):
        with pytest.raises(RunError, match="too few to learn all of its labels"):
            probing(States(), few)  # type: ignore[arg-type]


def test_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = {"prompt": "q", "response": "a", "dimension": "coherence", "label": 2}
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "prompt": [{"role": "user", "content": "q"}]}))
    first, second = read_labelled(path)
    assert first == Labelled("q", "a", "coherence", 2) and second.prompt == ({"role": "user", "content": "q"},)
    wrong = (({"label": 3}, "label 3 is not 0, 1 or 2"), ({"label": True}, "label True"), ({"prompt": 3}, "row has"))
    for bad, why in wrong:
        path.write_text(json.dumps({**row, **bad}))
        with pytest.raises(UsageError, match=why):
            read_labelled(path)
    path.write_text(json.dumps({"prompt": "q"}))
    with pytest.raises(UsageError, match="lacks 'label'"):
        read_labelled(path)
    path.write_text("")
    with pytest.raises(UsageError):
        read_labelled(path)


def test_its_sets_are_read(tmp_path: Path) -> None:
    """Folders as the authors have them; what is to be tested on is measured on, whatever its prompts."""
    for name, sides in {"verbosity": ([(0, 0), (1, 1), (2, 2)] * 8, [(0, 0), (1, 1), (2, 0), (0, 2)])}.items():
        (tmp_path / name).mkdir()
        for file, pairs in zip(("train.json", "test.json"), sides, strict=True):
            rows = [{"input": "q", "output": f"{5 * x} {x}", "label": label} for x, label in pairs]
            (tmp_path / name / file).write_text(json.dumps(rows))
    found = read_labelled(tmp_path)
    assert found[0] == Labelled("q", "0 0", "verbosity", 0, False) and found[-1].held is True
    assert [row.held for row in found] == [False] * 24 + [True] * 4
    probed = probing(States(), found, rates=(0.5,), epochs=40)  # type: ignore[arg-type]
    dimension = probed.dimensions["verbosity"]
    assert (dimension.learned, dimension.tested) == (24, 4) and dimension.hard.value == 0.5
    (tmp_path / "verbosity" / "test.json").write_text(json.dumps([{"prompt": "q", "label": 1}]))
    with pytest.raises(UsageError, match="has not the fields input, output and label"):
        read_labelled(tmp_path)
    (tmp_path / "verbosity" / "test.json").unlink()
    with pytest.raises(UsageError, match=r"no file .*test\.json"):
        read_labelled(tmp_path)


def test_the_model_stays_as_it_is(tmp_path: Path) -> None:
    """The state is what the score is read off; probing changes no parameter."""
    model = PreferenceModel(classifier(tmp_path / "rm"), device="cpu")
    before = {k: v.clone() for k, v in model.model.state_dict().items()}
    digits = [Labelled(f"{i}+1=", str(i % 10), "size", i % 3) for i in range(48)]
    probing(model, digits)
    assert all(torch.equal(v, before[k]) for k, v in model.model.state_dict().items())
    [found, long] = model.read([("1+2=", "3"), ("1", "2" * 100)])
    assert found is not None and long is None
    assert float(model.model.score(found[1])) == pytest.approx(found[0], abs=1e-6)
    ids = torch.tensor([[*TOKENIZER("1+2=3")["input_ids"], TOKENIZER.eos_token_id]])
    with torch.no_grad():
        assert found[1].tolist() == pytest.approx(model.model.model(ids).last_hidden_state[0, -1].tolist(), abs=1e-5)


def test_probed_and_trained(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A file of labelled responses makes clusters; a run leaves out what is far from them."""
    source, path, out = classifier(tmp_path / "rm"), tmp_path / "rows.jsonl", tmp_path / "clusters.json"
    rows = [
        {"prompt": f"{i}+1=", "response": str(i % 7), "dimension": name, "label": i % 3}
        for i in range(48)
        for name in ("coherence", "verbosity")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for more in (["--out", str(out)], ["--json"], ["--samples", "4"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["eval", str(source), "--dimensions", str(path), *more])
        said, err = capfd.readouterr()
        if more[0] == "--samples":
            assert stopped.value.code == 2 and "--samples would say nothing" in err
            continue
        assert stopped.value.code == 0, err
        if more[0] == "--out":
            assert "coherence" in said + err and "mean" in said + err and "far is beyond" in said + err
        else:
            found = json.loads(said)
            assert set(found["dimensions"]) == {"coherence", "verbosity"} and 0 <= found["hard"] <= 1
            assert found["threshold"] == pytest.approx(Clusters.load(out).threshold)
    far = Clusters.load(out).threshold
    made = catalogue.make("S126", source=source, clusters=out, device="cpu")
    assert isinstance(made.reward, WeightedSum) and made.reward.weights == {"model": 1.0, "kl": 0.05}
    assert made.select == RewardTerm("model/distance", most=far) and isinstance(made.credit, GAE)
    assert (made.credit.discount, made.credit.decay) == (1, 0.95)
    model = {"source": source, "clusters": out, "device": "cpu"}
    bare = catalogue.make("S126", threshold=1.5, kl_weight=0.0, credit="rloo", **model)
    assert isinstance(bare.reward, ProbedPreferences) and bare.select == RewardTerm("distance", most=1.5)
    assert bare.reward.model.token_budget == ProbedPreferences(**model).model.token_budget == 8192
    with pytest.raises(UsageError, match="name the reward model by source"):
        catalogue.make("S126", source=source)
    options = {"source": str(source), "clusters": str(out), "device": "cpu", "threshold": 5.0}
    folder = run(
        tmp_path / "run",
        method={"name": "S126", "reward": None, "options": options},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2 and all(row["reward/model/distance"] > 0 and "critic/loss" in row for row in steps)


def test_the_setting() -> None:
    setting = load("far_samples", {"steps": 30})
    far, lots, none = (setting.run({"drop": name}, 0, Path()) for name in ("far", "random", "none"))
    assert none["dropped"] == 0 < lots["dropped"] and far["dropped"] > 0
    assert none["score"] > far["score"]
