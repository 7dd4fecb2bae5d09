/* NVML with one GPU, at 00000000:3b:00.0, that uses 250 millijoules from one question to the next. */
#include "journal.h"

int nvmlInit_v2(void) {
    NOTE();
    live++;
    return 0;
}

int nvmlShutdown(void) {
    NOTE();
    live--;
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device) {
    NOTE_WITH(pci);
    if (strcmp(pci, "00000000:3b:00.0"))
        return 6;
    *device = &live;
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    static unsigned long long used = 1000;
    NOTE();
    if (device != &live)
        return 2;
    *millijoules = used += 250;
    return 0;
}
