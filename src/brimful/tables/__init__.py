"""Arrow data on disk and in memory: reading it in bounded memory, packing it, writing it."""
