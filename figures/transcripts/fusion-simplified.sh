@cd "${BUILD:-build}/examples"
@./one-step expanded > before; ./one-step simplified > after
@echo '$ diff before after | cut -c1-66        # two of the differences'
@diff before after | sed -n '1,8p' | cut -c1-66
@rm -f before after
