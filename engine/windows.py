"""Stand-ins for windows: programs draw into nothing, and their windows close after some frames.

In the studio's worker, and under ``python -m qd_studio.engine.alias --frames N``, `GUI`, `ui` and
`tools` of ``import quadrants`` and ``import taichi`` are these, so that a script with a window runs
its loop. Nothing is drawn, no key is pressed, the mouse is in the middle, and widgets keep the
values that programs give them. Arguments are not checked, and any further method of a window,
canvas, scene or camera exists. The studio's `tools` write no files: a picture can be read again by
the program that wrote it.

Each window is shown `frames` times. Then ``running`` is False; where a program shows the window
all the same, or waits for an event that cannot come, `WindowsClosed` ends it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

__all__ = ["WindowsClosed", "begin", "hex_to_rgb", "install", "notebook_names", "rgb_to_hex"]

_ENGINE: Final = __name__.rpartition(".")[0]
_ALIASES: Final = ("quadrants", "taichi")
# So often an event is asked for, without a frame in between, by a program that waits for it.
_POLLS: Final = 10_000
_KEYS: Final = {
    "SHIFT": "Shift", "ALT": "Alt", "CTRL": "Control", "ESCAPE": "Escape", "RETURN": "Return",
    "TAB": "Tab", "BACKSPACE": "BackSpace", "SPACE": " ", "UP": "Up", "DOWN": "Down",
    "LEFT": "Left", "RIGHT": "Right", "LMB": "LMB", "MMB": "MMB", "RMB": "RMB",
    "PRESS": "Press", "RELEASE": "Release",
}  # fmt: skip

_frames = 8
_shown: Callable[[int], object] | None = None
_language = _ENGINE


class WindowsClosed(SystemExit):
    """The frames are used up. Not an Exception: programs shall not catch it by accident.

    Where nothing catches it, it ends the program with status 0.
    """


def begin(frames: int, shown: Callable[[int], object] | None = None) -> None:
    """A file is about to be executed: from now on windows close after ``frames`` frames.

    shown: called after each frame of a window with the number of its frames so far.
    """
    global _frames, _shown
    _frames = frames
    _shown = shown
    _said.clear()
    _written.clear()


class _Accepting:
    """Has every method; each accepts any arguments and returns None."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _nothing


class _Nothing(_Accepting):
    """A function that accepts any arguments and returns None; it has every method, too."""

    def __call__(self, *_: Any, **__: Any) -> None:
        pass


_nothing: Final = _Nothing()


class _Refusing:
    """Answers no to every question."""

    def __getattr__(self, name: str) -> Callable[..., bool]:
        return lambda *_, **__: False


class _Window(_Accepting):
    """The base of both kinds of windows."""

    def __init__(self, name: str = "window", res: Any = 512, *_: Any, **options: Any) -> None:
        size = options.get("res", res)
        self.name = name
        self.res = (size, size) if isinstance(size, int) else tuple(int(n) for n in size)
        self.frame = 0
        self.event: Any = None
        self.fps_limit = 60
        self._asked = 0
        self._open = True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def running(self) -> bool:
        """False once all frames were shown, or after as many tests of this without any shown."""
        self._asked += 1
        if self._asked > _frames + 1:
            self._open = False
        return self._open and self.frame < _frames

    @running.setter
    def running(self, value: bool) -> None:
        self._open = bool(value)

    def show(self, *_: Any, **__: Any) -> None:
        """One more frame."""
        if self.frame >= _frames:
            _say_closed(self.name)
            raise WindowsClosed
        self.frame += 1
        self._asked = 0
        if _shown is not None:
            _shown(self.frame)
        if self.frame == _frames:
            _say_closed(self.name)

    def _poll(self) -> None:
        self._asked += 1
        if self._asked > _POLLS:
            raise WindowsClosed

    def get_event(self, *_: Any, **__: Any) -> bool:
        """No: there are no events."""
        self._poll()
        return False

    def get_events(self, *_: Any, **__: Any) -> list[Any]:
        """None at all."""
        self._poll()
        return []

    def has_key_event(self) -> bool:
        """No."""
        return self.get_event()

    def get_key_event(self) -> Any:
        """A program that waits for a key waits for ever."""
        raise WindowsClosed

    def is_pressed(self, *_: Any) -> bool:
        """No."""
        return self.get_event()

    def get_cursor_pos(self) -> tuple[float, float]:
        """The middle of the window."""
        return 0.5, 0.5

    def get_window_shape(self) -> tuple[int, ...]:
        """Width and height."""
        return self.res


_said: set[str] = set()


def _say_closed(name: str) -> None:
    if name not in _said:
        _said.add(name)
        count = "1 frame" if _frames == 1 else f"{_frames} frames"
        text = f"qd-studio: the window {name!r} was closed after {count}; --frames changes that"
        print(text, file=sys.stderr)


class GUI(_Window):
    """Replaces the window with a drawing surface of its own."""

    EXIT = "WMClose"
    WHEEL = "Wheel"
    MOVE = "Motion"
    MOTION = "Motion"
    CAPSLOCK = "Caps_Lock"

    class Event:
        """An event; none of them ever comes."""

        type: Any = None
        modifier: Any = None
        pos: Any = None
        key: Any = None
        delta: Any = None

    def slider(self, text: str, minimum: float, maximum: float, step: float = 1) -> Any:
        """A widget that keeps its smallest value."""
        return SimpleNamespace(value=float(minimum))

    def label(self, text: str) -> Any:
        """A widget that keeps what it is given."""
        return SimpleNamespace(value=0)

    def button(self, text: str, event_name: str | None = None) -> str:
        """The name of an event that never comes."""
        return event_name or text

    def get_image(self) -> Any:
        """A black picture."""
        return np.zeros((*self.res, 4), np.float32)


class Window(_Window):
    """Replaces the window with a canvas."""

    def __init__(self, name: str = "window", res: Any = 512, *rest: Any, **options: Any) -> None:
        super().__init__(name, res, *rest, **options)
        self._canvas, self._scene, self._gui = _Accepting(), _Accepting(), Gui()

    def get_canvas(self) -> Any:
        """The canvas that programs draw on."""
        return self._canvas

    def get_scene(self) -> Any:
        """The scene that programs put meshes and lights into."""
        return self._scene

    def get_gui(self) -> Gui:
        """The widgets."""
        return self._gui

    GUI = property(get_gui)

    def get_image_buffer_as_numpy(self) -> Any:
        """A black picture."""
        return np.zeros((*self.res, 4), np.float32)

    def get_depth_buffer_as_numpy(self) -> Any:
        """A picture of nothing."""
        return np.zeros(self.res, np.float32)


class Gui(_Accepting):
    """Widgets of a window: each keeps the value that the program passes to it."""

    @contextmanager
    def sub_window(self, *_: Any, **__: Any) -> Generator[Gui, None, None]:
        """A context manager around the widgets of a part of the window."""
        yield self

    def button(self, *_: Any, **__: Any) -> bool:
        """Not pressed."""
        return False

    def _kept(self, text: str, old_value: Any = None, *_: Any, **options: Any) -> Any:
        return options.get("old_value", old_value)

    checkbox = slider_int = slider_float = color_edit_3 = _kept


def _vector(x: float, y: float, z: float) -> Any:
    return importlib.import_module(_language).Vector([x, y, z])


class Camera(_Accepting):
    """A camera that is where the program puts it."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.position(0.0, 0.0, 0.0)
        self.lookat(0.0, 0.0, 1.0)
        self.up(0.0, 1.0, 0.0)

    def position(self, x: float, y: float, z: float) -> None:
        """Set the position of the camera."""
        self.curr_position = _vector(x, y, z)

    def lookat(self, x: float, y: float, z: float) -> None:
        """Set the point that the camera looks at."""
        self.curr_lookat = _vector(x, y, z)

    def up(self, x: float, y: float, z: float) -> None:
        """Set the upward direction."""
        self.curr_up = _vector(x, y, z)

    def get_view_matrix(self) -> Any:
        """The identity."""
        return np.eye(4, dtype=np.float32)

    def get_projection_matrix(self, *_: Any) -> Any:
        """The identity."""
        return np.eye(4, dtype=np.float32)


class VideoManager(_Accepting):
    """Accepts pictures and writes none."""

    def __init__(self, output_dir: str = ".", *_: Any, **__: Any) -> None:
        self.directory = output_dir

    def get_output_filename(self, suffix: str) -> str:
        """The path of a video, if one were written."""
        return f"{self.directory}/video{suffix}"

    def get_frame_directory(self) -> str:
        """The folder of pictures, if any were written."""
        return f"{self.directory}/frames"


_written: Final[dict[str, Any]] = {}
"""By path, the pictures that programs wrote."""


def _imwrite(img: Any, filename: str) -> str:
    """Keep the picture for `_imread`, as bytes."""
    values: Any = np.array(img.to_numpy() if hasattr(img, "to_numpy") else img)
    if values.dtype.kind == "f":
        values = np.clip(values, 0, 1) * 255
    values = values.astype(np.uint8)
    name = str(filename)
    _written[os.path.abspath(name)] = values[..., None] if values.ndim == 2 else values
    return name


def _imread(filename: str, channels: int = 0) -> Any:
    """A picture that the program wrote, or one from a file: by column and from the bottom up."""
    kept = _written.get(os.path.abspath(str(filename)))
    if kept is not None and channels in (0, kept.shape[2]):
        return kept.copy()
    read: Any = importlib.import_module(f"{_ENGINE}.lang.tools.image").imread
    return read(filename, channels)


def _imresize(img: Any, w: int, h: int | None = None) -> Any:
    """The picture in another size, each pixel that of the nearest one."""
    old = np.asarray(img.to_numpy() if hasattr(img, "to_numpy") else img)
    x = np.arange(w) * old.shape[0] // w
    y = np.arange(h or w) * old.shape[1] // (h or w)
    return old[x[:, None], y]


def rgb_to_hex(c: Any) -> Any:
    """Colours of three parts from 0 to 1 as numbers of 24 bits."""
    r, g, b = (np.clip(np.asarray(part) * 255, 0, 255).astype(np.int32) for part in c)
    return 65536 * r + 256 * g + b


def hex_to_rgb(color: int) -> tuple[float, float, float]:
    """A number of 24 bits as three parts from 0 to 1."""
    return tuple((color >> shift & 255) / 255 for shift in (16, 8, 0))  # type: ignore[return-value]


def notebook_names() -> dict[str, Any]:
    """The names that every notebook has without an import."""
    return {"display": _nothing, "get_ipython": _Accepting}


def install(language: str = _ENGINE, names: Sequence[str] = _ALIASES, files: bool = False) -> None:
    """Put the stand-ins where programs look for windows.

    language: the name of the module that gets them, and names: what programs call it, if not the
    engine; comparisons with other implementations use the same stand-ins for both. files: the
    program's pictures, videos and other files are written; only showing them does nothing.
    """
    global _language
    _language = language
    owner = importlib.import_module(language)
    # Matplotlib's windows would wait for a person to close them.
    os.environ.setdefault("MPLBACKEND", "agg")
    for key, value in _KEYS.items():
        setattr(GUI, key, value)
    colours = {"rgb_to_hex": rgb_to_hex, "hex_to_rgb": hex_to_rgb}
    image = {"imread": _imread, "imresize": _imresize}
    image |= {"imwrite": _imwrite, "imshow": _nothing, "imdisplay": _nothing}
    modes = SimpleNamespace(Perspective="Perspective", Orthogonal="Orthogonal")
    ui = {
        **_KEYS, "Window": Window, "Gui": Gui, "Camera": Camera, "Scene": _Accepting,
        "Canvas": _Accepting, "make_camera": Camera, "ProjectionMode": modes, "GUI": GUI,
        "check_ggui_availability": _nothing, **colours,
    }  # fmt: skip
    tools = {**image, "VideoManager": VideoManager, "PLYWriter": _Accepting}
    tools |= dict.fromkeys(
        ("make_video", "mp4_to_gif", "write_vtk", "interpolate_frames"), _nothing
    )
    modules: dict[str, dict[str, Any]] = {"ui": ui, "ui.gui": {"GUI": GUI, **colours}}
    if files:
        owner.tools.imshow = owner.tools.image.imshow = _nothing
    else:
        modules |= {"tools": tools, "tools.image": image}
    if language == _ENGINE:
        # Files ask the compiled core what it was built with: with nothing that only it has.
        modules["_lib"] = {"core": _Refusing()}
    made = {name: _module(f"{language}.{name}", held) for name, held in modules.items()}
    for name, module in made.items():
        above, _, last = name.rpartition(".")
        setattr(made[above] if above else owner, last, module)
        for alias in names:
            sys.modules[f"{alias}.{name}"] = module
    for name, value in {"GUI": GUI, **colours}.items():
        setattr(owner, name, value)


def _module(name: str, names: dict[str, Any]) -> ModuleType:
    module = ModuleType(name, "A stand-in: there are no windows here.")
    module.__dict__.update(names)
    module.__path__ = []
    return module
