"""One page that opens without a network: what the monitor says, and the curves of its wealth."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log, log10
from pathlib import Path
from typing import Final

from uqno.monitor.verdict import Finding, Verdict
from uqno.storage import write_text

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 260, 56, 36, 12
MOST_POINTS: Final = 2000
"""Of a curve; of longer ones the largest wealth of each stretch is drawn."""
STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1f24; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { width: 100%; height: auto; } text { font: 12px system-ui, sans-serif; fill: #57606a; }
.state { padding: .6rem 1rem; border-left: 4px solid #1a7f37; background: #f0f7f1; }
.alarm { border-color: #cf222e; background: #fdf0f0; }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117; }
  .state { background: #12261a; } .alarm { background: #2d1517; } text { fill: #9198a1; } }
"""


def write_page(path: str | Path, verdict: Verdict, guarantee: str, title: str = "") -> None:
    """Write the page into one file.

    Args:
        path: an .html file.
        verdict: what the monitor says.
        guarantee: the sentence of what is promised.
        title: what is monitored.
    """
    write_text(path, html(verdict, guarantee, title))


def html(verdict: Verdict, guarantee: str, title: str = "") -> str:
    """The page; every word of it is escaped."""
    bad = verdict.alarm or verdict.failing
    head = "Alarm: the promise may not stand" if bad else "No alarm"
    heading = escape(f"{title}: monitoring" if title else "Monitoring")
    sections = "\n".join(_section(one) for one in verdict.tests.values())
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{heading}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{heading}</h1>\n"
        f'<p class="state{" alarm" if bad else ""}"><strong>{head}.</strong></p>\n'
        f"<p>What is promised: {escape(guarantee)}</p>\n{sections}\n"
        "<p>Wealth begins at 1 and cannot be expected to grow while nothing changes. When it "
        "reaches its line, an alarm is given that stays. No alarm is no proof that nothing "
        "changed.</p>\n</body>\n</html>\n"
    )


def _section(test: Finding) -> str:
    return f"<h2>{escape(test.name.capitalize())}</h2>\n<p>{escape(str(test))}</p>\n{_curve(test)}"


def _curve(test: Finding) -> str:
    """The wealth over the functions, on a logarithmic axis, and the line of alarm."""
    if not test.history:
        return ""
    values = _thinned([x / log(10) for x in test.history])
    line = log10(test.threshold)
    low, high = floor(min(0.0, *values)), ceil(max(line, *values) + 0.01)
    last = max(1, len(test.history))

    def x(place: float) -> float:
        return LEFT + (WIDTH - LEFT - 8) * place / last

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    step = last / len(values)
    points = " ".join(f"{x((i + 1) * step):.1f},{y(v):.1f}" for i, v in enumerate([*values]))
    every = max(1, ceil((high - low) / 6))
    ticks = "".join(
        f'<text x="{LEFT - 6}" y="{y(k) + 4:.1f}" text-anchor="end">10{_superscript(k)}</text>'
        for k in range(low, high + 1, every)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="wealth of the test of '
        f'{escape(test.name)} over {test.functions} functions">{ticks}'
        f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y(0):.1f}" y2="{y(0):.1f}" stroke="#8c959f"/>'
        f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y(line):.1f}" y2="{y(line):.1f}" '
        'stroke="#cf222e" stroke-dasharray="6 4"/>'
        f'<text x="{WIDTH - 10}" y="{y(line) - 5:.1f}" text-anchor="end">alarm at '
        f"{test.threshold:.4g}</text>"
        f'<polyline points="{x(0):.1f},{y(0):.1f} {points}" fill="none" stroke="#0969da" '
        'stroke-width="2"/>'
        f'<text x="{LEFT}" y="{HEIGHT - 10}">0</text><text x="{WIDTH - 8}" y="{HEIGHT - 10}" '
        f'text-anchor="end">{test.functions} functions</text></svg>'
    )


def _thinned(values: list[float]) -> list[float]:
    size = ceil(len(values) / MOST_POINTS)
    return [max(values[i : i + size]) for i in range(0, len(values), size)]


def _superscript(k: int) -> str:
    return str(k).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
