/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A locale with a decimal comma, dots between thousands and 8-bit letters. localedef, which comes
 * with libc, makes it from the few lines below: no other locale need be installed.
 */
#ifndef PTXGEN_TESTS_COMMA_LOCALE_H
#define PTXGEN_TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMA_LOCALE_FOLDER = 40 };

static inline bool comma_locale_write_charmap(const char *folder)
{
    char path[COMMA_LOCALE_FOLDER + 20];
    snprintf(path, sizeof path, "%s/charmap", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fputs("<code_set_name> LATIN\n<mb_cur_min> 1\n<mb_cur_max> 1\n<escape_char> /\n"
          "<comment_char> %\nCHARMAP\n",
          file);
    for (int i = 0; i < 256; i++)
        fprintf(file, "<U%04X> /x%02x letter\n", i, i);
    fputs("END CHARMAP\n", file);
    return fclose(file) == 0;
}

static inline bool comma_locale_write_source(const char *folder)
{
    char path[COMMA_LOCALE_FOLDER + 20];
    snprintf(path, sizeof path, "%s/source", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fputs("comment_char %\nescape_char /\n"
          "LC_CTYPE\n"
          "upper <U0041>..<U005A>;<U00C0>..<U00DE>\n"
          "lower <U0061>..<U007A>;<U00DF>..<U00FF>\n"
          "alpha <U0041>..<U005A>;<U0061>..<U007A>;<U00C0>..<U00FF>\n"
          "digit <U0030>..<U0039>\n"
          "space <U0020>;<U0009>..<U000D>\n"
          "END LC_CTYPE\n"
          "LC_NUMERIC\n"
          "decimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\ngrouping 3;3\n"
          "END LC_NUMERIC\n",
          file);
    return fclose(file) == 0;
}

/*
 * Makes the locale "comma" in a new folder, whose path it writes, and where setlocale finds it
 * through LOCPATH, which is set. localedef warns of the categories that are not there, with exit
 * status 1.
 */
static inline bool comma_locale_make(char folder[COMMA_LOCALE_FOLDER])
{
    char command[4 * COMMA_LOCALE_FOLDER + 80];
    strcpy(folder, "/tmp/ptxgen-locale-XXXXXX");
    if (!mkdtemp(folder) || !comma_locale_write_charmap(folder) ||
        !comma_locale_write_source(folder))
        return false;
    snprintf(command, sizeof command,
             "localedef -c -i '%s/source' -f '%s/charmap' '%s/comma' >'%s/words' 2>&1", folder,
             folder, folder, folder);
    int status = system(command);
    return status != -1 && setenv("LOCPATH", folder, 1) == 0;
}

/* Puts the process into the locale, and sees that numbers have a comma there. */
static inline bool comma_locale_enter(void)
{
    char text[8];
    if (!setlocale(LC_ALL, "comma"))
        return false;
    snprintf(text, sizeof text, "%.1f", 0.5);
    return strcmp(text, "0,5") == 0;
}

/* Back to the C locale; removes the folder. */
static inline bool comma_locale_remove(const char *folder)
{
    char command[COMMA_LOCALE_FOLDER + 20];
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0;
}

#endif
