"""Tests that programs on other backends cannot run as they run on the CPU, and why.

By path of a folder, of a file, or of a file and name of the test: the reason that a skipped variant
gives. Tables: what no device does, what CUDA does not, what OpenCL does not, and what OpenCL does
not where it is given SPIR-V.
"""

from __future__ import annotations

__all__ = ["NOT_IN_SPIRV", "NOT_ON_CUDA", "NOT_ON_OPENCL"]

_IMAGES = "it is about the CPU's code images"
_VIEWS = "it is about views of memory, which memory of a device does not give"
_CPU = "it is about the CPU's own code or options"
_ARCH = "it is about which arch a program gets"
_PATIENT = "arrays of the host are copied, so that their launches are never prepared"
_FAR = "it has a device of its own"
_NO_DEVICE = "it is about what needs no device"
_OWN = "it asks a backend of its own"
_TOLD = "only backends that run the threads of a block in lockstep notice it"

_PROCESSES = "it is about files, or processes that do not know of the simulated device"
_KEYS = "it is about what keys and entries of the CPU's code hold"
_ROWS = "it counts rows of adstacks for the threads of a CPU"
_LATE = "what a kernel prints is shown when it has ended"
_FORK = "CUDA does not work in a forked process"
_ORDER = "its iterations run in order on a CPU, as few as they are, and it rests on that"
_SMALL = "it is about numbers that fast_math turns into 0 on a GPU"
_NO_CHECKS = "it is about checks in kernels, which OpenCL's have not"
_LOCAL = "it takes more memory for a block than OpenCL gives on many devices"
_RECURSION = "real functions that call themselves are refused: OpenCL C has no recursion"
_PUT_OFF = "entries for OpenCL are written when the program ends"
_LATER = "launches return at once there: an error is reported at the next wait"
_BOTH = "it launches the code of single backends on memory of the host"

_ON_NO_DEVICE: dict[str, str] = {
    _IMAGES: "backends/test_image backends/test_image_kernels",
    _OWN: """
        backends/opencl/ kernels/test_conformance
        inspect/test_regression inspect/test_reproducer
    """,
    _FAR: """
        inspect/test_on_device lang/test_far_memory
        runtime/test_cuda_device runtime/test_cuda_failures runtime/test_cuda_launch
        runtime/test_cuda_prints runtime/test_cuda_graphs runtime/test_streams
        kernels/test_cuda_graph::test_a_host_loop_does_the_same_and_says_so
    """,
    _NO_DEVICE: """
        backends/cuda/test_archs
        backends/cuda/test_ptx_kernels
        backends/cuda/test_ptx_samples
        backends/cuda/test_ptxas
        backends/cuda/test_ptx_kernels
        backends/cuda/test_ptx_samples
        inspect/test_capture::test_backends_prove_themselves
        inspect/test_targets
        samples/test_machine_code
    """,
    _VIEWS: """
        kernels/test_fields_in_programs::test_a_field_and_a_view_of_it_in_one_kernel
        lang/test_interop::test_views_share_the_memory
        lang/test_interop::test_memory_that_cannot_be_shared
        lang/test_interop::test_members_of_soa_structs_can_be_shared
        lang/test_interop::test_no_conversion_without_a_copy
        lang/test_interop::test_dlpack_shares_the_memory
        runtime/test_relaunches::test_what_is_kept_between_launches_changes_nothing
        lang/test_interop::test_dlpack_of_interleaved_fields_has_strides
        lang/test_interop::test_dlpack_of_other_types
        lang/test_interop::test_dlpack_keeps_the_memory
        adstack/test_caches::test_a_view_that_was_handed_out_is_looked_at_each_time
        adstack/test_max_reducer::test_a_range_longer_than_the_guard
        adstack/test_overflow::test_a_bound_that_was_changed_unseen
        adstack/test_overflow::test_more_iterations_pass_a_predicate_than_were_counted
        runtime/test_threads_and_fields::test_memory_stays_while_a_kernel_runs_on_it
    """,
    _CPU: """
        lang/test_compat::test_queries_of_the_program
        runtime/test_kept
        kernels/test_math_functions::test_exponentials_of_floats_are_right_to_the_last_place_but_one
        backends/test_hints
        kernels/test_boundaries::test_edges_that_may_hold_all_cells_are_worth_vector_instructions
        backends/test_pool
        lang/test_profiler::test_tasks_are_printed_one_by_one
        runtime/test_tier_prints
        runtime/test_tiers
        runtime/test_code_dumps::test_each_task_is_a_file
        runtime/test_code_dumps::test_every_line_of_generated_code_leads_to_its_op
    """,
    _ARCH: """
        runtime/test_program::test_the_program_knows_its_options_and_they_are_frozen
        runtime/test_program::test_the_arch_of_the_machine_equals_cpu
        runtime/test_program::test_an_absent_arch_falls_back_with_a_warning
        runtime/test_program::test_without_fallback_it_is_an_error_and_there_is_no_program
        runtime/test_program::test_of_a_list_the_first_that_works_is_taken
    """,
    _PROCESSES: """
        lang/test_taichi_programs
        lang/test_type_checkers
        caches/test_processes caches/test_cleaning caches/test_never_wrong caches/test_store
        caches/test_folders caches/test_offline_processes
    """,
    _KEYS: """
        caches/test_keys::test_every_option_that_code_may_depend_on_is_in_keys
        caches/test_keys::test_options_of_gpus_are_not_read_by_what_all_backends_share
        caches/test_keys::test_the_rooms_that_make_code_ask_nothing_else
        caches/test_keys::test_an_option_that_changes_code_changes_the_key_and_is_named
        caches/test_keys::test_other_options_do_not_change_it
        caches/test_keys::test_the_options_of_the_program_are_parts_of_every_key
        caches/test_keys::test_the_parts_are_in_order_with_their_names
        caches/test_keys::test_backends_differ_in_their_own_parts
        caches/test_offline::test_an_entry_says_what_it_is
        caches/test_offline::test_the_variant_for_overlapping_arrays_is_an_entry_of_its_own
        caches/test_offline::test_who_watches_compiles_sees_one
        caches/test_offline::test_an_entry_that_cannot_be_used_is_compiled_again_with_one_warning
        caches/test_offline::test_a_fact_that_cannot_be_kept_is_reported
    """,
    _ROWS: """
        adstack/test_predicate_kernels::test_a_predicate_makes_rows_for_what_passes
        adstack/test_predicate_kernels::test_without_a_predicate_every_thread_has_a_row
        adstack/test_predicates::test_rows_are_as_many_as_iterations_that_pass
        adstack/test_heaps::test_a_heap_grows_to_twice_its_size_at_least
        adstack/test_heaps::test_plans_follow_the_heap
        inspect/test_gradients::test_what_a_launch_took_is_what_the_allocator_says
        adstack/test_heaps::test_no_memory_for_a_heap_names_the_stack_and_what_to_do
    """,
    _LATE: """
        adstack/test_heaps::test_a_gradient_is_launched_while_a_kernel_prints
        adstack/test_heaps::test_a_kernel_that_prints_has_heaps_of_its_own
    """,
    _FORK: "adstack/test_heaps::test_a_fork_while_another_thread_launches",
    _BOTH: """
        adstack/test_size_expr_of_programs::test_sizes_of_fields
        autodiff/test_forward::test_fields_of_every_layout_have_duals
    """,
    _PATIENT: """
        runtime/test_stub::test_known_arguments_never_take_the_slow_path
        runtime/test_members::test_known_members_never_take_the_slow_path
        runtime/test_foreign_arguments::test_fresh_tensors_of_torch_with_gradients_need_no_slow_path
        runtime/test_methods::test_known_objects_never_take_the_slow_path
    """,
    _ORDER: """
        kernels/test_programs::test_large_matrices_indexed_at_run_time
    """,
    _TOLD: """
        kernels/test_blocks::test_disagreement_on_the_way_to_a_barrier_is_reported
    """,
}

_ON_CUDA_ALONE: dict[str, str] = {
    _SMALL: "kernels/test_math_functions::test_frexp",
}

_ON_OPENCL_ALONE: dict[str, str] = {
    _SMALL: "kernels/test_math_functions::test_frexp",
    _PUT_OFF: """
        caches/test_about::test_code_of_the_user_that_raises_keeps_no_kernel_from_compiling
        caches/test_offline::test_equal_kernels_of_two_places_share_code
        caches/test_offline::test_what_was_compiled_is_found_again
        caches/test_offline::test_what_memory_has_goes_to_every_folder_once
        caches/test_offline::test_equal_kernels_of_several_names_have_an_entry_each
        caches/test_offline::test_what_is_too_large_for_memory_is_kept_on_disk
        caches/test_offline::test_it_keeps_the_sources_of_all_functions_kernel_first
        caches/test_offline::test_without_the_option_nothing_is_written_or_read
        caches/test_offline::test_a_process_that_only_looks_uses_nothing_and_writes_nothing
        caches/test_offline::test_a_damaged_file_is_a_miss_with_one_warning
        caches/test_codec::test_what_backends_make_comes_back
    """,
    _NO_CHECKS: """
        runtime/test_write_counter::test_a_kernel_that_fails_has_written
        caches/test_keys::test_lines_inside_of_a_kernel_matter_where_messages_show_them
        autodiff/test_validation
        backends/test_checks
        caches/test_fastcache_entries::test_a_failing_assertion_points_to_where_the_function_is_now
        kernels/test_agree::test_failures_under_debug
        kernels/test_blocks::test_an_index_out_of_a_shared_array_is_reported
        kernels/test_fields_in_programs::test_indices_out_of_range
        kernels/test_graphs::test_asserts_in_rounds
        kernels/test_language_debug
        kernels/test_real_functions::test_asserts_inside_of_functions
        kernels/test_vector_indices::test_bounds_are_checked_in_debug
        lang/test_ad_tape::test_validation
        lang/test_ad_tape::test_grad_check
        lang/test_ad_tape::test_under_debug_the_gradient_repeats_nothing_of_the_kernel
        lang/test_profiler::test_a_launch_that_fails_leaves_no_times
    """,
    _LOCAL: "kernels/test_blocks::test_more_memory_than_a_gpu_gives_a_block_by_itself",
    _LATER: "adstack/test_overflow::test_a_fixed_size_that_is_too_small",
    _RECURSION: """
        kernels/test_real_functions::test_functions_of_both_kinds_call_each_other
        kernels/test_real_functions::test_recursion
        kernels/test_real_functions::test_recursion_that_is_too_deep_is_an_error_and_leaves_the_process_usable
        kernels/test_real_functions::test_random_numbers_come_from_the_sequence_of_the_iteration
        kernels/test_real_functions::test_methods
    """,
}

_OF_OPENCL_C = {
    "it is about OpenCL C, and what drivers make of it": """
        backends/opencl/test_opencl_machine::test_a_program_that_does_not_build_points_to_the_users_line
        backends/opencl/test_opencl_machine::test_entries_are_written_at_the_end_and_make_programs_again
    """,
    "it chooses how OpenCL C maps loops": """
        fuzz/test_opencl::test_kernels_agree_on_opencl
        fuzz/test_opencl::test_gradients_are_right_on_opencl
    """,
}


def _by_test(*tables: dict[str, str]) -> dict[str, str]:
    """The reason by the path of a test, a file, or a folder (which ends with a slash)."""
    out: dict[str, str] = {}
    for table in tables:
        for reason, names in table.items():
            for name in names.split():
                file, _, test = name.partition("::")
                path = f"tests/{file}" if file.endswith("/") else f"tests/{file}.py"
                out[f"{path}::{test}" if test else path] = reason
    return out


NOT_ON_CUDA = _by_test(_ON_NO_DEVICE, _ON_CUDA_ALONE)
NOT_ON_OPENCL = _by_test(_ON_NO_DEVICE, _ON_OPENCL_ALONE)
NOT_IN_SPIRV = _by_test(_OF_OPENCL_C)
