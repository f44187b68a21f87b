# SPDX-License-Identifier: MIT
# Tangled from the chapter "seeing": edit that, not this file.
# needs: porting
"""Curves and histograms as SVG, without a library for plots.

>>> td.svg.curves("loss.svg", {"train": losses, "test": others})
>>> td.svg.histogram("weights.svg", net.weight)
"""
from html import escape
from math import isfinite

INKS = "#2F5D8A", "#B5532A", "#7B8794", "#1F2933"

# seeing: functions that write SVG
def page(path, width, height, body):
    """Write a picture of these elements."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" font-family="sans-serif" '
            'font-size="12">\n' + "\n".join(body) + "\n</svg>\n")


def words(x, y, text, anchor="middle", ink=INKS[3]):
    """A line of text, escaped."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
            f'fill="{ink}">{escape(str(text))}</text>')


def _frame(title, xs, ys):
    """Axes for values in these ranges, and the map onto them."""
    (x0, x1), (y0, y1) = ((a, b if b > a else a + 1) for a, b in
                          ((min(v), max(v)) for v in (xs, ys)))

    def place(x, y):
        return (60 + 560 * (x - x0) / (x1 - x0),
                360 - 320 * (y - y0) / (y1 - y0))
    body = [f'<path d="M60 40V360H620" fill="none" '
            f'stroke="{INKS[3]}"/>', words(340, 24, title)]
    for k in range(5):
        x, y = x0 + (x1 - x0) * k / 4, y0 + (y1 - y0) * k / 4
        body += [words(place(x, y0)[0], 378, f"{x:.4g}"),
                 words(54, place(x0, y)[1] + 4, f"{y:.4g}", "end")]
    return body, place


def _values(name, values):
    values = getattr(values, "tolist", lambda: list(values))()
    while any(isinstance(v, list) for v in values):
        values = [x for v in values for x in v]
    if not any(map(isfinite, values)):
        raise ValueError(f"svg: '{name}' has no finite value")
    return values


def curves(path, series, title=""):
    """A line for each {name: values}; not finite: a gap."""
    series = {name: _values(name, v) for name, v in series.items()}
    points = [(k, y) for v in series.values()
              for k, y in enumerate(v) if isfinite(y)]
    if not points:
        raise ValueError("svg: there are no series")
    body, place = _frame(title, *zip(*points))
    for n, (name, values) in enumerate(series.items()):
        ink, line, pen = INKS[n % 4], "", "M"
        for k, y in enumerate(values):
            if isfinite(y):
                line += pen + "{:.1f} {:.1f}".format(*place(k, y))
            pen = "L" if isfinite(y) else "M"
        body += [f'<path d="{line}" fill="none" stroke="{ink}"/>',
                 words(616, 54 + 16 * n, name, "end", ink)]
    page(path, 640, 400, body)


def count(values, bins):
    """Flat values, and how many lie in each part of their range."""
    values = _values("values", values)
    if not all(map(isfinite, values)):
        raise ValueError("histogram: {} of {} values are not finite"
            .format(sum(not isfinite(v) for v in values), len(values)))
    if bins < 1:
        raise ValueError(f"histogram: bins must be >= 1, not {bins}")
    low, high = min(values), max(values)
    counts = [0] * bins
    for v in values:
        part = (v - low) / (high - low) if high > low else 0
        counts[min(int(part * bins), bins - 1)] += 1
    return values, low, high, counts


def histogram(path, values, bins=20, title=""):
    """How many values lie in each of equal parts of their range."""
    _, low, high, counts = count(values, bins)
    body, place = _frame(title, (low, high), (0, max(counts)))
    wide = 560 / bins
    for k, n in enumerate(counts):
        y = place(low, n)[1]
        body.append(f'<rect x="{60 + wide * k:.1f}" y="{y:.1f}" '
                    f'width="{wide * 0.9:.1f}" height="{360 - y:.1f}" '
                    f'fill="{INKS[0]}"/>')
    page(path, 640, 400, body)
