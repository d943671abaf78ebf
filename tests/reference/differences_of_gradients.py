"""Gradients that differ on purpose."""

import numpy as np

from .meant import CLASS, EARLIER, PROMISE, WORKS, Meant

DIFFERENCES: dict[str, Meant] = {
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
}
