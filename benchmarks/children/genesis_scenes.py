"""Scenes of Genesis, in the words of its own documentation. Each is built with nothing changed.

    python genesis_scenes.py reference|ours SCENE STEPS OUT [PACKAGE]

Builds a scene, takes its steps, writes the state to OUT (``.npz``) and prints the times as a line
of JSON. ``ours`` makes ``import quadrants`` mean the engine of the folder PACKAGE, which has
``qd_studio`` in it.
"""

import builtins
import json
import subprocess
import sys
import time

SCENES = {}


def scene(function):
    """Register a scene: a function that returns what `run` steps."""
    SCENES[function.__name__] = function
    return function


class Program:
    """A scene that is built, or the function that runs a differentiable one.

    state: returns arrays by name. once: runs forward and backward, in place of steps.
    """

    def __init__(self, scene, state=None, once=None, before=None):
        self.scene, self.once, self.before = scene, once, before
        self.state = state or (lambda: state_of(scene))


def state_of(scene):
    """The tensors of the state of each solver, by name."""
    found = {}
    for solver in scene.get_state().solvers_state:
        for name, value in vars(solver).items() if solver is not None else ():
            if hasattr(value, "detach"):
                found[f"{type(solver).__name__}.{name.lstrip('_')}"] = value.detach().numpy()
    return found


def start(gs, **options):
    gs.init(backend=gs.cpu, seed=1, logging_level="error", **options)


@scene
def bodies(gs):
    """Boxes, spheres and a cylinder that fall on a plane."""
    start(gs)
    s = gs.Scene(show_viewer=False)
    s.add_entity(gs.morphs.Plane())
    s.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0, 0, 0.3)))
    s.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0.4, 0, 0.25)))
    s.add_entity(gs.morphs.Cylinder(radius=0.1, height=0.2, pos=(0, 0.5, 0.2)))
    s.build()
    return Program(s)


@scene
def box(gs):
    """One box over a plane: the smallest scene, whose step is mostly launches."""
    start(gs)
    s = gs.Scene(show_viewer=False)
    s.add_entity(gs.morphs.Plane())
    s.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0, 0, 1)))
    s.build()
    return Program(s)


@scene
def performance(gs):
    """`box` in performance mode: fields in place of ndarrays."""
    start(gs, performance_mode=True)
    s = gs.Scene(show_viewer=False)
    s.add_entity(gs.morphs.Plane())
    s.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0, 0, 1)))
    s.build()
    return Program(s)


@scene
def franka(gs):
    """A Franka Panda (MJCF) under position control."""
    start(gs)
    s = gs.Scene(show_viewer=False)
    s.add_entity(gs.morphs.Plane())
    robot = s.add_entity(gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"))
    s.build()
    target = [0, -0.5, 0, -2.0, 0, 1.5, 0.7, 0.04, 0.04]
    return Program(s, before=lambda: robot.control_dofs_position(target))


@scene
def go2(gs):
    """A Go2 quadruped (URDF) that drops on a plane."""
    start(gs)
    s = gs.Scene(show_viewer=False)
    s.add_entity(gs.morphs.Plane())
    s.add_entity(gs.morphs.URDF(file="urdf/go2/urdf/go2.urdf", pos=(0, 0, 0.42)))
    s.build()
    return Program(s)


@scene
def environments(gs):
    """64 environments of a Franka Panda, each with a target of its own."""
    import torch

    start(gs)
    s = gs.Scene(show_viewer=False)
    s.add_entity(gs.morphs.Plane())
    robot = s.add_entity(gs.morphs.MJCF(file="xml/franka_emika_panda/panda.xml"))
    s.build(n_envs=64)
    target = torch.linspace(-0.5, 0.5, 64)[:, None] * torch.ones(9)
    return Program(s, before=lambda: robot.control_dofs_position(target))


@scene
def mpm(gs):
    """An elastic cube and a liquid, material points."""
    start(gs)
    s = gs.Scene(
        sim_options=gs.options.SimOptions(dt=4e-3, substeps=10),
        mpm_options=gs.options.MPMOptions(
            lower_bound=(-0.5, -0.5, 0), upper_bound=(0.5, 0.5, 1), grid_density=32
        ),
        show_viewer=False,
    )
    s.add_entity(gs.morphs.Plane())
    s.add_entity(
        material=gs.materials.MPM.Elastic(),
        morph=gs.morphs.Box(pos=(0, 0, 0.4), size=(0.2, 0.2, 0.2)),
    )
    s.add_entity(
        material=gs.materials.MPM.Liquid(),
        morph=gs.morphs.Box(pos=(0.2, 0.2, 0.2), size=(0.15, 0.15, 0.15)),
    )
    s.build()
    return Program(s)


@scene
def sph(gs):
    """A block of water."""
    start(gs)
    s = gs.Scene(
        sim_options=gs.options.SimOptions(dt=4e-3, substeps=10),
        sph_options=gs.options.SPHOptions(
            lower_bound=(-0.5, -0.5, 0), upper_bound=(0.5, 0.5, 1), particle_size=0.02
        ),
        show_viewer=False,
    )
    s.add_entity(gs.morphs.Plane())
    s.add_entity(
        material=gs.materials.SPH.Liquid(sampler="regular"),
        morph=gs.morphs.Box(pos=(0, 0, 0.3), size=(0.3, 0.3, 0.3)),
    )
    s.build()
    return Program(s)


@scene
def cloth(gs):
    """A cloth that falls on a plane, position-based dynamics."""
    start(gs)
    s = gs.Scene(sim_options=gs.options.SimOptions(dt=4e-3, substeps=10), show_viewer=False)
    s.add_entity(gs.morphs.Plane())
    s.add_entity(
        material=gs.materials.PBD.Cloth(),
        morph=gs.morphs.Mesh(file="meshes/cloth.obj", scale=1.0, pos=(0, 0, 0.3)),
    )
    s.build()
    return Program(s)


@scene
def fem(gs):
    """An elastic ball of finite elements."""
    start(gs)
    s = gs.Scene(
        sim_options=gs.options.SimOptions(dt=1e-3, substeps=10),
        fem_options=gs.options.FEMOptions(use_implicit_solver=True),
        show_viewer=False,
    )
    s.add_entity(gs.morphs.Plane())
    s.add_entity(
        material=gs.materials.FEM.Elastic(E=1e5),
        morph=gs.morphs.Sphere(radius=0.1, pos=(0, 0, 0.15)),
    )
    s.build()
    return Program(s)


@scene
def coupling(gs):
    """A rigid box, water and an elastic cube that meet."""
    start(gs)
    s = gs.Scene(
        sim_options=gs.options.SimOptions(dt=2e-3, substeps=10),
        mpm_options=gs.options.MPMOptions(
            lower_bound=(-0.5, -0.5, 0), upper_bound=(0.5, 0.5, 1), grid_density=32
        ),
        sph_options=gs.options.SPHOptions(
            lower_bound=(-0.5, -0.5, 0), upper_bound=(0.5, 0.5, 1), particle_size=0.03
        ),
        show_viewer=False,
    )
    s.add_entity(gs.morphs.Plane())
    s.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.1), pos=(0, 0, 0.1)))
    s.add_entity(
        material=gs.materials.MPM.Elastic(),
        morph=gs.morphs.Box(pos=(0, 0, 0.26), size=(0.15, 0.15, 0.15)),
    )
    s.add_entity(
        material=gs.materials.SPH.Liquid(sampler="regular"),
        morph=gs.morphs.Box(pos=(0.25, 0, 0.2), size=(0.15, 0.15, 0.15)),
    )
    s.build()
    return Program(s)


@scene
def diff_mpm(gs):
    import torch

    """The gradient of where an elastic cube lands in respect of how it is thrown."""
    start(gs, precision="32")
    s = gs.Scene(
        sim_options=gs.options.SimOptions(dt=2e-3, substeps=5, requires_grad=True),
        mpm_options=gs.options.MPMOptions(
            lower_bound=(-0.5, -0.5, 0), upper_bound=(0.5, 0.5, 1), grid_density=32
        ),
        show_viewer=False,
    )
    cube = s.add_entity(
        material=gs.materials.MPM.Elastic(),
        morph=gs.morphs.Box(pos=(0, 0, 0.4), size=(0.1, 0.1, 0.1)),
    )
    s.build()
    goal = torch.tensor([0.1, 0.0, 0.3])

    def loss(velocity):
        cube.set_velocity(velocity)
        for _ in range(5):
            s.step()
        return ((cube.get_state().pos.mean(dim=-2) - goal) ** 2).sum()

    return differentiable(s, loss)


@scene
def diff_rigid(gs):
    """The gradient of where a box is after its steps in respect of its first velocity."""
    import torch

    start(gs)
    s = gs.Scene(sim_options=gs.options.SimOptions(dt=1e-2, requires_grad=True), show_viewer=False)
    s.add_entity(gs.morphs.Plane())
    body = s.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0, 0, 0.5)))
    s.build()
    goal = torch.tensor([0.1, 0.2, 0.4])

    def loss(velocity):
        body.set_dofs_velocity(velocity, dofs_idx_local=[0, 1, 2])
        for _ in range(5):
            s.step()
        return ((body.get_state().pos - goal) ** 2).sum()

    return differentiable(s, loss)


def differentiable(s, loss):
    """The program that takes `loss` of a velocity, and its gradient, once a step."""
    import torch

    found = {}

    def once():
        s.reset()
        velocity = torch.tensor([0.5, 0.2, 0.1], requires_grad=True)
        value = loss(velocity)
        s.backward(value) if hasattr(s, "backward") else value.backward()
        found.update(loss=value.detach().numpy(), gradient=velocity.grad.detach().numpy())

    return Program(s, once=once, state=lambda: found)


class Outside:
    """Seconds of the clock that Genesis spends in subprocesses and in ``import vtk``.

    Its queries of the processor and its sampling of particles are subprocesses; ``vtk``, which
    reads those particles, loads 150 libraries. They are the same with every engine.
    """

    def __init__(self):
        self.seconds = 0.0
        self._depth = 0
        subprocess.Popen.communicate = self._timed(subprocess.Popen.communicate)
        whole, timed = builtins.__import__, self._timed(builtins.__import__)

        def imported(name, *args, **kwargs):
            call = timed if name.partition(".")[0] == "vtk" else whole
            return call(name, *args, **kwargs)

        builtins.__import__ = imported

    def _timed(self, call):
        def timed(*args, **kwargs):
            began = time.perf_counter()
            self._depth += 1
            try:
                return call(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - began

        return timed


def run(engine, name, steps, out, package=""):
    if engine == "ours":
        sys.path.insert(0, package)
        from qd_studio.engine import alias

        alias.install("quadrants")
    import numpy as np

    times = [time.perf_counter()]
    import genesis as gs

    outside = Outside()
    times.append(time.perf_counter())
    cpu = time.thread_time()
    program = SCENES[name](gs)
    cpu = time.thread_time() - cpu
    times.append(time.perf_counter())
    waited = outside.seconds
    lasts = np.zeros(steps)
    for k in range(steps):
        if k == steps // 2:
            time.sleep(3)  # late steps are those after what compiles in the background
        began = time.perf_counter()
        if program.before:
            program.before()
        (program.once or program.scene.step)()
        lasts[k] = time.perf_counter() - began
    state = {key: np.array(value) for key, value in program.state().items()}
    np.savez(out, **state)
    print(json.dumps({
        "import": times[1] - times[0], "build": times[2] - times[1], "cpu": cpu,
        "outside": waited, "first": lasts[0],
        "rest": float(lasts[1:].sum()), "step": float(np.median(lasts[len(lasts) // 2 :])),
        "slow": [[k, round(float(t), 4)] for k, t in enumerate(lasts) if t > 20 * np.median(lasts)],
    }))  # fmt: skip


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
