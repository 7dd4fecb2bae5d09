/* A cuBLAS that computes on the host, so that addresses may be host addresses. Functions and numbers as in
   cublas_api.h; statuses: 0 good, 7 invalid value. */
#include "journal.h"

typedef struct { void *stream, *workspace; size_t bytes; int mode; } Handle;

int cublasGetProperty(int property, int *value) {
    static const int version[3] = {13, 1, 2};
    NOTE();
    if (property < 0 || property > 2) return 7;
    *value = version[property];
    return 0;
}

int cublasCreate_v2(Handle **handle) {
    NOTE();
    *handle = calloc(1, sizeof **handle);
    live++;
    return 0;
}

int cublasDestroy_v2(Handle *handle) {
    NOTE();
    free(handle);
    live--;
    return 0;
}

/* As the real one does, this forgets the workspace. */
int cublasSetStream_v2(Handle *handle, void *stream) {
    NOTE();
    handle->stream = stream;
    handle->workspace = NULL;
    return 0;
}

int cublasSetWorkspace_v2(Handle *handle, void *workspace, size_t bytes) {
    NOTE();
    handle->workspace = workspace;
    handle->bytes = bytes;
    return 0;
}

int cublasSetMathMode(Handle *handle, int mode) {
    NOTE_WITH(mode == 0 ? "default" : mode == 3 ? "tf32" : "?");
    handle->mode = mode;
    return 0;
}

int cublasSgemm_v2(Handle *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a,
                   int leading_a, const float *b, int leading_b, const float *beta, float *c, int leading_c) {
    NOTE();
    if (op_a || op_b || handle->stream != (void *)0x57) return 7;
    if (!handle->workspace || handle->bytes < (4u << 20)) return 7;
    if (leading_a < m || leading_b < k || leading_c < m) return 7;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            float sum = 0, *out = &c[(size_t)j * leading_c + i];
            for (int p = 0; p < k; p++) sum += a[(size_t)p * leading_a + i] * b[(size_t)j * leading_b + p];
            *out = *alpha * sum + (*beta == 0 ? 0 : *beta * *out);
        }
    return 0;
}
