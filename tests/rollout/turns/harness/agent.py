"""A program that speaks the chat protocol by plain HTTP: what the tests of the harness run."""

import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

task = json.load(sys.stdin)
how = task["meta"].get("how", "")


def ask(messages: list, **more: object) -> dict:
    body = json.dumps({"model": "any", "messages": messages, "temperature": 0.3, **more}).encode()
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]


if how == "breaks":
    raise SystemExit("I broke")
if how == "hangs":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    time.sleep(600)
conversation = [{"role": "user", "content": task["prompt"]}]
said = []
for turn in range(3):
    choice = ask(conversation)
    said.append(choice["message"]["content"])
    conversation += [choice["message"], {"role": "user", "content": f"{turn}+"}]
if how == "forks":
    ask([{"role": "user", "content": "7"}])
    ask(conversation)  # the first one goes on
    ask(conversation[:3])  # and from the middle, anew
if how == "limit":
    try:
        while True:
            ask([{"role": "user", "content": "8"}])
    except urllib.error.HTTPError as error:
        print(error.code)
        sys.exit(3)
pathlib.Path("left").write_text("behind")
print(json.dumps({"said": said}) if how == "tells" else task["meta"].get("answer", len(said[0]) % 2))
