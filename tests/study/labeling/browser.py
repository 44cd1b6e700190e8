"""Chromium without a window, with real clicks and keys: its debugging protocol over two pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
PATIENCE = 30.0  # seconds; a busy computer is slow


class Browser:
    """A page in Chromium."""

    def __init__(self, profile, *, width=1100, height=900):
        here, there = os.pipe(), os.pipe()
        # Chromium wants them to be 3 and 4.
        shell = f'exec "$0" "$@" 3<&{here[0]} 4>&{there[1]}'
        self._process = subprocess.Popen(
            [
                *("bash", "-c", shell),
                *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--disable-dev-shm-usage", "--remote-debugging-pipe"),
                *(f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(here[0], there[1]),
        )
        for fd in (here[0], there[1]):
            os.close(fd)
        self._out, self._in, self._rest, self._n = here[1], there[0], b"", 0
        self._session = None
        self.messages = []  # of the console and the network
        (target,) = [
            each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"
        ]
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method, **parameters):
        self._n += 1
        message = {"id": self._n, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._n:
                assert "error" not in answer, answer
                return answer["result"]
            if answer.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.messages.append(answer["params"])

    def _read(self):
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], PATIENCE)[0], "Chromium does not answer"
            self._rest += os.read(self._in, 1 << 20)
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, script):
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition):
        end = time.monotonic() + PATIENCE
        while not self.value(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.01)

    def click(self, selector):
        where = self.value(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
            "found.scrollIntoView({block: 'nearest'});"
            "const box = found.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=where[0],
                y=where[1],
                button="left",
                clickCount=1,
            )

    def press(self, key, **more):
        text = {"text": key} if len(key) == 1 else {}
        code = {"windowsVirtualKeyCode": {"Tab": 9, "Enter": 13}.get(key, 0)}
        text = {"text": "\r"} if key == "Enter" else text
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text, **code, **more)

    def look(self, path):
        """Store what is to be seen."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def resize(self, width, height, *, dark=False):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
