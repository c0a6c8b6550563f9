"""Cases of every file format that the library reads: whole files that were damaged or crafted.

Where a checksum stands before the content, it is made to fit, as one who crafts a file would.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import uqno
from tests.fuzz.harness import Case
from tests.fuzz.mutation import mutated, mutated_json

Rng = np.random.Generator
HOME = Path("seeds")  # in the workplace, where `make` puts the whole files


@dataclass(frozen=True)
class Format:
    """A format: how a whole file or folder of it is made, and how it is read."""

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    mend: Callable[[Path], object] = lambda path: None
    """Lets checksums fit again."""


# --- functions ----------------------------------------------------------------------------------


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "a": rng.normal(size=(6, 1, 8)).astype(np.float32),
        "u": rng.normal(size=(6, 1, 8)).astype(np.float32),
    }


def held() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(40, 8))
    uncertainty = rng.uniform(0.5, 1, (40, 8))
    return {"prediction": truth + 0.1, "truth": truth, "uncertainty": uncertainty}


def dataset(values: dict[str, Any]) -> Any:
    import xarray

    names = ("function", "channel", "x")
    named = {n: (names if x.ndim == 3 else ("function", "x"), x) for n, x in values.items()}
    return xarray.Dataset(named, coords={"x": np.linspace(0, 1, 8)})


def _npz(values: Callable[[], Any], path: Path) -> None:
    np.savez(path, **values())


def _netcdf(values: Callable[[], Any], path: Path) -> None:
    dataset(values()).to_netcdf(path, engine="h5netcdf")


def _zarr(values: Callable[[], Any], path: Path) -> None:
    dataset(values()).to_zarr(path, consolidated=False)


def _hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, x in arrays().items():
            file.create_dataset(name, data=x, chunks=(2, 1, 8), compression="gzip")


def _the_well(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_group("dimensions").attrs["spatial_dims"] = ["x"]
        file["dimensions/x"], file["dimensions/time"] = np.linspace(0, 1, 8), np.arange(3.0)
        field = file.create_dataset("t0_fields/u", data=np.ones((4, 3, 8), np.float32))
        field.attrs.update(sample_varying=True, time_varying=True, dim_varying=[True])


def _mat(path: Path) -> None:
    import scipy.io

    scipy.io.savemat(path, arrays())


def _mat_7_3(path: Path) -> None:
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        file["a"], file["u"] = np.ones((8, 8, 4)), np.ones((8, 8, 4))


def _pt(path: Path) -> None:
    import torch

    torch.save({n: torch.from_numpy(x) for n, x in arrays().items()}, path)


def _safetensors(path: Path) -> None:
    from safetensors.numpy import save_file

    save_file(arrays(), path)


def _npy(path: Path) -> None:
    np.save(path, arrays()["a"])


def _store(path: Path) -> None:
    from uqno.data.store import FunctionStore

    rng = np.random.default_rng(0)
    seeds = np.stack([np.zeros(4, int), np.arange(4)], axis=1)
    store = FunctionStore.create(path, {"any": "record"}, seeds, (5,), chunk=2)
    for chunk in range(2):
        a, u = rng.random((2, 2, 5, 5)).astype(np.float32)
        store.write(chunk, {5: (a, u)})


def _read_functions(path: Path, inputs: Any = None, outputs: Any = None) -> object:
    from uqno.data import inspect
    from uqno.data import open as open_data

    seen = inspect(path, inputs, outputs).record()
    data = open_data(path, inputs, outputs)
    return seen, len(data), data[0]["a"].sum()


def _read_store(path: Path) -> object:
    from uqno.data.store import FunctionStore

    store = FunctionStore.open(path)
    return store.samples(5)[0]["u"].sum(), _read_functions(path)


def _calibrate(path: Path) -> object:
    from uqno.data.calibration_file import open_calibration

    with open_calibration(path) as data:
        return uqno.calibrate(data.error, data.uncertainty, 0.2, 0.1, weights=data.weights)


# --- meshes and points --------------------------------------------------------------------------


def _points(path: Path) -> None:
    path.write_text("x,y\n0.1,0.2\n0.3,0.4\n")


def _read_points(path: Path) -> object:
    from uqno.data.readers.csv import read_points

    return read_points(path)


def _ply(order: str, path: Path) -> None:
    from tests.data.readers.test_ply import ply
    from uqno.geometry import Surface

    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    path.write_bytes(ply(Surface(points, faces), order))


def _read_ply(path: Path) -> object:
    from uqno.data.readers.ply import read_ply

    body = read_ply(path)
    body.check_closed()
    return body.normals


def _shapenet(path: Path) -> None:
    for part, name in (("train", "one"), ("test", "two")):
        (path / "data" / name).mkdir(parents=True)
        (path / f"{part}.txt").write_text(name)
        _ply("<", path / "data" / name / "tri_mesh.ply")
        np.save(path / "data" / name / "press.npy", np.ones(4))


def _read_shapenet(path: Path) -> object:
    from uqno.data import read_shapenet

    return read_shapenet(path).domain


# --- calibrations and models --------------------------------------------------------------------


def _calibration(path: Path) -> None:
    from tests.fuzz.api import a_calibration
    from uqno.data.calibrations import write_calibration

    write_calibration(path, a_calibration())


def _read_calibration(path: Path) -> object:
    from uqno.data.calibrations import read_calibration

    return read_calibration(path).guarantee


@cache
def _fno_model() -> Any:
    from tests.uncertainty import problems

    model = uqno.UQNO(problems.fno(dropout=0.0))
    model.fit(problems.functions(8), **problems.QUICK)
    model.calibrate(problems.functions(20, seed=5), [0.2, 0.3], 0.2)
    return model


def _model(path: Path) -> None:
    _fno_model().save(path)


def _read_model(path: Path) -> object:
    return uqno.UQNO.load(path).predict(np.ones((1, 9, 9))).guarantee


def _sum_model(path: Path) -> None:
    """The checksums of a model as they would be had it been saved like this."""
    sums = path / "SHA256SUMS"
    if sums.is_file() and b"model.json" in sums.read_bytes():
        files = sorted(f for f in path.iterdir() if f.name != sums.name)
        sums.write_text(
            "".join(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
        )


def _checkpoint(path: Path) -> None:
    import torch

    from uqno.training.checkpoint import Checkpoint, write_checkpoint

    state = {"epoch": 1, "history": [], "config": {"epochs": 2}}
    write_checkpoint(path, Checkpoint({"w": torch.ones(3), "z": torch.ones(2) * 1j}, state))


def _read_checkpoint(path: Path) -> object:
    from uqno.training.checkpoint import read_checkpoint

    return read_checkpoint(path)


def _training(path: Path) -> None:
    _fit(path, resume=False)


def _fit(path: Path, resume: bool = True) -> object:
    from tests.uncertainty import problems

    model = uqno.UQNO(problems.fno(dropout=0.0))
    return model.fit(problems.functions(8), folder=path, resume=resume, **problems.QUICK)


def _sum_checkpoints(path: Path) -> None:
    """Crafted checkpoints: another state under a checksum that fits."""
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file

    from uqno.training.checkpoint import _checksum

    for file in [path] if path.is_file() else sorted(path.rglob("*.safetensors")):
        rng = np.random.default_rng(len(file.read_bytes()) + sum(file.read_bytes()[:4096]))
        try:
            with safe_open(file, framework="pt") as opened:
                header = opened.metadata() or {}
                tensors = {n: opened.get_tensor(n).clone() for n in opened.keys()}  # noqa: SIM118
            if rng.random() < 0.7:
                changed = mutated_json(rng, header["state"].encode())
                header["state"] = changed.decode("utf8", "replace")
            header["checksum"] = _checksum(tensors, header.get("state", ""))
            save_file(tensors, file, header)
        except (SafetensorError, ValueError, KeyError, OSError, RecursionError):
            continue  # it cannot be crafted so


# --- runs ---------------------------------------------------------------------------------------


def _run(path: Path) -> None:
    from tests.experiments.simulated import record
    from tests.experiments.simulated_run import made_explorer
    from uqno.experiments import results

    results.write(path / "results.json", record(("uqno", "laplace")))
    (path / "explorer.json").write_text(json.dumps(made_explorer()))
    kept = Path(__file__).parents[2] / "results"
    for scores in sorted(kept.glob("*/*/scores.npz"))[:1]:
        shutil.copy(scores, path / "scores.npz")
        shutil.copy(scores.with_name("results.json"), path / "results.json")


def _read_run(path: Path) -> object:
    from uqno.experiments import results, seeds
    from uqno.experiments.explorer import read_explorer
    from uqno.experiments.table import narrow_tables
    from uqno.report.page import embedded

    record = results.read(path / "results.json")
    tables = list(narrow_tables(record)), embedded(record)
    read_explorer(path / "explorer.json")
    return tables, seeds.markdown(seeds.read_runs([path]))


def _settings(path: Path) -> None:
    from tests.cli.test_app import SMALL
    from uqno.experiments import runs
    from uqno.experiments.darcy.settings import DarcySettings
    from uqno.experiments.description import known_tasks

    settings = known_tasks()["darcy"].preset("quick", SMALL)
    assert isinstance(settings, DarcySettings)
    runs.begin(settings, path)


def _read_settings(path: Path) -> object:
    from tests.cli.test_app import SMALL
    from uqno.experiments import runs
    from uqno.experiments.description import known_tasks

    return runs.begin(known_tasks()["darcy"].preset("quick", SMALL), path), runs.reopen(path)


def _profile(path: Path) -> None:
    from uqno.conformal.profile import profile, profile_ranks
    from uqno.experiments.profiles import write_profile
    from uqno.experiments.runs import ScoringNote

    path.mkdir(parents=True)
    rng = np.random.default_rng(0)
    made = profile(rng.normal(size=400), rng.uniform(0.5, 1, 400), profile_ranks(400))
    write_profile(path / "0.npz", made)
    ScoringNote(1.0, 2.0, [0.1], None).write(path / "0.json")


def _read_profile(path: Path) -> object:
    from uqno.experiments.profiles import read_profile
    from uqno.experiments.runs import ScoringNote

    note = ScoringNote.read(path / "0.json")
    return read_profile(path / "0.npz").scores(1), note


def _cars(path: Path) -> None:
    import uqno.experiments.cars as cars

    with np.load(Path(cars.__file__).parent / "cars.npz", allow_pickle=False) as packed:
        np.savez(path, **packed)


def _read_cars(path: Path) -> object:
    from uqno.experiments.cars.shipped import load

    return load(path).surface(0).volume


def _band(path: Path) -> None:
    from tests.band.bands import plane

    plane().write(path)


def _read_band(path: Path) -> object:
    from uqno.data import inspect

    return inspect(path).record()


FORMATS = {
    one.name: one
    for one in (
        Format("a.npz", partial(_npz, arrays), _read_functions),
        Format("a.npy", _npy, _read_band),
        Format("a.nc", partial(_netcdf, arrays), _read_functions),
        Format("a.zarr", partial(_zarr, arrays), _read_functions),
        Format("a.h5", _hdf5, _read_functions),
        Format("well.hdf5", _the_well, partial(_read_functions, inputs="u[0]", outputs="u[1]")),
        Format("a.mat", _mat, _read_functions),
        Format("b.mat", _mat_7_3, _read_functions),
        Format("a.pt", _pt, _read_functions),
        Format("a.safetensors", _safetensors, _read_functions),
        Format("store.zarr", _store, _read_store),
        Format("held.npz", partial(_npz, held), _calibrate),
        Format("held.nc", partial(_netcdf, held), _calibrate),
        Format("held.zarr", partial(_zarr, held), _calibrate),
        Format("points.csv", _points, _read_points),
        Format("text.ply", partial(_ply, "a"), _read_ply),
        Format("binary.ply", partial(_ply, "<"), _read_ply),
        Format("shapenet", _shapenet, _read_shapenet),
        Format("calibration.json", _calibration, _read_calibration),
        Format("model", _model, _read_model, _sum_model),
        Format("checkpoint.safetensors", _checkpoint, _read_checkpoint, _sum_checkpoints),
        Format("training", _training, _fit, _sum_checkpoints),
        Format("run", _run, _read_run),
        Format("settings", _settings, _read_settings),
        Format("profile", _profile, _read_profile),
        Format("cars.npz", _cars, _read_cars),
        Format("band.nc", _band, _read_band),
        Format("band.npz", _band, _read_band),
    )
}
COSTLY = ("training", "cars.npz", "run")


def prepare() -> None:
    """Write a whole file of every format, and read it."""
    HOME.mkdir(exist_ok=True)
    for name, one in FORMATS.items():
        if not (HOME / name).exists():
            if "." not in name:
                (HOME / name).parent.mkdir(parents=True, exist_ok=True)
            one.make(HOME / name)
            copied = _copy(name)
            one.read(copied)


def _copy(name: str) -> Path:
    where = Path("damaged") / name
    if where.is_dir():
        shutil.rmtree(where)
    elif where.exists():
        where.unlink()
    where.parent.mkdir(exist_ok=True)
    (shutil.copytree if (HOME / name).is_dir() else shutil.copy)(HOME / name, where)
    return where


def damaged(rng: Rng) -> Case:
    """A file of some format, damaged, and read."""
    names = sorted(FORMATS)
    name = names[rng.integers(len(names))]
    if name in COSTLY and rng.random() < 0.8:
        name = "calibration.json"

    def call() -> object:
        where = _copy(name)
        files = [where] if where.is_file() else sorted(f for f in where.rglob("*") if f.is_file())
        file = files[rng.integers(len(files))]
        content = file.read_bytes()
        is_json = file.suffix == ".json" or content[:1] == b"{"
        file.write_bytes((mutated_json if is_json else mutated)(rng, content))
        if rng.random() < 0.7:
            FORMATS[name].mend(where)
        return FORMATS[name].read(where)

    return name, call
