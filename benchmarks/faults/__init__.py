"""What goes wrong outside of the program, done to it on purpose: `python -m benchmarks.faults`, `make faults`."""
