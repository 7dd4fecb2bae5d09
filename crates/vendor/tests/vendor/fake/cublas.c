/* A cuBLAS that computes on the host, so that addresses may be host addresses. Functions and numbers as in
   cublas_api.h; statuses: 0 good, 7 invalid value. */
#include "journal.h"
#include "values.h"

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

static int multiply(Handle *handle, int op_a, int op_b, int m, int n, int k, float alpha, const void *a, int leading_a,
                    const void *b, int leading_b, float beta, void *c, int leading_c, int type) {
    if (op_a < 0 || op_a > 1 || op_b || handle->stream != (void *)0x57) return 7;
    if (!handle->workspace || handle->bytes < (4u << 20)) return 7;
    if (leading_a < (op_a ? k : m) || leading_b < k || leading_c < m) return 7;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            int64_t out = (int64_t)j * leading_c + i;
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += load(a, type, op_a ? (int64_t)i * leading_a + p : (int64_t)p * leading_a + i) *
                       load(b, type, (int64_t)j * leading_b + p);
            store(c, type, out, alpha * sum + (beta == 0 ? 0 : beta * load(c, type, out)));
        }
    return 0;
}

int cublasSgemm_v2(Handle *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a,
                   int leading_a, const float *b, int leading_b, const float *beta, float *c, int leading_c) {
    NOTE();
    return multiply(handle, op_a, op_b, m, n, k, *alpha, a, leading_a, b, leading_b, *beta, c, leading_c, 0);
}

/* With sums in fp32 (68) and the library's choice of a kernel (-1) only. */
int cublasGemmEx(Handle *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                 int leading_a, const void *b, int type_b, int leading_b, const void *beta, void *c, int type_c,
                 int leading_c, int compute_type, int algorithm) {
    NOTE_WITH(type_a == 0 ? "f32" : type_a == 2 ? "f16" : type_a == 14 ? "bf16" : "?");
    if (!known_type(type_a) || type_a != type_b || type_b != type_c || compute_type != 68 || algorithm != -1) return 7;
    return multiply(handle, op_a, op_b, m, n, k, *(const float *)alpha, a, leading_a, b, leading_b, *(const float *)beta,
                    c, leading_c, type_a);
}

int cublasGemmStridedBatchedEx(Handle *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a,
                               int type_a, int leading_a, long long stride_a, const void *b, int type_b, int leading_b,
                               long long stride_b, const void *beta, void *c, int type_c, int leading_c,
                               long long stride_c, int batch, int compute_type, int algorithm) {
    size_t bytes = type_a == 0 ? 4 : 2;
    NOTE_WITH(type_a == 0 ? "f32" : type_a == 2 ? "f16" : type_a == 14 ? "bf16" : "?");
    if (!known_type(type_a) || type_a != type_b || type_b != type_c || compute_type != 68 || algorithm != -1) return 7;
    for (int i = 0; i < batch; i++) {
        int status = multiply(handle, op_a, op_b, m, n, k, *(const float *)alpha, (const char *)a + i * stride_a * bytes,
                              leading_a, (const char *)b + i * stride_b * bytes, leading_b, *(const float *)beta,
                              (char *)c + i * stride_c * bytes, leading_c, type_a);
        if (status) return status;
    }
    return 0;
}
