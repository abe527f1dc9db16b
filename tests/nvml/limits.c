/*
 * The driver's own limits of memory (R615 and newer), one for a card and a cgroup. They are kept in
 * a file beside the world's, with ".limits" at its end, so that they outlive the process that sets
 * them, as they do in the driver. A line: UUID SOFT HARD PATH.
 */
#include "world.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LIMITS 1024
#define NONE   0xFFFFFFFFFFFFFFFFull

struct set_limits {
    const char *cgroup;
    unsigned long long soft, hard;
};

struct get_limits {
    const char *cgroup;
    unsigned long long soft, hard, used;
};

struct limit {
    char uuid[TEXT];
    char path[PATH_MAX];
    unsigned long long soft, hard;
};

static struct limit table[LIMITS];
static unsigned int n_table;

EXPORT int nvmlDeviceSetMemoryLimits_v1(struct nvmlDevice *d, struct set_limits *l);
EXPORT int nvmlDeviceGetMemoryLimits_v1(struct nvmlDevice *d, struct get_limits *l);

/* A decimal number; *at moves behind it and the character after it. */
static unsigned long long digits(const char **at)
{
    unsigned long long n = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        n = n * 10 + (unsigned long long)(**at - '0');
    *at += **at != '\0';
    return n;
}

static void read_limit(const char *line, struct limit *l)
{
    size_t n = strcspn(line, " ");
    const char *at = line + n + (line[n] != '\0');
    (void)snprintf(l->uuid, sizeof(l->uuid), "%.*s", (int)n, line);
    l->soft = digits(&at);
    l->hard = digits(&at);
    (void)snprintf(l->path, sizeof(l->path), "%.*s", (int)strcspn(at, "\n"), at);
}

/* The open and locked file, with its text in the table. */
static FILE *open_table(void)
{
    char path[PATH_MAX];
    char line[PATH_MAX + 256];
    const char *file = getenv("CARDPACK_NVML_WORLD");
    n_table = 0;
    if (file == NULL || snprintf(path, sizeof(path), "%s.limits", file) >= (int)sizeof(path))
        return NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    FILE *f = fd < 0 || flock(fd, LOCK_EX) != 0 ? NULL : fdopen(fd, "r+");
    if (f == NULL)
        return NULL;
    while (n_table < LIMITS && fgets(line, sizeof(line), f) != NULL)
        read_limit(line, &table[n_table++]);
    return f;
}

static void write_table(FILE *f)
{
    rewind(f);
    if (ftruncate(fileno(f), 0) != 0)
        return;
    for (unsigned int i = 0; i < n_table; i++)
        (void)fprintf(f, "%s %llu %llu %s\n", table[i].uuid, table[i].soft, table[i].hard,
                      table[i].path);
}

static struct limit *limit_of(const char *uuid, const char *path)
{
    for (unsigned int i = 0; i < n_table; i++)
        if (strcmp(table[i].uuid, uuid) == 0 && strcmp(table[i].path, path) == 0)
            return &table[i];
    return NULL;
}

/* The checks that both calls begin with. */
static int check(const struct slice *s, const char *cgroup, char path[PATH_MAX])
{
    if (world.limits == 0)
        return 3;
    if (world.limits_error != 0)
        return (int)world.limits_error;
    if (s != NULL || cgroup == NULL)
        return 2;
    int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || realpath(cgroup, path) == NULL)
        return 17;
    (void)close(fd);
    return 0;
}

static int set(const struct card *c, const struct slice *s, const struct set_limits *l)
{
    char path[PATH_MAX];
    unsigned long long most = c->mib << 20;
    int code = check(s, l->cgroup, path);
    if (code == 0)
        code = (int)world.limits_denied;
    if (code == 0 && world.limits_unprivileged != 0 && !world_privileged())
        code = (int)world.limits_unprivileged;
    if (code != 0 || world.limits_ignored != 0)
        return code;
    if (l->soft > l->hard || l->soft > most || (l->hard > most && l->hard != NONE))
        return 2;
    FILE *f = open_table();
    if (f == NULL)
        return 999;
    struct limit *at = limit_of(c->uuid, path);
    if (l->soft == 0 && l->hard == NONE) {
        if (at != NULL)
            *at = table[--n_table];
    } else if (at != NULL || n_table < LIMITS) {
        at = at == NULL ? &table[n_table++] : at;
        (void)snprintf(at->uuid, sizeof(at->uuid), "%s", c->uuid);
        (void)snprintf(at->path, sizeof(at->path), "%s", path);
        at->soft = l->soft;
        at->hard = l->hard;
    } else {
        code = 20;
    }
    write_table(f);
    (void)fclose(f);
    return code;
}

/* What the processes in the cgroup's cgroup.procs use of the card. */
static unsigned long long used(const struct card *c, const char *cgroup)
{
    char path[PATH_MAX];
    char line[64];
    unsigned long long mib = 0;
    if (snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup) >= (int)sizeof(path))
        return 0;
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        const char *at = line;
        unsigned long long pid = digits(&at);
        for (unsigned int i = 0; i < c->n_procs; i++)
            mib += c->procs[i].pid == pid ? c->procs[i].mib : 0;
    }
    if (f != NULL)
        (void)fclose(f);
    return mib << 20;
}

static int get(const struct card *c, const struct slice *s, struct get_limits *l)
{
    char path[PATH_MAX];
    int code = check(s, l->cgroup, path);
    if (code != 0)
        return code;
    FILE *f = open_table();
    if (f == NULL)
        return 999;
    /* A cgroup without a limit of its own has that of the nearest one above. */
    const struct limit *at = limit_of(c->uuid, path);
    for (char *end = strrchr(path, '/'); at == NULL && end != NULL && end != path;
         end = strrchr(path, '/')) {
        *end = '\0';
        at = limit_of(c->uuid, path);
    }
    (void)fclose(f);
    if (at == NULL)
        return (int)world.limits_unset;
    l->soft = at->soft;
    l->hard = at->hard;
    l->used = used(c, at->path);
    return 0;
}

int nvmlDeviceSetMemoryLimits_v1(struct nvmlDevice *d, struct set_limits *l)
{
    CARD_CALL(d, code = set(c, s, l));
}

int nvmlDeviceGetMemoryLimits_v1(struct nvmlDevice *d, struct get_limits *l)
{
    CARD_CALL(d, code = get(c, s, l));
}
