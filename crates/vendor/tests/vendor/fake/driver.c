/* A driver whose graphs are two launches, of functions 1 and 2. */
#include "journal.h"

struct kernel {
    void *function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
};

int cuStreamBeginCapture_v2(void *stream, int mode) {
    NOTE();
    return (void)stream, mode == 1 ? 0 : 1;
}

int cuStreamEndCapture(void *stream, void **graph) {
    NOTE();
    live++;
    return *graph = &live, (void)stream, 0;
}

int cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
    NOTE();
    if (nodes)
        for (size_t node = 0; node < *count; node++)
            nodes[node] = (void *)(node + 1);
    return *count = 2, graph == &live ? 0 : 1;
}

int cuGraphKernelNodeGetParams(void *node, struct kernel *kernel) {
    static int arguments[] = {90, 91};
    static void *parameters[] = {&arguments[0], &arguments[1]};
    NOTE();
    *kernel = (struct kernel){node, {2, 3, 4}, {5, 6, 7}, 8, &parameters[(size_t)node - 1], 0};
    return 0;
}

int cuGraphDestroy(void *graph) {
    NOTE();
    live--;
    return graph == &live ? 0 : 1;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned width, unsigned height, unsigned depth,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    char arguments[128];
    snprintf(arguments, sizeof arguments, "%zu,%u,%u,%u,%u,%u,%u,%u,%d", (size_t)function, x, y, z, width, height, depth,
             shared, *(int *)parameters[0]);
    NOTE_WITH(arguments);
    return (void)stream, (void)extra, 0;
}
