"""Results that differ on purpose: wrong values, ends of the process, promises."""

from .meant import CRASH, PROMISE, Meant

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
}
