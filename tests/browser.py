"""Headless Chromium, driven over its DevTools protocol through two pipes."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser",
                                    "google-chrome"))), None
)  # fmt: skip
KEYS = {
    "ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Escape": 27, "Tab": 9,
    "Backspace": 8, "/": 191,
}  # fmt: skip
"""The keys that tests press, with their codes."""


class Page:
    """One tab. Messages are JSON, each ended by a zero byte."""

    def __init__(self, to_browser: BinaryIO, from_browser: BinaryIO) -> None:
        self._out, self._in = to_browser, from_browser
        self._rest = b""
        self._numbers = count(1)
        self.events: list[dict[str, Any]] = []
        """What the browser has reported: console messages, requests..."""
        target = self._call("Target.createTarget", {"url": "about:blank"})
        self._session = self._call(
            "Target.attachToTarget",
            {"targetId": target["targetId"], "flatten": True},
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._call(method, parameters, self._session)

    def _call(
        self, method: str, parameters: dict[str, Any], session: str = ""
    ) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            reply = self._read()
            if reply.get("id") == number:
                assert "error" not in reply, (method, reply)
                return reply["result"]
            self.events.append(reply)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = self._in.read(1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def evaluate(self, expression: str) -> Any:
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True,
            awaitPromise=True,
        )  # fmt: skip
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 15) -> Any:
        """Waits until an expression is true, and returns its value."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < end, (
                expression,
                self.evaluate("document.body.innerText"),
            )
            time.sleep(0.02)
        return value

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def type(self, text: str) -> None:
        for letter in text:
            self.call("Input.insertText", text=letter)

    def press(self, key: str) -> None:
        code = KEYS[key]
        letter = {"Enter": "\r", "/": "/"}.get(key, "")
        for kind, text in (("keyDown", letter), ("keyUp", "")):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                windowsVirtualKeyCode=code, text=text,
            )  # fmt: skip

    def screen(self, width: int, height: int, scheme: str = "light") -> None:
        """Sets the size of the window, and the reader's colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def screenshot(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot")["data"]
        path.write_bytes(base64.b64decode(data))

    def problems(self) -> list[Any]:
        """Returns the errors and warnings that the console has shown."""
        self.evaluate("1")  # reads what has been reported so far
        wanted = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown" or (
                event.get("method") == "Log.entryAdded"
                and parameters["entry"]["level"] in ("error", "warning")
            ):
                wanted.append(parameters)
        return wanted

    def hosts(self) -> set[str]:
        """Returns the hosts to which requests were sent."""
        self.evaluate("1")
        urls = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return {url.split("/")[2] for url in urls if url.startswith("http")}


@contextmanager
def browser_page(folder: Path) -> Iterator[Page]:
    """Starts a browser, and opens a tab in it."""
    assert BROWSER
    # The browser reads commands from descriptor 3 and answers on 4.
    commands, to_browser = os.pipe()
    from_browser, answers = os.pipe()
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", BROWSER,
         "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--remote-debugging-pipe", f"--user-data-dir={folder}"],
        pass_fds=(commands, answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(commands)
    os.close(answers)
    try:
        with (
            os.fdopen(to_browser, "wb", buffering=0) as written,
            os.fdopen(from_browser, "rb", buffering=0) as read,
        ):
            yield Page(written, read)
    finally:
        process.terminate()
        process.wait(20)
