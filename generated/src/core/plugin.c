/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "plugins": edit that, not this file. */
/* Plug-ins: found, loaded, and tensors sent to their devices. */
#include <dlfcn.h>
#include <unistd.h>
#include "core/rule.h"
#include "core/device.h"
#include "core/require.h"
#include "core/space.h"
#include <treadle/device.h>

const td_device_table *td_load_cuda(const char *operation);

/* plugins: functions that find a plug-in */
static void *open_plugin(const char *name)
{
    Dl_info self;
    char folder[3000] = ".", path[3200];
    const char *asked = getenv("TREADLE_PLUGINS");
    if (dladdr((void *)(uintptr_t)td_load_cuda, &self) != 0)
        snprintf(folder, sizeof folder, "%s", self.dli_fname);
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
    for (int i = asked == NULL; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s%s", i ? folder : asked,
                 i < 2 ? "" : "../../", name);
        if (access(path, R_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return NULL;
}

/* plugins: function td_load_cuda */
static bool shake_hands(const char *operation, td_device_table *table)
{
    static td_host_api host = { TD_PLUGIN_VERSION, td_fail,
        td_parallel_for, false, td_dtype_size, td_dtype_is_floating,
        td_collapse };
    /* plugins: name the plug-in */
    static const char *const names[] = {
        NULL, "libtreadle_cuda.so", "libtreadle_emulate.so",
        "libtreadle_emulate_checked.so"
    };
    const char *name = names[td_environment_choice("TREADLE_CUDA",
                                                   "0|1|emulate|check", 1)];
    if (td_failed())
        return false;
    void *plugin = name != NULL ? open_plugin(name) : NULL;
    host.plain = td_process()->plain;
    td_plugin_init *init = NULL;
    if (plugin != NULL)
        *(void **)&init = dlsym(plugin, "treadle_cuda_init");
    if (init == NULL) {
        const char *why = plugin == NULL ? dlerror()
                        : "it exports no init function";
        return td_fail(TD_ERROR_UNSUPPORTED, operation,
            "device cuda is not available: %s: %s",
            name ? name : "TREADLE_CUDA=0",
            name == NULL ? "switched off" : why ? why : "no such file");
    }
    if (!init(&host, table))
        return td_fail(TD_ERROR_UNSUPPORTED, operation,
            "device cuda is not available: %s refused",
            name);
    return table->version == TD_PLUGIN_VERSION
        || td_fail(TD_ERROR_UNSUPPORTED, operation, "%s is of version "
                   "%d, expected %d; build it again", name,
                   table->version, TD_PLUGIN_VERSION);
}

const td_device_table *td_load_cuda(const char *operation)
{
    td_runtime *process = td_process();
    const td_device_table *table = process->cuda;
    if (table != NULL)
        return table;
    pthread_mutex_lock(&process->cuda_lock);
    table = process->cuda;
    if (table == NULL && shake_hands(operation, &process->cuda_table)) {
        table = &process->cuda_table;
        process->cuda = table;
    }
    pthread_mutex_unlock(&process->cuda_lock);
    return table;
}

/* plugins: kernel to_device_kernel */
TD_KERNEL(to_device, x)
{
    return td_return(call, td_copied_to(x, x->dtype,
                                        call->attr[0].as.device));
}

/* plugins: functions of devices */
td_tensor *td_to_device(td_tensor *x, td_device device)
{
    if (x != NULL && td_same_device(td_device_of(x), device)
        && x->storage->data != NULL)
        return td_share(x);
    return TD_CALL(to_device, x, td_v_device(device));
}

td_tensor *td_to_host(td_tensor *x)
{
    if (x != NULL && !td_has_values(x))
        td_fail(TD_ERROR_RUNTIME, "to_host", "the tensor has no value: "
                "it was made while tracing, where shapes are known");
    return td_to_device(x, TD_CPU);
}
int td_device_count(td_device_kind kind)
{
    if (kind == TD_DEVICE_CPU)
        return 1;
    const bool failed = td_failed();
    const td_device_table *table = kind == TD_DEVICE_CUDA && !failed
                                 ? td_load_cuda("count") : NULL;
    if (!failed)
        td_error_clear();
    return table != NULL ? table->count() : 0;
}

bool td_synchronise(td_device device)
{
    if (td_failed() || device.kind == TD_DEVICE_CPU)
        return !td_failed();
    const td_device_table *table = td_table_of("synchronise", device);
    return table != NULL && table->synchronise(device.index);
}

td_memory_info td_device_memory_stats(td_device device)
{
    td_memory_info info = { 0 };
    if (device.kind == TD_DEVICE_CPU)
        return td_memory_stats();
    const td_device_table *table = td_table_of("memory", device);
    if (table != NULL)
        table->memory(device.index, &info);
    return info;
}

static void unpin(void *data)
{
    td_process()->cuda->unpin(data);
}

bool td_is_pinned(const td_tensor *x)
{
    return x != NULL && x->storage->release == unpin;
}

td_tensor *td_pin_memory(td_tensor *x)
{
    const td_device cuda = { TD_DEVICE_CUDA, 0 };
    void *data = NULL;
    if (!td_require(x, "pin_memory", "input"))
        return NULL;
    if (td_is_pinned(x))
        return td_share(x);
    if (!td_on_host(x))
        return td_fail(TD_ERROR_RUNTIME, "pin_memory", "only elements "
                       "in the host's memory can be pinned"), NULL;
    const td_device_table *table = td_table_of("pin_memory", cuda);
    td_dims shape = td_shape_of(x), strides = shape;
    td_dims_strides(&shape, strides.at);
    const size_t bytes = (size_t)td_numel(x) * td_dtype_size(x->dtype);
    if (table == NULL || !table->pin(bytes ? bytes : 1, &data))
        return NULL;
    /* plugins: copy the elements to the pinned memory */
    td_scope_begin();
    td_tensor *y = td_from_memory(data, shape, strides,
        TD_OF(x->dtype), unpin, data);
    if (y == NULL)
        unpin(data);
    return td_scope_end_with(td_copy_(y, x));
}

/* plugins: function to_device_rule */
TD_RULE(to_device, g)
{
    b->grad_in[0] = td_to_device(g, td_input_device(b, 0));
}
