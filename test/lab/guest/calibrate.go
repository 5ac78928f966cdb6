package guest

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// How long each part of a calibration takes, in guest time, and how many sleeps it counts.
const (
	loopFor = 50 * time.Millisecond
	sleeps  = 31
	turns   = 200
)

// calibrate measures how fast this machine is by its own clock.
func calibrate() wire.Speed {
	cpus := runtime.NumCPU()
	return wire.Speed{LoopRateOne: loopRate(1), LoopRateAll: loopRate(cpus), SwitchNs: switchNs(), SleepLateUs: sleepLateUs()}
}

// loopRate returns rounds of a tight loop per second and CPU with so many CPUs busy.
func loopRate(cpus int) float64 {
	var wg sync.WaitGroup
	rates := make([]float64, cpus)
	for i := range rates {
		wg.Go(func() {
			runtime.LockOSThread()
			var set unix.CPUSet
			set.Set(i)
			_ = unix.SchedSetaffinity(0, &set) // without it the loops share CPUs, and the rate says so
			rates[i] = loop()
		})
	}
	wg.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum / float64(cpus)
}

// loop counts rounds per second of wall time for loopFor.
func loop() float64 {
	rounds, x := 0, uint64(1)
	start := time.Now()
	for time.Since(start) < loopFor {
		for range 1000 {
			x = x*6364136223846793005 + 1442695040888963407
		}
		rounds += 1000
	}
	runtime.KeepAlive(x)
	return float64(rounds) / time.Since(start).Seconds()
}

// switchNs returns what handing a byte from one thread to another on the same CPU costs, per switch; 0: it could not be
// measured.
func switchNs() float64 {
	var there, back [2]int
	if unix.Pipe2(there[:], unix.O_CLOEXEC) != nil || unix.Pipe2(back[:], unix.O_CLOEXEC) != nil {
		return 0
	}
	defer func() {
		for _, fd := range append(there[:], back[:]...) {
			_ = unix.Close(fd)
		}
	}()
	pass := func(from, to int) {
		runtime.LockOSThread()
		var set unix.CPUSet
		set.Set(0)
		_ = unix.SchedSetaffinity(0, &set)
		b := make([]byte, 1)
		for range turns {
			if n, err := unix.Read(from, b); n != 1 || err != nil {
				return
			}
			if _, err := unix.Write(to, b); err != nil {
				return
			}
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { pass(there[0], back[1]) })
	start := time.Now()
	if _, err := unix.Write(there[1], []byte{1}); err != nil {
		return 0
	}
	wg.Go(func() { pass(back[0], there[1]) })
	wg.Wait()
	return float64(time.Since(start).Nanoseconds()) / (2 * turns)
}

// sleepLateUs returns the median by which sleeps of 1 ms end late.
func sleepLateUs() float64 {
	const asked = time.Millisecond
	var late []time.Duration
	for range sleeps {
		start := time.Now()
		ts := unix.NsecToTimespec(int64(asked))
		_ = unix.Nanosleep(&ts, nil) // a signal makes one early, and the median ignores it
		late = append(late, time.Since(start)-asked)
	}
	slices.Sort(late)
	return float64(late[len(late)/2].Microseconds())
}
