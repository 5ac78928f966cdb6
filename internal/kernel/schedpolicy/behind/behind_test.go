package behind

import (
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy/schedhost"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// policies counts the threads of this process by their policy's class.
func policies(t *testing.T) map[string]int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, name := range tasks {
		tid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		if p, err := schedhost.New("/proc").Read(tid); err == nil {
			all[p.Class]++
		}
	}
	return all
}

// onThreads runs so many goroutines, each on a thread of its own, until the function that it returns is called.
func onThreads(n int) (end func()) {
	begun, over := make(chan bool), make(chan bool)
	for range n {
		go func() {
			runtime.LockOSThread()
			begun <- true
			<-over
		}()
		<-begun
	}
	return func() { close(over) }
}

// All threads run behind others, those too that begin meanwhile, and all are as before in the end.
func TestOthers(t *testing.T) {
	require.Root(t)
	cpus := runtime.GOMAXPROCS(0)
	defer onThreads(3)()
	end := Others(time.Hour)
	defer onThreads(3)()
	if now := policies(t); now["other"] > 0 || now["idle"] < 6 {
		t.Errorf("while it gives way: %v", now)
	}
	if n := runtime.GOMAXPROCS(0); n != min(cpus, CPUs(runtime.NumCPU())) {
		t.Errorf("on %d CPUs", n)
	}
	if !end() {
		t.Error("its patience of an hour is over")
	}
	if now := policies(t); now["idle"] > 0 || now["other"] < 6 {
		t.Errorf("in the end: %v", now)
	}
	if n := runtime.GOMAXPROCS(0); n != cpus {
		t.Errorf("on %d CPUs, and was on %d", n, cpus)
	}
}

// Once its patience is over it has its policy back, and stays on few CPUs.
func TestPatience(t *testing.T) {
	require.Root(t)
	end := Others(0)
	for now := policies(t); now["idle"] > 0; now = policies(t) {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.GOMAXPROCS(0); n > CPUs(runtime.NumCPU()) {
		t.Errorf("on %d CPUs", n)
	}
	if end() {
		t.Error("it does not say that its patience is over")
	}
}

// A thread with a policy that somebody chose keeps it.
func TestChosenPolicyStays(t *testing.T) {
	require.Root(t)
	kept := make(chan string)
	go func() {
		runtime.LockOSThread()
		p, err := schedhost.New("/proc").Read(unix.Gettid())
		if err != nil {
			kept <- err.Error()
			return
		}
		p.Class = "batch"
		if err := schedhost.New("/proc").Write(unix.Gettid(), p); err != nil {
			kept <- err.Error()
			return
		}
		end := Others(time.Hour)
		during, _ := schedhost.New("/proc").Read(unix.Gettid())
		end()
		after, _ := schedhost.New("/proc").Read(unix.Gettid())
		kept <- during.Class + " " + after.Class
	}()
	if got := <-kept; got != "batch batch" {
		t.Errorf("%q", got)
	}
}

func TestCPUs(t *testing.T) {
	for host, want := range map[int]int{1: 1, 2: 1, 7: 1, 8: 2, 64: 16} {
		if got := CPUs(host); got != want {
			t.Errorf("%d of %d", got, host)
		}
	}
}
