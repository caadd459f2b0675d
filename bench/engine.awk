# The tables of engine.sh, from lines of "cell<TAB>metric<TAB>value". The median counts; the spread is (max - min) / median.
#
# A limit is what SQLite does alone, by units (transitions) per commit: `rows` writes the rows of each, `journal` one blob per
# commit. A unit is one transition: an update of a run with three events. Three ratios stand beside a cell, each to the limit nearest
# to its own number of units per commit: /rows and /jour count transitions, that is each call, deadline or message that
# changed a run; /ev counts every three events as a unit; /run counts a run once per commit that changes it, however
# often it changed and however much, which is what the store sees.
# A bar is a ratio: operations per second to units per second of `rows` at 100 per commit, measured in the same run.
BEGIN {
    FS = "\t"
    bar["w1@128"] = 0.45; bar["w2@128"] = 0.136; bar["w3@128"] = 0.068; bar["w3@1024"] = 0.061; bar["w4"] = 1.36
}
{
    key = $1 SUBSEP $2
    if (!($1 in seen)) { seen[$1] = 1; cells[++cell_count] = $1 }
    values[key, ++counts[key]] = $3 + 0
    metrics[$1] = index(metrics[$1], " " $2 " ") ? metrics[$1] : metrics[$1] " " $2 " "
}
function sorted(key, out,    n, i, j, v) {
    n = counts[key]
    for (i = 1; i <= n; i++) {
        v = values[key, i]
        for (j = i - 1; j > 0 && out[j] > v; j--) out[j + 1] = out[j]
        out[j + 1] = v
    }
    return n
}
function get(cell, metric,    out, n) {
    n = sorted(cell SUBSEP metric, out)
    return n ? (out[int((n + 1) / 2)] + out[int(n / 2) + 1]) / 2 : 0
}
function spread(cell, metric,    out, n, m) {
    n = sorted(cell SUBSEP metric, out)
    m = get(cell, metric)
    return n > 1 && m > 0 ? sprintf("%.0f%%", 100 * (out[n] - out[1]) / m) : "-"
}
function limit(layout, per_commit) {
    return get("limit", layout "/" (per_commit < 3.16 ? 1 : per_commit < 31.6 ? 10 : per_commit < 316 ? 100 : 1000))
}
function over(a, b) {
    return b > 0 ? sprintf("%.2f", a / b) : "-"
}
function has(cell) {
    return cell in seen
}
function print_json(    i, j, n, names) {
    for (i = 1; i <= cell_count; i++) {
        n = split(metrics[cells[i]], names, / +/)
        for (j = 1; j <= n; j++)
            if (names[j] != "")
                printf "{\"cell\": \"%s\", \"metric\": \"%s\", \"median\": %.4f, \"samples\": %d}\n",
                    cells[i], names[j], get(cells[i], names[j]), counts[cells[i] SUBSEP names[j]]
    }
}
function verdict(cell, value,    rows, ratio) {
    rows = get("limit", "batch/100")
    if (!(cell in bar) || rows == 0) return ""
    ratio = value / rows
    return sprintf("%.3f %s %.3f", ratio, ratio >= bar[cell] ? "ok   >=" : "SHORT <", bar[cell])
}
function print_cells(    i, c, t, per) {
    printf "%-8s %8s %6s %8s %8s %9s %7s %6s %7s %7s %7s %6s %6s %6s %5s %5s %5s %5s  %s\n", "cell", "per s", "spread", "p50 ms",
        "p99 ms", "trans/s", "comm/s", "tr/com", "fl/op", "fl/tr", "B/tr", "us/op", "us/tr", "MiB", "/rows", "/jour", "/ev", "/run", "x L_rows, bar"
    for (i = 1; i <= cell_count; i++) {
        c = cells[i]
        if (c !~ /^w[1-4]/) continue
        t = get(c, "transitions_s"); per = get(c, "tr_commit")
        printf "%-8s %8.0f %6s %8.2f %8.2f %9.0f %7.0f %6.1f %7.3f %7.4f %7.0f %6.1f %6.1f %6.0f %5s %5s %5s %5s  %s\n", c,
            get(c, "ops_s"), spread(c, "ops_s"), get(c, "p50_ms"), get(c, "p99_ms"), t, get(c, "commits_s"), per,
            get(c, "flushes_op"), get(c, "flushes_tr"), get(c, "bytes_tr"), get(c, "cpu_op_us"), get(c, "cpu_tr_us"),
            get(c, "rss_mib"), over(t, limit("batch", per)), over(t, limit("group", per)),
            over(get(c, "events_s") / 3, limit("batch", get(c, "events_commit") / 3)),
            over(get(c, "changed_s"), limit("batch", get(c, "changed_commit"))), verdict(c, get(c, "ops_s"))
    }
}
function commits_bar(cell,    is, most) { # one client at a time: nothing shares a commit
    is = get(cell, "commits_op")
    if (cell ~ /^(update|released)@1$/) most = 1
    else if (cell ~ /^(rejected|query)/) most = 0
    else return ""
    return sprintf("%s %d commit%s each", is <= most + 0.05 ? "ok   <=" : "SHORT >", most, most == 1 ? "" : "s")
}
function print_asks(    i, c, head) {
    for (i = 1; i <= cell_count; i++) {
        c = cells[i]
        if (c !~ /^(update|rejected|released|query|child)@/) continue
        if (!head++)
            printf "\n%-12s %8s %6s %8s %8s %7s %7s %7s %7s  %s\n", "cell", "per s", "spread", "p50 ms", "p99 ms", "com/op",
                "tr/op", "fl/op", "us/op", "bar"
        printf "%-12s %8.0f %6s %8.2f %8.2f %7.3f %7.2f %7.3f %7.1f  %s\n", c, get(c, "ops_s"), spread(c, "ops_s"),
            get(c, "p50_ms"), get(c, "p99_ms"), get(c, "commits_op"), get(c, "tr_op"), get(c, "flushes_op"),
            get(c, "cpu_op_us"), commits_bar(c)
    }
}
function print_family(c,    is_good) {
    is_good = get(c, "open_rss_mib") <= 64 && get(c, "rss_mib") <= 64 && get(c, "serving_s") <= 1 &&
              get(c "/make", "file_run_b") <= 1.7 * 1024
    printf "%s: parents that wait for as many children: %.0f families made/s, file %.2f KiB per run (at most 1.7); open to serving " \
           "%.3f s (at most 1); RSS %.1f MiB then, %.1f MiB after the signals (at most 64) %s; a signal to a random one: %.0f/s, " \
           "%.1f us CPU, p99 %.1f ms\n", c, get(c "/make", "starts_s"), get(c "/make", "file_run_b") / 1024, get(c, "serving_s"),
        get(c, "open_rss_mib"), get(c, "rss_mib"), is_good ? "ok" : "SHORT", get(c, "ops_s"), get(c, "cpu_op_us"), get(c, "p99_ms")
}
function print_new(    i) {
    if (has("busy"))
        printf "busy: a signal with a request id to a run that has had 9,000: %.1f us CPU, to a new one %.1f us, ratio %.2f; each " \
               "with a commit of its own: %.1f and %.1f us, ratio %.2f (at most 3) %s\n", get("busy", "busy_us"),
            get("busy", "new_us"), get("busy", "ratio"), get("busy", "alone_busy_us"), get("busy", "alone_new_us"),
            get("busy", "alone_ratio"), get("busy", "ratio") <= 3 && get("busy", "alone_ratio") <= 3 ? "ok" : "SHORT"
    if (has("gap"))
        printf "gap: longest time between answers to others: alone %.1f ms (max %.1f); a parent of 2,000 children ends %.1f ms " \
               "(max %.1f); 10,000 polls are canceled %.1f ms (max %.1f); 49 MiB of history are reset within %.2f s %.1f ms " \
               "(max %.1f), %.1f ms in as long a time without that; at most 50 ms above: %+.1f, %+.1f and %+.1f %s\n",
            get("gap", "alone_ms"), get("gap", "alone_max_ms"), get("gap", "parent_ms"), get("gap", "parent_max_ms"),
            get("gap", "polls_ms"), get("gap", "polls_max_ms"), get("gap", "reset_s"), get("gap", "reset_ms"),
            get("gap", "reset_max_ms"), get("gap", "reset_alone_ms"), get("gap", "parent_more_ms"), get("gap", "polls_more_ms"), get("gap", "reset_more_ms"),
            get("gap", "parent_more_ms") <= 50 && get("gap", "polls_more_ms") <= 50 && get("gap", "reset_more_ms") <= 50 ? \
            "ok" : "SHORT"
    for (i = 1; i <= cell_count; i++)
        if (cells[i] ~ /^family/ && cells[i] !~ /make$/) print_family(cells[i])
}
function print_threads(    i, c) {
    printf "\n%-8s %26s %30s\n%-8s %8s %8s %8s %10s %9s %9s\n", "", "CPU us per transition", "sleeps per commit", "cell",
        "engine", "store", "worker", "engine", "store", "worker"
    for (i = 1; i <= cell_count; i++) {
        c = cells[i]
        if (c !~ /^w/) continue
        printf "%-8s %8.1f %8.1f %8.1f %10.2f %9.2f %9.2f\n", substr(c, 1, 8), get(c, "cpu_tr_us_hf-engine"),
            get(c, "cpu_tr_us_hf-store"), get(c, "cpu_tr_us_play"), get(c, "sleeps_commit_hf-engine"),
            get(c, "sleeps_commit_hf-store"), get(c, "sleeps_commit_play")
    }
}
function print_limits(    n, i, groups) {
    n = split("1 10 100 1000", groups, " ")
    printf "\nSQLite alone, units per second, by units per commit\n"
    for (i = 1; i <= n; i++)
        printf "  %5d: rows %8.0f (%s)   journal %8.0f (%s)\n", groups[i], get("limit", "batch/" groups[i]),
            spread("limit", "batch/" groups[i]), get("limit", "group/" groups[i]), spread("limit", "group/" groups[i])
    if (has("w1@128"))
        printf "  w1@128 against rows at 100: %s (bar %.2f, goal 1.1)\n",
            over(get("w1@128", "ops_s"), get("limit", "batch/100")), bar["w1@128"]
    if (has("w1@1"))
        printf "  w1@1: %.2f flushes per workflow (at most 2)\n", get("w1@1", "flushes_op")
}
function print_rest(    i, c) {
    if (has("w4"))
        printf "\nw4: %.0f starts/s; a parked run: %.0f B resident, of them %.0f B of state within the budget\n",
            get("w4", "starts_s"), get("w4", "parked_rss_b"), get("w4", "parked_state_b")
    if (has("w5"))
        printf "w5: 10,000 timers at once: fired and durable p50 %.0f ms, p99 %.0f ms; workflow ended and durable " \
               "p50 %.0f ms, p99 %.0f ms (bars 75 and 150) %s\n", get("w5/durable", "task_p50_ms"),
            get("w5/durable", "task_p99_ms"), get("w5", "p50_ms"), get("w5", "p99_ms"),
            get("w5/durable", "task_p99_ms") <= 75 && get("w5", "p99_ms") <= 150 ? "ok" : "SHORT"
    if (has("load"))
        printf "load of a run that is not in memory: %.0f ns, SELECT of its row (%.0f B): %.0f ns, ratio %.2f\n",
            get("load", "load_ns"), get("load", "row_b"), get("load", "select_ns"), get("load", "ratio")
    if (has("reopen"))
        printf "reopen after a kill with %.1f MiB of log: store %.1f ms, serving %.1f ms (at most 500) %s; plain write and " \
               "flush of the same bytes %.1f ms, ratio %.2f; store after a proper close %.2f ms\n", get("reopen", "log_mib"),
            1000 * get("reopen", "store_s"), 1000 * get("reopen", "serving_s"), get("reopen", "serving_s") <= 0.5 ? "ok" : "SHORT",
            1000 * get("reopen", "plain_s"), get("reopen", "ratio"), 1000 * get("reopen", "clean_s")
    for (i = 1; i <= cell_count; i++) {
        c = cells[i]
        if (c !~ /^idle/ || c ~ /make$/) continue
        if (c != "idle@1000") big = c
        printf "%s: made %.0f/s, file %.0f B per run; open to serving %.3f s; RSS %.1f MiB then, %.1f MiB after the signals; " \
               "a signal to a random one: %.0f/s, %.1f us CPU, p99 %.1f ms; one at a " \
               "time %.3f ms; SQLite alone, UPDATE of a random run: %.1f us CPU\n", c,
            get(c "/make", "starts_s"), get(c "/make", "file_run_b"), get(c, "serving_s"), get(c, "open_rss_mib"),
            get(c, "rss_mib"), get(c, "ops_s"), get(c, "cpu_op_us"), get(c, "p99_ms"),
            get(c, "alone_ms"), get(c, "raw_update_us")
        if (get(c, "raw_signal_us") > 0)
            printf "%s: a signal against SQLite alone, two reads and one write of random rows: %.1f us CPU, of them %.1f us in the " \
                   "engine's two threads, to %.1f us, ratio %s (at most 2.5) %s\n", c, get(c, "cpu_op_us"), get(c, "engine_op_us"),
                get(c, "raw_signal_us"), over(get(c, "cpu_op_us"), get(c, "raw_signal_us")),
                get(c, "cpu_op_us") <= 2.5 * get(c, "raw_signal_us") ? "ok" : "SHORT"
    }
    if (has("idle@1000") && has(big))
        printf "a signal among %s runs against one among 1000: one at a time %s, CPU under load %s (at most 2)\n",
            substr(big, 6), over(get(big, "alone_ms"), get("idle@1000", "alone_ms")), over(get(big, "cpu_op_us"), get("idle@1000", "cpu_op_us"))
}
END {
    if (json) { print_json(); exit }
    print_cells(); print_asks(); print_threads(); print_limits(); print_rest(); print_new()
}
