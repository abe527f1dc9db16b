/* The reader of traces: what it takes, and every row that it refuses. */
#include "sim_data.h"

#include "core/state/node.h"

TEST(reads_nodes_and_pods)
{
    struct arena a;
    struct sim_workload w;
    sim_data_read(&a,
                  "gpu,sn,extra,model,memory_mib,cpu_milli\r\n"
                  "2,n-1,x,T4,262144,96000\r\n"
                  "\r\n"
                  "0,n-0,x,,1024,32000\r\n",
                  "\xef\xbb\xbfname,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
                  "p-2,1000,512,1,460,T4|V100M16,LS\n"
                  "p-1,1000,512,1,460,T4|V100M16,BE\n"
                  "p-0,4000,0,2,1000,,LS\n"
                  "p-3,500,64,0,0,,LS",
                  &w);
    ck_assert_uint_eq(w.n_nodes, 2);
    ck_assert_str_is(w.nodes[0].view.name, "n-1");
    ck_assert_str_is(w.nodes[0].view.mem, "2000");
    ck_assert_str_is(w.nodes[0].view.count, "2");
    ck_assert_str_is(w.nodes[0].view.model, "T4");
    ck_assert_str_is(w.nodes[0].view.cpu, "96000m");
    ck_assert_str_is(w.nodes[0].view.memory, "262144Mi");
    ck_assert_ptr_null(w.nodes[1].view.mem.p);
    ck_assert_int_eq(w.capacity, 2000);
    ck_assert_uint_eq(w.n_pods, 4);
    ck_assert_uint_eq(w.n_shapes, 3); /* p-1 and p-2 have one shape */
    ck_assert_uint_eq(w.pods[1], w.pods[2]);
    const struct sim_shape *two = &w.shapes[w.pods[0]];
    ck_assert_int_eq(two->mem, 2000);
    ck_assert_int_eq(two->card_mem, 1000);
    ck_assert_uint_eq(two->request.cards, 2);
    const struct sim_shape *share = &w.shapes[w.pods[1]];
    ck_assert_int_eq(share->mem, 460);
    ck_assert_str_is(share->request.models, "T4,V100M16");
    ck_assert_int_eq(share->request.host.cpu, 1000);
    ck_assert_int_eq(share->request.host.memory, 512 * (int64_t)MIB);
    ck_assert(!request_wants(&w.shapes[w.pods[3]].request));
    arena_done(&a);
}

TEST(reads_pods_without_models)
{
    struct arena a;
    struct sim_workload w;
    sim_data_read(&a, NODE_HEADS "n,1,1,1,T4\n",
                  "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\n", &w);
    ck_assert_ptr_null(w.shapes[0].request.models.p);
    arena_done(&a);
}

static const struct {
    const char *text;
    const char *error;
} bad_nodes[] = {
    {"", "f.csv: it is empty"},
    {"\n \n", "f.csv: it is empty"},
    {NODE_HEADS, "f.csv: it has no nodes"},
    {"sn,cpu_milli,gpu,model\nn,1,1,T4\n",
     "f.csv:1: no column memory_mib among sn,cpu_milli,gpu,model"},
    {NODE_HEADS "n,1,1,1,T4\nm,1,1,1\n", "f.csv:3: 4 fields where the first line names 5"},
    {NODE_HEADS "n,1,1,1,T4,x\n", "f.csv:2: 6 fields where the first line names 5"},
    {NODE_HEADS ",1,1,1,T4\n", "f.csv:2: sn: \"\" is no name"},
    {NODE_HEADS "n,1.5,1,1,T4\n",
     "f.csv:2: cpu_milli: \"1.5\" is not a whole number from 0 to 1000000000"},
    {NODE_HEADS "n,-1,1,1,T4\n",
     "f.csv:2: cpu_milli: \"-1\" is not a whole number from 0 to 1000000000"},
    {NODE_HEADS "n,1,99999999999,1,T4\n",
     "f.csv:2: memory_mib: \"99999999999\" is not a whole number from 0 to 67108864"},
    {NODE_HEADS "n,1,1,,T4\n", "f.csv:2: gpu: \"\" is not a whole number from 0 to 1024"},
    {NODE_HEADS "n,1,1,1025,T4\n", "f.csv:2: gpu: \"1025\" is not a whole number from 0 to 1024"},
    {NODE_HEADS "n,1,1,1,\"T4\"\n", "f.csv:2: field 5: quotes are not read"},
    {NODE_HEADS "n,1,1,1,T4\nn,1,1,1,T4\n", "f.csv: two nodes are named \"n\""},
};

TEST_EACH(refuses_bad_nodes, COUNT_OF(bad_nodes))
{
    struct arena a;
    struct sim_workload w = {.n_nodes = 0};
    struct err e = ERR_INIT;
    arena_init(&a, MIB);
    ck_assert_int_ne(trace_read_nodes(STR("f.csv"), str_of(bad_nodes[_i].text), &a, &w, &e), OK);
    ck_assert_str_eq(e.text, bad_nodes[_i].error);
    arena_done(&a);
}

static const struct {
    const char *text;
    const char *error;
} bad_pods[] = {
    {POD_HEADS, "f.csv: it has no pods"},
    {"name,cpu_milli,memory_mib,num_gpu,gpu_spec\np,1,1,1,\n",
     "f.csv:1: no column gpu_milli among name,cpu_milli,memory_mib,num_gpu,gpu_spec"},
    {POD_HEADS "p,x,1,1,1000,\n",
     "f.csv:2: cpu_milli: \"x\" is not a whole number from 0 to 1000000000"},
    {POD_HEADS "p,1,1e3,1,1000,\n",
     "f.csv:2: memory_mib: \"1e3\" is not a whole number from 0 to 67108864"},
    {POD_HEADS "p,1,1,65,1000,\n", "f.csv:2: num_gpu: \"65\" is not a whole number from 0 to 64"},
    {POD_HEADS "p,1,1,1,1001,\n",
     "f.csv:2: gpu_milli: \"1001\" is not a whole number from 0 to 1000"},
    {POD_HEADS "p,1,1,1,0,\n",
     "f.csv:2: gpu_milli: \"0\" is no part of a card, but num_gpu asks for cards"},
    {POD_HEADS "p,1,1,2,500,\n", "f.csv:2: gpu_milli: \"500\" must be 1000 if num_gpu is above 1"},
    {POD_HEADS "p,1,1,1,1000,!T4\n",
     "f.csv:2: gpu_spec: \"!T4\" must be names of models with | between them"},
    {POD_HEADS "p,1,1,1,1000,T*\n",
     "f.csv:2: gpu_spec: \"T*\" must be names of models with | between them"},
};

TEST_EACH(refuses_bad_pods, COUNT_OF(bad_pods))
{
    struct arena a;
    struct sim_workload w = {.n_nodes = 0};
    struct err e = ERR_INIT;
    arena_init(&a, MIB);
    ck_assert_int_ne(trace_read_pods(STR("f.csv"), str_of(bad_pods[_i].text), &a, &w, &e), OK);
    ck_assert_str_eq(e.text, bad_pods[_i].error);
    arena_done(&a);
}

/* As many as meet in the table of shapes. */
TEST(tells_shapes_apart)
{
    struct arena a;
    struct sim_workload w = {.n_nodes = 0};
    struct err e = ERR_INIT;
    struct buf text;
    arena_init(&a, 64 * MIB);
    buf_init(&text, MIB);
    buf_put(&text, STR(POD_HEADS));
    for (unsigned i = 0; i < 1000; i++)
        buf_printf(&text, "p%03u,%u,%u,1,500,%s\n", i, i % 500, 64 * (i % 3),
                   i % 2 == 0 ? "" : "T4");
    ck_assert_ok(trace_read_pods(STR("f"), buf_str(&text), &a, &w, &e), &e);
    ck_assert_uint_eq(w.n_shapes, 1000); /* 500 and 3 have no common divisor */
    for (unsigned i = 0; i < 1000; i++) {
        const struct sim_shape *s = &w.shapes[w.pods[i]];
        ck_assert_int_eq(s->request.host.cpu, i % 500);
        ck_assert_int_eq(s->request.host.memory, (int64_t)(64 * MIB * (i % 3)));
        ck_assert(str_eq(s->request.models, i % 2 == 0 ? STR_NULL : STR("T4")));
    }
    buf_done(&text);
    arena_done(&a);
}

TEST(refuses_nodes_without_cards)
{
    struct arena a;
    struct sim_workload w = {.n_nodes = 0};
    struct err e = ERR_INIT;
    arena_init(&a, MIB);
    ck_assert_ok(trace_read_nodes(STR("f"), STR(NODE_HEADS "n,1,1,0,\n"), &a, &w, &e), &e);
    ck_assert_int_eq(sim_workload_measure(&w, &e), ERR_RANGE);
    ck_assert_str_eq(e.text, "no node has cards that are shared");
    arena_done(&a);
}

/* A file that the arena has no room for fails, and not half of it is taken. */
TEST(refuses_more_than_its_memory)
{
    struct err e = ERR_INIT;
    bool fits = false;
    for (size_t room = 64; !fits; room += 64) {
        struct arena a;
        struct sim_workload w = {.n_nodes = 0};
        arena_init(&a, room);
        enum errc code = trace_read_pods(
            STR("f"), STR(POD_HEADS "p,1,1,1,1000,T4\nq,1,1,0,0,\nr,1,1,1,20,T4|G2\n"), &a, &w, &e);
        fits = code == OK;
        ck_assert(fits || code == ERR_LIMIT);
        ck_assert(!fits || w.n_pods == 3);
        arena_done(&a);
        ck_assert_uint_lt(room, 64 * KIB);
    }
}
