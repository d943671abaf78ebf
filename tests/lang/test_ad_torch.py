"""Gradients of tensors of torch; torch need not be installed otherwise."""

import pytest
from qd_studio import engine as qd

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def _program(request):
    qd.init(arch=getattr(qd, request.param), ad_stack_experimental_enabled=True, log_level="error")
    yield
    qd.reset()


@qd.kernel
def powers(x: qd.types.NDArray, y: qd.types.NDArray, scale: qd.f32):
    for i in x:
        v = 0.0
        for j in range(3):
            v += x[i] ** j
        y[0] += scale * v


@pytest.mark.filterwarnings("ignore:Debug mode is disabled")
def test_a_tape_with_a_tensor_as_its_loss():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.full((1,), 5.0, requires_grad=True)
    for times in (1, 2, 3, 4):
        with qd.ad.Tape(y):
            powers(x, y, 2.0)
        assert (y.item(), y.grad.item()) == (46.0, 1.0)
        assert x.grad.tolist() == [6.0 * times, 10.0 * times, 14.0 * times]
    x.grad.zero_()
    with qd.ad.Tape(y, validation=True):
        powers(x, y, 2.0)
    assert x.grad.tolist() == [6.0, 10.0, 14.0]
    powers.grad(torch.zeros(3, requires_grad=True), torch.zeros(1), 1.0)  # y takes no part


def test_a_function_of_torch():
    class Powers(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.zeros(1)
            ctx.save_for_backward(x)
            powers(x.detach(), y, 1.0)
            return y

        @staticmethod
        def backward(ctx, g):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            y = torch.zeros(1, requires_grad=True)
            y.grad = g.clone()
            powers.grad(x, y, 1.0)
            return x.grad

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (3 * Powers.apply(x).sum()).backward()
    assert x.grad.tolist() == [9.0, 15.0, 21.0]


def test_mistakes():
    for text, loss in {
        "must be a tensor only contains one element": torch.zeros(2, requires_grad=True),
        "please set requires_grad=True for all tensors": torch.zeros(1),
    }.items():
        with pytest.raises(qd.QuadrantsRuntimeError, match=text):
            qd.ad.Tape(loss).__enter__()
    with pytest.raises(qd.QuadrantsRuntimeError, match="arguments x, y") as caught:
        powers.grad(torch.zeros(3), torch.zeros(1), 1.0)
    assert "requires_grad=True" in caught.value.hint
