# Reads every file of src/, then an lcov report: tells the lines of src/ that no test ran, a file a line, and how many were
# run in all; fails under `least` per cent. What is there for tests alone is not counted: that is what follows
# `#[cfg(test)]`, until a line that is indented like it ends the item, and the files of a module that is declared so.
FILENAME ~ /\.rs$/ {
    if (FNR == 1) inside = 0
    match($0, /^ */)
    if (!inside && /^ *#\[cfg\((all\()?test[,)]/) {
        inside = 1
        indent = RLENGTH
    }
    if (!inside) next
    for_tests[FILENAME, FNR] = 1
    if (match($0, /mod [a-z0-9_]+;$/)) {
        folder = FILENAME
        sub(/(\/(mod|lib))?\.rs$/, "", folder)
        test_modules[folder "/" substr($0, RSTART + 4, RLENGTH - 5)] = 1
        inside = 0
    } else if (match($0, /^ */) && RLENGTH == indent && /[;,}]$/) {
        inside = 0
    }
    next
}
function is_for_tests(path,    module) {
    for (module in test_modules) {
        if (path == module ".rs" || index(path, module "/") == 1) return 1
    }
    return 0
}
function close_range() {
    if (first) missed = missed " " (first == last ? first : first "-" last)
    first = 0
}
/^SF:/ {
    path = substr($0, 4)
    if (index(path, root "/") == 1) path = substr(path, length(root) + 2)
    counted = path ~ /^src\// && !is_for_tests(path)
    missed = ""
    lines = run = first = 0
}
/^DA:/ && counted {
    split(substr($0, 4), part, ",")
    if ((path, part[1]) in for_tests) next
    lines++
    if (part[2] > 0) {
        run++
        close_range()
    } else {
        if (!first) first = part[1]
        last = part[1]
    }
}
/^end_of_record/ && counted {
    close_range()
    if (missed != "") printf "%s: %d of %d not run:%s\n", path, lines - run, lines, missed
    all_lines += lines
    all_run += run
}
END {
    if (!all_lines) {
        print "no line of src/ is in the report"
        exit 1
    }
    per_cent = 100 * all_run / all_lines
    printf "lines of src/ that tests run: %d of %d, %.2f %%\n", all_run, all_lines, per_cent
    exit per_cent < least
}
