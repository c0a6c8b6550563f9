"""The tree is the algorithm: imports point one way, and importing costs nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "uqno"
# From the mathematics at the bottom to the command line at the top; each may import those below it.
LAYERS = [
    "types",
    "storage",
    "conformal",
    "geometry",
    "data",
    "operators",
    "training",
    "uncertainty",
    "band",
    "model",
    "monitor",
    "experiments",
    "report",
    "cli",
]
NUMPY_ONLY = {"numpy", "scipy", "uqno"}


def imports(file: Path) -> set[str]:
    """Dotted names imported anywhere in a file, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} uses a relative import"
            found.add(node.module)
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def layer(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(f for f in SOURCE.rglob("*.py") if layer(f) != "__init__")


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(SOURCE)) for f in FILES])
def test_imports_point_downwards(file):
    assert layer(file) in LAYERS, f"{file} belongs to no layer of the design"
    own = LAYERS.index(layer(file))
    for name in imports(file):
        if not name.startswith("uqno."):
            continue
        top = name.split(".")[1]
        if top in LAYERS:
            assert LAYERS.index(top) <= own, f"{file} imports {name} from above it"


def test_the_conformal_core_needs_numpy_and_scipy_only():
    for file in (SOURCE / "conformal").rglob("*.py"):
        for name in imports(file):
            top = name.split(".")[0]
            assert top in NUMPY_ONLY or top in sys.stdlib_module_names, f"{file} imports {name}"
            assert not name.startswith("uqno.") or name.startswith(("uqno.conformal", "uqno.types"))


@pytest.mark.parametrize(
    "module", ["uqno", "uqno.conformal", "uqno.cli", "uqno.data.calibration_file", "uqno.band"]
)
def test_importing_loads_no_torch(module):
    code = f"import {module}, sys; assert 'torch' not in sys.modules; import torch"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_uqno_loads_nothing_heavy():
    code = "import uqno, sys; assert not {'numpy', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names():
    import uqno

    assert set(uqno.__all__) <= set(dir(uqno))
    for name in uqno.__all__:
        assert getattr(uqno, name).__module__.startswith("uqno.")
    assert uqno.conformal.calibrate is uqno.calibrate
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        uqno.nothing  # noqa: B018
