/* The kubelet's checkpoint as the roster is told of it: read again when the file changes. */
#include "node/kubelet/checkpoint_file.h"
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESOURCE "aliyun.com/gpu-mem"

/* ContainerAllocateResponse with the variable ALIYUN_COM_GPU_MEM_IDX: "1", and "0,2". */
#define ANSWER_1  "ChsKFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSATE="
#define ANSWER_02 "Ch0KFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSAzAsMg=="
#define ANSWER_NO "ChwKFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSAi0x" /* "-1": gpushare's refusal */

static char path[64];
static struct specs specs;

static void write_file(const char *text)
{
    struct err e = ERR_INIT;
    ck_assert_msg(file_replace(str_of(path), str_of(text), &e) == OK, "%s", e.text);
}

static void name_file(void)
{
    (void)snprintf(path, sizeof(path), "/tmp/cardpack-checkpoint-%d", (int)getpid());
}

static void remove_file(void)
{
    (void)unlink(path);
}

#define ENTRY(uid, resource, id, answer)                                           \
    "{\"PodUID\":\"" uid "\",\"ContainerName\":\"c\",\"ResourceName\":\"" resource \
    "\",\"DeviceIDs\":{\"-1\":[\"" id "\"]},\"AllocResp\":\"" answer "\"}"
#define FILE_OF(entries) \
    "{\"Data\":{\"PodDeviceEntries\":[" entries "],\"RegisteredDevices\":{}},\"Checksum\":1}"

static void set_pod(struct roster *r, const char *uid)
{
    struct container_view container = {.name = STR("c"), .mem = STR("4")};
    const struct pod_view v = {.uid = str_of(uid),
                               .namespace = STR("ns"),
                               .name = str_of(uid),
                               .node = STR("n"),
                               .phase = STR("Pending"),
                               .idx = STR("0"),
                               .n_mains = 1,
                               .containers = &container,
                               .n_containers = 1};
    ck_assert_int_eq(roster_set(r, &v, 1), OK);
}

static void load(struct checkpoint_file *t)
{
    struct err e = ERR_INIT;
    ck_assert_msg(checkpoint_file_load(t, &e) == OK, "%s", e.text);
}

static const struct roster_container *of(const struct roster *r, const char *uid)
{
    return &roster_find(r, str_of(uid))->containers[0];
}

TEST(containers_have_the_cards_of_our_answers)
{
    static struct roster r;
    struct checkpoint_file t;
    name_file();
    remove_file();
    roster_init(&r);
    checkpoint_file_init(&t, str_of(path), STR(RESOURCE), &specs);
    set_pod(&r, "p");
    set_pod(&r, "q");
    load(&t); /* there is no file yet */
    ck_assert(checkpoint_file_apply(&t, &r, true));
    ck_assert(!of(&r, "p")->given);

    write_file(
        FILE_OF(ENTRY("p", RESOURCE, "1.0", ANSWER_1) "," ENTRY("q", RESOURCE, "0.0", ANSWER_02)));
    load(&t);
    ck_assert(checkpoint_file_apply(&t, &r, true));
    ck_assert(of(&r, "p")->given && of(&r, "p")->has.n == 1 && of(&r, "p")->has.cards[0] == 1);
    ck_assert(of(&r, "q")->has.n == 2 && of(&r, "q")->has.cards[1] == 2);
    ck_assert(str_eq(checkpoint_file_owner(&t, STR("0.0"))->pod_uid, STR("q")));
    ck_assert_ptr_null(checkpoint_file_owner(&t, STR("0.1")));

    write_file(FILE_OF(
        ENTRY("p", "other.io/x", "1.0", ANSWER_1) "," ENTRY("q", RESOURCE, "0.0", ANSWER_NO)));
    load(&t);
    ck_assert(checkpoint_file_apply(&t, &r, true));
    ck_assert(!of(&r, "p")->given); /* of another plugin */
    ck_assert(of(&r, "q")->given && of(&r, "q")->has.n == 0);
    ck_assert_ptr_null(checkpoint_file_owner(&t, STR("1.0")));
    checkpoint_file_done(&t);
    roster_done(&r);
    remove_file();
}

/* The watch is late, or the kubelet is late to drop a pod. */
TEST(pods_that_are_not_shown_are_waited_for)
{
    static struct roster r;
    struct checkpoint_file t;
    name_file();
    roster_init(&r);
    checkpoint_file_init(&t, str_of(path), STR(RESOURCE), &specs);
    write_file(FILE_OF(ENTRY("p", RESOURCE, "1.0", ANSWER_1)));
    load(&t);
    ck_assert(!checkpoint_file_apply(&t, &r, true));
    set_pod(&r, "p");
    ck_assert(checkpoint_file_apply(&t, &r, true));
    roster_remove(&r, STR("p"));
    ck_assert(!checkpoint_file_apply(&t, &r, true));
    checkpoint_file_forget(&t, &r);
    ck_assert(checkpoint_file_apply(&t, &r, true));
    set_pod(&r, "p"); /* the watch was only late */
    ck_assert(checkpoint_file_apply(&t, &r, true));
    ck_assert(roster_find(&r, STR("p"))->containers[0].given);
    roster_remove(&r, STR("p"));
    write_file(FILE_OF(ENTRY("q", RESOURCE, "1.1", ANSWER_1)));
    load(&t);
    ck_assert(!checkpoint_file_apply(&t, &r, true));
    checkpoint_file_forget_pod(&t, STR("q")); /* the API server has shown that it has ended */
    ck_assert(checkpoint_file_apply(&t, &r, true));
    checkpoint_file_done(&t);
    roster_done(&r);
    remove_file();
}

/* Nothing is known until the file can be read. */
TEST(a_torn_file_is_an_error)
{
    struct checkpoint_file t;
    struct err e = ERR_INIT;
    name_file();
    checkpoint_file_init(&t, str_of(path), STR(RESOURCE), &specs);
    write_file("{\"Data\":{\"PodDeviceEntries\":[");
    ck_assert_int_eq(checkpoint_file_load(&t, &e), ERR_SYNTAX);
    ck_assert_ptr_nonnull(strstr(e.text, "the kubelet's checkpoint"));
    write_file(FILE_OF(ENTRY("p", RESOURCE, "1.0", "not base64")));
    load(&t);
    ck_assert_uint_eq(t.now.n_entries, 1);
    ck_assert_uint_eq(t.cards[0].n, 0);
    checkpoint_file_done(&t);
    remove_file();
}

/* Only a file that is missing means that the kubelet has given nothing. */
TEST_EACH(a_file_that_is_no_file_is_an_error, 4)
{
    static const char *const kinds[] = {"loop", "folder", "pipe", "device"};
    struct checkpoint_file t;
    struct err e = ERR_INIT;
    name_file();
    remove_file();
    const char *kind = kinds[_i];
    if (strcmp(kind, "loop") == 0)
        ck_assert_int_eq(symlink(path, path), 0);
    else if (strcmp(kind, "folder") == 0)
        ck_assert_int_eq(mkdir(path, 0700), 0);
    else if (strcmp(kind, "pipe") == 0)
        ck_assert_int_eq(mkfifo(path, 0600), 0);
    else
        ck_assert_int_eq(symlink("/dev/zero", path), 0);
    checkpoint_file_init(&t, str_of(path), STR(RESOURCE), &specs);
    ck_assert_int_ne(checkpoint_file_load(&t, &e), OK);
    ck_assert(!t.loaded);
    checkpoint_file_done(&t);
    (void)rmdir(path);
    remove_file();
}

/* A file that is larger than the limit is not read further, whatever its size is. */
TEST(a_huge_file_is_an_error)
{
    struct checkpoint_file t;
    struct err e = ERR_INIT;
    name_file();
    write_file("{");
    ck_assert_int_eq(truncate(path, INT64_C(1) << 40), 0);
    checkpoint_file_init(&t, str_of(path), STR(RESOURCE), &specs);
    ck_assert_int_eq(checkpoint_file_load(&t, &e), ERR_LIMIT);
    checkpoint_file_done(&t);
    remove_file();
}
