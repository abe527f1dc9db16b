/* The list of the pods that have the leader's label: as large as it can be, and as odd. */
#include "leader_label_rig.h"

/* Whoever can create pods there must not keep the leader from taking the label away. */
TEST(pods_as_large_as_they_can_be)
{
    const size_t size = 9 * MIB;
    char *note = malloc(size + 1);
    ck_assert_ptr_nonnull(note);
    memset(note, 'x', size);
    note[size] = '\0';
    t.note = note;
    t.pods[2].uid = "uid-c";
    label_pod(1, "lease");
    label_pod(2, "lease");
    open_label();
    lead(true);
    pass(2000);
    labelled("lease", "", "");
    trouble_is("");
    free(note);
}

/* The others lose the label nevertheless, and the log names the pod and the field, once. */
TEST(a_pod_that_can_not_be_read)
{
    t.odd = true;
    t.pods[2].uid = "uid-c";
    label_pod(1, "lease");
    label_pod(2, "lease");
    open_label();
    lead(true);
    pass(3 * LEADER_LABEL_CHECK_MS);
    labelled("lease", "lease", "");
    trouble_is("");
    ck_assert_uint_eq(told("pod cardpack-b: metadata.uid: "), 1);
    t.odd = false;
    pass(3 * LEADER_LABEL_RETRY_MAX_MS);
    labelled("lease", "", "");
    ck_assert_uint_eq(told("can be written again"), 1);
}

static const char *const garbled[] = {
    "", "{", "[]", "{\"items\":{}}", "{\"items\":[{}]}", "{\"items\":[{\"metadata\":null}]}"};

/* A list that can't be read, or that lacks the own pod, is tried again. */
TEST_EACH(garbled_lists, COUNT_OF(garbled))
{
    open_label();
    t.silent = true;
    lead(true);
    for (unsigned i = 0; fake_waiting("GET", "pods?") == NULL; i++) {
        ck_assert_uint_lt(i, 10);
        pass(0);
        if (fake_waiting("PATCH", "pods") != NULL)
            serve_one(fake_find("PATCH", "pods"));
    }
    fake_answer(fake_find("GET", "pods?"), 200, garbled[_i]);
    t.silent = false;
    pass(1000);
    labelled("lease", "", "");
    trouble_is("");
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
