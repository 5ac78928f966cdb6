package pooleddemand

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
)

// feed is what nodes tell of their containers.
type feed struct {
	mu       sync.RWMutex
	nodes    map[string]*told
	services map[string]*service
	// changes counts objects that came and went, so that each has a number of its own.
	changes atomic.Uint64
}

// told is what one node tells.
type told struct {
	number     uint64
	until      time.Time
	containers map[name]*phases.Day
	services   map[string]*phases.Day
}

// name is that of a container of a pod on one node.
type name struct{ namespace, pod, container string }

// service is what the containers of one service want, by node.
type service struct {
	nodes map[string]*phases.Day
	// sum is that of nodes; nil: not made since one of them changed. oldest is the oldest newest row in it.
	sum    *phases.Day
	oldest time.Time
}

func newFeed() *feed { return &feed{nodes: map[string]*told{}, services: map[string]*service{}} }

// toldBy reads an object's spec, which has been checked.
func toldBy(s *nodedemand.Spec) *told {
	n := &told{until: s.Until, containers: map[name]*phases.Day{}, services: map[string]*phases.Day{}}
	for i := range s.Containers {
		c := &s.Containers[i]
		day := c.Day()
		if !isKnown(&day) {
			continue
		}
		n.containers[name{c.Namespace, c.Pod, c.Container}] = &day
		if n.services[c.Service] == nil {
			n.services[c.Service] = &phases.Day{}
		}
		n.services[c.Service].Add(&day)
	}
	return n
}

// set takes what a node tells now; nil: nothing any more.
func (f *feed) set(node string, now *told) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := f.changes.Load() + 1
	defer f.changes.Store(changes) // whoever sees it sees the change
	if before := f.nodes[node]; before != nil {
		for of := range before.services {
			s := f.services[of]
			s.sum = nil
			if delete(s.nodes, node); len(s.nodes) == 0 {
				delete(f.services, of)
			}
		}
		delete(f.nodes, node)
	}
	if now == nil {
		return
	}
	now.number = changes
	f.nodes[node] = now
	for of, day := range now.services {
		s := f.services[of]
		if s == nil {
			s = &service{nodes: map[string]*phases.Day{}}
			f.services[of] = s
		}
		s.nodes[node], s.sum = day, nil
	}
}

// of is what a node tells; nil: nothing, or it is older than the age.
func (f *feed) of(node string, now time.Time, age time.Duration) *told {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n := f.nodes[node]
	if n == nil || now.Sub(n.until) > age {
		return nil
	}
	return n
}

// service is what the containers of a service want, on the nodes whose newest row is not older than the age; nil: not known.
func (f *feed) service(of string, now time.Time, age time.Duration) *phases.Day {
	f.mu.RLock()
	s := f.services[of]
	if s == nil {
		f.mu.RUnlock()
		return nil
	}
	sum, oldest := s.sum, s.oldest
	f.mu.RUnlock()
	if sum == nil || now.Sub(oldest) > age {
		f.mu.Lock()
		defer f.mu.Unlock()
		sum, s.oldest = &phases.Day{}, now
		for node, day := range s.nodes {
			if until := f.nodes[node].until; now.Sub(until) <= age {
				sum.Add(day)
				if until.Before(s.oldest) {
					s.oldest = until
				}
			}
		}
		s.sum = sum
	}
	if !isKnown(sum) {
		return nil
	}
	return sum
}

func isKnown(d *phases.Day) bool {
	for k := range d {
		if d[k].Microseconds > 0 {
			return true
		}
	}
	return false
}
