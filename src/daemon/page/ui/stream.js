/*
 * The daemon's event stream. An EventSource reconnects by itself after a broken connection, but not
 * after an answer that is not a stream (503, 401, a proxy's page): then this module makes a new one,
 * with growing pauses. It detects a silently broken connection with a request of its own, because
 * scripts can't see the stream's comments, which keep proxies from closing it.
 */
const RETRY_MS = [1000, 2000, 4000, 8000, 15000];
const SILENCE_MS = 40000;

const NAMES = ["hello", "nodes", "ready", "pods", "status", "quotas", "history"];

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
        /* The browser may keep a page for its back button: such a page must not hold one of six
         * connections. */
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

    /* An EventSource does not report the reason; the daemon may. */
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
            /* no answer at all: the page shows that already */
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
