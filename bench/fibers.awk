# Makes the table of fibers.sh. First file: samples, "command<TAB>metric<TAB>value". Second: rows, see fibers.sh.
# The best sample stands for each side, since noise only ever adds; ours has its median beside it. A row whose target is a ratio of
# medians shows Go's median instead.

BEGIN {
    FS = "\t"
}

FNR == 1 {
    file++
    if (file == 2) {
        FS = "|"
        $0 = $0
    }
}

file == 1 {
    key = $1 ">" $2
    values[key, ++sample_count[key]] = $3 + 0
    next
}

{
    rows[++row_count] = $0
}

# Sorts the samples of a figure in place; the best is then the first.
function sort_samples(key, i, j, value) {
    for (i = 2; i <= sample_count[key]; i++) {
        value = values[key, i]
        for (j = i - 1; j >= 1 && values[key, j] > value; j--) {
            values[key, j + 1] = values[key, j]
        }
        values[key, j + 1] = value
    }
}

function best(key) {
    if (key == "" || !(key in sample_count)) {
        return ""
    }
    sort_samples(key)
    return values[key, 1]
}

function median(key, n) {
    if (best(key) == "") {
        return ""
    }
    n = sample_count[key]
    return n % 2 ? values[key, (n + 1) / 2] : (values[key, n / 2] + values[key, n / 2 + 1]) / 2
}

# A figure with three digits that mean something.
function number(value) {
    if (value == "") {
        return "-"
    }
    if (value >= 100) {
        return sprintf("%.0f", value)
    }
    return sprintf(value >= 10 ? "%.1f" : "%.2f", value)
}

function ratio(over, under) {
    return over == "" || under == "" || under <= 0 ? "" : over / under
}

function ratio_text(value) {
    return value == "" ? "-" : sprintf(value >= 10 ? "%.0fx" : "%.1fx", value)
}

# Adds a limit to the row's list; one that is missed is marked with "!".
function limit(text, missed) {
    limits = limits (limits == "" ? "" : " ") (missed ? "!" : "") text
    if (missed) {
        verdict = "SHORT"
    } else if (verdict == "") {
        verdict = "ok"
    }
}

function judge(target, floor_max, go_min, median_max) {
    limits = ""
    verdict = ""
    if (ours == "") {
        verdict = "FAILED"
        return
    }
    if (target != "") {
        limit("<=" target, ours > target + 0)
    }
    if (floor_max != "" && ours_floor != "") {
        limit("<=" floor_max "x", ours_floor > floor_max + 0)
    }
    if (go_min != "" && go_ours != "") {
        limit("Go>=" go_min "x", go_ours < go_min + 0)
    }
    if (median_max != "" && go != "") {
        limit("median<=" median_max "xGo", ours_median > median_max * go)
    }
}

function quoted(text) {
    gsub(/["\\]/, "\\\\&", text)
    return "\"" text "\""
}

function json_number(value) {
    return value == "" ? "null" : sprintf("%.4g", value)
}

function print_json(field, last) {
    printf "    {\"id\": %s, \"text\": %s, \"ours\": %s, \"median\": %s, \"samples\": %d, \"floor\": %s, \"go\": %s, " \
           "\"limits\": %s, \"verdict\": %s}%s\n",
           quoted(field[1]), quoted(field[2]), json_number(ours), json_number(ours_median), sample_count[field[3]],
           json_number(raw), json_number(go), quoted(limits), quoted(verdict), last ? "" : ","
}

function print_row(field) {
    printf "%-36s %8s %8s %8s %8s %8s %7s  %-19s %s\n", field[2], ours == "" ? "failed" : number(ours),
           number(ours_median), number(raw), number(go), ratio_text(ours_floor), ratio_text(go_ours), limits, verdict
}

function gain_text(one, two) {
    return ratio_text(ratio(best(one), best(two)))
}

function print_gain(text, mode) {
    if (!("go " mode " 0 1>" mode in sample_count || "fibers " mode " 0 1>" mode in sample_count)) {
        return # not among the chosen rows
    }
    printf "%s on 2 threads against 1: ours %s, floor %s, Go %s\n", text,
           gain_text("fibers " mode " 0 1>" mode, "fibers " mode " 0 2>" mode),
           gain_text("floor_mn " mode " 0 1>" mode, "floor_mn " mode " 0 2>" mode),
           gain_text("go " mode " 0 1>" mode, "go " mode " 0 2>" mode)
}

# How many times as long as Go's the medians of these rows are.
function print_pair(id, text, i, field) {
    for (i = 1; i <= row_count; i++) {
        split(rows[i], field, "|")
        if (field[1] == id && median(field[3]) != "" && median(field[5]) != "") {
            pair = pair (pair == "" ? "" : ", ") text " " ratio_text(ratio(median(field[3]), median(field[5])))
            pair_max = field[10]
        }
    }
}

END {
    if (json) {
        printf "{\n  \"machine\": %s,\n  \"kernel\": %s,\n  \"commit\": %s,\n  \"go\": %s,\n  \"quick\": %s,\n  \"rows\": [\n",
               quoted(machine), quoted(kernel), quoted(commit), quoted(go_version), quick ? "true" : "false"
    } else {
        printf "%s; Linux %s; commit %s; %s; load %s\n\n", machine, kernel, commit, go_version, load
        printf "%-36s %8s %8s %8s %8s %8s %7s  %-19s %s\n", "best sample; smaller is better", "ours", "median",
               "floor", "Go", "ours/fl", "Go/ours", "target", ""
    }
    short = failed = 0
    for (i = 1; i <= row_count; i++) {
        split(rows[i], field, "|")
        ours = best(field[3])
        ours_median = median(field[3])
        raw = best(field[4])
        go = field[10] != "" ? median(field[5]) : best(field[5])
        ours_floor = ratio(ours, raw)
        go_ours = ratio(go, field[10] != "" ? ours_median : ours)
        judge(field[6], field[7], field[8], field[10])
        short += verdict == "SHORT"
        failed += verdict == "FAILED"
        if (json) {
            print_json(field, i == row_count)
        } else {
            print_row(field)
        }
    }
    if (json) {
        printf "  ]\n}\n"
        exit
    }
    printf "\n"
    print_pair("chan_split", "second core idle")
    print_pair("chan_busy", "busy")
    print_pair("chan_pinned", "busy and .pin_threads")
    if (pair != "") {
        printf "Channel pair over 2 threads, median of ours / median of Go: %s; at most %sx is wanted\n", pair, pair_max
    }
    print_gain("0.7 us jobs", "work")
    print_gain("Tree of scopes (ns per fiber)", "tree")
    printf "%d rows, %d short of target, %d failed; %d s%s\n", row_count, short, failed, seconds,
           quick ? " (quick: fewer samples, no row of a million)" : ""
}
