"""Mistakes in programs, of which ours says something else on purpose."""

from .meant import CLASS, EARLIER, Meant

DIFFERENCES: dict[str, Meant] = {
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
}
