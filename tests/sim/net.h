/*
 * Between the processes and the API server: http_client.h, with flights that take their time, get
 * lost and break. A flight belongs to its process until that cancels it or dies; what was sent goes
 * on its way.
 */
#pragma once

#include "http_client.h"
#include "proc.h"

enum flight_stage {
    FLIGHT_CONNECTING,
    FLIGHT_SENT,      /* on its way to the server */
    FLIGHT_WAITING,   /* the server is at work, or says nothing */
    FLIGHT_ANSWERING, /* bytes arrive */
    FLIGHT_WATCHING,
    FLIGHT_OVER, /* all that will come has arrived */
};

/* Up to `end` bytes of the reply, the process knows this version of this object. */
struct mark {
    size_t end;
    enum cache_kind kind;
    unsigned slot;
    uint64_t rv;
    bool of_get;
};

struct flight {
    struct happening h;
    struct flight *next; /* all there are */
    struct flight *prev;
    enum flight_stage stage;

    struct proc *proc; /* who sent it; NULL: dead since */
    unsigned sender;
    uint64_t incarnation;
    struct http_call *call; /* NULL: nobody waits */
    struct timer total;
    struct timer quiet;
    struct deferred fail; /* a timeout, or on_chunk said no */
    enum http_outcome fail_outcome;
    enum errc fail_code;
    uint64_t heard_ms;
    bool heard;

    char method[8];
    struct text path;
    struct text body;
    struct name bearer;
    struct name asked; /* the UID that a bind asks about */
    uint64_t sent_ms;

    enum http_outcome outcome;
    unsigned status;
    uint64_t retry_after_ms;
    struct text reply;
    size_t arrived;
    size_t consumed;
    struct mark *marks;
    size_t n_marks;
    size_t cap_marks;

    /* A watch: */
    enum cache_kind kind;
    size_t next_change;
    uint64_t version; /* the last one sent */
    uint64_t ends_ms;
    uint64_t bookmark_ms;
    uint64_t lag_until_ms;
    bool silent;
    bool connected;
};

extern struct flight *flights;

/* The server's answer, after a while. The reply is in f->reply. */
void flight_answer(struct flight *f, unsigned status, uint64_t delay_ms);

/* The connection ends without a whole answer; what has arrived stays. */
void flight_break(struct flight *f, enum http_outcome outcome, uint64_t delay_ms);

/* All that comes of it has arrived. */
void flight_over(struct flight *f, enum http_outcome outcome);

void flight_mark(struct flight *f, enum cache_kind kind, unsigned slot, uint64_t rv);

/* Something of the flight has arrived: its process is told. */
void flight_arrived(struct flight *f, size_t bytes);

/* Whether the process got something to do; for its loop's turn. */
bool flights_deliver(struct proc *p);
void flights_drop(struct proc *p); /* the process has died */
void flights_forget_all(void);

uint64_t net_latency(void);
