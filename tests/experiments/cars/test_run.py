"""The comparison on cars, so small that it trains in seconds: the same record as Darcy's."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tests.data.readers.test_shapenet import write_set
from tests.experiments.cars.synthetic_cars import write_cars
from uqno.cli import app as cli
from uqno.cli import terminal
from uqno.conformal import calibrate, coverage
from uqno.experiments import experiment, measuring, table
from uqno.experiments.ablation import methods_of
from uqno.experiments.cars import draw, load, surface
from uqno.experiments.cars import task as cars
from uqno.experiments.cars.settings import CarSettings
from uqno.experiments.cars.task import CarTask, axes_of
from uqno.experiments.explorer import read_explorer
from uqno.experiments.exploring import write_explorer
from uqno.experiments.methods import METHODS
from uqno.experiments.packing import unpacked
from uqno.experiments.runs import Run, begin, reopen
from uqno.experiments.settings import ALL_METHODS, PUBLISHED_METHODS
from uqno.experiments.workshop import Part, parts
from uqno.geometry import Stream, ideal_pressure
from uqno.geometry.surface import Surface
from uqno.report import figures, page
from uqno.report.page import write_page
from uqno.report.summary import summary

TINY = CarSettings(
    train=16,
    calibration=12,
    test=6,
    latent=(8, 6, 6),
    modes=(3, 2, 2),
    width=4,
    layers=1,
    epochs=1,
    committee=2,
    members=2,
    delta=0.1,
    curve_alphas=(0.12,),
    splits=20,
    ablation=True,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Every method and the ablation."""
    folder = tmp_path_factory.mktemp("cars")
    made = begin(TINY, folder / "run", write_cars(folder / "cars.npz", 40))
    told = []
    record = experiment.compare(
        made,
        preset="tiny",
        command="uqno run cars",
        workers=2,  # a thread each
        progress=lambda *what: told.append(what),
    )
    return made, record, told


def row_of(record, method, sampling, alpha=0.12):
    (row,) = [
        r
        for r in record["rows"]
        if (r["method"], r["sampling"], r["alpha"]) == (method, sampling, alpha)
    ]
    return row


def test_every_method_has_its_rows(finished):
    _, record, told = finished
    assert (record["task"], record["points"]) == ("cars", 3586)
    for name in ALL_METHODS:
        for alpha in TINY.alphas:
            row = row_of(record, name, "grid", alpha)
            assert 0 < row["p_value"] <= 1
            assert row["relative_bandwidth"] == row["bandwidth"]
            assert 0 < row["relative_error"] < 2
            assert 0 < row["area_coverage"] <= 1
            assert row["area_bandwidth"] > 0
        assert any(not r["calibrated"] for r in record["rows"] if r["method"] == name) is (
            METHODS[name].raw
        )
    assert {q["alpha"] for q in record["paper"]} == {0.12, 0.04}
    assert len(record["ablation"]) > 0
    for stage in ("signed distances and ideal flows", "training", "testing"):
        last = [(done, total) for what, done, total in told if what == stage][-1]
        assert last[0] == last[1] > 0


def test_the_numbers_are_those_of_the_library(finished):
    """Bandwidth and coverage, again, from the model, uqno.calibrate and the recorded splits."""
    made, record, _ = finished
    held = made.held("uqno")
    scored = [(e, r) for e, r, _ in made.model("uqno").scored(held)]
    error, uncertainty = (np.array([pair[i] for pair in scored]) for i in (0, 1))
    areas = np.array([held[i]["surface_weights"].numpy() for i in range(len(held))])
    learn, test = measuring.random_splits(18, 12, TINY.splits, TINY.seed)
    found = []
    for cal, new in zip(learn, test, strict=True):
        scale = calibrate(error[cal], uncertainty[cal], 0.12, 0.1).scale
        by_area = calibrate(error[cal], uncertainty[cal], 0.12, 0.1, weights=areas[cal]).scale
        covered = coverage(error[new], uncertainty[new], scale, areas[new])
        width = uncertainty[new].mean()
        shares = covered.mean(), (covered >= 0.88).mean()
        found.append((scale * width, by_area * width, *shares))
    pascal, by_area, covered, share = np.mean(found, axis=0)
    row, size = row_of(record, "uqno", "grid"), record["unit"]["size"]
    assert row["bandwidth_in_unit"] == pytest.approx(pascal, rel=1e-5)
    assert row["bandwidth"] == pytest.approx(pascal / size, rel=1e-5)
    assert row["area_bandwidth"] == pytest.approx(by_area / size, rel=1e-5)
    assert row["area_percentage"] == pytest.approx(share)
    assert row["area_coverage"] == pytest.approx(covered, abs=0.01)


def test_the_unit_is_the_deviation_of_the_training_pressures(finished):
    made, record, _ = finished
    train = made.task.train()
    pressure = np.stack([train[i]["u"].numpy() for i in range(TINY.train)])
    assert record["unit"]["symbol"] == "Pa"
    assert record["unit"]["size"] == pytest.approx(pressure.std(), rel=1e-5)


def test_no_car_has_two_uses_and_the_seed_chooses(finished):
    made, _, _ = finished
    content = json.loads((made.folder / "settings.json").read_text())
    split = content["split"]
    roles = [set(split[role]) for role in ("base", "residual", "calibration", "test")]
    assert sum(map(len, roles)) == len(set().union(*roles)) == 34
    assert max(set().union(*roles)) < split["functions"] == 40
    other = CarTask(replace(TINY, seed=1), made.folder, made.data)
    assert list(other.order()) != list(made.task.order())
    made.model("constant").calibrate(made.task.held(), 0.12, 0.1)  # refuses what it has seen


def test_a_car_is_prepared_once(finished, monkeypatch):
    made, _, _ = finished
    task = CarTask(TINY, made.folder, made.data)
    first = task.train(extra_inputs=True)[3]
    monkeypatch.setattr(cars.LatentGrid, "prepare", None)
    assert task.train(extra_inputs=True)[3] is first
    assert task.train()[3]["query_neighbours"] is first["query_neighbours"]


def test_the_recipe_and_aided_methods_alone_see_the_ideal_flow(finished):
    made, _, _ = finished
    task = made.task
    body = load(made.data).surface(task.order()[3])
    features = task.train(extra_inputs=True)[3]["features"]
    np.testing.assert_allclose(features[:, 0], ideal_pressure(body), atol=1e-3)
    for name in methods_of(TINY):
        hinted = METHODS[name].base(TINY).extra_inputs
        without = (*PUBLISHED_METHODS[1:], "out-of-fold", "no-deviation")
        assert hinted == (name not in without)
        assert ("features" in made.held(name)[0]) == hinted
        assert made.model(name).base.operator.module.feature_channels == hinted
    task = CarTask(replace(TINY, ideal_flow=False), made.folder, made.data)
    assert "features" not in task.train(extra_inputs=True)[3]


def test_without_the_ideal_flow_no_operator_has_extra_inputs():
    def operators(settings):
        return {part.operator.slug for part in parts(settings) if part.operator}

    settings = replace(TINY, ideal_flow=False)
    slugs = operators(settings)
    assert {"folds-symmetric", "folds-symmetric-2", "half-symmetric"} <= slugs
    assert not [slug for slug in slugs if "extra-inputs" in slug]
    assert not [name for name in methods_of(settings) if "extra-inputs" in name]
    assert not [o for o in operators(replace(settings, shifts=(0.0,))) if "symmetric" in o]
    unmoved = operators(replace(TINY, shifts=(0.0,)))
    assert {"folds-extra-inputs", "folds", "half-extra-inputs"} <= unmoved
    assert "folds-symmetric" not in unmoved


def test_a_finished_run_is_read_and_answers_for_other_levels(finished, monkeypatch):
    made, record, _ = finished
    monkeypatch.setattr(Part, "train", None)  # nothing is to be trained
    assert experiment.compare(made) == record
    assert experiment.estimate(made, 1) == 0


def test_a_run_on_other_data_is_refused(finished, tmp_path):
    made, _, _ = finished
    other = write_cars(tmp_path / "other.npz", 40, seed=1)
    with pytest.raises(ValueError, match=r"run on other data, those of .*cars\.npz"):
        begin(TINY, made.folder, other)
    with pytest.raises(ValueError, match="other settings"):
        begin(replace(TINY, latent=(9, 6, 6)), made.folder, made.data)


def test_a_damaged_note_on_scoring_is_named(finished, tmp_path):
    made, _, _ = finished
    (tmp_path / "profiles/uqno").mkdir(parents=True)
    (tmp_path / "profiles/uqno/00000.json").touch()
    with pytest.raises(ValueError, match=r"00000\.json is damaged .*remove it and 00000\.npz"):
        replace(made, folder=tmp_path).notes("uqno")


def test_a_report_of_other_data_is_refused(finished, tmp_path):
    made, _, _ = finished
    other = write_cars(tmp_path / "other.npz", 40, seed=1)
    with pytest.raises(ValueError, match="run on other data"):
        reopen(made.folder, other)
    with pytest.raises(ValueError, match=r"nowhere\.npz does not exist"):
        reopen(made.folder, tmp_path / "nowhere.npz")


def test_what_cannot_be_calibrated_is_refused_before_training(tmp_path):
    file = write_cars(tmp_path / "cars.npz", 34)
    with pytest.raises(
        ValueError, match=r"12 calibration functions .*at least 49 functions, or delta.*--set"
    ):
        begin(replace(TINY, delta=0.02), tmp_path / "run", file)
    assert not (tmp_path / "run").exists()


def test_the_triangles_of_a_surface_are_in_its_fingerprint(tmp_path):
    write_set(tmp_path)
    found = cars.cars_of(tmp_path)
    body, *others = found.source.surfaces
    turned = Surface(body.points, np.roll(body.triangles, 1, axis=1))
    other = replace(found, source=replace(found.source, surfaces=(turned, *others)))
    assert other.fingerprint != found.fingerprint


def test_tables_and_summary_name_the_unit(finished):
    _, record, _ = finished
    first, _ = table.tables(record)
    assert {"in Pa", "area", "by area", "area width", "error"} < set(first.columns)
    assert table.RELATIVE not in first.columns  # a bandwidth is relative already
    for one in table.narrow_tables(record):
        assert set(one.columns) < set(first.columns)
    assert any("the standard deviation of the training" in note for note in first.notes)
    text = table.markdown(record)
    assert text.startswith("# Cars, preset tiny")
    row = row_of(record, "uqno", "grid")
    assert f"| {table.number(row['bandwidth_in_unit'])} |" in text
    told = summary(record)
    assert "of its 3586 vertices" in told["points"][0]["text"]
    assert "Pa)" in told["caption"]


def test_the_explorer_has_surfaces(finished):
    made, _, _ = finished
    found = read_explorer(write_explorer(made, count=3))
    assert found["domain"] == {"kind": "surface", "nodes": [3586], "unit": "Pa"}
    fields = found["fields"]
    data, packed = made.task.held(), load(made.data)
    for shown in found["functions"]:
        assert shown["input"] is None
        sample = data[shown["held"]]
        stored = unpacked(fields[shown["points"]])
        np.testing.assert_allclose(stored, sample["points"].numpy(), atol=1e-4)
        truth = unpacked(fields[shown["truth"]])
        np.testing.assert_allclose(truth, sample["u"][0].numpy(), atol=0.1)
        indices = fields[shown["triangles"]]
        assert (indices["kind"], indices["low"], indices["high"]) == ("index16", 0, 65535)
        np.testing.assert_array_equal(unpacked(indices), packed.surface(0).triangles)
        for view in shown["views"].values():
            assert fields[view["uncertainty"]]["shape"] == [3586]
    assert len({shown["triangles"] for shown in found["functions"]}) == 1  # stored once


def test_the_report_and_the_surface_panel_are_drawn(finished, tmp_path):
    """Of two methods: figures of nine take their time."""
    made, record, _ = finished
    assert reopen(made.folder, made.data) == made
    few = {**record, "panel": {**record["panel"], "methods": record["panel"]["methods"][:2]}}
    few |= {part: record[part][:2] for part in ("ablation", "curves", "targets")}
    write_page(few, read_explorer(made.folder / "explorer.json"), tmp_path / "page.html", "cars")
    text = (tmp_path / "page.html").read_text(encoding="utf8")
    assert "Functions covered by area" in text
    assert f"bandwidth (1 = {table.bandwidth_unit(record)})" in text
    assert len(figures.comparison(few).axes) == 2 * 3 + 1


def test_the_command_line_shows_what_is_done(finished, monkeypatch):
    made, record, _ = finished
    changes = [
        part
        for key, value in TINY.record().items()
        for part in (
            "--set",
            f"{key}={','.join(map(str, value)) if type(value) is list else value}",
        )
    ]
    monkeypatch.setattr(page, "make_report", lambda *_, **__: [])
    monkeypatch.setattr(terminal.out, "width", 80)
    arguments = ["run", "cars", *changes, "--data", str(made.data), "--out", str(made.folder)]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    assert "is done; remove it to run it again" in done.output
    assert "area width" in done.output
    lines = [line for line in done.output.splitlines() if str(made.folder) not in line]
    assert max(map(len, lines)) <= 80
    assert (made.folder / "table.md").read_text(encoding="utf8") == table.markdown(record)


def test_a_car_from_a_file_to_paraview(finished, tmp_path):
    """`uqno predict` of a file with triangles writes a surface that VTK reads back."""
    pyvista = pytest.importorskip("pyvista")
    made, _, _ = finished
    model, held = made.model("uqno"), made.held("uqno")
    model.calibrate(held, 0.12, 0.1)
    model.save(tmp_path / "model")
    body = load(made.data).surface(made.task.order()[TINY.train])
    fields = {"points": body.points, "triangles": body.triangles}
    flow = ideal_pressure(body, made.task.cars.stream)[:, None]
    np.savez(tmp_path / "without.npz", **fields)
    np.savez(tmp_path / "open.npz", points=body.points, normals=body.normals, features=flow)
    np.savez(tmp_path / "car.npz", features=flow, **fields)
    out = tmp_path / "car.vtp"

    def predict(name):
        arguments = ["predict", str(tmp_path / "model"), str(tmp_path / name), "--out", str(out)]
        done = CliRunner().invoke(cli.app, arguments)
        return done.exit_code, " ".join(str(done.exception or done.output).split())

    code, message = predict("without.npz")
    assert code == 1
    assert "1 features a point" in message
    code, message = predict("open.npz")
    assert code == 1
    assert "exact signed distance" in message
    assert "add the triangles" in message
    code, message = predict("car.npz")
    assert code == 0, message
    found = pyvista.read(out)
    np.testing.assert_array_equal(found.regular_faces, body.triangles)
    assert found.volume == pytest.approx(body.volume, rel=1e-4)
    band = model.predict(held[0])  # as calibration sees it
    near = {"rtol": 1e-5, "atol": 1e-5 * float(band.center.std())}
    np.testing.assert_allclose(found.point_data["center"], band.center[0], **near)
    np.testing.assert_allclose(found.point_data["uncertainty"], band.uncertainty, **near)


# --- where cars come from ---------------------------------------------------------------------


def test_a_missing_set_and_too_few_cars_are_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(cars, "SHIPPED", tmp_path / "cars.npz")
    with pytest.raises(ValueError, match=r"cars\.npz is missing.*uqno data cars.*--data"):
        cars.cars_of.__wrapped__(None)
    with pytest.raises(ValueError, match=r"nowhere\.npz does not exist; make it with"):
        begin(TINY, tmp_path / "run", tmp_path / "nowhere.npz")
    few = write_cars(tmp_path / "few.npz", 5)
    with pytest.raises(ValueError, match=r"has 5 cars, but .*16 \+ 12 \+ 6 = 34.*--set"):
        begin(TINY, tmp_path / "run", few)
    assert not (tmp_path / "run").exists()


def test_the_recipe_is_the_mean_over_operators_and_places(finished):
    made, _, _ = finished
    sample, model = made.held("uqno")[0], made.model("uqno")
    operators, places = (model.base.operator, *model.base.others), model.base.symmetries
    assert (len(operators), len(places)) == (TINY.committee, len(TINY.shifts))
    with torch.no_grad():
        answers = [o(o.collate([g.apply(sample)])) for o in operators for g in places]
    assert np.allclose(model.uncalibrated(sample).center, torch.stack(answers).mean(0), rtol=1e-5)


def test_a_car_without_an_ideal_flow_is_named_with_the_remedy(tmp_path, monkeypatch):
    high = Stream(ground=0.5)  # above the bottom of the cars
    monkeypatch.setattr(cars.Cars, "stream", high)
    task = CarTask(TINY, tmp_path / "run", write_cars(tmp_path / "cars.npz", 40))
    with pytest.raises(ValueError, match=r"car \d+ of .*cars\.npz: .*--set ideal_flow=false"):
        task.make_data(1, lambda *what: None)


def test_shapenet_is_a_source_too(tmp_path):
    """Of its own frame: as here x is along, and the training cars are those of train.txt."""
    train = tuple(f"a{i}" for i in range(9))
    write_set(tmp_path / "set", train, ("b0", "b1"))
    settings = replace(TINY, train=8, batch_size=2, calibration=2, test=1, methods=("mean-field",))
    made = Run(settings, tmp_path / "run", tmp_path / "set")
    made.task.make_data(1, lambda *what: None)
    assert made.task.seconds_to_make() == 0
    assert len(list((tmp_path / "run" / "geometry").iterdir())) == 2 * 11
    assert set(made.task.order()[:8]) <= set(range(9))
    assert {9, 10} <= set(made.task.order())
    sample = made.task.held()[0]
    assert sample["grid_neighbours"].shape == (8 * 6 * 6, 4)
    low, high = made.task.cars.box[1]
    assert low == -high
    moved = [f"translation-0:{nodes}" for nodes in (0.0, 0.5, 1.25, -1.25)]
    assert [g.name for g in made.task.symmetries] == moved
    mirrored = CarTask(replace(settings, symmetric=True), tmp_path / "run", tmp_path / "set")
    assert [g.name for g in mirrored.symmetries] == [*moved, "reflection-1"]


def test_cars_with_other_triangles_have_no_mean_field(tmp_path, monkeypatch):
    write_set(tmp_path / "set", tuple("abcde"), tuple("fghi"))
    settings = replace(TINY, train=4, batch_size=1, calibration=2, test=1)
    source = cars.cars_of(tmp_path / "set").source
    *others, last = source.surfaces
    turned = Surface(last.points, last.triangles[::-1])
    monkeypatch.setitem(source.__dict__, "surfaces", (*others, turned))
    with pytest.raises(ValueError, match=r"differ in their triangles.*--set methods=uqno,uqno-pap"):
        CarTask(settings, tmp_path, tmp_path / "set")
    CarTask(replace(settings, methods=("uqno",)), tmp_path, tmp_path / "set")
    with pytest.raises(ValueError, match=r"train = 6, but .* has 5 cars in train\.txt"):
        CarTask(replace(settings, train=6, test=1, calibration=2), tmp_path, tmp_path / "set")


def test_a_car_tells_its_axes():
    body = surface(draw(0, 0))
    assert axes_of([body]) == (0, 1, 2)
    for axes in ((1, 2, 0), (2, 0, 1), (1, 0, 2)):
        points = np.empty_like(body.points)
        points[:, axes] = body.points
        assert axes_of([Surface(points, body.triangles)]) == axes
