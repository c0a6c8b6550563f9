"""The table says what the record holds, fits the terminal, and invents nothing."""

import io

import pytest
from rich.console import Console
from rich.table import Table as RichTable

from tests.experiments.simulated import record
from uqno.experiments import table


@pytest.fixture(scope="module")
def made():
    return record()


def lines(one):
    return [dict(zip(one.columns, cells, strict=True)) for cells in one.cells]


def test_one_table_a_level_with_all_rows(made):
    first, second = table.tables(made)
    assert first.title.startswith("alpha = 0.1, delta = 0.02: at least 90 % of the points")
    assert second.title.startswith("alpha = 0.02, delta = 0.02: at least 98 % of the points")
    assert len(first.cells) + len(second.cells) == len(made["rows"])
    best = lines(first)[0]
    assert best["method"] == "UQNO (ours)"
    (row,) = [r for r in made["rows"] if r["method"] == "uqno" and r["alpha"] == 0.1]
    assert float(best["bandwidth"]) == pytest.approx(row["bandwidth"], rel=5e-3)
    assert best["covered"] == f"{100 * row['calibration_percentage']:.1f} % ✓"
    assert float(best["p"]) == pytest.approx(row["p_value"], abs=6e-3)
    assert best[table.RELATIVE] == f"{1e4 * row['bandwidth']:.2f} %"  # RMS(u) is 0.01 there


def test_the_papers_numbers_stand_beside_what_the_paper_measured(made):
    beside = {(x["method"], x["ranks"]): x["paper"] for x in lines(table.tables(made)[0])}
    assert beside["UQNO (paper)", "Hoeffding"] == "4.50e-4"
    assert beside["UQNO (paper)", "grid"] == table.NONE
    assert beside["MC dropout", "raw"] == "6.90e-4"
    assert beside["MC dropout", "grid"] == table.NONE
    assert beside["UQNO (ours)", "grid"] == table.NONE


def test_an_infeasible_row_has_no_number_and_a_note(made):
    second = table.tables(made)[1]
    (row,) = [x for x in lines(second) if x["ranks"] == "Hoeffding"]
    kept = {"method", "ranks", "bandwidth", "paper", "paper %", "error"} | {
        c for c in second.columns if c.endswith("[s]")
    }
    assert row["bandwidth"] == "infeasible"
    assert {value for key, value in row.items() if key not in kept} == {table.NONE}
    assert any("UQNO (paper) (Hoeffding): Not feasible" in note for note in second.notes)
    assert any("share of the error's variance inside" in note for note in second.notes)


@pytest.mark.parametrize(("p", "mark"), [(0.4, "✓"), (0.05, "✓"), (0.049, "≈"), (0.009, "✗")])
def test_the_verdict_of_a_calibrated_row_is_that_of_its_p_value(made, p, mark):
    (row,) = [r for r in made["rows"] if r["method"] == "uqno" and r["alpha"] == 0.1]
    assert table.COLUMNS["covered"]({**row, "p_value": p}, None).endswith(mark)


def test_the_verdict_of_a_raw_row_knows_its_own_noise(made):
    row = {**made["rows"][0], "target": 0.98, "p_value": None}
    for share, interval, mark in [
        (0.98, [0.97, 0.99], "✓"),
        (0.979, [0.97, 0.985], "≈"),
        (0.9, [0.88, 0.92], "✗"),
    ]:
        row |= {"calibration_percentage": share, "interval": interval}
        assert table.COLUMNS["covered"](row, None).endswith(mark)


def test_the_narrow_table_fits_80_columns(made):
    for narrow in table.narrow_tables(made):
        rich = RichTable()
        for column in narrow.columns:
            rich.add_column(column)
        for cells in narrow.cells:
            rich.add_row(*cells)
        out = io.StringIO()
        Console(file=out, width=80).print(rich)
        assert len(out.getvalue().splitlines()) == len(narrow.cells) + 4  # no cell is wrapped
    with pytest.raises(ValueError, match="no column 'colour'"):
        narrow.narrow(["colour"])


def test_markdown_has_every_row_and_the_command(made, tmp_path):
    table.write_markdown(tmp_path / "table.md", made)
    text = (tmp_path / "table.md").read_text(encoding="utf8")
    body = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(body) == len(made["rows"]) + len(made["ablation"]) + 4 * 2
    assert {line.count("|") for line in body} == {len(table.COLUMNS) + 1, 5}
    assert made["command"] in text
    assert "infeasible" in text


def test_the_ablation_may_be_missing(made):
    assert sum(len(t.cells) for t in table.ablation_tables(made)) == len(made["ablation"])
    assert table.ablation_tables({**made, "ablation": []}) == ()
    assert "Ablation" not in table.markdown({**made, "ablation": []})
