# The loop of a function in objdump's text: what each instruction is for, and how many there are of each kind.
{ line[NR] = $2; at[$1] = NR; gsub(/ /, "", $1); number[substr($1, 1, length($1) - 1)] = NR }
END { for (n = 1; n <= NR; n++) if (split(line[n], w, / +/) > 1 && w[1] == "jne" && number[w[2]] && number[w[2]] < n) { first = number[w[2]]; last = n; break }
      for (n = first; n <= last; n++) {
          split(line[n], w, / +/); text = w[1] " " w[2]
          kind = text ~ /vfma/ ? "multiply and add" : text ~ /broadcast/ ? "spread a number of A" : text ~ /vmovups.*%r/ ? "half a row of B" \
               : text ~ /vmovaps/ ? "a name for a register" : text ~ /^prefetch/ ? "ask for the next sliver" : "count and go on"
          count[kind]++
          if (w[1] == "jne") w[2] = "(the first line)"
          if (n < first + 12 || n > last - 6) printf "  %-12s %-28s %s\n", w[1], w[2], kind
          else if (n == first + 12) print "  ..."
      }
      print ""
      m = split("multiply and add,spread a number of A,half a row of B,ask for the next sliver,a name for a register,count and go on", k, ",")
      for (i = 1; i <= m; i++) { if (count[k[i]]) printf "%4d  %s\n", count[k[i]], k[i]; all += count[k[i]] }
      printf "%4d  instructions a step\n", all }
