package pooleddemand

import (
	"maps"
	"sync"
	"sync/atomic"
)

// copied is a map by nodes' names. Scheduling reads it from many goroutines for each node and pod, so that a reader takes no lock; a
// change copies the map.
type copied[V any] struct {
	changing sync.Mutex
	now      atomic.Pointer[map[string]V]
}

// get is a node's; the zero value if there is none.
func (c *copied[V]) get(node string) (of V) {
	if all := c.now.Load(); all != nil {
		of = (*all)[node]
	}
	return of
}

// change lets by change a copy, which readers then see.
func (c *copied[V]) change(by func(all map[string]V)) {
	c.changing.Lock()
	defer c.changing.Unlock()
	all := map[string]V{}
	if now := c.now.Load(); now != nil {
		maps.Copy(all, *now)
	}
	by(all)
	c.now.Store(&all)
}

// forget drops a node's.
func (c *copied[V]) forget(node string) { c.change(func(all map[string]V) { delete(all, node) }) }
