// Package threadpool finds out which thread pool a thread belongs to, from little more than its name, and
// which setting sizes that pool.
//
// # Problem
//
// The kernel's events carry a thread id and 15 bytes that the thread chose (comm). "32 threads called
// http-nio-8080-e spent the quota" does not help. "Tomcat's pool, server.tomcat.threads.max, 200 by default"
// does.
//
// # Rule
//
//  1. [Fold] turns the numbers that distinguish threads of one pool into *: the result is the pool's name.
//     [Names] bounds how many names a process gets.
//  2. [Table.Match] looks a thread's name up in the table of known pools (pools.yaml, see [Known]). A comm
//     matches a full name in three ways: as it is, as its first 15 bytes, or as newer JDKs shorten it (the
//     first 7, "..", and the last 6). Many libraries name no thread, and comm is then the program's name. In
//     that case the executable, the command line, and the library that started the threads decide ([Process];
//     package identify reads it). An ambiguous name gives several rows, best first.
//  3. [Row.Advice] says in a sentence which setting sizes the pool, the library's default for n CPUs, and the
//     size that fits a limit.
//
// # Example
//
//	comm             folded            matches                              advice at a limit of 2 CPUs
//	GC Thread#11     GC Thread#*       HotSpot's parallel GC                -XX:ParallelGCThreads=2
//	nioEventLoopGro  nioEventLoopGro   Netty's NIO event loop, first 15     -Dio.netty.eventLoopThreads=2
//	nioEven..up-2-1  nioEven..up-*-*   the same, shortened by a newer JDK
//	python3          python3           started by libopenblas: OpenBLAS     OPENBLAS_NUM_THREADS=2
//
// # Limits
//
// A thread chooses its own name. A process can give its threads any names, and so mislead about itself, but
// about no other process. A name cannot separate pools that share it (all of Elasticsearch's, Kafka's two).
// Rayon's threads are visible only if the program's file shows that it contains Rayon.
//
// # Sources
//
// prctl(2), PR_SET_NAME: 16 bytes with the final 0. OpenJDK src/hotspot/os/linux/os_linux.cpp,
// os::set_native_thread_name: how it shortens a longer name. Each row of pools.yaml names its own source.
package threadpool
