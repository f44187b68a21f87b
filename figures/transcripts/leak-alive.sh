build/examples/leak alive 300
