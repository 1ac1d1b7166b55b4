"""A headless Chromium for tests of pages."""

import contextlib
import shutil
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage",
    "--force-color-profile=srgb", "--hide-scrollbars",
)  # fmt: skip
MISSING = "there is no Chromium: as root, `apt-get install chromium chromium-driver`; or run `make browser`"


def programs():
    """Paths of the browser and its driver."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    assert browser is not None, MISSING
    assert driver is not None, MISSING
    return browser, driver


@contextlib.contextmanager
def chromium(*, width=1380, height=900, dark=False):
    """A browser with a profile of its own that keeps what the page's console says."""
    browser, driver = programs()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        opened = webdriver.Chrome(options=options, service=Service(driver))
        try:
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            opened.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
            )
            yield opened
        finally:
            opened.quit()


def opened(browser, path):
    """Load a page and wait until it has drawn itself; milliseconds from the start of the load until then."""
    browser.get(path.as_uri())
    return browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "const look = () => { const ms = document.documentElement.dataset.readyAfter; ms ? done(Number(ms)) : setTimeout(look, 5); };"
        "look();"
    )


def complaints(browser):
    """Errors and warnings in the page's console."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}]
