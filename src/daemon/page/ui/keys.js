/*
 * The keyboard in the picture. Tab reaches one element of it. The arrow keys move the focus: up and
 * down by nodes, left and right by cards. Enter goes from a card into its pods, and Escape back.
 */
export class Keys {
    constructor(rows, hooks) {
        this.rows = rows;
        this.hooks = hooks; /* open(name, col, pod) */
        this.name = null;
        this.col = -1; /* -1: the node itself */
        this.pod = -1; /* -1: the card itself */
        this.rows.space.addEventListener("keydown", (event) => this.press(event));
        this.rows.space.addEventListener("focusin", (event) => this.take(event.target));
        this.rows.space.addEventListener("click", (event) => this.click(event));
    }

    entry() {
        return this.rows.view[this.rows.at.get(this.name)];
    }

    /* The place (node, card, pod) of an element, or null. */
    place_of(target) {
        const row = target.closest(".row");
        const cell = target.closest("[data-col]");
        if (!row || !cell)
            return null;
        const pod = target.closest(".pod:not(.more)");
        const pods = pod ? [...cell.querySelectorAll(".pod:not(.more)")] : [];
        return {name: row.dataset.name, col: Number(cell.dataset.col), pod: pods.indexOf(pod)};
    }

    element() {
        const row = this.rows.row_of(this.name);
        const cell = row?.querySelector(`[data-col="${this.col}"]`) ?? row?.firstElementChild;
        if (this.pod < 0)
            return cell ?? null;
        return cell?.querySelectorAll(".pod:not(.more)")[this.pod] ?? cell ?? null;
    }

    take(target) {
        const place = this.place_of(target);
        if (place)
            this.mark(place);
    }

    mark(place) {
        this.rows.space.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
        Object.assign(this, place);
        this.element()?.setAttribute("tabindex", "0");
    }

    /* Called after rows were drawn: makes one element reachable with Tab. */
    drawn() {
        if (this.name === null || !this.rows.at.has(this.name)) {
            const first = this.rows.view[this.rows.index_at(this.rows.top)];
            Object.assign(this, {name: first?.name ?? null, col: this.rows.lines ? 0 : -1, pod: -1});
        }
        const e = this.element();
        if (e && e.getAttribute("tabindex") !== "0")
            this.mark({name: this.name, col: this.col, pod: this.pod});
    }

    /* Replaces a row with a new one; the focus stays at its place. */
    redraw(old, row) {
        const focused = old.contains(document.activeElement);
        old.replaceWith(row);
        if (row.dataset.name !== this.name)
            return;
        const e = this.row_element(row);
        e.setAttribute("tabindex", "0");
        if (focused)
            e.focus({preventScroll: true});
    }

    row_element(row) {
        const cell = row.querySelector(`[data-col="${this.col}"]`) ?? row.firstElementChild;
        return (this.pod >= 0 && cell.querySelectorAll(".pod:not(.more)")[this.pod]) || cell;
    }

    pinned() {
        return this.rows.space.contains(document.activeElement) ? this.name : null;
    }

    go(place) {
        const next = {name: this.name, col: this.col, pod: this.pod, ...place};
        const i = this.rows.at.get(next.name);
        if (i === undefined)
            return;
        next.col = Math.max(this.rows.lines ? 0 : -1, Math.min(next.col, this.rows.view[i].cards.length - 1));
        this.name = next.name;
        this.rows.reveal(i);
        this.mark(next);
        this.element()?.focus({preventScroll: true});
    }

    by_rows(step) {
        const at = this.rows.at.get(this.name) ?? 0;
        const i = this.rows.beside(at, step);
        this.go({name: this.rows.view[i].name, pod: -1});
    }

    by_columns(step) {
        const entry = this.entry();
        if (!entry)
            return;
        if (this.pod >= 0) {
            const n = this.rows.row_of(this.name)
                ?.querySelectorAll(`[data-col="${this.col}"] .pod:not(.more)`).length ?? 0;
            this.go({pod: Math.max(0, Math.min(n - 1, this.pod + step))});
        } else {
            this.by_cards(entry, this.col + step);
        }
    }

    /* In the dense view the cards of a line follow each other, and the node itself is no place. */
    by_cards(entry, col) {
        const {view, at, lines} = this.rows;
        const next = lines && (col < 0 ? -1 : col >= entry.cards.length ? 1 : 0);
        const other = next ? view[at.get(this.name) + next] : null;
        if (other)
            this.go({name: other.name, col: next < 0 ? other.cards.length - 1 : 0});
        else
            this.go({col: Math.max(lines ? 0 : -1, Math.min(entry.cards.length - 1, col))});
    }

    page() {
        const {height, tops} = this.rows;
        const lines = Math.max(1, tops.length - 1);
        return Math.max(1, Math.floor(height / (tops[lines] / lines || 50)) - 1);
    }

    enter() {
        const card = this.entry()?.cards[this.col];
        if (this.pod < 0 && card && (card.pods ?? []).length > 0 && !this.rows.lines)
            this.go({pod: 0});
        else
            this.hooks.open(this.name, this.col, this.pod);
    }

    escape() {
        if (this.pod < 0)
            return false;
        this.go({pod: -1});
        return true;
    }

    press(event) {
        if (event.altKey || event.metaKey || this.rows.view.length === 0)
            return;
        const last = this.rows.view.length - 1;
        const end = this.entry()?.cards.length - 1;
        const whole = event.ctrlKey;
        const keys = {
            ArrowDown: () => this.by_rows(1),
            ArrowUp: () => this.by_rows(-1),
            ArrowRight: () => this.by_columns(1),
            ArrowLeft: () => this.by_columns(-1),
            PageDown: () => this.by_rows(this.page()),
            PageUp: () => this.by_rows(-this.page()),
            Home: () => this.go(whole ? {name: this.rows.view[0].name, col: -1, pod: -1}
                                      : {col: -1, pod: -1}),
            End: () => this.go(whole ? {name: this.rows.view[last].name, pod: -1}
                                     : {col: end, pod: -1}),
            Enter: () => this.enter(),
            " ": () => this.hooks.open(this.name, this.col, this.pod),
        };
        if (event.key === "Escape" && this.escape()) {
            event.preventDefault();
            event.stopPropagation();
        } else if (keys[event.key]) {
            event.preventDefault();
            keys[event.key]();
        }
    }

    click(event) {
        const place = this.place_of(event.target);
        if (!place)
            return;
        this.mark(place);
        this.element()?.focus({preventScroll: true});
        this.hooks.open(place.name, place.col, place.pod);
    }
}
