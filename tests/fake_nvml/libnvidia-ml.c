/* A stand-in for libnvidia-ml.so.1: what it answers is in the text file $FAKE_NVML, read anew at every call.

   gpus N                  how many devices
   gpu I KEY VALUE         KEY: util, mem_used, mem_total (MiB), power, limit (mW), clock, clock_most (MHz),
                           major, minor (compute capability), peers (0: no device can read another one),
                           memory_clock (MHz), reasons (bits), ecc, rows, pending, failure, links (active ones of 18;
                           -1: it has none), fabric, mig, mode
   xid I CODE              an error of a device; each is given once
   name TEXT               the name of every device
   proc I PID MIB          memory of a process; -1: the driver does not tell
   use I PID PERCENT       a sample of how long kernels of a process ran
   fail FUNCTION CODE      that function returns the code
   hang FUNCTION           that function never returns */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Return;
typedef unsigned long long u64;
typedef struct {
    unsigned index;
} Device;

enum { INSUFFICIENT_SIZE = 7, INVALID_ARGUMENT = 2, NOT_FOUND = 6, DEVICES = 64 };
static Device devices[DEVICES];

static FILE *state(void) {
    const char *path = getenv("FAKE_NVML");
    return path ? fopen(path, "r") : NULL;
}

static Return gate(const char *function) {
    char line[256], name[128];
    int code, result = 0;
    FILE *file = state();
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "fail %127s %d", name, &code) == 2 && !strcmp(name, function)) result = code;
        if (sscanf(line, "hang %127s", name) == 1 && !strcmp(name, function))
            for (;;) pause();
    }
    if (file) fclose(file);
    return result;
}
#define GATE                         \
    Return refusal = gate(__func__); \
    if (refusal) return refusal

static long long number(unsigned device, const char *key, long long otherwise) {
    char line[256], name[64];
    unsigned index;
    long long value, found = otherwise;
    FILE *file = state();
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "gpu %u %63s %lld", &index, name, &value) == 3 && index == device && !strcmp(name, key)) found = value;
    if (file) fclose(file);
    return found;
}

static unsigned count(void) {
    char line[256];
    unsigned found = 0;
    FILE *file = state();
    while (file && fgets(line, sizeof line, file)) sscanf(line, "gpus %u", &found);
    if (file) fclose(file);
    return found < DEVICES ? found : DEVICES;
}

Return nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    GATE;
    for (unsigned i = 0; i < DEVICES; i++) devices[i].index = i;
    return 0;
}
Return nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(Return code) {
    (void)code;
    return "fake error";
}
Return nvmlDeviceGetCount_v2(unsigned *found) {
    GATE;
    *found = count();
    return 0;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **handle) {
    GATE;
    if (index >= count()) return INVALID_ARGUMENT;
    *handle = &devices[index];
    return 0;
}
Return nvmlDeviceGetName(Device *device, char *name, unsigned size) {
    (void)device;
    GATE;
    char line[256], text[128] = "NVIDIA H200 (fake)";
    FILE *file = state();
    while (file && fgets(line, sizeof line, file)) sscanf(line, "name %127[^\n]", text);
    if (file) fclose(file);
    snprintf(name, size, "%s", text);
    return 0;
}
Return nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor) {
    GATE;
    *major = (int)number(device->index, "major", 9);
    *minor = (int)number(device->index, "minor", 0);
    return 0;
}
Return nvmlDeviceGetP2PStatus(Device *one, Device *other, unsigned index, unsigned *status) {
    (void)other;
    (void)index;
    GATE;
    *status = number(one->index, "peers", 1) ? 0 : 5;
    return 0;
}

typedef struct {
    u64 total, free, used;
} Memory;
typedef struct {
    unsigned version;
    u64 total, reserved, free, used;
} Memory2;
Return nvmlDeviceGetMemoryInfo(Device *device, Memory *memory) {
    GATE;
    memory->total = (u64)number(device->index, "mem_total", 143771) << 20;
    memory->used = (u64)number(device->index, "mem_used", 1000) << 20;
    memory->free = memory->total - memory->used;
    return 0;
}
Return nvmlDeviceGetMemoryInfo_v2(Device *device, Memory2 *memory) {
    GATE;
    memory->total = (u64)number(device->index, "mem_total", 143771) << 20;
    memory->used = (u64)number(device->index, "mem_used", 1000) << 20;
    memory->reserved = 600ull << 20;
    memory->free = memory->total - memory->used - memory->reserved;
    return 0;
}
typedef struct {
    unsigned gpu, memory;
} Utilization;
Return nvmlDeviceGetUtilizationRates(Device *device, Utilization *rates) {
    GATE;
    rates->gpu = (unsigned)number(device->index, "util", 0);
    rates->memory = 0;
    return 0;
}
Return nvmlDeviceGetPowerUsage(Device *device, unsigned *milliwatts) {
    GATE;
    *milliwatts = (unsigned)number(device->index, "power", 120000);
    return 0;
}
Return nvmlDeviceGetEnforcedPowerLimit(Device *device, unsigned *milliwatts) {
    GATE;
    *milliwatts = (unsigned)number(device->index, "limit", 700000);
    return 0;
}

typedef struct {
    unsigned pid;
    u64 used;
    unsigned instance, compute_instance;
} ProcessInfo;
Return nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *size, ProcessInfo *processes) {
    GATE;
    char line[256];
    unsigned index, pid, found = 0;
    long long mebibytes;
    FILE *file = state();
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "proc %u %u %lld", &index, &pid, &mebibytes) != 3 || index != device->index) continue;
        if (processes && found < *size) {
            processes[found].pid = pid;
            processes[found].used = mebibytes < 0 ? ~0ull : (u64)mebibytes << 20;
            processes[found].instance = processes[found].compute_instance = ~0u;
        }
        found++;
    }
    if (file) fclose(file);
    int fits = found <= *size && (processes || !found);
    *size = found;
    return fits ? 0 : INSUFFICIENT_SIZE;
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device *device, unsigned *size, ProcessInfo *processes) {
    (void)device;
    (void)processes;
    GATE;
    *size = 0;
    return 0;
}
Return nvmlDeviceGetClockInfo(Device *device, unsigned type, unsigned *megahertz) {
    GATE;
    *megahertz = (unsigned)(type == 2 ? number(device->index, "memory_clock", 3201) : number(device->index, "clock", 1980));
    return 0;
}
Return nvmlDeviceGetMaxClockInfo(Device *device, unsigned type, unsigned *megahertz) {
    (void)type;
    GATE;
    *megahertz = (unsigned)number(device->index, "clock_most", 1980);
    return 0;
}

typedef struct {
    unsigned pid;
    u64 time_us;
    unsigned sm, memory, encoder, decoder;
} Use;
Return nvmlDeviceGetProcessUtilization(Device *device, Use *uses, unsigned *size, u64 since_us) {
    (void)since_us;
    GATE;
    char line[256];
    unsigned index, pid, percent, found = 0;
    FILE *file = state();
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "use %u %u %u", &index, &pid, &percent) != 3 || index != device->index) continue;
        if (uses && found < *size) {
            memset(&uses[found], 0, sizeof *uses);
            uses[found].pid = pid;
            uses[found].sm = percent;
        }
        found++;
    }
    if (file) fclose(file);
    int fits = found <= *size && uses;
    *size = found;
    if (!found) return NOT_FOUND;
    return fits ? 0 : INSUFFICIENT_SIZE;
}

Return nvmlDeviceGetCurrentClocksEventReasons(Device *device, u64 *reasons) {
    GATE;
    *reasons = (u64)number(device->index, "reasons", 0);
    return 0;
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, u64 *reasons) {
    GATE;
    *reasons = (u64)number(device->index, "reasons", 0);
    return 0;
}
Return nvmlDeviceGetTotalEccErrors(Device *device, unsigned kind, unsigned since, u64 *errors) {
    (void)kind;
    (void)since;
    GATE;
    *errors = (u64)number(device->index, "ecc", 0);
    return 0;
}
Return nvmlDeviceGetRemappedRows(Device *device, unsigned *right, unsigned *wrong, unsigned *pending, unsigned *failure) {
    GATE;
    *right = 0;
    *wrong = (unsigned)number(device->index, "rows", 0);
    *pending = (unsigned)number(device->index, "pending", 0);
    *failure = (unsigned)number(device->index, "failure", 0);
    return 0;
}
Return nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *active) {
    GATE;
    long long links = number(device->index, "links", 18);
    if (links < 0 || link >= 18) return INVALID_ARGUMENT;
    *active = link < links;
    return 0;
}
typedef struct {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
    unsigned health;
} Fabric;
Return nvmlDeviceGetGpuFabricInfoV(Device *device, Fabric *fabric) {
    GATE;
    fabric->state = (unsigned char)number(device->index, "fabric", 3);
    return 0;
}
Return nvmlDeviceGetMigMode(Device *device, unsigned *now, unsigned *pending) {
    GATE;
    *now = *pending = (unsigned)number(device->index, "mig", 0);
    return 0;
}
Return nvmlDeviceGetComputeMode(Device *device, unsigned *mode) {
    GATE;
    *mode = (unsigned)number(device->index, "mode", 0);
    return 0;
}

typedef struct {
    Device *device;
    u64 type, data;
    unsigned instance, compute_instance;
} Event;
static int registered[DEVICES], given;
Return nvmlEventSetCreate(void **set) {
    GATE;
    *set = registered;
    return 0;
}
Return nvmlDeviceRegisterEvents(Device *device, u64 types, void *set) {
    (void)types;
    (void)set;
    GATE;
    registered[device->index] = 1;
    return 0;
}
Return nvmlEventSetWait_v2(void *set, Event *event, unsigned milliseconds) {
    (void)set;
    (void)milliseconds;
    GATE;
    char line[256];
    unsigned index;
    long long code;
    int seen = 0, found = 0;
    FILE *file = state();
    while (file && !found && fgets(line, sizeof line, file)) {
        if (sscanf(line, "xid %u %lld", &index, &code) != 2 || index >= DEVICES || !registered[index] || seen++ < given) continue;
        given++;
        found = 1;
        event->device = &devices[index];
        event->type = 8;
        event->data = (u64)code;
    }
    if (file) fclose(file);
    return found ? 0 : 10;
}
