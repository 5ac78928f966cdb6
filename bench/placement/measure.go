package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// result is what one allocator did with one stream, or with several.
type result struct {
	arrivals  int
	avoidable int // arrivals that crossed avoidably, at any level
	// Sums over the states after each arrival. Of the containers, odd are those of whose number of CPUs no whole cores can be made.
	containers, crossings, sharing, stranded, odd int
	// Of repairs.
	moves, recovered int
	times            []time.Duration
}

func (r *result) add(o *result) {
	r.arrivals += o.arrivals
	r.avoidable += o.avoidable
	r.containers += o.containers
	r.crossings += o.crossings
	r.sharing += o.sharing
	r.stranded += o.stranded
	r.odd += o.odd
	r.moves += o.moves
	r.recovered += o.recovered
	r.times = append(r.times, o.times...)
}

// quantile of the times.
func (r *result) quantile(q float64) time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	slices.Sort(r.times)
	return stats.Rank(r.times, q)
}

// note takes down the state after an arrival, which took so long.
func (r *result) note(m machine, n *placement.Node, newcomer placement.Handle, took time.Duration, requests []request,
	live map[int]placement.Handle) {
	r.arrivals++
	if _, avoidable := n.Excess(newcomer); avoidable[0] > 0 || avoidable[1] > 0 || avoidable[2] > 0 {
		r.avoidable++
	}
	for _, at := range crossings(n) {
		r.crossings += at
	}
	s := n.Score()
	r.sharing += s.Sharing
	r.stranded += s.Stranded
	r.containers += len(live)
	r.odd += oddOf(m, requests, live)
	r.times = append(r.times, took)
}

// runPeer gives a stream to a peer; a node of ours looks on as the judge.
func runPeer(m machine, p peer, requests []request) (*result, error) {
	judge, _, err := placement.NewNode(placement.State{Machine: m.topology})
	if err != nil {
		return nil, err
	}
	r := &result{}
	free := m.topology.Online().Difference(m.topology.Isolated())
	has := map[int]cpuset.CPUSet{}
	handles := map[int]placement.Handle{}
	for i, req := range requests {
		for _, gone := range req.leave {
			free = free.Union(has[gone])
			if h, ok := handles[gone]; ok {
				judge.Leave(h)
			}
			delete(handles, gone)
			delete(has, gone)
		}
		start := workload.ThreadTime()
		got, err := p.take(free, req.size)
		took := workload.ThreadTime() - start
		if err != nil || got.Size() != req.size || !got.IsSubsetOf(free) {
			continue // refused
		}
		free = free.Difference(got)
		has[i] = got
		h, err := judge.Adopt(placement.Container{Name: strconv.Itoa(i), CPUs: float64(req.size), Current: got})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		handles[i] = h
		if req.warm {
			r.note(m, judge, h, took, requests, handles)
		}
	}
	return r, nil
}

// variant is one way to run our placer.
type variant struct {
	name   string
	order  string
	repair bool
}

// runOurs gives a stream to our placer.
func runOurs(m machine, v variant, requests []request) (*result, error) {
	order, err := placement.ParseOrder(v.order)
	if err != nil {
		return nil, err
	}
	n, _, err := placement.NewNode(placement.State{Machine: m.topology, Order: order})
	if err != nil {
		return nil, err
	}
	r := &result{}
	handles := map[int]placement.Handle{}
	for i, req := range requests {
		for _, gone := range req.leave {
			if h, ok := handles[gone]; ok {
				n.Leave(h)
			}
			delete(handles, gone)
		}
		c := placement.Container{Name: strconv.Itoa(i), CPUs: float64(req.size)}
		start := workload.ThreadTime()
		h, err := n.Arrive(c)
		took := workload.ThreadTime() - start
		if err != nil {
			continue // refused
		}
		handles[i] = h
		if before := crossings(n); v.repair && before != [3]int{} {
			moves := n.Repair(placement.Budget{Moves: 1000, PerCrossing: placement.DefaultPerCrossing})
			if req.warm {
				after, most := crossings(n), 0
				for i := range before {
					most = max(most, before[i]-after[i])
				}
				r.moves += len(moves)
				r.recovered += most
			}
		}
		if req.warm {
			r.note(m, n, h, took, requests, handles)
		}
	}
	return r, nil
}

func crossings(n *placement.Node) (sum [3]int) {
	for i, c := range n.Score().Crossings {
		sum[i] = c.Avoidable + c.Forced
	}
	return sum
}

// oddOf counts the live containers that must have a part of a core, because no number of whole cores is their
// request. 0 where cores differ in size.
func oddOf(m machine, requests []request, live map[int]placement.Handle) int {
	threads := threadsOf(m.topology)
	odd := 0
	for i := range live {
		if threads > 0 && requests[i].size%threads != 0 {
			odd++
		}
	}
	return odd
}

// threadsOf is how many threads each core of a machine has; 0: they differ.
func threadsOf(m topology.Machine) int {
	of := map[topology.ID]int{}
	for _, c := range m.CPUs {
		if c.Online {
			of[c.Core]++
		}
	}
	threads := 0
	for _, n := range of {
		if threads != 0 && n != threads {
			return 0
		}
		threads = n
	}
	return threads
}

// garbage is the number of allocations of one of our decisions on a machine that has been full for a while.
// It includes the departures that make room. Nothing else may run meanwhile.
func garbage(m machine) (float64, error) {
	n, _, err := placement.NewNode(placement.State{Machine: m.topology})
	if err != nil {
		return 0, err
	}
	cpus := m.topology.Online().Difference(m.topology.Isolated()).Size()
	const warm, counted = 3000, 3000
	requests := stream(mixes[1], cpus, 97, warm+counted, 1)
	handles := make([]placement.Handle, len(requests))
	var before, after runtime.MemStats
	for i, r := range requests {
		if i == len(requests)-counted {
			runtime.ReadMemStats(&before)
		}
		for _, gone := range r.leave {
			n.Leave(handles[gone])
		}
		if handles[i], err = n.Arrive(placement.Container{CPUs: float64(r.size)}); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / counted, nil
}
