/* A driver of one GPU without kernels: what the library calls to make devices, to launch and to end, on host memory. It
 * writes what happens to modules to the file that FAKE_JOURNAL names, a word each; with FAKE_ALL also allocations and waits,
 * with FAKE_CONTEXTS also contexts that are made current. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 1, GONE = 709 };

static int modules, running, gone;
static _Thread_local void *current;
static char context;

static void note(const char *word) {
    FILE *journal = fopen(getenv("FAKE_JOURNAL"), "a");
    fprintf(journal, "%s\n", word);
    fclose(journal);
}

static void note_of_all(const char *word) {
    if (getenv("FAKE_ALL"))
        note(word);
}

int cuInit(unsigned flags) { return flags ? INVALID : SUCCESS; }
int cuDriverGetVersion(int *version) { return *version = 13000, SUCCESS; }
int cuDeviceGetCount(int *count) { return *count = 1, SUCCESS; }
int cuDeviceGet(int *device, int index) { return *device = index, SUCCESS; }
int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "fake %d", device), SUCCESS; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 1 << 30, (void)device, SUCCESS; }

/* Multiprocessors, compute capability 9.0, and shared memory of a block. */
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 16 ? 132 : attribute == 75 ? 9 : attribute == 97 ? 227 * 1024 : 0;
    return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **retained, int device) { return *retained = &context, (void)device, SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { return note("release"), current = 0, (void)device, SUCCESS; }
int cuCtxGetCurrent(void **found) { return *found = current, SUCCESS; }
int cuCtxSetCurrent(void *wanted) {
    if (getenv("FAKE_CONTEXTS"))
        note("set-context");
    return gone ? GONE : (current = wanted, SUCCESS);
}
int cuCtxSynchronize(void) { return note_of_all("wait"), gone ? GONE : current ? (running = 0, SUCCESS) : INVALID; }

int cuMemAlloc_v2(void **address, size_t bytes) { return note_of_all("allocate"), *address = aligned_alloc(256, (bytes + 255) / 256 * 256), SUCCESS; }
int cuMemFree_v2(void *address) { return free(address), SUCCESS; }
int cuMemAllocHost_v2(void **first, size_t bytes) { return *first = malloc(bytes), SUCCESS; }
int cuMemFreeHost(void *first) { return free(first), SUCCESS; }
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream) {
    return memcpy(to, from, bytes), (void)stream, SUCCESS;
}
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream) {
    return memcpy(to, from, bytes), (void)stream, SUCCESS;
}
int cuMemcpyHtoD_v2(void *to, const void *from, size_t bytes) { return memcpy(to, from, bytes), SUCCESS; }
int cuMemcpyDtoH_v2(void *to, const void *from, size_t bytes) { return memcpy(to, from, bytes), SUCCESS; }
int cuMemsetD8_v2(void *to, unsigned char value, size_t bytes) { return memset(to, value, bytes), SUCCESS; }

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    return *stream = (void *)0x57, (void)flags, (void)priority, SUCCESS;
}
int cuStreamSynchronize(void *stream) { return note_of_all("wait"), running = 0, (void)stream, SUCCESS; }
int cuStreamDestroy_v2(void *stream) { return note_of_all("destroy"), (void)stream, SUCCESS; }

/* Streams of odd handles are another context's. Default streams are not asked for. */
int cuStreamGetCtx(void *stream, void **of) {
    static char another;
    return note_of_all("context-of"), *of = (size_t)stream % 2 ? &another : &context, SUCCESS;
}

int cuModuleLoadDataEx(void **module, const char *ptx, unsigned count, int *options, void **values) {
    (void)count, (void)options, (void)values;
    modules++;
    note("load");
    *module = (void *)ptx;
    return SUCCESS;
}
int cuModuleUnload(void *module) {
    (void)module;
    note(!current ? "unload-without-context" : running ? "unload-while-running" : "unload");
    return modules-- ? SUCCESS : INVALID;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    if (getenv("FAKE_NO_ENTRY"))
        return 500;
    return *function = module, (void)name, SUCCESS;
}
int cuFuncSetAttribute(void *function, int attribute, int value) { return (void)function, (void)attribute, (void)value, SUCCESS; }

/* With FAKE_GONE the context is lost by the launch. */
int cuLaunchKernel(void *function) {
    (void)function;
    note("launch");
    running = 1;
    gone = getenv("FAKE_GONE") != 0;
    return SUCCESS;
}
