/* A fake of NVIDIA's libnvidia-ml.so.1 for tests, controlled by a script file.

   The environment variable STAND_IN_NVML has its path. It is read before every response. Its lines:

       gpus COUNT                          number of GPUs
       refuse FUNCTION GPU CODE            return NVML's error CODE
       stall FUNCTION GPU                  block until the line is removed
       value KEY GPU NUMBER                a value, in NVML's units

   FUNCTION and GPU may be * for all; the last matching line applies. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { MOST_LINES = 256, MIG_BASE = 1000, MIG_MOST = 7 };

typedef struct { char verb[8], name[64], gpu[12]; double number; } Line;
typedef struct { unsigned gpu, memory; } Rates;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } Process;

static __thread Line lines[MOST_LINES];
static __thread int count;
static __thread struct stat seen;

static void look(void) {
    const char *path = getenv("STAND_IN_NVML");
    struct stat status;
    if (!path || stat(path, &status)) { count = 0; return; }
    /* Every write creates a new file; two of them may have the same modification time. */
    if (seen.st_ino == status.st_ino && !memcmp(&seen.st_mtim, &status.st_mtim, sizeof seen.st_mtim)) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    char text[160];
    seen = status;
    for (count = 0; count < MOST_LINES && fgets(text, sizeof text, file);) {
        Line *line = &lines[count];
        memset(line, 0, sizeof *line);
        if (sscanf(text, "gpus %lf", &line->number) == 1) strcpy(line->verb, "gpus");
        else if (sscanf(text, "%7s %63s %11s %lf", line->verb, line->name, line->gpu, &line->number) < 3) continue;
        count++;
    }
    fclose(file);
}

static const Line *find(const char *verb, const char *name, int gpu) {
    char number[12];
    snprintf(number, sizeof number, "%d", gpu);
    for (int i = count - 1; i >= 0; i--) {
        const Line *line = &lines[i];
        if (strcmp(line->verb, verb)) continue;
        if (strcmp(line->name, name) && strcmp(line->name, "*")) continue;
        if (!strcmp(line->gpu, "*") || !strcmp(line->gpu, number)) return line;
    }
    return NULL;
}

static double value(const char *key, int gpu, double otherwise) {
    const Line *line = find("value", key, gpu);
    return line ? line->number : otherwise;
}

static int gpus(void) {
    for (int i = count - 1; i >= 0; i--)
        if (!strcmp(lines[i].verb, "gpus")) return (int)lines[i].number;
    return 0;
}

/* The status to return first of all; blocks while the script says so. */
static int first(const char *function, int gpu) {
    const struct timespec pause = {0, 2000000};
    for (look(); find("stall", function, gpu); look()) nanosleep(&pause, NULL);
    const Line *refusal = find("refuse", function, gpu);
    return refusal ? (int)refusal->number : SUCCESS;
}

/* Handles are numbers: a GPU's index plus one, or an instance's. */
static int index_of(void *handle) {
    intptr_t number = (intptr_t)handle;
    return (int)(number >= MIG_BASE ? (number - MIG_BASE) / MIG_MOST : number - 1);
}
static int is_instance(void *handle) { return (intptr_t)handle >= MIG_BASE; }

#define ANSWER(function, gpu) \
    do { int code = first(function, gpu); if (code) return code; } while (0)
#define WHOLE(handle) \
    do { if (is_instance(handle)) return NOT_SUPPORTED; } while (0)
#define NUMBER(function, key, otherwise) \
    int function(void *handle, unsigned *out) { \
        ANSWER(#function, index_of(handle)); WHOLE(handle); \
        *out = (unsigned)value(key, index_of(handle), otherwise); return SUCCESS; \
    }

int nvmlInitWithFlags(unsigned flags) { (void)flags; ANSWER("nvmlInitWithFlags", -1); return SUCCESS; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "an error of the stand-in"; }
int nvmlSystemGetDriverVersion(char *out, unsigned size) { snprintf(out, size, "580.00.00"); return SUCCESS; }
int nvmlSystemGetNVMLVersion(char *out, unsigned size) { snprintf(out, size, "13.580.00.00"); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion(int *out) { *out = 13000; return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = 13000; return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned *out) { ANSWER("nvmlDeviceGetCount_v2", -1); *out = (unsigned)gpus(); return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    ANSWER("nvmlDeviceGetHandleByIndex_v2", (int)index);
    if ((int)index >= gpus()) return INVALID_ARGUMENT;
    *out = (void *)(intptr_t)(index + 1);
    return SUCCESS;
}

int nvmlDeviceGetIndex(void *handle, unsigned *out) { *out = (unsigned)index_of(handle); return SUCCESS; }

int nvmlDeviceGetName(void *handle, char *out, unsigned size) {
    ANSWER("nvmlDeviceGetName", index_of(handle));
    snprintf(out, size, is_instance(handle) ? "NVIDIA A100-SXM4-80GB MIG 3g.40gb" : "NVIDIA A100-SXM4-80GB");
    return SUCCESS;
}

int nvmlDeviceGetUUID(void *handle, char *out, unsigned size) {
    ANSWER("nvmlDeviceGetUUID", index_of(handle));
    snprintf(out, size, "%s-%08x", is_instance(handle) ? "MIG" : "GPU", (unsigned)(intptr_t)handle);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(void *handle, Pci *out) {
    ANSWER("nvmlDeviceGetPciInfo_v3", index_of(handle));
    memset(out, 0, sizeof *out);
    out->bus = (unsigned)(0x10 + index_of(handle));
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus);
    return SUCCESS;
}

/* A set of events: the GPUs whose errors are reported, and the last one of each. A new value of "xid" is an error. */
typedef struct { unsigned gpus; double last[32]; } Events;
typedef struct { void *device; unsigned long long type, data; unsigned gpu_instance, compute_instance; } Event;
enum { XID_ERROR = 8, TIMED_OUT = 10 };

int nvmlEventSetCreate(Events **out) {
    ANSWER("nvmlEventSetCreate", -1);
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(void *handle, unsigned long long types, Events *events) {
    int gpu = index_of(handle);
    ANSWER("nvmlDeviceRegisterEvents", gpu);
    if (types != XID_ERROR) return INVALID_ARGUMENT;
    events->gpus |= 1u << gpu;
    events->last[gpu] = value("xid", gpu, 0);
    return SUCCESS;
}

int nvmlEventSetWait_v2(Events *events, Event *out, unsigned milliseconds) {
    (void)milliseconds;
    ANSWER("nvmlEventSetWait_v2", -1);
    for (int gpu = 0; gpu < gpus(); gpu++) {
        double number = value("xid", gpu, 0);
        if (!(events->gpus & 1u << gpu) || number == events->last[gpu]) continue;
        events->last[gpu] = number;
        *out = (Event){(void *)(intptr_t)(gpu + 1), XID_ERROR, (unsigned long long)number, 0, 0};
        return SUCCESS;
    }
    return TIMED_OUT;
}

int nvmlDeviceGetUtilizationRates(void *handle, Rates *out) {
    int gpu = index_of(handle);
    ANSWER("nvmlDeviceGetUtilizationRates", gpu);
    WHOLE(handle);
    /* Cycle within the given range, so that the value changes. */
    double span = value("swing", gpu, 0);
    double now = (double)(time(NULL) * 7 % 20) / 20;
    out->gpu = (unsigned)(value("utilization", gpu, 87) - span * now);
    out->memory = (unsigned)value("memory_utilization", gpu, 41);
    return SUCCESS;
}

static void fill(void *handle, unsigned long long *total, unsigned long long *used) {
    int gpu = index_of(handle);
    double gibibytes = 1024.0 * 1024 * 1024;
    *total = (unsigned long long)(is_instance(handle) ? 40 * gibibytes : 80 * gibibytes);
    *used = (unsigned long long)(is_instance(handle) ? 3 * gibibytes : value("memory", gpu, 61.5) * gibibytes);
}

int nvmlDeviceGetMemoryInfo(void *handle, Memory *out) {
    ANSWER("nvmlDeviceGetMemoryInfo", index_of(handle));
    fill(handle, &out->total, &out->used);
    out->free = out->total - out->used;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, Memory2 *out) {
    ANSWER("nvmlDeviceGetMemoryInfo_v2", index_of(handle));
    fill(handle, &out->total, &out->used);
    out->reserved = 0;
    out->free = out->total - out->used;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *out) {
    (void)sensor;
    ANSWER("nvmlDeviceGetTemperature", index_of(handle));
    WHOLE(handle);
    *out = (unsigned)value("temperature", index_of(handle), 64);
    return SUCCESS;
}

NUMBER(nvmlDeviceGetPowerUsage, "power", 312500)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit", 400000)
NUMBER(nvmlDeviceGetFanSpeed, "fan", 38)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "generation", 4)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "width", 16)

int nvmlDeviceGetClockInfo(void *handle, unsigned clock, unsigned *out) {
    ANSWER("nvmlDeviceGetClockInfo", index_of(handle));
    WHOLE(handle);
    *out = (unsigned)(clock == 2 ? value("clock_memory", index_of(handle), 1593) : value("clock_sm", index_of(handle), 1410));
    return SUCCESS;
}

static int reasons(const char *function, void *handle, unsigned long long *out) {
    ANSWER(function, index_of(handle));
    WHOLE(handle);
    *out = (unsigned long long)value("reasons", index_of(handle), 0);
    return SUCCESS;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *out) {
    return reasons("nvmlDeviceGetCurrentClocksEventReasons", handle, out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *out) {
    return reasons("nvmlDeviceGetCurrentClocksThrottleReasons", handle, out);
}

int nvmlDeviceGetPcieThroughput(void *handle, unsigned counter, unsigned *out) {
    const struct timespec counting = {0, 20000000};
    ANSWER("nvmlDeviceGetPcieThroughput", index_of(handle));
    WHOLE(handle);
    nanosleep(&counting, NULL);
    *out = (unsigned)(counter ? value("received", index_of(handle), 2500000) : value("sent", index_of(handle), 120000));
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(void *handle, unsigned type, unsigned counter, unsigned long long *out) {
    (void)counter;
    ANSWER("nvmlDeviceGetTotalEccErrors", index_of(handle));
    WHOLE(handle);
    *out = (unsigned long long)(type ? value("uncorrected", index_of(handle), 0) : value("corrected", index_of(handle), 2));
    return SUCCESS;
}

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    ANSWER("nvmlDeviceGetMigMode", index_of(handle));
    WHOLE(handle);
    *current = *pending = value("instances", index_of(handle), 0) > 0;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *out) {
    ANSWER("nvmlDeviceGetMaxMigDeviceCount", index_of(handle));
    *out = MIG_MOST;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **out) {
    ANSWER("nvmlDeviceGetMigDeviceHandleByIndex", index_of(handle));
    if (index >= (unsigned)value("instances", index_of(handle), 0)) return NOT_FOUND;
    *out = (void *)(intptr_t)(MIG_BASE + index_of(handle) * MIG_MOST + (int)index);
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *size, Process *out) {
    int gpu = index_of(handle);
    ANSWER("nvmlDeviceGetComputeRunningProcesses_v3", gpu);
    unsigned pid = (unsigned)value("pid", gpu, 0);
    if (!pid) { *size = 0; return SUCCESS; }
    if (!out || *size < 1) { *size = 1; return INSUFFICIENT_SIZE; }
    *size = 1;
    out[0] = (Process){pid, (unsigned long long)(value("memory", gpu, 61.5) * 1024 * 1024 * 1024), ~0u, ~0u};
    return SUCCESS;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *size, Process *out) {
    (void)out;
    ANSWER("nvmlDeviceGetGraphicsRunningProcesses_v3", index_of(handle));
    *size = 0;
    return SUCCESS;
}
