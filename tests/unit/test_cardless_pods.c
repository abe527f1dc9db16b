/* The table of pods without a GPU request, against a plain array. */
#include "core/state/cardless_pods.h"

#include "fail_alloc.h"
#include "seeded.h"
#include "unit.h"

#include <stdio.h>

enum {
    UIDS = 4000
};

static struct str uid_of(char text[static 40], unsigned i)
{
    int n = snprintf(text, 40, "%08x-9c1e-4b6d-8a3f-0123456789ab", i);
    return (struct str){text, (size_t)n};
}

static void compare(const struct cardless_pods *o, const int64_t *cpu)
{
    char text[40];
    uint32_t n = 0;
    cardless_pods_check(o);
    for (unsigned i = 0; i < UIDS; i++) {
        const struct cardless_pod *x = cardless_pods_get(o, uid_of(text, i));
        ck_assert((x != NULL) == (cpu[i] > 0));
        ck_assert(x == NULL || x->host.cpu == cpu[i]);
        n += x != NULL ? 1 : 0;
    }
    ck_assert_uint_eq(o->n, n);
}

/* Grows to many records, shrinks to few, and again. */
TEST(has_what_was_added_and_not_removed)
{
    static int64_t cpu[UIDS];
    char text[40];
    struct cardless_pods o;
    uint64_t random = 7;
    cardless_pods_init(&o, (struct map_seed){1, 2});
    for (unsigned step = 0; step < 40000; step++) {
        unsigned i = seeded_draw(&random, UIDS);
        bool grows = step / 10000 % 2 == 0;
        struct cardless_pod *x = cardless_pods_get(&o, uid_of(text, i));
        ck_assert((x != NULL) == (cpu[i] > 0));
        if (x == NULL && (grows || seeded_draw(&random, 8) == 0)) {
            x = cardless_pods_get_or_add(&o, uid_of(text, i));
            ck_assert_ptr_nonnull(x);
            x->host.cpu = cpu[i] = (int64_t)step + 1;
        } else if (x != NULL && (!grows || seeded_draw(&random, 8) == 0)) {
            cardless_pods_del(&o, x);
            cpu[i] = 0;
        }
        if (step % 5000 == 4999)
            compare(&o, cpu);
    }
    while (o.n > 0)
        cardless_pods_del(&o, cardless_pods_at(&o, 0));
    cardless_pods_check(&o);
    ck_assert_uint_le(o.n_chunks, 1); /* the memory is given back */
    cardless_pods_done(&o);
}

TEST(nothing_is_added_without_memory)
{
    char text[40];
    for (int nth = 1; nth <= 3; nth++) {
        struct cardless_pods o;
        cardless_pods_init(&o, (struct map_seed){1, 2});
        fail_alloc_arm(FAIL_ONCE, (size_t)nth);
        ck_assert_ptr_null(cardless_pods_get_or_add(&o, uid_of(text, 1)));
        fail_alloc_disarm();
        ck_assert(cardless_pods_get(&o, uid_of(text, 1)) == NULL && o.n == 0);
        ck_assert_ptr_nonnull(cardless_pods_get_or_add(&o, uid_of(text, 1)));
        ck_assert_ptr_nonnull(cardless_pods_get(&o, uid_of(text, 1)));
        cardless_pods_done(&o);
    }
}

/* The memory target of the daemon counts on it: see docs/performance.md. */
TEST(a_record_is_small)
{
    ck_assert_uint_le(sizeof(struct cardless_pod), 48);
}
