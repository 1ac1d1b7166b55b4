"""The report page in a real browser: what a reader sees, with mouse and keyboard, light and dark."""

import json

import pytest
from browser import chromium, complaints, opened
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from ag2_parallel import ParallelTaskResult, RunResults, TaskError, TaskStatus
from ag2_parallel.spans import Span
from made_up_run import made_up_run

NASTY = "</script><img src=x onerror='document.title=`owned`'><script>document.title='owned'</script>\u2028\ud800<b>bold</b>"


@pytest.fixture(scope="module")
def browser():
    with chromium() as it:
        yield it


@pytest.fixture
def page(browser, tmp_path):
    """Opens the page of a run."""

    def open_page(run):
        opened(browser, run.timeline(tmp_path / "run.html"))
        return browser

    return open_page


def text(browser, css):
    return browser.find_element(By.CSS_SELECTOR, css).text


def texts(browser, css):
    return [element.text for element in browser.find_elements(By.CSS_SELECTOR, css)]


def focused(browser):
    return browser.switch_to.active_element


def test_the_head_says_what_became_of_the_run(page):
    run = made_up_run(6)
    browser = page(run)
    assert text(browser, "h1") == "night-2026-03-02"
    assert text(browser, "#verdict") == "5 of 6 tasks succeeded, 1 failed."
    figures = dict(zip(texts(browser, "#figures dt"), texts(browser, "#figures dd"), strict=True))
    assert figures["Tokens"].startswith(f"{run.usage.total_tokens:,}")
    assert figures["Model calls"] == str(run.usage.calls)
    assert figures["Cost"].startswith(f"${run.usage.cost:.4f}")
    assert figures["Speedup"].startswith(f"{run.metrics['speedup']:.1f}")
    assert complaints(browser) == []


def test_an_early_stop_is_said(page):
    results = RunResults(list(made_up_run(6).values()), run_id="r", stop_reason="budget", metrics={})
    assert "The run was stopped early: budget" in text(page(results), "#verdict")


def test_failures_are_grouped_and_lead_to_their_tasks(page):
    run = made_up_run(60)
    browser = page(run)
    counts = [int(count) for count in texts(browser, ".causes .count")]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == len([result for result in run.values() if not result.ok])
    browser.find_element(By.CSS_SELECTOR, ".causes button").click()
    assert len(texts(browser, "#tasks tbody tr")) == counts[0]
    assert text(browser, "#matches") == f"{counts[0]} of 60 tasks"
    browser.find_element(By.ID, "cause").click()
    assert len(texts(browser, "#tasks tbody tr")) == 60


def test_tasks_are_found_by_name_and_status(page):
    browser = page(made_up_run(60))
    browser.find_element(By.ID, "search").send_keys("case 000")
    assert len(texts(browser, "#tasks tbody tr")) == 10
    browser.find_element(By.XPATH, "//div[@id='statuses']/button[contains(., 'succeeded')]").click()
    assert set(texts(browser, "#tasks tbody .status")) == {"succeeded"}
    assert len(texts(browser, "#tasks tbody tr")) == 9


def test_the_table_sorts_by_each_column(page):
    run = made_up_run(30)
    browser = page(run)
    button = "th button[data-key='made']"
    browser.find_element(By.CSS_SELECTOR, button).click()
    most = sorted((result.usage.completion_tokens for result in run.values()), reverse=True)
    assert texts(browser, "#tasks tbody td:nth-child(9)") == [f"{count:,}" for count in most]
    assert browser.find_element(By.CSS_SELECTOR, "th[aria-sort]").get_attribute("aria-sort") == "descending"
    focused(browser).send_keys(Keys.ENTER)
    assert texts(browser, "#tasks tbody td:nth-child(9)") == [f"{count:,}" for count in reversed(most)]
    focused(browser).send_keys(Keys.ENTER)
    assert texts(browser, "#tasks tbody td:first-child") == list(run)


def test_a_task_is_read_in_full(page):
    run = made_up_run(6)
    browser = page(run)
    browser.find_element(By.XPATH, "//tbody//button[text()='endocrinology']").click()
    result = run["endocrinology"]
    assert text(browser, "#details-name") == "endocrinology"
    assert result.error.message in text(browser, ".error")
    assert [entry["content"] for entry in result.chat_history] == texts(browser, ".message.said pre")
    assert "lookup(" in texts(browser, ".message.called pre")[0]
    summary = browser.find_element(By.XPATH, "//summary[contains(., 'Step by step')]")
    summary.click()
    assert len(texts(browser, "#details-body ol li")) == len(result.trace)
    focused(browser).send_keys(Keys.ESCAPE)
    assert not browser.find_element(By.ID, "details").is_displayed()
    assert focused(browser).text == "endocrinology"


def test_the_gantt_is_used_with_the_keyboard_alone(page):
    run = made_up_run(6)
    browser = page(run)
    gantt = browser.find_element(By.ID, "gantt")
    for _ in range(30):  # by Tab from the top of the page
        if focused(browser) == gantt:
            break
        focused(browser).send_keys(Keys.TAB)
    assert focused(browser) == gantt
    outline = browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", gantt)
    assert outline == "solid"
    gantt.send_keys(Keys.ARROW_DOWN)
    assert text(browser, "#readout").startswith("pulmonology: succeeded")
    active = browser.find_element(By.ID, gantt.get_attribute("aria-activedescendant"))
    assert active.get_attribute("aria-label").startswith("pulmonology: succeeded")
    assert active.get_attribute("aria-selected") == "true"
    gantt.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert text(browser, "#readout").startswith("pulmonology: model call to gpt-4o-mini")
    gantt.send_keys(Keys.END, Keys.ENTER)
    assert text(browser, "#details-name") == list(run)[-1]
    focused(browser).send_keys(Keys.ARROW_UP)
    assert text(browser, "#details-name") == list(run)[-2]
    focused(browser).send_keys(Keys.ESCAPE)
    assert focused(browser) == gantt
    width = "return document.getElementById('gantt').scrollWidth"
    before = browser.execute_script(width)
    gantt.send_keys("+")
    assert browser.execute_script(width) > 1.4 * before
    gantt.send_keys("0")
    assert browser.execute_script(width) == before


def test_every_control_has_a_name(page):
    browser = page(made_up_run(20))
    nameless = browser.execute_script("""
        return [...document.querySelectorAll('button, input, select, canvas[role], [role=listbox]')]
            .filter((e) => !e.hidden && !(e.getAttribute('aria-label') || e.textContent.trim())).map((e) => e.outerHTML)""")
    assert nameless == []


def test_text_of_models_tools_and_users_is_never_more_than_text(page):
    error = TaskError(type="E", message=NASTY, kind="tool", traceback=NASTY, tool=NASTY)
    trace = (Span("attempt", "attempt 1", 0, 2), Span("call", NASTY, 0, 1, NASTY), Span("tool", NASTY, 1, 2, NASTY))
    nasty = ParallelTaskResult(
        name=f"task {NASTY}", index=0, status=TaskStatus.FAILED, error=error, trace=trace, duration=2, output=NASTY,
        started_at=made_up_run(1)[0].started_at, chat_history=[{"name": NASTY, "content": NASTY}], group=NASTY,
    )  # fmt: skip
    browser = page(RunResults([nasty, made_up_run(2)[1]], run_id=NASTY))
    before = browser.execute_script("return document.title")
    browser.find_element(By.CSS_SELECTOR, ".causes button").click()
    gantt = browser.find_element(By.ID, "gantt")
    gantt.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    shown = NASTY.replace("\ud800", "\ufffd")
    assert shown in browser.execute_script(
        "return document.querySelector('.message.said pre').textContent.toWellFormed()"
    )
    assert browser.execute_script("return document.querySelectorAll('img, b:not(.message b)').length") == 0
    assert browser.execute_script("return document.title") == before != "owned"
    assert complaints(browser) == []


def test_nothing_is_loaded_from_anywhere(browser, tmp_path):
    opened(browser, made_up_run(6).timeline(tmp_path / "run.html"))
    assert browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
    blocked = browser.execute_async_script("""
        const done = arguments[0]; const image = new Image();
        image.onload = () => done('loaded'); image.onerror = () => done('blocked'); image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='""")
    assert blocked == "blocked"
    assert ["data:image/gif" in complaint for complaint in complaints(browser)] == [True]


def test_light_and_dark_follow_the_system_and_the_switch(tmp_path):
    path = made_up_run(6).timeline(tmp_path / "run.html")
    ground = "return getComputedStyle(document.body).backgroundColor"
    with chromium(dark=True) as browser:
        opened(browser, path)
        dark = browser.execute_script(ground)
        switch = browser.find_element(By.ID, "theme")
        switch.click()
        light = browser.execute_script(ground)
        assert (dark, light) == ("rgb(18, 20, 23)", "rgb(250, 250, 248)")
        opened(browser, path)  # it is remembered
        assert browser.execute_script(ground) == light
        browser.find_element(By.ID, "theme").click()
        assert browser.execute_script(ground) == dark


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_is_readable_on_its_ground(tmp_path, dark):
    """Contrast of 4.5 to 1, as WCAG AA asks of text."""
    path = made_up_run(30).timeline(tmp_path / "run.html")
    with chromium(dark=dark) as browser:
        opened(browser, path)
        ratios = browser.execute_script("""
            const light = (name) => {
              const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
              const part = (at) => { const c = parseInt(hex.slice(at, at + 2), 16) / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
              return 0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4);
            };
            const found = {};
            for (const ink of ['--ink', '--muted', '--succeeded', '--failed', '--timed_out', '--cancelled'])
              for (const ground of ['--page', '--surface']) {
                const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
                found[ink + ' on ' + ground] = (a + 0.05) / (b + 0.05);
              }
            return found;""")
        assert {pair: ratio for pair, ratio in ratios.items() if ratio < 4.5} == {}


def test_a_narrow_window_scrolls_only_downwards(tmp_path):
    path = made_up_run(60).timeline(tmp_path / "run.html")
    with chromium(width=380) as browser:
        opened(browser, path)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 380
        browser.find_element(By.CSS_SELECTOR, "tbody button").click()
        assert browser.execute_script("return document.getElementById('details').getBoundingClientRect().left") >= 0


def test_a_thousand_tasks_are_there_in_under_two_seconds(browser, tmp_path):
    path = made_up_run(1000).timeline(tmp_path / "run.html")
    assert path.stat().st_size < 5_000_000
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    assert any(opened(browser, path) < 2000 for _ in range(10))  # other programs may hold the processor
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    assert next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime") < 1.0
    gantt = browser.find_element(By.ID, "gantt")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".row")) < 100
    gantt.send_keys(Keys.END)
    assert text(browser, "#readout").startswith("case 0999")
    assert browser.find_element(By.CSS_SELECTOR, ".row[aria-selected='true']").is_displayed()
    browser.find_element(By.ID, "more").click()
    assert len(texts(browser, "#tasks tbody tr td:first-child")) == 1000


def test_ten_thousand_tasks_and_a_task_of_two_thousand_spans(page):
    many = [ParallelTaskResult(name=f"t{n}", index=n, status=TaskStatus.SUCCEEDED) for n in range(9_999)]
    spans = tuple(Span("call", "m", n / 10, n / 10 + 0.09) for n in range(2_000))
    started = made_up_run(1)[0].started_at
    busy = ParallelTaskResult(
        name="busy",
        index=9_999,
        status=TaskStatus.SUCCEEDED,
        trace=spans,
        started_at=started,
        duration=200,
        dropped_spans=7,
    )
    browser = page(RunResults([*many, busy], run_id="r", metrics={}))
    assert complaints(browser) == []
    browser.find_element(By.ID, "search").send_keys("busy")
    browser.find_element(By.ID, "gantt").send_keys(Keys.HOME, Keys.ENTER)
    assert "shorter ones, which are not on this page" in browser.execute_script(
        "return document.getElementById('details-body').textContent"
    )


def test_a_page_is_made_from_results_in_a_file(page, tmp_path):
    run = made_up_run(6)
    run.to_json(tmp_path / "r.json")
    again = RunResults.from_json(tmp_path / "r.json")
    assert json.loads(again.to_json()) == json.loads(run.to_json())
    assert text(page(again), "#verdict") == "5 of 6 tasks succeeded, 1 failed."
