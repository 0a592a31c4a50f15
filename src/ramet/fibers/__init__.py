"""Work that outlives the process: fibers leave a row while they run, and are recovered from it."""
