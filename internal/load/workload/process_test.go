package workload

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

const ms = time.Millisecond

func start(t *testing.T, s Spec) *Process {
	t.Helper()
	p, err := Start("", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

// patience bounds every wait; nothing is asserted on how long one took.
const patience = 30 * time.Second

// ends waits until the child has ended by itself: its records close.
func ends(t *testing.T, p *Process) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case _, ok := <-p.Records():
			if !ok {
				return
			}
		case <-late:
			t.Fatal("the child still runs")
		}
	}
}

func TestChildRecordsSleepsAndWork(t *testing.T) {
	require.Kernel(t)
	p := start(t, Spec{Burners: 3, Sleep: 5 * ms, Deadline: time.Minute})
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	var records []Record
	for len(records) < 20 {
		r, ok := <-p.Records()
		if !ok {
			t.Fatalf("ended after %d records: %v", len(records), p.Stop())
		}
		records = append(records, r)
	}
	for i, r := range records {
		if r.Took < 5*ms {
			t.Errorf("sleep %d took %v: no sleep is shorter than asked for", i, r.Took)
		}
		if i > 0 && (r.Start < records[i-1].Start+records[i-1].Took || r.Work < records[i-1].Work) {
			t.Errorf("record %d runs backwards: %+v after %+v", i, r, records[i-1])
		}
	}
	if records[19].Work == records[0].Work {
		t.Error("the burners did nothing")
	}
	if now := Now(); records[19].Start > now || now-records[19].Start > time.Hour {
		t.Errorf("starts are not on our clock: %v, now %v", records[19].Start, now)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopped by us: %v", err)
	}
	if err := unix.Kill(p.Pid(), 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("child %d after Stop: %v, want no such process", p.Pid(), err)
	}
}

func TestBurnersAreThreadsOfTheirOwn(t *testing.T) {
	require.Kernel(t)
	p := start(t, Spec{Burners: 40, Sleep: 10 * ms, Deadline: time.Minute})
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	<-p.Records()
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(p.Pid()) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) < 41 {
		t.Errorf("%d threads for 40 burners and a sleeper", len(tasks))
	}
}

func TestChildWaitsUntilLetGo(t *testing.T) {
	require.Kernel(t)
	p := start(t, Spec{Burners: 1, Sleep: ms, Deadline: time.Minute})
	select {
	case r := <-p.Records():
		t.Errorf("a record before Go: %+v", r)
	case <-time.After(100 * ms):
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestChildEndsAtItsDeadline(t *testing.T) {
	require.Kernel(t)
	p := start(t, Spec{Burners: 2, Sleep: 10 * ms, Deadline: 2 * time.Second})
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	ends(t, p) // though its pipe is still held
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

func TestChildEndsAtItsDeadlineBeforeItIsLetGo(t *testing.T) {
	require.Kernel(t)
	ends(t, start(t, Spec{Sleep: 10 * ms, Deadline: time.Second}))
}

func TestStartFailures(t *testing.T) {
	require.Kernel(t)
	if _, err := Start("/nonexistent", Spec{Sleep: ms, Deadline: time.Second}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no such file", err)
	}
}

func TestChildThatIsNoneSaysWhatItSaid(t *testing.T) {
	require.Kernel(t)
	p, err := Start("/bin/sh", Spec{Sleep: ms, Deadline: time.Second})
	if err == nil {
		ends(t, p)
		err = p.Stop()
	}
	if err == nil || !strings.Contains(err.Error(), ChildCommand) {
		t.Errorf("got %v, want the shell's words on %s", err, ChildCommand)
	}
}
