"""What the documents show, runs."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(code, id=f"{page.name}-{i}")
    for page in PAGES
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text("utf8"), re.S))
]


@pytest.fixture(scope="module")
def things():
    """What a reader has at hand: a neuraloperator FNO, and functions that it has not seen."""
    from neuralop.models import FNO

    torch.manual_seed(0)
    fno = FNO(n_modes=(4, 4), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2)
    inputs = torch.rand(110, 1, 17, 17)
    samples = [{"a": a, "u": a.sin() + 0.1 * torch.randn_like(a)} for a in inputs]
    return {"fno": fno, "train": samples[:30], "held_out": samples[30:], "a": torch.rand(1, 17, 17)}


@pytest.mark.parametrize("code", BLOCKS)
@pytest.mark.filterwarnings("ignore")  # of neuraloperator
def test_python_blocks_run(code, things, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "document", "exec"), dict(things))  # noqa: S102
    if "band.png" in code:
        assert (tmp_path / "band.png").stat().st_size > 10_000
        lines = [line for line in code.splitlines() if line and not line.startswith("#")]
        assert len(lines) <= 12, "from surrogate to band in at most 12 lines"


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
