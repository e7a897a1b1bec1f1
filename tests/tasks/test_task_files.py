"""Tasks from files and Hugging Face data sets: every format, every way a user's data can be wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from assay.config import load_config
from assay.errors import UsageError
from assay.recipes import recipe_data
from assay.registry import build
from assay.tasks.configured import GIVEN, task_split
from assay.verify import KindVerifier

ROWS = [
    {"question": "2+2?", "answer": "It is 4.\n#### 4", "level": 1},
    {"question": "3*400?", "answer": "Think.\n#### 1,200", "level": 2},
]
GSM8K = {"prompt": "question", "kind": "number", "reference_after": "####", "solution": "answer"}


def write(path: Path, rows: list[dict]) -> Path:
    if path.suffix in (".jsonl", ".ndjson"):
        path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


def load(path: Path, **options: object):
    return build("tasks", {"name": "file", "path": str(path), **options})


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"])
def test_every_format_gives_the_same_tasks(tmp_path, suffix):
    source = load(write(tmp_path / f"data{suffix}", ROWS), meta=["level"], **GSM8K)
    assert source.size == 2
    assert [t.prompt for t in (source[0], source[1])] == ["2+2?", "3*400?"]
    assert [t.reference for t in (source[0], source[1])] == ["4", "1,200"]
    assert int(source[1].meta["level"]) == 2
    assert source[1].id == f"data{suffix}/1"
    for i in range(2):
        assert KindVerifier()(source[i], source[i].solution).passed is True
    assert KindVerifier()(source[1], "#### 1201").passed is False
    with pytest.raises(IndexError):
        source[2]
    with pytest.raises(IndexError):
        source[-1]


def test_templates_chat_and_ids(tmp_path):
    path = write(tmp_path / "d.jsonl", [{"q": "Why?", "a": 5, "key": {"id": "k1"}}])
    plain = load(path, prompt="Q: {q}\nset {{1}}\nA:", reference="a", id="key.id", kind="exact")[0]
    assert plain.prompt == "Q: Why?\nset {1}\nA:"
    assert plain.id == "k1"
    assert plain.reference == 5
    assert load(path, prompt="q", reference="a", chat=True)[0].prompt == ({"role": "user", "content": "Why?"},)
    assert load(path, prompt="q", reference="{a}!", system="Be brief.")[0].prompt == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why?"},
    )
    assert load(path, prompt="q", reference="{a}!")[0].reference == "5!"
    assert load(path, prompt="q", reference=None, kind="none")[0].reference is None


def test_prompts_that_are_messages_already(tmp_path):
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    path = write(tmp_path / "d.parquet", [{"prompt": messages, "reward_model": {"ground_truth": "5"}}])
    task = load(path, reference="reward_model.ground_truth")[0]
    assert task.prompt == tuple(messages)
    assert task.reference == "5"


def test_an_instruction_is_asked_with_its_input(tmp_path):
    rows = [{"instruction": "Add.", "input": "1 1", "output": "2"}, {"instruction": "3?", "input": "", "output": "3"}]
    path = write(tmp_path / "d.ndjson", rows)
    source = build("tasks", recipe_data(path)["tasks"]["source"])
    assert [(source[i].prompt, source[i].reference) for i in range(2)] == [("Add.\n\n1 1", "2"), ("3?", "3")]


class Frame:
    """As much of a data frame of pandas as is asked of one: its ``size`` counts cells."""

    size = 4

    def iterrows(self):
        raise AssertionError("slow")

    def to_dict(self, orient):
        assert orient == "records"
        rows = [("1+1=", np.int64(2), np.array([1, 2])), ("1+2=", np.int64(3), np.array([1]))]
        return [{"question": q, "answer": a, "hints": h} for q, a, h in rows]


def test_data_frames_and_what_numpy_has_are_read_as_rows():
    config = load_config({"tasks": {"source": GIVEN, "eval_source": GIVEN}})
    stream, held_out = task_split(config, Frame(), [{"question": "?", "answer": np.array(["a", "b"])}])
    assert [stream.source[i].reference for i in range(2)] == [2, 3] and stream.source[0].kind == "math"
    assert held_out[0].reference == ["a", "b"]


def test_a_field_of_a_csv_file_may_be_long(tmp_path):
    rows = [{"prompt": "word " * 40_000, "answer": "1"}]
    assert load(write(tmp_path / "d.csv", rows))[0].prompt == rows[0]["prompt"]


def test_the_first_of_several_answers_is_the_one_shown(tmp_path):
    rows = [{"question": "Capital?", "answer": ["Paris", "City of Paris"]}, {"question": "Sky?", "answer": ["blue"]}]
    source = load(
        write(tmp_path / "d.jsonl", rows), **dict.fromkeys(("prompt", "reference", "solution", "kind"), "auto")
    )
    assert [source[i].solution for i in range(2)] == ["Paris", "blue"]
    assert all(KindVerifier()(source[i], source[i].solution).passed for i in range(2))
    whole = load(tmp_path / "d.jsonl", prompt="question", solution="answer", kind="set")
    assert whole[0].solution == "['Paris', 'City of Paris']"


def test_conversations_that_end_with_an_answer_are_told_of(tmp_path):
    asked, answered = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}
    rows = [{"messages": [asked, answered]}, {"messages": [asked]}]
    told = [
        build(
            "tasks",
            {
                "name": "file",
                "path": str(write(tmp_path / f"{n}.jsonl", rows[:n])),
                "prompt": "auto",
                "reference": "auto",
            },
        )
        for n in (1, 2)
    ]
    assert ["`assay train sft` learns" in made.described for made in told] == [True, False]


def test_messages_of_a_conversation_with_tools(tmp_path):
    calls = [{"id": "1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]
    asked = {"role": "user", "content": [{"type": "text", "text": "Time?"}]}
    called = {"role": "assistant", "content": None, "tool_calls": calls}
    told = {"role": "tool", "tool_call_id": "1", "content": "noon"}
    path = write(tmp_path / "d.parquet", [{"prompt": [called, told], "answer": "noon"}])
    assert load(path)[0].prompt == ({**called, "content": ""}, told)
    path = write(tmp_path / "d.jsonl", [{"prompt": [asked], "answer": "noon"}])
    assert load(path)[0].prompt == ({"role": "user", "content": "Time?"},)


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("d.jsonl", "", {}, r"d\.jsonl has no rows"),
        ("d.json", "[]", {}, r"d\.json has no rows"),
        ("d.csv", "prompt,answer\n", {}, r"d\.csv has no rows"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}\n{"prompt": ', {}, r"d\.jsonl line 2 is not JSON"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}\n\n[1]', {}, r"line 3 is a list, not a table"),
        ("d.jsonl", "[" * 100_000, {}, r"line 1 is not JSON"),
        ("d.json", '{"prompt": 1}', {}, r"holds a dict, not a list of rows"),
        ("d.json", '[{"prompt"]', {}, r"d\.json is not JSON"),
        ("d.csv", "prompt,answer\na,1\nb\n", {}, r"line 3 has 1 values for 2 columns"),
        ("d.csv", "prompt,answer\na,1,2\n", {}, r"line 2 has 3 values for 2 columns"),
        ("d.csv", 'prompt,answer\n"a,1\n', {}, r"is not CSV"),
        ("d.parquet", "no", {}, r"d\.parquet is not Parquet"),
        ("d.txt", "x", {}, r"unknown format '\.txt'; known: \.jsonl"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}\n{"prompt": "b", "answr": 2}', {},
         r"line 2 has no field 'answer' for the reference \(fields present: prompt, answr\); did you mean 'answr'"),
        ("d.jsonl", '{"prompt": "a", "answer": null}', {}, r"line 1: field 'answer' for the reference is empty"),
        ("d.jsonl", '{"prompt": "", "answer": 1}', {}, r"line 1: field 'prompt' for the prompt is empty"),
        ("d.jsonl", '{"prompt": {"a": 1}, "answer": 1}', {}, r"field 'prompt' is a dict, not text"),
        ("d.jsonl", '{"prompt": ["a"], "answer": 1}', {}, r"holds 'a', not a message"),
        ("d.jsonl", '{"prompt": [{"role": "usr", "content": "x"}], "answer": 1}', {}, r"role 'usr'; known: system"),
        ("d.jsonl", '{"prompt": "a", "answer": "5"}', {"reference_after": "####"}, r"'answer' has no '####'"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}\n{"prompt": "a", "answer": 2}', {"id": "prompt"},
         r"line 2 has the id 'a' of .*line 1"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}', {"prompt": "{q}"}, r"no field 'q' for the prompt"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}', {"prompt": "{prompt"}, r"template '\{prompt' is malformed"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}', {"prompt": "{prompt!r}"}, r"only field names"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}', {"prompt": "{}"}, r"only field names"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}', {"prompt": "{{}}"}, r"names no field"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}', {"reference": None, "reference_after": "#"}, r"needs a reference"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}', {"promt": "x"}, r"no option 'promt'; did you mean 'prompt'"),
        ("d.jsonl", '{"prompt": "a", "answer": 1}', {"meta": ["level"]}, r"no field 'level' for the meta"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path, name, text, options, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=message) as error:
        load(tmp_path / name, **options)
    assert "\n" not in str(error.value)


def test_missing_files_folders_and_bytes(tmp_path):
    with pytest.raises(UsageError, match=r"no file .*nowhere\.jsonl"):
        load(tmp_path / "nowhere.jsonl")
    with pytest.raises(UsageError, match="is a folder"):
        load(tmp_path)
    (tmp_path / "latin.csv").write_bytes("prompt,answer\nä,1\n".encode("latin-1"))
    with pytest.raises(UsageError, match="not UTF-8"):
        load(tmp_path / "latin.csv")
    (tmp_path / "latin.json").write_bytes('["ä"]'.encode("latin-1"))
    with pytest.raises(UsageError, match="not UTF-8"):
        load(tmp_path / "latin.json")
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbfprompt,answer\na,1\n")
    assert load(tmp_path / "bom.csv")[0].prompt == "a"


def test_every_row_is_checked_before_anything_starts(tmp_path):
    rows = [{"prompt": str(i), "answer": i} for i in range(500)]
    del rows[499]["answer"]
    with pytest.raises(UsageError, match="line 500 has no field 'answer'"):
        load(write(tmp_path / "d.jsonl", rows))


# --- Hugging Face -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    import datasets

    folder = tmp_path_factory.mktemp("hf")
    data = datasets.Dataset.from_list(ROWS)
    data.save_to_disk(str(folder / "one"))
    datasets.DatasetDict({"train": data, "test": data.select([1])}).save_to_disk(str(folder / "two"))
    return folder


def hugging(path: Path, **options: object):
    return build("tasks", {"name": "huggingface", "path": str(path), **options})


def test_huggingface_reads_what_save_to_disk_wrote(saved):
    source = hugging(saved / "one", **GSM8K)
    assert source.size == 2
    assert source[1].reference == "1,200"
    assert KindVerifier()(source[1], "so 1200").passed is True
    test = hugging(saved / "two", split="test", meta=["level"], **GSM8K)
    assert test.size == 1
    assert test[0].prompt == "3*400?"
    assert test[0].meta == {"source": "two/test", "level": 2}


def test_huggingface_errors(saved, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="no split 'tset'; did you mean 'test'"):
        hugging(saved / "two", split="tset")
    with pytest.raises(UsageError, match=r"row 1 has no field 'text' for the prompt \(fields present: .*question"):
        hugging(saved / "one", prompt="text")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError, match="cannot be loaded") as error:
        hugging(tmp_path / "nowhere")
    assert "\n" not in str(error.value)


def test_hints_are_lists_of_texts(tmp_path: Path) -> None:
    rows = [{"q": "1+1=", "a": "2", "h": ["add", "it is 2"]}, {"q": "1+2=", "a": "3", "h": []}]
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    names = {"prompt": "q", "reference": "a"}
    first, second = (load(path, **names, hints="h")[i] for i in range(2))
    assert first.hints == ("add", "it is 2") and second.hints == () and load(path, **names)[0].hints == ()
    for wrong in ("add", [1], None):
        path.write_text(json.dumps({**rows[0], "h": wrong}))
        with pytest.raises(UsageError, match=r"field 'h' holds .*, not a list of texts as hints are"):
            load(path, **names, hints="h")
    with pytest.raises(UsageError, match="has no field 'hints'"):
        load(path, **names, hints="hints")
