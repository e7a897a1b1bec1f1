"""Mail: an inbox that scrolls, messages, answers and new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.environments.screens.phone import Phone, Script, go
from assay.environments.screens.widgets import Row, Widget

PEOPLE = ("Ada", "Bruno", "Chloe", "Dario", "Edith", "Farid", "Greta", "Hugo", "Iris", "Jonas", "Karla", "Leon")
SUBJECTS = (
    "Lunch on Friday", "Invoice", "Train tickets", "Meeting notes", "Holiday photos", "Book club", "New keys",
    "Garden plan", "Phone bill", "Concert", "Recipe", "Map of the trail", "Lost scarf", "Spare chairs",
)  # fmt: skip
WORDS = ("Agreed", "See you then", "Thank you", "Please call me", "I am late", "Sounds good")


class Mail:
    """Messages stand in the inbox until they are archived or deleted; what is sent is kept."""

    name = "mail"

    def setup(self, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], str]:
        n = int(rng.integers(6, 14))
        senders = rng.choice(PEOPLE, n)
        subjects = rng.choice(SUBJECTS, n, replace=False)
        inbox = [
            {"from": str(who), "subject": str(what), "star": bool(rng.integers(2)), "folder": "inbox"}
            for who, what in zip(senders, subjects, strict=True)
        ]
        data: dict[str, Any] = {"mails": inbox, "sent": []}
        i, words = int(rng.integers(n)), str(rng.choice(WORDS))
        mail = inbox[i]
        it = f'the message "{mail["subject"]}"'
        what = str(rng.choice(["star", "archived", "deleted", "answer", "write"]))
        if what == "star":
            goal = {**data, "mails": _with(inbox, i, star=not mail["star"])}
            return data, goal, f"{'Unstar' if mail['star'] else 'Star'} {it}."
        if what in ("archived", "deleted"):
            goal = {**data, "mails": _with(inbox, i, folder=what)}
            return data, goal, f"{'Archive' if what == 'archived' else 'Delete'} {it}."
        if what == "answer":
            sent = {"to": mail["from"], "subject": f"Re: {mail['subject']}", "text": words}
            return data, {**data, "sent": [sent]}, f'Answer {it} with "{words}".'
        to, subject = str(rng.choice(PEOPLE)), str(rng.choice(SUBJECTS))
        sent = {"to": to, "subject": subject, "text": words}
        return data, {**data, "sent": [sent]}, f'Write to "{to}" about "{subject}": "{words}".'

    def view(self, phone: Phone) -> tuple[str, list[Row]]:
        kind, *of = phone.page
        if kind == "home":
            rows: list[Row] = [(Widget("write", "button", "Write", do=go("write")),)]
            for i, mail in enumerate(phone.data["mails"]):
                if mail["folder"] == "inbox":
                    text = f"{mail['from']}: {mail['subject']}{' *' if mail['star'] else ''}"
                    rows.append((Widget(f"mail_{i}", "item", text, do=go("mail", i)),))
            return "Inbox", rows
        if kind == "write":
            full = all(phone.draft(id).strip() for id in ("to", "subject", "text"))
            send = Widget("send", "button", "Send", do=_send, enabled=full)
            fields = [(Widget(f"of_{f}", "text", f.title()), Widget(f, "field", phone.draft(f))) for f in FIELDS]
            return "New message", [*fields, (send,)]
        i = int(of[0])
        mail = phone.data["mails"][i]
        if kind == "answer":
            send = Widget("send", "button", "Send", do=_answer(i), enabled=bool(phone.draft("text").strip()))
            return f"Re: {mail['subject']}", [(Widget("text", "field", phone.draft("text")),), (send,)]
        doing = (
            Widget("answer", "button", "Answer", do=go("answer", i)),
            Widget("archive", "button", "Archive", do=_moved(i, "archived")),
            Widget("delete", "button", "Delete", do=_moved(i, "deleted")),
        )
        star = Widget("star", "switch", "Star", mail["star"], _starred(i))
        return mail["subject"], [(Widget("from", "text", f"From {mail['from']}"),), (star,), doing]

    def plan(self, at: Script, goal: Mapping[str, Any]) -> None:
        for i, (now, then) in enumerate(zip(at.phone.data["mails"], goal["mails"], strict=True)):
            if now != then and now["folder"] == "inbox":
                at.home()
                at.click(f"mail_{i}", *(["star"] if now["star"] != then["star"] else []))
                if now["folder"] != then["folder"]:
                    at.click({"archived": "archive", "deleted": "delete"}[then["folder"]])
        for mail in goal["sent"][len(at.phone.data["sent"]) :]:
            at.home()
            subject = mail["subject"].removeprefix("Re: ")
            known = {m["subject"]: i for i, m in enumerate(at.phone.data["mails"]) if m["folder"] == "inbox"}
            if subject != mail["subject"] and subject in known:
                at.click(f"mail_{known[subject]}", "answer")
            else:
                at.click("write")
                at.type("to", mail["to"])
                at.type("subject", mail["subject"])
            at.type("text", mail["text"])
            at.click("send")


FIELDS = ("to", "subject", "text")


def _with(mails: list[dict[str, Any]], i: int, **changes: Any) -> list[dict[str, Any]]:
    return [{**mail, **changes} if k == i else mail for k, mail in enumerate(mails)]


def _starred(i: int) -> Callable[[Phone], Phone]:
    return lambda p: p.stored(mails=_with(p.data["mails"], i, star=not p.data["mails"][i]["star"]))


def _moved(i: int, folder: str) -> Callable[[Phone], Phone]:
    return lambda p: p.back().stored(f"Message {folder}", mails=_with(p.data["mails"], i, folder=folder))


def _sent(phone: Phone, to: str, subject: str) -> Phone:
    mail = {"to": to, "subject": subject, "text": phone.draft("text").strip()}
    return phone.back().stored("Message sent", sent=[*phone.data["sent"], mail])


def _send(phone: Phone) -> Phone:
    return _sent(phone, phone.draft("to").strip(), phone.draft("subject").strip())


def _answer(i: int) -> Callable[[Phone], Phone]:
    return lambda p: _sent(p, p.data["mails"][i]["from"], f"Re: {p.data['mails'][i]['subject']}")
