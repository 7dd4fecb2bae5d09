/* A cuDNN that computes on the host, so that addresses may be host addresses. Functions and numbers as in cudnn.h;
   statuses as in cuDNN 9: 0 good, 2000 bad parameter, 3000 not supported. */
#include "journal.h"
#include "values.h"

#ifndef MAJOR
#define MAJOR 9
#endif

enum { BAD = 2000, UNSUPPORTED = 3000, WORKSPACE = 256 << 20 };
/* Bytes of the workspace, by algorithm; -1 for those that it has not got. */
static const int64_t memory[8] = {0, 1024, 4096, -1, -1, (int64_t)WORKSPACE + 1, 0, 0};
typedef struct { void *stream; } Handle;
/* Of tensors, filters, convolutions and activations. */
typedef struct { char kind; int type, format, size[4], padding[2], stride[2], groups, math, mode; } Descriptor;
typedef struct { int algorithm, status; float time; size_t memory; int determinism, math, reserved[3]; } Performance;

int cudnnGetProperty(int property, int *value) {
    static const int version[3] = {MAJOR, 28, 0};
    NOTE();
    if (property < 0 || property > 2) return BAD;
    *value = version[property];
    return 0;
}

int cudnnCreate(Handle **handle) {
    NOTE();
    *handle = calloc(1, sizeof **handle);
    live++;
    return 0;
}

int cudnnDestroy(Handle *handle) {
    NOTE();
    free(handle);
    live--;
    return 0;
}

int cudnnSetStream(Handle *handle, void *stream) {
    NOTE();
    handle->stream = stream;
    return 0;
}

static int create(Descriptor **descriptor, char kind) {
    *descriptor = calloc(1, sizeof **descriptor);
    (*descriptor)->kind = kind;
    live++;
    return 0;
}

static int destroy(Descriptor *descriptor, char kind) {
    if (descriptor->kind != kind) return BAD;
    free(descriptor);
    live--;
    return 0;
}

int cudnnCreateTensorDescriptor(Descriptor **tensor) { NOTE(); return create(tensor, 't'); }
int cudnnDestroyTensorDescriptor(Descriptor *tensor) { NOTE(); return destroy(tensor, 't'); }
int cudnnCreateFilterDescriptor(Descriptor **filter) { NOTE(); return create(filter, 'f'); }
int cudnnDestroyFilterDescriptor(Descriptor *filter) { NOTE(); return destroy(filter, 'f'); }
int cudnnCreateConvolutionDescriptor(Descriptor **convolution) { NOTE(); return create(convolution, 'c'); }
int cudnnDestroyConvolutionDescriptor(Descriptor *convolution) { NOTE(); return destroy(convolution, 'c'); }
int cudnnCreateActivationDescriptor(Descriptor **activation) { NOTE(); return create(activation, 'a'); }
int cudnnDestroyActivationDescriptor(Descriptor *activation) { NOTE(); return destroy(activation, 'a'); }

static int describe(const char *function, Descriptor *descriptor, char kind, int type, int format, int n, int c, int h,
                    int w) {
    char detail[96];
    snprintf(detail, sizeof detail, "%s,%s,%d,%d,%d,%d", format == 0 ? "nchw" : format == 1 ? "nhwc" : "?",
             type == 0 ? "f32" : type == 2 ? "f16" : type == 9 ? "bf16" : "?", n, c, h, w);
    int status = note(function, detail);
    if (status) return status;
    if (descriptor->kind != kind || format < 0 || format > 1) return BAD;
    /* From here on bf16 has its cudaDataType, which `load` and `store` know. */
    *descriptor = (Descriptor){.kind = kind, .type = type == 9 ? 14 : type, .format = format, .size = {n, c, h, w}};
    return 0;
}

int cudnnSetTensor4dDescriptor(Descriptor *tensor, int format, int type, int n, int c, int h, int w) {
    return describe(__func__, tensor, 't', type, format, n, c, h, w);
}

/* The type comes before the format here. */
int cudnnSetFilter4dDescriptor(Descriptor *filter, int type, int format, int k, int c, int h, int w) {
    return describe(__func__, filter, 'f', type, format, k, c, h, w);
}

int cudnnSetConvolution2dDescriptor(Descriptor *convolution, int padding_h, int padding_w, int stride_h, int stride_w,
                                    int dilation_h, int dilation_w, int mode, int type) {
    char detail[64];
    snprintf(detail, sizeof detail, "%d,%d,%d,%d", padding_h, padding_w, stride_h, stride_w);
    NOTE_WITH(detail);
    if (convolution->kind != 'c' || dilation_h != 1 || dilation_w != 1 || mode != 1 || type != 0) return BAD;
    *convolution = (Descriptor){.kind = 'c', .padding = {padding_h, padding_w}, .stride = {stride_h, stride_w}, .groups = 1};
    return 0;
}

int cudnnSetConvolutionGroupCount(Descriptor *convolution, int groups) {
    char detail[16];
    snprintf(detail, sizeof detail, "%d", groups);
    NOTE_WITH(detail);
    if (convolution->kind != 'c') return BAD;
    convolution->groups = groups;
    return 0;
}

int cudnnSetConvolutionMathType(Descriptor *convolution, int math) {
    NOTE_WITH(math == 0 ? "default" : math == 1 ? "tensor" : math == 3 ? "fma" : "?");
    if (convolution->kind != 'c') return BAD;
    convolution->math = math;
    return 0;
}

int cudnnSetActivationDescriptor(Descriptor *activation, int mode, int nan, double coefficient) {
    NOTE_WITH(mode == 1 ? "relu" : mode == 5 ? "identity" : "?");
    if (activation->kind != 'a' || nan != 1 || coefficient != 0) return BAD;
    activation->mode = mode;
    return 0;
}

int cudnnSetTensor(Handle *handle, Descriptor *tensor, void *values, const void *value) {
    NOTE();
    if (handle->stream != (void *)0x57 || tensor->kind != 't') return BAD;
    for (int64_t i = 0; i < (int64_t)tensor->size[0] * tensor->size[1] * tensor->size[2] * tensor->size[3]; i++)
        store(values, tensor->type, i, load(value, tensor->type, 0));
    return 0;
}

/* Where a value of a tensor or a filter is. */
static int64_t place(const Descriptor *d, int n, int c, int h, int w) {
    if (d->format == 0) return (((int64_t)n * d->size[1] + c) * d->size[2] + h) * d->size[3] + w;
    return (((int64_t)n * d->size[2] + h) * d->size[3] + w) * d->size[1] + c;
}

static int check(Descriptor *x, Descriptor *w, Descriptor *conv, Descriptor *y) {
    if (x->kind != 't' || w->kind != 'f' || conv->kind != 'c' || y->kind != 't') return BAD;
    if (!known_type(x->type) || x->type != w->type || w->type != y->type) return BAD;
    if (x->format != w->format || w->format != y->format) return BAD;
    if (x->size[0] != y->size[0] || x->size[1] != w->size[1] * conv->groups || w->size[0] != y->size[1]) return BAD;
    for (int i = 0; i < 2; i++)
        if (y->size[2 + i] != (x->size[2 + i] + 2 * conv->padding[i] - w->size[2 + i]) / conv->stride[i] + 1) return BAD;
    return 0;
}

/* The same of a run. */
static int check_run(Handle *handle, int algorithm, Descriptor *x, Descriptor *w, Descriptor *conv, Descriptor *y,
                     void *workspace, size_t bytes) {
    if (handle->stream != (void *)0x57 || algorithm < 0 || algorithm > 7) return BAD;
    if (memory[algorithm] < 0) return UNSUPPORTED;
    if (bytes < (size_t)memory[algorithm] || (bytes && !workspace)) return BAD;
    return check(x, w, conv, y);
}

static float sum(const Descriptor *x, const void *x_values, const Descriptor *w, const void *w_values,
                 const Descriptor *conv, const Descriptor *y, int n, int k, int row, int column) {
    float sum = 0;
    int first = k / (y->size[1] / conv->groups) * w->size[1]; /* channel of the group */
    for (int c = 0; c < w->size[1]; c++)
        for (int r = 0; r < w->size[2]; r++)
            for (int s = 0; s < w->size[3]; s++) {
                int i = row * conv->stride[0] + r - conv->padding[0], j = column * conv->stride[1] + s - conv->padding[1];
                if (i < 0 || j < 0 || i >= x->size[2] || j >= x->size[3]) continue;
                sum += load(x_values, x->type, place(x, n, first + c, i, j)) * load(w_values, w->type, place(w, k, c, r, s));
            }
    return sum;
}

static void convolve(const Descriptor *x, const void *x_values, const Descriptor *w, const void *w_values,
                     const Descriptor *conv, const Descriptor *y, void *y_values, const void *bias, int relu) {
    for (int n = 0; n < y->size[0]; n++)
        for (int k = 0; k < y->size[1]; k++)
            for (int i = 0; i < y->size[2]; i++)
                for (int j = 0; j < y->size[3]; j++) {
                    float value = sum(x, x_values, w, w_values, conv, y, n, k, i, j);
                    if (bias) value += load(bias, y->type, k);
                    store(y_values, y->type, place(y, n, k, i, j), relu && value < 0 ? 0 : value);
                }
}

/* Answers as a library may: not in order, with other math types than the one asked for, and with some that failed. */
int cudnnFindConvolutionForwardAlgorithmEx(Handle *handle, Descriptor *x, const void *x_values, Descriptor *w,
                                           const void *w_values, Descriptor *conv, Descriptor *y, void *y_values, int asked,
                                           int *returned, Performance *results, void *workspace, size_t bytes) {
    NOTE();
    if (handle->stream != (void *)0x57 || !workspace || bytes != WORKSPACE) return BAD;
    int status = check(x, w, conv, y);
    if (status) return status;
    const Performance all[] = {
        {.algorithm = 2, .time = 2.5, .memory = 4096, .math = conv->math},
        {.algorithm = 1, .time = 0.5, .memory = 1024, .math = conv->math},
        {.algorithm = 6, .time = 1, .memory = 0, .math = conv->math},
        {.algorithm = 1, .time = 0.25, .memory = 1024, .math = 0},
        {.algorithm = 7, .time = 0.125, .memory = 0, .math = 2},
        {.algorithm = 4, .status = UNSUPPORTED, .time = -1, .math = conv->math},
        {.algorithm = 5, .time = 0.125, .memory = (size_t)WORKSPACE + 1, .math = conv->math},
    };
    *returned = sizeof all / sizeof *all;
    if (asked < *returned) return BAD;
    memcpy(results, all, sizeof all);
    return 0;
}

/* In an order of its own. What comes before the second is not allowed, too large, not deterministic or not there. */
int cudnnGetConvolutionForwardAlgorithm_v7(Handle *handle, Descriptor *x, Descriptor *w, Descriptor *conv, Descriptor *y,
                                           int asked, int *returned, Performance *results) {
    NOTE();
    (void)handle;
    int status = check(x, w, conv, y);
    if (status) return status;
    const Performance all[] = {
        {.algorithm = 7, .time = -1, .determinism = 1, .math = conv->math},
        {.algorithm = 4, .status = UNSUPPORTED, .time = -1, .determinism = 1, .math = conv->math},
        {.algorithm = 5, .time = -1, .determinism = 1, .math = conv->math},
        {.algorithm = 2, .time = -1, .determinism = 0, .math = conv->math},
        {.algorithm = 3, .time = -1, .determinism = 1, .math = conv->math},
        {.algorithm = 1, .time = -1, .determinism = 1, .math = 0},
        {.algorithm = 0, .time = -1, .determinism = 1, .math = conv->math},
    };
    *returned = sizeof all / sizeof *all;
    if (asked < *returned) return BAD;
    memcpy(results, all, sizeof all);
    return 0;
}

int cudnnGetConvolutionForwardWorkspaceSize(Handle *handle, Descriptor *x, Descriptor *w, Descriptor *conv, Descriptor *y,
                                            int algorithm, size_t *bytes) {
    char detail[16];
    snprintf(detail, sizeof detail, "%d", algorithm);
    NOTE_WITH(detail);
    (void)handle;
    int status = check(x, w, conv, y);
    if (status) return status;
    if (memory[algorithm] < 0) return UNSUPPORTED;
    *bytes = (size_t)memory[algorithm];
    return 0;
}

int cudnnConvolutionForward(Handle *handle, const float *alpha, Descriptor *x, const void *x_values, Descriptor *w,
                            const void *w_values, Descriptor *conv, int algorithm, void *workspace, size_t bytes,
                            const float *beta, Descriptor *y, void *y_values) {
    char detail[16];
    snprintf(detail, sizeof detail, "%d", algorithm);
    NOTE_WITH(detail);
    int status = check_run(handle, algorithm, x, w, conv, y, workspace, bytes);
    if (status) return status;
    if (*alpha != 1 || *beta != 0) return BAD;
    convolve(x, x_values, w, w_values, conv, y, y_values, NULL, 0);
    return 0;
}

int cudnnConvolutionBiasActivationForward(Handle *handle, const float *alpha, Descriptor *x, const void *x_values,
                                          Descriptor *w, const void *w_values, Descriptor *conv, int algorithm,
                                          void *workspace, size_t bytes, const float *alpha_added, Descriptor *added,
                                          const void *added_values, Descriptor *bias, const void *bias_values,
                                          Descriptor *activation, Descriptor *y, void *y_values) {
    char detail[16];
    snprintf(detail, sizeof detail, "%d", algorithm);
    NOTE_WITH(detail);
    int status = check_run(handle, algorithm, x, w, conv, y, workspace, bytes);
    if (status) return status;
    if (*alpha != 1 || *alpha_added != 0 || added != y || added_values != y_values) return BAD;
    if (bias->kind != 't' || bias->type != y->type || bias->size[1] != y->size[1]) return BAD;
    if (bias->size[0] != 1 || bias->size[2] != 1 || bias->size[3] != 1 || !bias_values) return BAD;
    if (activation->kind != 'a') return BAD;
    if (activation->mode == 5 && algorithm != 1) return UNSUPPORTED;
    convolve(x, x_values, w, w_values, conv, y, y_values, bias_values, activation->mode == 1);
    return 0;
}
