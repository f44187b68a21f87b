# Memory of the three engines of the leak, by step; each is killed at 400 MB.
programs=${BUILD:-build}/examples
here=$(mktemp -d)
for engine in leak leak_weak leak_saved; do
  bash "${GENERATED:-generated}/examples/within.sh" 400 "$programs/$engine" rss > "$here/$engine" 2> /dev/null
  echo "# $engine: exit $?" >> "$here/ends"
done
echo step,leak,weak,saved
join -t, -a 1 -a 2 -o 0,1.2,2.2 -e nan <(sed -n '/^[0-9]/p' "$here/leak" | sort -t, -k1,1) \
  <(join -t, <(sed -n '/^[0-9]/p' "$here/leak_weak" | sort -t, -k1,1) \
             <(sed -n '/^[0-9]/p' "$here/leak_saved" | sort -t, -k1,1) | sed 's/,/;/2' ) \
  | tr ';' ',' | sort -t, -k1,1n
cat "$here/ends"
rm -r "$here"
