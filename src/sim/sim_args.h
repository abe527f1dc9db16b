/* The command line of cardpack-sim: one table of commands and one of flags, for parsing and help.
 */
#pragma once

#include "base/cli.h"
#include "sim/limit.h"
#include "sim/world.h"

enum sim_command {
    SIM_REPLAY,
    SIM_CHURN,
    SIM_FIT,
    SIM_GROW,
    SIM_COMPLETION, /* this and all further ones read no file */
    SIM_VERSION,
    SIM_HELP,
    SIM_COMMANDS
};

enum sim_output {
    SIM_TABLE,
    SIM_JSON,
    SIM_CSV,
};

struct sim_args {
    enum sim_command command;
    enum sim_command subject; /* SIM_HELP: of which command; SIM_HELP itself: of all */
    struct str nodes;         /* paths; absent if not given */
    struct str cluster;
    struct str filename;
    struct str plot;
    struct str places;
    struct str add; /* the shape of a node to add */
    struct str pods[LIMIT_SIM_WORKLOADS];
    size_t n_pods;
    struct sim_policy policies[LIMIT_SIM_POLICIES];
    size_t n_policies;
    double loads[LIMIT_SIM_LOADS];
    size_t n_loads;
    uint32_t seeds;
    uint32_t first_seed;
    uint32_t fill; /* percent; 0: not given */
    uint32_t jobs; /* processes at a time; 0: one for each processor */
    enum sim_ties ties;
    enum sim_output output;
    bool in_order;
    bool checked;
};

/* ERR_SYNTAX or ERR_RANGE: invalid; the error names the flag and the value. Strings are views of
 * argv. */
enum errc sim_args_parse(int argc, char *const argv[], struct sim_args *ret, struct err *reterr)
    _must_use_;

/* The help of one command; of SIM_HELP: of all. */
void sim_usage(struct buf *out, enum sim_command c);

/* The completion script for bash: it has all commands, flags and words, and runs nothing. */
void sim_completion(struct buf *out);
