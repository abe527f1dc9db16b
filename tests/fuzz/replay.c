/*
 * Runs a fuzz target once for each file of a directory, sorted by name, and once for an empty
 * input; prints TAP on standard output. Each input is in a block of its exact size, so that ASan
 * sees an over-read. A crash names its file, because the line is printed before the run.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The file's bytes in a block of their size, which the caller frees; NULL: it can't be read. */
static uint8_t *load(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return NULL;
    uint8_t *bytes = NULL;
    long n = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (n >= 0 && fseek(file, 0, SEEK_SET) == 0)
        bytes = malloc(n == 0 ? 1 : (size_t)n);
    if (bytes != NULL && fread(bytes, 1, (size_t)n, file) != (size_t)n) {
        free(bytes);
        bytes = NULL;
    }
    *ret_n = n < 0 ? 0 : (size_t)n;
    (void)fclose(file);
    return bytes;
}

static bool replay(const char *directory, const char *name)
{
    char path[4096];
    size_t n = 0;
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    uint8_t *bytes = load(path, &n);
    if (bytes == NULL)
        return false;
    (void)LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
    return true;
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    int failed = 0;
    int n = argc == 2 ? scandir(argv[1], &entries, is_visible, alphasort) : -1;
    if (n <= 0) {
        (void)printf("Bail out! usage: %s DIRECTORY, with files in it\n", argv[0]);
        return EXIT_FAILURE;
    }
    (void)printf("1..%d\n", n + 1);
    static const uint8_t nothing[1];
    (void)LLVMFuzzerTestOneInput(nothing, 0);
    (void)printf("ok 1 - nothing\n");
    for (int i = 0; i < n; i++) {
        (void)printf("# %s\n", entries[i]->d_name);
        (void)fflush(stdout);
        bool good = replay(argv[1], entries[i]->d_name);
        (void)printf("%s %d - %s\n", good ? "ok" : "not ok", i + 2, entries[i]->d_name);
        failed += good ? 0 : 1;
        free(entries[i]);
    }
    free(entries);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
