-- Rows of writes tell when the next attempt may be made, and a row of meta which numbers of writes are used (depot/row.c, depot/source.c).
-- Programs of version 1 cannot read such rows, so they must not open the file; the tables are the same.
PRAGMA user_version = 2;
