package live

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/roles"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

// ioWork is the mean CPU time per run from which on threads made for I/O count as doing application work. A
// turn of an event loop takes microseconds; Finagle's Offload Filter exists for the rest.
const ioWork = time.Millisecond

// minRuns is how many runs a pool needs for that.
const minRuns = 20

// names gives threads their pools' names, and remembers a real thread of each pool. The pool table matches
// the names of threads, not of pools.
type names struct {
	fold  *threadpool.Names
	roles *roles.Roles        // nil: not known yet
	first map[string][]thread // the first thread of each process, by pool
	// classes are those of threads, class is that of all threads of a pool that have one: "" where they differ.
	classes map[uint32]string
	class   map[string]string
}

type thread struct {
	tgid uint32
	comm string
}

// Bounds of names: pools, and processes for each.
const (
	maxPoolNames = 64 // of one process
	maxNamed     = 1024
	maxNamedOf   = 16
)

func newNames(known facts) *names {
	return &names{fold: threadpool.NewNames(maxPoolNames), roles: known.roles, first: map[string][]thread{},
		classes: known.said.classes, class: map[string]string{}}
}

// pool names the pool of a thread; it is for diagnose.Options.PoolOf.
func (n *names) pool(tid, tgid uint32, comm string) string {
	pool := n.roles.Pool(tid, n.fold.Of(tgid, comm))
	n.addClass(pool, n.classes[tid])
	known, ok := n.first[pool]
	if !ok && len(n.first) >= maxNamed || len(known) >= maxNamedOf ||
		slices.ContainsFunc(known, func(t thread) bool { return t.tgid == tgid }) {
		return pool
	}
	n.first[pool] = append(known, thread{tgid, comm})
	return pool
}

// addClass notes the class of a thread of a pool; "": the thread has none.
func (n *names) addClass(pool, class string) {
	known, ok := n.class[pool]
	switch {
	case class == "":
	case !ok && len(n.class) < maxNamed:
		n.class[pool] = class
	case ok && known != class:
		n.class[pool] = ""
	}
}

// budgets are what processes say that they have in force, by their number.
func budgets(processes map[uint32]threadpool.Process) (all []diagnose.Budget) {
	for _, tgid := range slices.Sorted(maps.Keys(processes)) {
		p := processes[tgid]
		if b := p.Budget; b != nil {
			all = append(all, diagnose.Budget{TGID: tgid, Process: cmp.Or(p.Comm, path.Base(p.Exe)), Budget: b.Known()})
		}
	}
	return all
}

// of returns a thread of a pool, from the pool's own process if it is known.
func (n *names) of(p diagnose.PoolUse, processes map[uint32]threadpool.Process) (thread, bool) {
	known := n.first[p.Name]
	for _, t := range known {
		if of := processes[t.tgid]; p.Process != "" && (of.Comm == p.Process || path.Base(of.Exe) == p.Process) {
			return t, true
		}
	}
	if len(known) == 0 {
		return thread{}, false
	}
	return known[0], true
}

// advisedShare is the share of the CPU time in throttled periods from which on a pool spent the quota. A pool with less
// is stopped by it, and gets no advice.
const advisedShare = 1.0 / 3

// advise fills in the pool table's entry of each pool. Advice is for pools that spent the container's own quota, and
// only while that stops it. allowed is how many CPUs the container may use.
func advise(e *diagnose.Explanation, table *threadpool.Table, n *names, processes map[uint32]threadpool.Process,
	allowed int) {
	limit := 0.0
	if e.LimitCPUs != nil {
		limit = *e.LimitCPUs
	}
	spent, all := map[int]float64{}, 0.0
	for i, p := range e.Pools {
		if p.CPUThrottled != nil {
			spent[i] = p.CPUThrottled.Seconds()
			all += spent[i]
		}
	}
	rows := make([]*threadpool.Row, len(e.Pools)) // nil: the table has none
	for i := range e.Pools {
		rows[i] = rowOf(&e.Pools[i], table, n, processes)
	}
	for i := range e.IdlePools {
		if row := rowOf(&e.IdlePools[i], table, n, processes); row != nil {
			known(&e.IdlePools[i], row)
		}
	}
	for i, row := range rows {
		if row == nil {
			continue
		}
		p := &e.Pools[i]
		known(p, row)
		if e.Cause.OwnQuota() && all > 0 && spent[i] >= advisedShare*all && !sizesOthers(e.Pools, rows, i) {
			p.Advice = row.Advice(p.Working, p.Widest, limit, allowed)
		}
		p.OnIOThread = row.IOThread() && p.Delay != nil && p.Delay.Count >= minRuns && p.CPU/time.Duration(p.Delay.Count) >= ioWork
	}
}

// known fills in what the pool table's row says of a pool, whatever it does.
func known(p *diagnose.PoolUse, row *threadpool.Row) {
	p.Key, p.Library, p.Setting = row.Key, row.Library, row.Setting
	if n, ok := row.CPUsFor(p.Size); ok {
		p.DefaultCPUs = &n
	}
}

// rowOf returns the pool table's row of a pool; nil: it has none.
func rowOf(p *diagnose.PoolUse, table *threadpool.Table, n *names, processes map[uint32]threadpool.Process) *threadpool.Row {
	t, ok := n.of(*p, processes)
	if !ok {
		return nil
	}
	var process *threadpool.Process
	if known, ok := processes[t.tgid]; ok {
		process = &known
	}
	name := t.comm
	if strings.Contains(p.Name, ": ") {
		name = p.Name // a role that the process's title tells
	}
	rows := table.Match(name, process)
	if len(rows) == 0 || rows[0].Unnamed() && p.Main {
		return nil
	}
	return &rows[0]
}

// sizesOthers reports whether the setting of pool i sizes another role of the same program too. Fewer threads for one that
// spends the quota would then be fewer for one that waits.
//
// Worked example: the connections of a database that sort a table spend the quota, those that look up a key wait, and both
// are threads of one pool. With one thread for both, p99 of the look-ups was 450 to 2,900 ms instead of 60.
func sizesOthers(pools []diagnose.PoolUse, rows []*threadpool.Row, i int) bool {
	for j, row := range rows {
		if row != nil && row.Key == rows[i].Key && pools[j].Process == pools[i].Process && pools[j].Name != pools[i].Name {
			return true
		}
	}
	return false
}
