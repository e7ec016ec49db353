//! The binary as a process: kills, swaps, drains.
