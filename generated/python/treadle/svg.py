# SPDX-License-Identifier: MIT
# Tangled from the chapter "seeing": edit that, not this file.
# needs: porting
"""Curves and histograms as SVG, without a library for plots.

>>> td.svg.curves("loss.svg", {"train": losses, "test": others})
>>> td.svg.histogram("weights.svg", net.weight)
"""
from html import escape
from math import isfinite
from pathlib import Path
from ._C import float64
from ._tensor import as_tensor

INKS = "#2F5D8A", "#B5532A", "#7B8794", "#1F2933"

# seeing: functions that write SVG
def _text(at, text, anchor="middle", dy=4, ink=INKS[3]):
    return (f'<text transform="translate({at})" dy="{dy}" fill="{ink}" '
            f'text-anchor="{anchor}">{escape(str(text))}</text>')


def _write(path, title, xs, ys, draw):
    x0, y0 = min(xs), min(ys)
    wide, high = max(xs) - x0 or 1, max(ys) - y0 or 1

    def place(x, y):
        return (f"{60 + 560 * (x - x0) / wide:.1f} "
                f"{360 - 320 * (y - y0) / high:.1f}")
    body = ['<svg xmlns="http://www.w3.org/2000/svg" width="640" '
            'height="400" font-family="sans-serif" font-size="12" '
            f'fill="none" stroke-width="1.5">'
            f'<path d="M60 40V360H620" stroke="{INKS[3]}"/>',
            _text("340 24", title)]
    for k in range(5):
        x, y = x0 + wide * k / 4, y0 + high * k / 4
        body += [_text(place(x, y0), f"{x:.4g}", dy=18),
                 _text(place(x0, y), f"{y:.4g}\xa0", "end")]
    Path(path).write_text("\n".join(body + draw(place))
                          + "\n</svg>\n", "utf-8")


def curves(path, series, title=""):
    """A line for each {name: values}; not finite: a gap."""
    series = {name: as_tensor(v, dtype=float64).flatten().tolist()
              for name, v in series.items()}
    points = [(k, y) for v in series.values()
              for k, y in enumerate(v) if isfinite(y)] or [(0, 0)]

    def draw(place):
        body = []
        for n, (name, values) in enumerate(series.items()):
            ink, line, pen = INKS[n % 4], "", "M"
            for k, y in enumerate(values):
                line += pen + place(k, y) if isfinite(y) else ""
                pen = "L" if isfinite(y) else "M"
            body += [f'<path d="{line}" stroke="{ink}"/>',
                     _text(f"616 {50 + 16 * n}", name, "end", 4, ink)]
        return body
    _write(path, title, *zip(*points), draw)


def count(values, bins):
    """Flat values, and how many lie in each part of their range."""
    values = as_tensor(values, dtype=float64).flatten()
    bad = len(values) - int(values.isfinite().sum())
    if bad or not len(values) or bins < 1:
        raise ValueError(
            f"histogram: {bad} of {len(values)} values are not finite, "
            f"and there are {bins} bins")
    low, high = values.min().item(), values.max().item()
    counts = values.histc(bins, low, high + (low == high))
    return values.tolist(), low, high, counts.tolist()


def histogram(path, values, bins=20, title=""):
    """How many values lie in each of equal parts of their range."""
    _, low, high, counts = count(values, bins)
    part = (high - low or 1) / bins
    _write(path, title, (low, high), (0, max(counts)), lambda place: [
        f'<path d="M{place(x, 0)}L{place(x, n)}L{place(x + part, n)}L'
        f'{place(x + part, 0)}Z" stroke="white" fill="{INKS[0]}"/>'
        for x, n in ((low + k * part, n)
                     for k, n in enumerate(counts))])
