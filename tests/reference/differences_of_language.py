"""What works here on purpose, and the reference refuses or does in another way."""

import numpy as np

from .meant import ALIAS, CRASH, WORKS, Meant

DIFFERENCES: dict[str, Meant] = {
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
