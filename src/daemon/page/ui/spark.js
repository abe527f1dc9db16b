/* A line of the last hour, or of the minutes that are known. Its right end is now. */
import {count} from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 60;
const HEIGHT = 16;

const MINUTE_MS = 60000;
const MINUTES = 60;

/* A figure of the last hour that only this page keeps. It stays the same until the next value comes. */
export class Past {
    constructor() {
        this.samples = []; /* [minute, the last value in it] */
    }

    add(value, now) {
        const minute = Math.floor(now / MINUTE_MS);
        const last = this.samples[this.samples.length - 1];
        if (last && last[0] === minute)
            last[1] = value;
        else
            this.samples.push([minute, value]);
        while (this.samples.length > 1 && this.samples[1][0] <= minute - MINUTES)
            this.samples.shift();
    }

    /* A value for each minute, as draw() below takes them. */
    values(now) {
        const values = [];
        const minute = Math.floor(now / MINUTE_MS);
        let at = 0;
        for (let m = Math.max(this.samples[0]?.[0] ?? minute, minute - MINUTES); m <= minute; m++) {
            while (this.samples[at + 1]?.[0] <= m)
                at++;
            values.push(this.samples[at]?.[1] ?? 0);
        }
        return values;
    }
}

export class Spark {
    constructor() {
        this.svg = document.createElementNS(SVG, "svg");
        this.line = document.createElementNS(SVG, "polyline");
        this.svg.setAttribute("class", "spark");
        this.svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
        this.svg.setAttribute("role", "img");
        this.svg.append(this.line);
        this.svg.style.display = "none";
    }

    /* `values` are the minutes, the oldest first, then the present value; `top` is the value of the upper
     * edge. Two values are needed for a line. */
    draw(values, top) {
        const shown = values.length >= 2;
        this.svg.style.display = shown ? "" : "none";
        if (!shown)
            return;
        const y = (v) => HEIGHT - 1 - Math.round((v / Math.max(1, top)) * (HEIGHT - 2) * 10) / 10;
        const step = WIDTH / (values.length - 1);
        const points = values.map((v, i) => `${Math.round(10 * i * step) / 10},${y(v)}`).join(" ");
        if (this.line.getAttribute("points") === points)
            return;
        this.line.setAttribute("points", points);
        const minutes = values.length - 1;
        this.svg.setAttribute("aria-label", `in the last ${minutes === 1 ? "minute" : `${minutes} minutes`} ${
            count(Math.min(...values))} to ${count(Math.max(...values))}`);
    }
}
