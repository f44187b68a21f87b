# SPDX-License-Identifier: MIT
# How chapters become two volumes.  Included by the Makefile.
#
# book.pdf is the story, catalogue.pdf holds what it leaves out.  loom/weave
# writes one .tex a chapter into build/book or build/catalogue; loom/typeset
# runs LuaLaTeX, biber and makeindex there.  The
# PDF is reproducible: its date is that of the last commit.  notebook.pdf is
# the story with a student's own work, as far as it passes.  `make preview
# CH=memory` sets one chapter quickly, in build/preview/book.pdf.

BOOK_CHAPTERS := $(sort $(wildcard chapters/*/*.nw))
BOOK_INPUTS := $(wildcard chapters/*/*.nw chapters/*.tex chapters/*.sty chapters/*.bib chapters/setting exercises/*/card.nw exercises/*/answer.nw) \
               $(wildcard figures/*.tex figures/data/*.csv figures/transcripts/*.txt) loom/weave loom/book.py loom/typeset loom/prefixes
BOOK_DATE   := $(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000)
TEX_ENV     := SOURCE_DATE_EPOCH=$(BOOK_DATE) FORCE_SOURCE_DATE=1

# $(1) the volume, $(2) a directory build/NAME, $(3) what stands in the holes
define weave_volume
@mkdir -p $(2)
@echo "  WEAVE  the $(1)"
@loom/weave $(1) $(2) $(BOOK_CHAPTERS) $(3)
@loom/prefixes $(2)/prefixes.tex $(BOOK_CHAPTERS)
@ln -sfn ../../figures $(2)/figures
endef

# $(1) the PDF, $(2) a directory build/NAME, $(3) book or catalogue
define set_volume
@echo "  LATEX  $(1) (log: $(2)/$(3).log)"
@$(TEX_ENV) loom/typeset $(2) $(3)
@cp $(2)/$(3).pdf $(1).new && mv $(1).new $(1)
endef

book.pdf: $(BOOK_INPUTS)
	$(call weave_volume,story,build/book,$(wildcard exercises/*/answer.nw))
	$(call set_volume,$@,build/book,book)

catalogue.pdf: $(BOOK_INPUTS) | deps-book
	$(call weave_volume,catalogue,build/catalogue,$(wildcard exercises/*/answer.nw))
	$(call set_volume,$@,build/catalogue,catalogue)

notebook.pdf: FORCE | deps-book
	$(call weave_volume,story,$(BUILD)/notebook,$$($(PYTHON) loom/exercises edition))
	$(call set_volume,$@,$(BUILD)/notebook,book)

.PHONY: preview
PREVIEWED = $(notdir $(basename $(wildcard chapters/*/??-$(CH).nw)))
preview: | deps-book
	@[ -n "$(PREVIEWED)" ] || { echo "usage: make preview CH=memory [VOLUME=catalogue]"; exit 2; }
	$(call weave_volume,$(or $(VOLUME),story),build/preview,$(wildcard exercises/*/answer.nw))
	@$(TEX_ENV) loom/typeset build/preview $(if $(filter catalogue,$(VOLUME)),catalogue,book) $(PREVIEWED)
	@ls -l build/preview/*.pdf
