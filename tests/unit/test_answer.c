/* The answer to Allocate, read back field by field. */
#include "fail_alloc.h"
#include "node/kubelet/answer.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIB (INT64_C(1) << 30)

static const struct gpu_card whole = {
    .index = 2, .uuid = {"GPU-aaaa", 8}, .minor = 5, .seen = true};
static const struct gpu_card other = {
    .index = 11, .uuid = {"GPU-bbbb", 8}, .minor = 0, .seen = true};
static const struct gpu_card slice = {.index = 3,
                                      .uuid = {"MIG-cccc", 8},
                                      .parent = {"GPU-dddd", 8},
                                      .minor = 7,
                                      .mig = true,
                                      .gpu_cap = 30,
                                      .compute_cap = 31,
                                      .seen = true};
static const struct gpu_card sister = {.index = 4,
                                       .uuid = {"MIG-eeee", 8},
                                       .parent = {"GPU-dddd", 8},
                                       .minor = 7,
                                       .mig = true,
                                       .gpu_cap = 39,
                                       .compute_cap = 40,
                                       .seen = true};
static const struct gpu_card unseen = {.index = 6, .uuid = {"GPU-ffff", 8}};

/* A message of strings only: "1=... 2=..." */
static void put_strings(struct pb_reader *r, const struct pb_field *f, struct buf *ret)
{
    struct pb_reader inner = pb_inner(r, f);
    struct pb_field s;
    while (pb_next(&inner, &s))
        buf_printf(ret, " %u=%.*s", s.number, STR_ARG(pb_str(&inner, &s)));
    buf_putc(ret, '\n');
}

/* One line a field of a grant: its number, and the strings in it. */
static void read_back(struct str bytes, struct buf *ret)
{
    struct err e = ERR_INIT;
    struct pb_field f;
    struct pb_reader r = pb_read(bytes, &e);
    while (pb_next(&r, &f)) {
        struct pb_reader grant = pb_inner(&r, &f);
        struct pb_field g;
        ck_assert_uint_eq(f.number, 1);
        buf_printf(ret, "grant\n");
        while (pb_next(&grant, &g)) {
            buf_printf(ret, g.number == 1   ? "env"
                            : g.number == 2 ? "mount"
                            : g.number == 3 ? "node"
                                            : "other");
            put_strings(&grant, &g, ret);
        }
    }
    ck_assert_ok(e.code, &e);
}

static void assert_answer(const struct answer_settings *s, const struct answer_want *w,
                          const char *expected)
{
    struct err e = ERR_INIT;
    struct buf out;
    struct buf text;
    buf_init(&out, MIB);
    buf_init(&text, MIB);
    ck_assert_ok(answer_write(&out, s, w, &e), &e);
    ck_assert(!buf_failed(&out));
    read_back(buf_str(&out), &text);
    ck_assert_str_is(buf_str(&text), expected);
    buf_done(&text);
    buf_done(&out);
}

static const struct answer_settings plain = {.unit = {GIB}};
static const struct gpu_card *const first_only[] = {&whole};
static const struct gpu_card *const two[] = {&whole, &other};
static const struct gpu_card *const slices[] = {&slice, &sister};
static const int64_t totals[] = {80, 40};

static void touch(const char *folder, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, S_IRUSR);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

static void forget(const char *folder, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_assert_int_eq(unlink(path), 0);
}

/* A folder of device nodes with the one that CUDA needs. */
static void uvm_open(char *dev)
{
    ck_assert_ptr_nonnull(mkdtemp(dev));
    touch(dev, "nvidia-uvm");
}

static void uvm_close(const char *dev)
{
    forget(dev, "nvidia-uvm");
    ck_assert_int_eq(rmdir(dev), 0);
}

TEST(test_one_card)
{
    struct answer_want w = {.cards = first_only,
                            .n_cards = 1,
                            .dev_total = totals,
                            .container_units = 8,
                            .pod_units = 12};
    assert_answer(&plain, &w,
                  "grant\n"
                  "env 1=NVIDIA_VISIBLE_DEVICES 2=GPU-aaaa\n"
                  "env 1=ALIYUN_COM_GPU_MEM_IDX 2=2\n"
                  "env 1=ALIYUN_COM_GPU_MEM_POD 2=12\n"
                  "env 1=ALIYUN_COM_GPU_MEM_CONTAINER 2=8\n"
                  "env 1=ALIYUN_COM_GPU_MEM_DEV 2=80\n");
}

TEST(test_two_cards)
{
    struct answer_settings s = {.disable_cgpu = true, .unit = {GIB}};
    struct answer_want w = {
        .cards = two, .n_cards = 2, .dev_total = totals, .container_units = 8, .pod_units = 8};
    assert_answer(&s, &w,
                  "grant\n"
                  "env 1=NVIDIA_VISIBLE_DEVICES 2=GPU-aaaa,GPU-bbbb\n"
                  "env 1=ALIYUN_COM_GPU_MEM_IDX 2=2,11\n"
                  "env 1=ALIYUN_COM_GPU_MEM_POD 2=8\n"
                  "env 1=ALIYUN_COM_GPU_MEM_CONTAINER 2=8\n"
                  "env 1=ALIYUN_COM_GPU_MEM_DEV 2=80\n"
                  "env 1=CGPU_DISABLE 2=true\n");
}

/* Both variables, because the runtime ignores one alone; the share of each card. */
TEST(test_limits)
{
    struct answer_settings s = {.limits = true, .unit = {256 << 20}};
    struct answer_want w = {.cards = two,
                            .n_cards = 2,
                            .dev_total = totals,
                            .container_units = 6,
                            .pod_units = 6,
                            .limit_units = 3};
    assert_answer(&s, &w,
                  "grant\n"
                  "env 1=NVIDIA_VISIBLE_DEVICES 2=GPU-aaaa,GPU-bbbb\n"
                  "env 1=ALIYUN_COM_GPU_MEM_IDX 2=2,11\n"
                  "env 1=ALIYUN_COM_GPU_MEM_POD 2=6\n"
                  "env 1=ALIYUN_COM_GPU_MEM_CONTAINER 2=6\n"
                  "env 1=ALIYUN_COM_GPU_MEM_DEV 2=80\n"
                  "env 1=NVIDIA_GPU_MEMORY_REQUEST 2=0\n"
                  "env 1=NVIDIA_GPU_MEMORY_LIMIT 2=768\n");
    w.cards = slices;
    assert_answer(&s, &w,
                  "grant\n"
                  "env 1=NVIDIA_VISIBLE_DEVICES 2=MIG-cccc,MIG-eeee\n"
                  "env 1=ALIYUN_COM_GPU_MEM_IDX 2=3,4\n"
                  "env 1=ALIYUN_COM_GPU_MEM_POD 2=6\n"
                  "env 1=ALIYUN_COM_GPU_MEM_CONTAINER 2=6\n"
                  "env 1=ALIYUN_COM_GPU_MEM_DEV 2=80\n");
}

/* The answer names no card, and the spec has all that an answer with cards has. */
TEST(test_late)
{
    struct answer_settings s = {.disable_cgpu = true, .unit = {GIB}};
    struct answer_want w = {
        .cards = two, .n_cards = 2, .dev_total = totals, .container_units = 8, .pod_units = 12};
    struct err e = ERR_INIT;
    struct buf out;
    struct buf text;
    buf_init(&out, MIB);
    buf_init(&text, MIB);
    answer_write_late(&out, STR("a1b2"));
    read_back(buf_str(&out), &text);
    ck_assert_str_is(buf_str(&text), "grant\n"
                                     "env 1=NVIDIA_VISIBLE_DEVICES 2=void\n"
                                     "other 1=cardpack.io/alloc=a1b2\n");
    buf_clear(&out, MIB);
    ck_assert_ok(answer_write_spec(&out, &s, &w, STR("a1b2"), &e), &e);
    ck_assert_str_is(buf_str(&out),
                     "{\"cdiVersion\":\"0.3.0\",\"kind\":\"cardpack.io/alloc\",\"devices\":["
                     "{\"name\":\"a1b2\",\"containerEdits\":{\"env\":["
                     "\"NVIDIA_VISIBLE_DEVICES=GPU-aaaa,GPU-bbbb\","
                     "\"ALIYUN_COM_GPU_MEM_IDX=2,11\","
                     "\"ALIYUN_COM_GPU_MEM_POD=12\","
                     "\"ALIYUN_COM_GPU_MEM_CONTAINER=8\","
                     "\"ALIYUN_COM_GPU_MEM_DEV=80\","
                     "\"CGPU_DISABLE=true\"]}}]}");
    buf_clear(&out, MIB);
    char dev[] = "answer-XXXXXX";
    uvm_open(dev);
    s = (struct answer_settings){.device_nodes = true, .unit = {GIB}, .dev = dev};
    w.n_cards = 1;
    ck_assert_ok(answer_write_spec(&out, &s, &w, STR("a1b2"), &e), &e);
    ck_assert(str_ends(buf_str(&out), STR("\"deviceNodes\":[{\"path\":\"/dev/nvidiactl\","
                                          "\"permissions\":\"rw\"},{\"path\":"
                                          "\"/dev/nvidia-uvm\",\"permissions\":\"rw\"},{"
                                          "\"path\":\"/dev/nvidia5\",\"permissions\":\"rw\"}"
                                          "]}}]}")));
    w.cards = &(const struct gpu_card *){&unseen};
    buf_clear(&out, MIB);
    ck_assert_int_eq(answer_write_spec(&out, &s, &w, STR("a1b2"), &e), ERR_UNAVAILABLE);
    ck_assert_uint_eq(out.n, 0);
    uvm_close(dev);
    buf_done(&text);
    buf_done(&out);
}

static void assert_spec(const struct answer_settings *s, const struct answer_want *w,
                        const char *expected)
{
    struct err e = ERR_INIT;
    struct buf out;
    buf_init(&out, MIB);
    ck_assert_ok(answer_write_spec(&out, s, w, STR("a1b2"), &e), &e);
    ck_assert_str_is(buf_str(&out), expected);
    buf_done(&out);
}

#define SPEC                                                                 \
    "{\"cdiVersion\":\"0.3.0\",\"kind\":\"cardpack.io/alloc\",\"devices\":[" \
    "{\"name\":\"a1b2\",\"containerEdits\":{\"env\":["                       \
    "\"NVIDIA_VISIBLE_DEVICES=GPU-aaaa\",\"ALIYUN_COM_GPU_MEM_IDX=2\","      \
    "\"ALIYUN_COM_GPU_MEM_POD=6\",\"ALIYUN_COM_GPU_MEM_CONTAINER=6\","       \
    "\"ALIYUN_COM_GPU_MEM_DEV=80\","

/* What limits a container is in the spec too: the variables of the driver's limits; of MPS also
 * the folders that its client needs. */
TEST(test_late_limits)
{
    struct answer_settings s = {.limits = true, .unit = {256 << 20}};
    struct answer_want w = {.cards = first_only,
                            .n_cards = 1,
                            .dev_total = totals,
                            .container_units = 6,
                            .pod_units = 6,
                            .limit_units = 6,
                            .cores = 30};
    assert_spec(&s, &w,
                SPEC "\"NVIDIA_GPU_MEMORY_REQUEST=0\",\"NVIDIA_GPU_MEMORY_LIMIT=1536\"]}}]}");
    s = (struct answer_settings){.mps_dir = STR("/run/mps"), .unit = {256 << 20}};
    assert_spec(&s, &w,
                SPEC "\"CUDA_MPS_PIPE_DIRECTORY=/run/mps/GPU-aaaa\","
                     "\"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1536M\","
                     "\"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30\"],\"mounts\":["
                     "{\"hostPath\":\"/run/mps/GPU-aaaa\",\"containerPath\":\"/run/mps/GPU-aaaa\","
                     "\"options\":[\"rw\",\"nosuid\",\"nodev\",\"bind\"]},"
                     "{\"hostPath\":\"/run/mps/GPU-aaaa.shm\",\"containerPath\":\"/dev/shm\","
                     "\"options\":[\"rw\",\"nosuid\",\"nodev\",\"bind\"]}]}}]}");
}

/* The host of the test has two of the three common nodes: the third is left out. */
/* One card alone: a process is the client of one MPS server. */
TEST(test_mps)
{
    struct answer_settings s = {.mps_dir = STR("/run/mps"), .unit = {256 << 20}};
    struct answer_want w = {.cards = first_only,
                            .n_cards = 1,
                            .dev_total = totals,
                            .container_units = 6,
                            .pod_units = 6,
                            .limit_units = 6,
                            .cores = 30};
    assert_answer(&s, &w,
                  "grant\n"
                  "env 1=NVIDIA_VISIBLE_DEVICES 2=GPU-aaaa\n"
                  "env 1=ALIYUN_COM_GPU_MEM_IDX 2=2\n"
                  "env 1=ALIYUN_COM_GPU_MEM_POD 2=6\n"
                  "env 1=ALIYUN_COM_GPU_MEM_CONTAINER 2=6\n"
                  "env 1=ALIYUN_COM_GPU_MEM_DEV 2=80\n"
                  "env 1=CUDA_MPS_PIPE_DIRECTORY 2=/run/mps/GPU-aaaa\n"
                  "env 1=CUDA_MPS_PINNED_DEVICE_MEM_LIMIT 2=0=1536M\n"
                  "env 1=CUDA_MPS_ACTIVE_THREAD_PERCENTAGE 2=30\n"
                  "mount 1=/run/mps/GPU-aaaa 2=/run/mps/GPU-aaaa\n"
                  "mount 1=/dev/shm 2=/run/mps/GPU-aaaa.shm\n");
    w.cards = two;
    w.n_cards = 2;
    assert_answer(&s, &w,
                  "grant\n"
                  "env 1=NVIDIA_VISIBLE_DEVICES 2=GPU-aaaa,GPU-bbbb\n"
                  "env 1=ALIYUN_COM_GPU_MEM_IDX 2=2,11\n"
                  "env 1=ALIYUN_COM_GPU_MEM_POD 2=6\n"
                  "env 1=ALIYUN_COM_GPU_MEM_CONTAINER 2=6\n"
                  "env 1=ALIYUN_COM_GPU_MEM_DEV 2=80\n");
}

TEST(test_nodes)
{
    char dev[] = "answer-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dev));
    touch(dev, "nvidiactl");
    touch(dev, "nvidia-uvm");
    struct answer_settings s = {
        .device_nodes = true, .unit = {GIB}, .dev = dev, .proc = "/nowhere"};
    struct answer_want w = {.cards = first_only,
                            .n_cards = 1,
                            .dev_total = totals,
                            .container_units = 8,
                            .pod_units = 8};
    assert_answer(&s, &w,
                  "grant\n"
                  "env 1=NVIDIA_VISIBLE_DEVICES 2=GPU-aaaa\n"
                  "env 1=ALIYUN_COM_GPU_MEM_IDX 2=2\n"
                  "env 1=ALIYUN_COM_GPU_MEM_POD 2=8\n"
                  "env 1=ALIYUN_COM_GPU_MEM_CONTAINER 2=8\n"
                  "env 1=ALIYUN_COM_GPU_MEM_DEV 2=80\n"
                  "node 1=/dev/nvidiactl 2=/dev/nvidiactl 3=rw\n"
                  "node 1=/dev/nvidia-uvm 2=/dev/nvidia-uvm 3=rw\n"
                  "node 1=/dev/nvidia5 2=/dev/nvidia5 3=rw\n");
    touch(dev, "nvidia-uvm-tools");
    w.cards = slices;
    w.n_cards = 2;
    assert_answer(&s, &w,
                  "grant\n"
                  "env 1=NVIDIA_VISIBLE_DEVICES 2=MIG-cccc,MIG-eeee\n"
                  "env 1=ALIYUN_COM_GPU_MEM_IDX 2=3,4\n"
                  "env 1=ALIYUN_COM_GPU_MEM_POD 2=8\n"
                  "env 1=ALIYUN_COM_GPU_MEM_CONTAINER 2=8\n"
                  "env 1=ALIYUN_COM_GPU_MEM_DEV 2=80\n"
                  "node 1=/dev/nvidiactl 2=/dev/nvidiactl 3=rw\n"
                  "node 1=/dev/nvidia-uvm 2=/dev/nvidia-uvm 3=rw\n"
                  "node 1=/dev/nvidia-uvm-tools 2=/dev/nvidia-uvm-tools 3=rw\n"
                  "node 1=/dev/nvidia7 2=/dev/nvidia7 3=rw\n"
                  "node 1=/dev/nvidia-caps/nvidia-cap30 2=/dev/nvidia-caps/nvidia-cap30 3=rw\n"
                  "node 1=/dev/nvidia-caps/nvidia-cap31 2=/dev/nvidia-caps/nvidia-cap31 3=rw\n"
                  "node 1=/dev/nvidia-caps/nvidia-cap39 2=/dev/nvidia-caps/nvidia-cap39 3=rw\n"
                  "node 1=/dev/nvidia-caps/nvidia-cap40 2=/dev/nvidia-caps/nvidia-cap40 3=rw\n");
    forget(dev, "nvidiactl");
    forget(dev, "nvidia-uvm");
    forget(dev, "nvidia-uvm-tools");
    ck_assert_int_eq(rmdir(dev), 0);
}

#define MOVED  "it would get a device node that is another card's by now"
#define BEFORE "it got its cards before MPS served them there, and would run without a limit"

/* What the kubelet has kept of an answer, and the cards as they are when the container starts
 * again. */
static const struct {
    const char *nodes[3];
    const char *pipe; /* NULL: the variable is not there */
    const struct gpu_card *cards[2];
    const char *mps_dir; /* NULL: no MPS */
    const char *stale;   /* NULL: it may start */
} kept[] = {
    {{NULL}, NULL, {&whole}, NULL, NULL},
    {{"/dev/nvidiactl", "/dev/nvidia-uvm-tools", "/dev/nvidia5"}, NULL, {&whole}, NULL, NULL},
    {{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"}, NULL, {&whole}, NULL, MOVED},
    {{"/dev/nvidia5", "/dev/nvidia0"}, NULL, {&whole, &other}, NULL, NULL},
    {{"/dev/nvidia5", "/dev/nvidia0"}, NULL, {&other}, NULL, MOVED},
    {{"/dev/nvidia7", "/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"},
     NULL,
     {&slice},
     NULL,
     NULL},
    {{"/dev/nvidia7", "/dev/nvidia-caps/nvidia-cap39"}, NULL, {&slice}, NULL, MOVED},
    {{"/dev/nvidia-caps/nvidia-cap30"}, NULL, {&whole}, NULL, MOVED},
    {{NULL}, NULL, {&whole}, "/run/mps", BEFORE},
    {{NULL}, "/run/mps/GPU-aaaa", {&whole}, "/run/mps", NULL},
    {{NULL}, "/run/mps/GPU-aaaa", {&whole}, "/run/other", BEFORE},
};

TEST_EACH(test_stale, COUNT_OF(kept))
{
    struct err e = ERR_INIT;
    struct plugin_node nodes[3];
    struct pb_field f;
    struct buf out;
    size_t n = 0;
    size_t n_cards = kept[_i].cards[1] == NULL ? 1 : 2;
    const struct plugin_pair env = {STR("CUDA_MPS_PIPE_DIRECTORY"),
                                    str_of(kept[_i].pipe == NULL ? "" : kept[_i].pipe)};
    for (; n < 3 && kept[_i].nodes[n] != NULL; n++)
        nodes[n] = (struct plugin_node){STR("/dev/x"), str_of(kept[_i].nodes[n]), STR("rw")};
    struct allocate_grant g = {
        .envs = &env, .n_envs = kept[_i].pipe == NULL ? 0 : 1, .nodes = nodes, .n_nodes = n};
    buf_init(&out, MIB);
    allocate_response_write(&out, &g, 1);
    struct pb_reader r = pb_read(buf_str(&out), &e);
    ck_assert(pb_next(&r, &f));
    struct str dir = kept[_i].mps_dir == NULL ? STR_NULL : str_of(kept[_i].mps_dir);
    const char *stale = answer_find_stale(pb_str(&r, &f), kept[_i].cards, n_cards, dir);
    ck_assert_pstr_eq(stale, kept[_i].stale);
    buf_done(&out);
}

/* A container without the capability `compute` has no /dev/nvidia-uvm: /proc/devices of the host
 * decides, and without it CUDA would not start. */
TEST(test_uvm)
{
    static const char *const others = "Character devices:\n195 nvidia\n501 nvidia-uvm-tools\n";
    char dir[] = "answer-XXXXXX";
    char path[64];
    struct buf out;
    struct err e = ERR_INIT;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    struct answer_settings s = {.device_nodes = true, .unit = {GIB}, .dev = dir, .proc = dir};
    struct answer_want w = {.cards = first_only,
                            .n_cards = 1,
                            .dev_total = totals,
                            .container_units = 8,
                            .pod_units = 8};
    (void)snprintf(path, sizeof(path), "%s/devices", dir);
    for (unsigned i = 0; i < 3; i++) {
        FILE *f = i == 0 ? NULL : fopen(path, "we");
        ck_assert(i == 0 || fprintf(f, "%s%s", others, i == 1 ? "" : "511 nvidia-uvm\n") > 0);
        ck_assert(i == 0 || fclose(f) == 0);
        buf_init(&out, 4096);
        enum errc code = answer_write(&out, &s, &w, &e);
        ck_assert_int_eq(code, i < 2 ? ERR_UNAVAILABLE : OK);
        ck_assert(i == 2 || strstr(e.text, "run nvidia-modprobe -c 0 -u there") != NULL);
        buf_done(&out);
    }
    forget(dir, "devices");
    ck_assert_int_eq(rmdir(dir), 0);
}

/* Its minor number is not known: minor 0 would be another card's node. */
TEST(test_unseen)
{
    const struct gpu_card *cards[] = {&whole, &unseen};
    char dev[] = "answer-XXXXXX";
    uvm_open(dev);
    struct answer_settings s = {.device_nodes = true, .unit = {GIB}, .dev = dev};
    struct answer_want w = {
        .cards = cards, .n_cards = 2, .dev_total = totals, .container_units = 8, .pod_units = 8};
    struct err e = ERR_INIT;
    struct buf out;
    buf_init(&out, MIB);
    ck_assert_int_eq(answer_write(&out, &s, &w, &e), ERR_UNAVAILABLE);
    ck_assert_msg(strstr(e.text, "card 6") != NULL, "%s", e.text);
    ck_assert_uint_eq(out.n, 0);
    uvm_close(dev);
    buf_done(&out);
}

static const char *uvm_dev;

static enum errc scenario(void *ctx)
{
    const struct answer_want *w = ctx;
    struct answer_settings s = {
        .device_nodes = true, .limits = true, .unit = {GIB}, .dev = uvm_dev};
    struct err e = ERR_INIT;
    struct buf out;
    buf_init(&out, MIB);
    enum errc code = answer_write(&out, &s, w, &e);
    if (code == OK)
        code = answer_write_spec(&out, &s, w, STR("a1"), &e);
    if (code == OK)
        code = buf_fault(&out);
    buf_done(&out);
    return code;
}

TEST(test_without_memory)
{
    struct answer_want w = {
        .cards = two, .n_cards = 2, .dev_total = totals, .container_units = 8, .pod_units = 8};
    char dev[] = "answer-XXXXXX";
    uvm_open(dev);
    uvm_dev = dev;
    ck_assert_uint_gt(fail_alloc_each(scenario, &w), 1);
    uvm_close(dev);
}
