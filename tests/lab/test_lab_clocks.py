"""The setting of clocks: who thinks slowly loses where the clock goes on, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from assay.lab.settings.clocks import Setting


def test_slow_thought_costs_in_real_time_alone(tmp_path: Path) -> None:
    setting = Setting(games=("runner", "stall"), actions=40)
    waiting, real = (setting.run({"realtime": realtime}, 3, tmp_path) for realtime in (False, True))
    assert waiting["kept"] == 0 and waiting["fast"] == waiting["slow"] == real["fast"] > 0.5
    assert real["kept"] == real["slow"] - real["fast"] < 0 and real["rollouts"] == 4
    # Who takes no time loses none.
    assert Setting(games=("runner",), slow=0.0, actions=40).run({"realtime": True}, 3, tmp_path)["kept"] == 0
