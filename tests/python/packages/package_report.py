"""What the programs beside this file share: a page, a sound, and the line that tells what was found."""
import importlib.util
import json
import logging
import os

import numpy as np

logging.disable(logging.CRITICAL)
RATE = 16000


def page() -> str:
    """Path of the page image that scikit-image carries; the package itself is not imported."""
    found = importlib.util.find_spec("skimage")
    if found is None or found.origin is None:
        raise ImportError("scikit-image is not installed; requirements/demo.txt names it")
    return os.path.join(os.path.dirname(found.origin), "data", "page.png")


def sound(seconds: float = 6.0) -> np.ndarray:
    """A rising voice-like tone that swells three times a second, in noise as a microphone has it."""
    t = np.arange(int(RATE * seconds)) / RATE
    phase = 2 * np.pi * (140 * t + 12 * t * t)
    voice = sum(np.sin(k * phase) / k for k in range(1, 6)) * (0.55 + 0.45 * np.sin(2 * np.pi * 3 * t))
    noise = np.random.default_rng(7).standard_normal(t.shape)
    return (0.3 * voice + 0.02 * noise).astype(np.float32)


def report(**found) -> None:
    """Prints texts (equal in every run), scores and boxes (equal within limits), and whose module ran."""
    import onnxruntime

    found["engine"] = onnxruntime.__name__
    print("RESULT" + json.dumps(found, default=lambda v: np.asarray(v).tolist()))
