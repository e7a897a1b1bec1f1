"""Gestures made in a real browser: the screen as a page of HTML, input as events, what was hit as the page tells."""

from __future__ import annotations

import base64
import json
from html import escape

from assay.environments.screens.devtools import DevTools, program
from assay.environments.screens.picture import HEIGHT, WIDTH
from assay.environments.screens.widgets import Screen, Widget
from assay.errors import UsageError
from assay.verify.gestures.gesture import Gesture

STYLE = """
html, body { height: 100%; margin: 0; }
body { font: 13px sans-serif; background: #f8f9fb; overflow: hidden; touch-action: none; }
h1 { position: absolute; left: 20%; top: 1%; margin: 0; font-size: 17px; pointer-events: none; }
.w { position: absolute; box-sizing: border-box; margin: 0; padding: 0 6px; font: inherit; text-align: left;
     border: 1px solid #9aa4b2; border-radius: 6px; overflow: hidden; white-space: nowrap; }
.button { background: #1f5fbf; color: #fff; } .text { border: none; } [aria-checked=true] { background: #bcd3f5; }
"""
SCRIPT = """
window.told = {};
var on = (what, then) => document.body.addEventListener(what, then);
on("click", e => {
  const hit = e.target.closest("[data-id]");
  told.click = hit && !hit.disabled ? hit.dataset.id : "";
});
on("touchstart", e => { told.from = [e.touches[0].clientX, e.touches[0].clientY]; });
on("touchend", e => {
  const across = e.changedTouches[0].clientX - told.from[0], down = e.changedTouches[0].clientY - told.from[1];
  told.swipe = Math.abs(across) > Math.abs(down) ? (across > 0 ? "right" : "left") : (down > 0 ? "down" : "up");
});
on("keydown", e => { told.press = {Escape: "back", Home: "home"}[e.key]; });
document.querySelector("[autofocus]")?.focus();
"""
FINGER = {"up": (0, -200), "down": (0, 200), "left": (-150, 0), "right": (150, 0)}
"""Pixels that a swipe goes, from the middle of the page."""
KEYS = {"back": ("Escape", 27), "home": ("Home", 36)}


class Browser:
    """A Chromium that is started when it is first needed.

    Raises:
        UsageError: there is none.
    """

    def __init__(self) -> None:
        if program() is None:
            raise UsageError("environment 'screens': browser needs a Chromium (Debian: chromium-headless-shell)")
        self._tools: DevTools | None = None

    def show(self, screen: Screen) -> DevTools:
        """Put a screen into the page."""
        if self._tools is None:
            self._tools = DevTools(WIDTH, HEIGHT)
        self._tools.show(html(screen))
        return self._tools

    def make(self, screen: Screen, gesture: Gesture) -> Gesture:
        """Make a gesture on a screen by real input; return what the page has noticed, widgets by their ids."""
        if gesture.kind in ("wait", "terminate"):
            return gesture
        tools = self.show(screen)
        if gesture.kind == "click":
            return Gesture("click", self._click(tools, gesture))
        if gesture.kind == "type":
            if gesture.id:
                self._click(tools, Gesture("click", gesture.id))
            tools.evaluate("document.activeElement.select()")
            tools.call("Input.insertText", text=gesture.text) if gesture.text else self._key(tools, "Delete", 46)
            held = "[document.activeElement.dataset.id, document.activeElement.value]"
            id, text = tools.evaluate(held)
            return Gesture("type", id, text=text)
        if gesture.kind == "swipe":
            across, down = FINGER[gesture.text]
            for kind, part in (("touchStart", 0.0), ("touchMove", 0.5), ("touchMove", 1.0), ("touchEnd", None)):
                at = [] if part is None else [{"x": WIDTH / 2 + part * across, "y": HEIGHT / 2 + part * down}]
                tools.call("Input.dispatchTouchEvent", type=kind, touchPoints=at)
            return Gesture("swipe", text=tools.evaluate("told.swipe"))
        self._key(tools, *KEYS[gesture.text])
        return Gesture("press", text=tools.evaluate("told.press"))

    def picture(self, screen: Screen) -> bytes:
        """Return what the browser shows of a screen, as PNG."""
        return base64.b64decode(self.show(screen).call("Page.captureScreenshot", format="png")["data"])

    def boxes(self, screen: Screen) -> dict[str, tuple[float, float, float, float]]:
        """Return where the browser has put each widget, in thousandths of the page."""
        found = self.show(screen).evaluate(
            "Object.fromEntries([...document.querySelectorAll('[data-id]')].map(w => {"
            "const r = w.getBoundingClientRect();"
            f"return [w.dataset.id, [r.left / {WIDTH}, r.top / {HEIGHT}, r.right / {WIDTH}, r.bottom / {HEIGHT}]] }}))"
        )
        return {id: (1000 * a, 1000 * b, 1000 * c, 1000 * d) for id, (a, b, c, d) in found.items()}

    def close(self) -> None:
        tools, self._tools = self._tools, None
        if tools is not None:
            tools.close()

    def _click(self, tools: DevTools, gesture: Gesture) -> str:
        """Click, and return the id of what was hit, empty where it was nothing."""
        if gesture.point is None:
            box = f"[...document.querySelectorAll('[data-id]')].find(w => w.dataset.id === {json.dumps(gesture.id)})"
            middle = "(r => [(r.left + r.right) / 2, (r.top + r.bottom) / 2])"
            x, y = tools.evaluate(f"{middle}({box}.getBoundingClientRect())")
        else:
            x, y = gesture.point[0] * WIDTH, gesture.point[1] * HEIGHT
        tools.evaluate("told.click = ''")
        for kind in ("mousePressed", "mouseReleased"):
            tools.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        return str(tools.evaluate("told.click"))

    def _key(self, tools: DevTools, key: str, code: int) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            tools.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


def html(screen: Screen) -> str:
    """Return a screen as a page of HTML whose widgets stand in the same boxes."""
    widgets = "".join(_element(widget, widget.id == screen.focus) for widget in screen.widgets)
    return (
        f"<!doctype html><html><head><meta charset=utf-8><title>{escape(screen.title)}</title><style>{STYLE}</style>"
        f"</head><body><h1>{escape(screen.title)}</h1>{widgets}<script>{SCRIPT}</script></body></html>"
    )


def _element(widget: Widget, focused: bool) -> str:
    left, top, right, bottom = widget.box
    place = f"left:{left / 10}vw;top:{top / 10}vh;width:{(right - left) / 10}vw;height:{(bottom - top) / 10}vh"
    told = f'class="w {widget.kind}" data-id="{escape(widget.id)}" style="{place}"'
    told += "" if widget.enabled else " disabled"
    if widget.kind == "field":
        return f'<input {told}{" autofocus" if focused else ""} value="{escape(widget.text)}">'
    if widget.kind == "text":
        return f"<span {told}>{escape(widget.text)}</span>"
    role = "" if widget.on is None else f' role="switch" aria-checked="{str(widget.on).lower()}"'
    return f"<button {told}{role}>{escape(widget.text)}</button>"
