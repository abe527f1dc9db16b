/* The world of the NVML double, tests/nvml, in a folder of its own for each test. */
#pragma once

#include "base/file.h"
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct nvml_world {
    char dir[32];
    char path[48];
};

/* Writes the file with `end` behind the name of the world's; its path in ret. */
static inline void world_put(const struct nvml_world *w, const char *end, const char *text,
                             char ret[static 64])
{
    (void)snprintf(ret, 64, "%s%s", w->path, end);
    FILE *f = fopen(ret, "we");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static inline void world_write(const struct nvml_world *w, const char *text)
{
    char fresh[64];
    world_put(w, ".new", text, fresh);
    ck_assert_int_eq(rename(fresh, w->path), 0);
}

/* The world that takes the place of another one with a line "shift". */
static inline void world_write_next(const struct nvml_world *w, const char *text)
{
    char next[64];
    world_put(w, ".next", text, next);
}

static inline void world_open(struct nvml_world *w, const char *text)
{
    *w = (struct nvml_world){.dir = "/tmp/nvml_world.XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(w->dir));
    (void)snprintf(w->path, sizeof(w->path), "%s/world", w->dir);
    ck_assert_int_eq(setenv("CARDPACK_NVML_WORLD", w->path, 1), 0);
    world_write(w, text);
}

static inline void world_close(struct nvml_world *w)
{
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -rf %s", w->dir);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test's own folder */
}
