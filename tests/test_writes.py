"""Everything that counts is written by `uqno.storage`: whole or not at all, and synced."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "uqno"
# Methods and functions that write into a file, or put one in place, by whatever library.
WRITING = {
    "copy2", "copyfile", "copytree", "create_group", "dump", "fdopen", "ftruncate", "hardlink_to",
    "imsave", "link", "mkdtemp", "mkstemp", "move", "open_memmap", "rename", "renames", "save_file",
    "save_npz", "savefig", "savemat", "savetxt", "savez", "savez_compressed", "symlink",
    "symlink_to", "to_csv", "to_excel", "to_file", "to_hdf", "to_json_file", "to_netcdf",
    "to_parquet", "to_pickle", "to_zarr", "tofile", "touch", "truncate", "write_bytes",
    "write_html", "write_image", "write_text", "FileIO", "NamedTemporaryFile",
    "TemporaryDirectory", "TemporaryFile",
}  # fmt: skip
# What they may be called on: our own functions, which end in the one write.
ALLOWED = {
    "storage.py": "the one write itself",
    "asides.py": "the names that it writes to",
    "data/store.py: create_group": "into the aside that it is given",
    "band/formats/netcdf.py: to_netcdf": "into the aside that it is given",
    "band/formats/vtk.py: save": "into the aside that it is given",
    "band/plot.py: savefig": "into memory",
    "report/figures.py: savefig": "into memory",
    "experiments/cars/histograms.py: savefig": "into memory",
    "experiments/cars/case.py: write_text": "a case of the solver, which is thrown away",
    "experiments/cars/case.py: open": "a case of the solver, which is thrown away",
    "experiments/cars/solver.py: open": "the log of the solver's case",
    "experiments/cars/generation.py: mkdtemp": "a case of the solver, which is thrown away",
}


def calls(file: Path) -> list[tuple[str, int]]:
    """(name, line) of every call in a file that may write."""
    writing = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        if not isinstance(node, ast.Call):
            continue
        method = isinstance(node.func, ast.Attribute)
        name = node.func.attr if method else getattr(node.func, "id", "")
        owner = getattr(node.func.value, "id", "") if method else ""
        if owner == "os" and name == "open":  # a descriptor, whatever it is for
            if not all(isinstance(a, ast.Attribute) and a.attr in ("O_RDONLY", "O_DIRECTORY")
                       for a in node.args[1:]):  # fmt: skip
                writing.append((name, node.lineno))
        elif name in ("open", "open_group", "File", "ZipFile", "GzipFile", "Dataset", "memmap"):
            mode = [a.value for a in (*node.args, *(k.value for k in node.keywords))
                    if isinstance(a, ast.Constant) and isinstance(a.value, str)]  # fmt: skip
            if any(set(m) & set("wax+") and len(m) <= 4 and set(m) <= set("rwaxbt+") for m in mode):
                writing.append((name, node.lineno))
        elif name == "replace" and method:  # of a path; of a string it has two arguments
            if owner in ("os", "Path") or (len(node.args) == 1 and not node.keywords):
                writing.append((name, node.lineno))
        elif name == "save" and method:  # of a library; ours end in the one write
            if owner in ("np", "numpy", "torch", "safetensors", "mesh"):
                writing.append((name, node.lineno))
        elif (name == "copy" and owner == "shutil") or (
            name in WRITING and (method or name not in ("write_bytes", "write_text"))
        ):  # of an array it is no write
            writing.append((name, node.lineno))
    return writing


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(SOURCE)) for f in FILES])
def test_files_are_written_by_the_one_write(file):
    place = file.relative_to(SOURCE).as_posix()
    if place in ALLOWED:
        return
    foreign = [f"{place}:{line} {name}" for name, line in calls(file)
               if f"{place}: {name}" not in ALLOWED]  # fmt: skip
    assert not foreign, f"{foreign}: write by uqno.storage, or into memory and then by it"


def test_what_is_allowed_is_there():
    """The list stays short: what is not needed any more is taken from it."""
    for entry in ALLOWED:
        place, _, name = entry.partition(": ")
        assert not name or name in {called for called, _ in calls(SOURCE / place)}, entry


@pytest.mark.parametrize(
    "code",
    [
        "open(path, 'w')", "path.open('ab')", "open(path, mode='r+')", "path.write_text('x')",
        "path.write_bytes(b'')", "np.savez(path, x=x)", "data.to_netcdf(path)", "f.savefig(path)",
        "os.open(path, os.O_WRONLY | os.O_CREAT)", "os.open(path, flags)", "shutil.copy(a, b)",
        "h5py.File(path, 'w')", "zarr.open_group(path, mode='a')", "zarr.create_group(path)",
        "zipfile.ZipFile(path, 'x')", "np.memmap(path, mode='w+')", "os.link(a, b)",
        "os.fdopen(d, 'wb')", "path.hardlink_to(a)", "os.truncate(path, 1)",
        "os.replace(a, b)", "aside.replace(path)", "tempfile.mkdtemp()", "x.tofile(path)",
    ],
)  # fmt: skip
def test_a_write_elsewhere_is_noticed(code, tmp_path):
    (tmp_path / "module.py").write_text(code)
    assert calls(tmp_path / "module.py")


@pytest.mark.parametrize(
    "code",
    [
        "os.open(path, os.O_RDONLY)",
        "h5py.File(path)",
        "h5py.File(path, 'r')",
        "x.copy()",
        "open(path)",
        "path.open('rb')",
        "text.replace('a', 'b')",
        "write_text(path, 'x')",
    ],
)
def test_what_is_no_write_is_not(code, tmp_path):
    (tmp_path / "module.py").write_text(code)
    assert not calls(tmp_path / "module.py")
