/*
 * Makes elements. Text from outside becomes only a text node, or the value of an attribute that is not
 * a URL, a handler or a style: nothing here parses HTML.
 */
const SVG = "http://www.w3.org/2000/svg";

/* el("p", {class: "x", onclick: f}, "text", child, ...); null and false are skipped. */
export function el(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes ?? {})) {
        if (value === null || value === undefined || value === false)
            continue;
        if (key.startsWith("on"))
            e.addEventListener(key.slice(2), value);
        else
            e.setAttribute(key, value === true ? "" : String(value));
    }
    e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
    return e;
}

/* An icon from the page's own symbols. */
export function icon(name) {
    const svg = document.createElementNS(SVG, "svg");
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", `#i-${name}`);
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    svg.append(use);
    return svg;
}

export const by_id = (id) => document.getElementById(id);

const numbers = new Intl.NumberFormat("en");
/* 40000 as "40,000". Amounts of memory have no unit, as in inspect. */
export const count = (n) => numbers.format(n);

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/* Rounded down, as in kubectl cardpack: only what is full has 100. */
export const percent = (part, whole) => (whole > 0 ? Math.floor((part * 100) / whole) : 0);

export function clock(ms) {
    return new Date(ms).toLocaleTimeString("en-GB");
}

/* The time since then, short enough for a list: "3 m". */
export function ago(since, now) {
    const s = Math.max(0, Math.round((now - Date.parse(since)) / 1000));
    if (Number.isNaN(s))
        return "";
    if (s < 90)
        return `${s} s`;
    if (s < 5400)
        return `${Math.round(s / 60)} m`;
    return s < 129600 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`;
}
