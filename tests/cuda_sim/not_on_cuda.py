"""Tests that programs on CUDA cannot run as they run on the CPU, and why.

By path of the file, or path and name of the test: the reason that a skipped twin gives.
"""

from __future__ import annotations

__all__ = ["NOT"]

_IMAGES = "it is about the CPU's code images"
_VIEWS = "it is about views of memory, which nobody gets of a device's"
_CPU = "it is about the CPU's own code or options"
_ARCH = "it is about which arch a program gets"
_PATIENT = "arrays of the host are copied, so that their launches are never prepared"
_FAR = "it has a device of its own"
_NO_DEVICE = "it is about what needs no device"
_TOLD = "only backends that run the threads of a block in lockstep notice it"

_BY_REASON: dict[str, str] = {
    _IMAGES: "backends/test_image backends/test_image_kernels",
    _FAR: """
        inspect/test_on_device lang/test_far_memory
        runtime/test_cuda_device runtime/test_cuda_launch
    """,
    _NO_DEVICE: """
        backends/cuda/test_archs
        backends/cuda/test_ptxas
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
        lang/test_interop::test_dlpack_of_interleaved_fields_has_strides
        lang/test_interop::test_dlpack_of_other_types
        lang/test_interop::test_dlpack_keeps_the_memory
        runtime/test_threads_and_fields::test_memory_stays_while_a_kernel_runs_on_it
    """,
    _CPU: """
        backends/test_pool
        lang/test_profiler::test_tasks_are_printed_one_by_one
        runtime/test_code_dumps::test_each_task_is_a_file
        runtime/test_code_dumps::test_every_line_of_generated_code_leads_to_its_op
    """,
    _ARCH: """
        runtime/test_program::test_the_program_knows_its_options_and_they_are_frozen
        runtime/test_program::test_an_absent_arch_falls_back_with_a_warning
        runtime/test_program::test_without_fallback_it_is_an_error_and_there_is_no_program
        runtime/test_program::test_of_a_list_the_first_that_works_is_taken
    """,
    _PATIENT: """
        runtime/test_prepare::test_known_arguments_never_take_the_patient_way
        runtime/test_members::test_known_members_never_take_the_patient_way
        runtime/test_methods::test_known_objects_never_take_the_patient_way
    """,
    _TOLD: """
        kernels/test_blocks::test_disagreement_on_the_way_to_a_barrier_is_told
    """,
}

NOT: dict[str, str] = {
    f"tests/{file}.py{'::' if test else ''}{test}": reason
    for reason, names in _BY_REASON.items()
    for file, _, test in (name.partition("::") for name in names.split())
}
"""The reason by name."""
