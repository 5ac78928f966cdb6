package forecast

import (
	"slices"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

// maxPools bounds the pools of a recording; up to 15 kB each for its two distributions, and as much in each replay.
const maxPools = 64

// poolName is a pool's identity: the name of its process and its own.
type poolName struct{ process, name string }

// poolSet has the pools of a recording. It has places for maxPools of them, so that no recording can make more. The zero
// value is empty.
type poolSet struct {
	places [maxPools]*Pool
	used   int
	byName map[poolName]*Pool
}

// all returns the pools in the order of their appearance.
func (s *poolSet) all() []*Pool { return s.places[:s.used] }

// of returns the pool of a name, of a thread that is called comm. The last place is for the pool of all names that come
// after the others have theirs.
func (s *poolSet) of(name poolName, comm string) *Pool {
	if p := s.byName[name]; p != nil {
		return p
	}
	if s.used >= maxPools-1 {
		name = poolName{name: threadpool.Other}
		if p := s.byName[name]; p != nil {
			return p
		}
	}
	if p := s.add(name, comm); p != nil {
		return p
	}
	return s.places[maxPools-1]
}

// add returns a new pool, or the one that has the name; nil: every place is taken.
func (s *poolSet) add(name poolName, comm string) *Pool {
	if p := s.byName[name]; p != nil {
		return p
	}
	if s.used == maxPools {
		return nil
	}
	p := &Pool{Name: name.name, process: name.process, comm: comm, recorded: newTimes()}
	if s.byName == nil {
		s.byName = map[poolName]*Pool{}
	}
	s.byName[name] = p
	s.places[s.used] = p
	s.used++
	return p
}

// remove takes pools out of the set.
func (s *poolSet) remove(which func(*Pool) bool) {
	s.used = len(slices.DeleteFunc(s.all(), func(p *Pool) bool {
		if !which(p) {
			return false
		}
		delete(s.byName, poolName{p.process, p.Name})
		return true
	}))
}
