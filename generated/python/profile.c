/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "seeing": edit that, not this file. */
/* Profiles, for treadle.profiler. */
#include "glue.h"

ENTRANCE(profile_begin, args)
{
    int memory, stack;
    UNPACK(args, "pp:profile", &memory, &stack);
    return done(td_profile_begin((td_profile_options){
        .memory = memory, .place = stack ? where_in_python : NULL }));
}

ENTRANCE(profile_end, unused)
{
    int n;
    td_event *event = td_profile_end(&n);
    PyObject *list = event != NULL ? PyList_New(n) : fail();
    for (int i = 0; i < n && !PyErr_Occurred(); i++) {
        const td_event *e = &event[i];
        PyList_SET_ITEM(list, i, Py_BuildValue("zziLLLLLOiKK", e->name,
            e->place, (int)e->kind, (long long)e->start,
            (long long)e->total, (long long)e->self,
            (long long)e->bytes, (long long)e->self_bytes,
            e->again ? Py_True : Py_False, e->outer,
            (unsigned long long)e->thread,
            (unsigned long long)e->block));
    }
    td_profile_free(event, event != NULL ? n : 0);
    return complete(list);
}
/* seeing: functions of Python's profile */
ENTRANCE(event_begin, name)
{
    const char *text = PyUnicode_AsUTF8(name);
    return text == NULL ? NULL
         : PyBool_FromLong(td_event_begin(text, TD_EVENT_USER));
}

ENTRANCE(event_end, unused)
{
    td_event_end();
    Py_RETURN_NONE;
}
