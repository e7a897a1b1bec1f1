"""A claim of one's own, from its file to its record; and the settings that it may be put into."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from assay import cli
from assay.catalogue.claim import Claim
from assay.cli.lab import lab
from assay.errors import UsageError
from assay.lab.own import claim_in
from assay.lab.settings import settings

PAGE = Path(__file__).parents[2] / "docs" / "add-a-method.md"
CLAIM = next(b for b in re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL) if "setting" in b)


def test_the_pages_claim_runs_and_leaves_a_record(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fooled.toml"
    file.write_text(CLAIM.replace("options.steps = 100", "options.steps = 4\ntuning = [1000]"))
    assert lab(str(file), seeds=2, dir=tmp_path / "runs") == 0
    record = json.loads((tmp_path / "runs" / "record.json").read_text())
    assert record["paper"] == "fooled" and set(record["means"]) == {"plain", "grpo"}
    assert record["setting"]["steps"] == 4 and {"lr": 0.3}.items() <= record["tried"]["grpo"][0].items()
    assert "fooled: Without the group's deviation" in capfd.readouterr().out


def test_a_setting_of_ones_own_is_a_class_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import asdict, dataclass\n\n\n@dataclass\nclass Setting:\n    lr: float = 1.0\n\n"
        "    def describe(self):\n        return asdict(self)\n\n    def run(self, arm, seed, folder):\n"
        "        return {'final': arm['good'] + 0.01 * seed - (self.lr - 1) ** 2, 'rollouts': 4.0}\n"
    )
    file = tmp_path / "own.toml"
    file.write_text(
        f'text = "."\nsetting = "{tmp_path / "mine.py"}:Setting"\nmeasure = "final"\nbetter = "a"\nbaseline = "b"\n'
        "arms.a.good = 1.0\narms.b.good = 0.5\nsweep.lr = [0.5, 1.0, 2.0]\n"
    )
    assert lab(str(file), seeds=6, dir=tmp_path / "runs") == 0
    record = json.loads((tmp_path / "runs" / "record.json").read_text())
    assert record["effect"]["value"] == pytest.approx(0.5) and record["verdict"] == "shown"
    assert record["sign_flip"] == pytest.approx(2 / 2**6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("text = ", "cannot be read as TOML"),
        ('text = "x"', "needs setting, arms, better, baseline, measure"),
        (
            CLAIM.replace('better = "plain"', 'better = "plane"'),
            "compares arm 'plane', which it does not have: plain, grpo",
        ),
        (CLAIM.replace('better = "plain"', 'better = "grpo"'), "compares arm 'grpo' with itself"),
        (f"sede = 1\n{CLAIM}", "has no option 'sede'"),
    ],
)
def test_a_file_that_makes_no_claim_is_told_of(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "claim.toml").write_text(text)
    with pytest.raises(UsageError, match=words):
        claim_in(tmp_path / "claim.toml")
    with pytest.raises(UsageError, match=r"none\.toml cannot be read: No such file"):
        claim_in(tmp_path / "none.toml")


def test_it_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "claim.toml").write_text(CLAIM)
    assert isinstance(claim_in(tmp_path / "claim.toml"), Claim)
    with pytest.raises(UsageError, match="not of a paper: leave out --claim, --setting and --publish"):
        lab(str(tmp_path / "claim.toml"), publish=True)


def test_settings_are_listed_with_their_knobs(capfd: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["noisy_bandit"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(["lab", "settings", *words])
        assert ended.value.code == 0
        out = capfd.readouterr().out
        assert "noisy_bandit" in out and ("false_negative" in out) == bool(words)
    assert all(of.__doc__ for of in settings().values()) and len(settings()) > 50
    with pytest.raises(UsageError, match="no setting 'noisy_bandid'; did you mean 'noisy_bandit'"):
        lab("settings", ("noisy_bandid",))
