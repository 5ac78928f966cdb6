// Package identify asks a process about its threads.
//
// # Problem
//
// A thread's comm often says too little: unnamed threads have the program's name, and a JVM cuts its names to
// 15 bytes. The program's file, its mapped libraries and its command line say more, and a JVM knows the full
// names. But all of that belongs to an untrusted process. It may run as another user, in other namespaces,
// with files of any size and content.
//
// # Rule
//
// [Look] only reads /proc. Its reads are bounded. It never follows a path that the process names; such paths
// are text.
//
// [Budget] reads the one file that a process names for that: by the variable UNTHROTTLE_BUDGET_FILE, or by the option of
// the project's Java agent. The look-up stays below the process's own root (openat2, RESOLVE_IN_ROOT). The file must be a
// plain one of the process's own user, must name the process by its number and its start, and is bounded in size and time.
// What it says is a claim of the process about itself.
//
// [PerfData] reads a HotSpot JVM's performance data, which it keeps in a mapped file below its /tmp, under the same rules: its
// version, options, collector, and how many threads it compiles with. The JVM takes no part in that. It does not say there how
// many processors it sees, or how many threads its collector has.
//
// [JVM] talks to the process, which stops it at a safepoint for a moment. It is for users who ask for that,
// never for an agent. It implements HotSpot's attach protocol and acts as the process's own user. So the
// target needs no jcmd, and we can do no more to it than its own user. The steps:
//
//  1. The process must be HotSpot (libjvm.so is mapped) and catch SIGQUIT: any other process would die of
//     that signal.
//  2. The socket is /tmp/.java_pidN below the process's own root, where N is its number in its own PID
//     namespace. The look-up stays below that root whatever links it meets (openat2, RESOLVE_IN_ROOT).
//  3. If there is no socket, the file /tmp/.attach_pidN and SIGQUIT make the JVM open it.
//  4. We connect with the process's effective user and group, because the JVM refuses all others, and request
//     a thread dump.
//  5. We translate thread numbers of its PID namespace into ours, and drop numbers that are no threads of it.
//
// # Limits
//
// [JVM] takes at most [Timeout]; a container that its quota has stopped may not answer in that time. It works
// for HotSpot 8 and later, not for OpenJ9 and native images. With -XX:+DisableAttachMechanism the signal
// instead makes the JVM write a thread dump to its own standard output. An attached JVM keeps a thread and
// the socket.
//
// # Sources
//
// OpenJDK src/hotspot/share/runtime/perfMemory.hpp and perfData.hpp (PerfDataPrologue, PerfDataEntry),
// src/hotspot/os/posix/attachListener_posix.cpp (AttachListener::is_init_trigger,
// PosixAttachListener::dequeue: the checks of users and the request),
// src/jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java; proc(5), openat2(2), pidfd_open(2),
// setresuid(2).
package identify
