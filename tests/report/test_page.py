"""The page is one file: whole data, no address of another, nothing that data could switch on."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.experiments.simulated import record
from tests.experiments.simulated_run import made_explorer
from tests.report.simulated_cars import VERTICES, cars_explorer
from uqno.experiments import results
from uqno.experiments.explorer import read_explorer
from uqno.experiments.packing import packed
from uqno.report import figures
from uqno.report.page import PAGE_FILE, embedded, html, make_report, write_page

NASTY = "</script><script>document.body.dataset.hit = 1</script><!-- <script> & \u2028 'run' \"1\""


class Parts(HTMLParser):
    """Attributes of all elements, and the text of scripts by id."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self._inside = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._inside = dict(attrs).get("id", "")
            self.scripts[self._inside] = ""

    def handle_endtag(self, tag):
        self._inside = None if tag == "script" else self._inside

    def handle_data(self, data):
        if self._inside is not None:
            self.scripts[self._inside] += data


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """As a run leaves it: written and read."""
    path = tmp_path_factory.mktemp("run") / "results.json"
    results.write(path, record())
    return results.read(path)


@pytest.fixture
def quick(monkeypatch):
    """One figure instead of six."""
    monkeypatch.setattr(figures, "FIGURES", {"band": figures.schematic})


@pytest.mark.usefixtures("quick")
def test_data_come_back_as_they_were(made):
    parts = Parts(html(made, made_explorer(), NASTY))
    assert json.loads(parts.scripts["results-data"]) == made
    assert json.loads(parts.scripts["explorer-data"]) == made_explorer()
    page = json.loads(parts.scripts["page-data"])
    assert page["name"] == NASTY
    assert page["figures"][0]["svg"].rstrip().endswith("</svg>")
    texts = [[cell for cell, _ in row["cells"]] for row in page["tables"][0]["rows"]]
    assert ["UQNO (ours)", "grid"] in [t[:2] for t in texts]


@pytest.mark.usefixtures("quick")
def test_no_string_of_the_data_becomes_markup(made):
    nasty = {
        **made,
        "command": NASTY,
        "machine": NASTY,
        "rows": [{**r, "label": NASTY, "reason": NASTY} for r in made["rows"]],
    }
    plain, parts = Parts(html(made, None, "run")), Parts(html(nasty, None, NASTY))
    assert parts.elements == plain.elements
    assert set(parts.scripts) == {"page-data", "results-data", "explorer-data", ""}
    for key in ("page-data", "results-data", "explorer-data"):
        assert not re.search("[<>&\u2028]", parts.scripts[key])


def test_embedding_escapes_and_keeps():
    assert json.loads(embedded(NASTY)) == NASTY
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded(float("nan"))


@pytest.mark.usefixtures("quick")
def test_only_our_script_may_run_and_nothing_may_be_fetched(made):
    parts = Parts(html(made, None, "run"))
    policy = next(a["content"] for t, a in parts.elements if a.get("http-equiv"))
    digest = b64encode(sha256(parts.scripts[""].encode("utf8")).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    for tag, attributes in parts.elements:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert tag != "a" or attributes["href"].startswith("#")


def test_a_script_that_ends_itself_would_be_noticed(made):
    """The page's own files hold no end of a script or style, and each mark once."""
    text = html(made, None, "run")
    assert text.count("</style>") == 1
    assert text.count("</script>") == 4


def test_pages_of_the_largest_runs_stay_small(made):
    """Nine methods at 421 × 421 (61 a side when thinned), 1500 held-out functions, all figures."""
    rng = np.random.default_rng(0)
    large = dict(made_explorer())
    noise = packed(rng.normal(size=(61, 61)), "uint16")
    large["fields"] = [noise] * (25 * (1 + 2 * 9)) + [
        packed(rng.normal(size=(61, 61)), "uint8")
    ] * 25
    large["methods"] = [
        {
            **m,
            "scores": packed(rng.normal(size=(1500, 25))),
            "mean_uncertainty": packed(np.ones(1500)),
        }
        for m in large["methods"]
    ]
    assert len(html(made, large, "run").encode("utf8")) < 12e6


def test_pages_of_cars_stay_small(made):
    """25 cars of 3586 vertices and nine methods, each with errors and radii of its own."""
    rng = np.random.default_rng(0)
    large = dict(cars_explorer())
    field = packed(rng.normal(size=VERTICES), "uint16")
    mesh = [packed(rng.normal(size=(VERTICES, 3)), "uint16")]
    mesh += [packed(rng.integers(VERTICES, size=(2 * VERTICES - 4, 3)), "index16")]
    large["fields"] = ([field] * (1 + 2 * 9) + mesh) * 25
    large["methods"] = [large["methods"][0]] * 9
    large["functions"] = [large["functions"][0]] * 25
    assert len(html(made, large, "run").encode("utf8")) < 12e6


def test_missing_parts_leave_a_whole_page(made, tmp_path):
    bare = {
        **made, "rows": [], "ablation": [], "curves": [], "targets": [], "panel": None,
        "section": None, "paper": [],
    }  # fmt: skip
    write_page(bare, None, tmp_path / "bare.html", "bare")
    page = json.loads(Parts((tmp_path / "bare.html").read_text("utf8")).scripts["page-data"])
    assert page["figures"] == []
    assert page["tables"] == []
    assert page["planner"]


@pytest.mark.usefixtures("quick")
def test_a_report_is_made_of_a_folder(made, tmp_path):
    with pytest.raises(ValueError, match=r"results\.json does not exist"):
        make_report(tmp_path)
    folder = tmp_path / "my run"
    folder.mkdir()
    results.write(folder / "results.json", made)
    paths = make_report(folder, figures_to=tmp_path / "figures")
    assert [p.name for p in paths] == [PAGE_FILE, "band.png", "band.svg"]
    parts = Parts(paths[0].read_text("utf8"))
    assert json.loads(parts.scripts["page-data"])["name"] == "my run"
    assert json.loads(parts.scripts["explorer-data"]) is None  # there are no models to look at
    (folder / "explorer.json").write_text(json.dumps(made_explorer()))
    make_report(folder)
    again = Parts(paths[0].read_text("utf8"))
    assert json.loads(again.scripts["explorer-data"]) == read_explorer(folder / "explorer.json")


@pytest.mark.usefixtures("quick")
def test_an_explorer_that_came_back_damaged_is_set_aside(made, tmp_path):
    """Its models are gone here, so the page is without one; with them it is made again."""
    results.write(tmp_path / "results.json", made)
    for content in ("", "{"):
        (tmp_path / "explorer.json").write_text(content)
        make_report(tmp_path)
        assert not (tmp_path / "explorer.json").exists()
    assert len(list(tmp_path.glob("explorer.json.damaged*"))) == 2
