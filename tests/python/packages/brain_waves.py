"""brainmaze-eeg-models: sleep spindles and seizures in a brain's waves (made here: noise with ten spindles)."""
import numpy as np
from brainmaze_eeg_models.seizure import predict_channel_seizure_probability
from brainmaze_eeg_models.spindles import SpindleDetector
from package_report import report

rate = 250
t = np.arange(rate * 90) / rate
wave = np.random.default_rng(5).standard_normal(t.shape).cumsum()
wave -= np.convolve(wave, np.ones(rate) / rate, "same")
for start in range(5, 86, 9):
    there = (t >= start) & (t < start + 1.2)
    wave[there] += 14 * np.sin(2 * np.pi * 13.5 * t[there]) * np.hanning(there.sum())
spindles = SpindleDetector("eeg").detect(wave, rate)
_, seizures = predict_channel_seizure_probability(wave, rate, window_s=60)
report(texts=[len(spindles)], boxes=[spindles.start, spindles.end],
       scores=[spindles.confidence, seizures[np.isfinite(seizures)]])
