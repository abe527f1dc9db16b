/* Which index a card gets and keeps; the state file, and what it refuses. */
#include "fail_alloc.h"
#include "gpu/gpu_identity.h"
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)

static uint32_t busy[8]; /* indices that pods use, each plus one */
static bool inverted;    /* pods use all others */

static bool in_use(void *ctx, uint32_t index)
{
    (void)ctx;
    for (size_t i = 0; i < COUNT_OF(busy); i++)
        if (busy[i] == index + 1)
            return !inverted;
    return inverted;
}

/* "A:0" is the card GPU-A at bus 0 with minor 0; "A:0@1" the same at bus 1; "A/2:0" its slice with
 * GPU instance 2. */
static struct gpu_scan scan_of(const char *text, struct gpu_found found[16])
{
    struct gpu_scan s = {.items = found};
    struct str rest = str_of(text);
    while (rest.n > 0) {
        struct str word;
        struct str name;
        struct str bus;
        struct str minor;
        struct str instance;
        uint64_t n = 0;
        (void)str_cut(rest, ' ', &word, &rest);
        struct gpu_found *f = &found[s.n++];
        *f = (struct gpu_found){.memory_bytes = 80 * GIB, .numa = -1};
        ck_assert(str_cut(word, ':', &name, &bus));
        bool moved = str_cut(bus, '@', &minor, &bus);
        ck_assert(str_to_u64(minor, 255, &n));
        f->minor = (uint32_t)n;
        ck_assert(!moved || str_to_u64(bus, 255, &n));
        (void)snprintf(f->pci, sizeof(f->pci), "00000000:%02X:00.0", (unsigned)n);
        f->mig = str_cut(name, '/', &name, &instance);
        (void)snprintf(f->mig ? f->parent : f->uuid, sizeof(f->uuid), "GPU-%.*s", STR_ARG(name));
        if (f->mig) {
            ck_assert(str_to_u64(instance, 255, &n));
            f->gpu_instance = (uint32_t)n;
            (void)snprintf(f->uuid, sizeof(f->uuid), "MIG-%.*s-%u", STR_ARG(name), (unsigned)n);
        }
    }
    s.cards = (uint32_t)s.n;
    return s;
}

/* The scan's cards as "0=A 1=B?", with a ? at a missing one. */
static void match(struct gpu_identity *id, const char *cards, const char *expected)
{
    struct gpu_found found[16];
    struct gpu_scan s = scan_of(cards, found);
    char text[512];
    struct buf b = BUF_ON(text);
    bool changed = false;
    uint32_t left_out = 0;
    ck_assert_int_eq(gpu_identity_match(id, &s, in_use, NULL, &changed, &left_out), OK);
    ck_assert_uint_eq(left_out, 0);
    for (size_t i = 0; i < id->n; i++)
        buf_printf(&b, "%s%u=%s%s", i == 0 ? "" : " ", id->items[i].index, id->items[i].uuid + 4,
                   id->items[i].missing ? "?" : "");
    ck_assert_str_is(buf_str(&b), expected);
}

TEST_EACH(an_index_stays_with_its_card, 14)
{
    static const struct {
        const char *scans[4];
        const char *expected[4];
        uint32_t busy;
    } cases[] = {
        /* NVML's order does not matter; the first numbers are the minors. */
        {{"B:1 A:0 C:2", "C:2 A:0 B:1"}, {"0=A 1=B 2=C", "0=A 1=B 2=C"}, 0},
        /* A card is lost: NVML's indices and the minors shift, ours do not. */
        {{"A:0 B:1 C:2", "A:0 C:1@2", "A:0 B:1 C:2"},
         {"0=A 1=B 2=C", "0=A 1=B? 2=C", "0=A 1=B 2=C"},
         0},
        /* Replaced in its place; then one more in another place. */
        {{"A:0 B:1", "A:0 X:1", "A:0 X:1 Y:2"}, {"0=A 1=B", "0=A 1=X", "0=A 1=X 2=Y"}, 0},
        /* Replaced in another place: any missing index, if no pod uses it. */
        {{"A:0 B:1", "A:0 X:5"}, {"0=A 1=B", "0=A 1=X"}, 0},
        {{"A:0 B:1", "A:0 X:5"}, {"0=A 1=B", "0=A 1=B? 5=X"}, 2},
        {{"A:0 B:1", "A:0 X:1", "A:0 X:1 B:7"}, {"0=A 1=B", "0=A 1=B? 2=X", "0=A 1=B 2=X"}, 2},
        /* The minor is taken: the lowest free index. */
        {{"A:0 B:1 C:2", "A:0 C:1 X:2"}, {"0=A 1=B 2=C", "0=A 1=B? 2=C 3=X"}, 2},
        /* Pods use an index that no record has. */
        {{"A:0", "A:0 B:1"}, {"0=A", "0=A 2=B"}, 2},
        /* At the very first start these are the pods of another plugin, on the same card. */
        {{"A:0 B:1"}, {"0=A 1=B"}, 2},
        /* Slices come behind the cards, each with an index; removed ones are forgotten. */
        {{"A/1:0 A/2:0 B:1", "A/2:0 A/5:0 B:1"}, {"0=A-1 1=B 2=A-2", "0=A-5 1=B 2=A-2"}, 0},
        {{"A/1:0 A/2:0", "A/2:0"}, {"0=A-1 1=A-2", "0=A-1? 1=A-2"}, 1},
        /* A card is put into MIG mode, and a slice takes no index of a lost card. */
        {{"A:0 B:1", "A:0 B/3:1"}, {"0=A 1=B", "0=A 1=B-3"}, 0},
        {{"A:0 B:1 C:2", "A:0 B/3:1"}, {"0=A 1=B 2=C", "0=A 1=B-3 2=C?"}, 0},
        /* All are lost, and come back. */
        {{"A:0 B:1", "", "B:0 A:1"}, {"0=A 1=B", "0=A? 1=B?", "0=A 1=B"}, 0},
    };
    struct gpu_identity id = {.n = 0};
    busy[0] = cases[_i].busy;
    for (size_t i = 0; i < 4 && cases[_i].scans[i] != NULL; i++)
        match(&id, cases[_i].scans[i], cases[_i].expected[i]);
    gpu_identity_done(&id);
}

/* While pods have the card, its index stays; then it is forgotten, as it does not come back. */
TEST(a_card_that_was_replaced)
{
    struct gpu_identity id = {.n = 0};
    match(&id, "A:0 B:1", "0=A 1=B");
    busy[0] = 2;
    match(&id, "A:0 X:1", "0=A 1=B? 2=X");
    match(&id, "A:0 X/1:1 X/2:1", "0=A 1=B? 2=X-1 3=X-2");
    busy[0] = 0;
    match(&id, "A:0 X/1:1 X/2:1", "0=A 2=X-1 3=X-2");
    gpu_identity_done(&id);
}

TEST(the_file_has_what_was_written)
{
    char folder[] = "/tmp/gpu_identity.XXXXXX";
    char path[64];
    struct err e = ERR_INIT;
    struct gpu_identity id = {.n = 0};
    struct gpu_identity read = {.n = 0};
    struct gpu_found found[16];
    struct gpu_scan s = scan_of("A:0 B/1:1 B/2:1", found);
    struct stat st;
    bool changed = false;
    uint32_t left_out = 0;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/cards", folder);
    ck_assert_ok(gpu_identity_load(path, &read, &e), &e); /* none yet */
    ck_assert_uint_eq(read.n, 0);
    ck_assert_int_eq(gpu_identity_match(&id, &s, in_use, NULL, &changed, &left_out), OK);
    ck_assert(changed);
    ck_assert_ok(gpu_identity_save(path, &id, &e), &e);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_ok(gpu_identity_load(path, &read, &e), &e);
    ck_assert_uint_eq(read.n, 3);
    ck_assert_str_eq(read.items[2].uuid, "MIG-B-2");
    ck_assert_str_eq(read.items[2].parent, "GPU-B");
    ck_assert_str_eq(read.items[0].parent, "");
    ck_assert_uint_eq(read.items[0].memory_bytes, 80 * GIB);
    ck_assert(read.items[0].missing);
    ck_assert_int_eq(gpu_identity_match(&read, &s, in_use, NULL, &changed, &left_out), OK);
    ck_assert(!changed);
    gpu_identity_done(&read);
    gpu_identity_done(&id);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* no temporary file is left */
}

TEST(a_file_that_cannot_be_written_keeps_its_content)
{
    struct err e = ERR_INIT;
    struct gpu_identity id = {.n = 0};
    ck_assert_int_eq(gpu_identity_save("/proc/none/cards", &id, &e), ERR_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "/proc/none/cards"));
}

TEST_EACH(a_damaged_file_is_refused, 15)
{
    static const struct {
        const char *text;
        enum errc code;
        const char *part;
    } cases[] = {
        {"", ERR_SYNTAX, "line 1"},
        {"cardpack-cards 2\nend 0\n", ERR_SYNTAX, "line 1"},
        {"cardpack-cards 1\n", ERR_SYNTAX, "line 2"},
        {"cardpack-cards 1\nend 1\n", ERR_SYNTAX, "\"end 0\""},
        {"cardpack-cards 1\nend 0\n\n", ERR_SYNTAX, "last line"},
        {"cardpack-cards 1\n0 A p - 1\n", ERR_SYNTAX, "line 3"},
        {"cardpack-cards 1\n0 A p - 1", ERR_SYNTAX, "line 2"},
        {"cardpack-cards 1\n0 A p - 1 \nend 1\n", ERR_SYNTAX, "INDEX UUID"},
        {"cardpack-cards 1\n0 A p - 0\nend 1\n", ERR_SYNTAX, "memory"},
        {"cardpack-cards 1\n1024 A p - 1\nend 1\n", ERR_SYNTAX, "index"},
        {"cardpack-cards 1\nx A p - 1\nend 1\n", ERR_SYNTAX, "index"},
        {"cardpack-cards 1\n0  p - 1\nend 1\n", ERR_SYNTAX, "UUID"},
        {"cardpack-cards 1\n0 A\tB p - 1\nend 1\n", ERR_SYNTAX, "UUID"},
        {"cardpack-cards 1\n0 A p - 1\n0 B p - 1\nend 2\n", ERR_CONFLICT, "line 3"},
        {"cardpack-cards 1\n0 A p - 1\n1 A p - 1\nend 2\n", ERR_CONFLICT, "twice"},
    };
    struct err e = ERR_INIT;
    struct gpu_identity id = {.n = 0};
    ck_assert_int_eq(gpu_identity_read(str_of(cases[_i].text), &id, &e), cases[_i].code);
    ck_assert_msg(strstr(e.text, cases[_i].part) != NULL, "%s", e.text);
    ck_assert_uint_eq(id.n, 0);
    ck_assert_ptr_null(id.items);
}

/* Two records are vacant, and there are two cards and two slices too many. */
TEST(cards_without_an_index_are_counted)
{
    struct gpu_found found[16];
    struct gpu_identity id = {.n = 0};
    struct gpu_scan s = scan_of("A:0 B:1 C:2 D:3 E/1:4 E/2:4", found);
    struct err e = ERR_INIT;
    struct buf text;
    bool changed = false;
    uint32_t left_out = 7;
    buf_init(&text, LIMIT_GPU_STATE_BYTES);
    buf_put(&text, STR("cardpack-cards 1\n"));
    for (unsigned i = 0; i < LIMIT_GPU_CARDS; i++)
        buf_printf(&text, "%u old-%u pci-%u - 1\n", i, i, i);
    buf_printf(&text, "end %u\n", LIMIT_GPU_CARDS);
    ck_assert_ok(gpu_identity_read(buf_str(&text), &id, &e), &e);
    buf_done(&text);
    busy[0] = 500 + 1;
    busy[1] = 600 + 1;
    inverted = true;
    ck_assert_int_eq(gpu_identity_match(&id, &s, in_use, NULL, &changed, &left_out), OK);
    ck_assert(changed);
    ck_assert_uint_eq(left_out, 4);
    ck_assert_uint_eq(id.n, LIMIT_GPU_CARDS);
    ck_assert_str_eq(id.items[500].uuid, "GPU-A");
    ck_assert_str_eq(id.items[600].uuid, "GPU-B");
    ck_assert_int_eq(gpu_identity_match(&id, &s, in_use, NULL, &changed, &left_out), OK);
    ck_assert(!changed);
    ck_assert_uint_eq(left_out, 4);
    gpu_identity_done(&id);
}

static enum errc match_and_write(void *ctx)
{
    struct gpu_found found[16];
    struct gpu_scan s = scan_of("A:0 B/1:1 B/2:1", found);
    struct gpu_identity id = {.n = 0};
    struct buf b;
    bool changed = false;
    uint32_t left_out = 0;
    (void)ctx;
    buf_init(&b, LIMIT_GPU_STATE_BYTES);
    enum errc code = gpu_identity_match(&id, &s, in_use, NULL, &changed, &left_out);
    if (code == OK) {
        gpu_identity_write(&id, &b);
        code = buf_fault(&b);
    }
    gpu_identity_done(&id);
    if (code == OK)
        code = gpu_identity_read(buf_str(&b), &id, NULL);
    gpu_identity_done(&id);
    buf_done(&b);
    return code;
}

TEST(without_memory_it_fails)
{
    ck_assert_uint_gt(fail_alloc_each(match_and_write, NULL), 3);
}
