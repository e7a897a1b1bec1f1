"""Pictures in files of tasks: paths, bytes and tables of them, where the prompt marks their places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from policies.sighted import picture

from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.rollout.single_turn import full_prompt
from assay.rollout.templates import through_template
from assay.tasks.files.file import File
from assay.tasks.files.huggingface import HuggingFace
from assay.tasks.files.images import shown
from assay.types import Ask, Task, pictures

pytest.importorskip("PIL", reason="pip install assay[vision]")


def written(folder: Path, **row: Any) -> Path:
    for i in (0, 1):
        (folder / f"{i}.png").write_bytes(picture(i).data)
    file = folder / "seen.jsonl"
    file.write_text(json.dumps({"prompt": "what?", "answer": "a dog", **row}) + "\n")
    return file


def test_a_path_from_the_files_folder_stands_before_a_prompt_without_marks(tmp_path: Path) -> None:
    [task] = File(written(tmp_path, image="0.png"), images="image").tasks
    assert task.question == f"{MARK}what?" and [p.data for p in pictures(task.prompt)] == [picture(0).data]


def test_each_stands_at_its_mark(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "look"}, {"role": "user", "content": f"{MARK} or {MARK}?"}]
    [task] = File(written(tmp_path, prompt=chat, images=["0.png", "1.png"]), images="images").tasks
    assert "images" not in task.prompt[0]
    assert [p.data for p in task.prompt[1]["images"]] == [picture(0).data, picture(1).data]  # type: ignore[index,typeddict-item]


def test_a_row_may_have_none(tmp_path: Path) -> None:
    [task] = File(written(tmp_path, image=None), images="image").tasks
    assert task.prompt == "what?"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"image": "2.png"}, "line 1: field 'image': no picture .*2.png"),
        ({"image": 7}, "line 1: field 'image' holds a int, not a picture"),
        (
            {"prompt": f"{MARK}?", "image": ["0.png", "1.png"]},
            "line 1: the prompt has 1 marks .* 2 pictures",
        ),
        ({}, "line 1 has no field 'image'"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        File(written(tmp_path, **row), images="image")


def test_a_saved_data_set(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="pip install assay[datasets]")
    rows = {"question": ["what?"], "answer": ["a dog"], "image": [{"bytes": picture(0).data, "path": None}]}
    features = {"question": datasets.Value("string"), "answer": datasets.Value("string"), "image": datasets.Image()}
    datasets.Dataset.from_dict(rows, datasets.Features(features)).save_to_disk(str(tmp_path / "saved"))
    [task] = HuggingFace(str(tmp_path / "saved"), images="image").tasks
    [found] = pictures(task.prompt)
    assert list(found.open().getdata()) == list(picture(0).open().getdata())


def test_hints_instructions_and_templates_leave_pictures_where_they_are() -> None:
    prompt = shown("what?", [picture(0)], "here")
    hinted = full_prompt(Ask(Task("t", prompt), 1, hint="a hint", instruction="be brief"))
    assert [m["content"] for m in hinted] == ["be brief", f"a hint\n{MARK}what?"]  # type: ignore[index]
    assert pictures(hinted) == [picture(0)] == pictures(through_template(prompt, "Q: {question}"))


def test_a_picture_is_told_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(picture(0).data)
    assert Picture(path).digest == picture(0).digest != picture(1).digest
    assert picture(0).url.startswith("data:image/png;base64,iVBOR")
    with pytest.raises(UsageError, match="No such file"):
        _ = Picture(tmp_path / "none.png").data
    with pytest.raises(UsageError, match="a picture of 3 bytes is none that Pillow can read"):
        Picture(b"abc").open()
    with pytest.raises(UsageError, match="a picture of 3 bytes is none that Pillow can read"):
        _ = Picture(b"abc").url
