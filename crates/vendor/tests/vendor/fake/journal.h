/* What the fake libraries share: a journal of calls, a count of live objects, and failures on demand. In another process
   FAKE_JOURNAL names a file that gets the calls, a line each, and FAKE_FAIL a function that returns 5000. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char journal[4096];
static int live;
static char failing[64];
static int failure;

/* The calls since the last time, one a word. Valid until the next call. */
const char *fake_journal(void) {
    static char copy[sizeof journal];
    memcpy(copy, journal, sizeof journal);
    journal[0] = 0;
    return copy;
}

int fake_live(void) { return live; }

void fake_fail(const char *function, int status) {
    snprintf(failing, sizeof failing, "%s", function);
    failure = status;
}

static int note(const char *function, const char *detail) {
    size_t used = strlen(journal);
    snprintf(journal + used, sizeof journal - used, "%s%s%s%s ", function, *detail ? "(" : "", detail, *detail ? ")" : "");
    const char *path = getenv("FAKE_JOURNAL"), *fails = getenv("FAKE_FAIL");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", function);
        fclose(file);
    }
    if (fails && !strcmp(function, fails)) return 5000;
    return strcmp(function, failing) ? 0 : failure;
}

/* Notes the call and leaves the function if it was told to fail. */
#define NOTE_WITH(detail) \
    do { int status = note(__func__, detail); if (status) return status; } while (0)
#define NOTE() NOTE_WITH("")
