"""S086: what a reward model is shown, that thinking does not count, both algorithms, and training."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from claimed import learned
from grouped import grouped
from running import metrics, run

from assay import catalogue
from assay.credit.gae import GAE
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO
from assay.registry import build
from assay.rewards.shaping.answer_only import AnswerOnly
from assay.select.pairs import Pairs
from assay.types import Task

HERE = f"{Path(__file__)}:near_five"


def near_five(task: Task, response: str) -> float:
    """The nearer an answer is to five characters the better."""
    return -float(abs(len(response) - 5))


def test_what_the_model_is_shown() -> None:
    strict, lenient = AnswerOnly(near_five), AnswerOnly(near_five, missing="whole")
    assert strict.shown("<think>a</think>b") == "b" == lenient.shown("<think>a</think>\n b\n")
    assert strict.shown("<think>a b") == "" and lenient.shown("<think>a b") == "<think>a b"
    assert strict.shown("a</think>b</think>c") == "b</think>c" and strict.shown("</think>") == ""
    tags = ("<response>", "</response>")
    tagged, loose = AnswerOnly(near_five, *tags), AnswerOnly(near_five, *tags, missing="whole")
    assert tagged.shown("t<response> b </response> c") == "b" == loose.shown("t<response> b </response> c")
    assert tagged.shown("t<response>b") == "" and loose.shown("t<response> b") == "b"
    assert tagged.shown("t </response>") == "" and loose.shown("t </response> c") == "t" and loose.shown(" t ") == " t "
    assert (strict.delimiter, strict.end, strict.missing) == ("</think>", "", "empty")
    with pytest.raises(UsageError, match="name the delimiter"):
        AnswerOnly(near_five, "")


def test_thinking_does_not_count() -> None:
    """Answers of 3, 3, 7 and 0 characters, and one without a delimiter."""
    texts = ["<think>x</think>abc", "quite another thought</think>abc", "</think>abcdefg", "x</think>", "abcde"]
    found = AnswerOnly(near_five)(grouped(texts))
    assert found.values.tolist() == [-2, -2, -2, -5, -5]
    assert found.terms["answered"].tolist() == [1, 1, 1, 1, 0] and found.terms["inner"].tolist() == [-2, -2, -2, -5, -5]
    assert AnswerOnly(near_five, missing="whole")(grouped(texts)).values.tolist() == [-2, -2, -2, -5, 0]
    batch = grouped(texts)
    AnswerOnly(near_five)(batch)
    assert [e.text for e in batch.episodes] == texts


def test_its_methods() -> None:
    made = catalogue.make("S086", model=near_five)
    assert made.objective == ClippedSurrogate(kl_weight=0.001, entropy_weight=0.001) and made.credit == GRPO()
    assert isinstance(made.reward, AnswerOnly) and made.reward.missing == "empty"
    pairs = catalogue.make("S086", model=near_five, algorithm="dpo", missing="whole", end="</r>", delimiter="<r>")
    assert pairs.select == Pairs(count=1) and pairs.objective == PickedPairs(DPO(0.1))
    assert (pairs.reward.missing, pairs.reward.end, pairs.reward.delimiter) == ("whole", "</r>", "<r>")
    critic = catalogue.make("S086", model=near_five, algorithm="ppo", entropy_weight=0.5)
    assert critic.credit == GAE(decay=1.0) and critic.objective == ClippedSurrogate(entropy_weight=0.5)
    other = catalogue.make("S086", model=near_five, kl_weight=0.25, entropy_weight=0.5)
    assert (other.objective.kl_weight, other.objective.entropy_weight) == (0.25, 0.5)
    with pytest.raises(UsageError, match="name the reward by model"):
        catalogue.make("S086")


def test_the_way_around_is_closed() -> None:
    strict, lenient = (learned("S086", arm, steps=30) for arm in ("strict", "lenient"))
    assert strict["answered"] > 0.8 > 0.35 > lenient["answered"] and strict["quality"] > 0.4


def test_its_prompts_are_read(tmp_path: Path) -> None:
    """Rows as the authors' Parquet files have them: chats of one message, and no reference."""
    rows = [
        {
            "data_source": "wildchat-if",
            "prompt": [{"content": f"Write {k} lines.", "role": "user"}],
            "ability": "chat",
            "reward_model": {"style": "model"},
            "extra_info": {"index": k, "split": "train"},
        }
        for k in (2, 3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    source = build(
        "tasks", {"name": "file", "path": str(tmp_path / "train.parquet"), "reference": None, "kind": "none"}
    )
    assert [source[k].prompt for k in (0, 1)] == [({"content": f"Write {k} lines.", "role": "user"},) for k in (2, 3)]
    assert source.size == 2 and source[0].reference is None and source[0].kind == "none"


def test_it_acts_in_training(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        method={"name": "S086", "reward": None, "options": {"model": HERE, "delimiter": "1"}},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2 and all(-5 <= row["reward/mean"] <= 0 <= row["reward/answered"] <= 1 for row in steps)
