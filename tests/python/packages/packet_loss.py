"""speechmos: what listeners would say of speech with lost packets (PLCMOS)."""
import numpy as np
from package_report import RATE, report, sound
from speechmos import plcmos

heard = sound(4.0) * 0.5
lost = heard.copy()
for start in range(8000, len(lost) - 1600, 9600):
    lost[start:start + 1600] = 0
scores = []
for signal in (heard, lost):
    np.random.seed(7)  # The package asks imagined listeners, whom it draws.
    scores.append(plcmos.run(signal, RATE)["plcmos"])
report(scores=scores)
