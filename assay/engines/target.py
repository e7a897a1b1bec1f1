"""What is to be evaluated, from what a person writes: a run, a checkpoint, a recipe, a model, an endpoint."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.recipes import recipe_names

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.engines.base import Engine
    from assay.policies.causal_lm import CausalLM

ENDPOINT = re.compile(r"openai:(?P<model>[^@]+)@(?P<url>https?://[^\s?]+)(\?(?P<options>\S*))?")

HELD = ("config.toml", "evaluation.json", "config.json")
"""Files that make a folder a run, an evaluation or a saved model."""

PEEK = 1 << 16
"""Bytes at both ends of a file that its mark is made of."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model to evaluate and how.

    Attributes:
        name: as it was written.
        config: tasks, sampling and everything else; its ``model.source`` is the name where there is no recipe.
        step: RL steps the weights have had, 0 where that is not known.
        weights: what tells these weights from others of the same name.
        folder: to take the weights from; those of ``config.model`` where it is ``None``.
        trained: ``config`` is a run's, and so says what the model was trained on.
        engine: of an endpoint, the specification of its engine.
    """

    name: str
    config: RunConfig
    step: int
    weights: str
    folder: Path | None = None
    trained: bool = False
    engine: Mapping[str, Any] | None = None

    def open(self) -> Engine:
        """Load the model into the engine that its configuration names, or connect to its endpoint.

        Raises:
            UsageError: there is no such engine here, or it cannot generate with the model's weights.
        """
        from assay.registry import build

        if self.engine is not None:
            made: Engine = build("engine", self.engine)
            return made
        from assay.engines.base import Follower, engine_of

        settings, policy = self.config.engine, self.load()
        table = {"name": settings.name, **settings.options}
        try:
            engine = engine_of(policy, table, self.config.rollout.max_rows)
        except UsageError as error:
            if settings.name == "hf":
                raise
            raise UsageError(f"{error}; engine=hf does without {settings.name}") from error
        if isinstance(engine, Follower):
            engine.follow(policy)
        return engine

    def load(self) -> CausalLM:
        """Load the model's weights.

        Raises:
            UsageError: they are behind an endpoint.
        """
        from assay.policies.policy import load_policy

        if self.engine is not None:
            raise UsageError(
                f"{self.name} is an endpoint; its weights are not here: name a run, a checkpoint or a model"
            )
        policy = load_policy(self.config.model, self.config.seed)
        if self.folder is not None:
            policy.load_weights(self.folder)
        return policy


def resolve(target: str, overrides: Sequence[str] = ()) -> Target:
    """Find out what ``target`` is, without loading it.

    - a run folder: its last whole checkpoint, its configuration;
    - a checkpoint in one, ``RUN/checkpoints/rl-000050``: that one; ``RUN/best``: what ``run.best`` kept last;
    - a recipe, ``*.toml`` or one of the package's: its model;
    - ``openai:MODEL@http://host/v1``: a model behind an endpoint that speaks OpenAI's protocol, with the engine's
      options after a question mark, ``?api=completions&concurrency=8``;
    - anything else: a model as ``model.source`` takes it, with the default configuration.

    Args:
        target: see above.
        overrides: changes to the configuration, ``a.b.c=value`` each.

    Raises:
        UsageError: it is none of these, or something in it does not fit; a model that is not here and that the hub
            does not have, or that cannot be asked for within a few seconds, is one.
    """
    from assay.config import load_config
    from assay.records.checkpoints import kept_best

    path = Path(target).expanduser()
    if path.name == "best" and (found := kept_best(path.parent)):
        path = found[-1]
    if target.startswith("openai:"):
        table = endpoint(target)
        config = load_config({"model": {"source": target}}, overrides)
        if engine_setting(config):
            raise UsageError(f"{target} generates by itself; leave out engine={config.engine.name}")
        if config.model.template is not None:
            raise UsageError(f"{target} applies a chat template of its own; leave out model.template")
        if config.model.system is not None:
            table["system"] = config.model.system
        if config.model.chat_values:
            # vLLM and SGLang know this field.
            table["extra"] = {"chat_template_kwargs": dict(config.model.chat_values), **table.get("extra", {})}
        return Target(target, config, 0, "", engine=table)
    if (path / "config.toml").is_file():
        config = load_config(path / "config.toml", overrides)
        stage, step, folder = _checkpoint(path)
        weights = folder / "policy"
        return Target(target, config, step if stage == "rl" else 0, _mark(weights), weights, trained=True)
    if path.suffix == ".toml" or (not path.exists() and target in recipe_names()):
        config = load_config(target, overrides)
    else:
        if path.is_dir() and not (path / "config.json").is_file():
            raise UsageError(
                f"folder {target} holds neither a run or a checkpoint of one (config.toml), an evaluation "
                "(evaluation.json) nor a saved model (config.json)"
            )
        _check_neighbours(path, target)
        config = load_config({"model": {"source": target}}, overrides)
    _check_hub(config.model.source)
    return Target(target, config, 0, _mark(Path(config.model.source).expanduser()))


def _checkpoint(path: Path) -> tuple[str, int, Path]:
    """Stage, step and folder of a checkpoint, or of the last whole one of a run."""
    from assay.records.checkpoints import last_checkpoint
    from assay.records.files import damage

    if not (path / "policy").is_dir():
        return last_checkpoint(path)
    if wrong := damage(path):
        raise UsageError(f"the checkpoint {path} is not whole: it {wrong}")
    # A checkpoint that was copied elsewhere may have a name that does not say its step.
    stage, _, step = path.resolve().name.partition("-")
    return (stage, int(step), path) if step.isdigit() else ("", 0, path)


def check_source(source: str) -> None:
    """Raise UsageError for a model that is neither here nor on the hub, before anything is loaded."""
    _check_neighbours(Path(source).expanduser(), source)
    _check_hub(source)


def _check_neighbours(path: Path, target: str) -> None:
    """Refuse what is not there beside runs, evaluations and models that are: it is a mistyped path, not a hub id."""
    if path.exists() or not path.parent.name or not path.parent.is_dir():
        return
    from assay.records.checkpoints import nearest_beside

    if any((p / name).is_file() for p in path.parent.iterdir() for name in HELD):
        raise UsageError(f"no folder {target}{nearest_beside(path, HELD)}")


def _check_hub(source: str) -> None:
    """Refuse a model that is neither here nor on the hub, and name what is here and called nearly so."""
    from assay.policies.hub import names_hub, why_absent

    if not names_hub(source) or (reason := why_absent(source)) is None:
        return
    path = Path(source)
    places = [p for p in (path.parent, Path("runs")) if p.is_dir()]
    here = {p.name: str(p) for place in places for p in place.iterdir() if any((p / name).is_file() for name in HELD)}
    close = difflib.get_close_matches(path.name, here, n=1, cutoff=0.5)
    raise UsageError(reason + (f"; did you mean {here[close[0]]!r}?" if close else ""))


def endpoint(target: str) -> dict[str, Any]:
    """Return the specification of the engine that ``openai:MODEL@http://host/v1`` stands for.

    Raises:
        UsageError: it is not written so.
    """
    from assay.config import apply_override
    from assay.registry import names

    match = ENDPOINT.fullmatch(target)
    if match is None:
        raise UsageError(f"an endpoint is written openai:MODEL@http://host:port/v1, not {target!r}")
    if "openai" not in names("engine"):
        raise UsageError("this version of assay has no engine 'openai' to ask an endpoint with")
    table: dict[str, Any] = {"name": "openai", "model": match["model"], "base_url": match["url"].rstrip("/")}
    for option in (match["options"] or "").split("&"):
        if option:
            apply_override(table, option)
    return table


def _mark(path: Path) -> str:
    """A short digest of a model's files by name, size and both ends; empty for what is no file or folder here."""
    if not path.exists():
        return ""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    digest = hashlib.blake2b(digest_size=8)
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as data:
            digest.update(data.read(PEEK))
            data.seek(max(0, size - PEEK))
            digest.update(data.read(PEEK))
    return digest.hexdigest()


def engine_setting(config: RunConfig) -> dict[str, Any]:
    """Return the engine as a setting that samples depend on; nothing for the usual one."""
    settings = config.engine
    if settings.name == "hf" and not settings.options:
        return {}
    return {"engine": {"name": settings.name, **settings.options}}


def files_mark(*specs: Any) -> dict[str, str]:
    """Return a digest of every file and folder that something names, by the name.

    What depends on a scorer in ``score.py`` or on a head in ``head.safetensors`` depends on what is in there.

    Args:
        specs: texts, tables and lists of them: ``path/to/file.py:name``, or a path with a slash or a suffix.
    """
    out: dict[str, str] = {}
    for spec in specs:
        if isinstance(spec, Mapping):
            out |= files_mark(*spec.values())
        elif isinstance(spec, list | tuple):
            out |= files_mark(*spec)
        elif isinstance(spec, Path) or (isinstance(spec, str) and 0 < len(spec) < 4096):
            text = str(spec)
            name = text.rpartition(":")[0] if ".py:" in text else text
            path = Path(name).expanduser()
            try:
                if path.suffix or "/" in name:
                    out |= (
                        {name: content_mark(path)} if path.is_file() else {name: _mark(path)} if path.is_dir() else {}
                    )
            except (OSError, ValueError):
                continue  # no path at all
    return out


def content_mark(path: Path) -> str:
    """A digest of a file's content, or of all files in a folder by name and content."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        whole = "".join(f"{p.relative_to(path)} {content_mark(p)}\n" for p in files)
        return hashlib.sha256(whole.encode()).hexdigest()[:16]
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()[:16]


def tasks_mark(tasks: Sequence[Any]) -> str:
    """A short digest of what is asked: ids, prompts, references and kinds."""
    digest = hashlib.blake2b(digest_size=8)
    for task in tasks:
        digest.update(repr((task.id, task.prompt, task.reference, task.kind)).encode("utf-8", "replace"))
    return digest.hexdigest()
