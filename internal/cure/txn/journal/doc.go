// Package journal keeps on disk what every changed setting was and what was written to it, before it is written
// (Journal v1). It knows nothing of remedies, and does not touch a setting itself.
//
// Problem: a process that changes settings of a running machine may be killed between any two writes, the disk may be
// full, the machine may restart, two such processes may run at once. Whoever comes later must know which values are
// ours to take back, and what they were.
//
// Rule: a transaction is a line "begin" with every setting it will hold and the value each had; then for each single
// write a line "write" (before, want, cgroup id, boot id), forced to disk, then the write itself, then a line "done"
// with the value as read back; then "commit". Taking back is the same way round: "release", writes, "close". From the
// lines follows, at any point at which they may end, for each setting:
//
//   - who holds it: transactions begun, not released, whose hold no stranger's write has voided;
//   - what it was originally: what the first of the open holders found;
//   - which values are ours: the one read back after the last write; without "done", the ones before and wanted.
//
// Nothing is replayed. Package apply compares what is there with what is ours and writes the fold of the original with
// the remaining holders.
//
// On disk: STATE/journal.jsonl, one object per line, {"crc":"1a2b3c4d","rec":{...}}, CRC-32C over the bytes of rec as
// they stand. STATE/lock is locked with flock(2) and holds the writer's PID for people; the kernel drops the lock of a
// dead process. The directory has mode 0700, the files 0600; a directory that others can write to is refused.
//
// Worked example (shortened). A pin shrinks /b from 0-7 to 0-5 and is killed before the read-back:
//
//	{"begin":{"txn":"T","holds":[{"path":"/b","file":"cpuset.cpus","cgroup_id":81,"op":"remove_cpus","to":"6-7","original":"0-7"}]}}
//	{"write":{"n":1,"txn":"T","path":"/b","file":"cpuset.cpus","cgroup_id":81,"before":"0-7","want":"0-5"}}
//
// Restore finds /b at 0-5 or at 0-7: both are ours, and 0-7 is wanted. At 0-3 a stranger was there: left and reported.
//
// When lines are bad: a torn tail (no newline, and the beginning of a line of ours) is cut off by the next writer and
// left out by readers. Any other line whose checksum does not fit is damaged: passed over and counted. The next writer
// copies the journal as it was found to STATE/journal.jsonl.damaged-TIME, forces that to disk, and writes the journal
// again without those lines and with a line "damage" that says so. At most 16 such files of 64 MB in all are kept, and
// people remove them; where there is no room the damaged lines stay in the journal.
//
// A journal of a later version is read as far as it is understood and never written; records and fields that this
// version does not know are copied to the letter. Version 1 is the first.
//
// Limits: compaction (a new file put in place of the old one as a whole) keeps what is open, the last writes to what
// that holds, and 1,000 ended transactions or 2 MB of them. It waits until most of the file is garbage, and as
// long as there are damaged lines. A line is at most 16 MB, a file 256 MB. Reserve makes a full
// disk show before the first write rather than between two. Readers need no lock. A state directory on a network file
// system without flock protects nothing. A line lost as a whole, with its newline, leaves no trace. What is no regular
// file is not opened.
//
// Sources: design.md, Journal v1; kernfs ids: fs/kernfs/dir.c; flock(2), fallocate(2), fsync(2).
package journal
