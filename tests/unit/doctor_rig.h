/* What doctor finds, as lines. */
#pragma once

#include "kubectl/doctor.h"

#include "fit_fixture.h"

#define NOW 1795326000U

static struct arena arena;
static struct findings found;
static struct rig rig;

static inline void setup(void)
{
    arena_init(&arena, 16 * MIB);
    found = (struct findings){.arena = &arena};
    rig_init(&rig);
}

static inline void teardown(void)
{
    rig_done(&rig);
    arena_done(&arena);
}

/* All findings, in lines: "FAIL node/n: text". Each that is not OK has an advice. */
static inline const char *findings(void)
{
    static const char *const words[] = {"OK", "WARN", "FAIL"};
    static char bytes[4096];
    struct buf out = BUF_ON(bytes);
    size_t counts[FINDING_LEVELS] = {0};
    for (size_t i = 0; i < found.n; i++) {
        const struct finding *x = &found.items[i];
        ck_assert_int_eq(x->level == FINDING_OK, x->advice[0] == '\0');
        counts[x->level]++;
        buf_printf(&out, "%s %.*s: %.*s\n", words[x->level], STR_ARG(x->object), STR_ARG(x->text));
    }
    ck_assert_mem_eq(counts, found.counts, sizeof(counts));
    return buf_cstr(&out);
}

static inline void is_found(const char *expected)
{
    if (expected[0] == '\0')
        ck_assert_str_eq(findings(), "");
    else
        ck_assert_msg(strstr(findings(), expected) != NULL, "%s\nnot\n%s", findings(), expected);
}
