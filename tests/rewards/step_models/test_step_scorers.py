"""Scorers of steps on a language model's states: what they read, that they learn, are written and read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import LLAMA_LIKE, TOKENIZER

from assay.config import dump_config, load_config
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.inference.scoring.scorers import BySteps
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.files import write_folder
from assay.rewards.process.step_scores import make_scorer
from assay.rewards.step_models.classifier import ClassifierPRM
from assay.rewards.step_models.examples import StepExample, StepPair, read_examples, write_examples
from assay.rewards.step_models.on_states import StatesPRM, StepHead
from assay.rewards.step_models.saved import PRMSettings, load_prm
from assay.rewards.step_models.states import states
from assay.rewards.step_models.training import StepTraining
from assay.signals.steps import Steps
from assay.types import Episode, Span, Task

pytestmark = pytest.mark.usefixtures("one_thread")

NANO = {"nano": {"hidden": 16, "layers": 2, "heads": 2, "context": 64, "alphabet": "0123456789+=ab\n"}}
SUM = Task("t", "1+2=")


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    return CausalLM.load(ModelConfig.model_validate(NANO))


def rows_of(rng: np.random.Generator, n: int) -> list[StepExample]:
    """Steps that begin with a are right, those with b are wrong."""
    out = []
    for i in range(n):
        good = rng.random(3) < 0.5
        steps = tuple(f"{'a' if g else 'b'}{rng.integers(10)}" for g in good)
        out.append(StepExample(Task(str(i), "1+2="), steps, tuple(map(float, good))))
    return out


def test_steps_of_a_text_are_read_at_their_last_tokens(policy: CausalLM) -> None:
    prm = StatesPRM(policy, StepHead(16))
    episode, places = prm.tokens(StepExample(SUM, ("a1\n", "22", "b")))
    assert (episode.text, places) == ("a1\n22\nb", [(0, 3), (3, 6), (6, 7)])
    with torch.no_grad():
        prm.reader.linear.weight.normal_(generator=torch.Generator().manual_seed(0))
    [row] = prm.scores([(SUM, ["a1\n", "22", "b"])])
    [hidden] = states(policy, [episode])
    wanted = prm.reader.linear(hidden[[2, 5, 6]])[:, 0].sigmoid() * 2 - 1
    assert row == pytest.approx(wanted.tolist(), abs=1e-5)
    # The tokens that were sampled, where they are known, in place of the text.
    spans = (Span("step", 0, 2), Span("step", 2, 7))
    known = StepExample(SUM, ("x", "y"), (), Episode(**{**vars_of(episode), "spans": spans}))
    wanted = prm.reader.linear(hidden[[1, 6]])[:, 0].sigmoid() * 2 - 1
    assert prm.score_examples([known])[0] == pytest.approx(wanted.tolist(), abs=1e-5)
    assert prm.scores([]) == []
    # What ends a response is not read.
    ended = np.append(episode.tokens, policy.stop_ids[0])
    longer = Episode(**{**vars_of(episode), "tokens": ended, "spans": (Span("step", 0, 2), Span("step", 2, 8))})
    again = prm.score_examples([StepExample(SUM, ("x", "y"), (), longer)])[0]
    assert again == pytest.approx(wanted.tolist(), abs=1e-5)


def vars_of(episode: Episode) -> dict[str, object]:
    return {name: getattr(episode, name) for name in ("prompt", "tokens", "mask", "logprobs", "text", "stop")}


@pytest.mark.parametrize(
    ("kind", "both_ways"),
    [
        ("head", "gate"),
        ("probe", "average"),
        ("whole", "no"),
        *(pytest.param(*way, marks=pytest.mark.slow) for way in (("head", "no"), ("whole", "gate"))),
    ],
)
def test_every_kind_learns_is_written_and_read_again(
    kind: str, both_ways: str, policy: CausalLM, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    settings = PRMSettings(kind, both_ways, probe={"width": 16, "heads": 2, "layers": 1, "dropout": 0.0})
    policy.save(tmp_path / "policy")
    prm = settings.made(policy, tmp_path / "policy")
    data = rows_of(rng, 12)
    if kind != "probe":
        assert prm.scores([(SUM, ["a1", "b2"])])[0] == pytest.approx([0, 0], abs=1e-6)
    trunk_lr = 1e-2 if kind == "whole" else 0.0
    lr, epochs = {"head": (0.3, 60), "probe": (0.02, 15), "whole": (0.02, 15)}[kind]
    history = StepTraining(epochs=epochs, batch=12, lr=lr, trunk_lr=trunk_lr).fit(prm, data, rng)
    assert history[-1] < 0.7 * history[0]

    def write(folder: Path) -> None:
        if kind != "whole":
            (folder / "config.toml").write_text(dump_config(load_config({"model": NANO})), encoding="utf-8")
        settings.save(prm, folder)

    write_folder(tmp_path / "prm", write)
    again = make_scorer(str(tmp_path / "prm"))
    asked = [(row.task, list(row.steps)) for row in data[:4]]
    for mine, theirs in zip(prm.scores(asked), again.scores(asked), strict=True):
        assert mine == pytest.approx(theirs, abs=1e-5)
    if both_ways == "no" and kind != "whole":
        assert isinstance(again, StatesPRM)
        assert all(map(torch.equal, policy.module.parameters(), again.policy.module.parameters()))


def test_the_model_below_stays_as_it_is_unless_it_is_to_learn(policy: CausalLM) -> None:
    def weights() -> list[torch.Tensor]:
        return [p.clone() for p in policy.module.parameters()]

    before, data = weights(), rows_of(np.random.default_rng(1), 8)
    prm = StatesPRM(policy, StepHead(16))
    StepTraining(epochs=2).fit(prm, data, np.random.default_rng(0))
    assert all(map(torch.equal, before, weights()))
    twin = StatesPRM(policy.twin(), StepHead(16))
    StepTraining(epochs=2, trunk_lr=1e-3).fit(twin, data, np.random.default_rng(0))
    assert not all(map(torch.equal, before, twin.policy.module.parameters()))


def test_a_tabular_policy_has_no_text() -> None:
    policy = TabularPolicy(Tree.uniform(2, 2))
    prm = StatesPRM(policy, StepHead(len(policy.logits) + 4))
    with pytest.raises(UsageError, match="no language model"):
        prm.scores([(SUM, ["0", "1"])])
    path = np.array([0, 1])
    episode = Episode(path[:0], path, path >= 0, None, "0/1", "eos")
    [found] = BySteps(prm, Steps("fixed", 1), "last").score(
        [(SUM, episode)], TabularEngine(policy), np.random.default_rng()
    )
    assert found.value == 0.5 and found.tokens == 2


def test_a_solution_told_as_a_text_is_one_step(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"prompt": "p", "chosen": "a b", "rejected": "c"}\n{"prompt": "p", "completion": "a b", "label": true}\n',
        encoding="utf-8",
    )
    pair, judged = read_examples(path)
    assert isinstance(pair, StepPair) and (pair.better.steps, pair.worse.steps, pair.fork) == (("a b",), ("c",), 0)
    assert isinstance(judged, StepExample) and (judged.steps, judged.labels) == (("a b",), (1.0,))


def test_rows_of_three_forms_and_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"prompt": "1+1=", "completions": ["a", "b"], "labels": [true, null]}\n'
        '{"id": "x", "problem": "p", "steps": ["a", "b", "c"], "label": 1}\n'
        '{"problem": "p", "steps": ["a", "b"], "label": -1}\n'
        '{"prompt": [{"role": "user", "content": "p"}], "chosen": ["a", "b"], "rejected": ["a", "c"], "fork": 1}\n',
        encoding="utf-8",
    )
    first, second, third, pair = read_examples(path)
    assert isinstance(first, StepExample) and (first.labels, first.known) == ((1.0, None), 1)
    assert isinstance(second, StepExample) and (second.task.id, second.labels) == ("x", (1.0, 0.0, None))
    assert isinstance(third, StepExample) and third.labels == (1.0, 1.0)
    assert isinstance(pair, StepPair) and pair.worse.steps == ("a", "c") and pair.better.task.question == "p"
    write_examples(tmp_path / "again.jsonl", [first, second, third, pair])
    assert read_examples(tmp_path / "again.jsonl") == [first, second, third, pair]
    for wrong, said in (
        ('{"prompt": "p", "completions": ["a"], "labels": [2]}', "labels of 1 steps"),
        ('{"prompt": "p", "completions": "a", "labels": [1]}', "no list of steps"),
        ('{"problem": "p", "steps": ["a"], "label": 1}', "neither a step nor -1"),
        ('{"prompt": "p", "chosen": ["a"], "rejected": ["b"], "fork": 1}', "fork 1"),
        ('{"prompt": "p", "labels": []}', "lacks 'completions'"),
    ):
        path.write_text(wrong + "\n", encoding="utf-8")
        with pytest.raises(UsageError, match=f"line 1.*{said}"):
            read_examples(path)


def test_what_is_no_scorer_of_steps_is_said(tmp_path: Path) -> None:
    (tmp_path / "prm.json").write_text('{"kind": "head"}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"prm\.json cannot be read"):
        load_prm(tmp_path)
    with pytest.raises(UsageError, match="no classifier of steps"):
        load_prm(tmp_path / "nothing")


def test_a_classifier_of_a_language_models_folder_begins_at_one_half(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForTokenClassification

    config = AutoConfig.for_model("llama", **LLAMA_LIKE)
    AutoModelForTokenClassification.from_config(config).save_pretrained(tmp_path / "m")
    TOKENIZER.save_pretrained(tmp_path / "m")
    made = PRMSettings("whole").made(None, tmp_path / "m")
    assert isinstance(made, ClassifierPRM) and made.scores([(SUM, ["a"])]) == [[0.0]]
