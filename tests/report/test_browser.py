"""The page in a real browser: the numbers shown are those that Python computes."""

import csv
import io
import json
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import betabinom

import uqno
from tests.experiments.simulated import CALIBRATION, HELD, SIDE, record
from tests.experiments.simulated_run import SimulatedRun, fields, made_explorer, truths
from tests.report import expected
from tests.report.browser import Tab
from uqno.experiments import results
from uqno.experiments.packing import packed, unpacked
from uqno.experiments.table import number, percent
from uqno.report.page import write_page
from uqno.report.planner import needed

NAME = "<script>document.body.dataset.hit = 1</script></script>&lt;run&gt;"
SHAPE = (SIDE, SIDE)
LAST = SIDE - 1
EXPLORER = made_explorer()
# (method, α, δ): the run's own, others that are stored exactly, and one between two stored ranks.
LEVELS = [("uqno", 0.1, 0.02), ("laplace", 0.02, 0.05), ("nppc", 0.2, 0.3), ("constant", 0.18, 0.1)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """{"whole": …, "bare": …}: with everything; and without what may be missing."""
    folder = tmp_path_factory.mktemp("pages")
    results.write(folder / "results.json", record())
    made = results.read(folder / "results.json")
    made["settings"]["tested_at"] = SIDE
    write_page(made, EXPLORER, folder / "whole.html", NAME)
    bare = {**made, "panel": None, "section": None, "ablation": [], "curves": [], "targets": []}
    write_page(bare, None, folder / "bare.html", "bare")
    return {"record": made, "whole": folder / "whole.html", "bare": folder / "bare.html"}


@pytest.fixture(params=[1440, 390], ids=["desktop", "phone"])
def tab(request, browser, pages):
    with Tab(browser, pages["whole"], request.param) as opened:
        yield opened


@pytest.fixture
def desktop(browser, pages):
    with Tab(browser, pages["whole"]) as opened:
        yield opened


def places(method, alpha, delta):
    return expected.places(EXPLORER, method, alpha, delta)


def measured(method, alpha, delta):
    return expected.measured(EXPLORER, *fields(method), alpha, delta)


@pytest.mark.parametrize(("method", "alpha", "delta"), LEVELS)
def test_sliders_move_all_numbers(tab, method, alpha, delta):
    tab.choose(**places(method, alpha, delta))
    scale, bandwidth, share = measured(method, alpha, delta)
    assert tab.value("lambda") == pytest.approx(scale, rel=1e-6)
    assert tab.value("bandwidth") == pytest.approx(bandwidth, rel=1e-6)
    assert tab.value("percentage") == pytest.approx(share, abs=1e-12)
    assert tab.text("lambda") == number(tab.value("lambda"))
    assert tab.text("bandwidth") == number(tab.value("bandwidth"))
    assert tab.text("percentage") == percent(share)
    rank = CALIBRATION + 1 - int((CALIBRATION + 1) * Fraction(str(delta)))
    law = betabinom(HELD - CALIBRATION, rank, CALIBRATION + 1 - rank)
    least, most = (percent(hits / (HELD - CALIBRATION)) for hits in law.ppf([0.025, 0.975]))
    assert f"95 of 100 splits give {least} to {most}" in tab.text("percentage-words")
    assert f"promised {100 - 100 * delta:g} % on average" in tab.text("percentage-words")
    column = EXPLORER["alphas"].index(alpha)
    assert f"the {EXPLORER['ranks'][column]}" in tab.text("ranks")
    assert ("safe side" in tab.text("ranks")) == (not EXPLORER["exact"][column])


def shown_covered(tab, name):
    """What a map says, (SIDE, SIDE): a picture goes from the top row down, x fastest."""
    return tab.pixels(f'[data-map="{name}"]')[::-1, :, 0].T < 200


@pytest.mark.parametrize("function", [0, 1, 2, 17])
def test_the_coverage_of_a_function_and_its_map(tab, function):
    tab.choose(function=function, **places("uqno-paper", 0.1, 0.05))
    scale = tab.value("lambda")
    held = EXPLORER["functions"][function]["held"]
    wanted = SimulatedRun().profile("uqno-paper").coverage(scale)[held, 0]
    assert tab.value("coverage") == pytest.approx(wanted, abs=1 / SIDE**2 + 1e-9)
    error, uncertainty = (f[held] for f in fields("uqno-paper"))
    inside = np.abs(error) <= scale * uncertainty
    assert wanted == pytest.approx(inside.mean(), abs=0.01)
    # But for points on the edge of quantisation:
    assert (shown_covered(tab, "covered") == inside).mean() > 0.995
    reached = "reached" if wanted >= 0.9 else "missed"
    assert tab.text("coverage-words") == f"wanted 90 %: {reached}"


def test_the_probe_shows_the_values_at_its_point(tab):
    tab.choose(function=2, **places("mc-dropout", 0.1, 0.1))
    for x, y in ((3, 20), (12, 0), (LAST, LAST)):
        tab.point("error", x, y, SHAPE)
        assert_probe(tab, 2, "mc-dropout", x, y)
    tab.page.locator('[data-map="truth"]').focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowDown", "Shift+ArrowDown", "ArrowRight", "ArrowUp"):
        tab.page.keyboard.press(key)
    x, y = LAST - 1, LAST - 5  # two left, one right; six down, one up
    assert_probe(tab, 2, "mc-dropout", x, y)
    assert tab.text("cut-label") == f"cut at y = {y / LAST:.3f}"


def assert_probe(tab, function, method, x, y):
    held = EXPLORER["functions"][function]["held"]
    error, uncertainty = (f[held][x, y] for f in fields(method))
    inputs, solutions = (t[held][x, y] for t in truths())
    assert tab.text("probe-place") == f"{x / LAST:.3f}, {y / LAST:.3f}"
    assert tab.value("probe-input") == inputs
    assert tab.value("probe-truth") == pytest.approx(solutions, abs=1e-6)
    assert tab.value("probe-prediction") == pytest.approx(solutions - error, abs=2e-6)
    assert tab.value("probe-error") == pytest.approx(abs(error), abs=1e-7)
    scaled = tab.value("lambda") * uncertainty
    assert tab.value("probe-radius") == pytest.approx(scaled, rel=1e-3)
    assert tab.text("probe-radius") == number(tab.value("probe-radius"))
    if abs(abs(error) - scaled) > 1e-3 * scaled:
        assert tab.text("probe-covered") == ("yes" if abs(error) <= scaled else "no")


def test_a_second_method_beside_the_first(tab):
    first, second = places("uqno", 0.2, 0.1), places("laplace", 0.2, 0.1)
    assert tab.page.locator('[data-map="second-radius"]').is_hidden()
    tab.choose(function=1, second=second["method"], **first)
    scale, bandwidth, share = measured("laplace", 0.2, 0.1)
    assert tab.value("second-lambda") == pytest.approx(scale, rel=1e-6)
    assert tab.value("second-bandwidth") == pytest.approx(bandwidth, rel=1e-6)
    assert tab.value("second-percentage") == pytest.approx(share, abs=1e-12)
    tab.point("second-radius", 7, 8, SHAPE)
    assert_probe(tab, 1, "uqno", 7, 8)
    held = EXPLORER["functions"][1]["held"]
    error, uncertainty = (f[held][7, 8] for f in fields("laplace"))
    assert tab.value("second-error") == pytest.approx(abs(error), abs=1e-7)
    assert tab.value("second-radius") == pytest.approx(scale * uncertainty, rel=1e-3)
    inside = np.abs(fields("laplace")[0][held]) <= scale * fields("laplace")[1][held]
    assert (shown_covered(tab, "second-covered") == inside).mean() > 0.995
    keys = tab.page.locator('[data-field="radius"] .legend').all_text_contents()
    assert keys[0] == keys[1]  # one scale
    tab.choose(method=second["method"])  # the two change places
    assert tab.page.locator("#second").input_value() == str(first["method"])
    tab.choose(second=-1)
    assert tab.page.locator('[data-map="second-radius"]').is_hidden()


def test_a_finger_moves_the_probe(browser, pages):
    with Tab(browser, pages["whole"], 390) as tab:
        square = tab.page.locator('[data-map="radius"]')
        square.scroll_into_view_if_needed()
        box = square.bounding_box()
        square.tap(position={"x": box["width"] * 0.99, "y": box["height"] * 0.01})
        assert tab.text("probe-place") == "1.000, 1.000"


def test_the_cut_moves_and_turns(desktop):
    desktop.choose(cut=4)
    assert desktop.text("cut-label") == f"cut at y = {4 / LAST:.3f}"
    desktop.page.locator("#along-y").click()
    desktop.choose(cut=9)
    assert desktop.text("cut-label") == f"cut at x = {9 / LAST:.3f}"
    assert desktop.text("probe-place") == f"{9 / LAST:.3f}, {4 / LAST:.3f}"
    held = EXPLORER["functions"][0]["held"]
    error, uncertainty = (f[held][9] for f in fields("uqno"))
    missed = int((np.abs(error) > desktop.value("lambda") * uncertainty).sum())
    assert f"outside at {missed} of {SIDE} nodes" in desktop.text("section-words")
    for chart in ("section", "residual"):
        assert desktop.page.locator(f"#{chart} circle").count() == missed


def test_an_infeasible_choice_says_what_would_be_feasible(tab):
    tab.choose(delta=0)  # 0.2 %, with 120 functions
    assert tab.page.locator("#infeasible").is_visible()
    told = tab.text("infeasible")
    assert "at least 499 calibration functions" in told  # uqno.plan agrees:
    assert uqno.plan(0.1, 0.002, CALIBRATION, SIDE**2).smallest["functions"] == 499
    assert "δ of at least 0.827 % works" in told
    assert uqno.plan(0.1, 0.00827, CALIBRATION, SIDE**2).feasible
    assert not uqno.plan(0.1, 0.00826, CALIBRATION, SIDE**2).feasible
    for name in ("lambda", "bandwidth", "percentage", "coverage"):
        assert tab.text(name) == "–"
        assert tab.value(name) is None
    assert "chosen after looking" in tab.text("reading")
    tab.page.locator("#reset").click()
    assert "as the run fixed them beforehand" in tab.text("reading")
    assert not tab.page.locator("#infeasible").is_visible()
    assert tab.value("lambda") == pytest.approx(measured("uqno", 0.1, 0.02)[0], rel=1e-6)


def test_a_radius_of_zero_has_no_finite_scale(browser, pages, tmp_path):
    first, *others = EXPLORER["methods"]
    endless = {**first, "scores": packed(np.full(first["scores"]["shape"], np.inf))}
    write_page(
        pages["record"], {**EXPLORER, "methods": [endless, *others]}, tmp_path / "page.html", "run"
    )
    with Tab(browser, tmp_path / "page.html") as tab:
        assert "no finite λ covers them" in tab.text("infeasible")
        assert tab.text("lambda") == "–"
        tab.choose(method=1)
        assert tab.page.locator("#infeasible").is_hidden()


def test_ranks_are_exact_at_every_stop_of_the_slider(desktop):
    n, column = CALIBRATION, EXPLORER["alphas"].index(0.1)
    scores = np.sort(unpacked(EXPLORER["methods"][0]["scores"])[:n, column])
    shown = desktop.page.evaluate(
        """() => { const delta = document.getElementById("delta"), found = [];
        for (let i = 0; i <= delta.max; i++) {
          delta.value = i;
          delta.dispatchEvent(new Event("input"));
          found.push(document.getElementById("lambda").dataset.value ?? null);
        }
        return found }"""
    )
    for millionths, said in zip(EXPLORER["deltas"], shown, strict=True):
        rank = n + 1 - (n + 1) * millionths // 1_000_000
        assert (said is None) == (rank > n)
        assert said is None or float(said) == pytest.approx(scores[rank - 1], rel=1e-9)


def test_the_table_sorts_by_keyboard(desktop, pages):
    column = "Bandwidth"
    head = desktop.page.locator("thead button", has_text=column).first
    head.focus()
    desktop.page.keyboard.press("Enter")
    rows = [r for r in pages["record"]["rows"] if r["alpha"] == 0.1]
    known = sorted(r["bandwidth"] for r in rows if r["bandwidth"] is not None)
    unknown = ["infeasible"] * sum(not r["feasible"] for r in rows)
    shown = desktop.page.locator("tbody tr td:nth-child(3)").all_text_contents()
    assert shown[: len(known)] == [number(b) for b in known]
    assert len(shown) == len(rows)
    assert set(shown[len(known) :]) <= {*unknown, "–"}
    assert desktop.page.locator("thead th").nth(2).get_attribute("aria-sort") == "ascending"
    desktop.page.keyboard.press("Enter")  # the focus stays where it was
    again = desktop.page.locator("tbody tr td:nth-child(3)").all_text_contents()
    assert again[: len(known)] == [number(b) for b in reversed(known)]
    desktop.page.locator("#levels button").nth(1).press("Enter")
    assert "98 % of the points" in desktop.text("table-words")


def test_names_are_text(desktop):
    assert desktop.text("run-name") == NAME
    assert desktop.page.title().startswith(NAME)
    assert desktop.page.evaluate("document.body.dataset.hit ?? null") is None
    assert desktop.page.locator("script").count() == 4


def test_nothing_is_wider_than_the_screen_and_the_first_paint_is_quick(tab):
    wide, screen = tab.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen
    paint = tab.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 2000
    assert tab.page.locator("#drawn img").count() == 6
    tab.page.wait_for_function("[...document.images].every((i) => i.complete && i.naturalWidth)")


def test_everything_is_reached_by_keyboard_and_has_a_name(desktop):
    desktop.assert_all_is_reached_by_keyboard()


def test_dark_and_light(browser, pages):
    shown = []
    for scheme in ("light", "dark"):
        with Tab(browser, pages["whole"], color_scheme=scheme) as tab:
            colour = "getComputedStyle(document.body).backgroundColor"
            first = tab.page.evaluate(colour)
            tab.page.locator("#theme").click()
            shown += [first, tab.page.evaluate(colour)]
    assert shown[0] == shown[3] != shown[1] == shown[2]


def test_the_planner_shows_the_numbers_of_plan(desktop):
    desktop.page.locator("#plan-alpha").select_option("0.05")
    desktop.page.locator("#plan-delta").select_option("0.1")
    plan = needed(0.05, 0.1)
    told = desktop.text("plan-words")
    assert f"at least {plan['grid']} calibration functions" in told
    assert "{} functions of at least {} points".format(*plan["iid"][0]) in told
    assert f"This run has {CALIBRATION}: enough" in told


def test_downloads(desktop, pages):
    def fetched(selector):
        with desktop.page.expect_download() as caught:
            desktop.page.locator(selector).click()
        return caught.value.suggested_filename, caught.value.path().read_bytes()

    name, content = fetched("#get-results")
    assert name == "results.json"
    assert json.loads(content) == pages["record"]
    name, content = fetched("#get-table")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf8"), newline="")))
    assert name == "table.csv"
    assert [r["label"] for r in rows] == [r["label"] for r in pages["record"]["rows"]]
    assert [float(r["alpha"]) for r in rows] == [r["alpha"] for r in pages["record"]["rows"]]
    name, content = fetched('[data-figure="band.svg"]')
    assert (name, content[:5]) == ("band.svg", b"<?xml")
    name, content = fetched('[data-figure="band.png"]')
    assert (name, content[:8]) == ("band.png", b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("width", [1440, 390])
def test_without_an_explorer_the_rest_is_there(browser, pages, width):
    with Tab(browser, pages["bare"], width) as tab:
        assert not tab.page.locator("#explorer").is_visible()
        assert tab.page.locator('nav a[href="#explorer"]').is_hidden()
        assert tab.page.locator("tbody tr").count() > 10
        assert tab.page.locator("#drawn img").count() == 1
        assert tab.text("headline")
