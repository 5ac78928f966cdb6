// Package journal keeps on disk the original value of every changed setting and every value that we write, before we
// write it (Journal v1). It knows nothing of remedies and does not touch a setting itself.
//
// Problem: a process that changes settings of a running machine may be killed between any two writes. The disk may be
// full, the machine may restart, and two such processes may run at once. The next process must know which values are
// ours to restore, and what they were.
//
// Rule: a transaction is a line "begin" with every setting that it will hold and the value of each. Then each single
// write has a line "write" (before, want, cgroup id, boot id), forced to disk; then the write itself; then a line "done"
// with the value as read back. A line "commit" ends it. A rollback writes "release", then its writes, then "close".
//
// A "begin" may say that the transaction is on trial: which process judges it (PID, start time, PID namespace), and until
// when. It is on trial from "commit" to "kept". If the process ends in between, the next writer rolls the transaction
// back. Programs that do not know trials read it as in force, and keep a "kept" that they do not know.
//
// From the lines follows, wherever they end, for each setting:
//
//   - who holds it: transactions that began and were not released, unless another program's write voided the hold;
//   - its original value: the one that the first of the open holders found;
//   - which values are ours: the value read back after the last write; without "done", the values before and want.
//
// Nothing is replayed. Package apply compares the present value with ours and writes the fold of the original with the
// remaining holders.
//
// On disk: STATE/journal.jsonl has one object per line, {"crc":"1a2b3c4d","rec":{...}}, with the CRC-32C of the bytes of
// rec. STATE/lock is locked with flock(2) and holds the writer's PID for people. The kernel drops the lock of a dead
// process. The directory has mode 0700, the files 0600. Open refuses a directory that others can write to.
//
// Worked example (shortened). A pin shrinks /b from 0-7 to 0-5 and is killed before the read-back:
//
//	{"begin":{"txn":"T","holds":[{"path":"/b","file":"cpuset.cpus","cgroup_id":81,"op":"remove_cpus","to":"6-7","original":"0-7"}]}}
//	{"write":{"n":1,"txn":"T","path":"/b","file":"cpuset.cpus","cgroup_id":81,"before":"0-7","want":"0-5"}}
//
// Restore finds /b at 0-5 or at 0-7: both are ours, and 0-7 is wanted. At 0-3 another program wrote it: Restore leaves it
// and reports it.
//
// Bad lines: a torn tail is the beginning of a line of ours without a newline. The next writer cuts it off, readers leave
// it out. Any other line with a wrong checksum is damaged: readers pass over it and count it. The next writer copies the
// journal as found to STATE/journal.jsonl.damaged-TIME and forces that to disk. Then it writes the journal again without
// the damaged lines and with a line "damage". It keeps at most 16 such files of 64 MB in all; people remove them. Beyond
// that the damaged lines stay in the journal.
//
// A journal of a later version is read as far as it is understood, and never written. Records and fields that this
// version does not know are copied byte for byte. Version 1 is the first.
//
// Limits: compaction puts a new file in the place of the old one. It keeps the open transactions, the last writes to
// their settings, and 1,000 ended transactions or 2 MB of them. It waits until most of the file is garbage, and as long as
// there are damaged lines. A line is at most 16 MB, a file 256 MB. Reserve finds a full disk before the first write rather
// than between two. Readers need no lock. On a network file system without flock the lock protects nothing. A line that is
// lost together with its newline leaves no trace. Only regular files are opened.
//
// Sources: design.md, Journal v1; kernfs ids: fs/kernfs/dir.c; flock(2), fallocate(2), fsync(2).
package journal
