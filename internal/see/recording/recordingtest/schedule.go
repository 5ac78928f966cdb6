// Package recordingtest builds recordings for tests from a schedule in a few lines:
//
//	s := recordingtest.New(4).Limit(200*ms, 100*ms)
//	w := s.Threads("http-worker", 8)
//	s.Repeat(10, 100*ms, func(at time.Duration) {
//		s.Work(at, 40*ms, w...)
//	})
//	r := s.Run(time.Second)
//
// Run is an ideal host. Every thread that wants a CPU gets the lowest free one. Quotas are exact, refills are on time,
// and threads that wait for CPUs run in turns of turn. Tests add by hand what such a host never does: [Schedule.Add].
package recordingtest

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// turn is how long a thread runs while others wait for its CPU.
const turn = 4 * time.Millisecond

// Ids of the cgroups of every schedule, and the first number of its processes.
const (
	ContainerID = 100
	parentID    = 90
	firstTGID   = 1000
)

// Schedule is a plan of events before Run.
type Schedule struct {
	header recording.Header
	cpus   int
	own    quota
	parent quota
	jobs   []job
	others []occupation
	extra  []recording.Event
	next   uint32
	owner  uint32
	near   []recording.Neighbour
	wakers map[uint32]waker  // by the thread that is woken
	born   map[uint32]string // names of processes that begin during the recording
	socket map[uint32]uint32 // by the thread that answers on it
	hold   bool              // the kernel shows which threads are held back
}

type quota struct {
	quota, period time.Duration
	id            uint64
}

// job is CPU time that a thread wants from a given time on.
type job struct {
	at   time.Duration
	tid  uint32
	work time.Duration
}

// occupation is a CPU that another owner holds.
type occupation struct {
	from, to time.Duration
	cpu      int
	owner    uint32
}

// New returns a host with that many CPUs, all of them allowed, an idle container on it, and no limits.
func New(cpus int) *Schedule {
	s := &Schedule{cpus: cpus, next: firstTGID, owner: recording.FirstOwner, hold: true, wakers: map[uint32]waker{},
		born: map[uint32]string{}}
	all := make([]int, cpus)
	for i := range all {
		all[i] = i
	}
	s.header = recording.Header{
		Version: recording.Version, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Host:   recording.Host{Kernel: "6.18.0", CPUs: cpuset.New(all...), HZ: new(250)},
		Target: recording.Target{Path: "/parent/container", ID: ContainerID, Name: "shop/cart"},
		Levels: []recording.Level{{Path: "/parent/container", ID: ContainerID, PeriodNS: 100_000_000},
			{Path: "/parent", ID: parentID, PeriodNS: 100_000_000}, {Path: "/", ID: 1}},
		CPUsAllowed: cpuset.New(all...),
		Features:    recording.Features{Mark: recording.MarkTask, Periods: true, Migrations: true},
	}
	return s
}

// Header returns the recording's header, for changes.
func (s *Schedule) Header() *recording.Header { return &s.header }

// Limit sets the container's own quota.
func (s *Schedule) Limit(q, period time.Duration) *Schedule {
	s.own = quota{q, period, ContainerID}
	s.header.Levels[0].QuotaNS, s.header.Levels[0].PeriodNS = new(q.Nanoseconds()), period.Nanoseconds()
	return s
}

// ParentLimit sets the quota of the cgroup above it.
func (s *Schedule) ParentLimit(q, period time.Duration) *Schedule {
	s.parent = quota{q, period, parentID}
	s.header.Levels[1].QuotaNS, s.header.Levels[1].PeriodNS = new(q.Nanoseconds()), period.Nanoseconds()
	return s
}

// Allow limits the container to some CPUs.
func (s *Schedule) Allow(cpus ...int) *Schedule {
	s.header.CPUsAllowed = cpuset.New(cpus...)
	return s
}

// Process begins a new process; its first thread has that name, and further threads belong to it.
func (s *Schedule) Process(name string) *Schedule {
	s.next = (s.next/100 + 1) * 100
	s.thread(name)
	return s
}

// Threads adds n sleeping threads "name-1" to "name-n".
func (s *Schedule) Threads(name string, n int) []uint32 {
	tids := make([]uint32, n)
	for i := range tids {
		tids[i] = s.thread(name + "-" + decimal(i+1))
	}
	return tids
}

func (s *Schedule) thread(comm string) uint32 {
	tid := s.next
	s.next++
	s.header.Threads = append(s.header.Threads, recording.Thread{
		TID: tid, TGID: tid / 100 * 100, Comm: comm, Cgroup: ContainerID,
	})
	return tid
}

// Main returns the first thread of the process that Process began last.
func (s *Schedule) Main() uint32 { return s.next / 100 * 100 }

// Title sets the command line of the process that Process or Child began last, as software sets it for its role.
func (s *Schedule) Title(title string) *Schedule {
	s.header.Processes = append(s.header.Processes, recording.Process{TGID: s.Main(), Cmdline: []string{title}})
	return s
}

// Child returns the only thread of a process that begins with its first work, and has that name.
func (s *Schedule) Child(name string) uint32 {
	s.next = (s.next/100 + 1) * 100
	tid := s.next
	s.next++
	s.born[tid] = name
	return tid
}

// waker is a thread of the container, or else an owner.
type waker struct{ thread, owner uint32 }

// WokenBy lets a thread of the container wake these, Client an owner, such as [recording.Kernel] for timers. Other
// threads are woken by devices.
func (s *Schedule) WokenBy(thread uint32, tids ...uint32) {
	for _, tid := range tids {
		s.wakers[tid] = waker{thread: thread}
	}
}

// Client lets an owner wake these threads: see WokenBy.
func (s *Schedule) Client(owner uint32, tids ...uint32) {
	for _, tid := range tids {
		s.wakers[tid] = waker{owner: owner}
	}
}

// Answers lets each work of these threads be a request that they answer: they read it when they get a CPU, and write when
// it is done. What is asked of a thread that still works is no request of its own.
func (s *Schedule) Answers(tids ...uint32) {
	s.header.Features.Sockets = true
	if s.socket == nil {
		s.socket = map[uint32]uint32{}
	}
	for _, tid := range tids {
		s.socket[tid] = uint32(len(s.socket) + 1)
	}
}

// Outsider adds a process outside of any container, for Occupy and Client.
func (s *Schedule) Outsider(name string) uint32 {
	n := s.owner
	s.owner++
	s.extra = append(s.extra, recording.Event{Kind: recording.Define, Owner: n, OwnerKind: recording.OwnerProcess, Text: name})
	return n
}

// Recorder adds the process that made the recording, for Occupy.
func (s *Schedule) Recorder() uint32 {
	n := s.Outsider("unthrottle")
	s.header.Recorder = 1<<22 + 1
	s.extra[len(s.extra)-1].TGID = s.header.Recorder
	return n
}

// Work gives each of the threads CPU time to use, from a given time on.
func (s *Schedule) Work(at, work time.Duration, tids ...uint32) {
	for _, tid := range tids {
		s.jobs = append(s.jobs, job{at, tid, work})
	}
}

// Repeat calls f for n times that are every apart, from 0.
func (s *Schedule) Repeat(n int, every time.Duration, f func(at time.Duration)) {
	for i := range n {
		f(time.Duration(i) * every)
	}
}

// Neighbour adds another container and returns its number for Occupy.
func (s *Schedule) Neighbour(name, path string, periods, throttled *uint64) uint32 {
	n := s.owner
	s.owner++
	s.extra = append(s.extra, recording.Event{Kind: recording.Define, Owner: n, OwnerKind: recording.OwnerContainer,
		Text: name, Cgroup: uint64(n)})
	s.near = append(s.near, recording.Neighbour{Owner: n, Name: name, Path: path, Periods: periods, ThrottledPeriods: throttled})
	return n
}

// Occupy lets another owner hold a CPU without interruption.
func (s *Schedule) Occupy(from, to time.Duration, cpu int, owner uint32) {
	s.others = append(s.others, occupation{from, to, cpu, owner})
}

// Add adds events as they are, after those of the schedule at the same time.
func (s *Schedule) Add(events ...recording.Event) { s.extra = append(s.extra, events...) }

// HideThrottling makes a kernel that does not show which threads are held back.
func (s *Schedule) HideThrottling() *Schedule {
	s.hold = false
	s.header.Features.Mark = ""
	return s
}

// Run runs the schedule and returns its recording.
func (s *Schedule) Run(length time.Duration) recording.Recording {
	h := newHost(s)
	h.run(length)
	events := slices.Concat(h.events, s.extra)
	slices.SortStableFunc(events, func(x, y recording.Event) int {
		return cmp.Or(cmp.Compare(x.AtNS, y.AtNS), cmp.Compare(order(x.Kind), order(y.Kind)))
	})
	return recording.Recording{Header: s.header, Events: events, Footer: h.footer(length)}
}

// order sorts events of one time: definitions come first.
func order(k recording.Kind) int {
	if k == recording.Define {
		return 0
	}
	return 1
}

func decimal(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return decimal(n/10) + string(rune('0'+n%10))
}
