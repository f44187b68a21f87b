/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
#include "core/runtime.h"
#include <stdarg.h>

/* memory: function td_fail */
bool td_fail(td_error_code code, const char *operation,
             const char *format, ...)
{
    td_error_record *error = &td_self()->error;
    if (error->code != TD_OK)
        return false;
    error->code = code;
    /* memory: write the words of the error */
    snprintf(error->operation, sizeof error->operation, "%s", operation);
    const int start = snprintf(error->message, sizeof error->message,
                               "%s: ", error->operation);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message + start,
              sizeof error->message - (size_t)start, format, arguments);
    va_end(arguments);
    return false;
}

/* memory: functions that read the error */
bool td_failed(void)
{
    return td_self()->error.code != TD_OK;
}
td_error_code td_error(void)
{
    return td_self()->error.code;
}

const char *td_error_message(void)
{
    return td_self()->error.message;
}

const char *td_error_operation(void)
{
    return td_self()->error.operation;
}
void td_error_clear(void)
{
    td_error_record *error = &td_self()->error;
    if (error->code != TD_OK)
        *error = (td_error_record){ .code = TD_OK };
}

/* memory: functions that carry the error */
void td_error_take(td_error_record *out)
{
    *out = td_self()->error;
    td_error_clear();
}
bool td_error_restore(const td_error_record *record)
{
    td_error_record *error = &td_self()->error;
    if (error->code == TD_OK)
        *error = *record;
    return error->code == TD_OK;
}
