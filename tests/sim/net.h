/*
 * The network between the processes and the API server: http_client.h. A flight is one request with
 * its answer; it takes time, gets lost or breaks. It belongs to its process until the process
 * cancels it or dies; a request that was sent still arrives.
 */
#pragma once

#include "io/http_client.h"
#include "proc.h"

enum flight_stage {
    FLIGHT_CONNECTING,
    FLIGHT_SENT,      /* the request is on its way to the server */
    FLIGHT_WAITING,   /* the server works on it, or is silent */
    FLIGHT_ANSWERING, /* bytes of the answer arrive */
    FLIGHT_WATCHING,
    FLIGHT_OVER, /* all bytes that will come have arrived */
};

/* When the process has read `end` bytes of the reply, it knows this version of this object. */
struct mark {
    size_t end;
    unsigned kind;
    unsigned slot;
    uint64_t rv;
    bool of_get;
};

struct flight {
    struct happening h;
    struct flight *next; /* the list of all flights */
    struct flight *prev;
    enum flight_stage stage;

    struct proc *proc; /* the sender; NULL: it has died */
    unsigned sender;
    uint64_t incarnation;
    struct http_call *call; /* NULL: the caller has cancelled it */
    struct timer total;
    struct timer quiet;
    struct deferred fail; /* a timeout, or on_chunk refused the data */
    enum http_outcome fail_outcome;
    enum errc fail_code;
    uint64_t heard_ms;
    bool heard;

    char method[8];
    struct text path;
    struct text body;
    struct name bearer;
    struct name asked;       /* the UID of the pod that is being bound */
    const struct name *node; /* the node of a Binding; NULL: no Binding */
    uint64_t sent_ms;

    enum http_outcome outcome;
    unsigned status;
    uint64_t retry_after_ms;
    uint64_t delay_ms; /* until the answer is sent */
    struct text reply;
    size_t arrived;
    size_t consumed;
    struct mark *marks;
    size_t n_marks;
    size_t cap_marks;

    /* For a watch: */
    unsigned kind;
    size_t next_change;
    uint64_t version; /* the last version that the server has sent */
    uint64_t ends_ms;
    uint64_t bookmark_ms;
    uint64_t lag_ms; /* how far its server is behind */
    uint64_t lag_until_ms;
    bool silent;
    bool connected;
};

extern struct flight *flights;

/* Sends the server's answer, f->reply, after the delay. */
void flight_answer(struct flight *f, unsigned status, uint64_t delay_ms);

/* The connection ends before the answer is complete. The process keeps the bytes that have
 * arrived. */
void flight_break(struct flight *f, enum http_outcome outcome, uint64_t delay_ms);

/* No more bytes will arrive for this flight. */
void flight_over(struct flight *f, enum http_outcome outcome);

void flight_mark(struct flight *f, unsigned kind, unsigned slot, uint64_t rv);

/* Bytes of the flight have arrived: wakes its process. */
void flight_arrived(struct flight *f, size_t bytes);

/* Hands one event to the process; false: there was none. The process' loop calls it in its turn. */
bool flights_deliver(struct proc *p);
void flights_drop(struct proc *p); /* the process has died */
void flights_forget_all(void);

uint64_t net_latency(void);
