/*
 * Keeps only the rows in view in the document: of 5,000 nodes about thirty. A row's height depends
 * only on its number of cards, so positions are computed and never measured. A row is drawn when it
 * comes into view, and when its node changes while in view.
 */
import {by_id} from "./dom.js";
import {draw_row} from "./draw.js";

const OVERSCAN_PX = 240;
const GAP = 6;

/* Counts the work so far: tests check these counts, not times. */
export const stats = {drawn: 0, renders: 0, layouts: 0, views: 0, events: 0, live: 0, live_max: 0};

export class Rows {
    constructor(hooks) {
        this.scroller = by_id("scroll");
        this.space = by_id("rows");
        this.hooks = hooks; /* verdict_of(name), focus(), pinned() -> name or null, drawn() */
        this.view = [];
        this.at = new Map();
        this.tops = new Float64Array(1);
        this.live = new Map(); /* name -> {row, entry, verdict} */
        this.geometry = {columns: 1, bar: 100, head: 0, line: 38, pad: 8};
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

    set(view) {
        this.view = view;
        this.at = new Map();
        view.forEach((e, i) => this.at.set(e.name, i));
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
        return {columns, bar, head: small ? 22 : 0, line: small ? 40 : 38, pad: small ? 14 : 8};
    }

    layout() {
        if (!this.width)
            return;
        const before = this.geometry;
        this.geometry = this.measure();
        const {columns, bar, head, line, pad} = this.geometry;
        const tops = new Float64Array(this.view.length + 1);
        this.view.forEach((e, i) => {
            const lines = Math.max(1, Math.ceil(e.cards.length / columns));
            tops[i + 1] = tops[i] + head + pad + lines * line;
        });
        this.tops = tops;
        this.space.style.height = `${tops[this.view.length]}px`;
        this.space.setAttribute("aria-rowcount", this.view.length);
        if (before.columns !== columns || before.bar !== bar || before.head !== head)
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

    index_at(y) {
        let low = 0;
        let high = this.view.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.tops[middle + 1] <= y)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    render() {
        this.frame = 0;
        stats.renders++;
        this.top = this.scroller.scrollTop;
        const first = this.index_at(this.top - OVERSCAN_PX);
        const last = Math.min(this.view.length - 1,
                              this.index_at(this.top + this.height + OVERSCAN_PX));
        const wanted = new Set();
        for (let i = first; i <= last; i++)
            wanted.add(i);
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
        this.order();
        stats.live = this.live.size;
        stats.live_max = Math.max(stats.live_max, stats.live);
        this.hooks.drawn();
    }

    place(i) {
        const entry = this.view[i];
        const verdict = this.hooks.verdict_of(entry.name);
        let shown = this.live.get(entry.name);
        if (!shown || shown.entry !== entry || shown.verdict !== verdict) {
            const row = draw_row(entry, this.geometry, verdict, this.hooks.focus());
            stats.drawn++;
            if (shown) {
                if (shown.entry !== null && shown.entry !== entry)
                    row.classList.add("changed");
                this.hooks.redraw(shown.row, row);
            } else {
                this.space.append(row);
            }
            shown = {row, entry, verdict, top: -1, at: -1};
            this.live.set(entry.name, shown);
        }
        if (shown.at !== i) {
            shown.at = i;
            shown.row.setAttribute("aria-rowindex", i + 1);
            shown.row.classList.toggle("odd", i % 2 === 1);
        }
        if (shown.top !== this.tops[i]) {
            shown.top = this.tops[i];
            shown.row.style.transform = `translateY(${this.tops[i]}px)`;
            shown.row.style.height = `${this.tops[i + 1] - this.tops[i]}px`;
        }
    }

    /* A screen reader follows the order in the document. Moving an element would remove its focus. */
    order() {
        const sorted = [...this.live.values()].sort((a, b) => a.at - b.at);
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
        const top = this.tops[i];
        const bottom = this.tops[i + 1];
        if (top < this.scroller.scrollTop)
            this.scroller.scrollTop = top;
        else if (bottom > this.scroller.scrollTop + this.height)
            this.scroller.scrollTop = bottom - this.height;
        cancelAnimationFrame(this.frame);
        this.render();
    }
}
