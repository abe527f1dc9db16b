/* What a solve works on: shapes, kinds of cards, and what is idle. market_stock.c copies it,
 * market_solve.c finds the prices. */
#pragma once

#include "base/sort.h"
#include "core/policy/market.h"

/* What shape_steps says of a card of this kind; 0 also if the shape rules the model out. w as in
 * step_budget_matches_model. */
uint32_t market_kind_steps(const struct market_kind *kind, const struct shape *x,
                           struct step_budget *w);

/* The node's idle cores, in thousandths; an unknown amount, or a very large one, counts as a
 * thousand cores. */
int64_t market_cores(const struct node *n);
int64_t market_cores_of(int64_t cpu);

#define RATES MARKET_RATES
#define FULL  SHAPE_STEPS

struct solve_shape {
    uint32_t index; /* in shapes.all */
    uint64_t hash;  /* there, when the solve began */
    uint32_t cards;
    double share;  /* of all pods */
    double cores;  /* CPU */
    double filled; /* cards that one pod fills */
    double worth;
    double price;
    double sum;    /* of the prices of the later iterations */
    double supply; /* expected pods */
};

typedef double by_rate[RATES];

/* One kind of cards, or several that no shape distinguishes. */
struct solve_class {
    uint8_t steps[SHAPES_MAX]; /* by solve_shape: hundredths on each card; 0: it does not fit */
    uint32_t sizes[FULL];      /* the different ones of shapes with one card */
    uint32_t n_sizes;
    uint32_t most;            /* cards on one node, at most MARKET_FREE_MAX */
    by_rate shrink[FULL + 1]; /* Z(r) would overflow: w and z are multiplied by this */
    by_rate w[FULL + 1];
    by_rate z[FULL + 1];
    by_rate part[FULL + 1]; /* v */
    by_rate growth; /* F(k) would overflow: f and e are divided by exp(growth) for each card */
    by_rate one;    /* what a card without a pod of several cards counts */
    bool counts[MARKET_FREE_MAX + 1]; /* of cards, for which shapes ask */
    by_rate e[MARKET_FREE_MAX + 1];
    by_rate f[MARKET_FREE_MAX + 1]; /* F */
    by_rate free[MARKET_FREE_MAX + 1];
    by_rate parts_met[FULL + 1];
    by_rate frees_met[MARKET_FREE_MAX + 1];
};

/* Some cards of a node with the same class and as much left. */
struct solve_item {
    uint8_t class;
    uint8_t left; /* hundredths; FULL: wholly free */
    uint16_t count;
};

/* What is idle on a node, or on several equal ones, now or without their pods. */
struct solve_stock {
    double nodes;
    double cores;
    uint32_t now;   /* nodes where this is idle */
    uint32_t empty; /* nodes where this would be idle without pods */
    uint32_t first; /* item */
    uint32_t n;
};

/* What is idle, while it is being copied. */
struct solve_copy {
    const struct map *nodes; /* borrowed from the cache */
    uint64_t moves;          /* of the map, when the copy began */
    size_t cursor;
    bool with_empty;
    double empty_part;               /* of the prices */
    double filled;                   /* cards that a pod fills, on average */
    uint8_t (*steps)[SHAPES_MAX];    /* one row for each kind, then for each class; owned */
    uint64_t cards_of[MARKET_KINDS]; /* of each kind, idle or not */
    uint64_t cards;                  /* of all nodes */
    uint32_t *slots;                 /* a table that finds equal stocks, numbers plus 1; owned */
    size_t mask;
    uint32_t items; /* so far */
    size_t max_items;
    size_t max_stocks;
    struct sort_job sort;       /* of the stocks' numbers; owned */
    struct solve_stock *sorted; /* owned */
};

enum solve_part {
    PART_COUNT,
    PART_COPY,
    PART_SORT,
    PART_WEIGH,
    PART_TABLES,
    PART_STOCKS,
    PART_SUPPLY,
    PART_PRICES
};

struct market_solve {
    struct solve_shape *shapes;
    uint32_t n_shapes;
    struct solve_class *classes;
    uint32_t n_classes;
    uint8_t class_of[MARKET_KINDS];
    uint32_t n_kinds;
    struct solve_stock *stocks;
    uint32_t n_stocks;
    struct solve_item *items;
    uint64_t n_cards; /* of all kinds, idle or not */
    double idle_cards;
    double idle_cores;
    double pods; /* that would come if they filled what is idle */
    double core_price;
    double core_sum;
    double rates[RATES];
    uint32_t iteration;
    uint32_t iterations;
    struct solve_copy copy;
    bool lost;    /* nodes came or went during the copy: it can't be used */
    bool nothing; /* it could not be prepared: no memory, or no card on which a shape fits */
    enum solve_part part;
    uint32_t at; /* in the part */
};

/* Copies the shapes. False: no memory, or no shape that asks for cards fits on any card; what was
 * copied stays in s. */
bool market_stock_begin(struct market_solve *s, const struct market *m, const struct map *nodes);

/* The cards have been counted. Prepares a copy of what is idle. False: as of market_stock_begin. */
bool market_stock_prepare(struct market_solve *s);

/* A step of each part of the copy. True: there is more to do in this part. */
bool market_stock_count(struct market_solve *s);
bool market_stock_copy(struct market_solve *s);
bool market_stock_sort(struct market_solve *s);
bool market_stock_weigh(struct market_solve *s);

/* Frees what only the copy needs. */
void market_stock_end(struct market_solve *s);
