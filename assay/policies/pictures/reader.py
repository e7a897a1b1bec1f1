"""How a model's own processor reads a picture: pixels for its vision tower, tokens around the positions it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from assay.errors import UsageError
from assay.media import Picture


class Reader:
    """A model's processor of pictures.

    Args:
        processor: transformers' processor of the model (its images and text), or an image processor alone.
        tokenizer: of the model.
        token: id of the placeholder.
    """

    def __init__(self, processor: Any, tokenizer: Any, token: int):
        self.processor, self.token = processor, token
        self.whole = hasattr(processor, "image_processor")
        self.placeholder: str = tokenizer.convert_ids_to_tokens(token)

    def __call__(self, picture: Picture) -> Mapping[str, Tensor]:
        """Return what the vision tower wants of a picture, each with a first dimension of its own."""
        image = self.processor.image_processor if self.whole else self.processor
        return dict(image(images=[picture.open()], return_tensors="pt"))

    def tokens(self, picture: Picture, count: int) -> Sequence[int]:
        """Return the token ids that stand for a picture, ``count`` of them placeholders.

        Raises:
            UsageError: the processor writes another number of placeholders than the vision tower fills.
        """
        if not self.whole:
            return [self.token] * count
        made = self.processor(text=[self.placeholder], images=[picture.open()], add_special_tokens=False)
        found: list[int] = np.asarray(made["input_ids"]).reshape(-1).tolist()
        if found.count(self.token) != count:
            raise UsageError(
                f"the model's processor leaves {found.count(self.token)} places for a picture of {count} positions; "
                "the files of processor and model do not belong together"
            )
        return found

    def save(self, folder: Any) -> None:
        """Write the processor's files beside the model's."""
        self.processor.save_pretrained(folder)
