"""A real browser for the tests: the system's Chromium, without a network."""

import os
import shutil
from base64 import b64decode
from contextlib import contextmanager
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

INSTALL = "apt-get install -y --no-install-recommends chromium fonts-dejavu-core"
# No sandbox, since root in a container has none; no calls home, since there is no network.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def missing(what, remedy):
    """A skip that says what to install; a failure where skipping would hide it."""
    said = f"the page is not tested in a browser: no {what}; {remedy}"
    if os.environ.get("CI"):
        pytest.fail(said, pytrace=False)
    pytest.skip(said)


@contextmanager
def launched():
    """A headless browser, or a skip or failure with the line that installs it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright", "pip install playwright")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        missing("Chromium", INSTALL)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


class Tab:
    """A page opened from disk with the network off; `close` asserts that nothing went wrong."""

    def __init__(self, browser, path, width=1440, **options):
        height = 900 if width > 600 else 844
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, has_touch=width < 600, **options
        )
        self.context.set_offline(True)
        self.wrong = []
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.wrong.append(f"console {m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.wrong.append(f"error: {e}"))
        self.page.on("dialog", lambda d: (self.wrong.append("dialog"), d.dismiss()))
        self.page.on("request", self._requested)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#drawn img, #figures[hidden]", state="attached")

    def _requested(self, request):
        if not request.url.startswith(("file:", "blob:", "data:")):
            self.wrong.append(f"request {request.url}")

    def __enter__(self):
        return self

    def __exit__(self, kind, why, trace):
        self.context.close()
        if kind is None:
            assert self.wrong == []

    # --- what a person does and reads ---------------------------------------------------------

    def choose(self, **values):
        """function, method, second, alpha, delta: places in their lists."""
        for name, value in values.items():
            control = self.page.locator(f"#{name}")
            if name in ("alpha", "delta", "cut"):
                control.fill(str(value))
            else:
                control.select_option(str(value))

    def text(self, name):
        return self.page.locator(f"#{name}").text_content()

    def value(self, name):
        said = self.page.locator(f"#{name}").get_attribute("data-value")
        return None if said is None else float(said)

    def pixels(self, selector):
        """The canvas in the first element found, (height, width, 4)."""
        canvas = self.page.locator(f"{selector} canvas").first
        address = canvas.evaluate("(c) => c.toDataURL()")
        return np.asarray(Image.open(BytesIO(b64decode(address.partition(",")[2]))).convert("RGBA"))

    def assert_all_is_reached_by_keyboard(self):
        """… has a name, and shows that it has the focus."""
        wanted = self.page.locator("a[href], button, select, input, [tabindex='0']")
        visible = wanted.evaluate_all("all => all.filter((e) => e.offsetParent !== null).length")
        reached = set()
        for _ in range(visible + 5):
            self.page.keyboard.press("Tab")
            found = self.page.evaluate(
                """() => { const e = document.activeElement;
                const label = e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent;
                if (e === document.body) return null;  // the end of the page
                const all = [...document.querySelectorAll("*")];
                return [all.indexOf(e), label, getComputedStyle(e).outlineStyle] }"""
            )
            if found is not None:
                assert found[1]
                assert found[2] != "none", found
                reached.add(found[0])
        assert len(reached) >= visible

    def point(self, name, x, y, shape):
        """The mouse over the node (x, y) of a map."""
        square = self.page.locator(f'[data-map="{name}"]')
        square.scroll_into_view_if_needed()
        box = square.bounding_box()
        at = (box["width"] * (x + 0.5) / shape[0], box["height"] * (1 - (y + 0.5) / shape[1]))
        square.hover(position={"x": at[0], "y": at[1]})
