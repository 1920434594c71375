"""What the RKNN-shaped modules have in common: rknnlite and rknn_toolkit stand on it."""
