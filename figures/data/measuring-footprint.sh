# GB/s of a sum of two rows into a third, by the KiB of all three, one thread
"${BUILD:-build}/examples/ceilings" footprint
