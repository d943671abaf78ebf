"""Frames of videos as pictures; ffmpeg, where it is installed, joins them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from ...errors import QuadrantsRuntimeError
from .image import imwrite

__all__ = ["VideoManager"]

_FRAME: Final = "{:06d}.png"


class VideoManager:
    """Writes frames as ``OUTPUT_DIR/frames/000000.png`` and on, and joins them with ffmpeg.

    video_filename: the name of the video in ``output_dir``, without suffix. width, height: of the
    frames, if not those of the first one. post_processor: an object whose ``process(img)`` returns
    the frame to write. automatic_build: kept for programs that give it.
    """

    def __init__(
        self,
        output_dir: str,
        video_filename: str | None = None,
        width: int | None = None,
        height: int | None = None,
        post_processor: Any = None,
        framerate: int = 24,
        automatic_build: bool = True,
    ) -> None:
        if (width is None) != (height is None):
            raise ValueError("VideoManager needs both width and height, or neither")
        self.directory = os.fspath(output_dir)
        self.frame_directory = os.path.join(self.directory, "frames")
        os.makedirs(self.frame_directory, exist_ok=True)
        self.video_filename = video_filename
        self.width = width
        self.height = height
        self.post_processor = post_processor
        self.framerate = framerate
        self.automatic_build = automatic_build
        self.frame_counter = 0
        self.frame_fns: list[str] = []

    def get_output_filename(self, suffix: str) -> str:
        """The path of the video with ``suffix``, such as ``.mp4``."""
        name = os.path.splitext(self.video_filename or "video")[0]
        return os.path.join(self.directory, name + suffix)

    def get_frame_directory(self) -> str:
        """The folder of the frames."""
        return self.frame_directory

    def write_frame(self, img: Any) -> None:
        """Write the next frame, a field or an array as for `imwrite`.

        The last line or column is left out if their number is odd, as videos need.
        """
        frame: Any = np.asarray(img.to_numpy() if hasattr(img, "to_numpy") else img)
        if frame.shape[0] % 2:
            print("Warning: the width of a frame is odd; its last column is left out")
            frame = frame[:-1]
        if frame.shape[1] % 2:
            print("Warning: the height of a frame is odd; its last line is left out")
            frame = frame[:, :-1]
        if self.post_processor is not None:
            frame = self.post_processor.process(frame)
        if self.width is None or self.height is None:
            self.width, self.height = frame.shape[:2]
        elif frame.shape[:2] != (self.width, self.height):
            text = f"a frame of {frame.shape[:2]} points in a video of {(self.width, self.height)}"
            raise ValueError(text)
        name = _FRAME.format(self.frame_counter)
        imwrite(frame, os.path.join(self.frame_directory, name))
        self.frame_fns.append(name)
        self.frame_counter += 1

    def write_frames(self, images: Iterable[Any]) -> None:
        """Write the next frames."""
        for img in images:
            self.write_frame(img)

    def clean_frames(self) -> None:
        """Remove the frames."""
        for name in os.listdir(self.frame_directory):
            if name.endswith(".png"):
                os.remove(os.path.join(self.frame_directory, name))

    def make_video(self, mp4: bool = True, gif: bool = True) -> None:
        """Join the frames to ``.mp4`` and ``.gif``. QuadrantsRuntimeError without ffmpeg."""
        wanted: list[tuple[bool, str, list[str]]] = [
            (mp4, ".mp4", ["-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p"]),
            (gif, ".gif", ["-lavfi", "split[a][b];[a]palettegen[p];[b][p]paletteuse"]),
        ]
        program = shutil.which("ffmpeg")
        if program is None and (mp4 or gif):
            raise QuadrantsRuntimeError(
                "VideoManager.make_video needs ffmpeg, which is not installed",
                hint=f"install ffmpeg; the frames are in {self.frame_directory}",
            )
        frames = os.path.join(self.frame_directory, "%06d.png")
        for want, suffix, options in wanted:
            if want:
                command = [str(program), "-y", "-loglevel", "error", "-framerate"]
                command += [str(self.framerate), "-i", frames, *options]
                subprocess.run([*command, self.get_output_filename(suffix)], check=True)
