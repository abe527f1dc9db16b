/*
 * Keeps only the rows in view in the document: of 5,000 nodes about thirty. A row's height depends
 * only on its number of cards, so positions are computed and never measured. A row is drawn when it
 * comes into view, and when its node changes while in view. In the dense view a line has many nodes;
 * otherwise it has one.
 */
import {CELL, draw_head, draw_tile, groups_of, lines_of} from "./cells.js";
import {by_id} from "./dom.js";
import {draw_row} from "./draw.js";

const OVERSCAN_PX = 240;
const OVERSCAN_DENSE_PX = 60;
const GAP = 6;

/* Counts the work so far: tests check these counts, not times. */
export const stats = {drawn: 0, renders: 0, layouts: 0, views: 0, events: 0, live: 0, live_max: 0};

export class Rows {
    constructor(hooks) {
        this.scroller = by_id("scroll");
        this.space = by_id("rows");
        this.hooks = hooks; /* verdict_of(name), focus(), unit(), pinned() -> name or null, drawn() */
        this.view = [];
        this.groups = []; /* of the dense view; null: a row for each node */
        this.at = new Map();
        this.lines = null; /* of the dense view, see cells.js; null: line i is node i */
        this.line_of = null; /* of the dense view: the line of each node */
        this.tops = new Float64Array(1); /* of each line, and the height of all */
        this.live = new Map(); /* name -> {row, entry, verdict} */
        this.heads = new Map(); /* line -> {group, head, top} */
        this.geometry = {columns: 1, bar: 100, head: 0, line: 38, pad: 8, dense: false};
        this.frame = 0;
        this.top = 0; /* scroll position and height, cached: reading them later would force a layout */
        this.height = 0;
        this.scroller.addEventListener("scroll", () => this.schedule(), {passive: true});
        new ResizeObserver(() => this.resize()).observe(this.scroller);
    }

    resize() {
        this.height = this.scroller.clientHeight;
        this.width = this.scroller.clientWidth;
        this.layout();
    }

    /* `look`: "" for rows, "cards" for the dense view, "model" and "pool" for its groups. */
    set(view, look) {
        const {groups, entries} = look === "" ? {groups: null, entries: view} : groups_of(view, look);
        this.view = entries;
        this.groups = groups;
        this.at = new Map();
        entries.forEach((e, i) => this.at.set(e.name, i));
        stats.views++;
        this.layout();
    }

    /* Bars have the same width in all rows, so that the cards form columns. */
    measure() {
        const small = matchMedia("(max-width: 640px)").matches; /* as the style sheet asks */
        const cards = this.view.reduce((n, e) => Math.max(n, e.cards.length), 1);
        const largest = this.view.reduce(
            (n, e) => e.cards.reduce((m, c) => Math.max(m, c.total), n), 0);
        const digits = 2 * String(largest).length + 1;
        const least = small ? Math.max(40, digits * 6 + 16) : Math.max(52, digits * 7 + 20);
        const track = this.width - (small ? 20 : 24 + 232);
        const most = Math.max(1, Math.floor((track + GAP) / (least + GAP)));
        const columns = Math.ceil(cards / Math.ceil(cards / most)); /* 8 of 6 a line: 4 and 4 */
        const bar = Math.min(220, Math.floor((track + GAP) / columns) - GAP);
        return {columns, bar, head: small ? 22 : 0, line: small ? 40 : 38, pad: small ? 14 : 8,
                side: small ? 10 : 16, dense: this.groups !== null};
    }

    list_tops() {
        const {columns, head, line, pad} = this.geometry;
        const tops = new Float64Array(this.view.length + 1);
        this.view.forEach((e, i) => {
            const lines = Math.max(1, Math.ceil(e.cards.length / columns));
            tops[i + 1] = tops[i] + head + pad + lines * line;
        });
        this.lines = this.line_of = null;
        return tops;
    }

    dense_tops() {
        this.lines = lines_of(this.groups, this.width - 2 * this.geometry.side);
        this.line_of = new Int32Array(this.view.length);
        const tops = new Float64Array(this.lines.length + 1);
        this.lines.forEach((line, at) => {
            tops[at + 1] = tops[at] + line.height;
            this.line_of.fill(at, line.first, line.first + line.n);
        });
        return tops;
    }

    layout() {
        if (!this.width)
            return;
        const before = this.geometry;
        this.geometry = this.measure();
        const {columns, bar, head, dense} = this.geometry;
        this.tops = dense ? this.dense_tops() : this.list_tops();
        this.space.style.height = `${this.tops[this.tops.length - 1]}px`;
        this.space.setAttribute("aria-rowcount", this.view.length);
        document.body.classList.toggle("dense", dense);
        if (before.columns !== columns || before.bar !== bar || before.head !== head
            || before.dense !== dense)
            this.forget();
        stats.layouts++;
        this.schedule();
    }

    /* Draws all rows again, because their look has changed. */
    forget() {
        for (const shown of this.live.values())
            shown.entry = null;
        this.schedule();
    }

    schedule() {
        this.frame ||= requestAnimationFrame(() => this.render());
    }

    /* The line at this height. */
    line_at(y) {
        let low = 0;
        let high = this.tops.length - 1;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.tops[middle + 1] <= y)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    /* The first node at this height or below. */
    index_at(y) {
        const at = this.line_at(y);
        return this.lines ? this.lines[at]?.first ?? this.view.length : at;
    }

    /* The node that is `step` lines below node i, or above it. */
    beside(i, step) {
        if (!this.lines)
            return Math.max(0, Math.min(this.view.length - 1, i + step));
        const here = this.line_of[i];
        const left = i - this.lines[here].first;
        const way = Math.sign(step);
        let at = here;
        for (let rest = Math.abs(step), next = at + way; rest > 0 && this.lines[next]; next += way) {
            if (this.lines[next].n === 0)
                continue;
            at = next;
            rest--;
        }
        return this.lines[at].first + Math.min(left, this.lines[at].n - 1);
    }

    render() {
        this.frame = 0;
        stats.renders++;
        this.top = this.scroller.scrollTop;
        const over = this.lines ? OVERSCAN_DENSE_PX : OVERSCAN_PX;
        const first = this.line_at(this.top - over);
        const last = Math.min(this.tops.length - 2, this.line_at(this.top + this.height + over));
        const wanted = this.wanted(first, last);
        const pinned = this.at.get(this.hooks.pinned());
        if (pinned !== undefined)
            wanted.add(pinned);
        for (const [name, shown] of this.live) {
            if (!wanted.has(this.at.get(name))) {
                shown.row.remove();
                this.live.delete(name);
            }
        }
        for (const i of wanted)
            this.place(i);
        this.place_heads(first, last);
        this.order();
        stats.live = this.live.size;
        stats.live_max = Math.max(stats.live_max, stats.live);
        this.hooks.drawn();
    }

    /* The nodes of these lines. */
    wanted(first, last) {
        const wanted = new Set();
        for (let at = first; at <= last; at++) {
            const begin = this.lines ? this.lines[at].first : at;
            const end = this.lines ? begin + this.lines[at].n : at + 1;
            for (let i = begin; i < end; i++)
                wanted.add(i);
        }
        return wanted;
    }

    place_heads(first, last) {
        for (const [at, shown] of this.heads) {
            if (this.lines?.[at]?.group === shown.group && this.tops[at] === shown.top && at >= first && at <= last)
                continue;
            shown.head.remove();
            this.heads.delete(at);
        }
        for (let at = first; this.lines && at <= last; at++) {
            const {group, n} = this.lines[at];
            if (n > 0 || this.heads.has(at))
                continue;
            const head = draw_head(group, this.hooks.unit());
            head.style.transform = `translateY(${this.tops[at]}px)`;
            this.heads.set(at, {group, head, top: this.tops[at]});
            this.space.append(head);
        }
    }

    /* The left edge and the line of node i. */
    spot(i) {
        if (!this.lines)
            return {left: 0, line: i, width: ""};
        const line = this.line_of[i];
        const {first, tile} = this.lines[line];
        return {left: this.geometry.side + (i - first) * (tile + CELL.gap), line, width: `${tile}px`};
    }

    place(i) {
        const entry = this.view[i];
        const verdict = this.hooks.verdict_of(entry.name);
        let shown = this.live.get(entry.name);
        if (!shown || shown.entry !== entry || shown.verdict !== verdict) {
            const row = this.lines ? draw_tile(entry, verdict, this.hooks.focus())
                : draw_row(entry, this.geometry, verdict, this.hooks.focus());
            stats.drawn++;
            if (shown) {
                if (shown.entry !== null && shown.entry !== entry)
                    row.classList.add("changed");
                this.hooks.redraw(shown.row, row);
            } else {
                this.space.append(row);
            }
            shown = {row, entry, verdict, spot: "", at: -1};
            this.live.set(entry.name, shown);
        }
        if (shown.at !== i) {
            shown.at = i;
            shown.row.setAttribute("aria-rowindex", i + 1);
            shown.row.classList.toggle("odd", i % 2 === 1);
        }
        const {left, line, width} = this.spot(i);
        const height = this.tops[line + 1] - this.tops[line];
        const spot = `${left} ${this.tops[line]} ${height} ${width}`;
        if (shown.spot !== spot) {
            shown.spot = spot;
            shown.row.style.transform = `translate(${left}px, ${this.tops[line]}px)`;
            shown.row.style.height = `${height}px`;
            shown.row.style.width = width;
        }
    }

    /* A screen reader follows the order in the document. Moving an element would remove its focus. */
    order() {
        const heads = [...this.heads].map(([at, {head}]) => ({row: head, at: this.lines[at].first - 0.5}));
        const sorted = [...this.live.values(), ...heads].sort((a, b) => a.at - b.at);
        const focused = document.activeElement;
        let next = null;
        for (let i = sorted.length - 1; i >= 0; i--) {
            const row = sorted[i].row;
            if (row.nextElementSibling !== next && !row.contains(focused))
                this.space.insertBefore(row, next);
            next = row;
        }
    }

    row_of(name) {
        return this.live.get(name)?.row ?? null;
    }

    /* Scrolls only as far as needed to show the whole row. */
    reveal(i) {
        const {line} = this.spot(i);
        const top = this.tops[line];
        const bottom = this.tops[line + 1];
        if (top < this.scroller.scrollTop)
            this.scroller.scrollTop = top;
        else if (bottom > this.scroller.scrollTop + this.height)
            this.scroller.scrollTop = bottom - this.height;
        cancelAnimationFrame(this.frame);
        this.render();
    }
}
