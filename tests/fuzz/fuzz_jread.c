/* The reader accepts exactly what jansson accepts, and reads the same; see json_oracle.h. */
#include "json_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *why = oracle_disagreement((struct str){(const char *)data, size});
    if (why != NULL) {
        (void)fprintf(stderr, "%s\n", why);
        abort();
    }
    return 0;
}
