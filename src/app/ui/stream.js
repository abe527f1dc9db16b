/*
 * The events of the daemon. An EventSource tries again by itself after a broken connection, but not
 * after an answer that is no stream (503, 401, a proxy's page): then a new one is made, later and
 * later. A connection that broke without a word is found by asking: comments of the stream, which keep
 * proxies from closing it, are not visible from here.
 */
const RETRY_MS = [1000, 2000, 4000, 8000, 15000];
const SILENCE_MS = 40000;

const NAMES = ["hello", "nodes", "ready", "pods", "status"];

export class Stream {
    /* on.NAME(data) for each event, on.link(state, why): connecting, live or lost. */
    constructor(url, on) {
        this.url = url;
        this.on = on;
        this.tries = 0;
        this.timer = 0;
        this.heard = 0;
        this.open();
        setInterval(() => this.check(), 10000);
        /* A page that is left may be kept for the way back: not with a connection of the browser's six. */
        addEventListener("pagehide", () => this.close());
        addEventListener("pageshow", (event) => event.persisted && this.retry_now());
        addEventListener("online", () => this.retry_now());
        addEventListener("offline", () => this.lost("this machine is offline"));
    }

    open() {
        const source = new EventSource(this.url);
        this.source = source;
        this.heard = performance.now();
        for (const name of NAMES) {
            source.addEventListener(name, (event) => {
                this.heard = performance.now();
                if (source === this.source)
                    this.take(name, event.data);
            });
        }
        source.addEventListener("error", () => {
            if (source === this.source)
                this.fail();
        });
    }

    take(name, text) {
        let data;
        try {
            data = JSON.parse(text);
        } catch (error) {
            this.source.close();
            this.lost(`the event "${name}" can't be read: ${error.message}`);
            this.retry_later();
            return;
        }
        if (name === "hello") {
            this.tries = 0;
            this.on.link("live", "");
        }
        this.on[name](data);
    }

    fail() {
        this.source.close();
        this.lost("");
        this.retry_later();
    }

    /* An EventSource does not say why; the daemon may. */
    async lost(why) {
        this.on.link("lost", why);
        if (why !== "")
            return;
        const tries = this.tries;
        try {
            const answer = await fetch("../readyz", {cache: "no-store"});
            const text = (await answer.text()).trim().slice(0, 200);
            if (tries + 1 >= this.tries && this.source.readyState === EventSource.CLOSED)
                this.on.link("lost", answer.ok ? "" : `it answers ${answer.status}: ${text}`);
        } catch {
            /* it does not answer at all, which is what is shown already */
        }
    }

    close() {
        clearTimeout(this.timer);
        this.source.close();
    }

    retry_later() {
        clearTimeout(this.timer);
        const wait = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)];
        this.timer = setTimeout(() => this.open(), wait);
    }

    retry_now() {
        this.close();
        this.open();
    }

    async check() {
        const source = this.source;
        if (source.readyState !== EventSource.OPEN || performance.now() - this.heard < SILENCE_MS)
            return;
        const own = new AbortController();
        const timer = setTimeout(() => own.abort(), 8000);
        try {
            await fetch("../healthz", {cache: "no-store", signal: own.signal});
            this.heard = performance.now();
        } catch {
            if (source === this.source)
                this.fail();
        } finally {
            clearTimeout(timer);
        }
    }
}
