/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each exported function says of arguments that no caller should pass, word for word:
 * ROW(function, passings, status behind PTXGEN_ERROR_, sentence).
 */
ROW(ptx_module_check, NO, INVALID_ARGUMENT, "the module is NULL")
ROW(ptx_module_status, NO, INVALID_ARGUMENT, "the module is NULL")
ROW(ptx_module_text, NO, INVALID_ARGUMENT, "ptx_module_text: the module or text is NULL")
ROW(ptx_module_text, ZEROS | ONES, STRUCTURE, "kernel 'k': was never ended")
ROW(ptx_target_check, NO, INVALID_ARGUMENT, "the target is NULL")
ROW(ptx_target_check, ZEROS, TARGET,
    "sm_0 is not a target that ptxgen knows: it knows sm_80, 86, 87, 88, 89, 90, 100, 101, 103, "
    "110, 120, 121")
ROW(ptx_target_check, ONES, TARGET,
    "sm_-1? is not a target that ptxgen knows: it knows sm_80, 86, 87, 88, 89, 90, 100, 101, "
    "103, 110, 120, 121")
ROW(ptx_target_parse, NO, INVALID_ARGUMENT, "target name and result must be given")
ROW(ptx_target_parse, ZEROS, INVALID_ARGUMENT,
    "target '' is not of the form sm_80, sm_90a or sm_120f")
ROW(ptx_target_parse, ONES, INVALID_ARGUMENT,
    "target '?\?%s%n' is not of the form sm_80, sm_90a or sm_120f")
ROW(ptxgen_assemble, NO, INVALID_ARGUMENT, "ptxgen_assemble: driver, ptx or cubin is NULL")
ROW(ptxgen_assemble, ZEROS | ONES, INVALID_ARGUMENT,
    "the driver table was not started, by ptxgen_driver_open or _start")
ROW(ptxgen_cache_clear, ANY, INVALID_ARGUMENT, "the cache is NULL")
ROW(ptxgen_cache_open, NO, INVALID_ARGUMENT, "ptxgen_cache_open: cache is NULL")
ROW(ptxgen_cache_prune, ANY, INVALID_ARGUMENT, "the cache is NULL")
ROW(ptxgen_cache_visit, ANY, INVALID_ARGUMENT, "ptxgen_cache_visit: cache or visit is NULL")
ROW(ptxgen_dense_ctas, ANY, INVALID_ARGUMENT,
    "dense: a plan that was made, and ctas, must be given")
ROW(ptxgen_dense_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_dense_emit, ANY, INVALID_ARGUMENT,
    "dense: a plan that was made, and a module, must be given")
ROW(ptxgen_dense_guarantee, ANY, INVALID_ARGUMENT,
    "dense: a plan that was made, m above 0 and a guarantee must be given")
ROW(ptxgen_dense_launch, ANY, INVALID_ARGUMENT, "dense: kernel and args must be given")
ROW(ptxgen_dense_load, ANY, INVALID_ARGUMENT,
    "dense: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_dense_make_plan, NO, INVALID_ARGUMENT, "dense: spec, target and plan must be given")
ROW(ptxgen_dense_make_plan, ZEROS, TARGET,
    "sm_0 is not a target that ptxgen knows: it knows sm_80, 86, 87, 88, 89, 90, 100, 101, 103, "
    "110, 120, 121")
ROW(ptxgen_dense_make_plan, ONES, INVALID_ARGUMENT,
    "dense: the type 255 is none of PTXGEN_F32, _F16 and _BF16")
ROW(ptxgen_dense_reference, ANY, INVALID_ARGUMENT,
    "dense: a plan that was made, operands, y and bound must be given")
ROW(ptxgen_dense_reference_spread, ANY, INVALID_ARGUMENT,
    "dense: a plan that was made, operands, y and bound must be given")
ROW(ptxgen_dense_use_tile, ANY, INVALID_ARGUMENT,
    "dense: a plan that was made, and a tile, must be given")
ROW(ptxgen_dense_workspace_bytes, ANY, INVALID_ARGUMENT,
    "dense: kernel, args and bytes must be given")
ROW(ptxgen_device_read, NO, INVALID_ARGUMENT, "ptxgen_device_read: driver or facts is NULL")
ROW(ptxgen_device_read, ZEROS, INVALID_ARGUMENT,
    "there is no device 0: the driver shows 0, counted from 0")
ROW(ptxgen_device_read, ONES, INVALID_ARGUMENT,
    "there is no device -1: the driver shows 0, counted from 0")
ROW(ptxgen_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_dispatch_retry, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_dispatcher_create, NO, INVALID_ARGUMENT,
    "ptxgen_dispatcher_create: driver or dispatcher is NULL")
ROW(ptxgen_dispatcher_create, ZEROS | ONES, INVALID_ARGUMENT,
    "the driver table was not started, by ptxgen_driver_open or _start")
ROW(ptxgen_dispatcher_unload, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatcher_unload: dispatcher is NULL, or a spec is given without its family")
ROW(ptxgen_driver_open, NO, INVALID_ARGUMENT, "ptxgen_driver_open: driver is NULL")
ROW(ptxgen_driver_require, NO | ZEROS, INVALID_ARGUMENT,
    "offset 0 is not of a call in struct ptxgen_driver")
ROW(ptxgen_driver_require, ONES, INVALID_ARGUMENT,
    "offset 18446744073709551615 is not of a call in struct ptxgen_driver")
ROW(ptxgen_driver_start, NO, INVALID_ARGUMENT, "ptxgen_driver_start: driver is NULL")
ROW(ptxgen_driver_start, ZEROS | ONES, INVALID_ARGUMENT,
    "the driver table has no cuGetErrorName, which is a required entry")
ROW(ptxgen_emulator_ordinal, NO, INVALID_ARGUMENT,
    "the device's name, or the place for its ordinal, is NULL")
ROW(ptxgen_emulator_ordinal, ZEROS, NO_DEVICE,
    "no emulated device is called ''; there are: cpu cpu:sm_90 cpu:sm_80 cpu:sm_86 cpu:sm_87 "
    "cpu:sm_89 cpu:sm_100 cpu:sm_103 cpu:sm_120")
ROW(ptxgen_emulator_ordinal, ONES, NO_DEVICE,
    "no emulated device is called '?\?%s%n'; there are: cpu cpu:sm_90 cpu:sm_80 cpu:sm_86 "
    "cpu:sm_87 cpu:sm_89 cpu:sm_100 cpu:sm_103 cpu:sm_120")
ROW(ptxgen_emulator_profile_take, NO, INVALID_ARGUMENT, "the place for the profile is NULL")
ROW(ptxgen_emulator_profile_take, ZEROS | ONES, INVALID_ARGUMENT,
    "the context is none of the emulator's, or is destroyed")
ROW(ptxgen_emulator_set_options, NO, INVALID_ARGUMENT, "the options are NULL")
ROW(ptxgen_emulator_set_options, ZEROS | ONES, INVALID_ARGUMENT,
    "the context is none of the emulator's, or is destroyed")
ROW(ptxgen_gguf_decode_row, NO, INVALID_ARGUMENT, "gguf: row or weights is NULL")
ROW(ptxgen_gguf_decode_row, ONES, UNSUPPORTED,
    "gguf: 4294967295 is the number of no type that this library decodes")
ROW(ptxgen_gguf_linear_ctas, ANY, INVALID_ARGUMENT,
    "gguf_linear: a plan that was made, and ctas, must be given")
ROW(ptxgen_gguf_linear_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_gguf_linear_emit, ANY, INVALID_ARGUMENT,
    "gguf_linear: a plan that was made, and a module, must be given")
ROW(ptxgen_gguf_linear_guarantee, ANY, INVALID_ARGUMENT,
    "gguf_linear: a plan that was made, m above 0 and a guarantee must be given")
ROW(ptxgen_gguf_linear_launch, ANY, INVALID_ARGUMENT, "gguf_linear: kernel and args must be given")
ROW(ptxgen_gguf_linear_load, ANY, INVALID_ARGUMENT,
    "gguf_linear: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_gguf_linear_make_plan, NO, INVALID_ARGUMENT,
    "gguf_linear: spec, target and plan must be given")
ROW(ptxgen_gguf_linear_make_plan, ZEROS, UNSUPPORTED,
    "gguf_linear: K = 0 is not within 1 and 4194304")
ROW(ptxgen_gguf_linear_make_plan, ONES, UNSUPPORTED,
    "gguf_linear: K = 4294967295 is not within 1 and 4194304")
ROW(ptxgen_gguf_linear_reference, ANY, INVALID_ARGUMENT,
    "gguf_linear: a plan that was made, operands and y must be given")
ROW(ptxgen_gguf_linear_reference_spread, ANY, INVALID_ARGUMENT,
    "gguf_linear: a plan that was made, operands and y must be given")
ROW(ptxgen_gguf_linear_workspace_bytes, ANY, INVALID_ARGUMENT,
    "gguf_linear: kernel, args and bytes must be given")
ROW(ptxgen_gguf_matvec, NO, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_gguf_matvec, ZEROS, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_gguf_matvec, ONES, INVALID_ARGUMENT,
    "gguf_matvec: 4294967295 is the number of no type and of no epilogue")
ROW(ptxgen_gguf_matvec_merged, NO, INVALID_ARGUMENT,
    "gguf_matvec: count = 0; w_types and n of 1 to 3 matrices must be given")
ROW(ptxgen_gguf_matvec_merged, ZEROS, INVALID_ARGUMENT,
    "gguf_matvec: count = 0; w_types and n of 1 to 3 matrices must be given")
ROW(ptxgen_gguf_matvec_merged, ONES, INVALID_ARGUMENT,
    "gguf_matvec: count = 4294967295; w_types and n of 1 to 3 matrices must be given")
ROW(ptxgen_gguf_matvec_workspace, NO, INVALID_ARGUMENT, "gguf_matvec: bytes is NULL")
ROW(ptxgen_gguf_matvec_workspace, ZEROS, INVALID_ARGUMENT,
    "gguf_matvec: count = 0; w_types and n of 1 to 3 matrices must be given")
ROW(ptxgen_gguf_matvec_workspace, ONES, INVALID_ARGUMENT,
    "gguf_matvec: count = 4294967295; w_types and n of 1 to 3 matrices must be given")
ROW(ptxgen_gguf_quantise_row, NO, INVALID_ARGUMENT, "gguf: row or weights is NULL")
ROW(ptxgen_gguf_quantise_row, ONES, UNSUPPORTED,
    "gguf: 4294967295 is the number of no type that this library decodes")
ROW(ptxgen_gguf_row_bytes, NO, INVALID_ARGUMENT, "gguf: bytes is NULL")
ROW(ptxgen_gguf_row_bytes, ONES, UNSUPPORTED,
    "gguf: 4294967295 is the number of no type that this library decodes")
ROW(ptxgen_gguf_rows_ctas, ANY, INVALID_ARGUMENT,
    "gguf_rows: a plan that was made, and ctas, must be given")
ROW(ptxgen_gguf_rows_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_gguf_rows_emit, ANY, INVALID_ARGUMENT,
    "gguf_rows: a plan that was made, and a module, must be given")
ROW(ptxgen_gguf_rows_launch, ANY, INVALID_ARGUMENT, "gguf_rows: kernel and args must be given")
ROW(ptxgen_gguf_rows_load, ANY, INVALID_ARGUMENT,
    "gguf_rows: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_gguf_rows_make_plan, NO, INVALID_ARGUMENT,
    "gguf_rows: spec, target and plan must be given")
ROW(ptxgen_gguf_rows_make_plan, ZEROS, UNSUPPORTED,
    "gguf_rows: K = 0 is not within 1 and 16777216")
ROW(ptxgen_gguf_rows_make_plan, ONES, UNSUPPORTED,
    "gguf_rows: K = 4294967295 is not within 1 and 16777216")
ROW(ptxgen_gguf_rows_reference, ZEROS, INVALID_ARGUMENT, "gguf_rows: there is no row 0 among 0")
ROW(ptxgen_gguf_rows_reference, NO | ONES, INVALID_ARGUMENT,
    "gguf_rows: spec, operands, y or an array that the spec needs is NULL")
ROW(ptxgen_gguf_rows_workspace_bytes, ANY, INVALID_ARGUMENT,
    "gguf_rows: kernel, args and bytes must be given")
ROW(ptxgen_kernel_create, ANY, INVALID_ARGUMENT,
    "ptxgen_kernel_create: module, name or kernel is NULL")
ROW(ptxgen_kernel_max_clusters, ANY, INVALID_ARGUMENT,
    "ptxgen_kernel_max_clusters: kernel, shape or clusters is NULL, or the grid is empty")
ROW(ptxgen_kernel_occupancy, NO | ZEROS, INVALID_ARGUMENT,
    "ptxgen_kernel_occupancy: kernel or blocks_per_sm is NULL, or 0 threads are not a CTA")
ROW(ptxgen_kernel_occupancy, ONES, INVALID_ARGUMENT,
    "ptxgen_kernel_occupancy: kernel or blocks_per_sm is NULL, or -1 threads are not a CTA")
ROW(ptxgen_launch, ANY, INVALID_ARGUMENT, "ptxgen_launch: kernel or shape is NULL")
ROW(ptxgen_linear_from_floats, NO, INVALID_ARGUMENT, "a layer: linear is NULL")
ROW(ptxgen_linear_from_floats, ZEROS | ONES, INVALID_ARGUMENT,
    "a layer: dispatcher and options must be given")
ROW(ptxgen_linear_from_gguf, NO, INVALID_ARGUMENT, "a layer: linear is NULL")
ROW(ptxgen_linear_from_gguf, ZEROS | ONES, INVALID_ARGUMENT,
    "a layer: dispatcher and options must be given")
ROW(ptxgen_linear_from_layer, NO, INVALID_ARGUMENT, "a layer: linear is NULL")
ROW(ptxgen_linear_from_layer, ZEROS | ONES, INVALID_ARGUMENT,
    "a layer: dispatcher and options must be given")
ROW(ptxgen_linear_from_sparse24, NO, INVALID_ARGUMENT, "a layer: linear is NULL")
ROW(ptxgen_linear_from_sparse24, ZEROS | ONES, INVALID_ARGUMENT,
    "a layer: dispatcher and options must be given")
ROW(ptxgen_linear_from_w4, NO, INVALID_ARGUMENT, "a layer: linear is NULL")
ROW(ptxgen_linear_from_w4, ZEROS | ONES, INVALID_ARGUMENT,
    "a layer: dispatcher and options must be given")
ROW(ptxgen_linear_from_w8a8, NO, INVALID_ARGUMENT, "a layer: linear is NULL")
ROW(ptxgen_linear_from_w8a8, ZEROS | ONES, INVALID_ARGUMENT,
    "a layer: dispatcher and options must be given")
ROW(ptxgen_linear_run, ANY, INVALID_ARGUMENT, "a layer's run: linear and args must be given")
ROW(ptxgen_linear_workspace_bytes, NO, INVALID_ARGUMENT,
    "ptxgen_linear_workspace_bytes: bytes is NULL")
ROW(ptxgen_linear_workspace_bytes, ZEROS | ONES, INVALID_ARGUMENT,
    "a layer's run: linear and args must be given")
ROW(ptxgen_marlin_check_packed, NO, INVALID_ARGUMENT, "marlin: spec is NULL")
ROW(ptxgen_marlin_check_packed, ZEROS, UNSUPPORTED, "marlin: the group size 0 is neither a multiple of 16 nor -1")
ROW(ptxgen_marlin_check_packed, ONES, UNSUPPORTED,
    "marlin: K = 4294967295 is above 2147483647")
ROW(ptxgen_marlin_ctas, ANY, INVALID_ARGUMENT,
    "marlin: a plan that was made, and ctas, must be given")
ROW(ptxgen_marlin_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_marlin_emit, ANY, INVALID_ARGUMENT,
    "marlin: a plan that was made, and a module, must be given")
ROW(ptxgen_marlin_guarantee, ANY, INVALID_ARGUMENT,
    "marlin: a plan that was made, m above 0 and a guarantee must be given")
ROW(ptxgen_marlin_launch, ANY, INVALID_ARGUMENT, "marlin: kernel and args must be given")
ROW(ptxgen_marlin_load, ANY, INVALID_ARGUMENT,
    "marlin: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_marlin_make_plan, NO, INVALID_ARGUMENT, "marlin: spec, target and plan must be given")
ROW(ptxgen_marlin_make_plan, ZEROS, UNSUPPORTED, "marlin: the group size 0 is neither a multiple of 16 nor -1")
ROW(ptxgen_marlin_make_plan, ONES, UNSUPPORTED,
    "marlin: K = 4294967295 is above 2147483647")
ROW(ptxgen_marlin_pack, NO, INVALID_ARGUMENT, "marlin: spec is NULL")
ROW(ptxgen_marlin_pack, ZEROS, UNSUPPORTED, "marlin: the group size 0 is neither a multiple of 16 nor -1")
ROW(ptxgen_marlin_pack, ONES, UNSUPPORTED, "marlin: K = 4294967295 is above 2147483647")
ROW(ptxgen_marlin_packed_from_layer, NO, INVALID_ARGUMENT,
    "ptxgen_marlin_packed_from_layer: layer, spec and packed must be given")
ROW(ptxgen_marlin_packed_from_layer, ZEROS | ONES, INVALID_ARGUMENT,
    "a packed layer: a layer of kind 0 and form 0 is none")
ROW(ptxgen_marlin_packed_layout, NO, INVALID_ARGUMENT, "marlin: spec is NULL")
ROW(ptxgen_marlin_packed_layout, ZEROS, UNSUPPORTED,
    "marlin: the group size 0 is neither a multiple of 16 nor -1")
ROW(ptxgen_marlin_packed_layout, ONES, UNSUPPORTED,
    "marlin: K = 4294967295 is above 2147483647")
ROW(ptxgen_marlin_reference, ANY, INVALID_ARGUMENT,
    "marlin: a plan that was made, operands and y must be given")
ROW(ptxgen_marlin_reference_spread, ANY, INVALID_ARGUMENT,
    "marlin: a plan that was made, operands and y must be given")
ROW(ptxgen_marlin_repack_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_marlin_repack_emit, ANY, INVALID_ARGUMENT,
    "marlin_repack: a plan that was made, and a module, must be given")
ROW(ptxgen_marlin_repack_launch, ANY, INVALID_ARGUMENT,
    "marlin_repack: kernel and args must be given")
ROW(ptxgen_marlin_repack_load, ANY, INVALID_ARGUMENT,
    "marlin_repack: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_marlin_repack_make_plan, NO, INVALID_ARGUMENT,
    "marlin_repack: spec, target and plan must be given")
ROW(ptxgen_marlin_repack_make_plan, ZEROS, UNSUPPORTED,
    "marlin: the group size 0 is neither a multiple of 16 nor -1")
ROW(ptxgen_marlin_repack_make_plan, ONES, UNSUPPORTED,
    "marlin: K = 4294967295 is above 2147483647")
ROW(ptxgen_marlin_repack_verdict, NO, INVALID_ARGUMENT, "marlin_repack: spec must be given")
ROW(ptxgen_marlin_repack_verdict, ZEROS, UNSUPPORTED,
    "marlin: the group size 0 is neither a multiple of 16 nor -1")
ROW(ptxgen_marlin_repack_verdict, ONES, UNSUPPORTED,
    "marlin: K = 4294967295 is above 2147483647")
ROW(ptxgen_marlin_row_order, NO, INVALID_ARGUMENT,
    "marlin_repack: spec, g_idx and order must be given")
ROW(ptxgen_marlin_row_order, ZEROS, UNSUPPORTED, "marlin: the group size 0 is neither a multiple of 16 nor -1")
ROW(ptxgen_marlin_row_order, ONES, UNSUPPORTED,
    "marlin: K = 4294967295 is above 2147483647")
ROW(ptxgen_marlin_unpack, NO, INVALID_ARGUMENT, "marlin: spec is NULL")
ROW(ptxgen_marlin_unpack, ZEROS, UNSUPPORTED, "marlin: the group size 0 is neither a multiple of 16 nor -1")
ROW(ptxgen_marlin_unpack, ONES, UNSUPPORTED,
    "marlin: K = 4294967295 is above 2147483647")
ROW(ptxgen_marlin_use_tile, ANY, INVALID_ARGUMENT,
    "marlin: a plan that was made, and a tile, must be given")
ROW(ptxgen_marlin_workspace_bytes, ANY, INVALID_ARGUMENT,
    "marlin: kernel, args and bytes must be given")
ROW(ptxgen_module_global, ANY, INVALID_ARGUMENT,
    "ptxgen_module_global: module, name, address or bytes is NULL")
ROW(ptxgen_module_load_cubin, NO, INVALID_ARGUMENT,
    "ptxgen_module_load_cubin: driver, cubin or module is NULL")
ROW(ptxgen_module_load_cubin, ZEROS, MALFORMED,
    "a cubin of 0 bytes is shorter than its own header, 64 bytes")
ROW(ptxgen_module_load_cubin, ONES, MALFORMED,
    "the 18446744073709551615 bytes are not a cubin: they do not open with the header of a "
    "64-bit little-endian ELF file for CUDA")
ROW(ptxgen_module_load_ptx, NO, INVALID_ARGUMENT,
    "ptxgen_module_load_ptx: driver, ptx or module is NULL")
ROW(ptxgen_module_load_ptx, ZEROS | ONES, INVALID_ARGUMENT,
    "the driver table was not started, by ptxgen_driver_open or _start")
ROW(ptxgen_quantise_ctas, ANY, INVALID_ARGUMENT,
    "quantise: a plan that was made, and ctas, must be given")
ROW(ptxgen_quantise_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_quantise_emit, ANY, INVALID_ARGUMENT,
    "quantise: a plan that was made, and a module, must be given")
ROW(ptxgen_quantise_launch, ANY, INVALID_ARGUMENT, "quantise: kernel and args must be given")
ROW(ptxgen_quantise_load, ANY, INVALID_ARGUMENT,
    "quantise: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_quantise_make_plan, NO, INVALID_ARGUMENT,
    "quantise: spec, target and plan must be given")
ROW(ptxgen_quantise_make_plan, ZEROS, UNSUPPORTED,
    "quantise: K = 0 is not within 1 and 16777216")
ROW(ptxgen_quantise_make_plan, ONES, UNSUPPORTED,
    "quantise: K = 4294967295 is not within 1 and 16777216")
ROW(ptxgen_quantise_reference, ANY, INVALID_ARGUMENT,
    "quantise: spec, operands, token or an array that the spec needs is NULL")
ROW(ptxgen_quantise_workspace_bytes, ANY, INVALID_ARGUMENT,
    "quantise: kernel, args and bytes must be given")
ROW(ptxgen_rmsnorm_q4k_ctas, ANY, INVALID_ARGUMENT,
    "rmsnorm_q4k: a plan that was made, and ctas, must be given")
ROW(ptxgen_rmsnorm_q4k_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_rmsnorm_q4k_emit, ANY, INVALID_ARGUMENT,
    "rmsnorm_q4k: a plan that was made, and a module, must be given")
ROW(ptxgen_rmsnorm_q4k_guarantee, ANY, INVALID_ARGUMENT,
    "rmsnorm_q4k: a plan that was made, m above 0 and a guarantee must be given")
ROW(ptxgen_rmsnorm_q4k_launch, ANY, INVALID_ARGUMENT, "rmsnorm_q4k: kernel and args must be given")
ROW(ptxgen_rmsnorm_q4k_load, ANY, INVALID_ARGUMENT,
    "rmsnorm_q4k: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_rmsnorm_q4k_make_plan, NO, INVALID_ARGUMENT,
    "rmsnorm_q4k: spec, target and plan must be given")
ROW(ptxgen_rmsnorm_q4k_make_plan, ZEROS, UNSUPPORTED,
    "rmsnorm_q4k: K = 0 must be a positive multiple of 256 (Q4_K's super-block) up to 16777216")
ROW(ptxgen_rmsnorm_q4k_make_plan, ONES, UNSUPPORTED,
    "rmsnorm_q4k: K = 4294967295 must be a positive multiple of 256 (Q4_K's super-block) up to "
    "16777216")
ROW(ptxgen_rmsnorm_q4k_reference, ANY, INVALID_ARGUMENT,
    "rmsnorm_q4k: a plan that was made, operands and y must be given")
ROW(ptxgen_rmsnorm_q4k_reference_spread, ANY, INVALID_ARGUMENT,
    "rmsnorm_q4k: a plan that was made, operands and y must be given")
ROW(ptxgen_rmsnorm_q4k_workspace_bytes, ANY, INVALID_ARGUMENT,
    "rmsnorm_q4k: kernel, args and bytes must be given")
ROW(ptxgen_sparse24_compress, NO, INVALID_ARGUMENT, "shape is NULL")
ROW(ptxgen_sparse24_compress, ONES, INVALID_ARGUMENT, "-1 is no element type of a 2:4 weight")
ROW(ptxgen_sparse24_convert, NO, INVALID_ARGUMENT, "shape is NULL")
ROW(ptxgen_sparse24_convert, ONES, INVALID_ARGUMENT, "-1 is no element type of a 2:4 weight")
ROW(ptxgen_sparse24_ctas, ANY, INVALID_ARGUMENT,
    "sparse24: a plan that was made, and ctas, must be given")
ROW(ptxgen_sparse24_decompress, NO, INVALID_ARGUMENT, "shape is NULL")
ROW(ptxgen_sparse24_decompress, ONES, INVALID_ARGUMENT, "-1 is no element type of a 2:4 weight")
ROW(ptxgen_sparse24_dense_bytes, NO, INVALID_ARGUMENT, "shape is NULL")
ROW(ptxgen_sparse24_dense_bytes, ONES, INVALID_ARGUMENT, "-1 is no element type of a 2:4 weight")
ROW(ptxgen_sparse24_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_sparse24_emit, ANY, INVALID_ARGUMENT,
    "sparse24: a plan that was made, and a module, must be given")
ROW(ptxgen_sparse24_from_layer, NO, INVALID_ARGUMENT,
    "ptxgen_sparse24_from_layer: layer and weights must be given")
ROW(ptxgen_sparse24_from_layer, ZEROS | ONES, INVALID_ARGUMENT,
    "a 2:4 sparse weight: a layer of kind 0 and form 0 is none")
ROW(ptxgen_sparse24_guarantee, ANY, INVALID_ARGUMENT,
    "sparse24: a plan that was made, m above 0 and a guarantee must be given")
ROW(ptxgen_sparse24_inflate, ANY, INVALID_ARGUMENT, "sparse24: kernel and args must be given")
ROW(ptxgen_sparse24_launch, ANY, INVALID_ARGUMENT, "sparse24: kernel and args must be given")
ROW(ptxgen_sparse24_load, ANY, INVALID_ARGUMENT,
    "sparse24: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_sparse24_make_plan, NO, INVALID_ARGUMENT,
    "sparse24: spec, target and plan must be given")
ROW(ptxgen_sparse24_make_plan, ZEROS, TARGET,
    "sm_0 is not a target that ptxgen knows: it knows sm_80, 86, 87, 88, 89, 90, 100, 101, 103, "
    "110, 120, 121")
ROW(ptxgen_sparse24_make_plan, ONES, INVALID_ARGUMENT,
    "sparse24: the type 255 is no ptxgen_sparse24_type")
ROW(ptxgen_sparse24_metadata_bytes, NO, INVALID_ARGUMENT, "shape is NULL")
ROW(ptxgen_sparse24_metadata_bytes, ONES, INVALID_ARGUMENT, "-1 is no element type of a 2:4 weight")
ROW(ptxgen_sparse24_pack, NO, INVALID_ARGUMENT, "sparse24: spec is NULL")
ROW(ptxgen_sparse24_pack, ONES, INVALID_ARGUMENT,
    "sparse24: the type 255 is no ptxgen_sparse24_type")
ROW(ptxgen_sparse24_packed_bytes, NO, INVALID_ARGUMENT, "sparse24: spec is NULL")
ROW(ptxgen_sparse24_packed_bytes, ONES, INVALID_ARGUMENT,
    "sparse24: the type 255 is no ptxgen_sparse24_type")
ROW(ptxgen_sparse24_prune, NO, INVALID_ARGUMENT, "shape is NULL")
ROW(ptxgen_sparse24_prune, ONES, INVALID_ARGUMENT, "-1 is no element type of a 2:4 weight")
ROW(ptxgen_sparse24_reference, ANY, INVALID_ARGUMENT,
    "sparse24: a plan that was made, operands, y and bound must be given")
ROW(ptxgen_sparse24_reference_spread, ANY, INVALID_ARGUMENT,
    "sparse24: a plan that was made, operands, y and bound must be given")
ROW(ptxgen_sparse24_repack, ANY, INVALID_ARGUMENT, "sparse24: kernel and args must be given")
ROW(ptxgen_sparse24_repack_verdict, NO, INVALID_ARGUMENT, "sparse24: spec is NULL")
ROW(ptxgen_sparse24_repack_verdict, ONES, INVALID_ARGUMENT,
    "sparse24: the type 255 is no ptxgen_sparse24_type")
ROW(ptxgen_sparse24_use_tile, ANY, INVALID_ARGUMENT,
    "sparse24: a plan that was made, and a tile, must be given")
ROW(ptxgen_sparse24_validate, NO, INVALID_ARGUMENT, "shape is NULL")
ROW(ptxgen_sparse24_validate, ONES, INVALID_ARGUMENT, "-1 is no element type of a 2:4 weight")
ROW(ptxgen_sparse24_workspace_bytes, ANY, INVALID_ARGUMENT,
    "sparse24: kernel, args and bytes must be given")
ROW(ptxgen_target_parse, NO, INVALID_ARGUMENT, "target name and result must be given")
ROW(ptxgen_target_parse, ZEROS, INVALID_ARGUMENT,
    "target '' is not of the form sm_80, sm_90a or sm_120f")
ROW(ptxgen_target_parse, ONES, INVALID_ARGUMENT,
    "target '?\?%s%n' is not of the form sm_80, sm_90a or sm_120f")
ROW(ptxgen_pack_add, ANY, INVALID_ARGUMENT,
    "ptxgen_pack_add: builder, family, spec or target is NULL")
ROW(ptxgen_pack_builder_create, NO, INVALID_ARGUMENT, "ptxgen_pack_builder_create: builder is NULL")
ROW(ptxgen_pack_finish, ANY, INVALID_ARGUMENT,
    "ptxgen_pack_finish: builder, bytes or size is NULL")
ROW(ptxgen_pack_open, NO, INVALID_ARGUMENT, "ptxgen_pack_open: path or pack is NULL")
ROW(ptxgen_pack_open, ZEROS, FILE, "the pack  cannot be opened: No such file or directory")
ROW(ptxgen_pack_open, ONES, FILE, "the pack ?\?%s%n cannot be opened: No such file or directory")
ROW(ptxgen_pack_read, NO, INVALID_ARGUMENT, "ptxgen_pack_read: bytes or pack is NULL")
ROW(ptxgen_pack_read, ZEROS, MALFORMED, "a pack begins with \"ptxgenPK\" and 88 bytes of header")
ROW(ptxgen_pack_read, ONES, MALFORMED, "a pack begins with \"ptxgenPK\" and 88 bytes of header")
ROW(ptxgen_pack_verify, ANY, INVALID_ARGUMENT, "ptxgen_pack_verify: pack is NULL")
ROW(ptxgen_tuned_plan, ANY, INVALID_ARGUMENT,
    "ptxgen_tuned_plan: family, spec, target or plan is NULL, or the family has no make_plan")
ROW(ptxgen_tuning_load, NO, INVALID_ARGUMENT, "ptxgen_tuning: device or tuning is NULL")
ROW(ptxgen_tuning_parse, NO, INVALID_ARGUMENT, "ptxgen_tuning_parse: text is NULL")
ROW(ptxgen_tuning_parse, ZEROS, MALFORMED,
    "the table of tiles is not used: its first line is another")
ROW(ptxgen_tuning_parse, ONES, MALFORMED, "the table of tiles is not used: it is too long")
ROW(ptxgen_tuning_store, ANY, INVALID_ARGUMENT, "ptxgen_tuning_store: an argument is NULL")
ROW(ptxgen_w4_describe, NO, INVALID_ARGUMENT, "checkpoint is NULL")
ROW(ptxgen_w4_describe, ZEROS | ONES, INVALID_ARGUMENT, "qweight is absent")
ROW(ptxgen_w4_describe_matrix, NO, INVALID_ARGUMENT, "matrix is NULL")
ROW(ptxgen_w4_describe_matrix, ZEROS | ONES, INVALID_ARGUMENT, "codes is NULL")
ROW(ptxgen_w4_detect_format, NO, INVALID_ARGUMENT, "format is NULL")
ROW(ptxgen_w4_detect_format, ZEROS, UNSUPPORTED,
    "the checkpoint format \"\" is none of gptq, gptq_v2, awq, pack-quantized and marlin")
ROW(ptxgen_w4_detect_format, ONES, UNSUPPORTED,
    "the checkpoint format \"?\?%s%n\" is none of gptq, gptq_v2, awq, pack-quantized and marlin")
ROW(ptxgen_w4_from_layer, NO, INVALID_ARGUMENT,
    "ptxgen_w4_from_layer: layer and checkpoint must be given")
ROW(ptxgen_w4_from_layer, ZEROS | ONES, INVALID_ARGUMENT,
    "a checkpoint in 4 bits: a layer of kind 0 and form 0 is none")
ROW(ptxgen_w4_layout, NO, INVALID_ARGUMENT, "info is NULL")
ROW(ptxgen_w4_layout, ZEROS, INVALID_ARGUMENT, "K = 0 is not between 1 and 2147483647")
ROW(ptxgen_w4_layout, ONES, INVALID_ARGUMENT, "-1 is not the number of a 4-bit format")
ROW(ptxgen_w4_pack, NO, INVALID_ARGUMENT, "matrix is NULL")
ROW(ptxgen_w4_pack, ZEROS | ONES, INVALID_ARGUMENT, "codes is NULL")
ROW(ptxgen_w4_sort_rows, NO, INVALID_ARGUMENT, "sorted is NULL")
ROW(ptxgen_w4_sort_rows, ZEROS | ONES, INVALID_ARGUMENT, "sorted->codes is NULL")
ROW(ptxgen_w4_to_marlin, NO, INVALID_ARGUMENT, "checkpoint is NULL")
ROW(ptxgen_w4_to_marlin, ZEROS | ONES, INVALID_ARGUMENT, "qweight is absent")
ROW(ptxgen_w4_unpack, NO, INVALID_ARGUMENT, "matrix is NULL")
ROW(ptxgen_w4_unpack, ZEROS | ONES, INVALID_ARGUMENT, "qweight is absent")
ROW(ptxgen_w8a8_ctas, ANY, INVALID_ARGUMENT, "w8a8: a plan that was made, and ctas, must be given")
ROW(ptxgen_w8a8_dispatch, ANY, INVALID_ARGUMENT,
    "ptxgen_dispatch: dispatcher, family, spec or loaded is NULL")
ROW(ptxgen_w8a8_emit, ANY, INVALID_ARGUMENT,
    "w8a8: a plan that was made, and a module, must be given")
ROW(ptxgen_w8a8_guarantee, ANY, INVALID_ARGUMENT,
    "w8a8: a plan that was made, m above 0 and a guarantee must be given")
ROW(ptxgen_w8a8_launch, ANY, INVALID_ARGUMENT, "w8a8: kernel and args must be given")
ROW(ptxgen_w8a8_load, ANY, INVALID_ARGUMENT,
    "w8a8: driver, a plan that was made, and kernel must be given")
ROW(ptxgen_w8a8_make_plan, NO, INVALID_ARGUMENT, "w8a8: spec, target and plan must be given")
ROW(ptxgen_w8a8_make_plan, ZEROS, TARGET,
    "sm_0 is not a target that ptxgen knows: it knows sm_80, 86, 87, 88, 89, 90, 100, 101, 103, "
    "110, 120, 121")
ROW(ptxgen_w8a8_make_plan, ONES, UNSUPPORTED,
    "w8a8: N = 4294967295 is above 2147483647")
ROW(ptxgen_w8a8_pack, NO, INVALID_ARGUMENT, "w8a8: an array of codes is NULL")
ROW(ptxgen_w8a8_pair, NO, INVALID_ARGUMENT,
    "w8a8: rows of gate, of up, and room for both must be given")
ROW(ptxgen_w8a8_pair, ONES, UNSUPPORTED,
    "w8a8: 4294967295 rows to pair; it must be a multiple of 8")
ROW(ptxgen_w8a8_quantise, ANY, INVALID_ARGUMENT, "w8a8: weights, codes and scales must be given")
ROW(ptxgen_w8a8_reference, NO, INVALID_ARGUMENT, "w8a8: a spec and operands must be given")
ROW(ptxgen_w8a8_reference, ZEROS | ONES, INVALID_ARGUMENT, "w8a8: x is NULL")
ROW(ptxgen_w8a8_reference_bound, ANY, INVALID_ARGUMENT,
    "w8a8: a plan that was made, codes, a token, y and bound must be given")
ROW(ptxgen_w8a8_reference_codes, NO, INVALID_ARGUMENT, "w8a8: a spec and operands must be given")
ROW(ptxgen_w8a8_reference_codes, ZEROS | ONES, INVALID_ARGUMENT, "w8a8: x is NULL")
ROW(ptxgen_w8a8_row_sums, NO, INVALID_ARGUMENT, "w8a8: an array of codes is NULL")
ROW(ptxgen_w8a8_use_tile, ANY, INVALID_ARGUMENT,
    "w8a8: a plan that was made, and a tile, must be given")
ROW(ptxgen_w8a8_workspace_bytes, ANY, INVALID_ARGUMENT,
    "w8a8: kernel, args and bytes must be given")
ROW(ptxgen_warm_start, ANY, INVALID_ARGUMENT,
    "ptxgen_warm_start: dispatcher, items or warm is NULL")
ROW(ptxgen_files_layer, ANY, INVALID_ARGUMENT,
    "ptxgen_files_layer: files, name and layer must be given")
ROW(ptxgen_files_open, NO, INVALID_ARGUMENT, "ptxgen_files_open: path and files must be given")
ROW(ptxgen_files_open, ZEROS, FILE, "cannot open : No such file or directory")
ROW(ptxgen_files_open, ONES, FILE, "cannot open ?\?%s%n: No such file or directory")
ROW(ptxgen_files_open_as, NO, INVALID_ARGUMENT, "ptxgen_files_open: path and files must be given")
ROW(ptxgen_files_open_as, ZEROS, FILE, "cannot open : No such file or directory")
ROW(ptxgen_files_open_as, ONES, INVALID_ARGUMENT,
    "ptxgen_files_open_as: the format -1 is none of PTXGEN_FILES_GGUF and PTXGEN_FILES_SAFETENSORS")
ROW(ptxgen_files_require, ANY, INVALID_ARGUMENT,
    "ptxgen_files_require: files, name and tensor must be given")
ROW(ptxgen_gguf_get_array, ANY, INVALID_ARGUMENT,
    "a look-up in a GGUF file: file, key and value must be given")
ROW(ptxgen_gguf_get_bool, ANY, INVALID_ARGUMENT,
    "a look-up in a GGUF file: file, key and value must be given")
ROW(ptxgen_gguf_get_f32, ANY, INVALID_ARGUMENT,
    "a look-up in a GGUF file: file, key and value must be given")
ROW(ptxgen_gguf_get_i64, ANY, INVALID_ARGUMENT,
    "a look-up in a GGUF file: file, key and value must be given")
ROW(ptxgen_gguf_get_string, ANY, INVALID_ARGUMENT,
    "a look-up in a GGUF file: file, key and value must be given")
ROW(ptxgen_gguf_get_u32, ANY, INVALID_ARGUMENT,
    "a look-up in a GGUF file: file, key and value must be given")
ROW(ptxgen_gguf_get_u64, ANY, INVALID_ARGUMENT,
    "a look-up in a GGUF file: file, key and value must be given")
ROW(ptxgen_gguf_parse, NO, INVALID_ARGUMENT, "ptxgen_gguf_parse: bytes and file must be given")
ROW(ptxgen_gguf_parse, ZEROS, MALFORMED,
    "GGUF header: needs 4 bytes at offset 0, where the file has 0 left")
ROW(ptxgen_safetensors_parse, NO, INVALID_ARGUMENT,
    "ptxgen_safetensors_parse: bytes and file must be given")
ROW(ptxgen_safetensors_parse, ZEROS, MALFORMED,
    "not a safetensors file: 0 bytes, fewer than the 8 of the header's length")
