// Package requests finds a container's requests in a recording, and where the time of the slowest went.
//
// # Problem
//
// The time from a thread's wake-up to its next sleep is a response of the thread. It is no request's: a request
// waits before its thread looks at it, other threads may work on it, and one run may answer many. Users ask why
// their requests are slow.
//
// # Rule
//
// A request is one exchange on a connection that a client outside the container opened. It begins when its data
// arrives at the socket, also while a quota stops the thread that will read it. It ends with the last write to that
// socket before the next data is read.
//
// Its time is split without gaps into segments. From the arrival to the read it waits for the thread that reads it:
// that thread runs for others ([Busy]), waits for a CPU ([Waited]), is held back by a quota ([Stopped]), or still
// sleeps ([Slept]). From the read to the last write the path is found backwards. It starts at the thread that wrote.
// Where that thread was woken by another thread of the container, the path goes on with the waker. Where anything
// else woke it, it slept before.
//
// # Worked example
//
// A main thread reads a log-in at 10 ms, wakes a worker at 11 ms and sleeps. The quota holds the worker back from
// 12 to 100 ms. It ends at 103 ms, wakes the main thread, and that writes at 104 ms. The data arrived at 8 ms, while
// the main thread answered others. The request took 96 ms: busy 2 ms, ran 1 ms (main), ran 1 ms (worker), stopped
// 88 ms (worker), ran 3 ms (worker), ran 1 ms (main).
//
// # Limits
//
//   - Connections are TCP and Unix streams; kernels before 6.3 do not show their reads and writes, and neither does
//     io_uring where it reads without the socket layer. There is no MPTCP.
//   - Of UDP a datagram to a server's socket is a request, and its answer a datagram to that client from that socket,
//     whichever thread sends it. Where a client waits for several, the first eight bytes tell which, by those that the server
//     is seen to repeat. Where they do not, because a client sent one again or begins all with the same bytes, none of these
//     requests has an answer; neither have the first few of a socket. Of one client 64 are followed, and of what waits at a socket the
//     last 128: beyond it the longest waits are not counted. Of a protocol that answers with many datagrams (QUIC)
//     the first counts. A datagram that is read at the moment it arrives may be unseen. Where clients in- and outside of the
//     container use one socket, the more frequent ones decide whether all of them count.
//   - A connection has one request at a time. Of pipelined or multiplexed ones (HTTP/2) the last read before a
//     write begins the request; Merged counts the others.
//   - A thread that was busy when work was queued for it was not woken for it: its path goes on with what it ran
//     before, back to the read. So a segment may be time in which it served another request.
//   - A wake-up in a device's interrupt names the interrupted thread as the waker.
//   - A client whose port was bound before connect(2) looks like a server's side.
package requests
