# numbers: 0
@echo '$ make'
@echo '$ make test'
