"""faster-whisper: the voice detector that it runs before it transcribes.

Importing the package loads av and ctranslate2, which the detector does not use and which are not
installed: av's wheel carries libraries under the GPL, ctranslate2's is the transcriber. Empty stand-ins
take their place; the package itself runs as it is."""
import sys
from unittest import mock

for name in ("av", "ctranslate2"):
    sys.modules[name] = mock.MagicMock(name=name)

import numpy as np  # noqa: E402
from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model  # noqa: E402
from package_report import report, sound  # noqa: E402

noise = np.random.default_rng(3).standard_normal(32000).astype(np.float32) * 0.002
heard = np.concatenate([noise, sound(3.0), noise, sound(2.0), noise])
heard = heard[:len(heard) // 512 * 512]
spans = get_speech_timestamps(heard, VadOptions(threshold=0.3, min_silence_duration_ms=400))
report(texts=[f"{span['start']}-{span['end']}" for span in spans],
       scores=get_vad_model()(heard.copy()).ravel())
