"""A page in headless Chromium, with the network blocked: controls are moved by keys, answers are read as numbers."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest

from infinitask.report._explore import Page

HOW_TO_GET_ONE = "No Chromium with its driver is on the PATH; on Debian: apt-get install chromium chromium-driver."

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,900",
)

TWO_FRAMES = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"


def programs() -> tuple[str, str] | None:
    """Chromium and its driver."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((found for name in names if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


class Tab:
    """One browser with one page at a time. ``compared`` counts the numbers that agreed with Python's."""

    def __init__(self) -> None:
        found = programs()
        if found is None:
            pytest.skip(HOW_TO_GET_ONE)
        webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
        from selenium.webdriver.chrome.service import Service

        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = webdriver.ChromeOptions()
        options.binary_location = found[0]
        for flag in (*FLAGS, f"--user-data-dir={self.folder.name}/profile"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(found[1]))
        self.driver.set_script_timeout(20)
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["http://*", "https://*", "ws://*", "wss://*"]})
        self.compared = 0
        self.touched: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.driver.quit()
        self.folder.cleanup()

    def open(self, page: Page, *, width: int = 1280, dark: bool = False) -> None:
        path = page.save(Path(self.folder.name) / "page.html")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.touched = set()
        self.driver.get(path.as_uri())
        self.settle()

    # ---------------------------------------------------------------------------------------------- moving
    def settle(self) -> None:
        """Wait until all is drawn."""
        self.driver.execute_async_script(TWO_FRAMES)

    def _find(self, name: str) -> Any:
        from selenium.webdriver.common.by import By

        self.touched.add(name)
        return self.driver.find_element(By.ID, name)

    def type(self, name: str, value: Any) -> None:
        box = self._find(name)
        box.clear()
        box.send_keys(repr(float(value)) if isinstance(value, float) else str(value))
        self.settle()

    def pick(self, row: int | str) -> None:
        from selenium.webdriver.common.keys import Keys

        box = self._find("row")
        box.clear()
        box.send_keys(str(row), Keys.TAB)
        self.settle()

    def slide(self, name: str, steps: int) -> None:
        """Arrow keys on a slider."""
        from selenium.webdriver.common.keys import Keys

        self._find(f"{name}-slider").send_keys(*[Keys.ARROW_RIGHT if steps > 0 else Keys.ARROW_LEFT] * abs(steps))
        self.settle()

    def press(self, name: str) -> None:
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", self._find(name))
        self._find(name).click()
        self.settle()

    def choose(self, name: str, value: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self._find(name)).select_by_value(value)
        self.settle()

    def tick(self, name: str) -> None:
        """The space bar on a box."""
        from selenium.webdriver.common.keys import Keys

        self._find(name).send_keys(Keys.SPACE)
        self.settle()

    def enter_date(self, name: str, day: str) -> None:
        """A date as year-month-day, whatever the order in which this browser asks for them."""
        script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'));"
        self.driver.execute_script(script, self._find(name), day)
        self.settle()

    def untouched(self) -> set[str]:
        """Controls that have not been moved; those of one table, which have no name, count as one kind."""
        script = "return [...document.querySelectorAll('input, select, button:not(.link)')].map((node) => node.id)"
        return set(self.driver.execute_script(script)) - self.touched

    # --------------------------------------------------------------------------------------------- reading
    def text(self, name: str) -> str:
        script = "return document.getElementById(arguments[0]).textContent"
        return str(self.driver.execute_script(script, name))

    def number(self, name: str) -> Any:
        """The full value behind what is shown."""
        return json.loads(
            self.driver.execute_script("return document.getElementById(arguments[0]).dataset.value", name)
        )

    def box(self, name: str) -> float:
        return float(self.driver.execute_script("return document.getElementById(arguments[0]).value", name))

    def x(self) -> np.ndarray:
        """The input that is looked at; NaN where it is missing."""
        found = self.driver.execute_script("return [...window.infinitask.page.x]")
        return np.array([[np.nan if value is None else value for value in found]], dtype=float)

    def agrees(self, name: str, expected: Any) -> None:
        """What is shown is Python's number to 1e-6."""
        found, wanted = np.ravel(self.number(name)), np.ravel(np.asarray(expected, dtype=float))
        assert found.shape == wanted.shape, name
        away = np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted))
        assert np.all(away <= 1e-6), f"{name}: {found} in the page, {wanted} in Python"
        self.compared += wanted.size

    def asked(self, expression: str, *arguments: Any) -> Any:
        """An expression of the page's own program, with ``model`` and ``page`` in reach."""
        script = f"const {{page, model}} = window.infinitask; return {expression};"
        return self.driver.execute_script(script, *arguments)

    # ------------------------------------------------------------------------------------------- checking
    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> set[str]:
        """Where the page asked for something, but for itself and what it holds."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return {url for url in sent if not url.startswith(("file:", "data:", "chrome:", "chrome-untrusted:"))}

    def barriers(self) -> list[str]:
        """Findings of axe-core that are serious or critical."""
        package = pytest.importorskip("axe_core_python", reason="axe-core is missing: pip install axe-core-python")
        source = (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
        self.driver.execute_script(source)
        run = "const done = arguments[0]; axe.run().then((found) => done(found.violations));"
        found = self.driver.execute_async_script(run)
        serious = [rule for rule in found if rule["impact"] in ("serious", "critical")]
        return [
            f"{rule['id']}: {rule['nodes'][0]['html'][:120]} {rule['nodes'][0]['failureSummary']}" for rule in serious
        ]
