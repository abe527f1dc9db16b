/* The messages of the kubelet and its checkpoint: a reader accepts bytes or says why it does not.
 * The first byte chooses the reader. */
#include "base/limit.h"
#include "kubelet/checkpoint.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct err e = ERR_INIT;
    struct allocate_request allocate;
    struct preferred_request preferred;
    struct pod_resources pods;
    struct checkpoint checkpoint;
    if (size == 0)
        return 0;
    struct str bytes = {(const char *)data + 1, size - 1};
    enum errc code;
    arena_init(&a, MIB);
    if (data[0] == 'a')
        code = allocate_request_read(bytes, &a, &allocate, &e);
    else if (data[0] == 'p')
        code = preferred_request_read(bytes, &a, &preferred, &e);
    else if (data[0] == 'c')
        code = checkpoint_read(bytes, &a, &checkpoint, &e);
    else
        code = pod_resources_read(bytes, &a, &pods, &e);
    check((code == OK) == (e.text[0] == '\0'), "an error says why");
    arena_done(&a);
    return 0;
}
