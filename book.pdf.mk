# SPDX-License-Identifier: MIT
# How chapters become book.pdf.  Included by the Makefile.
#
# loom/weave writes one .tex a chapter into build/book; latexmk runs LuaLaTeX
# and biber there until the references stand still.  The PDF is reproducible:
# its date is that of the last commit.

BOOK        := build/book
BOOK_INPUTS := $(wildcard chapters/*.nw chapters/*.tex chapters/*.sty chapters/*.bib) \
               $(wildcard figures/*.tex figures/data/*.csv figures/transcripts/*.txt)
BOOK_DATE   := $(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000)

book.pdf: $(BOOK_INPUTS) loom/weave loom/prefixes
	@mkdir -p $(BOOK)
	@echo "  WEAVE  $(words $(wildcard chapters/*.nw)) chapters"
	@loom/weave $(BOOK) $(sort $(wildcard chapters/*.nw))
	@loom/prefixes $(BOOK)/prefixes.tex $(sort $(wildcard chapters/*.nw))
	@ln -sfn ../../figures $(BOOK)/figures
	@echo "  LATEX  book.pdf (log: $(BOOK)/book.log)"
	@cd $(BOOK) && SOURCE_DATE_EPOCH=$(BOOK_DATE) FORCE_SOURCE_DATE=1 \
	  TEXINPUTS=.:../../chapters: BIBINPUTS=../../chapters: max_print_line=1000 \
	  latexmk -lualatex -interaction=nonstopmode -halt-on-error \
	    -file-line-error -silent -e '$$max_repeat=6' ../../chapters/book.tex > latexmk.out 2>&1 \
	  || { grep -nE '^[^ ]*:[0-9]+: |^! |^l\.[0-9]+' book.log | head -20; \
	       tail -5 latexmk.out; exit 1; }
	@cp $(BOOK)/book.pdf book.pdf.new && mv book.pdf.new book.pdf
