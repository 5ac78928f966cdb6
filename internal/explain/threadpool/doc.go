// Package threadpool says which thread pool a thread belongs to, from little more than its name, and which setting sizes
// that pool.
//
// # Problem
//
// The kernel's events carry a thread id and 15 bytes that the thread chose (comm). "32 threads called http-nio-8080-e
// spent the quota" helps nobody; "Tomcat's pool, server.tomcat.threads.max, 200 by default" does.
//
// # Rule
//
//  1. [Fold] turns the numbers that tell threads of one pool apart into *: the pool's name. [Names] bounds how many of
//     them a process gets.
//  2. [Table.Match] looks a thread's name up in the table of known pools (pools.yaml, see [Known]). A comm matches a
//     full name in any of three ways: as it is, as its first 15 bytes, or as newer JDKs shorten it: the first 7, "..",
//     and the last 6. Where a name says too little (many libraries name no thread, and comm is then the program's name)
//     the executable, mapped libraries and the command line decide ([Process]; read by package ask). What stays
//     ambiguous gives several rows, best first.
//  3. [Row.Size] is the library's default for n CPUs, [Row.Fit] what fits a limit, [Row.Advice] both in a sentence.
//
// # Example
//
//	comm             folded            matches                              advice at a limit of 2 CPUs
//	GC Thread#11     GC Thread#*       HotSpot's parallel GC                -XX:ParallelGCThreads=2
//	nioEventLoopGro  nioEventLoopGro   Netty's NIO event loop, first 15     -Dio.netty.eventLoopThreads=2
//	nioEven..up-2-1  nioEven..up-*-*   the same, shortened by a newer JDK
//	python3          python3           with libopenblas mapped: OpenBLAS    OPENBLAS_NUM_THREADS=2
//
// # Limits
//
// A name is what its thread says it is: a process can call its threads anything, and thereby mislead about itself, but
// about no other process. Pools that share a name (all of Elasticsearch's, Kafka's two) cannot be told apart by it.
// Rayon's threads are seen only where the program's file betrays that it holds Rayon.
//
// # Sources
//
// prctl(2), PR_SET_NAME: 16 bytes with the final 0. OpenJDK src/hotspot/os/linux/os_linux.cpp,
// os::set_native_thread_name: how a longer name is shortened. Each row of pools.yaml names its own.
package threadpool
