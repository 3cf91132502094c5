/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and functions. */
#include "src/emulator/decode.h"
#include "src/emulator/driver_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* sm_90 runs on 9.0 and later; sm_90a on 9.0 alone; sm_100f within its major version. */
static bool target_runs(struct emu_str target, const struct emu_chip *chip)
{
    char text[16] = "";
    char *end;
    if (target.length < 5 || target.length > 12 || memcmp(target.text, "sm_", 3) != 0)
        return false;
    memcpy(text, target.text + 3, target.length - 3);
    unsigned long sm = strtoul(text, &end, 10);
    if (*end == 'a')
        return sm == chip->sm;
    if (*end == 'f')
        return sm / 10 == chip->sm / 10 && sm <= chip->sm;
    return *end == '\0' && sm <= chip->sm;
}

static ptxgen_cu_result check_module(const struct CUctx_st *context,
                                     const struct emu_module *parsed, ptxgen_error *err)
{
    int highest = ptxgen_driver_max_ptx_version((int)context->chip->driver_version);
    int version = (int)(parsed->version_major * 10 + parsed->version_minor);
    if (version > highest) {
        ptxgen_fail(err, PTXGEN_ERROR_PTX_SYNTAX,
                    "line 1, column 1: .version %u.%u is newer than %d.%d, which this driver takes",
                    parsed->version_major, parsed->version_minor, highest / 10, highest % 10);
        return PTXGEN_CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (!target_runs(parsed->target, context->chip)) {
        ptxgen_fail(err, PTXGEN_ERROR_PTX_SYNTAX, ".target %.*s does not run on %s",
                    (int)parsed->target.length, parsed->target.text, context->chip->target);
        return PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return emu_legality_of_target(parsed, err) ? PTXGEN_CUDA_SUCCESS
                                               : PTXGEN_CUDA_ERROR_INVALID_PTX;
}

/* ---- variables ---- */

static bool place_variables(struct CUmod_st *module)
{
    const struct emu_module *parsed = module->parsed;
    struct emu_memory *memory = &module->home.context->memory;
    module->addresses = calloc(parsed->variable_count + 1, sizeof *module->addresses);
    if (!module->addresses)
        return false;
    for (size_t i = 0; i < parsed->variable_count; i++) {
        const struct emu_variable *variable = &parsed->variables[i];
        if (variable->space != SPACE_GLOBAL && variable->space != SPACE_CONST)
            continue;
        uint64_t size = variable->size ? variable->size : 1;
        module->addresses[i] = emu_memory_alloc(memory, size, variable->alignment);
        if (!module->addresses[i])
            return false;
        struct emu_allocation *allocation = emu_memory_find(memory, module->addresses[i]);
        allocation->read_only = variable->space == SPACE_CONST;
        memset(allocation->written, 1, size); /* without an initialiser they are zero */
        if (variable->initial)
            memcpy(allocation->data, variable->initial, variable->size);
    }
    return true;
}

static bool relocate(struct CUmod_st *module, ptxgen_error *err)
{
    const struct emu_module *parsed = module->parsed;
    for (size_t i = 0; i < parsed->variable_count; i++) {
        const struct emu_variable *variable = &parsed->variables[i];
        for (size_t r = 0; r < variable->relocation_count; r++) {
            const struct emu_relocation *relocation = &variable->relocations[r];
            uint32_t index;
            const struct emu_symbol *symbol =
                emu_find_symbol(parsed, relocation->symbol, 0, &index);
            if (!symbol || symbol->kind != SYMBOL_VARIABLE) {
                ptxgen_fail(err, PTXGEN_ERROR_PTX_SYNTAX,
                            "line %u, column 1: '%.*s' is no variable whose address could be taken",
                            variable->line, (int)relocation->symbol.length,
                            relocation->symbol.text);
                return false;
            }
            uint64_t value = module->addresses[symbol->first] + relocation->addend;
            uint8_t *to = emu_memory_host(&module->home.context->memory, module->addresses[i],
                                          variable->size, NULL);
            if (to)
                memcpy(to + relocation->offset, &value, sizeof value);
        }
    }
    return true;
}

/* ---- loading ---- */

ptxgen_cu_result emu_cu_module_unload(ptxgen_cu_module module)
{
    if (!module)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    struct CUctx_st *context = emu_context_of(module->home);
    for (size_t i = 0; i < module->function_count; i++)
        emu_program_free(module->functions[i].program);
    for (size_t i = 0; context && module->addresses && i < module->parsed->variable_count; i++)
        if (module->addresses[i])
            emu_memory_free(&context->memory, module->addresses[i]);
    free(module->functions);
    free(module->addresses);
    emu_module_free(module->parsed);
    free(module);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_prepare(struct CUfunc_st *function, ptxgen_error *err)
{
    struct CUmod_st *module = function->module;
    struct emu_placement placement = {module->addresses, module->chip};
    if (function->program)
        return PTXGEN_CUDA_SUCCESS;
    ptxgen_status status =
        emu_program_make(module->parsed, function->function, &placement, &function->program, err);
    if (status == PTXGEN_ERROR_OUT_OF_MEMORY)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    if (status != PTXGEN_OK)
        return PTXGEN_CUDA_ERROR_INVALID_PTX;
    if (function->program->shared_bytes > EMU_SHARED_STATIC_LIMIT) {
        ptxgen_fail(err, PTXGEN_ERROR_PTX_SYNTAX,
                    "line %u, column 1: kernel %.*s has %u bytes of static shared memory; "
                    "the limit is %d",
                    function->function->line, (int)function->function->name.length,
                    function->function->name.text, function->program->shared_bytes,
                    EMU_SHARED_STATIC_LIMIT);
        return PTXGEN_CUDA_ERROR_INVALID_PTX;
    }
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result prepare_functions(struct CUmod_st *module, ptxgen_error *err)
{
    const struct emu_module *parsed = module->parsed;
    module->functions = calloc(parsed->function_count + 1, sizeof *module->functions);
    if (!module->functions)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < parsed->function_count; i++) {
        if (!parsed->functions[i].is_entry || !parsed->functions[i].has_body)
            continue;
        struct CUfunc_st *function = &module->functions[module->function_count++];
        function->module = module;
        function->function = &parsed->functions[i];
        ptxgen_cu_result result = emu_prepare(function, err);
        if (result != PTXGEN_CUDA_SUCCESS)
            return result;
    }
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_module_from_text(struct CUctx_st *context, const char *text, size_t length,
                                      struct CUmod_st **module, ptxgen_error *err)
{
    struct CUmod_st *made = calloc(1, sizeof *made);
    if (!made)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    made->home = emu_ref_of(context);
    made->chip = context->chip;
    ptxgen_status status = emu_module_parse(text, length, &made->parsed, err);
    if (status != PTXGEN_OK) {
        free(made);
        return status == PTXGEN_ERROR_OUT_OF_MEMORY ? PTXGEN_CUDA_ERROR_OUT_OF_MEMORY
                                                    : PTXGEN_CUDA_ERROR_INVALID_PTX;
    }
    ptxgen_cu_result result = check_module(context, made->parsed, err);
    if (result == PTXGEN_CUDA_SUCCESS && !place_variables(made))
        result = PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    if (result == PTXGEN_CUDA_SUCCESS && !relocate(made, err))
        result = PTXGEN_CUDA_ERROR_INVALID_PTX;
    if (result == PTXGEN_CUDA_SUCCESS)
        result = prepare_functions(made, err);
    if (result == PTXGEN_CUDA_SUCCESS)
        *module = made;
    else
        emu_cu_module_unload(made);
    return result;
}

ptxgen_cu_result emu_cu_module_load_data_ex(ptxgen_cu_module *module, const void *image,
                                            unsigned int option_count,
                                            ptxgen_cu_jit_option *options, void **option_values)
{
    struct CUctx_st *context;
    ptxgen_error err = {0};
    ptxgen_cu_result result = emu_current(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!module || !image || (option_count && (!options || !option_values)))
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    const char *text = image;
    size_t length = 0;
    if (emu_is_cubin(image))
        text = emu_cubin_text(image, &length, &err);
    else if (strncmp(image,
                     "\x7f"
                     "ELF",
                     4) == 0)
        return PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU;
    else
        length = strlen(text);
    result = text ? emu_module_from_text(context, text, length, module, &err)
                  : PTXGEN_CUDA_ERROR_INVALID_IMAGE;
    emu_jit_log(option_count, options, option_values, err.message);
    if (result != PTXGEN_CUDA_SUCCESS)
        emu_log(context, err.message);
    return result;
}

ptxgen_cu_result emu_cu_module_load_data(ptxgen_cu_module *module, const void *image)
{
    return emu_cu_module_load_data_ex(module, image, 0, NULL, NULL);
}

/* The symbol of that name at the module's level, NULL when it is of another kind. */
static const struct emu_symbol *find_symbol(const struct CUmod_st *module, const char *name,
                                            enum emu_symbol_kind kind)
{
    size_t length = strlen(name);
    uint32_t index;
    if (length > UINT32_MAX)
        return NULL;
    const struct emu_symbol *symbol =
        emu_find_symbol(module->parsed, (struct emu_str){name, (uint32_t)length}, 0, &index);
    return symbol && symbol->kind == kind ? symbol : NULL;
}

static int by_function(const void *wanted, const void *entry)
{
    const struct emu_function *a = wanted, *b = ((const struct CUfunc_st *)entry)->function;
    return (a > b) - (a < b);
}

ptxgen_cu_result emu_cu_module_get_function(ptxgen_cu_function *function, ptxgen_cu_module module,
                                            const char *name)
{
    if (!function || !module || !name)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    const struct emu_symbol *symbol = find_symbol(module, name, SYMBOL_FUNCTION);
    if (!symbol)
        return PTXGEN_CUDA_ERROR_NOT_FOUND;
    *function = bsearch(&module->parsed->functions[symbol->first], module->functions,
                        module->function_count, sizeof *module->functions, by_function);
    return *function ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_NOT_FOUND;
}

ptxgen_cu_result emu_cu_module_get_global(ptxgen_cu_deviceptr *address, size_t *bytes,
                                          ptxgen_cu_module module, const char *name)
{
    if (!module || !name)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    const struct emu_symbol *symbol = find_symbol(module, name, SYMBOL_VARIABLE);
    if (!symbol || !module->addresses[symbol->first])
        return PTXGEN_CUDA_ERROR_NOT_FOUND;
    if (address)
        *address = module->addresses[symbol->first];
    if (bytes)
        *bytes = (size_t)module->parsed->variables[symbol->first].size;
    return PTXGEN_CUDA_SUCCESS;
}

/* ---- function attributes ---- */

static uint32_t most_threads(const struct CUfunc_st *function)
{
    const struct emu_function *parsed = function->function;
    const uint32_t *limit =
        parsed->required_threads[0] ? parsed->required_threads : parsed->max_threads;
    uint64_t threads = limit[0] ? (uint64_t)limit[0] * limit[1] * limit[2] : 1024;
    return threads < 1024 ? (uint32_t)threads : 1024;
}

/* Every function of a module sees all of the module's constant memory. */
static uint64_t constant_bytes(const struct emu_module *parsed)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < parsed->variable_count; i++)
        if (parsed->variables[i].space == SPACE_CONST)
            bytes += parsed->variables[i].size;
    return bytes;
}

ptxgen_cu_result emu_cu_func_get_attribute(int *value, ptxgen_cu_function_attribute attribute,
                                           ptxgen_cu_function function)
{
    if (!function || !value)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    const struct emu_program *program = function->program;
    const struct emu_module *parsed = function->module->parsed;
    const uint32_t *cluster = function->function->required_cluster;
    switch (attribute) {
    case PTXGEN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)most_threads(function);
        break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)program->shared_bytes; break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)constant_bytes(parsed); break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)program->local_bytes; break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)emu_register_count(function); break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = (int)(parsed->version_major * 10 + parsed->version_minor);
        break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = (int)function->module->chip->sm; break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->max_dynamic_shared
                     ? function->max_dynamic_shared
                     : (int)(EMU_SHARED_STATIC_LIMIT - program->shared_bytes);
        break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = function->carveout;
        break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = (int)cluster[0]; break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = (int)cluster[1]; break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = (int)cluster[2]; break;
    case PTXGEN_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = function->allow_large_cluster;
        break;
    default: *value = 0;
    }
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_func_set_attribute(ptxgen_cu_function function,
                                           ptxgen_cu_function_attribute attribute, int value)
{
    if (!function || value < 0)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    uint32_t most = function->module->chip->shared_per_cta;
    switch (attribute) {
    case PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if ((uint32_t)value + function->program->shared_bytes > most)
            return PTXGEN_CUDA_ERROR_INVALID_VALUE;
        function->max_dynamic_shared = value;
        return PTXGEN_CUDA_SUCCESS;
    case PTXGEN_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        function->carveout = value;
        return PTXGEN_CUDA_SUCCESS;
    case PTXGEN_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        function->allow_large_cluster = value;
        return PTXGEN_CUDA_SUCCESS;
    case PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case PTXGEN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return PTXGEN_CUDA_ERROR_NOT_SUPPORTED;
    default: return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    }
}

ptxgen_cu_result emu_cu_func_set_cache_config(ptxgen_cu_function function,
                                              ptxgen_cu_function_cache config)
{
    (void)config;
    return function ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_INVALID_HANDLE;
}
