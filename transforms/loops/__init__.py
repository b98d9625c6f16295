"""Rules for loops: over elements, their order and statements; dealt out to threads and ranks."""
