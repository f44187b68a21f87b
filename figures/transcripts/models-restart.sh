@write() { sed -n "/^cat > write.py/,/^END/p" figures/data/models-restart.sh | sed '1d;$d'; }
@echo '$ cat write.py'; write
@python3() { cat figures/data/models-restart.log; }
python3 write.py
