/* Finds functions of the CUDA driver at their first call. Compiled after the tables of names and slots. */
#include <dlfcn.h>
#include <string.h>

/* CUDA_ERROR_STUB_LIBRARY: the driver, or this function of it, is not there. */
static int absent(void) { return 34; }

/* Callers read the text of an error whatever the driver says, so it must exist. */
static int absent_text(int error, const char **text) {
    (void)error;
    *text = "no CUDA driver: libcuda.so.1 is not there, or is too old";
    return 0;
}

/* Returns the function of that number and keeps it in its slot. Threads may meet here: all store the same value. */
void *lacuna_cuda_resolve(unsigned number) {
    const char *name = lacuna_cuda_names[number];
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *function = driver ? dlsym(driver, name) : 0;
    if (!function) {
        int asks_text = !strcmp(name, "cuGetErrorString") || !strcmp(name, "cuGetErrorName");
        function = asks_text ? (void *)absent_text : (void *)absent;
    }
    __atomic_store_n(&lacuna_cuda_slots[number], function, __ATOMIC_RELEASE);
    return function;
}
