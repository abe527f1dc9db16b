/*
 * The other seams: memory, which is counted by process and sometimes refused; the log, which goes
 * to the trace; and files: the configuration, the kubeconfig and the token that the kubeconfig
 * names.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "server.h"

#include <stdlib.h>

/* ---- mem.h ---- */

struct block {
    size_t size;
    size_t owner;
    char bytes[] __attribute__((aligned(16)));
};

struct account {
    size_t blocks;
    size_t bytes;
};

static struct account accounts[MAX_REPLICAS + 1]; /* the last one counts while no process runs */
static size_t current = MAX_REPLICAS;

void mem_account(struct proc *p)
{
    current = p == NULL ? MAX_REPLICAS : p->id;
}

size_t mem_blocks(const struct proc *p)
{
    return accounts[p->id].blocks;
}

size_t mem_bytes(const struct proc *p)
{
    return accounts[p->id].bytes;
}

static void charge(const struct block *b)
{
    accounts[b->owner].blocks++;
    accounts[b->owner].bytes += b->size;
}

static void discharge(const struct block *b)
{
    accounts[b->owner].blocks--;
    accounts[b->owner].bytes -= b->size;
}

static bool refused(void)
{
    return current != MAX_REPLICAS && proc_runs(&procs[current]) && fault(FAULT_MEMORY);
}

void *mem_alloc(size_t size)
{
    assert(size > 0);
    sim_turn_touch();
    if (refused())
        return NULL;
    struct block *b = sim_alloc(sizeof(*b) + size);
    b->size = size;
    b->owner = current;
    charge(b);
    return b->bytes;
}

void *mem_resize(void *p, size_t size)
{
    assert(size > 0);
    if (p == NULL)
        return mem_alloc(size);
    if (refused())
        return NULL;
    struct block *b = CONTAINER_OF(p, struct block, bytes);
    discharge(b);
    b = sim_resize(b, sizeof(*b) + size);
    b->size = size;
    charge(b);
    return b->bytes;
}

void mem_free(void *p)
{
    if (p == NULL)
        return;
    struct block *b = CONTAINER_OF(p, struct block, bytes);
    discharge(b);
    free(b);
}

/* ---- log.h ---- */

bool log_enabled(enum log_level level)
{
    (void)level;
    return trace_all;
}

/* Only printed, not hashed: log lines follow from the rest of the trace. */
void log_write(enum log_level level, const char *message, const struct kv *fields, size_t n)
{
    struct text line = {.p = NULL};
    (void)level;
    for (size_t i = 0; i < n; i++) {
        text_z(&line, i > 0 ? " " : "");
        if (fields[i].type == KV_STR)
            text_put(&line, fields[i].s);
        else
            text_f(&line, "%llu",
                   (unsigned long long)(fields[i].type == KV_INT ? (uint64_t)fields[i].i
                                                                 : fields[i].u));
    }
    trace_note(message, text_str(&line));
    text_done(&line);
}

uint64_t log_dropped(void)
{
    return 0;
}

/* No limit: the simulation prints every line. */
bool log_limit_allows(struct log_limit *l, uint64_t now_ms, const char *message)
{
    (void)l;
    (void)now_ms;
    (void)message;
    return true;
}

void log_setup(int fd, enum log_level level, enum log_format format)
{
    (void)fd;
    (void)level;
    (void)format;
}

void log_never_wait(void)
{
}

/* ---- file.h ---- */

enum errc file_read(struct str path, struct buf *out, struct err *reterr)
{
    struct text text = {.p = NULL};
    if (proc_file(path, &text)) {
        buf_put(out, text_str(&text));
        text_done(&text);
    } else if (str_ends(path, STR("token"))) {
        struct name token = server_token();
        buf_put(out, name_str(&token));
    } else {
        buf_put(out, STR("current-context: c\n"
                         "contexts: [{name: c, context: {cluster: s, user: u, namespace: gpu}}]\n"
                         "clusters: [{name: s, cluster: {server: \"https://api.sim:6443\"}}]\n"
                         "users: [{name: u, user: {tokenFile: /sim/token}}]\n"));
    }
    return buf_failed(out) ? err_set(reterr, ERR_NOMEM, "no memory for a file") : OK;
}

enum errc file_read_again(struct str path, struct buf *out, struct err *reterr)
{
    return file_read(path, out, reterr);
}

bool file_may_block(struct str path)
{
    (void)path;
    return false;
}

/* All configuration files have the same stamp: they are written at the same time. */
struct file_stamp file_stamp(struct str path)
{
    (void)path;
    return (struct file_stamp){.inode = world.writes, .regular = true};
}

bool file_stamp_eq(struct file_stamp a, struct file_stamp b)
{
    return a.inode == b.inode;
}
