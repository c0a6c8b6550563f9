"""What is printed of finished runs follows from the scores that are kept of them."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests import readme
from tests.readme import ROOT
from uqno.experiments import evidence, results, seeds, table
from uqno.report import page, summary

RUNS = sorted(path.parent for path in (ROOT / "results").rglob(evidence.FILE))


def test_there_is_evidence():
    assert RUNS


@pytest.mark.parametrize("run", RUNS, ids=[str(run.relative_to(ROOT)) for run in RUNS])
def test_every_number_of_a_record_follows_from_its_scores(run):
    record = results.read(run / "results.json")
    again = evidence.recomputed(record, evidence.read_scores(run / evidence.FILE))
    for part in ("rows", "ablation", "curves", "targets"):
        assert again[part] == record[part], part
    # So do the table, and all that the page says of it.
    assert (run / "table.md").read_text(encoding="utf8") == table.markdown(again)
    assert summary.summary(again) == summary.summary(record)
    assert page.page_data(again, "run")["tables"] == page.page_data(record, "run")["tables"]


@pytest.mark.parametrize("run", RUNS, ids=[str(run.relative_to(ROOT)) for run in RUNS])
def test_headline_runs_have_headline_seeds(run):
    from uqno.experiments.description import known_tasks

    record = results.read(run / "results.json")
    kind = known_tasks()[record["task"]].settings_type
    assert record["settings"]["seed"] in kind.HEADLINE_SEEDS


def test_the_tables_of_the_readme_are_what_the_command_prints():
    text = readme.README.read_text(encoding="utf8")
    assert readme.BLOCK.search(text)
    assert readme.refreshed(text) == text


def test_the_command_prints_it():
    code = "from uqno.cli.app import main; main()"
    command = [sys.executable, "-c", code, "table", str(RUNS[0].parent), "--markdown"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.strip() == readme.printed(str(RUNS[0].parent.relative_to(ROOT))).strip()


# --- several seeds ------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path):
    """A kept run as two seeds, the second with uncertainties that are 10 % larger."""
    for seed, factor in ((7, 1.0), (8, 1.1)):
        folder = tmp_path / f"seed-{seed}"
        folder.mkdir()
        record = results.read(RUNS[0] / "results.json")
        record["settings"]["seed"] = seed
        results.write(folder / "results.json", record)
        with np.load(RUNS[0] / evidence.FILE) as arrays:
            scaled = {
                k: a * np.float32(factor) if k.endswith("mean_uncertainty") else a
                for k, a in arrays.items()
            }
        np.savez(folder / evidence.FILE, **scaled)
    return tmp_path


def test_means_and_ranges_over_seeds(two):
    runs = seeds.read_runs([two])
    assert [run["settings"]["seed"] for run in runs] == [7, 8]
    assert "the seeds 7, 8, with their range" in seeds.heading(runs)
    first, *_ = seeds.tables(runs)
    for cells in first.cells:
        line = dict(zip(first.columns, cells, strict=True))
        if line["bandwidth"] == "infeasible":
            assert line["ours is"] == table.NONE
            continue
        low, high = (float(x) for x in line["range"].split(" to "))
        assert high / low == pytest.approx(1.1, rel=0.08)  # other splits, and three digits
        assert low < float(line["bandwidth"]) < high
        assert len(line["agrees"].split()) == 2
    ours = dict(zip(first.columns, first.cells[0], strict=True))
    assert (ours["band around"], ours["ours is"]) == ("UQNO (ours)", "1.00 ×")
    alone = seeds.tables(seeds.read_runs([two / "seed-7"]))[0]
    assert "range" not in alone.columns


def test_runs_that_differ_in_more_than_their_seed_are_refused(two):
    with pytest.raises(ValueError, match="two runs have the seed 7"):
        seeds.read_runs([two / "seed-7", two / "seed-7"])
    file = two / "seed-8" / "results.json"
    record = json.loads(file.read_text(encoding="utf8"))
    record["settings"]["epochs"] += 1
    results.write(file, record)
    with pytest.raises(ValueError, match="runs differ in epochs, seed"):
        seeds.read_runs([two])
    (two / "seed-8" / evidence.FILE).unlink()
    with pytest.raises(ValueError, match=r"scores\.npz does not exist"):
        seeds.read_runs([two])
    with pytest.raises(ValueError, match="nor folders seed-N"):
        seeds.read_runs([two / "none"])


def test_a_file_of_scores_that_is_not_whole_is_refused(two):
    file = two / "seed-7" / evidence.FILE
    with np.load(file) as arrays:
        content = dict(arrays)
    np.savez(file, **{k: a for k, a in content.items() if k != "uqno:mean_uncertainty"})
    with pytest.raises(ValueError, match="lacks 'uqno:mean_uncertainty'"):
        evidence.read_scores(file)
    np.savez(file, **{**content, "version": np.array(9)})
    with pytest.raises(ValueError, match="version 9, this uqno reads 1"):
        evidence.read_scores(file)
