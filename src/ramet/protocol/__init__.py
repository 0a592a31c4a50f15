"""The wire as data: frames, chunks, message parts, run events and their reducer, without I/O."""
