/* Reads the world's file, and keeps the handles. */
#include "world.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct world world;
unsigned int inits;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvmlDevice handles[CARDS * (SLICES + 1)];
static unsigned int n_handles;
static int devices = -1; /* the file that stands for /dev/nvidia* */

static unsigned int number(const char *line, const char *key, unsigned int otherwise)
{
    const char *at = strstr(line, key);
    unsigned int n = 0;
    if (at == NULL)
        return otherwise;
    at += strlen(key);
    unsigned int base = strncmp(at, "0x", 2) == 0 ? 16 : 10;
    for (at += base == 16 ? 2 : 0; isxdigit((unsigned char)*at); at++)
        n = n * base +
            (unsigned int)(isdigit((unsigned char)*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
    return n;
}

static void word(const char *line, const char *key, char out[TEXT])
{
    const char *at = strstr(line, key);
    size_t n = at == NULL ? 0 : strcspn(at + strlen(key), " \n");
    out[0] = '\0';
    if (n > 0 && n < TEXT) {
        memcpy(out, at + strlen(key), n);
        out[n] = '\0';
    }
    for (char *c = out; *c != '\0'; c++)
        if (*c == '_')
            *c = ' ';
}

static void read_card(const char *line, struct card *c)
{
    memset(c, 0, offsetof(struct card, slices));
    word(line, " uuid=", c->uuid);
    word(line, " name=", c->name);
    c->bus = number(line, " bus=", 0);
    c->minor = number(line, " minor=", 0);
    c->mib = number(line, " mib=", 1024);
    c->used = number(line, " used=", 0);
    c->reserved = number(line, " reserved=", 0);
    c->memory_error = number(line, " memory=", 0);
    c->error = (int)number(line, " error=", 0);
    c->rows = number(line, " rows=", 1);
    c->pending = number(line, " pending=", 0);
    c->failure = number(line, " failure=", 0);
    c->pages = number(line, " pages=", 0);
    c->recovery = number(line, " recovery=", NO_VALUE);
    c->ecc = number(line, " ecc=", 0);
    c->counted = number(line, " counted=", 0);
    c->anew = number(line, " anew=", 0);
    c->mig = number(line, " mig=", 0);
    c->compute_mode = number(line, " compute-mode=", 0);
}

static void read_line(struct world *w, const char *line)
{
    struct card *c = w->n == 0 ? NULL : &w->cards[w->n - 1];
    if (strncmp(line, "init ", 5) == 0) {
        w->init_error = number(line, " error=", 0);
        w->init_unprivileged = number(line, " unprivileged=", 0);
    } else if (strncmp(line, "hang", 4) == 0)
        w->hang = 1;
    else if (strncmp(line, "slow ", 5) == 0)
        w->slow_ms = number(line, " ms=", 1);
    else if (strncmp(line, "shift ", 6) == 0)
        w->shift = 1 + number(line, " index=", 0);
    else if (strncmp(line, "no-events", 9) == 0)
        w->no_events = 1;
    else if (strncmp(line, "protected-memory", 16) == 0)
        w->protected_memory = 1;
    else if (strncmp(line, "mig-monitor", 11) == 0)
        w->mig_monitor = 1;
    else if (strncmp(line, "limits-ignored", 14) == 0) {
        w->limits = w->limits_ignored = 1;
        w->limits_unset = 6;
    } else if (strncmp(line, "limits", 6) == 0) {
        w->limits = 1;
        w->limits_error = number(line, " error=", 0);
        w->limits_unset = number(line, " unset=", 6);
        w->limits_denied = number(line, " set=", 0);
        w->limits_unprivileged = number(line, " unprivileged=", 0);
    } else if (strncmp(line, "card ", 5) == 0 && w->n < CARDS)
        read_card(line, &w->cards[w->n++]);
    else if (strncmp(line, "slice ", 6) == 0 && c != NULL && c->n_slices < SLICES) {
        struct slice *s = &c->slices[c->n_slices++];
        word(line, " uuid=", s->uuid);
        word(line, " profile=", s->profile);
        s->gi = number(line, " gi=", 0);
        s->ci = number(line, " ci=", 0);
        s->mib = number(line, " mib=", 0);
        s->error = (int)number(line, " error=", 0);
        s->memory_error = (int)number(line, " memory=", 0);
    } else if (strncmp(line, "process ", 8) == 0 && c != NULL && c->n_procs < PROCS) {
        c->procs[c->n_procs++] =
            (struct process){number(line, " pid=", 0), number(line, " mib=", 0)};
    } else if (strncmp(line, "mps ", 4) == 0 && c != NULL && c->n_mps < PROCS) {
        c->mps[c->n_mps++] = (struct process){number(line, " pid=", 0), number(line, " mib=", 0)};
    } else if (strncmp(line, "event ", 6) == 0 && w->n_events < CARDS) {
        struct event *e = &w->events[w->n_events++];
        e->number = number(line, " number=", 0);
        word(line, " uuid=", e->uuid);
        e->xid = number(line, " xid=", 0);
        e->gi = number(line, " gi=", NO_VALUE);
    }
}

/* With the lock held. While a test replaces the file, the old world stays. */
static void look(void)
{
    char line[512];
    const char *path = getenv("CARDPACK_NVML_WORLD");
    FILE *f = path == NULL ? NULL : fopen(path, "re");
    if (f == NULL)
        return;
    memset(&world, 0, offsetof(struct world, cards));
    while (fgets(line, sizeof(line), f) != NULL)
        read_line(&world, line);
    (void)fclose(f);
}

void world_open_devices(void)
{
    char name[512];
    const char *path = getenv("CARDPACK_NVML_WORLD");
    if (devices >= 0 || path == NULL ||
        snprintf(name, sizeof(name), "%s.devices", path) >= (int)sizeof(name))
        return;
    devices = open(name, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (flock(devices, LOCK_EX | LOCK_NB) == 0)
        (void)!write(devices, "1", 1); /* nothing had the cards open: the driver starts them */
    (void)flock(devices, LOCK_SH);
}

bool world_started_again(void)
{
    struct stat st;
    return devices >= 0 && fstat(devices, &st) == 0 && st.st_size > 1;
}

void world_close_devices(void)
{
    if (devices >= 0)
        (void)close(devices);
    devices = -1;
}

void world_shift(void)
{
    char next[512];
    const char *path = getenv("CARDPACK_NVML_WORLD");
    if (path == NULL || snprintf(next, sizeof(next), "%s.next", path) >= (int)sizeof(next))
        return;
    (void)rename(next, path);
    look();
}

/* A call that does not return until the file says so. */
static void hang(unsigned int (*hangs)(void))
{
    const struct timespec step = {.tv_nsec = 2000000};
    while (hangs() != 0) {
        (void)pthread_mutex_unlock(&lock);
        (void)nanosleep(&step, NULL);
        (void)pthread_mutex_lock(&lock);
        look();
    }
}

static unsigned int hangs_now(void)
{
    return world.hang;
}

void world_begin(void)
{
    (void)pthread_mutex_lock(&lock);
    look();
    hang(hangs_now);
    if (world.slow_ms > 0) {
        const struct timespec t = {.tv_nsec = (long)world.slow_ms * 1000000};
        (void)nanosleep(&t, NULL);
    }
}

int world_end(int code)
{
    (void)pthread_mutex_unlock(&lock);
    return code;
}

bool world_privileged(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & 1U << CAP_SYS_ADMIN) != 0;
}

struct nvmlDevice *world_handle(const char *uuid)
{
    for (unsigned int i = 0; i < n_handles; i++)
        if (strcmp(handles[i].uuid, uuid) == 0)
            return &handles[i];
    struct nvmlDevice *d = &handles[n_handles++];
    memcpy(d->uuid, uuid, TEXT);
    return d;
}

struct card *world_find(const struct nvmlDevice *d, struct slice **slice)
{
    *slice = NULL;
    for (unsigned int i = 0; i < world.n; i++) {
        struct card *c = &world.cards[i];
        if (strcmp(c->uuid, d->uuid) == 0)
            return c;
        for (unsigned int j = 0; j < c->n_slices; j++)
            if (strcmp(c->slices[j].uuid, d->uuid) == 0) {
                *slice = &c->slices[j];
                return c;
            }
    }
    return NULL;
}
