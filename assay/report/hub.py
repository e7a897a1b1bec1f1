"""A run's model on the Hugging Face Hub, with a card made from the run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from assay.errors import RunError, UsageError
from assay.report.export import weights_of, write_model


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
    weights = weights_of(folder, checkpoint)
    with tempfile.TemporaryDirectory() as there:
        write_model(folder, weights, Path(there), repo)
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


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
