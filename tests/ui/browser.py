"""Headless Chromium, through the WebDriver protocol, with the standard library only."""

from __future__ import annotations

import base64
import http.client
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# A fresh profile, and no background services that connect to other hosts.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-device-scale-factor=1"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
PATIENCE = 60  # seconds to wait for something that must happen

KEYS = {"Escape": "\ue00c", "Tab": "\ue004", "Enter": "\ue007", "ArrowLeft": "\ue012",
        "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Home": "\ue011",
        "End": "\ue010", "PageUp": "\ue00e", "PageDown": "\ue00f", "Control": "\ue009",
        "Shift": "\ue008"}


class BrowserError(Exception):
    """The driver's error message."""


class Browser:
    """One session: a browser with one page."""

    def __init__(self) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="cardpack-ui-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.port = 0
        for line in self.driver.stdout:
            started = re.search(r"started successfully on port (\d+)", line)
            if started:
                self.port = int(started[1])
                break
        if self.port == 0:
            raise BrowserError("chromedriver did not start")
        asked = {"browserName": "chrome", "goog:chromeOptions": {
            "args": [*FLAGS, f"--user-data-dir={self.profile.name}"]},
            "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = ""
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": asked}})
        self.session = f"/session/{made['sessionId']}"
        self.call("POST", "/timeouts", {"script": PATIENCE * 1000, "pageLoad": PATIENCE * 1000})

    def call(self, method: str, path: str, body: dict | None = None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * PATIENCE)
        connection.request(method, self.session + path,
                           json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        value = json.loads(answer.read())["value"]
        connection.close()
        if answer.status != 200:
            raise BrowserError(f"{path}: {value['error']}: {value['message']}")
        return value

    def cdp(self, command: str, **params):
        """Sends a DevTools command, for what WebDriver lacks."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def size(self, width: int, height: int) -> None:
        """Sets the page's size, which may be smaller than a window can be."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 640)

    def scheme(self, name: str, motion: str = "no-preference") -> None:
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": name},
            {"name": "prefers-reduced-motion", "value": motion}])

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def js(self, script: str, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def wait_js(self, script: str, *args):
        """Runs a script that ends with done(value), its last argument."""
        script = f"const done = arguments[arguments.length - 1];\n{script}"
        return self.call("POST", "/execute/async", {"script": script, "args": list(args)})

    def until(self, script: str, *args, what: Callable[[object], bool] = bool):
        """Polls the script until `what` accepts the value; returns it."""
        end = time.monotonic() + PATIENCE
        while True:
            value = self.js(script, *args)
            if what(value):
                return value
            if time.monotonic() > end:
                raise BrowserError(f"never came true, last {value!r}: {script.strip()}")
            time.sleep(0.05)

    def find(self, css: str) -> str:
        return self.call("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css: str) -> None:
        """Clicks on what the selector finds; again if the page draws it anew in between."""
        for last in (False, False, True):
            try:
                self.call("POST", f"/element/{self.find(css)}/click", {})
                return
            except BrowserError as error:
                if last or "stale element" not in str(error):
                    raise

    def fill(self, css: str, text: str) -> None:
        element = self.find(css)
        self.call("POST", f"/element/{element}/clear", {})
        if text:
            self.call("POST", f"/element/{element}/value", {"text": text})

    def press(self, *names: str, held: str = "") -> None:
        """Presses keys, one after the other, for the focused element."""
        actions = [{"type": "keyDown", "value": KEYS[held]}] if held else []
        for name in names:
            key = KEYS.get(name, name)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        if held:
            actions.append({"type": "keyUp", "value": KEYS[held]})
        self.call("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def hover(self, css: str) -> None:
        self.call("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
                {"type": "pointerMove", "duration": 0, "x": 0, "y": 0,
                 "origin": {ELEMENT: self.find(css)}}]}]})

    def console(self) -> list[str]:
        """The console's messages since the last call."""
        return [f"{e['level']}: {e['message']}" for e in
                self.call("POST", "/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """The URLs that this page has requested."""
        return self.js("return ['navigation', 'resource'].flatMap("
                       "(t) => performance.getEntriesByType(t)).map((e) => e.name)")

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self) -> None:
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.profile.cleanup()
