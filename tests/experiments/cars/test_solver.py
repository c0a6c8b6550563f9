"""The case, and OpenFOAM's tools as scripts that behave and misbehave as the real ones do."""

import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.cars.test_patch import write_field, write_mesh
from uqno.experiments.cars import shapes, solver
from uqno.experiments.cars.case import Flow, frontal_area, write_case, write_stl
from uqno.geometry.surface import Surface

SHAPE = shapes.draw(0, 4)
LOG = """Build  : OPENFOAM=1912 patch=200626
smoothSolver:  Solving for Ux, Initial residual = 1, Final residual = 0.1, No Iterations 2
smoothSolver:  Solving for Ux, Initial residual = 2e-05, Final residual = 1e-6, No Iterations 2
GAMG:  Solving for p, Initial residual = 3e-05, Final residual = 2e-06, No Iterations 2
SIMPLE solution converged in 136 iterations
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder on PATH to write tools into, and OpenFOAM's home."""
    bin_, home = tmp_path / "bin", tmp_path / "home"
    bin_.mkdir()
    (home / "etc").mkdir(parents=True)
    (home / "etc/controlDict").touch()
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    monkeypatch.setenv("WM_PROJECT_DIR", str(home))
    solver.find_openfoam.cache_clear()

    def write(name, script):
        file = bin_ / name
        file.write_text("#!/bin/sh\n" + script)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    for name, *_ in solver.TOOLS:
        write(name, "exit 0\n")
    yield write
    solver.find_openfoam.cache_clear()


def report(**changes):
    return {"stagnation_cp": 0.97, "moved": {"drag": 0.001, "lift": 0.002}, **changes}


def test_a_missing_program_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    solver.find_openfoam.cache_clear()
    with pytest.raises(ValueError, match=r"simpleFoam not found; .*apt-get install openfoam"):
        solver.find_openfoam()


def test_finds_its_home(tools, tmp_path, monkeypatch):
    assert solver.find_openfoam() == tmp_path / "home"
    solver.find_openfoam.cache_clear()
    monkeypatch.setenv("WM_PROJECT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr(solver, "HOMES", ())
    with pytest.raises(ValueError, match="nowhere; set WM_PROJECT_DIR"):
        solver.find_openfoam()


def test_the_case_is_aligned_with_the_tail(tmp_path):
    for cell in (0.75, 0.5):
        folder = tmp_path / str(cell)
        write_case(folder, SHAPE, Flow(cell=cell))
        text = (folder / "system/blockMeshDict").read_text()
        first = float(text.partition("((")[0].partition("(")[2].split("(")[1].split()[0])
        cells = (SHAPE.length - shapes.BASE_DOME - first) / cell
        assert cells == pytest.approx(round(cells), abs=1e-6)
        assert first < -8
    nu = float((folder / "constant/transportProperties").read_text().split()[-1].strip(";"))
    assert 20 * SHAPE.length / nu == pytest.approx(5e6)
    for name in ("0/U", "0/p", "0/k", "0/omega", "0/nut", "system/snappyHexMeshDict"):
        text = (folder / name).read_text()
        assert text.count("{") == text.count("}")
        assert "%(" not in text


def test_stl_has_every_triangle(tmp_path):
    body = shapes.surface(SHAPE)
    write_stl(tmp_path / "car.stl", body)
    content = (tmp_path / "car.stl").read_bytes()
    assert len(content) == 84 + 50 * 7168
    assert int.from_bytes(content[80:84], "little") == 7168
    pyvista = pytest.importorskip("pyvista")
    assert pyvista.read(tmp_path / "car.stl").volume == pytest.approx(body.volume, rel=1e-5)


def test_frontal_area_of_a_box():
    from uqno.experiments.cars import lattice

    box = Surface(lattice.box_points() * [2.0, 0.5, 0.75], lattice.triangles())
    assert frontal_area(box) == pytest.approx(1.5)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="1 to iterations − 1 = 199, got 200"):
        Flow(averaged=200)


def test_a_tool_that_fails_tells_why(tools, tmp_path):
    tools("snappyHexMesh", 'echo "--> FOAM FATAL ERROR:"; echo "no   cells"; exit 1\n')
    with pytest.raises(solver.CarFailed, match=r"snappyHexMesh failed with code 1: .*no cells"):
        solver.run_tool(("snappyHexMesh",), tmp_path)
    tools("simpleFoam", "echo last words; kill -FPE $$\n")
    with pytest.raises(solver.CarFailed, match="code -8: last words"):
        solver.run_tool(("simpleFoam",), tmp_path)


def test_a_tool_stopped_from_outside_says_nothing_about_the_car(tools, tmp_path):
    tools("simpleFoam", "kill -TERM $$\n")
    with pytest.raises(InterruptedError, match=r"signal 15.*it goes on"):
        solver.run_tool(("simpleFoam",), tmp_path)


def test_a_tool_is_stopped_when_asked_or_too_slow(tools, tmp_path, monkeypatch):
    tools("simpleFoam", "exec sleep 60\n")
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    begin = time.monotonic()
    with pytest.raises(InterruptedError):
        solver.run_tool(("simpleFoam",), tmp_path, stop)
    monkeypatch.setattr(solver, "TIMEOUT", 0.1)
    with pytest.raises(solver.CarFailed, match=r"more than 0\.1 s"):
        solver.run_tool(("simpleFoam",), tmp_path)
    assert time.monotonic() - begin < 30


CHILD = """
import sys
from pathlib import Path
from uqno.experiments.cars import solver
solver.run_tool(("simpleFoam",), Path(sys.argv[1]))
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
def test_a_tool_does_not_outlive_us(tools, tmp_path):
    tools("simpleFoam", "echo $$ > pid; exec sleep 60\n")
    with subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)]) as process:
        pid = tmp_path / "pid"
        while not (pid.is_file() and pid.read_text().endswith("\n")):
            time.sleep(0.02)
        process.kill()
    status = Path("/proc") / pid.read_text().strip() / "stat"
    deadline = time.monotonic() + 20
    while status.exists() and status.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, "the tool lives on"
        time.sleep(0.02)


def test_tools_are_told_where_they_are(tools, tmp_path):
    tools("blockMesh", 'echo "$WM_PROJECT_DIR $PWD" > told\n')
    assert solver.run_tool(("blockMesh",), tmp_path) >= 0
    assert (tmp_path / "told").read_text().split() == [str(tmp_path / "home"), str(tmp_path)]


def test_solves_with_tools_that_leave_what_the_real_ones_leave(tools, tmp_path, monkeypatch):
    """A mesh that is the car's own left half, with p = 20² (0.97 − x/L)."""
    fine = shapes.surface(SHAPE, 2)
    centres = fine.points[fine.triangles].mean(axis=1)
    left = fine.triangles[centres[:, 1] > 0]
    ready = tmp_path / "ready"
    inward = left[:, ::-1]  # faces look out of the air
    write_mesh(ready / "constant/polyMesh", fine.points, [left[0], *inward], range(len(left) + 1))
    x = fine.points[left].mean(axis=1)[:, 0]
    p = 200 * (0.97 - x / SHAPE.length)
    for name in ("p", "pMean"):
        write_field(ready / "136" / name, [0.0, *(p if name == "p" else p - 1)])
    rows = [f"{i} 0.2 0 -0.5" for i in range(136)]
    (ready / "postProcessing/forces/0").mkdir(parents=True)
    (ready / "postProcessing/forces/0/coefficient.dat").write_text("# Cd\n" + "\n".join(rows))
    (ready / "words").write_text(LOG)
    tools("simpleFoam", f"cp -r {ready}/* . && cat words\n")
    flow = solver.solve(SHAPE, Flow(), tmp_path / "case")
    body = shapes.surface(SHAPE)
    exact = 245 * (0.97 - body.points[:, 0] / SHAPE.length)
    assert np.abs(flow.pressure - exact).max() < 2
    told = flow.report
    assert told["openfoam"] == "1912.200626"
    assert (told["iterations"], told["converged"], told["averaged"]) == (136, True, 1)
    assert told["residuals"] == {"Ux": 2e-05, "p": 3e-05}
    assert told["drag"] == pytest.approx(0.4 / frontal_area(body))
    assert told["stagnation_cp"] == pytest.approx(0.97, abs=0.01)
    assert told["base_cp"] == pytest.approx(-0.03, abs=0.03)
    assert set(told["seconds"]) == {tool for tool, *_ in solver.TOOLS}
    # Where the iterations ran out, the mean over the last ones counts.
    (ready / "words").write_text(LOG.replace("SIMPLE solution converged", "time"))
    other = solver.solve(SHAPE, Flow(), tmp_path / "other")
    assert other.report["averaged"] == 80
    np.testing.assert_allclose(flow.pressure - other.pressure, 1.225, rtol=1e-6)


def test_results_that_cannot_be_read_are_of_a_failed_car(tools, tmp_path):
    with pytest.raises(solver.CarFailed, match="what the tools wrote cannot be read"):
        solver.solve(SHAPE, Flow(), tmp_path / "case")
    tools("simpleFoam", "mkdir 136\n")
    with pytest.raises(solver.CarFailed, match=r"cannot be read: .*boundary"):
        solver.solve(SHAPE, Flow(), tmp_path / "other")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stagnation_cp": 0.85}, r"stagnation Cp is 0\.850, outside 0\.9 to 1\.1"),
        ({"stagnation_cp": float("nan")}, "stagnation Cp is nan"),
        ({"moved": {"drag": 0.03, "lift": 0.0}}, r"drag moves by 0\.03 .* not steady"),
        ({"moved": {"drag": 0.0, "lift": float("nan")}}, "lift moves by nan"),
    ],
)
def test_incredible_flows_are_refused(changes, reason):
    solver.check(np.zeros(3), report())
    with pytest.raises(solver.CarFailed, match=reason):
        solver.check(np.zeros(3), report(**changes))


def test_pressures_that_are_not_finite_are_refused():
    with pytest.raises(solver.CarFailed, match="1 pressures are not finite"):
        solver.check(np.array([0.0, np.inf]), report())
