package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// result is what one allocator did with one stream, or with several.
type result struct {
	arrivals int
	// Arrivals that crossed avoidably: at any level, and at each.
	avoidable      int
	avoidableLevel [3]int
	// Sums over the states after each arrival.
	containers, sharing, stranded, cores int
	forced                               [3]int // groups
	// odd are containers of whose number of CPUs no whole cores can be made.
	odd  int
	fits [3]int
	free int
	// Of repairs.
	moves, movedCPUs, recovered int
	times                       []time.Duration
	refused                     int
}

func (r *result) add(o *result) {
	r.arrivals += o.arrivals
	r.avoidable += o.avoidable
	for i := range r.forced {
		r.avoidableLevel[i] += o.avoidableLevel[i]
		r.forced[i] += o.forced[i]
		r.fits[i] += o.fits[i]
	}
	r.containers += o.containers
	r.odd += o.odd
	r.sharing += o.sharing
	r.stranded += o.stranded
	r.cores += o.cores
	r.free += o.free
	r.moves += o.moves
	r.movedCPUs += o.movedCPUs
	r.recovered += o.recovered
	r.times = append(r.times, o.times...)
	r.refused += o.refused
}

// quantile of the times.
func (r *result) quantile(q float64) time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	slices.Sort(r.times)
	return stats.Rank(r.times, q)
}

// note takes down the state after an arrival.
func (r *result) note(n *placement.Node, newcomer placement.Handle) {
	r.arrivals++
	_, avoidable := n.Excess(newcomer)
	any := false
	for i, excess := range avoidable {
		if excess > 0 {
			r.avoidableLevel[i]++
			any = true
		}
	}
	if any {
		r.avoidable++
	}
	r.state(n)
}

func (r *result) state(n *placement.Node) {
	s := n.Score()
	for i := range s.Crossings {
		r.forced[i] += s.Crossings[i].Forced + s.Crossings[i].Avoidable
	}
	r.sharing += s.Sharing
	r.stranded += s.Stranded
	r.cores += s.CoresShared
	r.free += s.Pool
	for i, fits := range [3]int{s.Fits.Socket, s.Fits.NUMANode, s.Fits.L3} {
		r.fits[i] += fits
	}
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
		start := threadTime()
		got, err := p.take(free, req.size)
		took := threadTime() - start
		if err != nil || got.Size() != req.size || !got.IsSubsetOf(free) {
			r.refused++
			continue
		}
		free = free.Difference(got)
		has[i] = got
		h, err := judge.Adopt(placement.Container{Name: strconv.Itoa(i), CPUs: float64(req.size), Current: got})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		handles[i] = h
		if req.warm {
			r.times = append(r.times, took)
			r.note(judge, h)
			r.containers += len(has)
			r.odd += oddOf(m, requests, handles)
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
		start := threadTime()
		h, err := n.Arrive(c)
		took := threadTime() - start
		if err != nil {
			r.refused++
			continue
		}
		handles[i] = h
		var before [3]int
		if v.repair {
			before = crossings(n)
		}
		if v.repair && before != [3]int{} {
			moves := n.Repair(placement.Budget{Moves: 1000, PerCrossing: placement.DefaultPerCrossing})
			after := crossings(n)
			if req.warm {
				r.moves += len(moves)
				for _, m := range moves {
					r.movedCPUs += m.Cost
				}
				most := 0
				for i := range before {
					most = max(most, before[i]-after[i])
				}
				r.recovered += most
			}
		}
		if req.warm {
			r.times = append(r.times, took)
			r.note(n, h)
			r.containers += len(handles)
			r.odd += oddOf(m, requests, handles)
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
