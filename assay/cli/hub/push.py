"""``assay push`` and ``assay card``: a run's model on the hub, and what is said of it there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from assay.cli.common import AsJson, say


def push(
    run: Annotated[Path, Positional],
    repo: Annotated[str, Positional],
    checkpoint: str | None = None,
    public: bool = False,
    message: str = "",
    as_json: AsJson = False,
) -> int:
    """Put a run's model on the Hugging Face Hub, with a card made from the run.

    The hub is that of HF_ENDPOINT, the token that of HF_TOKEN or of `hf auth login`. Rollouts and tasks stay here, the
    card and the recipe go there.

    Example: assay push runs/gsm8k me/gsm8k-qwen

    Args:
        run: its folder.
        repo: owner/name, made if it is not there; model=owner/name takes it from there.
        checkpoint: its name, e.g. rl-000050, or best, what run.best kept; the last one if left out.
        public: let everybody see it, where it is made.
        message: of the commit.
        as_json: print the address as JSON.
    """
    from assay.report.hub import push as put

    address = put(run, repo, not public, checkpoint, message)
    print(json.dumps({"address": address})) if as_json else say(address)
    return 0


def card(run: Annotated[Path, Positional], repo: Annotated[str, Positional] = "me/model") -> int:
    """Print the model card that `assay push` would put beside a run's model.

    Example: assay card runs/gsm8k me/gsm8k-qwen

    Args:
        run: its folder.
        repo: what the model is to be called, owner/name.
    """
    from assay.report.card import model_card

    say(model_card(run, repo).rstrip())
    return 0
