"""Every figure shows the record's own numbers, whole and legible, whatever part is missing."""

import json
import subprocess
import sys
from itertools import combinations
from xml.etree import ElementTree

import matplotlib.image
import matplotlib.text
import numpy as np
import pytest
from matplotlib.collections import LineCollection

from tests.experiments.simulated import METHODS, panel, record
from uqno.experiments import results
from uqno.experiments.methods import METHODS as RECORDS
from uqno.experiments.settings import PUBLISHED_METHODS
from uqno.report import figures
from uqno.report.style import beside, look


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """As a run leaves it: written and read."""
    path = tmp_path_factory.mktemp("run") / "results.json"
    results.write(path, record())
    return results.read(path)


def keep(made, methods):
    """The same record with these methods alone."""
    parts = {
        k: [r for r in made[k] if r["method"] in methods] for k in ("rows", "curves", "targets")
    }
    shown = [m for m in made["panel"]["methods"] if m["method"] in methods]
    return {**made, **parts, "panel": {**made["panel"], "methods": shown}}


def shown_ticks(figure):
    """Tick labels outside their axis's limits exist, but are not drawn."""
    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            drawn = {id(t) for t in axis._update_ticks()} if ax.axison else set()
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if id(tick) not in drawn:
                    hidden |= {id(tick.label1), id(tick.label2)}
    return hidden


def assert_clean(figure):
    figure.draw_without_rendering()
    renderer = figure._get_renderer()
    hidden = shown_ticks(figure)
    boxes = []
    for text in figure.findobj(matplotlib.text.Text):
        said = text.get_text().strip()
        if not said or not text.get_visible() or id(text) in hidden:
            continue
        if text.axes is not None and not text.axes.axison and text is not text.axes.title:
            continue
        boxes.append((said, text.get_window_extent(renderer)))
    assert len(boxes) > 3
    for said, box in boxes:
        inside = figure.bbox.padded(1)
        assert inside.x0 <= box.x0, said
        assert inside.y0 <= box.y0, said
        assert box.x1 <= inside.x1, said
        assert box.y1 <= inside.y1, said
    for (one, a), (other, b) in combinations(boxes, 2):
        apart = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        assert apart, f"{one!r} lies over {other!r}"


@pytest.mark.parametrize(
    "methods", [("uqno", "laplace"), tuple(METHODS)[:5], tuple(METHODS)], ids=len
)
def test_no_text_is_clipped_or_covered(made, methods):
    part = keep(made, methods)
    for draw in (figures.comparison, figures.bandwidths):
        assert_clean(draw(part))


def test_the_figures_of_ours_and_the_papers_recipe_are_clean(made):
    for draw in (figures.tradeoff, figures.actual_against_target, figures.ablation):
        assert_clean(draw(made))


def test_one_level_alone_is_clean_too(made):
    part = {
        **made,
        "rows": [r for r in made["rows"] if r["alpha"] == 0.1],
        "ablation": [r for r in made["ablation"] if r["alpha"] == 0.1],
        "curves": made["curves"][:1],
        "targets": made["targets"][:1],
    }
    for draw in figures.FIGURES.values():
        assert_clean(draw(part))


def test_every_figure_is_written_as_png_and_svg_and_the_same_again(made, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "DPI", 40)  # quick
    part = keep(made, ("uqno", "laplace"))
    paths = figures.draw_all(part, tmp_path / "one")
    names = {p.name for p in paths}
    assert names == {f"{name}.{kind}" for name in figures.FIGURES for kind in ("png", "svg")}
    for path in paths:
        if path.suffix == ".png":
            picture = matplotlib.image.imread(path)
            assert picture.shape[1] >= 340
            assert picture[..., :3].std() > 0.01
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
    again = figures.save(figures.schematic(part), tmp_path / "two" / "band")
    assert [(tmp_path / "one" / p.name).read_bytes() for p in again] == [
        p.read_bytes() for p in again
    ]


def test_what_is_missing_is_not_drawn(made, tmp_path):
    bare = {**made, "panel": None, "section": None, "ablation": [], "curves": [], "targets": []}
    bare["paper"] = []
    assert {p.stem for p in figures.draw_all(bare, tmp_path)} == {"bandwidth"}
    infeasible = [r for r in made["rows"] if not r["feasible"]]
    assert infeasible
    assert figures.bandwidths({**bare, "rows": infeasible}) is None


def test_the_comparison_shows_radii_on_one_scale_and_what_they_cover(made):
    figure = figures.comparison(made)
    methods = made["panel"]["methods"]
    drawn = {ax.get_title(): ax.images[0] for ax in figure.axes if ax.images}
    assert sum(len(ax.images) for ax in figure.axes) == 1 + 2 * len(methods)
    scale = {(i.norm.vmin, i.norm.vmax) for title, i in drawn.items() if "covered" not in title}
    assert len(scale) == 1
    ours = methods[0]
    np.testing.assert_array_equal(drawn["UQNO (ours)"].get_array(), np.array(ours["radius"]).T)
    error = drawn["true error of\nUQNO (ours)"].get_array()
    np.testing.assert_array_equal(error, np.array(ours["error"]).T)
    inside = drawn[f"{100 * ours['coverage']:.1f} % covered"].get_array()
    np.testing.assert_array_equal(inside, (np.array(ours["error"]) <= ours["radius"]).T)


def test_the_error_has_no_owner_where_all_predict_the_same():
    same = panel(("uqno", "uqno"))
    figure = figures.comparison({"panel": same, "unit": None, "methods": []})
    assert "true error" in [ax.get_title() for ax in figure.axes]


def test_bandwidth_has_a_point_for_every_number_and_none_for_infeasible_rows(made):
    figure = figures.bandwidths(made)
    for ax, alpha in zip(figure.axes, (0.1, 0.02), strict=True):
        points = [line for line in ax.lines if line.get_marker() != "None" and line.get_transform()
                  != ax.get_xaxis_transform()]  # fmt: skip
        filled = {
            (*np.ravel(line.get_xydata()), line.get_marker())
            for line in points
            if line.get_markerfacecolor() != "none"
        }
        rows = [r for r in made["rows"] if r["alpha"] == alpha and r["bandwidth"] is not None]
        wanted = {
            (r["calibration_percentage"], r["bandwidth"], look(made, r["method"])["marker"])
            for r in rows
        }
        assert wanted <= filled
        hollow = {tuple(np.ravel(p.get_xydata())) for p in points} - {x[:2] for x in filled}
        assert hollow == {
            (q["calibration_percentage"], q["bandwidth"])
            for q in made["paper"]
            if q["alpha"] == alpha and q["bandwidth"] is not None
        }
        assert [t.get_text().strip() for t in ax.texts] == ["no bandwidth"]
        edges = ax.patches[0].get_extents().transformed(ax.transData.inverted())
        assert edges.x0 == pytest.approx(0.98, abs=1e-9)


def test_the_tradeoff_is_the_curves(made):
    figure = figures.tradeoff(made)
    ours = [c for c in made["curves"] if c["method"] == "uqno"]
    for line, curve in zip(figure.axes[0].lines, ours, strict=True):
        known = [b for b in curve["bandwidth"] if b is not None]
        assert len(known) < len(curve["bandwidth"])  # the smallest δ are infeasible
        np.testing.assert_array_equal(line.get_ydata(), known)
        assert line.get_label() == f"α = {curve['alpha']:g}"
    for ax in figure.axes:
        top = max(line.get_ydata().max() for line in ax.lines)
        bottom = min(line.get_ydata().min() for line in ax.lines)
        assert ax.get_yscale() == "log"
        assert ax.get_ylim()[0] < bottom < top < ax.get_ylim()[1]


def test_labels_with_dollars_are_no_formulas(made, tmp_path):
    spoilt = json.loads(json.dumps(made).replace("UQNO (ours)", "a $x^{$"))
    assert spoilt != made
    assert figures.draw_all(spoilt, tmp_path)


def test_every_panel_has_its_own_tick_labels(made):
    more = [{**c, "method": m} for m in ("ensemble", "laplace") for c in made["curves"][:2]]
    figure = figures.tradeoff({**made, "curves": made["curves"] + more})
    assert_clean(figure)
    shown = [ax for ax in figure.axes if ax.axison]
    assert len(shown) == 4
    for ax in shown:
        assert any(tick.label1.get_visible() for tick in ax.xaxis.get_major_ticks())


def test_targets_have_the_range_that_the_promise_gives(made):
    ax = figures.actual_against_target(made).axes[0]
    ours = [t for t in made["targets"] if t["method"] == "uqno"]
    ranges = [c for c in ax.collections if isinstance(c, LineCollection)]
    drawn = [line for line in ax.lines if line.get_label().startswith("α")]
    for points, bars, one in zip(drawn, ranges, ours, strict=True):
        np.testing.assert_array_equal(points.get_ydata(), one["actual"])
        ends = np.array(bars.get_segments())[:, :, 1]
        np.testing.assert_allclose(ends, np.transpose([one["low"], one["high"]]), atol=1e-12)
        assert np.abs(points.get_xdata() - one["target"]).max() < 0.03


def test_beside_moves_by_the_same_distance_everywhere():
    shares = np.array([0.5, 0.9, 0.98])
    moved = beside(shares, 0.02)
    assert (moved > shares).all()
    np.testing.assert_allclose(beside(moved, -0.02), shares, atol=1e-12)


def test_the_schematic_marks_what_lies_outside(made):
    ax = figures.schematic(made).axes[0]
    cut = {k: np.array(v) for k, v in made["section"].items()}
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["truth"].get_ydata(), cut["truth"])
    np.testing.assert_array_equal(lines["prediction"].get_ydata(), cut["center"])
    outside = (cut["truth"] > cut["upper"]) | (cut["truth"] < cut["lower"])
    assert outside.any()
    np.testing.assert_array_equal(lines["truth outside"].get_xdata(), cut["x"][outside])


def test_the_ablation_has_a_bar_a_recipe_and_says_what_is_infeasible(made):
    figure = figures.ablation(made)
    for ax, alpha in zip(figure.axes, (0.1, 0.02), strict=True):
        rows = [r for r in made["ablation"] if r["alpha"] == alpha]
        assert [bar.get_width() for bar in ax.patches] == [r["bandwidth"] or 0 for r in rows]
        told = [text.get_text() for text in ax.texts]
        assert ["infeasible" in t for t in told] == [r["bandwidth"] is None for r in rows]
        assert ["×" in t for t in told] == [r["ratio"] is not None for r in rows]
    assert "infeasible" in told[0]


def test_a_method_has_a_colour_and_a_marker_of_its_own(made):
    records = [RECORDS[name] for name in PUBLISHED_METHODS]
    assert len({x.colour for x in records}) == len({x.marker for x in records}) == len(records)
    for one in records:
        assert look(made, one.name) == one.look()
    assert look(made, "something new")["colour"] not in {x.colour for x in records}


def test_drawing_needs_no_pyplot_and_evaluation_no_matplotlib():
    code = (
        "import sys, uqno.experiments.table, uqno.experiments.measuring; "
        "assert not {'torch', 'matplotlib'} & set(sys.modules); "
        "import uqno.report.figures; "
        "assert not {'torch', 'matplotlib.pyplot'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
