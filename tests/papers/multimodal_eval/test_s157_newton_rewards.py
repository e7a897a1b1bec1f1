"""NewtonRewards: both terms and the measures by hand, the gradient through the last steps, five motions, a run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.flow.engine import FlowEngine
from assay.engines.flow.sampling import FlowSampling
from assay.errors import RunError, UsageError
from assay.lab.settings import load
from assay.method import make_method
from assay.objectives.drawings.newton import Newton
from assay.ops.motion import appearance, brightness, kinematic_loss, mass_loss, masses, newton_loss, positions
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import FlowPolicy
from assay.policies.flow.samples import pixels_text, video
from assay.rewards.drawings.newton import NewtonReward
from assay.tasks.drawings.motions import BEYOND, GRAVITY, RANGES, Motions, draw, trajectory
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.drawings.motion import Motion, chamfer, overlap

pytest.importorskip("PIL", reason="pip install assay[diffusion]")


def test_the_kinematic_term_by_hand() -> None:
    """Positions 0 1 4 9 16 accelerate evenly; 0 1 2 3 8 do not: residuals 0 and 4, mean square 8."""
    places = torch.tensor([[0.0, 1, 4, 9, 16], [0, 1, 2, 3, 8], [0, 0.5, 1, 1.5, 4], [2, 2, 2, 2, 2]])[..., None]
    places.requires_grad_()
    found = kinematic_loss(places)
    assert found.tolist() == [0, 8, 2, 0]
    found[1].backward()
    assert places.grad is not None and places.grad[1, :, 0].tolist() == [0, -4, 12, -12, 4]
    plane = torch.stack([places[1, :, 0], 2 * places[1, :, 0]], -1)[None].detach()
    assert kinematic_loss(plane).item() == 8 + 32


def test_the_mass_term_by_hand() -> None:
    """Light of 1, .9, .8, .7 against the first frame: .046667."""
    light = torch.tensor([1.0, 0.9, 0.8, 0.7])[None, :, None, None] * torch.tensor([[0.0, 0.5], [0.5, 1.0]])
    frames = (2 * light - 1)[..., None].expand(1, 4, 2, 2, 3)
    assert torch.allclose(brightness(frames), light) and masses(light)[0].tolist() == pytest.approx([2, 1.8, 1.6, 1.4])
    assert newton_loss(frames, None, "centroid", 0)[1].item() == pytest.approx(0.046667, abs=1e-6)
    # Against a real video with all of the light: four frames, the first like it.
    real = frames[:, :1].expand(1, 4, 2, 2, 3)
    assert newton_loss(frames, real, "centroid", 0)[1].item() == pytest.approx(0.035)
    assert mass_loss(torch.tensor([[[3.0, 1.0]]]), torch.tensor([[[2.0, 2.0]]])).item() == 0.25
    # The centre stays where it is; the moment over the first frame's light goes with the light.
    centre, moment = positions(light), positions(light, "moment")
    assert torch.allclose(centre[0], torch.tensor([0.625, 0.375]).expand(4, 2))
    assert torch.allclose(moment[0], centre[0] * torch.tensor([1.0, 0.9, 0.8, 0.7])[:, None])
    assert positions(torch.zeros(1, 1, 2, 2)).abs().sum() == 0
    wide = torch.zeros(1, 1, 2, 4)
    wide[0, 0, 0, 3] = 1
    assert positions(wide)[0, 0].tolist() == [1.75, 0.75]


def test_looks_do_not_say_where() -> None:
    places = np.array([[0.5, 0.5], [0.3, 0.6], [0.55, 0.42]])
    light = brightness(torch.from_numpy(draw(places, 24, 24, 0.08).astype(np.float32) / 127.5 - 1)[None])
    found = appearance(light)
    assert found.shape == (1, 3, 9) and appearance(light, 0).shape == (1, 3, 1)
    assert torch.allclose(found[0, 1:], found[0, :1].expand(2, 9), rtol=0.02)
    assert torch.equal(found[..., 0], masses(light)) and torch.equal(found, appearance(light))
    # Half the size with the same light is another thing.
    small = torch.from_numpy(draw(places[:1], 24, 24, 0.04).astype(np.float32))[None].mean(-1) / 255 * 4
    looks = appearance(small)[0, 0]
    assert looks[0] == pytest.approx(found[0, 0, 0].item(), rel=0.02) and bool((looks[1:] > 2 * found[0, 0, 1:]).all())
    assert bool((appearance(2 * light)[..., 1:] / found[..., 1:] - 4 < 1e-4).all())


def flow() -> FlowPolicy:
    config = FlowConfig(shape=(4, 6, 1, 3), hidden=8, layers=1)
    return FlowPolicy(config, network(config, 0))


SOURCE = Motions(seed=1, primitives=("free_fall",), frames=4, height=6, width=1)


def batch_of(policy: FlowPolicy, task: Task, sampling: Sampling) -> Batch:
    [group] = FlowEngine(policy).generate([Request(task.prompt, 3, sampling, 5)])
    batch = Batch.from_groups([Group(Ask(task, 3), tuple(group), (Verdict.right(),) * 3)])
    batch.totals = batch.count()
    return batch


def test_the_gradient_goes_through_the_last_steps() -> None:
    policy, task = flow(), SOURCE[0]
    batch = batch_of(policy, task, FlowSampling(6, end=4))
    objective = catalogue.make("S157", steps=2, weight=3.0).objective
    assert objective.live == {"sample@2"}
    output = policy.forward(batch, objective.live)
    batch.live = output.live
    loss = objective(output.logprobs, batch)
    shape = (3, 4, 6, 1, 3)
    drawn = torch.from_numpy(np.stack([e.drawing.states[-1] for e in batch.episodes]))
    real = torch.from_numpy(video(task.solution)).expand(shape)
    kinematic, mass = newton_loss(drawn, real, "moment", 8)
    assert loss.value.item() == pytest.approx((kinematic + 3 * mass).mean().item(), rel=1e-4)
    assert loss.metrics == pytest.approx({"kinematic": kinematic.mean().item(), "mass": mass.mean().item()}, rel=1e-4)
    loss.value.backward()
    grads = [p.grad.clone() for p in policy.module.parameters()]
    # By hand: two steps from the last noisy state, differentiated.
    policy.module.zero_grad()
    x = torch.from_numpy(np.stack([e.drawing.states[4] for e in batch.episodes])).flatten(1)
    for k in (4, 5):
        level = torch.full((3,), 1 - k / 6)
        x = x - policy.velocity(x, level, None) / 6
    again = newton_loss(x.reshape(shape), real, "moment", 8)
    (again[0] + 3 * again[1]).mean().backward()
    for a, p in zip(grads, policy.module.parameters(), strict=True):
        assert p.grad is not None and torch.allclose(a, p.grad, rtol=1e-3, atol=1e-5)
    # Samples that are left out have no part in it.
    batch.weights = torch.tensor([1.0, 0.0, 0.0])
    batch.totals = batch.count()
    assert objective(output.logprobs, batch).value.item() == pytest.approx((kinematic + 3 * mass)[0].item(), rel=1e-4)
    first = Newton(steps=2, against="first", filters=0, proxy="centroid")
    wanted = newton_loss(drawn, None, "centroid", 0)
    batch.tasks = [replace(task, solution=None)] * 3
    assert first(output.logprobs, batch).value.item() == pytest.approx((wanted[0] + 30 * wanted[1])[0].item(), rel=1e-4)
    with pytest.raises(RunError, match="no real video"):
        objective(output.logprobs, batch)


def test_the_methods_own_numbers() -> None:
    made = catalogue.make("S157")
    assert made.objective == Newton(30.0, 1, "moment", "real", 8) and Newton() == made.objective
    assert made.objective.reads == "nothing" and made.objective.ignores_rewards
    scalar = catalogue.make("S157", scalar=True, weight=2.0)
    assert scalar.reward == NewtonReward(2.0, "moment", "real", 8) and scalar.objective == make_method("grpo").objective
    for odd in ({"weight": -1.0}, {"weight": math.inf}, {"filters": -1}):
        with pytest.raises(UsageError, match="0 or more"):
            Newton(**odd)
        with pytest.raises(UsageError, match="0 or more"):
            NewtonReward(**odd)
    with pytest.raises(UsageError, match="at least 1"):
        Newton(steps=0)
    config = FlowConfig(hidden=8, layers=1)
    points = FlowPolicy(config, network(config, 0))
    batch = batch_of(points, Task("t", ""), Sampling(2))
    batch.live = {"sample@1": torch.zeros(3, 2)}
    with pytest.raises(UsageError, match="drawn videos of at least 4 frames"):
        made.objective(batch.logprobs, batch)


def said(task: Task, *texts: str) -> Batch:
    token = np.ones(1, dtype=np.int64)
    episodes = tuple(Episode(token, token, token > 0, np.zeros(1, np.float32), text, "eos") for text in texts)
    return Batch.from_groups([Group(Ask(task, len(texts)), episodes, (Verdict.right(),) * len(texts))], torch.float64)


def test_the_scalar_reward() -> None:
    task = SOURCE[0]
    real = video(task.solution)
    dim = pixels_text(((real + 1) * 127.5 * 0.5).astype(np.uint8))
    found = NewtonReward()(said(task, task.solution, dim, "no video", pixels_text(np.zeros((4, 5, 1, 3), np.uint8))))
    kinematic, mass = newton_loss(
        torch.from_numpy(np.stack([real, video(dim)])), torch.from_numpy(np.stack([real] * 2)), "moment", 8
    )
    assert found.values[:2].tolist() == pytest.approx((-(kinematic + 30 * mass)).tolist())
    assert mass[0] == 0 and mass[1] > 0.2 and found.values[2:].tolist() == [-100, -100] and found.valid.all()
    assert found.terms["mass"].tolist() == pytest.approx([0, -mass[1].item(), 0, 0])
    assert NewtonReward(broken=-1.0)(said(task, "x")).values.tolist() == [-1]
    for odd in (None, pixels_text(np.zeros((3, 6, 1, 3), np.uint8))):
        with pytest.raises(RunError, match="no real video of at least 4 frames"):
            NewtonReward()(said(replace(task, solution=odd), "x"))


def test_five_motions() -> None:
    given = {"height": 0.8, "speed": 0.3, "angle": 30.0, "friction": 0.1}
    time = np.linspace(0, 1, 5)

    def ends(name: str, width: float = 1.0) -> list[float]:
        found = trajectory(name, given, time, width)
        assert np.abs(np.diff(found, 3, axis=0)).max() < 1e-12, name
        return [*found[0], *found[2], *found[-1]]

    root = math.sqrt(3) / 2
    assert GRAVITY == 0.7
    assert ends("free_fall", 0.5) == pytest.approx([0.25, 0.8, 0.25, 0.7125, 0.25, 0.45])
    assert ends("horizontal_throw", 2) == pytest.approx([0.4, 0.8, 0.55, 0.7125, 0.7, 0.45])
    assert ends("parabolic_throw") == pytest.approx([0.2, 0.55, 0.35, 0.6125, 0.5, 0.5])
    slide = 0.7 * (0.5 - 0.1 * root) / 2
    assert ends("ramp_down") == pytest.approx(
        [0.2, 0.8, 0.2 + slide * root / 4, 0.8 - slide / 8, 0.2 + slide * root, 0.8 - slide / 2]
    )
    # Up it stops after speed / slowing seconds, speed^2 / (2 slowing) on.
    slowing = 0.7 * (0.5 + 0.1 * root)
    far = 0.09 / (2 * slowing)
    assert ends("ramp_up") == pytest.approx(
        [0.2, 0.45, 0.2 + 0.75 * far * root, 0.45 + 0.75 * far / 2, 0.2 + far * root, 0.45 + far / 2]
    )
    source = Motions(seed=2)
    assert (source.frames, source.height, source.width, source.radius, source.size) == (8, 16, 16, 0.08, None)
    assert len(source.primitives) == 5 and Motions().seed == 0 and Motions().beyond == ()
    for motions in (source, Motions(beyond=("height", "speed", "friction"))):
        for task in [motions[i] for i in range(40)]:
            places = np.array(task.reference["positions"])
            assert places.shape == (8, 2) and places.min() > 0 and places.max() < 1
            verdict = Motion()(task, task.solution or "")
            assert (
                verdict.passed
                and verdict.parts["iou"] == 1
                and verdict.parts["iou | light"] == pytest.approx(1, abs=0.1)
            )
            assert verdict.score > 0.85 and verdict.parts["iou | motion range"] == pytest.approx(1, abs=0.1)
    assert task.meta == {"source": "motions", "category": "ramp_up", "beyond": "height, speed, friction"}
    assert Motions(seed=2)[3].meta["beyond"] == "nothing" and Motions(seed=2)[3] != Motions(seed=3)[3]
    assert RANGES["speed"] == (0.2, 0.4) and BEYOND["speed"] == (0.4, 0.6) and RANGES["angle"] == BEYOND["angle"]
    tall = [float(Motions(beyond=("height",))[5 * i].prompt.split()[2].strip(",")) for i in range(20)]
    assert min(tall) >= 0.55 and max(tall) <= 0.7


def test_measures_by_hand() -> None:
    """A dot of one pixel in a column of four goes down; the drawn one lags behind by a pixel in its last frame."""
    real = np.zeros((4, 4, 1, 3), np.uint8)
    drawn = real.copy()
    for frame, row, lag in ((0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 2)):
        real[frame, row] = 255
        drawn[frame, lag] = 255
    places = [[0.125, 0.875], [0.125, 0.625], [0.125, 0.375], [0.125, 0.125]]
    task = Task("t", "", {"positions": places, "video": pixels_text(real)}, "motion")
    whole = Motion()(task, pixels_text(real))
    assert whole.score == 1 and whole.passed and whole.parts["iou"] == 1
    late = Motion()(task, pixels_text(drawn))
    away = 0.25 / 4
    assert late.score == pytest.approx(math.exp(-away / 0.1)) and not late.passed
    assert Motion(within=0.07)(task, pixels_text(drawn)).passed and Motion() == Motion(0.1, 0.05)
    assert late.parts["iou"] == 0.75
    notes = {name.partition(" | ")[2]: value for name, value in late.parts.items() if " | " in name}
    assert notes == pytest.approx({
        "pixel L2": math.sqrt(2 / 16),
        "chamfer": 0.25 / 4,
        "velocity RMSE": math.sqrt(0.25**2 / 3),
        "acceleration RMSE": math.sqrt(0.25**2 / 2),
        "motion range": 2 / 3,
        "light": 1.0,
    })  # fmt: skip
    dark = Motion()(task, pixels_text(np.zeros_like(real)))
    assert dark.parts["iou"] == 0 and dark.parts["iou | chamfer"] == 1 and dark.parts["iou | motion range"] == 0
    one, two, none = np.eye(3), np.eye(3)[::-1], np.zeros((3, 3))
    assert overlap(one, two) == 0.2 and overlap(none, none) == 1 and overlap(one, none) == 0
    assert chamfer(none, none) == 0 and chamfer(one, one) == 0
    assert chamfer(np.eye(3)[:1], np.eye(3)[[1]]) == pytest.approx(1.0)
    assert overlap(np.full((1, 1), 0.25), np.ones((1, 1))) == 1 and overlap(np.full((1, 1), 0.24), np.ones((1, 1))) == 0


def test_what_is_no_video() -> None:
    task = SOURCE[0]
    for text in ("", "falls", pixels_text(np.zeros((3, 6, 1, 3), np.uint8))):
        verdict = Motion()(task, text)
        assert verdict.passed is False and verdict.feedback == "not a video of 4 x 6 x 1"
    for odd in (replace(task, reference=None), replace(task, reference={}),
                replace(task, reference={**task.reference, "video": "x"}),
                *(replace(task, reference={**task.reference, "positions": p}) for p in ([[0, 0]], [["a", 0]] * 4)),
                replace(task, reference={**task.reference, "positions": [[float("nan"), 0]] * 4})):  # fmt: skip
        verdict = Motion()(odd, task.solution or "")
        assert (verdict.passed, verdict.fault) == (None, "tests")
    for options in ({"scale": 0.0}, {"within": 0.0}):
        with pytest.raises(UsageError, match="above 0"):
            Motion(**options)
    made: list[tuple[dict[str, Any], str]] = [
        ({"primitives": ()}, "empty"), ({"frames": 3}, "4 to 256"), ({"height": 0}, "1 to 1024"),
        ({"width": 0}, "1 to 1024"), ({"radius": 0.0}, "above 0"), ({"radius": 0.6}, "at most 0.5"),
        ({"seed": -1}, "seed"),
    ]  # fmt: skip
    for options, words in made:
        with pytest.raises(UsageError, match=words):
            Motions(**options)
    Motions(frames=4, height=1, width=1024, radius=0.5)


def test_it_trains(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"source": "flow", "flow": {"shape": [4, 6, 1, 3], "hidden": 8, "layers": 1}},
        tasks={"source": {"name": "motions", "primitives": ["free_fall"], "frames": 4, "height": 6, "width": 1}},
        method={"name": "S157", "reward": None, "rollout": {"name": "denoise", "end": 3}},
        warmup={"steps": 2, "batch": 4},
        run={"checkpoint_every": 100},
        rollout={"prompts": 2, "group": 2, "max_tokens": 4},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and all(row["kinematic"] > 0 and row["mass"] > 0 and row["grad_norm"] > 0 for row in rows)


def test_the_setting() -> None:
    setting = load("wobble", {"shown": 5, "steps": 1, "prompts": 2, "group": 2, "hidden": 8})
    found = setting.run({"name": "S157"}, 0, Path())
    assert found["sampled"] == 4 and {"light", "jerk", "range", "start/light"} < set(found)
    assert setting.describe()["wobble"] == 0.05
