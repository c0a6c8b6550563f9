"""However a command ends: one line where it fails, a log for faults, any encoding, any reader."""

import errno
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.test_app import SMALL
from tests.experiments.simulated import record
from uqno import asides
from uqno.cli import app, failing, output, run
from uqno.data.example import write_example
from uqno.experiments import results, runs
from uqno.experiments.darcy.settings import DarcySettings
from uqno.experiments.description import known_tasks
from uqno.report import page


def uqno(*arguments, cwd=None, encoding="utf8", before="", **options):
    """A command in a process of its own, its standard streams in some encoding."""
    code = f"{before}\nfrom uqno.cli.app import main; main()"
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LANG": "C", "COLUMNS": "80"}
    options = {"stdout": subprocess.PIPE, **options}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        stderr=subprocess.PIPE, cwd=cwd, env=environment, check=False, **options,
    )  # fmt: skip
    return done.returncode, (done.stdout or b"").decode(encoding), done.stderr.decode(encoding)


def main(monkeypatch, *arguments):
    """The exit code of a command in this process."""
    monkeypatch.setattr(sys, "argv", ["uqno", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        app.main()
    return ended.value.code


FAULT = """
import uqno.conformal
def fault(**arguments):
    raise KeyError("a fault of ours")
uqno.conformal.plan = fault
"""


def test_a_fault_is_one_line_and_a_log(tmp_path):
    before = f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}\n{FAULT}"
    code, out, err = uqno("plan", before=before)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "a fault in uqno, KeyError: 'a fault of ours'" in err
    (log,) = tmp_path.glob("uqno-fault-*.log")
    assert str(log) in err
    text = log.read_text(encoding="utf8")
    assert "Traceback" in text
    assert "in fault" in text


def test_the_log_of_a_run_lies_in_its_folder_or_where_it_can(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(failing.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "run").mkdir()

    def fault(*arguments, **named):
        raise AttributeError("a\nb \ud800")

    monkeypatch.setattr(page, "make_report", fault)
    assert main(monkeypatch, "report", tmp_path / "run") == 1
    assert len(list((tmp_path / "run").glob("uqno-fault-*.log"))) == 1
    assert main(monkeypatch, "report", tmp_path / "absent") == 1
    assert len(list((tmp_path / "temporary").glob("uqno-fault-*.log"))) == 1
    read_only(monkeypatch)
    assert main(monkeypatch, "report", tmp_path / "run") == 1
    assert "could not be written" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf16"])
def test_output_in_any_encoding(encoding, tmp_path):
    write_example(tmp_path / "αβ漢.npz", functions=60, points=20)
    for arguments in (
        ("plan", "--functions", 40),
        ("inspect", "αβ漢.npz"),
        ("calibrate", "αβ漢.npz", "--delta", 0.1, "--out", "漢.json"),
        ("calibrate", "αβ漢.npz", "--delta", 0.1, "--json"),
        ("calibrate", "漢漢.npz"),
    ):
        code, out, err = uqno(*arguments, cwd=tmp_path, encoding=encoding)
        assert code == (2 if "漢漢.npz" in arguments else 0), err
        assert "codec" not in err
        assert "--json" not in arguments or "at least 90 %" in json.loads(out)["words"]
    assert (tmp_path / "漢.json").is_file()


def test_what_an_encoding_lacks_is_written_in_letters_that_it_has(tmp_path):
    write_example(tmp_path / "α漢.npz", functions=60, points=20)
    _, out, _ = uqno("inspect", "α漢.npz", cwd=tmp_path, encoding="ascii")
    assert out.startswith("alpha\\u6f22.npz")
    assert "60 x 20" in out


def test_characters_without_an_encoding():
    output.make_writable()
    assert "α ≥ ½".encode("ascii", output.HANDLER) == b"alpha >= 1/2"
    assert "\udc80".encode("utf8", output.HANDLER) == b"\\udc80"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", output.HANDLER)


@pytest.mark.parametrize("arguments", [("plan",), ("plan", "--json"), ("--help",), ()])
def test_a_reader_that_goes_away_is_no_error(arguments):
    read, write = os.pipe()
    os.close(read)
    try:
        _, _, err = uqno(*arguments, stdout=write)
    finally:
        os.close(write)
    assert err == ""


def test_a_table_for_a_reader_that_went_away(monkeypatch):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    pipe = output.Output()
    monkeypatch.setattr(output, "to_nowhere", lambda stream: None)
    monkeypatch.setattr(sys, "stdout", Gone())
    pipe.print_text("text")
    assert pipe.quiet
    pipe.print_text("text")


def test_a_full_disk_behind_standard_output_is_said():
    with open("/dev/full", "w") as full:
        code, _, err = uqno("plan", stdout=full)
    assert code == 2
    assert err.startswith("uqno: ")
    assert err.count("\n") == 1


def read_only(monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.EROFS, "Read-only file system")

    for name in ("new_file", "new_folder"):
        monkeypatch.setattr(asides, name, refuse)


@pytest.fixture
def finished(tmp_path):
    """The folder of a run that is done, by its record."""
    settings = known_tasks()["darcy"].preset("quick", SMALL)
    assert isinstance(settings, DarcySettings)
    run = runs.begin(settings, tmp_path / "run")
    np.savez(run.scores_file, scores=np.zeros(1))
    made = {**record(("uqno-paper", "constant")), "settings": settings.record()}
    results.write(tmp_path / "run" / "results.json", made)
    return tmp_path / "run"


def command(folder):
    changes = [part for change in SMALL for part in ("--set", change)]
    return ("run", "darcy", "--preset", "quick", *changes, "--out", folder)


def test_a_finished_run_on_a_disk_that_cannot_be_written_shows_its_results(
    finished, monkeypatch, capsys
):
    before = sorted(finished.rglob("*"))
    read_only(monkeypatch)
    assert main(monkeypatch, *command(finished)) == 0
    told = capsys.readouterr()
    assert "Constant" in told.out
    assert "the report was not written again: [Errno 30] Read-only" in told.err
    assert sorted(finished.rglob("*")) == before


def test_results_are_on_disk_before_anything_is_shown(finished, monkeypatch, capsys):
    written = []
    monkeypatch.setattr(page, "make_report", lambda *a, **k: written.append("report"))
    monkeypatch.setattr(
        run, "show_results", lambda *a: written.append(sorted(os.listdir(finished)))
    )
    assert main(monkeypatch, *command(finished)) == 0
    assert written[0] == "report"
    assert "table.md" in written[1]


@pytest.mark.parametrize(
    "source", ["/etc/passwd", "../other.zarr", "a\x00b", "\ud800", 3, ["x"], "", None]
)
def test_paths_in_the_files_of_a_run_do_not_leave_it(source, finished, monkeypatch):
    seen = []

    def begin(settings, folder, data):
        seen.append(data)
        raise ValueError("enough")

    monkeypatch.setattr(runs, "begin", begin)
    for name in ("settings.json", "settings.copy.json"):
        content = json.loads((finished / name).read_text())
        content["data"] = {"source": source, "sha256": "0"}
        (finished / name).write_text(json.dumps(content))
    assert runs.reopen(finished) is None
    content["data"]["source"] = "own/data.zarr"
    (finished / "settings.json").write_text(json.dumps(content))
    assert runs.reopen(finished) is None
    assert seen == [None, finished.resolve() / "own/data.zarr"]


def test_methods_in_a_record_are_names_and_no_paths(finished):
    content = json.loads((finished / "results.json").read_text())
    content["settings"]["methods"] = ["../../../etc"]
    (finished / "results.json").write_text(json.dumps(content))
    assert runs.reopen(finished) is None


def test_a_plan_of_the_largest_numbers_is_made():
    code, out, _ = uqno("plan", "--functions", 10**12, "--points", 10**12, "--sampling", "iid")
    assert code == 0
    assert out.startswith("Feasible with 1000000000000 calibration functions of 1000000000000")


def test_arrays_of_a_foreign_kind_are_refused_by_value():
    model_input = np.array([object()], dtype=object)
    from uqno.data import as_samples

    with pytest.raises(ValueError, match="has dtype object, expected real numbers"):
        as_samples([{"a": model_input, "u": model_input}])[0]
