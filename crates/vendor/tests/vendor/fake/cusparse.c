/* A cuSPARSE that computes on the host, so that addresses may be host addresses. Functions and numbers as in
   cusparse.h; statuses: 0 good, 3 invalid value. */
#include "journal.h"
#include "values.h"

typedef struct { void *stream; } Handle;
typedef struct { int64_t rows, columns, nonzeros; int *offsets, *indices, type; void *values; } Csr;
typedef struct { int64_t rows, columns, leading; int type; void *values; } Dense;

int cusparseGetProperty(int property, int *value) {
    static const int version[3] = {12, 5, 10};
    NOTE();
    if (property < 0 || property > 2) return 3;
    *value = version[property];
    return 0;
}

int cusparseCreate(Handle **handle) {
    NOTE();
    *handle = calloc(1, sizeof **handle);
    live++;
    return 0;
}

int cusparseDestroy(Handle *handle) {
    NOTE();
    free(handle);
    live--;
    return 0;
}

int cusparseSetStream(Handle *handle, void *stream) {
    NOTE();
    handle->stream = stream;
    return 0;
}

int cusparseCreateCsr(Csr **matrix, int64_t rows, int64_t columns, int64_t nonzeros, void *offsets, void *indices,
                      void *values, int offset_type, int index_type, int base, int value_type) {
    NOTE();
    if (offset_type != 2 || index_type != 2 || base != 0 || !known_type(value_type)) return 3;
    *matrix = malloc(sizeof **matrix);
    **matrix = (Csr){rows, columns, nonzeros, offsets, indices, value_type, values};
    live++;
    return 0;
}

int cusparseDestroySpMat(Csr *matrix) {
    NOTE();
    free(matrix);
    live--;
    return 0;
}

int cusparseCreateDnMat(Dense **matrix, int64_t rows, int64_t columns, int64_t leading, void *values, int value_type,
                        int order) {
    NOTE();
    if (!known_type(value_type) || order != 2 || leading < columns) return 3;
    *matrix = malloc(sizeof **matrix);
    **matrix = (Dense){rows, columns, leading, value_type, values};
    live++;
    return 0;
}

int cusparseDestroyDnMat(Dense *matrix) {
    NOTE();
    free(matrix);
    live--;
    return 0;
}

static const char *algorithm_name(int algorithm) {
    return algorithm == 0 ? "default" : algorithm == 4 ? "alg1" : algorithm == 6 ? "alg2" : algorithm == 12 ? "alg3" : "?";
}

int cusparseSpMM_bufferSize(Handle *handle, int op_a, int op_b, const float *alpha, Csr *a, Dense *b, const float *beta,
                            Dense *c, int compute_type, int algorithm, size_t *bytes) {
    NOTE_WITH(algorithm_name(algorithm));
    *bytes = algorithm == 0 ? 0 : 512; /* the default needs none */
    return 0;
}

int cusparseSpMM_preprocess(Handle *handle, int op_a, int op_b, const float *alpha, Csr *a, Dense *b,
                            const float *beta, Dense *c, int compute_type, int algorithm, void *workspace) {
    NOTE_WITH(algorithm_name(algorithm));
    return (algorithm == 0) == (workspace == NULL) ? 0 : 3;
}

int cusparseSpMM(Handle *handle, int op_a, int op_b, const float *alpha, Csr *a, Dense *b, const float *beta, Dense *c,
                 int compute_type, int algorithm, void *workspace) {
    NOTE_WITH(algorithm_name(algorithm));
    if (op_a || op_b || compute_type || handle->stream != (void *)0x57) return 3;
    if ((algorithm == 0) != (workspace == NULL)) return 3;
    if (a->columns != b->rows || a->rows != c->rows || b->columns != c->columns) return 3;
    if (a->type != b->type || b->type != c->type) return 3;
    if (a->offsets[a->rows] != a->nonzeros) return 3;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            int64_t out = i * c->leading + j;
            float sum = 0;
            for (int p = a->offsets[i]; p < a->offsets[i + 1]; p++)
                sum += load(a->values, a->type, p) * load(b->values, b->type, a->indices[p] * b->leading + j);
            store(c->values, c->type, out, *alpha * sum + (*beta == 0 ? 0 : *beta * load(c->values, c->type, out)));
        }
    return 0;
}

int cusparseSDDMM_bufferSize(Handle *handle, int op_a, int op_b, const float *alpha, Dense *a, Dense *b, const float *beta,
                             Csr *c, int compute_type, int algorithm, size_t *bytes) {
    NOTE();
    *bytes = 256;
    return 0;
}

int cusparseSDDMM_preprocess(Handle *handle, int op_a, int op_b, const float *alpha, Dense *a, Dense *b,
                             const float *beta, Csr *c, int compute_type, int algorithm, void *workspace) {
    NOTE();
    return workspace ? 0 : 3;
}

int cusparseSDDMM(Handle *handle, int op_a, int op_b, const float *alpha, Dense *a, Dense *b, const float *beta, Csr *c,
                  int compute_type, int algorithm, void *workspace) {
    NOTE();
    if (op_a || (op_b & ~1) || compute_type || algorithm || !workspace || handle->stream != (void *)0x57) return 3;
    int64_t b_columns = op_b ? b->rows : b->columns, b_rows = op_b ? b->columns : b->rows;
    if (a->columns != b_rows || a->rows != c->rows || b_columns != c->columns) return 3;
    int64_t along = op_b ? 1 : b->leading, across = op_b ? b->leading : 1;
    if (a->type != b->type || b->type != c->type || c->offsets[c->rows] != c->nonzeros) return 3;
    for (int64_t i = 0; i < c->rows; i++)
        for (int p = c->offsets[i]; p < c->offsets[i + 1]; p++) {
            float sum = 0;
            for (int64_t j = 0; j < a->columns; j++)
                sum += load(a->values, a->type, i * a->leading + j) *
                       load(b->values, b->type, c->indices[p] * across + j * along);
            store(c->values, c->type, p, *alpha * sum + (*beta == 0 ? 0 : *beta * load(c->values, c->type, p)));
        }
    return 0;
}
