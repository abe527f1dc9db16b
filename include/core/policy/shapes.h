/*
 * The shapes of the pods that came: how many ask for the same CPU, cards, share of each card and
 * models. The placement policies learn from them which requests to expect. Older pods count less.
 *
 * The table is small and has an upper limit. When it is full, a new shape replaces the one with the
 * least weight.
 */
#pragma once

#include "base/str.h"
#include "core/request/request.h"

#define SHAPES_MAX 512

/* A card's memory or compute in hundredths, rounded up for a request and down for what is free. */
#define SHAPE_STEPS 100

/* Longest list of models of a shape, in bytes: each lesson matches it with each kind of cards. */
#define SHAPE_MODELS_MAX ((size_t)256)

/* Pods after which a pod's weight is half. */
#define SHAPES_HALF_LIFE 20000

struct shape {
    int64_t cpu;      /* in thousandths of a core */
    int64_t mem;      /* of each card, in the device plugin's unit */
    uint32_t cards;   /* 0: it asks for no shared card */
    uint32_t percent; /* of each card's memory, if that is more than mem */
    uint32_t cores;   /* of each card's compute, in percent */
    bool whole;
    struct str models; /* as request.models */
};

struct known_shape {
    struct shape shape; /* its `models` views the next field */
    char *models;       /* owned; NULL: none */
    uint64_t hash;
    double weight; /* in units of shapes.unit */
    double price;  /* in cards; market.c's. 0: none yet */
};

struct shapes {
    struct known_shape all[SHAPES_MAX];
    uint32_t n;
    double unit;       /* weight of the latest pod */
    double sum;        /* of all weights */
    uint64_t arrivals; /* pods so far */
    bool ageless;      /* older pods count as much as new ones */
};

void shapes_done(struct shapes *s);

/* The shape of a request; `models` views the request's. */
struct shape shape_of(const struct request *r);

/* Hundredths of a card of this size that the pod needs on each of its cards; 0: it does not fit on
 * an empty card, or asks for none. */
uint32_t shape_steps(const struct shape *x, int64_t card_total);

/* Counts a pod. With a longer list of models, or without memory, it is not counted: only costs
 * depend on it. */
void shapes_add(struct shapes *s, const struct shape *x);
