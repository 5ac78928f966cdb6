// Package identify asks a process what its threads are for.
//
// # Problem
//
// A thread's comm often says too little: unnamed threads bear the program's name, and a JVM cuts its names to 15 bytes.
// The program's file, its mapped libraries and its command line say more, and a JVM knows the full names. But all of
// that belongs to a stranger, who may run as another user, in other namespaces, with files of any size and content.
//
// # Rule
//
// [Look] only reads /proc: bounded, and never following a path that the process names; such paths are text.
//
// [JVM] speaks to the process, which stops it at a safepoint for a moment: for users who ask for that, never for an
// agent. It speaks HotSpot's attach protocol itself, as the process's own user, so that the target needs no jcmd and
// gets nothing from us that its own user could not do. The order of things:
//
//  1. The process must be HotSpot (libjvm.so is mapped) and catch SIGQUIT: any other would die of that signal.
//  2. The socket is /tmp/.java_pidN, looked up below the process's own root, N being its number in its own PID
//     namespace. The look-up stays below that root whatever links it meets (openat2, RESOLVE_IN_ROOT).
//  3. Where there is none, the file /tmp/.attach_pidN and SIGQUIT make the JVM open it.
//  4. We connect with the process's effective user and group, as the JVM refuses all others, and ask for a thread dump.
//  5. Thread numbers of its PID namespace are turned into ours; numbers that are no threads of it are dropped.
//
// # Limits
//
// [JVM] takes at most [Timeout]: a container that its quota has stopped may not answer in that time. It works for
// HotSpot 8 and later, not for OpenJ9 and native images; nor with -XX:+DisableAttachMechanism, where the signal makes the
// JVM write a thread dump to its own standard output instead. A JVM that was attached to keeps a thread and the socket.
//
// # Sources
//
// OpenJDK src/hotspot/os/posix/attachListener_posix.cpp (AttachListener::is_init_trigger, PosixAttachListener::dequeue:
// the checks of users and the request), src/jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java; proc(5),
// openat2(2), pidfd_open(2), setresuid(2).
package identify
