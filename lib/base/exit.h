/* SPDX-License-Identifier: Apache-2.0 */
/* How a daemon ends. What passes by itself (no memory, a port that somebody still has) ends with 1, and
 * systemd starts the daemon again a moment later. What only a person can mend (a bad value of a security key,
 * a store that a newer version wrote) ends with EXIT_PERSON, which the units name in
 * RestartPreventExitStatus=: the unit is then "failed", and its status has the sentence. */
#pragma once

#define EXIT_PERSON 78 /* EX_CONFIG of sysexits.h */

/* The errno that stands for it: only mutexes know it otherwise. Whoever returns it has logged the sentence.
 */
#define EPERSON ENOTRECOVERABLE

/* -EPERSON where r is an error of files and settings that stays until somebody does something (rights, a
 * read-only or damaged file, a wrong kind of file); r itself where trying again may help. For use where a
 * daemon starts. */
int exit_person(int r);
/* The same for what is read whole at the start: there everything stays but a lack of memory, room or
 * descriptors, which may be some user's doing and would otherwise put the daemon out until somebody looks. */
int exit_person_unless_short(int r);

/* The exit status for the outcome r (0 or positive: fine) of a daemon's life. Where it is none of success,
 * systemd is told the last error that was logged, as the unit's status. */
int exit_status(int r);
