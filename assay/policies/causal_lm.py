"""A causal language model as policy: log-probabilities of packed responses, with each shared prompt computed once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from jinja2 import TemplateError
from torch import Tensor

from assay.batch import Batch
from assay.errors import UsageError
from assay.policies.attention import packed
from assay.policies.attention.flex import Attention, layout_for
from assay.policies.base import QUANTITIES, Policy, PolicyOutput
from assay.policies.compiling import compile_layers
from assay.policies.fused.norm import fuse_norms
from assay.policies.fused.rotary import fuse_rotary
from assay.policies.loading import LoraConfig, ModelConfig, load_model, no_progress_bar
from assay.policies.logprobs import Head, token_logprobs, token_ranks
from assay.policies.merge import merged_state
from assay.policies.probes import Probes, asked, padded
from assay.policies.statistics import STATISTICS, statistics
from assay.types import Message, Prompt, pictures


class CausalLM:
    """A transformers model and its tokenizer.

    Args:
        model: any causal language model that takes a named attention function.
        tokenizer: its tokenizer, with an end-of-sequence token.
        chat: apply the tokenizer's chat template to prompts, where it has one.
        lora: train low-rank adapters only; the reference policy is the model without them, as long as they add nothing
            when it is fixed.
        kernel: what computes attention over a batch, see :data:`assay.policies.attention.flex.Attention`.
        compile: run decoder layers and log-probabilities compiled where gradients are wanted.

    A response must have the same log-probability when it is sampled and when it is learnt from, so the model's own
    dropout is turned off.

    Raises:
        UsageError: the model's attention cannot be packed, or the kernel asked for does not work (both are tried).
    """

    quantities = QUANTITIES
    sighted = False
    """Whether it sees the pictures in prompts."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        chat: bool = True,
        lora: LoraConfig | None = None,
        kernel: Attention = "auto",
        compile: bool = False,
    ):
        packed.register()
        self.tokenizer = tokenizer
        self.chat = chat and bool(getattr(tokenizer, "chat_template", None))
        _switch_off_dropout(model)
        if not compile:  # the compiler fuses these, and more
            fuse_norms(model)
            fuse_rotary(model)
        self.compile = compile
        self.adapter = _adapt(model, lora) if lora else None
        self.model = model
        self.module: torch.nn.Module = self.adapter or model
        self.device = next(model.parameters()).device
        self.context: int = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 2**31
        self.stop_ids = _stop_ids(model, tokenizer)
        if self.decoder.config._attn_implementation != packed.NAME:
            _check_packing(self)
        self.layout = layout_for(kernel, model)
        if compile:
            compile_layers(model)
        self.module.train()

    @classmethod
    def load(cls, config: ModelConfig, seed: int = 0) -> CausalLM:
        """Return the policy that a recipe's ``[model]`` table describes."""
        model, tokenizer = load_model(config, seed)
        if config.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return cls(model, tokenizer, config.chat == "auto", config.lora, config.attention, config.compile)

    # Text and tokens

    def encode(self, prompt: Prompt) -> np.ndarray:
        """Return a prompt's token ids ``(P,)``; text becomes a user message where a chat template is in use.

        Raises:
            UsageError: the chat template refuses it, or it has pictures, which this model does not see.
        """
        if not isinstance(prompt, str):
            return self.filled(self._encoded(self.written(prompt)), prompt)
        return self._encoded(prompt)

    def written(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return messages as the chat template, or the tokenizer, wants them; :meth:`filled` is the other half.

        Raises:
            UsageError: they have pictures, which this model does not see.
        """
        if pictures(tuple(messages)):
            raise UsageError(
                "a prompt has pictures, which this model does not see: name one for images and text in model.source, "
                "or give nano a vision tower (model.nano.vision)"
            )
        return tuple(messages)

    def filled(self, tokens: np.ndarray, messages: Sequence[Message]) -> np.ndarray:
        """Return tokens of :meth:`written` messages with those of their pictures in their places."""
        return tokens

    def _encoded(self, prompt: Prompt) -> np.ndarray:
        if self.chat:
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
            try:
                text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            except TemplateError as error:
                raise UsageError(
                    f"the model's chat template refuses a prompt: {error}; mend the messages or set model.chat = never"
                ) from error
            ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        else:
            text = prompt if isinstance(prompt, str) else "\n".join(m["content"] for m in prompt)
            ids = self.tokenizer(text)["input_ids"]
        if not ids:
            ids = [self.tokenizer.bos_token_id if self.tokenizer.bos_token_id is not None else self.stop_ids[0]]
        return np.asarray(ids, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        """Return a response's token ids, ended by the end-of-sequence token unless ``end`` is false."""
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return np.asarray([*ids, self.tokenizer.eos_token_id] if end else ids, dtype=np.int64)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """Return the text of response tokens, without special tokens."""
        return self.tokenizer.decode(ids, skip_special_tokens=True)

    # Log-probabilities

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        """See :class:`assay.policies.base.Policy`. One pass over distinct prompts and all responses."""
        after = [name for name in live if name.startswith("next_logprob")]
        rows = [row for e in batch.episodes for row in e.rows]
        responses = [torch.from_numpy(tokens) for _, tokens in rows]
        # What follows a response is predicted from its last token, which is an input only if something stands there.
        read = [torch.cat([r, r.new_zeros(1)]) for r in responses] if after else responses
        prompts, prompt_of = distinct([prompt for prompt, _ in rows])
        layout = self.layout([torch.from_numpy(p) for p in prompts], read, prompt_of, self.device)
        self.place(layout, prompts, responses, prompt_of)
        depths = sorted({name for name in live if name.startswith("hidden@")})
        hidden, inner = self._hidden(layout.tokens, layout, [float(d.partition("@")[2]) for d in depths])
        lengths = torch.tensor([len(e.tokens) for e in batch.episodes])
        last = (torch.tensor([len(r) for r in read]).cumsum(0) - 1).to(self.device)
        at = layout.predictors
        if after:
            at = at[torch.isin(torch.arange(len(at), device=self.device), last, invert=True)]
        targets = self.words(torch.cat(responses)).to(self.device)
        cells = (torch.arange(batch.tokens.shape[1]) < lengths[:, None]).to(self.device)
        logprobs, entropy = token_logprobs(hidden[at], self.head, targets, temperature, entropy="entropy" in live)

        def spread(flat: Tensor) -> Tensor:
            if flat.ndim == 1:
                return torch.zeros(cells.shape, dtype=flat.dtype, device=self.device).masked_scatter(cells, flat)
            table = torch.zeros(*cells.shape, *flat.shape[1:], dtype=flat.dtype, device=self.device)
            return table.index_put(torch.nonzero(cells, as_tuple=True), flat)

        out = PolicyOutput(spread(logprobs), {} if entropy is None else {"entropy": spread(entropy)})
        if found := STATISTICS & set(live):
            candidates = None
            if "candidate_logprobs" in found:
                candidates = batch.signals["candidates"].to(self.device)[cells]
            for name, flat in statistics(hidden[at], self.head, targets, found, temperature, candidates).items():
                out.live[name] = spread(flat)
        if "continuation_logprobs" in live:
            out.live["continuation_logprobs"] = asked(self, batch, temperature)
        if "hidden" in live:
            out.live["hidden"] = spread(hidden[at])
        for name, states in zip(depths, inner, strict=True):
            out.live[name] = spread(states[at])
        ends = torch.tensor([len(e.rows) for e in batch.episodes], device=self.device).cumsum(0) - 1
        for name in after:
            target = torch.full((len(batch),), int(name.partition("@")[2]), device=self.device)
            out.live[name] = token_logprobs(hidden[layout.predictors[last[ends]]], self.head, target)[0]
        return out

    def continuations(
        self,
        batch: Batch,
        at: Sequence[Sequence[int]],
        what: Sequence[Sequence[np.ndarray]],
        temperature: float = 1.0,
    ) -> Float[Tensor, "N K A"]:
        """See :class:`assay.policies.base.Policy`. One pass, in which each prefix is computed once."""
        hidden, targets, lengths = self._probed(batch, at, what)
        return padded(token_logprobs(hidden, self.head, targets, temperature)[0], lengths)

    @torch.no_grad()
    def continuation_ranks(
        self, batch: Batch, at: Sequence[Sequence[int]], what: Sequence[Sequence[np.ndarray]]
    ) -> Int[Tensor, "N K A"]:
        """See :class:`assay.policies.base.Policy`."""
        hidden, targets, lengths = self._probed(batch, at, what)
        return padded(token_ranks(hidden, self.head, targets), lengths)

    def _probed(
        self, batch: Batch, at: Sequence[Sequence[int]], what: Sequence[Sequence[np.ndarray]]
    ) -> tuple[Float[Tensor, "S D"], Int[Tensor, "S"], Int[Tensor, "N K"]]:
        """Return the states that predict the continuations' tokens, these tokens, and each continuation's length."""
        if any(e.forks for e in batch.episodes):
            raise UsageError("continuations of an episode that forks cannot be scored; keep its context whole")
        found = [[torch.from_numpy(c) for c in many] for many in what]
        prompts, prompt_of = distinct([e.prompt for e in batch.episodes])
        # What stands after the last branch is seen by nobody.
        responses = [
            torch.from_numpy(e.tokens[: max(points, default=0)]) for e, points in zip(batch.episodes, at, strict=True)
        ]
        lengths = torch.zeros(len(found), max(map(len, found), default=0), dtype=torch.int64)
        for i, many in enumerate(found):
            lengths[i, : len(many)] = torch.tensor([len(c) for c in many], dtype=torch.int64)
        targets = torch.cat([torch.zeros(0, dtype=torch.int64), *(c for many in found for c in many)]).to(self.device)
        if not len(targets):
            return self.head.weight.new_zeros(0, self.width), targets, lengths
        layout = Probes([torch.from_numpy(p) for p in prompts], responses, prompt_of, at, found, self.device)
        probes = [(i, after, len(c)) for i, many in enumerate(found) for after, c in zip(at[i], many, strict=True)]
        self.place(layout, prompts, responses, prompt_of, probes)
        return self.hidden(layout.tokens, layout)[layout.predictors], targets, lengths

    @torch.no_grad()
    def candidates(
        self, batch: Batch, n: int, temperature: float = 1.0, generator: torch.Generator | None = None
    ) -> Int[Tensor, "N T n"]:
        """See :class:`assay.policies.base.Policy`."""

        def draw(logits: Tensor) -> Tensor:
            p = (logits / temperature).softmax(-1).cpu()
            return torch.multinomial(p, n, replacement=True, generator=generator)

        return self._chosen(batch, n, draw)

    @torch.no_grad()
    def likeliest(self, batch: Batch, n: int) -> Int[Tensor, "N T n"]:
        """See :class:`assay.policies.base.Policy`."""
        n = min(n, self.head.weight.shape[0])
        return self._chosen(batch, n, lambda logits: logits.topk(n, -1).indices.cpu())

    def _chosen(self, batch: Batch, n: int, choose: Callable[[Tensor], Tensor]) -> Int[Tensor, "N T n"]:
        """Return what ``choose`` takes ``(S, n)`` from the logits of a block of positions, 0 after the responses."""
        hidden = self.forward(batch, {"hidden"}).live["hidden"]
        inside = torch.arange(hidden.shape[1]) < torch.tensor([len(e.tokens) for e in batch.episodes])[:, None]
        head = self.head
        chosen = [choose(head.logits(h)) for h in hidden[inside.to(hidden.device)].split(head.rows())]
        out = torch.zeros(*inside.shape, n, dtype=torch.int64)
        if chosen:
            out[inside] = torch.cat(chosen)
        return out

    def hidden(self, tokens: Int[Tensor, "S"], layout: packed.Layout) -> Tensor:
        """Return the last hidden states ``(S, D)`` of packed tokens."""
        return self._hidden(tokens, layout)[0]

    def _hidden(
        self, tokens: Int[Tensor, "S"], layout: packed.Layout, depths: Sequence[float] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the last hidden states, and those after the layers at shares ``depths`` of all layers."""
        out = self.decoder(
            **self.read(tokens, layout),
            attention_mask=None,
            use_cache=False,
            output_hidden_states=bool(depths),
            assay_layout=layout,
        )
        layers = [round(d * (len(out.hidden_states) - 1)) for d in depths] if depths else []
        return out.last_hidden_state[0], [out.hidden_states[layer][0] for layer in layers]

    @property
    def decoder(self) -> Any:
        """The model without its output layer."""
        return self.model.base_model

    def read(self, tokens: Int[Tensor, "S"], layout: packed.Layout) -> dict[str, Any]:
        """Return what the decoder is called with for packed tokens, in transformers' names."""
        return {"input_ids": tokens[None], "position_ids": layout.position_ids}

    def words(self, tokens: Int[Tensor, "S"]) -> Int[Tensor, "S"]:
        """Return tokens as ids of the vocabulary: another where one stands for something else, and is no decision."""
        return tokens

    def places(self, tokens: np.ndarray) -> Int[Tensor, "A P"] | None:
        """Return where a sequence's tokens stand for the decoder, on ``A`` axes; ``None`` for 0, 1, 2, ..."""
        return None

    def place(
        self,
        layout: packed.SharedPrompts | Probes,
        prompts: Sequence[np.ndarray],
        responses: Sequence[Tensor],
        prompt_of: Sequence[int],
        probes: Sequence[tuple[int, int, int]] | None = None,
    ) -> None:
        """Have the layout of some sequences say where their tokens stand, see :meth:`places`.

        Args:
            layout: made of what follows.
            prompts, responses, prompt_of: as its class has them.
            probes: of each continuation that is scored, the number of its response, after how many of its tokens, and
                of how many tokens it is; ``None`` where the layout is not one of continuations.
        """

    @property
    def head(self) -> Head:
        """The output layer, with the scale and the cap some architectures put on logits."""
        linear = self.model.get_output_embeddings()
        config = self.model.config.get_text_config()
        scale = getattr(config, "logit_scale", None) or 1 / (getattr(config, "logits_scaling", None) or 1.0)
        cap = getattr(config, "final_logit_softcapping", None)
        return Head(linear.weight, linear.bias, scale, cap, self.compile)

    def micro_batches(self, batch: Batch, budget: int) -> list[Int[Tensor, "M"]]:
        """Split a batch so that each part packs into about ``budget`` tokens, a shared prompt counted once per part."""
        groups = batch.prompt_group.tolist()
        _, prompt_of = distinct([e.prompt for e in batch.episodes])
        parts: list[list[int]] = []
        size, seen = 0, set[int]()
        for row in sorted(range(len(batch)), key=lambda i: (groups[i], prompt_of[i])):
            prompt, response = len(batch.episodes[row].prompt), batch.episodes[row].reading
            if not parts or size + response + prompt * (prompt_of[row] not in seen) > budget:
                parts.append([])
                size, seen = 0, set()
            size += response + prompt * (prompt_of[row] not in seen)
            seen.add(prompt_of[row])
            parts[-1].append(row)
        return [torch.tensor(part, dtype=torch.int64) for part in parts]

    @property
    def width(self) -> int:
        """Length of a hidden state."""
        return int(self.head.weight.shape[1])

    def twin(self) -> CausalLM:
        """Return a trainable copy with weights of its own."""
        twin = copy(self)
        if self.adapter is not None:
            twin.adapter = deepcopy(self.adapter)
            twin.model = twin.adapter.get_base_model()
        else:
            twin.model = deepcopy(self.model)
        twin.module = twin.adapter or twin.model
        return twin

    # The reference, and weights on disk

    def frozen(self, folder: Path) -> Policy:
        """Return a copy with the weights in ``folder``; if adapters change nothing there, the model without them."""
        if self.adapter is not None and _idle_adapter(folder):
            return WithoutAdapter(self)
        frozen = self.twin()
        frozen.load_weights(folder)
        frozen.module.requires_grad_(False).eval()
        return frozen

    def save(self, folder: Path) -> None:
        """Write a folder that transformers, and a recipe's ``model.source``, can read; with adapters, one for PEFT."""
        with no_progress_bar():
            if self.adapter is not None:
                self.adapter.save_pretrained(folder, save_embedding_layers=False)
            else:
                self.model.save_pretrained(folder, max_shard_size="1TB")
            self.tokenizer.save_pretrained(folder)

    def merged_state(self) -> Iterator[tuple[str, Tensor]]:
        """Yield what an inference engine loads: see :func:`assay.policies.merge.merged_state`."""
        return merged_state(self.model)

    def save_merged(self, folder: Path) -> None:
        """Write a folder as :meth:`save` does of a model without adapters: theirs are in its weights."""
        from safetensors.torch import save_file

        config = deepcopy(self.model.config)
        config.architectures = [type(self.model).__name__]
        with no_progress_bar():
            config.save_pretrained(folder)
            if self.model.can_generate() and self.model.generation_config is not None:
                self.model.generation_config.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
        state = {name: weight.contiguous() for name, weight in self.merged_state()}
        save_file(state, folder / "model.safetensors", {"format": "pt"})

    def load_weights(self, folder: Path) -> None:
        """Take the weights that :meth:`save` wrote.

        Raises:
            UsageError: the folder holds the weights of another model.
        """
        if self.adapter is not None:
            from peft import set_peft_model_state_dict
            from safetensors.torch import load_file

            set_peft_model_state_dict(self.adapter, load_file(folder / "adapter_model.safetensors"))
            return
        # Names on disk may differ from those in the module (experts are stored one by one); transformers knows how.
        with no_progress_bar():
            saved, found = type(self.model).from_pretrained(folder, dtype=self.model.dtype, output_loading_info=True)
        own, state = self.model.state_dict(), saved.state_dict()
        odd = set(found["missing_keys"]) | (own.keys() ^ state.keys())
        odd |= {k for k in own.keys() & state.keys() if own[k].shape != state[k].shape}
        if odd:
            raise UsageError(f"{folder} does not hold this model's weights: {min(odd)} does not match")
        self.model.load_state_dict(state)


class WithoutAdapter:
    """A policy as it was before its low-rank adapters were added; shares its weights."""

    def __init__(self, policy: CausalLM):
        self.adapted = policy

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["adapted"], name)

    def forward(self, batch: Batch, live: Collection[str] = (), temperature: float = 1.0) -> PolicyOutput:
        adapter: Any = self.adapted.adapter
        with adapter.disable_adapter():
            return self.adapted.forward(batch, live, temperature)

    def hidden(self, *arguments: Any) -> Tensor:
        """See :meth:`CausalLM.hidden`."""
        adapter: Any = self.adapted.adapter
        with adapter.disable_adapter():
            return self.adapted.hidden(*arguments)

    def continuations(self, *arguments: Any, **options: Any) -> Tensor:
        """See :class:`assay.policies.base.Policy`."""
        adapter: Any = self.adapted.adapter
        with adapter.disable_adapter():
            return self.adapted.continuations(*arguments, **options)

    def continuation_ranks(self, *arguments: Any, **options: Any) -> Tensor:
        """See :class:`assay.policies.base.Policy`."""
        adapter: Any = self.adapted.adapter
        with adapter.disable_adapter():
            return self.adapted.continuation_ranks(*arguments, **options)

    def candidates(self, *arguments: Any, **options: Any) -> Tensor:
        """See :class:`assay.policies.base.Policy`."""
        adapter: Any = self.adapted.adapter
        with adapter.disable_adapter():
            return self.adapted.candidates(*arguments, **options)

    def likeliest(self, *arguments: Any, **options: Any) -> Tensor:
        """See :class:`assay.policies.base.Policy`."""
        adapter: Any = self.adapted.adapter
        with adapter.disable_adapter():
            return self.adapted.likeliest(*arguments, **options)


def _idle_adapter(folder: Path) -> bool:
    """Whether the saved adapters add nothing, as before their first update (LoRA's B starts at zero)."""
    from safetensors.torch import load_file

    return not any(w.any() for k, w in load_file(folder / "adapter_model.safetensors").items() if "lora_B" in k)


def distinct(prompts: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[int]]:
    """Return the distinct arrays in order of first appearance, and for each input the index of its equal."""
    index: dict[bytes, int] = {}
    unique: list[np.ndarray] = []
    of = []
    for prompt in prompts:
        key = prompt.tobytes()
        if key not in index:
            index[key] = len(unique)
            unique.append(prompt)
        of.append(index[key])
    return unique, of


def _stop_ids(model: Any, tokenizer: Any) -> list[int]:
    """Every token that ends a response: the tokenizer's, and those of the model's generation settings."""
    configured = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    extra = configured if isinstance(configured, list) else [configured]
    return list(dict.fromkeys(int(i) for i in [tokenizer.eos_token_id, *extra] if i is not None))


def _switch_off_dropout(model: torch.nn.Module) -> None:
    """Set every dropout rate to zero, of modules and of those that layers keep as numbers."""
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
        for name, value in list(vars(part).items()):
            if "drop" in name and isinstance(value, float):
                setattr(part, name, 0.0)


def _adapt(model: Any, lora: LoraConfig) -> Any:
    try:
        import peft
    except ImportError:
        raise UsageError("model.lora needs PEFT: pip install assay[peft]") from None
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]  # any number will do
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        init_lora_weights="pissa" if lora.start == "pissa" else True,
        task_type="CAUSAL_LM",
    )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)  # PEFT's own reading of it
            adapter = peft.get_peft_model(model, config)
    except ValueError as error:
        raise UsageError(f"model.lora.targets = {lora.targets!r}: {str(error).splitlines()[0]}") from error
    if type(model.get_output_embeddings()) is not torch.nn.Linear:
        raise UsageError(f"model.lora.targets = {lora.targets!r} adapts the output layer; leave that out")
    return adapter


class _Probe(packed.SharedPrompts):
    """Notes which layers attended, and with what window."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.windows: dict[int, int | None] = {}

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float | None, window: int | None) -> Tensor:
        self.windows[layer] = window
        return super().attend(layer, q, k, v, scale, window)


@torch.no_grad()
def _check_packing(policy: CausalLM) -> None:
    """Switch the model to packed attention, and refuse it if that would change its log-probabilities."""
    model = policy.model
    generator = torch.Generator().manual_seed(0)
    vocabulary = model.get_output_embeddings().weight.shape[0]
    prompt = torch.randint(vocabulary, (5,), generator=generator)
    responses = [torch.randint(vocabulary, (n,), generator=generator) for n in (4, 7)]
    model.eval()
    expected = []
    for response in responses:
        ids = torch.cat([prompt, response])[None].to(policy.device)
        logits = model(input_ids=ids, use_cache=False).logits[0].float().log_softmax(-1)
        expected.append(logits[len(prompt) - 1 : -1].gather(-1, ids[0, len(prompt) :, None])[:, 0])
    try:
        policy.decoder.set_attn_implementation(packed.NAME)
        layout = _Probe([prompt], responses, [0, 0], policy.device)
        hidden = policy.hidden(layout.tokens, layout)
        got, _ = token_logprobs(hidden[layout.predictors], policy.head, torch.cat(responses).to(policy.device))
        reason = _unlike(model.config.get_text_config(), layout.windows)
        difference = float((got - torch.cat(expected)).abs().mean())
        if not reason and not difference <= (1e-3 if model.dtype == torch.float32 else 0.2):
            reason = f"log-probabilities differ by {difference:.2g}"
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0]
    if reason:
        raise UsageError(f"models of type {model.config.model_type!r} cannot run with packed attention: {reason}")


def _unlike(config: Any, windows: dict[int, int | None]) -> str:
    """Say what the layers do that :class:`_Probe` did not see them do, if anything.

    A short input cannot tell a wide window, or a chunk, from attention to everything; hence this look at the names.
    """
    layers = config.num_hidden_layers
    if len(windows) != layers:
        return f"{layers - len(windows)} of its {layers} layers do not call an attention function"
    for layer, kind in enumerate(getattr(config, "layer_types", None) or []):
        if kind not in ("full_attention", "sliding_attention"):
            return f"layer {layer} is of type {kind}"
        if kind == "sliding_attention" and windows[layer] is None:
            return f"layer {layer} does not pass its sliding window on"
    return ""
