package recordingtest

import (
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Hostile is what a container makes very many of, to cost whoever reads its recording memory.
type Hostile int

// The kinds of hostile containers.
const (
	// Names are of a few hundred threads that change them all the time.
	Names Hostile = iota
	// Processes are born, run and end one after the other.
	Processes
	// Crowd are threads that are all there at the end.
	Crowd
	// Cgroups are below the container, with a quota each, and beside it: their threads run on its CPUs.
	Cgroups
	// Sockets each have a request and its answer.
	Sockets
	// Everything is n of each at once, where every other thread ends.
	Everything
)

// Hostiles are all kinds, with their names.
var Hostiles = map[string]Hostile{
	"names": Names, "processes": Processes, "crowd": Crowd, "cgroups": Cgroups, "sockets": Sockets, "everything": Everything,
}

// hostileLength is how long a hostile recording is, and hostileCPUs how many CPUs its host has.
const (
	hostileLength = 10 * time.Second
	hostileCPUs   = 4
)

// First numbers of what a hostile container makes.
const (
	hostileServers = 2000
	hostileNamed   = 3000
	hostileBorn    = 100_000
	hostileCgroup  = 1 << 32
)

// WriteHostile writes the recording of a container that makes n of something in ten seconds.
func WriteHostile(to io.Writer, what Hostile, n int) error {
	s := New(hostileCPUs).Limit(200*time.Millisecond, 100*time.Millisecond).Process("app")
	s.header.Features.Sockets = true
	w, err := recording.NewWriter(to, s.header)
	if err != nil {
		return err
	}
	h := &hostile{w: w, every: hostileLength.Nanoseconds() / int64(n)}
	for c := range int32(hostileCPUs) {
		h.tell(recording.Event{Kind: recording.Switch, CPU: c})
	}
	for i := range n {
		h.at = int64(i) * h.every
		if what != Everything {
			h.make(what, i)
			continue
		}
		for _, kind := range []Hostile{Names, []Hostile{Processes, Crowd}[i%2], Cgroups, Sockets} {
			h.make(kind, i)
		}
	}
	if h.err != nil {
		return h.err
	}
	return w.Close(recording.Footer{EndNS: hostileLength.Nanoseconds()})
}

// hostile writes the events.
type hostile struct {
	w     *recording.Writer
	at    int64
	every int64
	err   error
}

func (h *hostile) tell(e recording.Event) {
	e.AtNS = h.at
	if h.err == nil {
		h.err = h.w.Write(&e)
	}
}

// run has a thread that sleeps run for a tenth of an item's time, between two events on its CPU.
func (h *hostile) run(tid uint32, flags recording.Flags, meanwhile func()) {
	cpu := int32(tid % hostileCPUs)
	h.tell(recording.Event{Kind: recording.Wakeup, Thread: tid, CPU: cpu, Owner: recording.Kernel, Flags: flags})
	h.tell(recording.Event{Kind: recording.Switch, CPU: cpu, NextThread: tid})
	h.at += h.every / 10
	meanwhile()
	h.tell(recording.Event{Kind: recording.Switch, CPU: cpu, Thread: tid})
}

func (h *hostile) make(what Hostile, i int) {
	nothing := func() {}
	number := uint32(i)
	switch what {
	case Names:
		tid := hostileNamed + number%400
		h.tell(recording.Event{Kind: recording.Name, Thread: tid, TGID: tid, Text: letters("n", i), Cgroup: ContainerID})
		h.run(tid, 0, nothing)
	case Processes:
		tid := hostileBorn + 2*number
		h.tell(recording.Event{Kind: recording.Name, Thread: tid, TGID: tid, Text: letters("p", i), Cgroup: ContainerID})
		h.run(tid, recording.New, func() { h.tell(recording.Event{Kind: recording.Exit, Thread: tid}) })
	case Crowd:
		tid := hostileBorn + 2*number + 1
		h.tell(recording.Event{Kind: recording.Name, Thread: tid, TGID: tid - number%50, Text: letters("t", i), Cgroup: ContainerID})
		h.run(tid, recording.New, nothing)
	case Cgroups:
		tid, id, owner := hostileServers+number%100, uint64(hostileCgroup+i), recording.FirstOwner+number
		h.tell(recording.Event{Kind: recording.Define, Owner: owner, OwnerKind: recording.OwnerContainer, Text: "/" +
			letters("beside", i), Cgroup: id})
		h.tell(recording.Event{Kind: recording.Enter, Thread: tid, TGID: tid, Text: letters("c", i%100), Cgroup: id})
		h.tell(recording.Event{Kind: recording.Period, Cgroup: id, Period: recording.PeriodState{QuotaNS: 1e6, Periods: number}})
		h.run(tid, 0, nothing)
		h.tell(recording.Event{Kind: recording.Switch, CPU: int32(tid % hostileCPUs), NextOwner: owner})
		h.at += h.every / 10
		h.tell(recording.Event{Kind: recording.Switch, CPU: int32(tid % hostileCPUs), Owner: owner})
	case Sockets:
		tid := hostileServers + 200 + number%8
		h.run(tid, 0, func() {
			h.tell(recording.Event{Kind: recording.Receive, Thread: tid, Socket: number + 1, Count: 1000})
			h.at += h.every / 100
			h.tell(recording.Event{Kind: recording.Send, Thread: tid, Socket: number + 1})
		})
	}
}

// letters is a name of its own for each number, without digits: names that differ by digits alone are of one pool.
func letters(prefix string, i int) string {
	name := []byte(prefix + "-")
	for range 5 {
		name = append(name, byte('a'+i%26))
		i /= 26
	}
	return string(name)
}
