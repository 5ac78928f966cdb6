// Package runtimes asks the container runtimes of this host what they call a container.
//
// # Problem
//
// Names and images are with the runtime: behind a socket that may hang, or in files below folders that the administrator
// may have moved. Nothing may depend on either, and none may hold up what is being measured.
//
// # Rule
//
// A source that was added ([Host.AddSource]) and has the name counts before all others. The agent adds what its NRI
// session knows. Otherwise there are up to three sources, the first that has a name counts:
//
//  1. The socket of Docker or Podman: one GET /containers/json for all containers, within Options.Timeout. A socket that
//     hangs or answers nonsense is left alone for ten minutes, and [Host.Warnings] says so.
//  2. The runtime's own files, found by the process that waits for the container (containerd-shim or conmon): the
//     parent of the container's first process. Its command line and working folder lead to config.json, and that to
//     Docker's folder, wherever they are. So names stay while dockerd is stopped.
//  3. The same files in their usual folders.
//
// Only reads are made. What was found is kept by id, up to 16,384 ids; what was not is looked for three times.
//
// # Example
//
// A process of /docker/52b9... has the parent "containerd-shim-runc-v2 -namespace moby -id 52b9...". config.json in the
// parent's working folder mounts /srv/docker/containers/52b9.../hostname, so that config.v2.json beside it has the name.
//
// # Limits
//
// containerd's socket speaks gRPC, whose library would double the size of this program; its files have the same names.
// Without root the files are unreadable. In a PID namespace of our own no parent is visible outside it.
//
// A process inside a container can call itself containerd-shim. So the monitor is the farthest ancestor of that name:
// a container's real monitor is an ancestor of everything in it.
//
// # Sources
//
// See package names; proc_pid_stat(5), proc_pid_cwd(5).
package runtimes
