"""swift-f0: the pitch of a sound, at once and as a stream."""
from package_report import RATE, report, sound
from swift_f0 import SwiftF0, segment_notes

engine = SwiftF0()
heard = sound()
whole = engine.detect(heard, RATE)
stream = engine.stream()
parts = [stream.push(heard[i:i + 4000], RATE) for i in range(0, len(heard), 4000)] + [stream.flush()]
report(texts=[round(note.pitch_hz) for note in segment_notes(whole)],
       scores=list(whole.confidence) + [c for part in parts for c in part.confidence],
       boxes=[p for p, c in zip(whole.pitch_hz, whole.confidence) if c > 0.5])
