/* A table of figures: each line has our figure, the figure of the floor or peer beside it, what is compared, and the
 * bar. A figure that misses its bar is marked SHORT. */
#ifndef HF_BENCH_ROW_H
#define HF_BENCH_ROW_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum row_bar { ROW_NO_BAR, ROW_AT_MOST, ROW_AT_LEAST } row_bar;

static inline void row_head(const char *title)
{
    printf("\n%s\n%-46s %12s %-6s %-22s %12s %9s  %s\n", title, "", "ours", "", "beside", "", "compared", "bar");
    (void)fflush(stdout);
}

/* A number, or nothing for NAN. */
static inline void row_number(int width, double number)
{
    if (isnan(number)) {
        printf(" %*s", width, "");
    } else {
        printf(" %*.*f", width, fabs(number) < 10 ? 3 : (fabs(number) < 1000 ? 1 : 0), number);
    }
}

/* `figure`: of `beside`, in the same unit; NAN = it could not be measured. `compared`: what the bar is for. */
static inline void row(const char *what, double ours, const char *unit, const char *beside, double figure,
                       double compared, row_bar kind, double bar)
{
    printf("%-46s", what);
    row_number(12, ours);
    printf(" %-6s %-22s", unit, beside);
    row_number(12, figure);
    row_number(9, compared);
    if (kind != ROW_NO_BAR && !isnan(compared)) {
        bool is_short = kind == ROW_AT_MOST ? compared > bar : compared < bar;
        printf("  %s %g%s", kind == ROW_AT_MOST ? "<=" : ">=", bar, is_short ? "  SHORT" : "");
    }
    printf("\n");
    (void)fflush(stdout);
}

#endif
