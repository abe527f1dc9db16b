/*
 * The registration: histories with the action that must follow each input, and random walks against
 * a model of the kubelet.
 *
 *   REGISTER_SEED=N REGISTER_WALKS=1 test_register_step     replays one walk
 */
#include "node/kubelet/register_step.h"
#include "seeded.h"

#define ON(event) REGISTER_ON_##event

struct expected {
    enum register_event event;
    enum register_action_type type;
    uint64_t delay_ms;
    bool restarted;
};

static void assert_history(struct register_state *s, const struct expected *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct register_action a = register_step(s, e[i].event);
        ck_assert_msg(a.type == e[i].type && a.delay_ms == e[i].delay_ms &&
                          a.restarted == e[i].restarted,
                      "input %zu: action %d, %u ms, restarted %d; expected %d, %u, %d", i,
                      (int)a.type, (unsigned)a.delay_ms, a.restarted, (int)e[i].type,
                      (unsigned)e[i].delay_ms, e[i].restarted);
    }
}

#define HISTORY(s, ...)                             \
    do {                                            \
        const struct expected h_[] = {__VA_ARGS__}; \
        assert_history((s), h_, COUNT_OF(h_));      \
    } while (0)

#define REGISTERED                                                       \
    {ON(START), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_ASK, 0, 0}, \
        {ON(DONE), REGISTER_WAIT, 10000, 0},                             \
    {                                                                    \
        ON(STREAM), REGISTER_REPORT, 10000, 1                            \
    }

TEST(test_usual)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, REGISTERED, {ON(TIMER), REGISTER_STAY, 0, 0});
}

/* The stream may come before the answer to Register, and the answer may be lost. */
TEST(test_stream_first)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, {ON(START), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_ASK, 0, 0},
            {ON(STREAM), REGISTER_STAY, 0, 0}, {ON(DONE), REGISTER_REPORT, 10000, 1});
    struct register_state lost = {.streams = 0};
    HISTORY(&lost, {ON(START), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_ASK, 0, 0},
            {ON(STREAM), REGISTER_STAY, 0, 0}, {ON(FAILED), REGISTER_REPORT, 10000, 1});
    struct register_state late = {.streams = 0};
    HISTORY(&late, {ON(START), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_ASK, 0, 0},
            {ON(FAILED), REGISTER_WAIT, 10, 0}, {ON(STREAM), REGISTER_REPORT, 10000, 1});
}

TEST(test_folder_is_missing)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, {ON(START), REGISTER_SERVE, 0, 0}, {ON(NOT_SERVED), REGISTER_WAIT, 500, 0},
            {ON(TIMER), REGISTER_SERVE, 0, 0}, {ON(NOT_SERVED), REGISTER_WAIT, 1000, 0},
            {ON(KUBELET), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_ASK, 0, 0});
}

TEST(test_back_off)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, {ON(START), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_ASK, 0, 0},
            {ON(FAILED), REGISTER_WAIT, 10, 0}, {ON(TIMER), REGISTER_ASK, 0, 0},
            {ON(FAILED), REGISTER_WAIT, 20, 0}, {ON(TIMER), REGISTER_ASK, 0, 0},
            /* No ListAndWatch within 10 s. */
            {ON(DONE), REGISTER_WAIT, 10000, 0}, {ON(TIMER), REGISTER_WAIT, 40, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 80, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 160, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 320, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 640, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 1280, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 2560, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 5120, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 10240, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 16000, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 16000, 0},
            /* The kubelet starts: at once. */
            {ON(KUBELET), REGISTER_ASK, 0, 0}, {ON(FAILED), REGISTER_WAIT, 10, 0});
}

/* The pause doubles as long as registrations do not last. */
TEST(test_stream_is_gone)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, REGISTERED, {ON(STREAM_GONE), REGISTER_WAIT, 500, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(DONE), REGISTER_WAIT, 10000, 0},
            {ON(STREAM), REGISTER_REPORT, 10000, 0}, {ON(STREAM_GONE), REGISTER_WAIT, 1000, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(STREAM), REGISTER_STAY, 0, 0},
            {ON(DONE), REGISTER_REPORT, 10000, 0}, {ON(TIMER), REGISTER_STAY, 0, 0},
            {ON(STREAM_GONE), REGISTER_WAIT, 500, 0});
}

/* An old stream that ends makes the kubelet disconnect the newest client: all are closed. */
TEST(test_one_of_two_is_gone)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, REGISTERED, {ON(STREAM), REGISTER_STAY, 0, 0},
            {ON(STREAM_GONE), REGISTER_CLOSE, 500, 0}, {ON(TIMER), REGISTER_ASK, 0, 0});
}

TEST(test_gone_while_asking)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, {ON(START), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_ASK, 0, 0},
            {ON(STREAM), REGISTER_STAY, 0, 0}, {ON(STREAM_GONE), REGISTER_STAY, 0, 0},
            {ON(DONE), REGISTER_WAIT, 500, 0}, {ON(TIMER), REGISTER_ASK, 0, 0});
}

/* A stream of an earlier Register is closed before the next one. */
TEST(test_stream_in_pause)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, REGISTERED, {ON(STREAM_GONE), REGISTER_WAIT, 500, 0},
            {ON(STREAM), REGISTER_STAY, 0, 0}, {ON(TIMER), REGISTER_CLOSE, 1000, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0});
}

TEST(test_kubelet_starts)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, REGISTERED, {ON(STREAM_GONE), REGISTER_WAIT, 500, 0},
            {ON(LOST), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_WAIT, 1000, 0},
            {ON(KUBELET), REGISTER_ASK, 0, 0}, {ON(DONE), REGISTER_WAIT, 10000, 0},
            {ON(STREAM), REGISTER_REPORT, 10000, 1});
    /* Its socket is seen before the end of the old stream is. */
    HISTORY(&s, {ON(KUBELET), REGISTER_CLOSE, 500, 0}, {ON(KUBELET), REGISTER_ASK, 0, 0},
            /* Whether the Register under way reaches the old or the new one is not known. */
            {ON(KUBELET), REGISTER_WAIT, 500, 0}, {ON(TIMER), REGISTER_ASK, 0, 0},
            {ON(DONE), REGISTER_WAIT, 10000, 0}, {ON(KUBELET), REGISTER_WAIT, 500, 0},
            {ON(STREAM), REGISTER_STAY, 0, 0}, {ON(TIMER), REGISTER_CLOSE, 1000, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(STREAM), REGISTER_STAY, 0, 0},
            {ON(DONE), REGISTER_REPORT, 10000, 1});
}

TEST(test_own_socket_is_lost)
{
    struct register_state s = {.streams = 0};
    HISTORY(&s, REGISTERED, {ON(LOST), REGISTER_SERVE, 0, 0}, {ON(SERVED), REGISTER_WAIT, 500, 0},
            {ON(TIMER), REGISTER_ASK, 0, 0}, {ON(LOST), REGISTER_SERVE, 0, 0},
            {ON(SERVED), REGISTER_WAIT, 1000, 0}, {ON(TIMER), REGISTER_ASK, 0, 0},
            {ON(STREAM), REGISTER_STAY, 0, 0}, {ON(DONE), REGISTER_REPORT, 10000, 0});
}

/* ---- random walks ---- */

/*
 * The model. The kubelet keeps one client for the resource, `current`; each Register makes a new
 * one without ending the last. A client has a connection to the socket of that time, and soon sends
 * ListAndWatch, unless its connection fails. Some time after its stream has ended it disconnects
 * the client that is current then. At its start it removes our socket and then creates its own.
 */
enum sim_what {
    SIM_NOTHING,
    SIM_PLUGIN_TIMER,
    SIM_REGISTER,  /* Register reaches the kubelet */
    SIM_ANSWER,    /* its answer reaches the plugin; arg: whether it succeeded */
    SIM_LIST,      /* the client sends ListAndWatch; arg: client */
    SIM_DROP,      /* the client's connection fails; arg: client */
    SIM_RUN_ENDS,  /* the kubelet notices that the client's stream has ended; arg: client */
    SIM_TELL_GONE, /* the plugin notices that a client's stream has ended; arg: client */
    SIM_NOTICE_LOST,
    SIM_NOTICE_KUBELET,
    SIM_KUBELET_STARTS,
    SIM_KUBELET_LISTENS,
    SIM_FOLDER_BACK,
    SIM_FAULT, /* of the world */
};

struct sim_event {
    uint64_t at;
    enum sim_what what;
    unsigned arg;
    unsigned ticket; /* of the timer or the request: outdated ones do nothing */
};

struct sim_client {
    unsigned epoch;  /* of the kubelet */
    unsigned socket; /* of the plugin */
    bool connected;
    bool wants; /* ListAndWatch is to come */
    bool open;  /* the plugin has its stream */
};

#define SIM_EVENTS  256
#define SIM_CLIENTS 512
#define SIM_NONE    UINT32_MAX

struct sim {
    uint64_t random;
    uint64_t seed;
    uint64_t now;
    struct sim_event events[SIM_EVENTS];
    size_t n_events;
    struct sim_client clients[SIM_CLIENTS];
    unsigned n_clients;
    unsigned current; /* SIM_NONE */
    unsigned epoch;
    bool up;         /* the kubelet listens */
    bool folder;     /* is there */
    unsigned socket; /* of the plugin; 0: not in the folder */
    unsigned last_socket;
    unsigned ticket; /* of the plugin's timer and request */
    bool calm;       /* no more faults */
    uint64_t slow;   /* how late the kubelet may notice the end of a stream */
    struct register_state plugin;
    unsigned told;
    unsigned told_restarted;
    unsigned asked;
};

static uint32_t sim_draw(struct sim *m, uint32_t below)
{
    return seeded_draw(&m->random, below);
}

static void sim_add(struct sim *m, uint64_t delay, enum sim_what what, unsigned arg)
{
    ck_assert_uint_lt(m->n_events, SIM_EVENTS);
    m->events[m->n_events++] =
        (struct sim_event){.at = m->now + delay, .what = what, .arg = arg, .ticket = m->ticket};
}

static void sim_feed(struct sim *m, enum register_event event);

/* The connection ends: each side notices, if its half was open. */
static void sim_disconnect(struct sim *m, unsigned i)
{
    struct sim_client *c = &m->clients[i];
    if (!c->connected)
        return;
    c->connected = c->wants = false;
    if (c->open)
        sim_add(m, sim_draw(m, 50), SIM_TELL_GONE, i);
    if (c->epoch == m->epoch)
        sim_add(m, sim_draw(m, (uint32_t)m->slow), SIM_RUN_ENDS, i);
}

/* The plugin ends a stream of its own accord; the connection may stay for a while. */
static void sim_close_streams(struct sim *m, bool connections)
{
    for (unsigned i = 0; i < m->n_clients; i++) {
        struct sim_client *c = &m->clients[i];
        bool was_open = c->open;
        c->open = false;
        if (connections)
            sim_disconnect(m, i);
        else if (was_open && c->connected) {
            c->connected = c->wants = false;
            if (c->epoch == m->epoch)
                sim_add(m, sim_draw(m, (uint32_t)m->slow), SIM_RUN_ENDS, i);
        }
    }
}

static void sim_serve(struct sim *m)
{
    sim_close_streams(m, true);
    m->socket = m->folder ? ++m->last_socket : 0;
    sim_feed(m, m->socket != 0 ? REGISTER_ON_SERVED : REGISTER_ON_NOT_SERVED);
}

static void sim_check_tell(struct sim *m, const struct register_action *a)
{
    m->told++;
    m->told_restarted += a->restarted;
    ck_assert_msg(m->told > 1 || a->restarted, "seed %lu: the first TELL", (unsigned long)m->seed);
}

static void sim_feed(struct sim *m, enum register_event event)
{
    struct register_action a = register_step(&m->plugin, event);
    if (a.type == REGISTER_STAY)
        return;
    m->ticket++;
    switch (a.type) {
    case REGISTER_SERVE:
        ck_assert(event != REGISTER_ON_STREAM && event != REGISTER_ON_STREAM_GONE);
        sim_serve(m);
        return;
    case REGISTER_ASK:
        ck_assert(event != REGISTER_ON_STREAM && event != REGISTER_ON_STREAM_GONE &&
                  event != REGISTER_ON_DONE && event != REGISTER_ON_FAILED);
        for (unsigned i = 0; i < m->n_clients; i++)
            ck_assert_msg(!m->clients[i].open || !m->clients[i].connected,
                          "seed %lu: Register with an open stream", (unsigned long)m->seed);
        m->asked++;
        sim_add(m, sim_draw(m, 20), SIM_REGISTER, 0);
        return;
    case REGISTER_REPORT:
        sim_check_tell(m, &a);
        break;
    case REGISTER_CLOSE:
        sim_close_streams(m, false);
        break;
    case REGISTER_STAY:
    case REGISTER_WAIT:
        break;
    }
    ck_assert_uint_gt(a.delay_ms, 0);
    sim_add(m, a.delay_ms, SIM_PLUGIN_TIMER, 0);
}

static void sim_kubelet_stops(struct sim *m)
{
    m->up = false;
    m->epoch++;
    m->current = SIM_NONE;
    for (unsigned i = 0; i < m->n_clients; i++)
        sim_disconnect(m, i);
    sim_add(m, 1 + sim_draw(m, 5000), SIM_KUBELET_STARTS, 0);
}

static void sim_lose_socket(struct sim *m)
{
    if (m->socket != 0)
        sim_add(m, sim_draw(m, 30), SIM_NOTICE_LOST, m->socket);
    m->socket = 0;
}

static void sim_registers(struct sim *m)
{
    unsigned fate = m->calm ? 99 : sim_draw(m, 100);
    if (!m->up || m->socket == 0 || fate < 10) {
        sim_add(m, sim_draw(m, 100), SIM_ANSWER, false);
        return;
    }
    ck_assert_uint_lt(m->n_clients, SIM_CLIENTS);
    m->clients[m->n_clients] = (struct sim_client){
        .epoch = m->epoch, .socket = m->socket, .connected = true, .wants = true};
    m->current = m->n_clients++;
    sim_add(m, sim_draw(m, 400), SIM_LIST, m->current);
    if (fate < 20)
        sim_add(m, sim_draw(m, 3000), SIM_DROP, m->current);
    if (fate < 20 || fate >= 30) /* else the answer is lost */
        sim_add(m, sim_draw(m, 200), SIM_ANSWER, true);
    else
        sim_add(m, 2000, SIM_ANSWER, false);
}

static void sim_run_ends(struct sim *m, unsigned i)
{
    unsigned victim = m->current;
    if (m->clients[i].epoch != m->epoch || victim == SIM_NONE)
        return;
    m->current = SIM_NONE;
    sim_disconnect(m, victim);
}

static void sim_fault(struct sim *m)
{
    switch (sim_draw(m, 6)) {
    case 0:
    case 1:
        if (m->up)
            sim_kubelet_stops(m);
        break;
    case 2:
        sim_lose_socket(m);
        break;
    case 3:
        if (m->n_clients > 0)
            sim_disconnect(m, sim_draw(m, m->n_clients));
        break;
    case 4:
        if (m->current != SIM_NONE)
            sim_disconnect(m, m->current);
        break;
    case 5:
        if (m->folder) {
            sim_lose_socket(m);
            m->folder = false;
            sim_add(m, sim_draw(m, 4000), SIM_FOLDER_BACK, 0);
        }
        break;
    default:
        break;
    }
    sim_add(m, sim_draw(m, 15000), SIM_FAULT, 0);
}

static void sim_client_lists(struct sim *m, unsigned i)
{
    struct sim_client *c = &m->clients[i];
    if (!c->wants || c->socket != m->last_socket)
        return;
    c->wants = false;
    c->open = true;
    sim_feed(m, REGISTER_ON_STREAM);
}

static void sim_do(struct sim *m, const struct sim_event *e)
{
    switch (e->what) {
    case SIM_PLUGIN_TIMER:
        if (e->ticket == m->ticket)
            sim_feed(m, REGISTER_ON_TIMER);
        break;
    case SIM_REGISTER: /* even if the plugin has given it up: it was sent */
        sim_registers(m);
        break;
    case SIM_ANSWER:
        if (e->ticket == m->ticket && m->plugin.phase == REGISTER_ASKING)
            sim_feed(m, e->arg != 0 ? REGISTER_ON_DONE : REGISTER_ON_FAILED);
        break;
    case SIM_LIST:
        sim_client_lists(m, e->arg);
        break;
    case SIM_DROP:
        sim_disconnect(m, e->arg);
        break;
    case SIM_RUN_ENDS:
        sim_run_ends(m, e->arg);
        break;
    case SIM_TELL_GONE:
        if (m->clients[e->arg].open) {
            m->clients[e->arg].open = false;
            sim_feed(m, REGISTER_ON_STREAM_GONE);
        }
        break;
    case SIM_NOTICE_LOST:
        if (m->socket == 0 && e->arg == m->last_socket)
            sim_feed(m, REGISTER_ON_LOST);
        break;
    case SIM_NOTICE_KUBELET:
        sim_feed(m, REGISTER_ON_KUBELET);
        break;
    case SIM_KUBELET_STARTS:
        sim_lose_socket(m);
        m->folder = true;
        sim_add(m, sim_draw(m, 300), SIM_KUBELET_LISTENS, 0);
        break;
    case SIM_KUBELET_LISTENS:
        m->up = true;
        sim_add(m, sim_draw(m, 30), SIM_NOTICE_KUBELET, 0);
        break;
    case SIM_FOLDER_BACK:
        m->folder = true;
        break;
    case SIM_FAULT:
        if (!m->calm)
            sim_fault(m);
        break;
    case SIM_NOTHING:
        break;
    }
}

/* Takes the earliest event; of those of one time the first that was added. */
static bool sim_turn(struct sim *m)
{
    size_t next = 0;
    if (m->n_events == 0)
        return false;
    for (size_t i = 1; i < m->n_events; i++) {
        if (m->events[i].at < m->events[next].at)
            next = i;
    }
    struct sim_event e = m->events[next];
    memmove(&m->events[next], &m->events[next + 1],
            (m->n_events - next - 1) * sizeof(m->events[0]));
    m->n_events--;
    m->now = e.at;
    sim_do(m, &e);
    return true;
}

/* Faults for two minutes, then none: after some time the plugin is registered, and stays so. */
static void sim_walk(uint64_t seed)
{
    static struct sim m;
    m = (struct sim){.random = seed, .seed = seed, .current = SIM_NONE, .up = true, .folder = true};
    m.slow = 1 + sim_draw(&m, 3000);
    sim_feed(&m, REGISTER_ON_START);
    sim_add(&m, sim_draw(&m, 15000), SIM_FAULT, 0);
    while (m.now < 120000 && sim_turn(&m))
        m.calm = false;
    m.calm = true;
    uint64_t quiet = m.now;
    while (sim_turn(&m))
        ck_assert_msg(m.now - quiet < 300000, "seed %lu: no rest", (unsigned long)seed);
    ck_assert_msg(m.plugin.phase == REGISTER_DONE, "seed %lu: phase %d", (unsigned long)seed,
                  (int)m.plugin.phase);
    ck_assert_msg(m.current != SIM_NONE && m.clients[m.current].open &&
                      m.clients[m.current].connected && m.clients[m.current].epoch == m.epoch &&
                      m.clients[m.current].socket == m.socket,
                  "seed %lu: the kubelet does not watch the plugin", (unsigned long)seed);
    ck_assert_uint_ge(m.told, m.told_restarted);
    ck_assert_uint_lt(m.asked, 200);
}

TEST(test_walks)
{
    uint64_t first = seeded_setting("REGISTER_SEED", 1);
    uint64_t n = seeded_setting("REGISTER_WALKS", 2000);
    for (uint64_t i = 0; i < n; i++)
        sim_walk(first + i);
}
