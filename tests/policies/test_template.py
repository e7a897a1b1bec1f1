"""The chat template as a recipe wants it: another one, its variables, a system message; and that it stays with what is
trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import running
from transformers import AutoTokenizer

from assay import api
from assay.config import load_config
from assay.engines.base import Request, Sampling
from assay.engines.openai.vocabulary import Alphabet
from assay.engines.openai.wire import Wire
from assay.engines.target import resolve
from assay.errors import UsageError
from assay.planning.workload import mean_prompt
from assay.policies.nano import NanoConfig, nano_tokenizer
from assay.policies.policy import load_policy
from assay.policies.template import set_template
from assay.records.checkpoints import last_checkpoint
from assay.types import Message

# As models that think or not by a variable have it.
TURNS = "{%- for m in messages %}{{- '[' + m.role + ']' + m.content }}{%- endfor %}"
THINKS = (
    TURNS + "{%- if add_generation_prompt %}{{- '[assistant]' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think></think>' }}{%- endif %}{%- endif %}"
)
ASKED = [Message(role="user", content="2?")]
OWN = [Message(role="system", content="mine"), *ASKED]


def tokenizer(template: Any = THINKS) -> Any:
    made = nano_tokenizer(NanoConfig())
    made.chat_template = template
    return made


def written(made: Any, messages: Any = ASKED, **more: Any) -> str:
    return str(made.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **more))


def test_nothing_said_changes_nothing() -> None:
    made = tokenizer()
    set_template(made)
    assert made.chat_template == THINKS


def test_variables_stand_in_the_template_and_a_callers_go_before() -> None:
    made = tokenizer()
    set_template(made, values={"enable_thinking": False})
    assert written(made) == "[user]2?[assistant]<think></think>"
    assert written(made, enable_thinking=True) == "[user]2?[assistant]"


@pytest.mark.parametrize(
    "value", [None, True, 3, -0.5, 'it\'s "so"\n\\n {{ x }} {% y %} Ä 😀', ["a", 1], {"a": [None]}]
)
def test_a_value_is_read_as_it_was_given(value: Any) -> None:
    made = tokenizer("{{- messages[0].content }}{{ thing | tojson }}")
    set_template(made, values={"thing": value})
    assert json.loads(written(made).removeprefix("2?")) == value


def test_a_system_message_stands_before_conversations_without_one() -> None:
    made = tokenizer()
    set_template(made, system='Say "no".\nÄ 😀 \\n')
    assert written(made) == '[system]Say "no".\nÄ 😀 \\n[user]2?[assistant]'
    assert written(made, OWN) == "[system]mine[user]2?[assistant]"
    # Said again, as where what was trained is trained on, it does not stand there twice.
    set_template(made, system="other")
    assert written(made) == "[system]other[user]2?[assistant]"


def test_another_template_as_text_or_file(tmp_path: Path) -> None:
    file = tmp_path / "plain.jinja"
    file.write_text(TURNS + "{{- answer }}")
    for given in (str(file), file.read_text()):
        made = tokenizer(None)
        set_template(made, given, {"answer": "[model]"}, "S")
        assert written(made) == "[system]S[user]2?[model]"


def test_a_tokenizer_with_templates_for_several_purposes() -> None:
    made = tokenizer({"default": THINKS, "tool_use": "{{- 'tools' }}{{ enable_thinking }}" + TURNS})
    set_template(made, values={"enable_thinking": False}, system="S")
    assert written(made) == "[system]S[user]2?[assistant]<think></think>"
    assert written(made, chat_template="tool_use").startswith("toolsFalse[system]S")


def test_a_block_that_marks_what_is_learnt_from() -> None:
    made = tokenizer("{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% break %}{% endfor %}")
    set_template(made, system="S")
    assert written(made) == "S"


@pytest.mark.parametrize(
    ("own", "given", "words"),
    [
        (None, {"system": "S"}, "has no chat template for model.chat_values and model.system; give model.template"),
        (THINKS, {"values": {"enable_thinkin": 1}}, "reads no 'enable_thinkin'; did you mean 'enable_thinking'"),
        (THINKS, {"values": {"enable_thinking": object()}}, "is no text, number, truth value, list or table"),
        (THINKS, {"template": "nowhere.jinja"}, "nowhere.jinja is no Jinja text, and as a file: No such file"),
        (THINKS, {"template": "{% if %}"}, "the chat template is no Jinja: Expected an expression"),
        (THINKS, {"template": "{{ raise_exception('no') }}"}, "refuses a question with what model says of it: no"),
        ("{{ messages[-1].content }}", {"system": "S"}, "leaves system messages out; give model.template"),
    ],
)
def test_what_cannot_be_is_said(own: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        set_template(tokenizer(own), **given)


@pytest.mark.parametrize("other", [{"chat": "never"}, {"source": "control"}])
def test_what_has_no_conversations_has_no_template(other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"system is for conversations, which .* has none of"):
        load_config({"model": {"system": "S", **other}})


MODEL = {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 64}, "template": TURNS + "[it]", "system": "Add."}


def test_what_is_trained_keeps_it(tmp_path: Path) -> None:
    """The prompt in the rollouts' tokens, the checkpoint's tokenizer, and a run that goes on from it."""
    folder = running.run(tmp_path / "run", model=MODEL)
    policy = load_policy(load_config(folder / "config.toml").model, 0)
    assert policy.decode(policy.encode("1+1=")) == "[system]Add.[user]1+1=[it]"
    saved = AutoTokenizer.from_pretrained(last_checkpoint(folder)[2] / "policy")
    assert written(saved) == "[system]Add.[user]2?[it]"
    again = load_policy(load_config({"model": {"source": str(last_checkpoint(folder)[2] / "policy")}}).model, 0)
    assert (again.encode("1+1=") == policy.encode("1+1=")).all()
    plain = {"model": {"nano": MODEL["nano"]}, "tasks": load_config(folder / "config.toml").tasks.model_dump()}
    around = len("[system]Add.[user][it]") - 1  # a plain prompt begins with the token of a beginning
    assert mean_prompt(load_config(folder / "config.toml")) == mean_prompt(load_config(plain)) + around
    assert api.evaluate(folder, samples=1, quiet=True).samples


def test_stored_evaluations_from_before_it_could_be_said_go_on() -> None:
    plain, told = load_config({}).model, load_config({"model": {"system": "S"}}).model
    assert not {"template", "chat_values", "system"} & plain.setting.keys()
    assert told.setting == {**plain.setting, "system": "S"}


def test_a_server_is_told() -> None:
    wire = Wire("m", Alphabet(), system="S")
    for prompt, expected in (("2?", ["S", "2?"]), (tuple(ASKED), ["S", "2?"]), (tuple(OWN), ["mine", "2?"])):
        body = wire.body(Request(prompt, 1, Sampling(), 0), 1, 0)
        assert [m["content"] for m in body["messages"]] == expected
    overrides = ["model.system=S", "model.chat_values.enable_thinking=false"]
    found = resolve("openai:m@http://localhost:1/v1?extra.top_a=1", overrides)
    assert found.engine is not None and found.engine["system"] == "S"
    assert found.engine["extra"] == {"chat_template_kwargs": {"enable_thinking": False}, "top_a": 1}
    with pytest.raises(UsageError, match=r"applies a chat template of its own; leave out model\.template"):
        resolve("openai:m@http://localhost:1/v1", ["model.template={{x}}"])
