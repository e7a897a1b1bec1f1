"""A run's model on the Hugging Face Hub, with a card made from the run."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from assay.engines.target import resolve
from assay.errors import RunError, UsageError
from assay.records.checkpoints import checkpoints, kept_best, last_checkpoint, place
from assay.records.files import damage
from assay.report.card import model_card


def push(run: str | Path, repo: str, private: bool = True, checkpoint: str | None = None, message: str = "") -> str:
    """Put the model of a run on the hub, where ``model.source = "owner/name"`` finds it again; return its address.

    What goes there: weights (with what adapters add to them) and tokenizer in transformers' layout, the card
    (README.md) and recipe.toml; no rollouts and no tasks. The hub is that of ``HF_ENDPOINT``, the token that of
    ``HF_TOKEN`` or of ``hf auth login``.

    Args:
        run: its folder.
        repo: ``owner/name``; made if it is not there.
        private: whether others may not see it, where it is made.
        checkpoint: its name, ``rl-000050``, or ``best``, what ``run.best`` kept; the last whole one if left out.
        message: of the commit.

    Raises:
        UsageError: the folder is no run, or has no such checkpoint whole; a name that the hub does not take.
        RunError: the hub refused, or cannot be reached; the run is as it was.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    folder = Path(run)
    weights = _weights(folder, checkpoint)
    stage, number = place(weights.parent)
    card = model_card(folder, repo, number if stage else 0)
    with tempfile.TemporaryDirectory() as there:
        if (weights / "adapter_config.json").is_file():
            resolve(str(weights.parent)).load().save_merged(Path(there))
        else:
            shutil.copytree(weights, there, dirs_exist_ok=True)
        Path(there, "README.md").write_text(card, encoding="utf-8")
        shutil.copyfile(folder / "config.toml", Path(there, "recipe.toml"))
        api: Any = HfApi()
        try:
            address = api.create_repo(repo, private=private, exist_ok=True, repo_type="model")
            api.upload_folder(
                repo_id=repo, folder_path=there, commit_message=message or f"{folder.name}, {weights.parent.name}"
            )
        except HFValidationError as error:
            raise UsageError(f"no model on the hub can be called {repo!r}: {_line(error)}") from None
        except Exception as error:  # of the client, or of whatever it asks with
            raise RunError(f"{repo} could not be pushed: {_line(error)}; the run is as it was") from error
    return str(address)


def _weights(folder: Path, checkpoint: str | None) -> Path:
    """Return the folder of the policy's weights in a checkpoint that is as it was written."""
    if not (folder / "config.toml").is_file():
        raise UsageError(f"{folder} is no run folder: it holds no config.toml")
    if checkpoint is None:
        return last_checkpoint(folder)[2] / "policy"
    known = {path.name: path for path in checkpoints(folder)}
    if best := kept_best(folder):
        known = {**{path.name: path for path in best}, "best": best[-1], **known}
    if checkpoint not in known:
        raise UsageError(f"{folder} has no checkpoint {checkpoint!r}; it has {', '.join(known) or 'none'}")
    if wrong := damage(known[checkpoint]):
        raise UsageError(f"checkpoint {checkpoint} of {folder} {wrong}")
    return known[checkpoint] / "policy"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
