build/examples/leak alone
