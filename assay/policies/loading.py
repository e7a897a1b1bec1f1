"""From a model's name to a model and its tokenizer: a hub id, a local folder, a GGUF file, or the built-in ``nano``."""

from __future__ import annotations

import contextlib
import importlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assay.errors import UsageError
from assay.policies.control.config import ControlConfig
from assay.policies.flow.config import FlowConfig
from assay.policies.nano import NanoConfig, nano_model, nano_tokenizer, nano_vision_model
from assay.policies.template import set_template

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

REPEATING = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
"""Types of models that write a picture as nothing but as many placeholders as it takes positions: for these an image
processor is enough, where their whole processor cannot be had (it may want torchvision, for videos)."""


class LoraConfig(BaseModel):
    """Low-rank adapters instead of full fine-tuning (extra ``peft``)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    rank: int = Field(16, gt=0, le=2**16)
    """Of the matrices that are added."""
    alpha: float = Field(32.0, gt=0)
    """What is added counts alpha / rank times."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of an adapter's inputs that is left out while it learns."""
    targets: str | list[str] = "all-linear"
    """Names of the modules to adapt, or ``all-linear``."""
    start: Literal["lora", "pissa"] = "lora"
    """What adapters are at first: ``lora``, nothing (B = 0); ``pissa``, the ``rank`` leading singular directions of a
    matrix, which are taken out of it (arXiv 2404.02948). Either way the model is what it was."""


class ModelConfig(BaseModel):
    """Which model learns."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    source: str = "nano"
    """``nano``, a folder, a ``.gguf`` file, or a hub id; ``flow`` for one that draws, ``control`` for one that acts by
    numbers."""
    nano: NanoConfig = NanoConfig()
    """Shape of the nano model; used when ``source`` is ``nano``."""
    flow: FlowConfig = FlowConfig()
    """What a flow draws; used when ``source`` is ``flow``."""
    control: ControlConfig = ControlConfig()
    """The policy of numbers; used when ``source`` is ``control``."""
    lora: LoraConfig | None = None
    """Low-rank adapters; the whole model learns when left out."""
    quantise: Literal["nf4", "fp4"] | None = None
    """Keep the weights of linear layers in four bits, beside which only adapters can learn (QLoRA; extra ``qlora``):
    normal-float or floating-point values, scales quantised too."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of the weights."""
    device: str = "auto"
    """``auto`` takes a GPU when there is one; else as torch writes it: ``cpu``, ``cuda:0``."""
    chat: Literal["auto", "never"] = "auto"
    """``auto`` applies the tokenizer's chat template where it has one; ``never`` feeds prompts as plain text."""
    template: str | None = None
    """A chat template in place of the tokenizer's: Jinja text, or a file of it. What is trained keeps it."""
    chat_values: dict[str, Any] = {}
    """Variables that the chat template reads, such as ``{enable_thinking = false}``."""
    system: str | None = None
    """A system message before every conversation that has none."""
    attention: Literal["auto", "sdpa", "flex"] = "auto"
    """What computes attention over a batch: torch's flex attention, or scaled dot-product attention over padded rows.
    ``auto`` takes flex on a GPU where it works."""
    compile: bool = False
    """Compile decoder layers and log-probabilities for passes with a gradient (``torch.compile``); the first takes a
    minute or so."""
    freeze_vision: bool = False
    """Of a model that sees pictures, train the decoder alone."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""

    @model_validator(mode="after")
    def _some_chat(self) -> ModelConfig:
        said = [key for key in ("template", "chat_values", "system") if getattr(self, key) not in (None, {})]
        if said and (self.chat == "never" or self.source in ("flow", "control")):
            what = 'chat = "never"' if self.chat == "never" else f"source = {self.source!r}"
            raise ValueError(f"{said[0]} is for conversations, which {what} has none of; leave one out")
        return self

    @property
    def setting(self) -> dict[str, Any]:
        """What responses depend on. What says nothing of the chat is left out, so that folders from before it could
        be said go on."""
        found = self.model_dump(mode="json")
        return {k: v for k, v in found.items() if k not in ("template", "chat_values", "system") or v not in (None, {})}


def load_model(config: ModelConfig, seed: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model in training precision on its device, and its tokenizer.

    Raises:
        UsageError: the model cannot be found or read, or its tokenizer has no end-of-sequence token.
    """
    import torch

    device, dtype = device_of(config), getattr(torch, config.dtype)
    if config.source == "nano":
        tokenizer: Any = nano_tokenizer(config.nano)
        model: Any = nano_model(config.nano, len(tokenizer), seed)
    else:
        model, tokenizer = _pretrained(config.source, dtype)
    _check_end(config, tokenizer)
    set_template(tokenizer, config.template, config.chat_values, config.system)
    if config.quantise is None:
        return model.to(device, dtype), tokenizer
    if config.compile or (config.lora is not None and config.lora.start == "pissa"):
        what = "compile" if config.compile else 'lora.start = "pissa"'
        raise UsageError(f"model.quantise and model.{what} do not go together; leave one out")
    from assay.policies.quantised import quantise

    return quantise(model, config.quantise, dtype, device), tokenizer


def load_tokenizer(config: ModelConfig) -> Any:
    """Return a model's tokenizer alone, as :func:`load_model` has it.

    Raises:
        UsageError: there is none, or it does not have the template that is asked for.
    """
    if config.source == "nano":
        tokenizer: Any = nano_tokenizer(config.nano)
    else:
        from transformers import AutoTokenizer

        path = Path(config.source).expanduser()
        gguf = path.suffix == ".gguf"
        where = str(path.parent if gguf else path) if path.exists() else config.source
        try:
            tokenizer = AutoTokenizer.from_pretrained(where, **({"gguf_file": path.name} if gguf else {}))
        except Exception as error:  # what is raised depends on the network, the cache, the hub and the files
            raise UsageError(f"no tokenizer can be had of {config.source!r}: {_one_line(error)}") from error
    set_template(tokenizer, config.template, config.chat_values, config.system)
    return tokenizer


def load_vision_model(config: ModelConfig, seed: int) -> tuple[Any, Any, Any]:
    """Return a model for images and text, its tokenizer, and its processor, or an image processor alone.

    Raises:
        UsageError: as :func:`load_model`; it is to be quantised.
    """
    import torch

    if config.quantise is not None:
        raise UsageError("model.quantise: models that see pictures are not quantised here; leave it out")
    dtype = getattr(torch, config.dtype)
    model: Any
    if config.source == "nano":
        model, tokenizer, processor = nano_vision_model(config.nano, seed)
    else:
        from transformers import AutoModelForImageTextToText

        model, tokenizer = _pretrained(config.source, dtype, AutoModelForImageTextToText)
        processor = _processor(config.source)
    _check_end(config, tokenizer)
    set_template(tokenizer, config.template, config.chat_values, config.system)
    return model.to(device_of(config), dtype), tokenizer, processor


def sees(config: ModelConfig) -> bool:
    """Whether a recipe's model is one for images and text."""
    if config.source == "nano":
        return config.nano.vision is not None
    path = Path(config.source).expanduser()
    if path.suffix == ".gguf" or (path.exists() and not (path / "config.json").is_file()):
        return False
    from transformers import AutoConfig

    try:
        found = AutoConfig.from_pretrained(str(path) if path.is_dir() else config.source)
    except Exception:  # whatever it is, those who load the model say it in a line
        return False
    return hasattr(found, "vision_config")


def _check_end(config: ModelConfig, tokenizer: Any) -> None:
    if tokenizer.eos_token_id is None:
        raise UsageError(
            f"model {config.source!r}: its tokenizer has no end-of-sequence token, so a response could never end; "
            "set eos_token in the tokenizer's files"
        )


def _processor(source: str) -> Any:
    """Return a model's processor; where that cannot be had and an image processor is enough, that one."""
    from transformers import AutoConfig, AutoImageProcessor, AutoProcessor

    where = str(Path(source).expanduser()) if Path(source).expanduser().is_dir() else source
    try:
        with no_progress_bar():
            return AutoProcessor.from_pretrained(where)
    except Exception as error:
        if AutoConfig.from_pretrained(where).model_type not in REPEATING:
            raise UsageError(
                f"model.source = {source!r}: its processor cannot be loaded: {_one_line(error)}; pip install "
                "assay[vision], and what it names"
            ) from error
    try:
        return AutoImageProcessor.from_pretrained(where, backend="pil")
    except Exception as error:
        reason = _one_line(error)
        raise UsageError(f"model.source = {source!r}: its image processor cannot be loaded: {reason}") from error


def device_of(config: ModelConfig) -> torch.device:
    """Return the device ``config`` asks for."""
    import torch

    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(config.device)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was compiled for the device
        reason = str(error).splitlines()[0]
        raise UsageError(f"model.device = {config.device!r} cannot be used, take auto or cpu: {reason}") from error
    return device


def _pretrained(source: str, dtype: torch.dtype, auto: Any = None) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = Path(source).expanduser()
    arguments: dict[str, Any] = {}
    where = source
    if path.suffix == ".gguf":
        if not path.is_file():
            raise UsageError(f"model.source: no file {source}")
        where, arguments = str(path.parent), {"gguf_file": path.name}
    elif path.is_dir():
        where = str(path)
        if (path / "adapter_config.json").is_file():
            raise UsageError(f"model.source: folder {source} holds an adapter without its model; name its run's folder")
        if not (path / "config.json").is_file():
            raise UsageError(
                f"model.source: folder {source} holds no config.json, so it is no saved model{_within(path)}"
            )
    elif source.startswith((".", "/", "~")):
        raise UsageError(f"model.source: no folder {source}")
    try:
        with no_progress_bar():
            model = (auto or AutoModelForCausalLM).from_pretrained(where, dtype=dtype, **arguments)
            tokenizer = AutoTokenizer.from_pretrained(where, **arguments)
    except ImportError as error:
        raise UsageError(f"model.source = {source!r}: {_one_line(error)}; pip install assay[gguf]") from error
    except Exception as error:  # readers of damaged files raise whatever they trip over
        if path.exists():
            raise UsageError(f"model.source = {source!r} cannot be read: {_one_line(error)}") from error
        raise UsageError(
            f"model.source = {source!r} is neither 'nano', a folder, a .gguf file nor a hub model that can be reached: "
            f"{_one_line(error)}"
        ) from error
    if path.suffix == ".gguf":
        # The weights were expanded on loading; left marked as quantised, the model could not be saved.
        model.hf_quantizer = None
        model.config.__dict__.pop("quantization_config", None)
    return model, tokenizer


def _within(path: Path) -> str:
    """Say where a run's folder, or a checkpoint's, has a model."""
    found = sorted(path.glob("checkpoints/rl-*/policy")) or sorted(path.glob("policy"))
    if not found:
        return ""
    if (found[-1] / "adapter_config.json").is_file():
        return f"; write one, with what its adapters learned: assay export {path} FOLDER"
    return f"; it has one in {found[-1]}"


def _one_line(error: Exception) -> str:
    return textwrap.shorten(str(error), 300, placeholder=" ...") or type(error).__name__


@contextlib.contextmanager
def no_progress_bar() -> Iterator[None]:
    """Keep transformers from drawing a bar for every file it reads or writes."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    # The bar over a GGUF file's tensors heeds no setting.
    gguf: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    bar, gguf.tqdm = gguf.tqdm, lambda items, **_: items
    try:
        yield
    finally:
        gguf.tqdm = bar
        if shown:
            logging.enable_progress_bar()
