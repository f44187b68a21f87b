/* Tables whose cells stand between marks, handed to td_csv_read; none of them is ever on a disk. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>

static char path[64];
static int file = -1;

static td_csv *read_table(const char *text, char delimiter)
{
    const size_t n = strlen(text);
    if (file >= 0)
        close(file);
    file = memfd_create("csv", 0);
    if (file < 0 || write(file, text, n) != (ssize_t)n)
        check_wrong("  the check cannot make a file of %d bytes", (int)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return td_csv_read(path, delimiter);
}

/* The cells, row by row, in as many columns, and NULL. */
static void accept(const char *what, const char *formula, const char *text, char delimiter, int columns, ...)
{
    va_list cells;
    check_case(what, formula);
    td_scope_begin();
    const td_csv *t = read_table(text, delimiter);
    check_no_error();
    va_start(cells, columns);
    for (int i = 0;; i++) {
        const char *expected = va_arg(cells, const char *), *got = td_csv_text(t, i / columns, i % columns);
        if (expected == NULL && got == NULL)
            break;
        if (expected == NULL || got == NULL || strcmp(expected, got) != 0)
            check_wrong("  row %d, column %d\n  expected  %s\n  got       %s", i / columns, i % columns,
                        expected ? expected : "no such row", got ? got : "no such row");
    }
    va_end(cells);
    if (td_csv_columns(t) != columns)
        check_wrong("  expected  %d columns\n  got       %d", columns, (int)td_csv_columns(t));
    td_scope_end();
}

static void refuse(const char *what, const char *formula, const char *text, const char *expected)
{
    char should[300];
    check_case(what, formula);
    td_scope_begin();
    const td_csv *t = read_table(text, 0);
    snprintf(should, sizeof should, "csv_read: %s, line %s", path, expected);
    if (t || !td_failed())
        check_wrong("  expected  %s\n  got       %s", should, t ? "a table" : "NULL, and no error");
    if (strcmp(td_error_message(), should) != 0)
        check_wrong("  expected  %s\n  got       %s", should, td_error_message());
    td_error_clear();
    td_scope_end();
}

static const char *inside = "between marks every byte but a mark is the cell's";
static const char *two = "two marks are one";
static const char *where = "a newline between marks belongs to the cell, and raises c->line by one";
static const char *behind = "behind the closing mark: the delimiter, or the end of the line";
static const char *last = "the newline at c->end is behind the last byte of the file, and ends every cell that is closed";

int main(void)
{
    accept("a cell with a comma in it", inside, "\"Smith, J.\",1\nx,2\n", 0, 2, "Smith, J.", "1", "x", "2", NULL);
    accept("a cell of nothing", inside, "\"\",a\n\"\",\"\"\n", 0, 2, "", "a", "", "", NULL);
    accept("a mark within the cell", two, "\"he said \"\"no\"\"\",\"\"\"\"\n", 0, 2, "he said \"no\"", "\"", NULL);
    accept("nothing but marks", two, "\"\"\"\"\"\",b\n", 0, 2, "\"\"", "b", NULL);
    accept("marks and commas in turn", two, "\"\"\",\"\"\",\",\"\n", 0, 2, "\",\"", ",", NULL);
    accept("a cell of two lines", where, "a,\"b\nc\"\nd,\"\n\"\n", 0, 2, "a", "b\nc", "d", "\n", NULL);
    accept("the lines end in two bytes", behind, "\"a\",\"b\"\r\n\"c\",\"d\"\r\n", 0, 2, "a", "b", "c", "d", NULL);
    accept("a return within the cell", inside, "\"a\r\nb\",\"\r\"\r\n", 0, 2, "a\r\nb", "\r", NULL);
    accept("another delimiter", behind, "\"a;\";\"b,\"\n", ';', 2, "a;", "b,", NULL);
    accept("the last line has no end", last, "\"a\",\"b\"", 0, 2, "a", "b", NULL);
    accept("the last line ends in a return", last, "\"a\",\"b\"\r", 0, 2, "a", "b", NULL);
    refuse("text behind the closing mark", behind, "a,b\n\"no\" he said,b\n", "2: text follows a closing quotation mark");
    refuse("text behind a cell of two lines", where, "\"a\n\nb\"c\n", "3: text follows a closing quotation mark");
    refuse("a return that ends no line", behind, "\"a\"\r,b\n", "1: text follows a closing quotation mark");
    refuse("two returns", behind, "\"a\"\r\r\n", "1: text follows a closing quotation mark");
    refuse("a mark that is never closed", last, "a\n\"b\nc\n", "2: a quotation mark is never closed");
    refuse("the last mark is one of two", two, "a\nb\n\"c\"\"\n", "3: a quotation mark is never closed");
    refuse("a mark at the very end", last, "a\n\"", "2: a quotation mark is never closed");
    refuse("a wrong line behind a cell of two lines", where, "a,\"b\nc\"\nd\n", "3: expected 2 values, got 1");
    accept("a table after many", "one call knows nothing of another", "\"a\"\n", 0, 1, "a", NULL);
    if (file >= 0)
        close(file);
    return check_end();
}
