"""Look and use: contrast, phone, keyboard, screen reader, and the page's security policy."""

from __future__ import annotations

from urllib.parse import quote

from lab import Lab, check, equal

# Contrast by WCAG 2: of every visible text, block and outline with its background.
CONTRAST = """
const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number);
                       return [m[0], m[1], m[2], m.length > 3 ? m[3] : 1]; };
const light = ([r, g, b]) => { const f = (v) => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
                          return (x + 0.05) / (y + 0.05); };
const under = (e) => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c[3] === 1) return c; } return parse(getComputedStyle(document.body).backgroundColor); };
const seen = (e) => e.checkVisibility() && e.getClientRects().length > 0;
const name = (e) => `${e.tagName}.${e.className?.baseVal ?? e.className}`;
const low = [];
const root = getComputedStyle(document.documentElement);
const probe = document.createElement('i');
document.body.append(probe);
const colour = (v) => { probe.style.color = root.getPropertyValue(v);
                        return parse(getComputedStyle(probe).color); };
let texts = 0;
for (const e of document.querySelectorAll('body *')) {
    if (e === probe || !seen(e) || e.closest('.hide, noscript, option')) continue;
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim() !== '');
    const s = getComputedStyle(e);
    if (own || e.matches('input, select')) {
        texts++;
        const r = ratio(parse(s.color), under(e));
        if (r < 4.5) low.push([name(e), 'text', r.toFixed(2)]);
    }
    if (e.matches('input:not([type=checkbox]), select')) {
        const r = ratio(parse(s.borderTopColor), under(e.parentElement));
        if (r < 3) low.push([name(e), 'border', r.toFixed(2)]);
    }
    if (e.matches('.bar .pod:not(.reserved, .more)')) {
        const r = ratio(under(e), colour('--track'));
        if (r < 3) low.push([name(e), e.dataset.hue, r.toFixed(2)]);
    }
}
for (const v of ['--accent', '--bad', '--warn', '--good', '--edge', '--pod-0', '--pod-1', '--pod-2',
                 '--pod-3', '--pod-4', '--pod-5']) {
    for (const ground of ['--page', '--panel', '--track', '--odd']) {
        const r = ratio(colour(v), colour(ground));
        if (r < 3) low.push([v, ground, r.toFixed(2)]);
    }
    if (v.startsWith('--pod') && ratio(colour(v), colour('--on-pod')) < 4.5)
        low.push([v, '--on-pod', ratio(colour(v), colour('--on-pod')).toFixed(2)]);
}
for (const v of ['--text', '--dim']) { /* placeholders are dim, on panels and on the page */
    for (const ground of ['--page', '--panel', '--odd', '--raise']) {
        const r = ratio(colour(v), colour(ground));
        if (r < 4.5) low.push([v, ground, r.toFixed(2)]);
    }
}
const page = colour('--page');
probe.remove();
return {low, texts, page};"""

NO_SIDEWAYS = """
const wide = [];
for (const e of [document.documentElement, document.body, document.getElementById('scroll'),
                 document.querySelector('.panel-body')]) {
    if (e && e.scrollWidth > e.clientWidth)
        wide.push([e.tagName, e.className, e.scrollWidth, e.clientWidth]);
}
for (const e of document.querySelectorAll('.top *, .tools *, .row, .node, .card, .panel *')) {
    const r = e.getBoundingClientRect();
    if (e.checkVisibility() && r.width > 1 && (r.right > innerWidth + 0.5 || r.left < -0.5))
        wide.push([e.tagName, e.className?.baseVal ?? e.className, r.left, r.right]);
}
return wide;"""

PLACES = ("", "#waiting=", "#namespaces=", "#ns=research", "#view=model",
          "#node=mixed-0", f"#ask={quote('memory=20&replicas=30')}",
          "#pod=research%2Ftrain", "#q=nothing-is-called-so")


@check
def contrast(lab: Lab) -> None:
    """Texts have 4.5:1 and signs 3:1 in dark and in light, in every view."""
    daemon = lab.daemon("small")
    b = lab.browser
    grounds = set()
    for scheme in ("dark", "light"):
        b.scheme(scheme)
        for place in PLACES:
            lab.open(daemon, place)
            if "ask" in place or "pod" in place:
                b.until("return document.querySelector('.answer') !== null")
                b.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            got = b.js(CONTRAST)
            equal(got["low"], [], f"too low in {scheme} at {place or 'the picture'}")
            assert got["texts"] > 20, got
            grounds.add(tuple(got["page"]))
    equal(len(grounds), 2, "the page's grounds")
    b.scheme("dark")


@check
def phone(lab: Lab) -> None:
    """At 360 pixels nothing extends beyond the side, and panels cover the picture."""
    for name in ("small", "large", "hostile"):
        daemon = lab.daemon(name)
        for place in PLACES if name == "small" else ("", "#waiting="):
            b = lab.open(daemon, place, 360, 740)
            lab.settle()
            equal(b.js(NO_SIDEWAYS), [], f"{name} at {place or 'the picture'}")
    b = lab.open(lab.daemon("large"), "", 360, 740)
    lines = b.js("const tops = [...document.querySelectorAll('.row[data-name=gpu-0000] .card')]"
                 ".map((c) => c.getBoundingClientRect().top);"
                 "return [...new Set(tops)].map((top) => tops.filter((t) => t === top).length)")
    equal(lines, [4, 4], "how eight cards stand below each other")
    daemon = lab.daemon("small")
    b = lab.open(daemon, "", 360, 740)
    rows = b.js("return document.querySelectorAll('.row').length")
    equal(rows, 5, "rows")
    low = b.js("return [...document.querySelectorAll('button, select, input')].filter((e) => "
               "e.checkVisibility() && e.id !== 'skip' && e.getBoundingClientRect().height < 24)"
               ".map((e) => e.id || e.className)")
    equal(low, [], "targets below 24 pixels")
    named = {n["name"]["value"] for n in b.cdp("Accessibility.getFullAXTree")["nodes"]
             if not n.get("ignored") and n["role"]["value"] in ("combobox", "spinbutton", "searchbox")}
    equal(named, {"Filter by node or pod", "Model", "A card with at least so much free", "Show",
                  "Sort", "View"}, "the names of what filters")
    equal(b.js("return [...document.querySelectorAll('select')].map((s) => s.options[0].text)"),
          ["any model", "all nodes", "by name", "nodes"], "what they say where no label is seen")
    equal(b.js("const n = document.querySelector('.row[data-name=mixed-0] .cap b');"
               "return [n.textContent, n.getBoundingClientRect().width > 0]"), ["0", True],
          "a card's number")
    legend = "return document.getElementById('legend').checkVisibility()"
    equal(b.js(legend), False, "the legend at first")
    b.click("#tab-legend")
    equal(b.js(legend), True, "the legend when asked for")
    equal(b.js(NO_SIDEWAYS), [], "with the legend")
    b.click("#tab-legend")
    b.click("#tab-ask")
    equal(b.js("const r = document.getElementById('panel').getBoundingClientRect();"
               "return [r.left, r.top, r.width, r.height]"), [0, 0, 360, 740], "the panel")
    for _ in range(30):
        b.press("Tab")
        assert b.js("return document.activeElement === document.body || document.getElementById("
                    "'panel').contains(document.activeElement)"), "Tab goes behind the panel"
    b.click(".close")
    equal(b.js("return document.activeElement.id"), "tab-ask", "the focus, when it is closed")
    b.click(".row[data-name=train-0] .node")
    b.until("return document.querySelector('.card-part') !== null")


@check
def zoomed(lab: Lab) -> None:
    """At 200 % zoom, which halves a window of 1400 pixels, nothing extends beyond the side."""
    for name in ("small", "large"):
        daemon = lab.daemon(name)
        for place in PLACES if name == "small" else ("#view=model", "#namespaces=", "#ns=team-5&waiting="):
            b = lab.open(daemon, place, 700, 450)
            lab.settle()
            equal(b.js(NO_SIDEWAYS), [], f"{name} at {place or 'the picture'}")
            low = b.js("return document.getElementById('scroll').clientHeight")
            assert low >= 60, f"{low} pixels for the nodes at {place or 'the picture'}"


HERE = """
const a = document.activeElement;
const cell = a.closest('[data-col]');
return cell === null ? a.id || a.className || a.tagName
  : [a.closest('.row').dataset.name, Number(cell.dataset.col),
     [...cell.querySelectorAll('.pod')].indexOf(a)]"""


@check
def keyboard(lab: Lab) -> None:
    """The whole page works without a pointer: / to filter, arrows in the picture, Enter, Escape."""
    b = lab.open(lab.daemon("small"))

    def walk(*steps: tuple[str, object]) -> None:
        for key, wanted in steps:
            b.press(key)
            equal(b.js(HERE), wanted, f"after {key}")

    b.press("/")
    equal(b.js("return document.activeElement.id"), "q", "/ focuses the filter")
    for letter in "train":
        b.press(letter)
    lab.settle()
    equal(b.js("return document.querySelectorAll('.row').length"), 2, "rows that pass")
    b.press("Escape")
    lab.settle()
    equal(b.js("return [document.getElementById('q').value, document.querySelectorAll('.row').length]"),
          ["", 5], "Escape clears")
    for _ in range(9):
        b.press("Tab")
    equal(b.js(HERE), ["train-0", -1, -1], "Tab reaches one place of the picture, the last one")
    equal(b.js("return document.querySelectorAll('#rows [tabindex=\"0\"]').length"), 1, "and only one")
    outline = b.js("const s = getComputedStyle(document.activeElement);"
                   "return [s.outlineStyle, parseFloat(s.outlineWidth) >= 2]")
    equal(outline, ["solid", True], "the focus is seen")
    b.press("Home", held="Control")
    walk(("ArrowRight", ["infer-0", 0, -1]), ("ArrowDown", ["mixed-0", 0, -1]),
         ("End", ["mixed-0", 2, -1]), ("ArrowRight", ["mixed-0", 2, -1]),
         ("ArrowDown", ["notebooks-0", 1, -1]), ("Home", ["notebooks-0", -1, -1]),
         ("ArrowUp", ["mixed-0", -1, -1]), ("PageDown", ["train-1", -1, -1]),
         ("PageUp", ["infer-0", -1, -1]), ("ArrowRight", ["infer-0", 0, -1]),
         ("Enter", ["infer-0", 0, 0]), ("ArrowRight", ["infer-0", 0, 1]),
         ("ArrowRight", ["infer-0", 0, 1]))
    tip = b.js("const t = document.getElementById('tip'); return [t.hidden, t.textContent]")
    assert not tip[0] and "search/ranker-" in tip[1] and "6 of memory" in tip[1], tip
    assert "12 of 15 used, 3 free" in tip[1], tip
    walk(("Escape", ["infer-0", 0, -1]), ("ArrowLeft", ["infer-0", -1, -1]))
    b.press("Enter")
    equal(b.js("return location.hash"), "#node=infer-0", "Enter opens the node")
    equal(b.js("return document.querySelectorAll('.card-part').length"), 5, "its cards")
    b.press("Escape")
    b.press("Escape")
    equal(b.js("return [document.getElementById('panel').hidden, location.hash]"), [True, ""],
          "Escape closes")
    b.js("document.getElementById('tab-ask').focus()")
    b.press("Enter")
    equal(b.js("return document.activeElement.name"), "memory", "the form's first field")
    b.press("2", "0", "Enter")
    b.until("return document.querySelector('.answer') !== null")
    b.press("Escape")
    equal(b.js("return [document.getElementById('panel').hidden, document.activeElement.id]"),
          [True, "tab-ask"], "Escape closes, and the focus is where it was")


@check
def focus_survives(lab: Lab) -> None:
    """The focus stays on its node while rows scroll out of view and change."""
    daemon = lab.daemon("large")
    b = lab.open(daemon)
    b.js("document.getElementById('skip').click()")
    equal(b.js(HERE), ["gpu-0000", -1, -1], "where it begins")
    b.press("ArrowRight", "ArrowDown")
    b.js("document.getElementById('scroll').scrollTop = 90000")
    lab.settle()
    equal(b.js(HERE), ["gpu-0001", 0, -1], "far out of view")
    b.press("ArrowDown")
    equal(b.js(HERE), ["gpu-0002", 0, -1], "and back")
    assert b.js("return document.getElementById('scroll').scrollTop") < 500
    b.press("End", held="Control")
    lab.settle()
    equal(b.js(HERE), ["gpu-4999", 0, -1], "the last node")
    order = b.js("return [...document.querySelectorAll('.row')].map((r) => "
                 "Number(r.getAttribute('aria-rowindex')))")
    equal(order, sorted(order), "the order in the document")


@check
def screen_reader(lab: Lab) -> None:
    """Every focusable element has a name, and the picture is a grid of rows and cells."""
    daemon = lab.daemon("small")
    b = lab.open(daemon, f"#ask={quote('memory=20')}")
    b.until("return document.querySelector('.answer') !== null")
    nodes = b.cdp("Accessibility.getFullAXTree")["nodes"]
    roles: dict[str, list[str]] = {}
    nameless = []
    for n in nodes:
        if n.get("ignored"):
            continue
        role = n["role"]["value"]
        name = n.get("name", {}).get("value", "")
        roles.setdefault(role, []).append(name)
        focusable = any(p["name"] == "focusable" and p["value"].get("value")
                        for p in n.get("properties", []))
        if focusable and not name and role not in ("RootWebArea", "generic"):
            nameless.append(role)
    equal(nameless, [], "without a name")
    equal(roles["grid"], ["Nodes, their cards and the pods on them"], "the grid")
    equal(len(roles["row"]), 5, "rows")
    cells = roles["gridcell"]
    assert any(c.startswith("card 2, Tesla-T4, 0 of 15 used, 0 free") and "unhealthy" in c
               for c in cells), cells
    assert any("the request would go here" in c for c in cells), cells
    assert any("refused: " in c for c in cells), cells


@check
def motion(lab: Lab) -> None:
    """There is no motion for users who prefer reduced motion."""
    daemon = lab.daemon("small")
    b = lab.browser
    found = {}
    for wish in ("no-preference", "reduce"):
        b.scheme("dark", wish)
        lab.open(daemon)
        found[wish] = b.js("""
            document.querySelector('.row').classList.add('changed');
            return [...document.querySelectorAll('*')].filter((e) => {
                const s = getComputedStyle(e);
                return s.animationName !== 'none' || parseFloat(s.transitionDuration) > 0;
            }).length""")
    b.scheme("dark")
    equal(found["reduce"], 0, "animations and transitions")
    assert found["no-preference"] > 0, found


@check
def what_the_page_may_do(lab: Lab) -> None:
    """The policy is in force: no inline script or style runs, and no other host can be contacted."""
    lab.expected = ("Content Security Policy",)
    daemon = lab.daemon("small")
    status, _, headers = daemon.ask("GET", "/ui/")
    equal(status, 200, "the page")
    policy = headers["Content-Security-Policy"]
    for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
                 "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"):
        assert part in policy, policy
    b = lab.open(daemon)
    broken = b.wait_js("""
        const broken = [];
        addEventListener('securitypolicyviolation', (e) => broken.push(e.effectiveDirective));
        const s = document.createElement('script');
        s.textContent = 'document.title = "inline"';
        document.body.append(s);
        document.body.insertAdjacentHTML('beforeend', '<p style="color: red" onclick="x()"></p>');
        fetch('http://127.0.0.1:1/').catch(() => {});
        setTimeout(() => done([...new Set(broken)].sort()), 300);""")
    equal(broken, ["connect-src", "script-src-attr", "script-src-elem", "style-src-attr"], "refused")
    equal(b.js("return document.title"), "cardpack", "the title")


@check
def behind_a_proxy(lab: Lab) -> None:
    """Every address in the page is relative, so that it works below another path."""
    b = lab.open(lab.daemon("small"))
    found = b.js("return [...document.querySelectorAll('[src], [href]')].map((e) => "
                 "e.getAttribute('src') ?? e.getAttribute('href'))")
    wrong = [u for u in found if u.startswith("/") or ":" in u]
    equal(wrong, [], "addresses that are not relative")
