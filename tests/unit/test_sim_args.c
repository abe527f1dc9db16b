/* The command line of cardpack-sim: what it accepts, and each thing that it refuses. */
#include "sim/sim_args.h"
#include "unit.h"

#include <stdio.h>

#define WORDS 20

static enum errc parse(const char *line, char *words, size_t size, struct sim_args *ret,
                       struct err *e)
{
    char *argv[WORDS + 2] = {NULL};
    int argc = 1;
    struct str rest = str_of(line);
    size_t at = 0;
    argv[0] = words;
    words[at++] = '\0';
    while (rest.n > 0 && argc <= WORDS) {
        struct str word;
        (void)str_cut(rest, ' ', &word, &rest);
        ck_assert_uint_lt(at + word.n + 1, size);
        argv[argc++] = words + at;
        memcpy(words + at, word.p, word.n);
        at += word.n;
        words[at++] = '\0';
    }
    return sim_args_parse(argc, argv, ret, e);
}

TEST(accepts_all_flags_of_replay)
{
    char words[512];
    struct sim_args a;
    struct err e = ERR_INIT;
    ck_assert_ok(parse("--nodes n.csv replay --pods=a.csv --pods b.csv --policy bestfit,spread "
                       "--seeds=3 -o csv --ties pod",
                       words, sizeof(words), &a, &e),
                 &e);
    ck_assert_int_eq(a.command, SIM_REPLAY);
    ck_assert_str_is(a.nodes, "n.csv");
    ck_assert_uint_eq(a.n_pods, 2);
    ck_assert_str_is(a.pods[1], "b.csv");
    ck_assert_uint_eq(a.n_policies, 2);
    ck_assert(a.policies[0].bestfit && !a.policies[1].bestfit);
    ck_assert_int_eq(a.policies[1].policy, POLICY_SPREAD);
    ck_assert_uint_eq(a.seeds, 3);
    ck_assert_int_eq(a.output, SIM_CSV);
    ck_assert_int_eq(a.ties, SIM_TIES_POD);
}

TEST(has_defaults)
{
    char words[512];
    struct sim_args a;
    struct err e = ERR_INIT;
    ck_assert_ok(parse("churn --nodes n --pods p", words, sizeof(words), &a, &e), &e);
    ck_assert_uint_eq(a.n_policies, 1);
    ck_assert_str_is(a.policies[0].name, "binpack");
    ck_assert_uint_eq(a.n_loads, 3);
    ck_assert_double_eq(a.loads[1], 0.95);
    ck_assert_uint_eq(a.seeds, 10);
    ck_assert_uint_eq(a.first_seed, 1);
}

TEST(reads_loads)
{
    char words[512];
    struct sim_args a;
    struct err e = ERR_INIT;
    ck_assert_ok(
        parse("churn --nodes n --pods p --load 1,0.0001,2.5", words, sizeof(words), &a, &e), &e);
    ck_assert_uint_eq(a.n_loads, 3);
    ck_assert_double_eq(a.loads[0], 1);
    ck_assert_double_eq_tol(a.loads[1], 0.0001, 1e-12);
    ck_assert_double_eq(a.loads[2], 2.5);
}

TEST(helps)
{
    char words[512];
    struct sim_args a;
    struct err e = ERR_INIT;
    ck_assert_ok(parse("grow --help", words, sizeof(words), &a, &e), &e);
    ck_assert(a.command == SIM_HELP && a.subject == SIM_GROW);
    ck_assert_ok(parse("help churn", words, sizeof(words), &a, &e), &e);
    ck_assert(a.command == SIM_HELP && a.subject == SIM_CHURN);
    ck_assert_ok(parse("-h", words, sizeof(words), &a, &e), &e);
    ck_assert(a.command == SIM_HELP && a.subject == SIM_HELP);
}

/* What the script offers after --policy, --ties and -o is accepted there. */
static void check_offered(struct str script, const char *flag)
{
    char words[512];
    char line[128];
    char key[64];
    const char *end = script.p + script.n;
    (void)snprintf(key, sizeof(key), "        %s", flag);
    const char *at = strstr(script.p, key);
    ck_assert_ptr_nonnull(at);
    at = strstr(at, "-W '");
    ck_assert_ptr_nonnull(at);
    for (at += 4; at < end && *at != '\'';) {
        struct sim_args a;
        struct err e = ERR_INIT;
        size_t n = strcspn(at, " '");
        (void)snprintf(line, sizeof(line), "replay --nodes n --pods p %s %.*s", flag, (int)n, at);
        ck_assert_ok(parse(line, words, sizeof(words), &a, &e), &e);
        at += n + (at[n] == ' ' ? 1 : 0);
    }
}

TEST(completes)
{
    char words[512];
    char bytes[16384];
    struct buf out = buf_on(bytes, sizeof(bytes));
    struct sim_args a;
    struct err e = ERR_INIT;
    ck_assert_ok(parse("completion bash", words, sizeof(words), &a, &e), &e);
    ck_assert_int_eq(a.command, SIM_COMPLETION);
    sim_completion(&out);
    ck_assert(!buf_failed(&out));
    const char *script = buf_cstr(&out);
    check_offered(buf_str(&out), "--policy");
    check_offered(buf_str(&out), "--ties");
    check_offered(buf_str(&out), "--output");
    ck_assert_ptr_nonnull(strstr(script, "grow) offer='--cluster --policy --add --ties --output "
                                         "--check --help '"));
    ck_assert_ptr_nonnull(strstr(script, "fit) offer='--nodes --cluster --policy --filename "));
    ck_assert_ptr_nonnull(strstr(script, "completion) offer='bash --help '"));
}

static const struct {
    const char *line;
    const char *error;
} bad[] = {
    {"", "name a command; see cardpack-sim help"},
    {"replai", "unknown command \"replai\", perhaps replay; see cardpack-sim help"},
    {"replay --polcy x", "unknown flag \"--polcy\", perhaps --policy; see cardpack-sim help"},
    {"replay more", "replay: \"more\" is one word too many; it is: replay --nodes FILE --pods FILE "
                    "... | --cluster FILE"},
    {"replay --nodes", "--nodes needs a value: FILE"},
    {"replay --nodes=", "--nodes: the value is empty"},
    {"replay --check=yes", "--check takes no value"},
    {"replay --policy fit",
     "--policy: \"fit\" must be binpack, spread, fgd, bid-price, bestfit or fgd-paper"},
    {"replay --policy binpack,",
     "--policy: \"\" must be binpack, spread, fgd, bid-price, bestfit or fgd-paper"},
    {"replay --seeds 0", "--seeds: \"0\" must be a number from 1 to 10000"},
    {"replay --fill 1001", "--fill: \"1001\" must be a number from 1 to 1000"},
    {"replay --jobs x", "--jobs: \"x\" must be a number from 1 to 256"},
    {"replay --ties often", "--ties: \"often\" must be run, pod or name"},
    {"replay -o yaml", "--output: \"yaml\" must be table, json or csv"},
    {"churn --load 0", "--load: \"0\" must be a load from 0.0001 to 10, such as 0.95"},
    {"churn --load 0.95x", "--load: \"0.95x\" must be a load from 0.0001 to 10, such as 0.95"},
    {"churn --load 11", "--load: \"11\" must be a load from 0.0001 to 10, such as 0.95"},
    {"churn --fill 5", "churn takes no --fill"},
    {"churn --cluster c", "churn takes no --cluster"},
    {"replay --load 1", "replay takes no --load"},
    {"replay", "replay: name a file with --nodes or --cluster"},
    {"replay --nodes n", "replay: name a file with --pods"},
    {"churn --pods p", "churn: name a file with --nodes"},
    {"replay --cluster c --pods p", "replay: --cluster and --pods exclude each other"},
    {"fit --nodes n", "fit: name the pod's file with -f"},
    {"fit --nodes n -f p --policy spread,binpack", "fit: one policy only"},
    {"grow --add cards=1", "grow: name the cluster's file with --cluster"},
    {"grow --cluster c", "grow: name the node to add with --add"},
    {"replay --nodes n --pods p --places x", "replay: --places needs --in-order"},
    {"replay --nodes n --pods p --in-order --fill 90",
     "replay: --in-order and --fill exclude each other"},
    {"replay --nodes n --pods p --in-order --seeds 2",
     "replay: --in-order and --seeds exclude each other"},
    {"churn --nodes n --pods p --in-order", "churn takes no --in-order"},
    {"completion", "completion: name the shell: bash"},
    {"completion zsh", "completion: \"zsh\" must be bash"},
    {"completion bash bash", "completion: \"bash\" is one word too many; it is: completion bash"},
    {"completion bash --seeds 2", "completion takes no --seeds"},
    {"replay --cluster c --policy bestfit", "--policy: bestfit is for traces only"},
};

TEST_EACH(refuses, COUNT_OF(bad))
{
    char words[512];
    struct sim_args a;
    struct err e = ERR_INIT;
    ck_assert_int_ne(parse(bad[_i].line, words, sizeof(words), &a, &e), OK);
    ck_assert_str_eq(e.text, bad[_i].error);
}
