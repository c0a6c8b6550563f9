"""The tree is the algorithm: imports point one way, and importing costs nothing."""

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "uqno"
# From the mathematics at the bottom to the command line at the top; each may import those below it.
LAYERS = [
    "types",
    "memory",
    "numpy_files",
    "asides",
    "storage",
    "stopping",
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
MOST_LINES = 400
REPEATED_LINES = 10
# What reads or writes files, in the standard library and in NumPy.
FILE_MODULES = {"glob", "io", "os", "pathlib", "pickle", "shelve", "shutil", "sqlite3", "tempfile"}
FILE_CALLS = {
    "fromfile", "genfromtxt", "load", "loadtxt", "memmap", "open", "open_memmap", "save",
    "savetxt", "savez", "savez_compressed", "tofile",
}  # fmt: skip


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf8"))


def imports(file: Path) -> set[str]:
    """Dotted names imported anywhere in a file, inside functions too."""
    names = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} uses a relative import"
            names.add(node.module)
            names |= {f"{node.module}.{name.name}" for name in node.names}
    return names


def layer(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


ALL_FILES = sorted(SOURCE.rglob("*.py"))
FILES = [f for f in ALL_FILES if layer(f) != "__init__"]
CONFORMAL = [f for f in FILES if layer(f) == "conformal"]


def each(files: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("file", files, ids=[str(f.relative_to(SOURCE)) for f in files])


@each(FILES)
def test_imports_point_downwards(file):
    assert layer(file) in LAYERS, f"{file} belongs to no layer of the design"
    own = LAYERS.index(layer(file))
    for name in imports(file):
        if not name.startswith("uqno."):
            continue
        top = name.split(".")[1]
        if top in LAYERS:
            assert LAYERS.index(top) <= own, f"{file} imports {name} from above it"


@each(ALL_FILES)
def test_private_names_stay_in_their_module_and_private_modules_in_their_package(file):
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("uqno"):
            module = node.module.rpartition(".")[2]
            assert not private(module) or node.module.startswith(package(file)), node.module
            for name in node.names:
                own_module = node.module == package(file)  # from uqno.data import _reader
                assert not private(name.name) or own_module, f"{node.module}.{name.name}"
    for name, attribute in attributes_of_imports(file):
        assert not private(attribute), f"{file} uses {name}.{attribute}"


def package(file: Path) -> str:
    return ".".join(("uqno", *file.relative_to(SOURCE).parts[:-1]))


def attributes_of_imports(file: Path) -> set[tuple[str, str]]:
    """(module, attribute) for every attribute that is taken of a name imported from uqno."""
    bound = {
        name.asname or name.name.split(".")[-1]
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("uqno")
        for name in node.names
    }
    return {
        (node.value.id, node.attr)
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in bound | {"uqno"}
    }


@each(CONFORMAL)
def test_the_conformal_core_needs_numpy_and_scipy_only(file):
    for name in imports(file):
        top = name.split(".")[0]
        if top == "uqno":
            assert name == "uqno" or name.startswith(("uqno.conformal", "uqno.types")), name
        else:
            assert top in {"numpy", "scipy"} or top in sys.stdlib_module_names, name


@each(CONFORMAL)
def test_the_conformal_core_reads_and_writes_no_files(file):
    tops = {name.split(".")[0] for name in imports(file)}
    assert not tops & FILE_MODULES
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else None
            if isinstance(node.func, ast.Attribute):
                called = node.func.attr
            assert called not in FILE_CALLS, f"{file}:{node.lineno} calls {called}"


@each(ALL_FILES)
def test_no_module_is_too_long_to_read(file):
    lines = len(file.read_text(encoding="utf8").splitlines())
    assert lines <= MOST_LINES, f"{lines} lines, at most {MOST_LINES}: divide the module"


def test_no_block_of_lines_stands_twice():
    """Ten lines of code in a row, imports and what is not code apart."""
    blocks = defaultdict(list)
    for file in ALL_FILES:
        lines = code_lines(file)
        for i in range(len(lines) - REPEATED_LINES + 1):
            window = lines[i : i + REPEATED_LINES]
            text = tuple(text for _, text in window)
            blocks[text].append(f"{file.relative_to(SOURCE)}:{window[0][0]}")
    twice = [places for places in blocks.values() if len(places) > 1]
    assert not twice, twice[:5]


def code_lines(file: Path) -> list[tuple[int, str]]:
    """(number, text) of the lines of statements that are neither imports nor docstrings."""
    left_out = set()
    for node in ast.walk(parsed(file)):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(file.read_text(encoding="utf8").splitlines(), 1)
    stripped = ((i, line.strip()) for i, line in lines if i not in left_out)
    return [(i, line) for i, line in stripped if line and not line.startswith("#")]


@pytest.mark.parametrize(
    "module", ["uqno", "uqno.conformal", "uqno.cli", "uqno.data.calibration_file", "uqno.band"]
)
def test_importing_loads_no_torch(module):
    code = f"import {module}, sys; assert 'torch' not in sys.modules; import torch"
    subprocess.run([sys.executable, "-c", code], check=True)


NO_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "lightning_fabric", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
try:
    import torch
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("torch is not blocked")
"""
ARRAYS = """
import numpy as np
import uqno

error = np.random.default_rng(0).normal(size=(60, 20))
cal = uqno.calibrate(error, np.ones((60, 20)), alpha=0.1, delta=0.1)
assert uqno.plan(alpha=0.1, delta=0.1, functions=60, points=20).feasible
assert uqno.Calibration.from_json(cal.to_json()) == cal
assert "torch" not in sys.modules
"""


def test_plan_and_calibrate_work_where_torch_is_not_installed():
    subprocess.run([sys.executable, "-c", NO_TORCH + ARRAYS], check=True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("run --help", 0, "darcy"),
        ("run darcy --help", 0, "quick, standard, paper"),
        ("run cars --set epochs=3 --settings", 0, '"epochs": 3'),
        ("run cars --set latent=8,6", 2, "must be 3 numbers"),
        ("run darcy --preset huge", 2, "quick, standard, paper"),
    ],
)
def test_help_and_settings_of_a_comparison_work_where_torch_is_not_installed(arguments, code, said):
    command = NO_TORCH + "from uqno.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments.split()], capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr


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
