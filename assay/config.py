"""A run's configuration: one typed tree, read from TOML, changed with ``a.b.c=value``."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from assay.errors import UsageError, nearest
from assay.policies.loading import ModelConfig
from assay.recipes import DATA, OWN, file_source, recipe_data, recipe_names
from assay.recipes.other_names import NAMES

Spec = str | dict[str, Any]
"""A part: its name, or a table with ``name`` and options."""

NAMED_BY = {"method": "name", "model": "source", "tasks": "source", "engine": "name"}
"""Sections that a name can stand for, and the key it is the value of: ``model = "nano"``."""


LARGEST = 10**7
"""Of tokens, tasks, responses and rows: ten times what anybody has asked for is a slip of the hand."""
MOST_STEPS = 10**9
"""Of steps, and of the tokens of a micro-batch."""
MOST_PROCESSES = 4096
LARGEST_SEED = 2**63 - 1

Auto = Literal["auto"]
"""Stands for a value that is chosen when the run begins, and then said."""
Decay = Annotated[float, Field(ge=0, lt=1)]
Mark = Annotated[str, Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation is not bool:
            raise ValueError("expected another type than true or false")
        return value


class TasksConfig(_Section):
    """What is asked, and what is held out to measure progress."""

    source: Spec = "arithmetic"
    """A task source and its options, or a file of tasks, whose fields are found by their usual names."""
    eval_source: Spec | list[Spec] | None = None
    """Where held-out tasks come from, if not from ``source``: a test set's file, a benchmark's name, a task source, or
    a table of what is other in ``source``, ``{split = "test"}``; or a list of these, tables with ``as = LABEL`` if
    wanted. Training has all of ``source`` then, but for tasks that stand here too."""
    eval_size: Annotated[int, Field(ge=1, le=LARGEST)] | Auto = "auto"
    """Held-out tasks; ``auto`` takes what the share holds, at most 500. Of each ``eval_source`` that has so many,
    of others all; by ``auto`` all, and 500 of an endless one."""
    eval_share: float = Field(0.1, gt=0, le=1)
    """Share of all contents set aside for evaluation, by content hash; training never sees them. 1 measures on every
    task, and leaves none to train on. Without use beside an ``eval_source``."""
    max_prompt: int | None = Field(None, gt=0, le=LARGEST)
    """Leave out tasks with longer prompts than this, in tokens of the model with its chat template, on both sides."""
    eval_seed: Annotated[int, Field(ge=0, le=LARGEST)] | None = None
    """Which tasks are set aside: runs of the same number set the same ones aside; the run's seed unless given. A run
    that goes on from another's model needs its number, to be measured on what neither has learnt from."""
    verify: Spec | None = None
    """A verifier for every task, in place of the one its kind names."""
    train_verify: Spec | None = None
    """A verifier of what is learnt from, where ``verify`` is to judge held-out tasks alone: one known to err, say."""
    verify_workers: int = Field(0, ge=0, le=MOST_PROCESSES)
    """Processes that judge responses; 0 judges in the training process."""

    @field_validator("source", mode="before")
    @classmethod
    def _file(cls, value: Any) -> Any:
        """A file's path stands for the tasks in it."""
        return file_source(value) if isinstance(value, str) and Path(value).suffix.lower() in DATA else value


class WarmupConfig(_Section):
    """Supervised training on the tasks' worked solutions before RL."""

    steps: int = Field(0, ge=0, le=MOST_STEPS)
    """At most this many steps; 0 goes to RL at once."""
    target: float | None = Field(None, gt=0, le=1)
    """Go on to RL once held-out pass@1 reaches this."""
    every: int = Field(20, gt=0, le=MOST_STEPS)
    """Steps between looks at the target."""
    batch: int = Field(64, gt=0, le=LARGEST)
    """Solutions per step."""
    lr: float = Field(1e-3, gt=0)
    """Learning rate."""
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    """How it falls after the ramp: not, in a line to zero, or as half a cosine."""
    ramp: int = Field(10, ge=0, le=MOST_STEPS)
    """Steps over which the learning rate rises from zero."""


class MethodConfig(_Section):
    """The method, and any seam replaced by another part."""

    name: str = "grpo"
    """``grpo``, ``dapo`` or another standard method's (`assay papers show dapo`), or the id of a paper."""
    options: dict[str, Any] = {}
    """Of the paper's method, as ``assay papers show`` lists them."""
    curriculum: Spec | None = None
    """Which tasks are asked; ``assay parts curriculum``, and so for the other seams."""
    rollout: Spec | None = None
    """How responses come about."""
    reward: Spec | list[Spec] | None = None
    """A part, a function as ``file.py:name``, or a list of these, each with a ``weight`` and ``as`` if wanted."""
    credit: Spec | None = None
    """Which tokens earned the reward."""
    select: Spec | None = None
    """Which samples count."""
    objective: Spec | None = None
    """What is minimised."""


class RolloutConfig(_Section):
    """How training responses are sampled."""

    prompts: int = Field(32, gt=0, le=LARGEST)
    """Tasks per step."""
    group: int = Field(8, gt=0, le=LARGEST)
    """Responses per task."""
    max_tokens: int = Field(256, gt=0, le=LARGEST)
    """Longest response."""
    temperature: float = Field(1.0, gt=0)
    """Logits are divided by it; below 1 sharpens."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Keep the most likely tokens that have this probability together; 1 keeps all."""
    top_k: int = Field(0, ge=0, le=LARGEST)
    """Keep the k most likely tokens; 0 keeps all."""
    stop: list[Mark] = []
    """Strings that end a response."""
    max_rows: int = Field(1024, gt=0, le=LARGEST)
    """Responses decoded together, at most; engine hf takes fewer where their keys and values would need over a quarter
    of the device's memory."""


class EngineConfig(_Section):
    """Who generates during training."""

    name: str = "hf"
    """``hf`` decodes with the very weights being trained; another engine is given them after every update."""
    options: dict[str, Any] = {}
    """Of the engine."""
    check_every: int = Field(10, ge=0)
    """RL steps between comparisons of an engine's log-probabilities with the policy's; 0 compares at the start only."""
    mismatch: float = Field(1e-3, ge=0)
    """KL divergence, in nats per token, of the policy from the engine above which ``correction`` is switched on."""
    correction: Literal["none", "token_truncate", "token_mask"] = "token_truncate"
    """What is then done about it: importance weights that are truncated, or tokens left out."""


class OverlapConfig(_Section):
    """What runs beside what."""

    staleness: int = Field(0, ge=0, le=LARGEST)
    """RL steps that the weights which write a batch are behind those that learn from it; 0 is strictly on-policy."""
    verify_chunks: int = Field(1, ge=1, le=LARGEST)
    """Parts that a batch is generated in; one is judged while the next is generated.

    Of an engine that tells of responses as they end, each is judged then."""


class ScaleConfig(_Section):
    """How many processes share the work; all zero and one is this process alone."""

    nodes: int = Field(1, ge=1, le=MOST_PROCESSES)
    """Machines."""
    trainers: int = Field(1, ge=1, le=MOST_PROCESSES)
    """Processes that the policy, its gradient and its optimiser are sharded over."""
    engines: int = Field(0, ge=0, le=MOST_PROCESSES)
    """Processes that generate; 0 generates where the policy is trained."""
    verifiers: int = Field(0, ge=0, le=MOST_PROCESSES)
    """Processes that judge, on any machine; 0 judges where ``tasks.verify_workers`` says."""
    weights: Literal["store", "broadcast"] = "store"
    """How engines get new weights: from Ray's object store, or by one broadcast of NCCL or gloo."""
    offload: bool = False
    """With several trainers: keep shards and the optimiser's state in the machine's memory, not the GPU's."""


class TrainConfig(_Section):
    """The RL stage."""

    steps: int = Field(100, ge=0, le=MOST_STEPS)
    """How many, each from asking to the update."""
    epochs: int = Field(1, gt=0, le=LARGEST)
    """Passes over the rollout batch per step."""
    mini_batches: int = Field(1, gt=0, le=LARGEST)
    """Optimiser steps per pass."""
    optimizer: Literal["adamw", "adamw8bit"] = "adamw"
    """``adamw8bit`` keeps the moments in eight bits (extra ``lowbit``); of the warm-up too."""
    lr: Annotated[float, Field(gt=0)] | Auto = "auto"
    """Learning rate; ``auto`` takes one that suits the model's size, and the run's folder says which."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How it falls after the ramp: not, in a line to zero, or as half a cosine."""
    ramp: int = Field(0, ge=0, le=MOST_STEPS)
    """Optimiser steps over which the learning rate rises from zero."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay rates of the moving averages of the gradient and of its square."""
    weight_decay: float = Field(0.0, ge=0)
    """Share of the weights, times the learning rate, taken off in each optimiser step."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Gradients are scaled down to this L2 norm."""
    token_budget: int = Field(8192, gt=0, le=MOST_STEPS)
    """Tokens per micro-batch."""
    target: float | None = Field(None, gt=0, le=1)
    """Stop once held-out pass@1 reaches this at an evaluation."""

    @property
    def peak(self) -> float:
        """The learning rate, which a run that has begun has chosen."""
        assert self.lr != "auto", "chosen where a run is built, assay.learning.rate"
        return self.lr


class EvalConfig(_Section):
    """How held-out tasks are measured."""

    every: int = Field(0, ge=0, le=MOST_STEPS)
    """RL steps between evaluations; 0 evaluates only before and after."""
    samples: int = Field(4, ge=0, le=LARGEST)
    """Responses per task in the evaluations before and after; those during training take one. 0 evaluates never."""
    temperature: float = Field(1.0, ge=0)
    """0 is greedy."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Keep the most likely tokens that have this probability together; 1 keeps all."""


class OutputConfig(_Section):
    """What a run leaves behind."""

    dir: Mark = "runs/run"
    """The run's folder; where one is there already, the first of NAME-2, NAME-3, ... that is not."""
    checkpoint_every: int = Field(50, gt=0, le=MOST_STEPS)
    """Steps between checkpoints."""
    keep: Annotated[int, Field(ge=1, le=MOST_STEPS)] | Literal["all"] = 2
    """Checkpoints that stay, the last ones."""
    best: Literal["pass@1", "score/mean"] | None = None
    """Keep the weights, too, that were best by this at an evaluation, the first of equals, in ``best/rl-000050``; of a
    run in stages those of the last one. Evaluations come every ``evaluate.every`` steps and at the end."""
    rollouts_every: int = Field(1, gt=0, le=MOST_STEPS)
    """Steps between stored rollouts."""
    rollout_tokens: bool = False
    """Store values of single tokens with the rollouts, for `assay view`. Costs a forward pass of the policy in steps
    that are stored, and some 10 to 25 bytes a token on disk."""
    tensorboard: bool = True
    """Write the metrics as a TensorBoard event file too."""
    loggers: list[Spec] = []
    """Where metrics and samples of rollouts go besides: `assay parts logger`, or file.py:Name."""
    callbacks: list[Spec] = []
    """Code that is called as the run goes on: `assay parts callback`, or file.py:Name."""
    report: bool = True
    """Write report.html when the run begins, as it goes on, and at the end."""
    changed_tasks: Literal["refuse", "accept"] = "refuse"
    """What a resumed run does where its tasks' content is no longer what it was."""


class UntilConfig(_Section):
    """When a stage ends before its last step: what the mean of a metric over its latest steps has come to."""

    metric: Mark = "pass_rate"
    """Of ``metrics.jsonl``; steps without it are passed over."""
    window: int = Field(20, ge=1, le=LARGEST)
    """Steps that the mean is of."""
    above: float | None = None
    """Ends the stage once the mean is at least this."""
    below: float | None = None
    """Ends it once the mean is at most this."""
    plateau: float | None = None
    """Ends it once the mean is less than this above that of as many steps before."""

    @model_validator(mode="after")
    def _some_rule(self) -> UntilConfig:
        if self.above is None and self.below is None and self.plateau is None:
            raise ValueError("give above, below or plateau")
        return self


class StageConfig(_Section):
    """A stage of the RL run: what is other in it than the recipe's sections say."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    """Of the stage; its end is measured as ``after-NAME``."""
    steps: int = Field(gt=0, le=MOST_STEPS)
    """At most this many."""
    tasks: Spec | None = None
    """Its source of tasks; the run's if left out. Nothing is asked that the run holds out."""
    method: Spec = {}
    """A method's name, or what is changed of the run's; ``{objective = "sft", rollout = "recorded"}`` learns from
    worked solutions."""
    rollout: dict[str, Any] = {}
    """Keys of ``rollout`` that differ, all but ``max_rows``."""
    train: dict[str, Any] = {}
    """Keys of ``train`` that differ, all but ``steps``."""
    until: UntilConfig | None = None
    """When it ends sooner."""
    best: Literal["pass@1", "score/mean"] | None = None
    """The next stage goes on from those of its weights that were best by this at an evaluation, the first of equals;
    from its last ones if left out. Evaluations come every ``evaluate.every`` steps and at its end."""

    def within(self, run: RunConfig) -> RunConfig:
        """Return the stage as a configuration of its own, with its own number of steps.

        Raises:
            UsageError: a key that a stage cannot change, or that there is not.
        """
        for section, key in (("rollout", "max_rows"), ("train", "steps")):
            if key in getattr(self, section):
                raise UsageError(f"stage {self.name!r}: {section}.{key} is not for a stage to change")
        data = run.model_dump()
        # The best of the run are told within the last stage, whose length the run has looked at.
        data["stages"], data["train"]["target"], data["run"]["best"] = [], None, None
        if self.tasks is not None:
            data["tasks"]["source"] = self.tasks
        method = {"name": self.method} if isinstance(self.method, str) else self.method
        named = {k: v for k, v in data["method"].items() if isinstance(v, str) and _changes(method.get(k))}
        data["method"] = merged({**data["method"], **{k: {"name": v} for k, v in named.items()}}, method)
        data["rollout"] = merged(data["rollout"], self.rollout)
        data["train"] = {**merged(data["train"], self.train), "steps": self.steps}
        try:
            return RunConfig.model_validate(data)
        except ValidationError as error:
            raise UsageError(f"stage {self.name!r}: {_explain(error)}") from None


def _changes(spec: Any) -> bool:
    """Whether a part is described by what is other in it, and not by a name or a function."""
    return isinstance(spec, Mapping) and not {"name", "function"} & spec.keys()


class RunConfig(_Section):
    """Everything a run depends on."""

    seed: int = Field(0, ge=0, le=LARGEST_SEED)
    """Of every random draw: the same seed on the same machine gives the same run, on a GPU if ``deterministic``."""
    deterministic: bool = False
    """On a GPU, take kernels that add up in one order, so that a run repeats and resumes bit for bit; slower. An
    operation that has no such kernel is warned of by torch."""
    model: ModelConfig = ModelConfig()
    tasks: TasksConfig = TasksConfig()
    warmup: WarmupConfig = WarmupConfig()
    method: MethodConfig = MethodConfig()
    rollout: RolloutConfig = RolloutConfig()
    engine: EngineConfig = EngineConfig()
    overlap: OverlapConfig = OverlapConfig()
    scale: ScaleConfig = ScaleConfig()
    train: TrainConfig = TrainConfig()
    evaluate: EvalConfig = EvalConfig()
    run: OutputConfig = OutputConfig()
    stages: list[StageConfig] = []
    """RL, or learning from records, in stages that follow each other; none is a single one, as the sections say."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        """``method = "S014"``, ``model = "nano"`` and ``tasks = "countdown"`` stand for the table with that name."""
        return {**data, **{s: table(data, s) for s in NAMED_BY if s in data}} if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _stages_fit(self) -> RunConfig:
        if self.run.best is not None:
            self._best_fits("run.best", self.stages[-1].steps if self.stages else self.train.steps)
        if not self.stages:
            return self
        names, steps = [stage.name for stage in self.stages], sum(stage.steps for stage in self.stages)
        if len(set(names)) < len(names):
            raise UsageError(f"stages: two have one name: {', '.join(names)}")
        if "steps" not in self.train.model_fields_set:
            train = self.train.model_copy(update={"steps": steps})
            train.model_fields_set.discard("steps")  # it follows from the stages, also when they are changed
            object.__setattr__(self, "train", train)
        if self.train.steps != steps:
            raise UsageError(f"train.steps = {self.train.steps}: the stages have {steps} together; leave it out")
        if self.train.target is not None:
            raise UsageError("train.target: say which stage it ends, train = {target = ...} in its table")
        if self.overlap.staleness and any(stage.until is not None for stage in self.stages):
            raise UsageError("overlap.staleness asks ahead, and until says at any step that a stage is over; use 0")
        for stage in self.stages:
            stage.within(self)
            if stage.best is not None:
                where = f"stage {stage.name!r}: best"
                if stage is self.stages[-1]:
                    raise UsageError(f"{where} is what the next stage begins with, and none follows; set run.best")
                self._best_fits(where, stage.steps)
        return self

    def _best_fits(self, where: str, steps: int) -> None:
        """Raise UsageError where the best weights of so many steps cannot be told."""
        if not self.evaluate.samples or not 0 < self.evaluate.every < steps:
            raise UsageError(
                f"{where} is told by evaluations within its {steps} steps; set evaluate.every below that, and "
                "evaluate.samples above 0"
            )


def load_config(recipe: str | Path | Mapping[str, Any] | None = None, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a recipe and apply overrides.

    Args:
        recipe: path of a TOML file, the name of a recipe of the package, a file of tasks (JSONL, JSON, CSV,
            TSV, Parquet), a nested mapping, or ``None`` for the defaults.
        overrides: ``a.b.c=value`` each; the value is read as TOML, or as plain text where that fails.

    Raises:
        UsageError: file missing, not TOML, unknown key (names the nearest), value of the wrong type.
    """
    where = "configuration"
    if recipe is None:
        data: dict[str, Any] = {}
    elif isinstance(recipe, Mapping):
        data = _copy(recipe)
    else:
        where = str(recipe)
        data = read_recipe(recipe)
    for override in overrides:
        apply_override(data, override)
    if recipe is not None and not isinstance(recipe, Mapping):
        data = shown_first(recipe, data)
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        if overrides and _sound(recipe):
            where = "overrides"
        raise UsageError(f"{where}: {_explain(error)}") from None


def _sound(recipe: str | Path | Mapping[str, Any] | None) -> bool:
    """Whether nothing is wrong with a recipe by itself."""
    try:
        load_config(recipe)
    except UsageError:
        return False
    return True


def read_recipe(recipe: str | Path) -> dict[str, Any]:
    """Return the sections of a TOML file, of a recipe of the package or of a file of tasks, unchecked.

    Raises:
        UsageError: it is none of these, or cannot be read.
    """
    return recipe_data(recipe) or _read(Path(recipe))


def shown_first(recipe: str | Path, data: dict[str, Any]) -> dict[str, Any]:
    """Return the sections with what a built-in model needs where the recipe is a file of tasks: to be shown answers."""
    model = table(data, "model")
    if (
        Path(recipe).suffix.lower() not in DATA
        or not isinstance(model, Mapping)
        or model.get("source", "nano") != "nano"
    ):
        return data
    return {**data, **{section: {**values, **table(data, section)} for section, values in OWN.items()}}


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        if close := difflib.get_close_matches(path.name, _recipes_in(path.parent), n=1, cutoff=0.8):
            raise UsageError(f"no file {path}; did you mean {str(path.with_name(close[0]))!r}?")
        raise UsageError(f"no recipe {path}{nearest(str(path), recipe_names())}; `assay recipes` lists them")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _recipes_in(folder: Path) -> list[str]:
    """The names of a folder's files that may be recipes: TOML files and files of tasks."""
    try:
        return [file.name for file in folder.iterdir() if file.suffix.lower() in (".toml", *DATA)]
    except OSError:
        return []


def table(data: Mapping[str, Any], section: str) -> Any:
    """Return a section of a recipe as a table, where a name may stand for one; anything else comes back as it is."""
    value = data.get(section, {})
    return {NAMED_BY[section]: value} if section in NAMED_BY and isinstance(value, str) else value


def merged(base: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with what ``more`` has; tables within are merged, unless another part is named there."""
    if not isinstance(base, Mapping) or ("name" in more and base.get("name") != more["name"]):
        return dict(more)
    both = {k: merged(base.get(k), v) if isinstance(v, Mapping) else v for k, v in more.items()}
    return {**base, **both}


def apply_override(data: dict[str, Any], override: str) -> None:
    """Set one ``a.b.c=value`` in a nested dictionary.

    A name standing where a table is needed becomes that table's name. A name for ``model`` or ``tasks`` keeps the rest
    of the section; another method brings its own parts.

    Raises:
        UsageError: not of that form, or a value stands where a table is needed.
    """
    key, equals, text = override.partition("=")
    if not equals or not all(key.split(".")):
        if not equals and Path(key).suffix.lower() in DATA:
            raise UsageError(f"one file of tasks is trained on; to measure on {key}: tasks.eval_source={key}")
        raise UsageError(f"override {override!r} is not of the form a.b.c=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    put(data, key, value)


def put(data: dict[str, Any], key: str, value: Any) -> None:
    """Set ``a.b.c`` to a value in a nested dictionary, see :func:`apply_override`.

    Raises:
        UsageError: a value stands where a table is needed.
    """
    override = f"{key}={_short(value)}"
    if key in ("model", "tasks") and isinstance(value, str):
        key = f"{key}.{NAMED_BY[key]}"
    *path, last = key.split(".")
    for i, part in enumerate(path):
        inner = data.setdefault(part, {})
        if isinstance(inner, str):
            inner = data[part] = {NAMED_BY.get(part, "name") if i == 0 else "name": inner}
        if part == "stages" and i == 0 and isinstance(inner, list) and path[1:]:
            inner = {stage["name"]: stage for stage in inner if isinstance(stage, dict) and "name" in stage}
            if path[1] not in inner:
                raise UsageError(f"override '{override}': no stage {path[1]!r}{nearest(path[1], inner)}")
        if not isinstance(inner, dict):
            raise UsageError(f"override '{override}': {part} is {inner!r}, not a table")
        data = inner
    data[last] = value


def dump_config(config: RunConfig) -> str:
    """Return the configuration as TOML that :func:`load_config` reads back.

    Raises:
        UsageError: an option is something that TOML cannot hold.
    """
    import tomli_w

    try:
        data = config.model_dump(mode="json", exclude=None if config.stages else {"stages"})
        return tomli_w.dumps(_without_none(data))
    except (TypeError, ValueError) as error:
        raise UsageError(f"the configuration cannot be written as TOML: {error}; give options as plain data") from None


def differences(a: RunConfig, b: RunConfig) -> dict[str, str]:
    """Return the keys ``a.b.c`` in which two configurations differ, each with ``old -> new``."""
    out: dict[str, str] = {}

    def walk(x: Any, y: Any, key: str) -> None:
        if isinstance(x, dict) and isinstance(y, dict):
            for k in sorted({*x, *y}):
                walk(x.get(k), y.get(k), f"{key}.{k}" if key else k)
        elif x != y:
            out[key] = f"{x!r} -> {y!r}"

    walk(a.model_dump(mode="json"), b.model_dump(mode="json"), "")
    return out


UNION_MEMBERS = ("constrained-int", "constrained-float", "int", "float", "literal['auto']")
"""What the validator puts behind a key that takes values of several kinds; the first has the reason."""


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    location = [str(p) for p in first["loc"]]
    key = ".".join(location)
    if first["type"] == "extra_forbidden":
        section: Any = RunConfig
        for part in (p for p in location[:-1] if not p.isdecimal()):
            section = _section(section.model_fields[part].annotation)
        return f"unknown key {key!r}{_meant(location[-1], section)}"
    message = first["msg"].removeprefix("Value error, ")
    if location[-1] in UNION_MEMBERS:
        key = ".".join(location[:-1])
    if location[-1] in ("str", "dict[str,any]"):
        key, message = ".".join(location[:-1]), "expected a name, or a table with a name and options"
    elif first["type"] == "model_type":
        message = "expected a table" + (" or a name" if key in NAMED_BY else "")
    return f"{key} = {_short(first['input'])}: {message}"


def _section(annotation: Any) -> Any:
    """Return the model of a field that is a section; optional ones are unions with None."""
    return next((a for a in getattr(annotation, "__args__", ()) if hasattr(a, "model_fields")), annotation)


def _meant(name: str, section: Any) -> str:
    """Say what may be meant by an unknown key: one of its section, of another, or one that other trainers call so."""
    if difflib.get_close_matches(name, section.model_fields, cutoff=0.8):
        return nearest(name, section.model_fields)
    if name in NAMES:
        key = NAMES[name].rpartition(".")[2]
        return f"; here it is {key if key in section.model_fields else NAMES[name]}"
    elsewhere = [key for key in _keys(RunConfig) if key.rpartition(".")[2] == name]
    return f"; did you mean {elsewhere[0]!r}?" if elsewhere else nearest(name, section.model_fields)


def _keys(model: Any, prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = _section(field.annotation)
        yield prefix + name
        if hasattr(inner, "model_fields"):
            yield from _keys(inner, f"{prefix}{name}.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _copy(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {k: _copy(v) for k, v in data.items()}
    return [_copy(v) for v in data] if isinstance(data, list) else data


def _without_none(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: _without_none(v) for k, v in data.items() if v is not None}
    return [_without_none(v) for v in data] if isinstance(data, list) else data
