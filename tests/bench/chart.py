"""
Line charts as SVG, without a library: each curve has its name at its end, limits are dashed, and an
axis is logarithmic if its figures span decades. The colours are distinguishable for the colour-blind,
on light and on dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH = 760
TOP, BOTTOM, LEFT, PLOT_HEIGHT = 62, 50, 70, 300
LETTER = 6.3  # pixels, approximate width of a letter at 12 pixels
LABEL_GAP = 15
SPANS = 20  # an axis whose values span this ratio is logarithmic

# The palette of Okabe and Ito; the second list is lighter, for a dark background.
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#4d4d4d")
DARK = ("#56b4e9", "#ff8c42", "#2fd6a3", "#e39ccb", "#f0c94a", "#c9c9c9")

Point = tuple[float, float]


@dataclass
class Curve:
    """Points in order of x."""

    name: str
    points: list[Point]
    limit: bool = False  # dashed and grey
    colour: int = 0


@dataclass
class Chart:
    """The content of a chart, and the format of its values."""

    title: str
    by: str
    curves: list[Curve] = field(default_factory=list)
    write_y: Callable[[float], str] = "{:g}".format


def is_wide(values: Sequence[float]) -> bool:
    """Whether only a logarithmic axis shows all values."""
    some = [v for v in values if v > 0]
    return len(some) > 1 and max(some) / min(some) >= SPANS


def write_count(value: float) -> str:
    """1000000 as "1M"."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size and value % (size / 10) == 0:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def nice_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, about four steps in a span."""
    power = 10.0 ** math.floor(math.log10(span / 4))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= span / 4)


class Axis:
    """Maps values to 0..1."""

    def __init__(self, values: Sequence[float], whole: bool) -> None:
        self.log = is_wide(values)
        top = max(values, default=1.0) or 1.0
        if not self.log:
            self.low = 0.0 if whole or min(values, default=0.0) <= 0 else min(values)
            step = nice_step(max(top - self.low, top / 10))
            self.high = math.ceil(top / step) * step if whole else top
            count = int(self.high / step + 1e-9) + 1
            self.ticks = [step * i for i in range(count) if self.low <= step * i <= self.high]
            return
        least = min(v for v in values if v > 0)
        decades = range(math.floor(math.log10(least)), math.ceil(math.log10(top)) + 1)
        self.low, self.high = (10.0 ** decades[0], 10.0 ** decades[-1]) if whole else (least, top)
        self.ticks = [10.0**d for d in decades if self.low <= 10.0**d <= self.high]
        if len(self.ticks) > 7:
            self.ticks = self.ticks[::2]
        # A logarithm has no zero: place it half a decade below the smallest value.
        self.zero = min(values) <= 0
        if self.zero:
            self.low /= 10**0.5
            self.ticks.insert(0, 0.0)

    def at(self, value: float) -> float:
        """The position of a value."""
        if not self.log:
            return (value - self.low) / ((self.high - self.low) or 1)
        value = max(value, self.low)
        return math.log(value / self.low) / math.log(self.high / self.low)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions for labels: in the same order, `gap` apart, close to the wanted positions."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [wanted[i] for i in order]
    for _ in range(200):
        moved = False
        for k in range(len(places) - 1):
            lack = gap - (places[k + 1] - places[k])
            if lack > 0.01:
                places[k] -= lack / 2
                places[k + 1] += lack / 2
                moved = True
        places = [min(max(p, low), high) for p in places]
        if not moved:
            break
    ret = [0.0] * len(wanted)
    for k, i in enumerate(order):
        ret[i] = places[k]
    return ret


STYLE = """text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.t{font-size:15px;font-weight:600}
.b{fill:#fff}.t{fill:#1f2328}.a,.l{fill:#59636e}
.g{stroke:#e8ebef}.x{stroke:#8c959f}.l,.d{stroke-width:1.5}
path{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
path.d{stroke-dasharray:5 4;stroke:#8c959f}
"""
STYLE_DARK = """.b{fill:#0d1117}.t{fill:#f0f6fc}.a,.l{fill:#9198a1}
.g{stroke:#21262d}.x{stroke:#656c76}path.d{stroke:#7d8590}
"""


def style(n: int) -> str:
    """Classes c0, c1, ... for lines, f0, f1, ... for texts and points."""

    def colours(palette: Sequence[str]) -> str:
        return "".join(
            f".c{i}{{stroke:{palette[i % len(palette)]}}}.f{i}{{fill:{palette[i % len(palette)]}}}"
            for i in range(n)
        )

    dark = f"@media(prefers-color-scheme:dark){{{STYLE_DARK}{colours(DARK)}}}"
    return f"<style>{STYLE}{colours(LIGHT)}\n{dark}</style>"


class Picture:
    """One chart while it is drawn."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        points = [p for c in chart.curves for p in c.points]
        self.x = Axis([p[0] for p in points], whole=False)
        self.y = Axis([p[1] for p in points], whole=True)
        longest = max((len(c.name) for c in chart.curves), default=0)
        self.width = WIDTH - LEFT - min(24 + longest * LETTER, WIDTH / 2)
        self.out: list[str] = []

    def px(self, x: float) -> float:
        """Pixels from the left."""
        return LEFT + self.x.at(x) * self.width

    def py(self, y: float) -> float:
        """Pixels from the top."""
        return TOP + (1 - self.y.at(y)) * PLOT_HEIGHT

    def axes(self) -> None:
        """The grid, the ticks and the units."""
        right, bottom = LEFT + self.width, TOP + PLOT_HEIGHT
        for tick in self.y.ticks:
            at = self.py(tick)
            self.out.append(f'<line class="g" x1="{LEFT}" x2="{right:.0f}" y1="{at:.1f}" y2="{at:.1f}"/>')
            self.text(LEFT - 8, at + 4, self.chart.write_y(tick), 'class="a" text-anchor="end"')
        for tick in self.x_ticks():
            at = self.px(tick)
            self.out.append(
                f'<line class="x" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 5}"/>'
            )
            self.text(at, bottom + 19, write_count(tick), 'class="a" text-anchor="middle"')
        self.out.append(
            f'<line class="x" x1="{LEFT}" x2="{right:.0f}" y1="{bottom}" y2="{bottom}"/>'
        )
        self.text(LEFT + self.width / 2, bottom + 40, self.chart.by, 'class="a" text-anchor="middle"')

    def x_ticks(self) -> list[float]:
        """The measured values, as far as they fit; else the axis's own ticks."""
        measured = sorted({p[0] for c in self.chart.curves for p in c.points})
        ret: list[float] = []
        for value in measured:
            room = 4 + LETTER * len(write_count(value))
            if not ret or self.px(value) - self.px(ret[-1]) >= room + 14:
                ret.append(value)
        return ret

    def text(self, x: float, y: float, text: str, attributes: str) -> None:
        """One line of text."""
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>')

    def curve(self, curve: Curve) -> None:
        """A line and its points."""
        places = [(self.px(x), self.py(y)) for x, y in curve.points]
        line = "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
        self.out.append(f'<path class="{"d" if curve.limit else f"c{curve.colour}"}" d="M{line}"/>')
        if not curve.limit:
            self.out.extend(
                f'<circle class="f{curve.colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places
            )

    def labels(self) -> None:
        """Each curve's name at its end, moved apart if ends are close."""
        curves = [c for c in self.chart.curves if c.name]
        ends = [self.py(c.points[-1][1]) for c in curves]
        places = spread(ends, LABEL_GAP, TOP, TOP + PLOT_HEIGHT)
        for curve, place in zip(curves, places, strict=True):
            kind = "l" if curve.limit else f"f{curve.colour}"
            at = self.px(curve.points[-1][0]) + 10
            self.text(at, place + 4, curve.name, f'class="{kind}"')

    def svg(self) -> str:
        """The whole document."""
        height = TOP + PLOT_HEIGHT + BOTTOM
        self.out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img">',
            f"<title>{escape(self.chart.title)}</title>",
            style(1 + max((c.colour for c in self.chart.curves), default=0)),
            f'<rect class="b" width="{WIDTH}" height="{height}" rx="8"/>',
        ]
        self.text(20, 30, self.chart.title, 'class="t"')
        self.axes()
        for curve in sorted(self.chart.curves, key=lambda c: not c.limit):
            self.curve(curve)
        self.labels()
        return "\n".join([*self.out, "</svg>", ""])


def draw(chart: Chart) -> str:
    """The chart as SVG."""
    return Picture(chart).svg()
