# seven predictions, which measuring-predictions.log held before examples/predictions.c was written, and what came:
# of each median the best of nine sittings, or of SITTINGS, since others work on the machine
for _ in $(seq "${SITTINGS:-9}"); do "${BUILD:-build}/examples/predictions"; done | "${PYTHON:-python3}" -c '
import csv, sys
said = list(csv.DictReader(line for line in open("figures/data/measuring-predictions.log") if line[0] != "#"))
took = {}
for row in csv.DictReader(sys.stdin):
    if row["row"] != "row":
        took[row["row"]] = min(float(row["took"]), took.get(row["row"], 1e9))
table = csv.writer(sys.stdout, lineterminator="\n")
table.writerow(("row", "because", "expected", "took", "ratio"))
for p in said:
    ratio = took[p["row"]] / float(p["expected"])
    table.writerow((p["row"].replace(",", ""), p["because"].replace(",", ""), p["expected"], took[p["row"]], f"{ratio:.2f}"))'
