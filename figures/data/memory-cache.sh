# What it costs to get a block of memory, touch its pages and give it back.
"$BUILD/examples/memory-cache"
