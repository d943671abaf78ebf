"""Where our engine differs from the reference on purpose: why, and what it gives instead.

Each entry is checked: a difference that has gone must be struck from the list.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import corpus

NOTHING = object()


@dataclass(frozen=True)
class Meant:
    """A difference that is meant. Ours gives `value`, or raises `error` with `says` in its text."""

    why: str
    value: Any = field(default=NOTHING)
    error: str = ""
    says: str = ""
    output: str | None = None
    line: str = ""
    """The line of the program that the error shows, where that is the difference."""


CRASH = "the reference ends the process"
WORKS = "the reference refuses what has a clear meaning"
EARLIER = "the place we show is the more exact one"
PROMISE = "the reference promises an error and gives none"
ALIAS = "a local name is another name for what has no copy at run time"
CLASS = "the reference fails inside itself; we raise the error of this kind of mistake"

DIFFERENCES: dict[str, Meant] = {
    # Values that the reference gets wrong.
    "operators.case_floor_division_and_mod_of_narrow_ints": Meant(
        "the reference computes `//` and `%` of i8 wrongly",
        value=[[(-4, 1), (-4, -1), (14, 2), (14, -2)]] * 3,
    ),
    "operators.case_division_of_typed_constants": Meant(
        "the reference rounds towards zero where both sides are constants", value=(-2, -2, -2)
    ),
    "operators.case_subnormal_reals": Meant(
        "the reference makes subnormal numbers zero", value=[2e-323, True]
    ),
    "atomics.case_component_is_read_after_the_whole_was_updated": Meant(
        "the reference reads a component as it was before the vector was updated",
        value=[True, True],
    ),
    "operators.case_raw_division_of_unsigned": Meant(
        "the reference takes the remainder of unsigned numbers as if they had a sign",
        value=[(3, 1, 3, 1), (1844674407370955161, 5, 429496729, 5)],
    ),
    "operators.case_negative_integer_exponent_at_run_time": Meant(
        "the reference uses the absolute exponent", value=[0, 1, -1]
    ),
    "containers_more.case_offset_and_order_together": Meant(
        "the reference mixes up the offsets of axes in another order"
    ),
    "references.case_index_of_the_reference_is_fixed": Meant(
        "the reference looks up the index again at each use of the argument"
    ),
    "functions.case_typed_vectors": Meant(
        "an argument is converted to its annotation, a vector as a number is",
        value=(4.0, 2.9000000953674316),
    ),
    "scalar_types.case_u1_arithmetic": Meant(
        "the sum of two booleans is a boolean; the reference says so and gives True + True == 0",
        value=[(0, 1, 0), (1, 2, 0), (1, 2, 3)],
    ),
    "prints.case_static_print": Meant(
        "side effects of compiling happen once", value=0, output="seen 3\n"
    ),
    "prints.case_assert_in_release": Meant(
        "a failing assert without debug changes nothing; the reference skips what follows", value=1
    ),
    "python_scope.case_unequal_vectors": Meant(
        "in the reference every comparison of vectors is true; here a == b is true if all elements"
        " are equal, a != b if some differ, and the result of <, <=, > or >= asks for .any() or"
        " .all()",
        value=[False, False],
    ),
    # What ends the process there.
    "atomics.case_on_a_component_of_a_struct_member": Meant(CRASH),
    "atomics.case_atomic_mul": Meant(CRASH, value=[10, 30, 32.0]),
    "operators.case_raw_mod_of_reals": Meant(CRASH, value=[1.5, -1.5]),
    "scalar_types.case_cast_of_a_real_to_u1": Meant(CRASH, value=[0, 1, 1]),
    "mistakes.mistake_out_of_range_vector_index": Meant(
        CRASH, error="QuadrantsIndexError", says="out of range", line="return v[2]"
    ),
    "results.mistake_recursion": Meant(
        "the reference recurses until the memory is used up",
        error="QuadrantsCompilationError",
        line="return f(x) + 1",
    ),
    "aggregates_more.case_run_time_index_with_atomics": Meant(CRASH),
    "containers_more.case_large_blocks_of_small_extent": Meant(CRASH),
    # What works here.
    "aggregates_more.case_chains_of_products": Meant(WORKS),
    "classes_more.case_results_of_methods": Meant(WORKS),
    "classes_more.mistake_method_without_self": Meant(
        "a kernel of a class whose first parameter is annotated is called without the object"
    ),
    "classes.case_none_member": Meant(WORKS, value=[0, 4]),
    "fields_in_kernels.case_struct_for_under_if_is_serial": Meant(WORKS),
    "functions.case_ndarray_without_annotation": Meant(WORKS),
    "results.mistake_real_matrix_for_a_matrix_of_ints": Meant(
        "a result is converted to the type of its annotation, a matrix as a number is"
    ),
    "vector_elements.case_template_vector": Meant(WORKS),
    "loops.case_underscore_in_nested_loops": Meant(WORKS, value=600),
    "structs.case_struct_argument_as_dict": Meant(WORKS, value=3.5),
    "vector_elements.case_matrix_argument_as_rows": Meant(WORKS, value=-1.0),
    "tools.case_prefix_sum": Meant(WORKS, value=True),
    "vectors_python.case_unary_plus": Meant(WORKS),
    "vectors_python.case_determinants": Meant(WORKS, value=[18.0, -2.0]),
    "vectors_python.case_identity": Meant(WORKS),
    "vectors_python.case_makers": Meant(WORKS),
    "vectors_python.case_cast": Meant(WORKS),
    "vectors_python.case_casts_of_scalars": Meant(
        "the reference gives an object of its compiler", value=[2, 3.0]
    ),
    "vectors_python.case_math_functions": Meant(WORKS),
    "vectors_python.case_math_functions_of_vectors": Meant(WORKS),
    "vectors_python.case_length_and_normalize": Meant(WORKS),
    "vectors_python.case_copies": Meant(WORKS),
    "vectors_python.case_round_of_scalars": Meant(
        "round is half away from zero in Python as in kernels", value=[3.0, -3.0, 1.0, 1.0, 2.0]
    ),
    "vectors_python.mistake_type_called_with_a_number": Meant(WORKS),
    "control_more.case_static_expressions": Meant(WORKS, value=128),
    "control_more.case_print_escapes": Meant(
        WORKS, value=0, output="100% {} %d \\ 'q' 5 \ttab\n5% {}      5|\n"
    ),
    "containers_more.case_offset_of_matrices_and_structs": Meant(WORKS),
    # Accepted here, refused there: programs for both write the form that the reason names.
    "accepted.case_field_without_a_place_that_no_kernel_uses": Meant(
        "only the use of a field without a place is an error; the reference refuses every launch:"
        " give the field a shape, or place it",
        value=3,
    ),
    "accepted.case_layout_of_vectors": Meant(
        f"{WORKS}; for both, omit layout= or use a tensor of numbers",
        value=([3, 4], 6.0),
    ),
    "accepted.case_starred_argument_before_others": Meant(
        f"{WORKS}; for both, write t[0], t[1] or put the starred argument last", value=321
    ),
    "accepted.case_static_value_into_a_variable": Meant(
        "the reference loses the assignment; for both, write a = 2", value=[1, 2]
    ),
    "accepted.case_vector_called_by_a_type": Meant(
        f"{WORKS}; for both, write qd.cast(v, qd.f16)", value=2.5
    ),
    "accepted.case_struct_of_other_members_as_result": Meant(
        "a result is converted to its annotation, a struct member by member; for both, make the"
        " struct of the annotation's type",
        value=[1, 2.5],
    ),
    "accepted.case_vector_as_a_condition": Meant(
        f"{WORKS}: it is qd.select, component by component; for both, write qd.select",
        value=36,
    ),
    "accepted_more.case_nested_static": Meant(f"{WORKS}; for both, write qd.static once", value=6),
    "accepted_more.case_generator_unpacked_in_ndrange": Meant(
        f"{WORKS}; for both, unpack a tuple", value=36
    ),
    "accepted_more.case_structs_of_equal_members": Meant(
        "structs are equal if their members are; the reference compares objects",
        value=(True, False),
    ),
    "accepted_more.case_vector_compared_with_none": Meant(
        "nothing equals None but None; the reference compares each component", value=(False, True)
    ),
    "accepted_more.case_arrays_that_share_memory": Meant(
        "the reference copies such arrays one by one and loses writes",
        value=(
            np.array([[0, 1, 2], [10, 99, 12]], np.float32),
            np.array([[0, 1, 2], [10, 99, 12], [0, 0, 0]], np.float32),
        ),
    ),
    "accepted_more.case_clamped_indices_of_an_element": Meant(
        "the reference clamps the number of the component in the element; here each index is"
        " clamped, as those of the array are",
        value=(20.0, 21.0, 21.0, 22.0),
    ),
    # Mistakes that the reference does not see.
    "accepted_more.case_fill_with_a_fraction": Meant(
        "a number that an integer element cannot hold is an error; write fill(int(x))",
        error="TypeError",
        says="real number 2.7",
    ),
    "accepted_more.case_fill_with_a_number_that_does_not_fit": Meant(
        "the reference keeps the low bits; write fill(x & 255)",
        error="QuadrantsTypeError",
        says="its range is 0 to 255",
    ),
    "accepted_more.case_element_that_does_not_fit": Meant(
        "the reference keeps the low bits; write x & 255",
        error="QuadrantsTypeError",
        says="its range is 0 to 255",
    ),
    "accepted_more.case_element_set_to_a_fraction_of_numpy": Meant(
        "the reference refuses 2.5 of Python and of f64, and rounds that of f32; write int(x)",
        error="TypeError",
        says="real number",
    ),
    "accepted_more.case_and_or_of_bits_without_short_circuit": Meant(
        "and, or return an operand with or without short circuit; the reference returns bits",
        value=(25, 36, 4, 11),
    ),
    "accepted_more.case_store_into_a_read_only_array": Meant(
        "the reference writes into it; pass x.copy()", error="ValueError", says="read-only"
    ),
    "accepted_more.case_vectors_of_two_shapes_in_python": Meant(
        "the reference adds a vector to each row in Python, and refuses that in kernels",
        error="QuadrantsTypeError",
        says="unsupported operand type(s) for '+'",
    ),
    "scalar_types.case_signed_argument_wraps": Meant(
        "the reference keeps the low bits of an integer that does not fit, unless 64 bits are too"
        " few for it; here it is an error, as for unsigned types",
        error="QuadrantsRuntimeTypeError",
        says="out of the range of i8, -128 to 127",
    ),
    "containers_more.mistake_from_numpy_of_vectors": Meant(
        "the reference takes an array of another shape", error="ValueError", says="(2, 2)"
    ),
    "structs.case_unknown_member_in_a_call": Meant(
        "the reference ignores a member that does not exist", error="QuadrantsTypeError"
    ),
    "structs.case_too_many_members": Meant(
        "the reference ignores a value too many", error="QuadrantsTypeError"
    ),
    # Promises of its documents that the reference does not keep.
    "promises.mistake_index_out_of_range_when_checked": Meant(
        PROMISE, error="QuadrantsAssertionError", says="with indices [3]"
    ),
    "promises.mistake_field_index_out_of_range_when_checked": Meant(
        PROMISE, error="QuadrantsAssertionError", says="with indices (1, 3)"
    ),
    "promises.mistake_negative_index_when_checked": Meant(
        PROMISE, error="QuadrantsAssertionError", says="with indices [-1]"
    ),
    "promises.mistake_host_index_of_an_ndarray": Meant(
        PROMISE, error="QuadrantsIndexError", says="out of range"
    ),
    "promises.mistake_host_index_of_a_field": Meant(
        PROMISE, error="IndexError", says="out of range"
    ),
    "promises.mistake_negative_host_index_of_a_field": Meant(
        PROMISE, error="IndexError", says="out of range"
    ),
    "promises.mistake_division_by_a_constant_zero": Meant(
        PROMISE, error="QuadrantsCompilationError", says="division by zero", line="return a // 0"
    ),
    "promises.mistake_modulo_of_a_constant_zero": Meant(
        PROMISE, error="QuadrantsCompilationError", says="division by zero", line="return a % 0"
    ),
    "promises.mistake_division_by_zero_under_debug": Meant(
        CRASH, error="QuadrantsAssertionError", says="division by zero"
    ),
    "promises.case_sparse_structures_are_named": Meant(
        "sparse structures are not supported, and the error names them", value=[True, True]
    ),
    "warned.case_python_function_of_constants": Meant(
        "nothing of run time is involved", value=[[], 42]
    ),
    "warned.case_large_matrix": Meant(
        "the reference warns of large literals only", value=["UserWarning"]
    ),
    # Gradients.
    "gradient_rules.case_round": Meant(WORKS, value=[2.0, 2.0, 2.0]),
    "gradient_loops.case_bound_from_a_scalar_argument": Meant(
        WORKS,
        value=[
            4.491849388892831,
            0.0001831083602355044,
            6.457684321461856e-05,
            2.3031520264881466e-05,
        ],
    ),
    "gradient_loops.case_loop_at_the_root_only_after_statements": Meant(
        WORKS, value=[0.83, 0.6, 1.0, 1.4]
    ),
    "gradient_loops.case_grad_of_a_kernel_that_returns": Meant(WORKS, value=[0.83, 0.6, 1.0, 1.4]),
    "gradient_loops.mistake_while_loop": Meant(
        EARLIER, error="QuadrantsCompilationError", line="while n < 3:"
    ),
    "gradient_loops.mistake_read_of_another_iteration": Meant(
        EARLIER, error="QuadrantsCompilationError", line="x[i] = x[i - 1] * 2.0"
    ),
    "gradients.mistake_kernel_reads_a_gradient_that_is_not_there": Meant(
        CLASS, error="QuadrantsRuntimeError", says="has no gradients"
    ),
    # Errors of another class.
    "containers_more.mistake_vector_of_other_length_into_a_field": Meant(
        CLASS, error="QuadrantsTypeError"
    ),
    "containers_more.mistake_fill_with_text": Meant("not an error of compiling", error="TypeError"),
    "aggregates_more.mistake_number_assigned_a_vector": Meant(CLASS, error="QuadrantsTypeError"),
    "arrays.mistake_dtype_as_text": Meant(
        "the same error as for a field", error="ValueError", says="Invalid data type i32"
    ),
    "arrays.mistake_copy_from_a_field": Meant(CLASS, error="TypeError"),
    "arrays.mistake_numpy_of_text": Meant(CLASS, error="ValueError"),
    "dataclasses_args.mistake_wrong_dataclass": Meant(
        CLASS, error="QuadrantsRuntimeError", says="must be a Config"
    ),
    "dataclasses_args.mistake_number_for_a_dataclass": Meant(
        CLASS, error="QuadrantsRuntimeError", says="must be a Config"
    ),
    "mistakes.mistake_kernel_from_exec": Meant(
        "the text of such a kernel is found or the error says how to make it so",
        error="QuadrantsSyntaxError",
    ),
    "operators_assigned.mistake_negative_constant_exponent": Meant(
        "a compile error, with the place",
        error="QuadrantsCompilationError",
        says="Negative exponent in pow(int, int) is not allowed",
    ),
    "tensors.mistake_number_for_a_tensor": Meant(
        CLASS, error="QuadrantsRuntimeTypeError", says="Invalid type for argument x, got 3"
    ),
    "vector_elements.mistake_wrong_number_of_components_for_an_argument": Meant(
        CLASS, error="QuadrantsRuntimeTypeError"
    ),
    "vectors_python.mistake_shapes_differ": Meant(CLASS, error="QuadrantsTypeError"),
    "vectors_python.mistake_ragged": Meant(CLASS, error="QuadrantsTypeError"),
    "vectors_python.mistake_wrong_number_for_a_type": Meant(CLASS, error="QuadrantsTypeError"),
    "vectors_python.mistake_swizzle_missing": Meant(
        "a missing attribute is an AttributeError in Python", error="AttributeError"
    ),
    # Errors at another line.
    "dataclasses_args.mistake_member_without_a_usable_type": Meant(
        "an error of the declaration, not of a use", error="QuadrantsCompilationError"
    ),
    "loop_mistakes.mistake_for_else": Meant(EARLIER, error="QuadrantsSyntaxError", line="pass"),
    "loop_mistakes.mistake_while_else": Meant(EARLIER, error="QuadrantsSyntaxError", line="pass"),
    "loop_mistakes.mistake_break_in_a_static_loop_under_if": Meant(
        EARLIER, error="QuadrantsSyntaxError", line="break"
    ),
    "loop_mistakes.mistake_continue_in_a_static_loop_under_if": Meant(
        EARLIER, error="QuadrantsSyntaxError", line="continue"
    ),
    "idiom_arrays.mistake_array_of_another_type_passed_on": Meant(
        EARLIER, error="QuadrantsTypeError", line="return length(x, 1)"
    ),
    "mistakes.mistake_async_function": Meant(
        "a function begins with its decorators", error="QuadrantsSyntaxError", line="@qd.kernel"
    ),
    # Gradients.
    "tapes.case_without_loss": Meant(
        "the reference asks for torch where a tape has no loss",
        value=[np.zeros(3), np.array([6.0, 12.0, 18.0])],
    ),
    "tapes.case_other_kernels_take_no_part": Meant(
        "the reference runs a kernel without gradients again, instead of its gradient",
        value=[np.array([0, 2, 4, 6], np.int32), np.array([2.0, 4.0, 6.0])],
    ),
    "tapes.case_result_of_a_kernel": Meant(WORKS, value=[7.0, None, np.full(3, 6.0)]),
    "tapes.case_grad_check": Meant(
        "gradients that are right are not spoken of", value=[np.array([2.0, 4.0, 6.0])], output=""
    ),
    "tapes.mistake_no_gradients": Meant(
        PROMISE, error="QuadrantsRuntimeError", says="No gradients are allocated"
    ),
    "tapes.mistake_loop_in_a_loop": Meant(
        "a loop in a loop whose trip count is known has a gradient; where it is not, the error says"
        " which option to set",
        value=None,
    ),
    "gradient_loops.mistake_inner_loop_without_the_option": Meant(
        WORKS,
        value=[0.003338556150694696, 2.2958251199999992e-07, 0.00048828125, 0.0759609841590879],
    ),
    "idiom_gradients.case_inner_range_of_a_constant": Meant(
        WORKS, value=[70.0, np.array([10, 20, 30], np.float32)]
    ),
    "idiom_gradients.case_inner_range_with_a_local": Meant(
        WORKS, value=[np.array([6, 12, 18], np.float32), np.array([6, 6, 6], np.float32)]
    ),
    "idiom_gradients.case_inner_range_with_a_product": Meant(
        WORKS, value=[np.array([1, 8, 27], np.float32), np.array([3, 12, 27], np.float32)]
    ),
    "idiom_gradients.case_inner_ndrange_with_a_product": Meant(
        "the reference differentiates a variable that a loop overwrites wrongly",
        value=[np.array([1, 16, 81], np.float32), np.array([4, 32, 108], np.float32)],
    ),
    "idiom_gradients.case_grad_without_gradients": Meant(
        "the reference runs the kernel again; write needs_grad=True, or omit the call of .grad()",
        error="NoGradientsError",
        says="needs_grad=True",
    ),
    "idiom_gradients.case_grad_of_integers": Meant(
        "the reference runs the kernel again; omit the call of .grad()",
        error="NoGradientsError",
        says="omit the call of .grad()",
    ),
    # What Python means, and the reference does not know or does in another way.
    "mistakes.mistake_module_as_a_value": Meant(ALIAS, value=None),
    "scoping.mistake_field_assigned_to_a_local": Meant(ALIAS, value=None),
    "scoping.mistake_set": Meant(WORKS, value=None),
    "idioms.case_local_name_for_fields_modules_functions": Meant(ALIAS),
    "idioms.case_loop_chosen_by_the_chosen_branch_alone": Meant(
        WORKS, value=np.array([1, 1, 1, 1], np.int32)
    ),
    "idioms.case_reduce_with_max": Meant(
        "the reference asks a value of run time for its truth, which is always true", value=7
    ),
    "idiom_values.case_name_for_another_part": Meant(WORKS, value=[2, 3, 4]),
    "idiom_values.case_name_for_a_dataclass": Meant(ALIAS, value=np.array([1, 2, 0], np.int32)),
    "idiom_values.case_text_as_an_argument": Meant(WORKS, value=0, output="x 3\n"),
    "idiom_values.case_vector_called_like_a_function": Meant(WORKS, value=62.0),
    "idiom_values.case_matrix_called_like_a_function": Meant(WORKS, value=32),
    "idioms.case_assigned_range_variable": Meant(
        "the reference fails inside its compiler",
        error="QuadrantsSyntaxError",
        says="copy it into a new variable first",
        line="i = i * 2",
    ),
    "idiom_formats.case_print_format_call": Meant(
        WORKS, value=0, output="1.500000\n3 and 1.500000\n1.50|3\n1.500000 3\n3 1.500000\n{} 3\n"
    ),
    "idiom_formats.case_print_percent_of_run_time": Meant(
        WORKS, value=0, output="4\n    4|4    |00004|1.500|1.500000e+00|4|%\n4 text\n"
    ),
    "idiom_formats.case_texts_in_variables": Meant(
        WORKS, value=0, output="4 1.500000\nsum 5! 4 1.5\n4, 1.500000, end\n"
    ),
    "idiom_formats.case_print_padded": Meant(
        CRASH, value=0, output="    4|4    |00004|+4|   004|\n"
    ),
    "idiom_containers.case_appended_variable_is_assigned": Meant(
        "a list holds the value that was appended; in the reference it follows the variable",
        value=4,
    ),
    "idiom_containers.case_append_in_a_run_time_loop": Meant(
        "the reference appends once, however often the loop runs; unroll it with qd.static",
        error="QuadrantsSyntaxError",
        says="make the loop or condition a qd.static one",
        line="xs.append(i)",
    ),
    "idiom_containers.case_append_to_a_copy": Meant(
        "the reference appends to a copy that is lost; annotate the argument with qd.template()",
        error="QuadrantsSyntaxError",
        says="annotate it with qd.template()",
        line="xs.append(x)",
    ),
    "idiom_containers.case_new_entry_of_a_dict": Meant(WORKS, value=5),
    "idiom_containers.case_dict_read_with_a_key_of_run_time": Meant(WORKS, value=[30, 40, 50]),
    "idiom_containers.case_set_of_constants": Meant(WORKS, value=8),
}

_BOTH = "the reference performs the side effects of both operands"
_PRINTS = "the reference prints to the descriptor, not through Python"
STATED = {
    "types.not_finite": "NaN is unequal to everything; the reference says that it is not",
    "types.saturation": "casts saturate; the reference leaves it to the machine",
    "operators.boolean_operators": _BOTH,
    "operators.conditional": _BOTH,
    "operators.powers": "the reference uses the absolute exponent",
    "loops.thread_numbers": "the reference counts the threads of its pool",
    "functions.prints": _PRINTS,
    "functions.parallel_prints": _PRINTS,
    "functions.formatted_prints": _PRINTS,
    "arrays.same_array": "the reference assumes that two parameters are two arrays",
    "graphs.carried": "the reference begins each round with the values of before the loop",
    "graphs.refused": "the reference takes arrays of the host",
    "gradients.overflow": "the reference sizes this stack whatever is asked for",
    "tapes.without_gradients": PROMISE,
    "checks.field_bounds": PROMISE,
    "errors.lacking": "sparse structures are not supported",
}
"""Features of the conformance suite for which the reference gives something else, and why."""


def fulfils(meant: Meant, got: dict) -> str | None:
    """What is wrong with what ours gives, where it should differ."""
    if "died" in got:
        return "the process died"
    if meant.error:
        if "error" not in got:
            return f"no {meant.error}: {corpus.brief(got)}"
        if meant.error not in got["error"]["classes"] or meant.says not in got["error"]["text"]:
            return f"no {meant.error} that says {meant.says!r}: {corpus.brief(got)}"
        if meant.line and meant.line != got["error"]["line"]:
            return f"line {meant.line!r} != {got['error']['line']!r}"
        return None
    if "error" in got:
        return f"raises {corpus.brief(got)}"
    if meant.value is not NOTHING and not corpus.same(corpus.plain(meant.value), got["value"]):
        return f"value {meant.value!r} != {got['value']!r}"
    if meant.output is not None and meant.output != got["output"]:
        return f"output {meant.output!r} != {got['output']!r}"
    return None
