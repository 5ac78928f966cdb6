package loadgen

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
)

// local sends to a service of our own, from one thread: it sleeps until the next
// request is due or an answer comes.
type local struct {
	*tracker
	coming  *schedule
	start   time.Duration
	conns   sockets // of the first shard, then of the next one
	turn    int
	shards  *shards
	flying  map[uint64]flight
	timers  timers
	blocked [][]uint64 // by shard: requests that its socket did not take
	client  uint32     // by chance: tells our answers from those to a client before us
}

// flight is a request on its way.
type flight struct {
	arrival
	tried int // tries so far
	shard int // that has the try
	sent  time.Duration
	// waiting: the next try has not been sent yet.
	waiting bool
}

// timer is when something is to be done about a request: its try is given up,
// or the next one sent.
type timer struct {
	at     time.Duration
	number uint64
	tried  int // of the flight when it was set; else it is out of date
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}

// runLocal runs a plan against a service's address.
func runLocal(p Plan) (Result, error) {
	runtime.LockOSThread()
	g := &local{tracker: newTracker(p), coming: newSchedule(p), flying: map[uint64]flight{}, client: rand.Uint32(), shards: newShards(p)}
	defer func() { g.conns.close() }() // those that there are then
	addrs := []string{p.Addr}
	if p.Shards != nil {
		addrs = p.Shards.Addrs
	}
	g.blocked = make([][]uint64, len(addrs))
	for _, addr := range addrs {
		for range p.Connections {
			if err := g.conns.connect(addr); err != nil {
				return Result{}, err
			}
		}
	}
	realTime := becomeRealTime()
	g.start = p.Start
	if g.start == 0 {
		g.start = workload.Now()
	}
	cpu := ownTime()
	if err := g.run(); err != nil {
		return Result{}, err
	}
	took := max(0, g.now())
	result := g.finish(took, ownTime()-cpu, realTime)
	result.Shards = g.shards.finish(took)
	return result, nil
}

func (g *local) now() time.Duration { return workload.Now() - g.start }

// run sends and receives until all is answered or the time is over.
func (g *local) run() error {
	end := g.plan.Duration() + g.plan.Drain
	for {
		now := g.now()
		for g.coming.peek() <= now {
			a, _ := g.coming.next()
			g.begin(a, now-a.at)
			if len(g.flying) >= maxInFlight {
				g.of(a).Unsent++
			} else {
				g.send(a.number, flight{arrival: a}, now)
			}
			now = g.now()
		}
		g.fire(now)
		g.unblock(now)
		if now >= end || g.coming.peek() == never && len(g.flying) == 0 {
			for _, f := range g.flying {
				g.unfinished(f.arrival, now)
				if f.waiting {
					continue
				}
				if r := g.shards.count(now, f.sent, f.shard, g.measured(f.arrival)); r != nil {
					r.Unfinished++
				}
			}
			return nil
		}
		until := min(end, g.coming.peek())
		if len(g.timers) > 0 {
			until = min(until, g.timers[0].at)
		}
		if g.anyBlocked() {
			until = min(until, now+time.Millisecond)
		}
		if err := g.conns.receive(max(0, until-g.now()), g.take); err != nil {
			return err
		}
	}
}

// send makes the next try of a request; false: the socket did not take it.
func (g *local) send(number uint64, f flight, now time.Duration) bool {
	request := service.Request{Number: number, Try: uint8(f.tried), Class: g.plan.Streams[f.stream].Class, Client: g.client}
	f.shard = g.shards.pick(now, number)
	at := f.shard*g.plan.Connections + g.turn%g.plan.Connections
	g.turn++
	if !g.conns.send(at, request) {
		// The service does not read: the request waits here, and its clock runs.
		f.waiting = true
		g.flying[number] = f
		g.blocked[f.shard] = append(g.blocked[f.shard], number)
		return false
	}
	g.shards.sent(f.shard)
	f.tried++
	f.waiting, f.sent = false, now
	g.flying[number] = f
	g.try(f.arrival, now)
	if g.plan.Timeout > 0 {
		heap.Push(&g.timers, timer{now + g.plan.Timeout, number, f.tried})
	}
	return true
}

func (g *local) anyBlocked() bool {
	return slices.ContainsFunc(g.blocked, func(of []uint64) bool { return len(of) > 0 })
}

// unblock tries again what sockets did not take.
func (g *local) unblock(now time.Duration) {
	for shard, blocked := range g.blocked {
		g.blocked[shard] = nil
		for i, number := range blocked {
			if f, ok := g.flying[number]; ok && f.waiting && !g.send(number, f, now) {
				// Full again.
				g.blocked[shard] = append(g.blocked[shard], blocked[i+1:]...)
				break
			}
		}
	}
}

// fire starts the tries, timeouts and retries that are due.
func (g *local) fire(now time.Duration) {
	for len(g.timers) > 0 && g.timers[0].at <= now {
		t := heap.Pop(&g.timers).(timer)
		f, ok := g.flying[t.number]
		switch {
		case !ok || f.tried != t.tried:
		case f.waiting:
			g.send(t.number, f, now)
		default:
			g.of(f.arrival).TimedOut++
			if r := g.shards.ended(now, f.sent, f.shard, false, g.measured(f.arrival)); r != nil {
				r.TimedOut++
			}
			g.failure(fmt.Sprintf("no answer within %v", g.plan.Timeout))
			g.lost(t.number, f, now)
		}
	}
}

// lost is a try that came to nothing.
func (g *local) lost(number uint64, f flight, now time.Duration) {
	after, ok := g.again(f.tried)
	if !ok {
		g.failed(f.arrival, now)
		delete(g.flying, number)
		return
	}
	f.waiting = true
	g.flying[number] = f
	heap.Push(&g.timers, timer{now + after, number, f.tried})
}

// take is one answer. It drops an answer to a try that was given up. It also drops
// one that belongs to an earlier client, whose connection had the same descriptor in
// the service.
func (g *local) take(a service.Answer) {
	f, ok := g.flying[a.Number]
	if !ok || a.Client != g.client || f.waiting || uint8(f.tried-1) != a.Try {
		return
	}
	now := g.now()
	r := g.shards.ended(now, f.sent, f.shard, a.Status == service.Served, g.measured(f.arrival))
	if a.Status == service.Served {
		if r != nil {
			r.Answered++
		}
		g.answered(f.arrival, now)
		delete(g.flying, a.Number)
		return
	}
	if r != nil {
		r.Refused++
	}
	g.of(f.arrival).Refused++
	g.failure("refused: a queue of the service was full")
	g.lost(a.Number, f, now)
}
