// Package spark asks questions of a fleet's rows by Apache Spark, in processes of its own.
//
// # Problem
//
// Rows of a large fleet are more than one machine can hold. Spark shares them among many. It answers a script, not a
// call: starting it takes seconds, and the driver's language is Python or one of the JVM.
//
// # Rule
//
// [Engine.Prepare] reads the descriptions at the end of the files, here, and leaves out those that cannot be read or
// lack a column. It writes all statements into one file and starts spark-submit with job.py. The job holds no logic of
// its own: it registers the files, runs the statements, and writes each answer as lines of JSON into a folder, from
// which [Engine.Ask] reads. Nothing passes a shell, and what is a stranger's is a value in that file, never a part of a
// statement.
//
// Spark skips the rest of a file that it cannot unpack (a worker that does not see a file fails instead). So the rows
// of each file are counted and compared with what the file says; one that lacks any is left out whole, and told, as
// package duckdb does.
//
// Spark's processes are a group of their own. It ends when Prepare does, also when Prepare is cancelled, and when this
// program is killed. The temporary folder has the job, the answers, Spark's log and what Spark keeps on a local disk;
// the caller removes it.
//
// # Limits
//
// The folder of rows must have the same path on every machine on which Spark runs. Spark does not see files whose names
// begin with a dot or an underscore, nor names with a colon, nor paths with a colon beside a character of patterns:
// they are left out, and told. Two unequal orders of adding up differ in the last digits of a sum.
package spark
