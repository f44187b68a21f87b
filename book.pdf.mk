# SPDX-License-Identifier: MIT
# How chapters become book.pdf.  Included by the Makefile.
#
# loom/weave writes one .tex a chapter into build/book; latexmk runs LuaLaTeX
# and biber there until the references stand still.  The PDF is reproducible:
# its date is that of the last commit.  notebook.pdf is the same book with a
# student's own work, as far as it passes, in place of the answers.

BOOK        := build/book
BOOK_INPUTS := $(wildcard chapters/*/*.nw chapters/*.tex chapters/*.sty chapters/*.bib exercises/*/card.nw exercises/*/answer.nw) \
               $(wildcard figures/*.tex figures/data/*.csv figures/transcripts/*.txt)
BOOK_DATE   := $(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000)

# $(1) the PDF, $(2) a directory build/NAME, $(3) what stands in the holes
define weave_book
@mkdir -p $(2)
@echo "  WEAVE  $(words $(wildcard chapters/*/*.nw)) chapters"
@loom/weave $(2) $(sort $(wildcard chapters/*/*.nw)) $(3)
@loom/prefixes $(2)/prefixes.tex $(sort $(wildcard chapters/*/*.nw))
@ln -sfn ../../figures $(2)/figures
@echo "  LATEX  $(1) (log: $(2)/book.log)"
@cd $(2) && SOURCE_DATE_EPOCH=$(BOOK_DATE) FORCE_SOURCE_DATE=1 \
  TEXINPUTS=.:../../chapters: BIBINPUTS=../../chapters: max_print_line=1000 \
  latexmk -lualatex -interaction=nonstopmode -halt-on-error \
    -file-line-error -silent -e '$$max_repeat=6' ../../chapters/book.tex > latexmk.out 2>&1 \
  || { grep -nE '^[^ ]*:[0-9]+: |^! |^l\.[0-9]+' book.log | head -20; grep -h ERROR book.blg; \
       tail -5 latexmk.out; rm -f *.aux *.out *.toc *.bcf *.fdb_latexmk; exit 1; }
@cp $(2)/book.pdf $(1).new && mv $(1).new $(1)
endef

book.pdf: $(BOOK_INPUTS) loom/weave loom/prefixes
	$(call weave_book,$@,$(BOOK),$(wildcard exercises/*/answer.nw))

notebook.pdf: FORCE | deps-book
	$(call weave_book,$@,$(BUILD)/notebook,$$($(PYTHON) loom/exercises edition))
