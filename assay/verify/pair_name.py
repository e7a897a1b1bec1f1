"""A comparison of two answers in one word: the name of the better one."""

from __future__ import annotations

TEMPLATE = '''Below are an instruction and what two models, m and M, wrote for it. Say which output is better: reply
with the identifier of its model and nothing else.

{
"instruction": """{question}"""
"outputs": [
{"model": "m", "output": """{first}"""},
{"model": "M", "output": """{second}"""}
]
}

The better model is: '''
NAMES = ("m", "M")
"""Of the answer that is shown first, and of the other; one token each."""
