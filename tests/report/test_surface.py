"""Cars in a real browser: the surface turns, and its colours and its probe say what Python says."""

import re

import numpy as np
import pytest

from tests.experiments.simulated import record
from tests.report import expected
from tests.report.browser import Tab
from tests.report.simulated_cars import (
    VERTICES,
    body,
    cars_explorer,
    fields,
    simulated_profile,
    truth,
)
from uqno.experiments import results
from uqno.experiments.methods import METHODS
from uqno.experiments.table import number
from uqno.report.page import write_page

EXPLORER = cars_explorer()
# Unit vectors to the right, up and towards the viewer.
SIDE = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
REAR = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
ABOVE = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    results.write(folder / "results.json", record())
    made = results.read(folder / "results.json")
    empty = {"panel": None, "section": None, "ablation": [], "curves": [], "targets": []}
    made |= {"task": "cars", "points": VERTICES, "domain": EXPLORER["domain"], **empty}
    write_page(made, EXPLORER, folder / "cars.html", "cars")
    return folder / "cars.html"


@pytest.fixture(params=[1440, 390], ids=["desktop", "phone"])
def tab(request, browser, page):
    with Tab(browser, page, request.param) as opened:
        yield opened


@pytest.fixture
def desktop(browser, page):
    with Tab(browser, page) as opened:
        yield opened


def look(tab, side):
    """From one of the preset sides, until the picture rests."""
    tab.page.locator("#presets button", has_text=side).click()
    rested(tab)


def drawn(tab):
    """What was asked for before is in the next frame."""
    tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")


def rested(tab):
    """The fine picture, which follows the coarse ones of a movement."""
    drawn(tab)
    tab.page.wait_for_function(
        """() => [...document.querySelectorAll(".map:not([hidden]) > .stage canvas")].every(
        (c) => c.width === 2 * c.clientWidth)"""
    )


def stage(tab, which=0):
    return tab.page.locator(f'[data-stage="{which}"]')


def projected(tab, held, axes):
    """x and y of each vertex in the view, in pixels, and how squarely it faces the viewer."""
    view = stage(tab).locator("canvas").evaluate("(c) => [c.clientWidth, c.clientHeight]")
    points = body(held).points
    low, high = points.min(axis=0), points.max(axis=0)
    zoom = angles(tab)[2]
    scale = zoom * min(view[0] / 1.04, view[1] / 0.64) / np.linalg.norm(high - low)
    right, up, _ = scale * axes @ (points - (low + high) / 2).T
    return view[0] / 2 + right, view[1] / 2 - up, body(held).normals @ axes[2]


def facing(tab, held, axes, count):
    """Some vertices that the viewer sees: on a car, all that face him squarely from these sides."""
    x, y, towards = projected(tab, held, axes)
    some = np.flatnonzero(towards > 0.9)[:: max(1, int((towards > 0.9).sum()) // count)]
    return [(int(v), float(x[v]), float(y[v])) for v in some]


def assert_probe(tab, function, methods, vertex):
    held = EXPLORER["functions"][function]["held"]
    assert tab.value("probe-vertex") == vertex
    shown = np.array(tab.text("probe-place").split(", "), dtype=float)
    np.testing.assert_allclose(shown, body(held).points[vertex], atol=0.0051)
    solution = truth(held)[vertex]
    assert tab.value("probe-truth") == pytest.approx(solution, abs=0.01)
    assert tab.text("probe-truth").endswith(" Pa")
    for method, kind, scale in zip(
        methods, ("probe", "second"), ("lambda", "second-lambda"), strict=False
    ):
        error, uncertainty = (f[held][vertex] for f in fields(method))
        assert tab.value(f"{kind}-prediction") == pytest.approx(solution - error, abs=0.02)
        assert tab.value(f"{kind}-error") == pytest.approx(abs(error), abs=0.01)
        scaled = tab.value(scale) * uncertainty
        assert tab.value(f"{kind}-radius") == pytest.approx(scaled, rel=1e-3)
        assert tab.text(f"{kind}-radius") == f"{number(tab.value(f'{kind}-radius'))} Pa"
        if abs(abs(error) - scaled) > 1e-3 * scaled:
            assert tab.text(f"{kind}-covered") == ("yes" if abs(error) <= scaled else "no")


def test_the_probe_shows_the_values_at_its_vertex(tab):
    first, second = "uqno", "mc-dropout"
    tab.choose(function=1, second=1, **expected.places(EXPLORER, first, 0.2, 0.1))
    held = EXPLORER["functions"][1]["held"]
    for side, axes in (("Side", SIDE), ("Rear", REAR), ("Above", ABOVE)):
        look(tab, side)
        stage(tab).scroll_into_view_if_needed()
        for vertex, x, y in facing(tab, held, axes, 2):
            stage(tab, 1).hover(position={"x": x, "y": y})
            assert_probe(tab, 1, (first, second), vertex)
    pins = tab.page.locator(".pin").evaluate_all("all => all.map((pin) => pin.style.cssText)")
    assert pins[0] == pins[1] != ""


def test_sliders_move_the_numbers_and_the_covered_vertices(tab):
    look(tab, "Side")
    tab.page.locator('#surface-fields [data-field="covered"]').click()
    counts = []
    for alpha, delta in ((0.1, 0.02), (0.2, 0.3), (0.5, 0.5)):
        tab.choose(function=2, **expected.places(EXPLORER, "uqno", alpha, delta))
        scale, bandwidth, share = expected.measured(EXPLORER, *fields("uqno"), alpha, delta)
        assert tab.value("lambda") == pytest.approx(scale, rel=1e-6)
        assert tab.value("bandwidth") == pytest.approx(bandwidth, rel=1e-6)
        assert tab.value("percentage") == pytest.approx(share, abs=1e-12)
        held = EXPLORER["functions"][2]["held"]
        wanted = simulated_profile("uqno").coverage(scale)[held, 0]
        assert tab.value("coverage") == pytest.approx(wanted, abs=1 / VERTICES + 1e-9)
        rested(tab)
        picture = tab.pixels('[data-stage="0"]')
        seen = facing(tab, held, SIDE, 200)
        shown = [picture[int(2 * y), int(2 * x)] for _, x, y in seen]
        error, uncertainty = (f[held] for f in fields("uqno"))
        inside = [abs(error[v]) <= scale * uncertainty[v] for v, _, _ in seen]
        blue = [pixel[2] > pixel[0] for pixel in shown]
        assert np.mean(np.equal(blue, inside)) > 0.97  # but for a vertex between two pixels
        counts.append(sum(blue))
    assert counts[0] > counts[1] > counts[2]


def test_a_second_method_shares_scale_and_camera(desktop):
    assert stage(desktop, 1).is_hidden()
    desktop.choose(second=2)
    scale, bandwidth, share = expected.measured(EXPLORER, *fields("constant"), 0.1, 0.02)
    assert desktop.value("second-lambda") == pytest.approx(scale, rel=1e-6)
    assert desktop.value("second-bandwidth") == pytest.approx(bandwidth, rel=1e-6)
    assert desktop.value("second-percentage") == pytest.approx(share, abs=1e-12)
    titles = desktop.page.locator("#stages h3").all_text_contents()
    assert titles == [f"Radius λ̂E · {METHODS[m].label}" for m in ("uqno", "constant")]
    stage(desktop).focus()
    desktop.page.keyboard.press("ArrowLeft")
    rested(desktop)
    one, other = (desktop.pixels(f'[data-stage="{i}"]') for i in (0, 1))
    np.testing.assert_array_equal(one[..., 3], other[..., 3])  # the same outline
    assert (one != other).any()
    desktop.page.locator("#shading").uncheck()
    flat = desktop.pixels('[data-stage="1"]')
    assert len(np.unique(flat[flat[..., 3] > 0], axis=0)) == 1  # a constant radius, one colour
    desktop.choose(method=2)  # the two change places
    assert desktop.page.locator("#second").input_value() == "0"
    desktop.choose(delta=0)  # infeasible: no band, no colours
    assert desktop.text("second-lambda") == "–"
    assert desktop.text("probe-covered") == "–"
    desktop.page.locator('#surface-fields [data-field="covered"]').click()
    assert desktop.text("surface-legend") == "no band"


def angles(tab):
    """Azimuth, elevation and zoom, as the page says them."""
    drawn(tab)
    return [float(x) for x in re.findall(r"-?[\d.]+", tab.text("camera"))]


def test_it_turns_and_zooms(desktop):
    view = stage(desktop)
    view.scroll_into_view_if_needed()
    box = view.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    before = desktop.pixels('[data-stage="0"]')
    mouse, keyboard = desktop.page.mouse, desktop.page.keyboard
    mouse.move(*middle)
    mouse.wheel(0, -1)  # without the focus the page scrolls
    assert angles(desktop) == [52, 22, 1]
    vertex = desktop.value("probe-vertex")
    mouse.down()
    mouse.move(middle[0] + 40, middle[1] + 20, steps=4)
    mouse.up()
    turned = angles(desktop)
    assert turned[0] == pytest.approx(52 - 20, abs=6)
    assert turned[1] == pytest.approx(22 + 10, abs=4)
    assert desktop.value("probe-vertex") == vertex  # a drag does not probe
    mouse.wheel(0, -300)
    assert angles(desktop)[2] == pytest.approx(2)
    rested(desktop)
    assert (desktop.pixels('[data-stage="0"]') != before).any()
    for key in ("0", "ArrowLeft", "ArrowUp", "+"):
        keyboard.press(key)
    assert angles(desktop) == [62, 12, 1.25]
    desktop.page.locator("#zoom-out").click()
    assert angles(desktop)[2] == 1
    desktop.page.locator("#camera-reset").click()
    assert angles(desktop) == [52, 22, 1]
    rested(desktop)
    np.testing.assert_array_equal(desktop.pixels('[data-stage="0"]'), before)


def test_the_probe_walks_from_vertex_to_vertex(desktop):
    look(desktop, "Side")
    held = EXPLORER["functions"][0]["held"]
    vertex, x, y = facing(desktop, held, SIDE, 3)[1]
    stage(desktop).hover(position={"x": x, "y": y})
    assert desktop.value("probe-vertex") == vertex
    desktop.page.mouse.move(0, 0)
    stage(desktop).focus()
    desktop.page.keyboard.press("Shift+ArrowRight")
    other = int(desktop.value("probe-vertex"))
    assert_probe(desktop, 0, ("uqno",), other)
    triangles = body(held).triangles
    assert ((triangles == vertex).any(axis=1) & (triangles == other).any(axis=1)).any()
    assert body(held).points[other, 0] > body(held).points[vertex, 0]
    desktop.page.keyboard.press("Shift+ArrowLeft")
    assert desktop.value("probe-vertex") == vertex
    look(desktop, "Rear")
    assert stage(desktop).locator(".pin.behind").count() == 1


def test_a_finger_probes_and_a_swipe_turns(browser, page):
    with Tab(browser, page, 390) as tab:
        look(tab, "Above")
        held = EXPLORER["functions"][0]["held"]
        vertex, x, y = facing(tab, held, ABOVE, 3)[1]
        stage(tab).scroll_into_view_if_needed()
        stage(tab).tap(position={"x": x, "y": y})
        assert tab.value("probe-vertex") == vertex
        touch = {"pointerType": "touch", "isPrimary": True, "bubbles": True}
        # Fingers that the browser did not send cannot be captured.
        stage(tab).evaluate("(e) => { e.setPointerCapture = () => {} }")
        for kind, finger, at in (
            ("down", 1, 100), ("move", 1, 140), ("down", 2, 240), ("move", 2, 340), ("up", 2, 340),
            ("up", 1, 140),
        ):  # fmt: skip
            event = {**touch, "pointerId": finger, "clientX": at, "clientY": 300}
            stage(tab).dispatch_event(f"pointer{kind}", event)
        assert angles(tab) == [70, 90, 2]  # one finger turns by 20°, two make the distance double
        assert tab.value("probe-vertex") == vertex


def test_the_words_are_those_of_a_surface(tab):
    assert tab.page.locator("#cross-section").is_hidden()
    assert tab.page.locator("#maps").is_hidden()
    assert f"{VERTICES} vertices" in tab.text("explorer-words")
    assert "on its vertices" in tab.text("plan-words")
    assert f"or more of its {VERTICES} vertices" in tab.text("points")
    assert "node" not in tab.page.locator("#explorer").inner_text()
    wide, screen = tab.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen
    paint = tab.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 2000


def test_everything_is_reached_by_keyboard_and_has_a_name(desktop):
    desktop.assert_all_is_reached_by_keyboard()
