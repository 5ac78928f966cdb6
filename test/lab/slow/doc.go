// Package slow makes a guest's time run slower than the host's, so that its milliseconds mean something.
//
// Problem: the lab's guest has 16 CPUs that share two real ones. A guest CPU gets an eighth of the time that its clock
// shows. Bursts are charged time that they never ran, sleeps end late, and latencies mean nothing.
//
// Rule: the guest's clock runs K times slower than the host's. QEMU takes the time from clock_gettime and sleeps in poll;
// a preloaded library (preload/clock.c) divides the one and multiplies the other. The guest's kernel, its timers and its
// programs all live in the slower time.
//
// Example: with K = 20 a guest second takes 20 seconds of the host, in which two real CPUs have 40 s for 16 guest CPUs.
// Each has 2.5 s of the host per guest second. A slice of 3 ms on the host is 0.15 ms in the guest.
//
// Each guest is calibrated when it has booted: how fast a tight loop runs with one and with all CPUs busy, what a switch
// between two threads costs, how late a sleep ends. The host's share that others took is counted over the whole run. A
// run whose calibration is off says why.
//
// Limits: caches, memory bandwidth, hardware threads and NUMA distance have no effect in an emulator. How many
// instructions a guest CPU runs in a second depends on how many others are busy, so work must be given as CPU time. The
// time stamp counter is not slowed; the guest finds a counter that is K times as fast.
//
// Sources: QEMU's util/qemu-timer-common.c (get_clock) and util/qemu-timer.c (qemu_poll_ns); ld.so(8), LD_PRELOAD.
package slow
