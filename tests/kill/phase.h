/* What the child of the kill test tells on a pipe: a small letter before it enters a phase, the capital one when it has left it.
 * So whoever kills it can wait for the right moment, and knows afterwards where it died. */
#ifndef HF_TESTS_KILL_PHASE_H
#define HF_TESTS_KILL_PHASE_H

enum { PHASE_FD = 3 }; /* the child's end */

#define PHASE_RECOVERY 'r'   /* opens a database that was not closed */
#define PHASE_CHECKPOINT 'k' /* moves the log into the database */
#define PHASE_BACKUP 'b'     /* asks for a backup and waits for it */
#define PHASE_RESET 't'      /* asks for a reset and waits for it; several clients may */
#define PHASE_END(phase) ((char)((phase) - 'a' + 'A'))

#endif
