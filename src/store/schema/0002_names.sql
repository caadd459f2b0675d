-- Names as numbers. The engine fills the table again from the rows of the runs (engine/open.c).
DROP TABLE name;
CREATE TABLE name (hash INT NOT NULL, run INT NOT NULL, PRIMARY KEY (hash, run)) WITHOUT ROWID;
CREATE TABLE name_log (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
PRAGMA user_version = 2;
