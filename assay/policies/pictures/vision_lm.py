"""A causal language model that sees pictures, as a policy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.policies.attention import packed
from assay.policies.attention.flex import Attention
from assay.policies.base import PolicyOutput
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import LoraConfig, ModelConfig, load_vision_model
from assay.policies.logprobs import token_logprobs
from assay.policies.pictures.album import FIRST, PLACES, Album, ids, numbers
from assay.policies.pictures.reader import Reader
from assay.policies.probes import Probes
from assay.types import Message, pictures

REMEMBERED = 4096
"""Sequences of which it is remembered where their tokens stand."""


class VisionLM(CausalLM):
    """A transformers model for images and text, its tokenizer and its image processor.

    A message's pictures stand where its text has :data:`assay.media.MARK`. The positions they take in a prompt have
    ids that say which picture's they are (:mod:`assay.policies.pictures.album`), so that prompts with different
    pictures are different prompts to everybody. Pictures are processed once, and go through the vision tower once in
    each pass that has them, however many responses share them.

    Args:
        model: any model for images and text whose decoder takes a named attention function.
        tokenizer: its tokenizer.
        processor: its processor, or an image processor alone; see :class:`assay.policies.pictures.reader.Reader`.
        freeze: train the decoder alone: not the vision tower, nor what projects its features.
        chat, lora, kernel, compile: as of :class:`assay.policies.causal_lm.CausalLM`.

    Raises:
        UsageError: log-probabilities with pictures are not the model's own (it is tried).
    """

    sighted = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        processor: Any,
        chat: bool = True,
        lora: LoraConfig | None = None,
        kernel: Attention = "auto",
        compile: bool = False,
        freeze: bool = False,
    ):
        self.reader = Reader(processor, tokenizer, model.config.image_token_id)
        self.album = Album(self.reader)
        self._counts: dict[tuple[Any, ...], int] = {}
        self._places: dict[bytes, Int[Tensor, "A P"] | None] = {}
        super().__init__(model, tokenizer, chat, lora, kernel, compile)
        # Rotary positions have axes where a picture's are two-dimensional.
        self.axes = hasattr(model.base_model, "get_rope_index")
        _check_pictures(self)
        self.module.train()  # where gradients are checkpointed
        if freeze:
            learns = {id(p) for part in (self.decoder, model.get_output_embeddings()) for p in part.parameters()}
            for parameter in self.module.parameters():
                if id(parameter) not in learns:
                    parameter.requires_grad_(False)

    @classmethod
    def load(cls, config: ModelConfig, seed: int = 0) -> VisionLM:
        """Return the policy that a recipe's ``[model]`` table describes."""
        model, tokenizer, processor = load_vision_model(config, seed)
        if config.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        how = config.chat == "auto", config.lora, config.attention, config.compile, config.freeze_vision
        return cls(model, tokenizer, processor, *how)

    @property
    def decoder(self) -> Any:
        return self.model.get_decoder()

    # Text and tokens

    def written(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """See :meth:`assay.policies.causal_lm.CausalLM.written`.

        Raises:
            UsageError: a message has more or fewer marks than pictures.
        """
        if not pictures(tuple(messages)):
            return tuple(messages)
        for message in messages:
            count, marks = len(message.get("images", ())), message["content"].count(MARK)
            if count and count != marks:
                start = message["content"][:60]
                raise UsageError(f"a message has {marks} marks {MARK!r} for {count} pictures: {start!r}")
        return tuple(self._written(message) for message in messages)

    def _written(self, message: Message) -> Message:
        content: Any = message["content"]
        if self.chat:
            content = _parts(content) if message.get("images") else [{"type": "text", "text": content}]
        elif message.get("images"):
            content = content.replace(MARK, self.reader.placeholder)
        return {**message, "content": content}

    def filled(self, tokens: np.ndarray, messages: Sequence[Message]) -> np.ndarray:
        """See :meth:`assay.policies.causal_lm.CausalLM.filled`.

        Raises:
            UsageError: there is not one placeholder for each picture, or nothing between two where the model tells them
                apart by that.
        """
        shown, places = pictures(tuple(messages)), np.flatnonzero(tokens == self.reader.token)
        if not shown:
            return tokens
        if len(places) != len(shown):
            raise UsageError(
                f"{len(shown)} pictures have {len(places)} placeholders {self.reader.placeholder!r} once they are "
                "written; texts must not have any of their own, and the chat template has to write one a picture"
            )
        if hasattr(self.model.base_model, "get_rope_index") and (np.diff(places) == 1).any():
            raise UsageError(f"the model takes two pictures side by side for one; put words between {MARK} and {MARK}")
        parts, start = [], 0
        for place, picture in zip(places.tolist(), shown, strict=True):
            parts += [tokens[start:place], self._picture(picture)]
            start = place + 1
        return np.concatenate([*parts, tokens[start:]])

    def _picture(self, picture: Picture) -> Int[np.ndarray, "n"]:
        """Return the ids that stand for a picture: of its positions, and of what its model writes around them."""
        number = self.album.number(picture)
        count = self._count(number)
        found = np.asarray(self.reader.tokens(picture, count), dtype=np.int64)
        found[found == self.reader.token] = ids(number, count)
        return found

    def _count(self, number: int) -> int:
        """Return how many positions a picture takes, which is by its sizes."""
        inputs = self.album.processed(number)
        key = tuple((k, *v.shape, *(v.reshape(-1).tolist() if v.numel() < 8 else ())) for k, v in inputs.items())
        if key not in self._counts:
            with torch.no_grad():
                self._counts[key] = len(self._features([number]))
        return self._counts[key]

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """Return the text of tokens, without special tokens and pictures."""
        found = np.asarray(ids)
        return super().decode(found[found < FIRST])

    # Pictures and positions

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """See :class:`assay.policies.base.Policy`. The batch's tasks have the pictures that its prompts are of.

        Raises:
            UsageError: a task has pictures, and a response to it was sampled without any.
        """
        for task, episode in zip(batch.tasks, batch.episodes, strict=True):
            if pictures(task.prompt) and not numbers(episode.prompt):
                raise UsageError(
                    f"task {task.id} has pictures, but is asked without them: this method's rollout writes prompts "
                    "from the question's text alone; take another, or tasks without pictures"
                )
        self.album.add(task.prompt for task in batch.tasks)
        return super().forward(batch, live, temperature)

    def embed(self, tokens: Int[Tensor, "S"]) -> Float[Tensor, "S D"]:
        """Return what the decoder reads: embeddings of words, and features of pictures, with gradient."""
        seen = tokens >= FIRST
        embedded: Tensor = self.model.get_input_embeddings()(self.words(tokens))
        if not bool(seen.any()):
            return embedded
        found, which = (tokens[seen] >> PLACES).unique(return_inverse=True)
        counts = torch.tensor([self._count(number) for number in found.tolist()], device=tokens.device)
        rows = (counts.cumsum(0) - counts)[which] + (tokens[seen] & ((1 << PLACES) - 1))
        features = self._features(found.tolist())[rows]
        return embedded.masked_scatter(seen[:, None], features.to(embedded.dtype))

    def _features(self, found: Sequence[int]) -> Float[Tensor, "n D"]:
        """Return the features of some pictures, one after the other."""
        inputs = [self.album.processed(number) for number in found]
        alike = all(v.shape[1:] == inputs[0][k].shape[1:] for other in inputs for k, v in other.items())
        passes = [{k: torch.cat([one[k] for one in inputs]) for k in inputs[0]}] if alike else inputs
        out = []
        for tensors in passes:
            moved = {
                k: v.to(self.device, self.model.dtype if v.is_floating_point() else None) for k, v in tensors.items()
            }
            out += list(self.model.base_model.get_image_features(**moved, return_dict=True).pooler_output)
        return torch.cat(out)

    def words(self, tokens: Int[Tensor, "S"]) -> Int[Tensor, "S"]:
        """Return tokens as the model's own ids, its placeholder at each position of a picture."""
        return tokens.masked_fill(tokens >= FIRST, self.reader.token)

    def places(self, tokens: Int[np.ndarray, "P"]) -> Int[Tensor, "A P"] | None:
        """Return where a sequence's tokens stand for the decoder, ``A`` axes; ``None`` for 0, 1, 2, ..."""
        if not self.axes:
            return None
        key = tokens.tobytes()
        if key not in self._places:
            if len(self._places) >= REMEMBERED:
                self._places.clear()
            self._places[key] = self._rotary(tokens)
        return self._places[key]

    def _rotary(self, tokens: Int[np.ndarray, "P"]) -> Int[Tensor, "A P"] | None:
        if not (shown := numbers(tokens)):
            return None
        seen = torch.from_numpy(tokens >= FIRST)
        words = self.words(torch.from_numpy(tokens))
        grids = torch.cat([self.album.processed(number)["image_grid_thw"] for number in shown])
        found: Tensor = self.model.base_model.get_rope_index(words[None], seen[None].int(), image_grid_thw=grids)[0]
        return found[:, 0]

    def place(
        self,
        layout: packed.SharedPrompts | Probes,
        prompts: Sequence[np.ndarray],
        responses: Sequence[Tensor],
        prompt_of: Sequence[int],
        probes: Sequence[tuple[int, int, int]] | None = None,
    ) -> None:
        """See :meth:`assay.policies.causal_lm.CausalLM.place`."""
        of_prompts = [self.places(prompt) for prompt in prompts]
        rows = [self._continued(prompts[u], of_prompts[u], r) for u, r in zip(prompt_of, responses, strict=True)]
        if all(at is None for at in [*of_prompts, *rows]):
            return
        table = layout.position_ids.repeat(3, 1)
        start = 0
        for prompt, at in zip(prompts, of_prompts, strict=True):
            if at is not None:
                table[:, start : start + len(prompt)] = at
            start += len(prompt)
        for u, response, at in zip(prompt_of, responses, rows, strict=True):
            # The last token of a response is an input only where continuations are scored.
            size, before = len(response) if probes is not None else max(0, len(response) - 1), len(prompts[u])
            if at is not None:
                table[:, start : start + size] = at[:, before : before + size]
            start += size
        for row, after, size in probes or ():
            at, before = rows[row], len(prompts[prompt_of[row]]) + after
            read = max(0, size - 1)
            if at is not None:
                table[:, start : start + read] += int(at[:, :before].max()) + 1 - before
            start += read
        layout.position_ids = table[:, None]

    def _continued(
        self, prompt: np.ndarray, at: Int[Tensor, "A P"] | None, response: Int[Tensor, "T"]
    ) -> Int[Tensor, "A L"] | None:
        """Return the places of a prompt and a response to it."""
        if bool((response >= FIRST).any()):
            return self.places(np.concatenate([prompt, response.numpy()]))
        return (
            None if at is None else torch.cat([at, (at.max() + 1 + torch.arange(len(response))).expand(len(at), -1)], 1)
        )

    def read(self, tokens: Int[Tensor, "S"], layout: packed.Layout) -> dict[str, Any]:
        """What the decoder is called with: embeddings, not ids."""
        return {"inputs_embeds": self.embed(tokens)[None], "position_ids": layout.position_ids}

    def save(self, folder: Path) -> None:
        """See :meth:`assay.policies.causal_lm.CausalLM.save`."""
        super().save(folder)
        self.reader.save(folder)

    def save_merged(self, folder: Path) -> None:
        """See :meth:`assay.policies.causal_lm.CausalLM.save_merged`."""
        super().save_merged(folder)
        self.reader.save(folder)


def _parts(content: str) -> list[dict[str, str]]:
    """Return a message's text and its pictures' places, as chat templates want them."""
    parts: list[dict[str, str]] = []
    for i, text in enumerate(content.split(MARK)):
        parts += [{"type": "image"}] * (i > 0)
        parts += [{"type": "text", "text": text}] * bool(text)
    return parts


@torch.no_grad()
def _check_pictures(policy: VisionLM) -> None:
    """Refuse a model whose log-probabilities after a picture are others than its own, or the same after any picture."""
    model, decoder, rng = policy.model, policy.decoder, np.random.default_rng(0)
    words = rng.integers(policy.head.weight.shape[0] - 1, size=12)
    words[words == policy.reader.token] += 1
    response = torch.from_numpy(words[8:])
    scores = []
    try:
        model.eval()
        for _ in range(2):
            picture = Picture.of(rng.integers(256, size=(56, 84, 3), dtype=np.uint8))
            prompt = np.concatenate([words[:4], policy._picture(picture), words[4:8]])
            layout = packed.SharedPrompts([torch.from_numpy(prompt)], [response], [0], policy.device)
            policy.place(layout, [prompt], [response], [0])
            hidden = policy.hidden(layout.tokens, layout)[layout.predictors]
            scores.append(token_logprobs(hidden, policy.head, response.to(policy.device))[0])
        whole = torch.from_numpy(np.concatenate([prompt, words[8:]])).to(policy.device)[None]
        seen = whole >= FIRST
        inputs = {k: v.to(policy.device) for k, v in policy.album.processed(policy.album.number(picture)).items()}
        if policy.axes:
            inputs["mm_token_type_ids"] = seen.int()
        decoder.set_attn_implementation("eager")
        try:
            logits = model(input_ids=policy.words(whole), use_cache=False, **inputs).logits[0]
        finally:
            decoder.set_attn_implementation(packed.NAME)
        own = logits.float().log_softmax(-1)[-5:-1].gather(-1, whole[0, -4:, None])[:, 0]
        difference, change = float((own - scores[1]).abs().mean()), float((scores[0] - scores[1]).abs().max())
        reason = ""
        if not difference <= (1e-3 if model.dtype == torch.float32 else 0.2):
            reason = f"log-probabilities after a picture differ by {difference:.2g}"
        elif not change > 0:
            reason = "a picture changes nothing"
    except (RuntimeError, TypeError, ValueError, AttributeError, KeyError, NotImplementedError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
    if reason:
        raise UsageError(f"models of type {model.config.model_type!r} cannot be shown pictures here: {reason}")
